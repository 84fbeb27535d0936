/* SPDX-License-Identifier: MIT
 *
 * Jetstress' criteria from made-up records: each at both sides of its limit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "harness/run/run.h"

enum { SAMPLES = 40 };

static void add_stream(struct record *record, const char *name, uint64_t ios, uint64_t latency_ns)
{
	struct record_stream *stream = record_add_stream(record);

	stream->name = strdup(name);
	stream->host = strdup("mbx1");
	stream->volume = strdup("db1");
	stream->ios = ios;
	for (uint64_t i = 0; i < ios; i++) {
		hist_record(&stream->response, latency_ns);
		hist_record(&stream->service, latency_ns);
	}
}

static json_t *exchange_of(const char *test)
{
	json_t *exchange = json_pack(
	    "{s:s, s:s, s:n, s:{s:i, s:i, s:i, s:i, s:i, s:f, s:f},"
	    " s:{s:f, s:b, s:n, s:i, s:i}, s:[{s:s, s:s, s:f, s:f, s:i, s:f, s:[{s:s, s:s}]}],"
	    " s:{s:s, s:n, s:[]}, s:n}",
	    "engine", "ese", "test", test, "error", "thresholds", "avg_db_read_ns", 20000000,
	    "max_db_read_ns", 100000000, "avg_log_write_ns", 10000000, "max_log_write_ns",
	    100000000, "max_latency_samples", 6, "iops_margin", 0.05, "stalls_per_s", 1.0,
	    "warm_up", "seconds", 286.0, "met", 1, "why", "cache_bytes", 1, "cache_wanted_bytes", 1,
	    "servers", "host", "mbx1", "loop", "closed", "target_iops", 168.0, "achieved_iops",
	    232.0, "stalls", 0, "stalls_max_per_s", 0.0, "databases", "name", "Instance1.1", "role",
	    "active", "tuning", "result", "not run", "why", "cycles", "checksum");

	assert_non_null(exchange);
	return exchange;
}

/* Ten minutes in 40 samples of 15 s, everything well within the limits. */
static struct record *good_record(const char *test)
{
	struct record *record = record_new();

	record->window_start_ns = 300 * NS_PER_S;
	record->window_end_ns = 900 * NS_PER_S;
	record->planned_transactional_iops = 168;
	record->achieved_transactional_iops = 232;
	record->pages_checked = 5000;
	add_stream(record, "db-read", 2000, 14 * NS_PER_MS);
	add_stream(record, "db-write", 1000, 60 * NS_PER_MS);
	add_stream(record, "log-write", 500, 1100 * NS_PER_US);
	for (unsigned i = 0; i < SAMPLES; i++) {
		struct record_sample *sample = record_add_sample(record);

		sample->at_ns = 300 * NS_PER_S + (i + 1) * 15 * NS_PER_S;
		sample->length_ns = 15 * NS_PER_S;
		sample->measured = true;
		for (unsigned s = 0; s < record->stream_count; s++)
			sample->streams[s] = (struct record_stream_sample){
			    .ios = 50, .mean_ns = s == 0 ? 14000000 : 1100000};
	}
	record->exchange = exchange_of(test);
	return record;
}

static const struct record_verdict *judged(struct record *record, struct expect_config *expect,
					   size_t expect_count, const char *id)
{
	struct lab lab = {
	    .run = {.duration_ns = 600 * NS_PER_S},
	    .expect = {.items = expect, .count = expect_count},
	};

	verdicts_judge(&lab, record);
	for (unsigned i = 0; i < record->verdict_count; i++)
		if (strcmp(record->verdicts[i].id, id) == 0)
			return &record->verdicts[i];
	return NULL;
}

