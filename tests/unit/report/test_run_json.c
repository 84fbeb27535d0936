/* SPDX-License-Identifier: MIT
 *
 * run.json: valid for every record, complete, and the same record again when loaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/report/exchange_record.h"
#include "harness/report/writers.h"
#include "tests/unit/report/files.h"
#include "tests/unit/report/fixture.h"

static json_t *parse(const char *text)
{
	json_error_t error;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);

	if (!root)
		fail_msg("line %d: %s", error.line, error.text);
	return root;
}

static json_t *json_of(const struct record *record)
{
	char *text = written_by(&run_json_writer, record, NULL);
	json_t *root = parse(text);

	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf"));
	free(text);
	return root;
}

static void has_its_members(void **state)
{
	static const char *const members[] = {
	    "schema",	   "version",	  "lab",     "workload", "passed",   "interrupted",
	    "seed",	   "start_utc",	  "window",  "plan",	 "achieved", "data_check",
	    "verdicts",	   "histogram",	  "streams", "paths",	 "samples",  "markers",
	    "environment", "config_yaml", "target",
	};
	struct record *record = fixture_full();
	json_t *root = json_of(record), *stream, *hist;

	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		if (!json_object_get(root, members[i]))
			fail_msg("no %s", members[i]);
	}
	assert_string_equal(json_string_value(json_object_get(root, "schema")), "sanlab/run/1");
	assert_null(json_object_get(root, "error"));
	assert_false(json_is_true(json_object_get(root, "passed")));
	assert_string_equal(
	    json_string_value(json_object_get(json_object_get(root, "window"), "start_utc")),
	    "2026-11-30T10:00:07.000Z");
	assert_int_equal(json_array_size(json_object_get(root, "streams")), record->stream_count);
	stream = json_array_get(json_object_get(root, "streams"), 0);
	hist = json_object_get(stream, "response");
	assert_int_equal(json_integer_value(json_object_get(hist, "count")),
			 record->streams[0].response.count);
	assert_true(json_array_size(json_object_get(hist, "buckets")) > 10);
	assert_int_equal(json_array_size(json_array_get(json_object_get(hist, "buckets"), 0)), 3);
	json_decref(root);
	record_free(record);
}

static void buckets_hold_every_io(void **state)
{
	struct record *record = fixture_full();
	json_t *root = json_of(record), *stream, *bucket;
	size_t i, b;

	json_array_foreach(json_object_get(root, "streams"), i, stream)
	{
		json_int_t sum = 0, last = -1;

		json_array_foreach(json_object_get(json_object_get(stream, "response"), "buckets"),
				   b, bucket)
		{
			json_int_t low = json_integer_value(json_array_get(bucket, 0));
			json_int_t high = json_integer_value(json_array_get(bucket, 1));

			assert_true(low > last && high >= low);
			last = high;
			sum += json_integer_value(json_array_get(bucket, 2));
		}
		assert_int_equal(sum, record->streams[i].ios);
	}
	json_decref(root);
	record_free(record);
}

static void loads_what_it_wrote(void **state)
{
	char *dir = scratch_make(), *first, *second;
	struct record *record = fixture_full(), *loaded;
	struct err err = {0};

	assert_int_equal(report_write_all(record, dir, &err), 0);
	assert_int_equal(report_load(dir, &loaded, &err), 0);
	first = file_read(dir, "run.json");
	second = written_by(&run_json_writer, loaded, NULL);
	assert_string_equal(first, second);
	assert_true(loaded->seed == record->seed);
	assert_int_equal(loaded->stream_count, record->stream_count);
	assert_memory_equal(&loaded->streams[0].response, &record->streams[0].response,
			    sizeof(struct hist));
	assert_memory_equal(loaded->samples[3].streams, record->samples[3].streams,
			    record->stream_count * sizeof(struct record_stream_sample));
	assert_string_equal(loaded->verdicts[2].hint, record->verdicts[2].hint);
	free(first);
	free(second);
	record_free(loaded);
	record_free(record);
	scratch_remove(dir);
}

static void renders_the_same_again(void **state)
{
	char *dir = scratch_make(), *again = scratch_make();
	struct record *record = fixture_full(), *loaded;
	struct err err = {0};

	assert_int_equal(report_write_all(record, dir, &err), 0);
	assert_int_equal(report_load(dir, &loaded, &err), 0);
	assert_int_equal(report_write_all(loaded, again, &err), 0);
	for (size_t i = 0; report_writers[i]; i++) {
		char *first, *second;

		if (report_writers[i]->write_part)
			continue;
		first = file_read(dir, report_writers[i]->file);
		second = file_read(again, report_writers[i]->file);
		assert_string_equal(first, second);
		free(first);
		free(second);
	}
	record_free(loaded);
	record_free(record);
	scratch_remove(dir);
	scratch_remove(again);
}

static void empty_records_load_too(void **state)
{
	char *dir = scratch_make();
	struct record *record = fixture_empty(), *loaded;
	struct err err = {0};
	json_t *root = json_of(record);

	assert_string_equal(
	    json_string_value(json_object_get(json_object_get(root, "error"), "message")),
	    record->error);
	json_decref(root);
	assert_int_equal(report_write_all(record, dir, &err), 0);
	assert_int_equal(report_load(dir, &loaded, &err), 0);
	assert_string_equal(loaded->error, record->error);
	assert_false(record_passed(loaded));
	record_free(loaded);
	record_free(record);
	scratch_remove(dir);
}

static void odd_values_stay_valid(void **state)
{
	struct record *record = record_new();
	struct record_stream *stream = record_add_stream(record);
	struct record_path *path = record_add_path(record);
	json_t *root, *first;

	stream->name = strdup("cut \xc3");
	stream->planned_per_s = NAN;
	stream->ios = UINT64_MAX;
	path->share = INFINITY;
	record->planned_transactional_iops = -INFINITY;
	record->seed = INT64_MAX;
	root = json_of(record);
	first = json_array_get(json_object_get(root, "streams"), 0);
	assert_true(json_is_null(json_object_get(first, "planned_per_s")));
	assert_true(json_is_null(json_object_get(first, "achieved_per_s")));
	assert_true(json_integer_value(json_object_get(first, "ios")) == INT64_MAX);
	assert_string_equal(json_string_value(json_object_get(first, "name")), "cut ?");
	assert_true(json_integer_value(json_object_get(root, "seed")) == INT64_MAX);
	json_decref(root);
	record_free(record);
}

/* FROM in the document of the full fixture becomes TO; loading it must fail with WANT in the
 * message and PLACE in where. */