static void assert_judged(struct record *record, const char *id, enum verdict_status want,
			  const char *text)
{
	const struct record_verdict *verdict = judged(record, NULL, 0, id);

	if (!verdict)
		fail_msg("no verdict %s", id);
	if (verdict->status != want)
		fail_msg("%s: %s", id, verdict->text);
	if (!strstr(verdict->text, text))
		fail_msg("%s: '%s' does not say '%s'", id, verdict->text, text);
	assert_true(json_is_object(verdict->evidence));
	assert_int_equal(record_passed(record), want != VERDICT_FAIL);
	record_free(record);
}

static json_t *server_of(struct record *record)
{
	return json_array_get(json_object_get(record->exchange, "servers"), 0);
}

static void set(json_t *object, const char *key, json_t *value)
{
	assert_int_equal(json_object_set_new(object, key, value), 0);
}

static void good_test_passes(void **state)
{
	struct record *record = good_record("performance");

	assert_non_null(judged(record, NULL, 0, "achieved-iops"));
	for (unsigned i = 0; i < record->verdict_count; i++)
		if (record->verdicts[i].status != VERDICT_PASS)
			fail_msg("%s: %s", record->verdicts[i].id, record->verdicts[i].text);
	/* Jetstress has no limit for database writes. */
	assert_null(judged(record, NULL, 0, "db-write-latency mbx1/db1"));
	record_free(record);
}

static void target_less_its_margin_must_be_reached(void **state)
{
	static const struct {
		double achieved;
		enum verdict_status want;
	} cases[] = {{159.7, VERDICT_PASS}, {159.5, VERDICT_FAIL}, {900, VERDICT_PASS}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct record *record = good_record("performance");

		set(server_of(record), "achieved_iops", json_real(cases[i].achieved));
		assert_judged(record, "achieved-iops", cases[i].want, "of 168.0 target");
	}
}

static void stalls_may_be_one_a_second(void **state)
{
	static const struct {
		int stalls;
		enum verdict_status want;
	} cases[] = {{600, VERDICT_PASS}, {601, VERDICT_FAIL}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct record *record = good_record("performance");

		set(server_of(record), "stalls", json_integer(cases[i].stalls));
		assert_judged(record, "page-fault-stalls", cases[i].want, "1.00");
	}
}

static void averages_have_their_thresholds(void **state)
{
	static const struct {
		const char *key, *id;
		uint64_t limit_ns;
		enum verdict_status want;
	} cases[] = {
	    {"avg_db_read_ns", "db-read-latency mbx1/db1", 15000000, VERDICT_PASS},
	    {"avg_db_read_ns", "db-read-latency mbx1/db1", 13000000, VERDICT_FAIL},
	    {"avg_log_write_ns", "log-write-latency mbx1/db1", 1200000, VERDICT_PASS},
	    {"avg_log_write_ns", "log-write-latency mbx1/db1", 1000000, VERDICT_FAIL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct record *record = good_record("performance");

		set(json_object_get(record->exchange, "thresholds"), cases[i].key,
		    json_integer((json_int_t)cases[i].limit_ns));
		assert_judged(record, cases[i].id, cases[i].want, "average");
	}
}

static void six_samples_above_the_maximum_are_forgiven(void **state)
{
	for (unsigned above = 5; above <= 7; above++) {
		struct record *record = good_record("stress");
		char text[64];

		for (unsigned i = 0; i < above; i++)
			record->samples[3 * i].streams[2].mean_ns = 100000001 + i;
		snprintf(text, sizeof text, "%u of 40 samples above", above);
		assert_judged(record, "log-write-maximum mbx1/db1",
			      above <= 6 ? VERDICT_PASS : VERDICT_FAIL, text);
	}
}

/* Samples of a second are put together to those of 15 s, weighted by their I/Os. */
static void short_samples_are_put_together(void **state)
{
	struct record *record = good_record("performance");

	for (unsigned i = 0; i < SAMPLES; i++)
		record->samples[i].length_ns = NS_PER_S;
	/* 29 ms of 15 s: 2,000 ms in one I/O, 14 ms in 131 of them. */
	for (unsigned i = 0; i < 15; i++)
		record->samples[i].streams[0].ios = i == 7 ? 1 : 9;
	record->samples[7].streams[0].mean_ns = 2000000000;
	assert_judged(record, "db-read-maximum mbx1/db1", VERDICT_PASS,
		      "29.6 ms, 0 of 3 samples above");
}

static void what_is_not_measured_is_not_judged(void **state)
{
	struct record *record = good_record("performance");

	for (unsigned i = 0; i < 20; i++) {
		record->samples[i].measured = false;
		record->samples[i].streams[0].mean_ns = 500000000;
	}
	assert_judged(record, "db-read-maximum mbx1/db1", VERDICT_PASS, "0 of 20 samples");
}

static void expectations_take_the_place_of_limits(void **state)
{
	struct expect_config expect[] = {
	    {.key = "achieved-iops", .op = EXPECT_GE, .value = 0.5, .text = ">= 50%"},
	};
	struct record *record = good_record("performance");

	set(server_of(record), "achieved_iops", json_real(100));
	assert_null(judged(record, expect, 1, "achieved-iops"));
	record_free(record);
}

static void several_servers_are_told_apart(void **state)
{
	struct record *record = good_record("performance");
	json_t *second = json_deep_copy(server_of(record));

	set(second, "host", json_string("mbx2"));
	set(second, "achieved_iops", json_real(10));
	json_array_append_new(json_object_get(record->exchange, "servers"), second);
	assert_non_null(judged(record, NULL, 0, "achieved-iops mbx1"));
	assert_int_equal(judged(record, NULL, 0, "achieved-iops mbx1")->status, VERDICT_PASS);
	set(record->exchange, "tuning",
	    json_pack("{s:s, s:n, s:[{s:s, s:i}, {s:s, s:i}, {s:s, s:i}]}", "result", "succeeded",
		      "why", "cycles", "host", "mbx1", "sessions", 8, "host", "mbx1", "sessions", 4,
		      "host", "mbx2", "sessions", 8));
	assert_non_null(strstr(judged(record, NULL, 0, "tuning")->text, "mbx1 8, 4; mbx2 8"));
	assert_judged(record, "achieved-iops mbx2", VERDICT_FAIL, "mbx2 achieved 10.0");
}

static void logs_of_several_databases_are_told_apart(void **state)
{
	struct record *record = good_record("performance");

	free(record->streams[2].volume);
	record->streams[2].volume = strdup("log1");
	assert_judged(record, "log-write-latency mbx1/log1 (db1)", VERDICT_PASS,
		      "log write latency of mbx1/log1 (db1)");
}

static void failed_tuning_says_why(void **state)
{
	struct record *record = good_record("performance");

	set(record->exchange, "tuning",
	    json_pack("{s:s, s:n, s:[{s:i}, {s:i}, {s:i}]}", "result", "succeeded", "why", "cycles",
		      "sessions", 8, "sessions", 4, "sessions", 5));
	assert_judged(record, "tuning", VERDICT_PASS, "8, 4, 5");
	record = good_record("performance");
	record->window_end_ns = record->window_start_ns;
	record->error = strdup("automatic tuning of mbx1 failed: no number fits");
	set(record->exchange, "tuning",
	    json_pack("{s:s, s:s, s:[{s:i}]}", "result", "failed", "why", "no number fits",
		      "cycles", "sessions", 8));
	assert_null(judged(record, NULL, 0, "achieved-iops"));
	assert_judged(record, "tuning", VERDICT_FAIL, "no number fits");
}

static void prerequisites_must_be_met(void **state)
{
	struct record *record = good_record("performance");

	set(record->exchange, "warm_up",
	    json_pack("{s:f, s:b, s:s}", "seconds", 7200.0, "met", 0, "why",
		      "cache 1.0 of 9.0 MB"));
	assert_judged(record, "prerequisites", VERDICT_FAIL, "cache 1.0 of 9.0 MB after 7200 s");
}

static void bad_pages_fail_any_test(void **state)
{
	static const struct {
		int bad, unreadable;
		enum verdict_status want;
	} cases[] = {{0, 0, VERDICT_PASS}, {1, 0, VERDICT_FAIL}, {0, 8, VERDICT_FAIL}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct record *record = good_record("stress");

		set(record->exchange, "checksum",
		    json_pack("{s:i, s:i, s:i, s:f, s:f}", "pages", 1000, "bad", cases[i].bad,
			      "not_readable", cases[i].unreadable, "seconds", 1.0, "bytes_per_s",
			      1.0));
		assert_judged(record, "checksum", cases[i].want, "1000 pages");
	}
}

static void damaged_logs_fail_any_test(void **state)
{
	for (unsigned bad = 0; bad < 2; bad++) {
		struct record *record = good_record("stress");
		json_t *database =
		    json_array_get(json_object_get(server_of(record), "databases"), 0);

		set(database, "volume", json_string("db7"));
		set(database, "log_checksum",
		    json_pack("{s:f, s:i, s:b}", "files", 12.0, "segments", 3072, "good", !bad));
		assert_judged(record, "log-checksum", bad ? VERDICT_FAIL : VERDICT_PASS,
			      bad ? "that of mbx1/db7" : "3072 segments in 12 log files");
	}
}

static void backups_must_read_everything(void **state)
{
	for (unsigned i = 0; i < 3; i++) {
		struct record *record = good_record("database-backup");
		json_t *databases = json_object_get(server_of(record), "databases");

		json_array_clear(databases);
		for (unsigned d = 0; d < 2; d++) {
			json_t *database = json_pack("{s:s}", "role", "active");

			if (i != 1 || d == 0)
				set(database, "backup",
				    json_pack("{s:i, s:f, s:f, s:i, s:i, s:i}", "bytes", 104857600,
					      "seconds", 2.0, "bytes_per_s", 52428800.0, "pages",
					      3200, "bad", i == 2 && d == 1, "not_readable", 0));
			json_array_append_new(databases, database);
		}
		/* A copy is not backed up. */
		json_array_append_new(databases, json_pack("{s:s}", "role", "passive"));
		assert_judged(record, "backup", i ? VERDICT_FAIL : VERDICT_PASS,
			      i == 0   ? "200.0 MB at 100.0 MB/s"
			      : i == 1 ? "1 of 2 databases"
				       : "1 pages bad");
	}
}

static void recoveries_must_replay_something(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		struct record *record = good_record("soft-recovery");
		json_t *database =
		    json_array_get(json_object_get(server_of(record), "databases"), 0);

		if (i == 0)
			set(database, "recovery",
			    json_pack("{s:f, s:f, s:f}", "files", 500.0, "seconds", 100.0,
				      "seconds_per_file", 0.2));
		assert_judged(record, "soft-recovery", i ? VERDICT_FAIL : VERDICT_PASS,
			      i ? "0 of 1 databases" : "500 log files at 0.200 s each");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(good_test_passes),
	    cmocka_unit_test(target_less_its_margin_must_be_reached),
	    cmocka_unit_test(stalls_may_be_one_a_second),
	    cmocka_unit_test(averages_have_their_thresholds),
	    cmocka_unit_test(six_samples_above_the_maximum_are_forgiven),
	    cmocka_unit_test(short_samples_are_put_together),
	    cmocka_unit_test(what_is_not_measured_is_not_judged),
	    cmocka_unit_test(expectations_take_the_place_of_limits),
	    cmocka_unit_test(several_servers_are_told_apart),
	    cmocka_unit_test(logs_of_several_databases_are_told_apart),
	    cmocka_unit_test(failed_tuning_says_why),
	    cmocka_unit_test(prerequisites_must_be_met),
	    cmocka_unit_test(bad_pages_fail_any_test),
	    cmocka_unit_test(damaged_logs_fail_any_test),
	    cmocka_unit_test(backups_must_read_everything),
	    cmocka_unit_test(recoveries_must_replay_something),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