static const struct {
	const char *from, *to, *want, *place;
} damages[] = {
    {"\"schema\": \"sanlab/run/1\"", "\"schema\": \"sanlab/run/9\"", "sanlab/run/9", "run.json"},
    {"\"markers\": [", "\"markers\": {", "not a JSON document", "run.json:"},
    {"\"seed\": ", "\"lab\": 1,\n\"seed\": ", "duplicate", "run.json:"},
    {"\"window\": {\"start_ns\":7000000000", "\"window\": {\"start_ns\":-7", "start_ns",
     "run.json"},
    {"\"op\":\"write\"", "\"op\":\"erase\"", "streams[1].op", "run.json"},
    {"\"status\":\"skip\"", "\"status\":\"maybe\"", "verdicts[5].status", "run.json"},
    {"\"interrupted\": false", "\"interrupted\": 0", "interrupted", "run.json"},
    {"\"logins\":2", "\"logins\":\"2\"", "paths[1].logins", "run.json"},
    {"\"buckets\":[[", "\"buckets\":[[1,", "bucket 0", "run.json"},
    {"\"count\":35", "\"count\":36", "element 35", "run.json"},
    {"\"seed\": \"18446744073709551615\"", "\"seed\": \"18446744073709551616\"", "seed",
     "run.json"},
};

static void refuses_damage_with_its_place(void **state)
{
	struct record *record = fixture_full(), *loaded = NULL;
	char *whole = written_by(&run_json_writer, record, NULL);

	for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
		char *dir = scratch_make(), *at = strstr(whole, damages[i].from), *damaged;
		struct err err = {0};

		if (!at)
			fail_msg("case %zu: %s is not in the document", i, damages[i].from);
		assert_true(asprintf(&damaged, "%.*s%s%s", (int)(at - whole), whole, damages[i].to,
				     at + strlen(damages[i].from)) > 0);
		file_write(dir, "run.json", damaged);
		assert_int_equal(report_load(dir, &loaded, &err), -EINVAL);
		assert_null(loaded);
		if (!strstr(err.what, damages[i].want) || !strstr(err.where, damages[i].place))
			fail_msg("case %zu: %s: %s", i, err.where, err.what);
		free(damaged);
		scratch_remove(dir);
	}
	free(whole);
	record_free(record);
}

/* However a file was cut: an error, never a crash. */
static void refuses_every_cut(void **state)
{
	struct record *record = fixture_empty(), *loaded = NULL;
	char *whole = written_by(&run_json_writer, record, NULL), *dir = scratch_make();
	size_t size = strlen(whole);

	for (size_t cut = 0; cut + 2 < size; cut += 7) {
		char *head = strndup(whole, cut);
		struct err err = {0};

		file_write(dir, "run.json", head);
		assert_true(report_load(dir, &loaded, &err) < 0);
		assert_true(err.what[0] != '\0');
		free(head);
	}
	free(whole);
	scratch_remove(dir);
	record_free(record);
}

/* What a test of the database engine says comes back as it was; other runs have no such member. */
static void keeps_the_exchange_test(void **state)
{
	char *dir = scratch_make();
	struct record *record = fixture_empty(), *loaded = NULL;
	struct err err = {0};
	json_t *root = json_of(record);

	assert_null(json_object_get(root, "exchange"));
	assert_string_equal(exchange_test(record->exchange), "");
	json_decref(root);
	record->exchange = json_pack("{s:s, s:s, s:[{s:s, s:i, s:f, s:n}]}", "engine", "ese",
				     "test", "soft-recovery", "servers", "host", "mbx1", "sessions",
				     5, "target_iops", 168.2, "achieved_iops");
	assert_int_equal(report_write_all(record, dir, &err), 0);
	if (report_load(dir, &loaded, &err) < 0)
		fail_msg("%s", err.what);
	assert_true(json_equal(loaded->exchange, record->exchange));
	assert_string_equal(exchange_test(loaded->exchange), "soft-recovery");
	record_free(loaded);
	record_free(record);
	scratch_remove(dir);
}

static void missing_run_is_named(void **state)
{
	char *dir = scratch_make();
	struct record *loaded = NULL;
	struct err err = {0};

	assert_int_equal(report_load(dir, &loaded, &err), -ENOENT);
	assert_non_null(strstr(err.where, "run.json"));
	assert_true(err.hint[0] != '\0');
	scratch_remove(dir);
}

static void tables_grow(void **state)
{
	struct record *record = record_new();

	for (unsigned i = 0; i < 100; i++) {
		struct record_stream *stream = record_add_stream(record);
		struct record_verdict *verdict = record_add_verdict(record);

		assert_int_equal(stream->response.count, 0);
		stream->ios = i;
		verdict->status = VERDICT_SKIP;
	}
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(record->streams[i].ios, i);
	assert_int_equal(record_add_sample(record)->streams[99].ios, 0);
	assert_true(record_passed(record));
	record->verdicts[7].status = VERDICT_FAIL;
	assert_false(record_passed(record));
	record_free(record);
	assert_null(record_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(has_its_members),
	    cmocka_unit_test(buckets_hold_every_io),
	    cmocka_unit_test(loads_what_it_wrote),
	    cmocka_unit_test(renders_the_same_again),
	    cmocka_unit_test(empty_records_load_too),
	    cmocka_unit_test(odd_values_stay_valid),
	    cmocka_unit_test(refuses_damage_with_its_place),
	    cmocka_unit_test(refuses_every_cut),
	    cmocka_unit_test(keeps_the_exchange_test),
	    cmocka_unit_test(missing_run_is_named),
	    cmocka_unit_test(tables_grow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
