/* SPDX-License-Identifier: MIT
 *
 * Reports in Jetstress' layout, the log, and the summary in ESRP's manner.  What scripts find on
 * those pages is tested with scripts in tests/func/jetstress_parsers.sh.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/report/esrp.h"
#include "harness/report/exchange_view.h"
#include "harness/report/jetstress.h"
#include "harness/report/writers.h"
#include "tests/unit/report/exchange_fixture.h"
#include "tests/unit/report/files.h"
#include "tests/unit/report/fixture.h"
#include "tests/unit/report/golden.h"
#include "tests/unit/report/markup.h"

static void golden_page(const char *golden, struct record *record, const char *name)
{
	char *text = written_by(&jetstress_html_writer, record, name);
	const char *wrong = markup_check(text, true);

	if (wrong)
		fail_msg("%s: %s", golden, wrong);
	golden_compare(golden, text);
	record_free(record);
}

static void pages_as_written(void **state)
{
	golden_page("jetstress-performance.html", exchange_qnap(),
		    "Performance_2016_1_14_11_59_55.html");
	golden_page("jetstress-second-server.html", exchange_two_servers(),
		    "Performance_2016_1_14_11_59_55_mbx__2_.html");
	golden_page("jetstress-backup.html", exchange_of("database-backup"),
		    "DatabaseBackup_2016_1_14_11_59_55.html");
	golden_page("jetstress-recovery.html", exchange_of("soft-recovery"),
		    "SoftRecovery_2016_1_14_11_59_55.html");
	golden_page("jetstress-stress.html", exchange_of("stress"),
		    "Stress_2016_1_14_11_59_55.html");
}

static void log_as_written(void **state)
{
	struct record *record = exchange_two_servers();

	golden_compare("jetstress.log", written_by(&jetstress_log_writer, record, NULL));
	record_free(record);
}

static unsigned columns_of(const char *line)
{
	unsigned columns = 0;

	for (; *line; line++)
		columns += ((unsigned char)*line & 0xc0) != 0x80;
	return columns;
}

static void summary_as_written(void **state)
{
	struct record *record = exchange_two_servers();
	char *text = written_by(&summary_writer, record, NULL), *line, *save;
	char *copy = strdup(text);

	assert_non_null(copy);
	for (line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (columns_of(line) > 80)
			fail_msg("%u columns: %s", columns_of(line), line);
	free(copy);
	golden_compare("exchange-summary.txt", text);
	record_free(record);
}

/* The page of one server must not hold what is the other's. */
static void every_server_has_its_own_page(void **state)
{
	struct record *record = exchange_two_servers();
	char name[REPORT_NAME_BYTES];
	char *first =
	    written_by(&jetstress_html_writer, record, "Performance_2016_1_14_11_59_55_mbx1.html");
	char *second = written_by(&jetstress_html_writer, record,
				  "Performance_2016_1_14_11_59_55_mbx__2_.html");

	assert_int_equal(jetstress_html_writer.name(record, 2, name), -ENOENT);
	assert_int_equal(count_of(first, "<td class=\"success\">Pass</td>"), 1);
	assert_int_equal(count_of(second, "<td class=\"success\">Pass</td>"), 0);
	assert_int_equal(count_of(second, "<td class=\"failure\">Fail</td>"), 1);
	assert_int_equal(count_of(first, "Operation mix"), 0);
	assert_int_equal(count_of(second, "Operation mix: Sessions 5, &lt;Inserts&gt;"), 1);
	assert_int_equal(count_of(first, "I/O Errors"), 0);
	assert_int_equal(count_of(second, "<td class=\"grid_row_header\">logs log-write</td>\n"
					  "<td>3</td>"),
			 1);
	free(first);
	free(second);
	record_free(record);
}

/* A verdict on the run as a whole fails every server; names are compared as a whole. */
static void a_verdict_fails_whom_it_is_about(void **state)
{
	static const struct {
		const char *id;
		bool first, second;
	} cases[] = {
	    {"io-errors", false, false},    {"db-read-latency mbx1/db1", false, true},
	    {"stalls mbx1", false, true},   {"stalls mbx <2>", true, false},
	    {"stalls mbx11", false, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct record *record = exchange_two_servers();
		struct record_verdict *last = &record->verdicts[record->verdict_count - 1];
		struct exchange_view *view;

		free(last->id);
		last->id = strdup(cases[i].id);
		assert_int_equal(exchange_view_new(record, &view), 0);
		assert_int_equal(exchange_server_passed(view, &view->servers[0]), cases[i].first);
		assert_int_equal(exchange_server_passed(view, &view->servers[1]), cases[i].second);
		record->error = strdup("no space");
		assert_false(exchange_server_passed(view, &view->servers[0]));
		exchange_view_free(view);
		record_free(record);
	}
}

/* Two logs on one volume: each database has its own stream. */
static void logs_on_a_shared_volume_are_told_apart(void **state)
{
	struct record *record = exchange_two_servers();
	struct exchange_view *view;
	const struct exchange_server_view *server;

	assert_int_equal(exchange_view_new(record, &view), 0);
	server = &view->servers[1];
	assert_int_equal(server->active_count, 2);
	assert_int_equal(server->database_count, 3);
	assert_string_equal(server->databases[0].volume, "a");
	assert_int_equal(server->databases[0].io[EXCHANGE_LOG_WRITE].ios, 5325);
	assert_int_equal(server->databases[1].io[EXCHANGE_LOG_WRITE].ios, 5254);
	assert_true(server->databases[2].passive);
	assert_null(server->databases[2].io[EXCHANGE_DB_READ].stream);
	exchange_view_free(view);
	record_free(record);
}

/* A database that became a copy in the window was active before: its I/O counts. */
static void what_was_active_for_a_while_counts(void **state)
{
	struct record *record = exchange_qnap();
	json_t *one = json_array_get(json_object_get(record->exchange, "servers"), 0);
	json_t *database = json_array_get(json_object_get(one, "databases"), 0);
	struct exchange_view *view;
	char *page;

	json_object_set_new(database, "role", json_string("passive"));
	json_object_set_new(record->exchange, "copies",
			    json_pack("[{s:s, s:s, s:s, s:i, s:i}]", "active", "far", "passive",
				      "db1", "state", "idle", "activations", 1, "activation_ns",
				      250000));
	assert_int_equal(exchange_view_new(record, &view), 0);
	assert_int_equal(view->servers[0].active_count, 4);
	assert_true(view->servers[0].databases[0].passive);
	assert_true(view->servers[0].achieved_iops > 232 && view->servers[0].achieved_iops < 233);
	exchange_view_free(view);
	page = written_by(&jetstress_html_writer, record, NULL);
	assert_int_equal(count_of(page, "<td class=\"grid_row_header\">far</td>\n<td>db1</td>"), 1);
	assert_int_equal(count_of(page, "<td>0.250</td>"), 1);
	assert_null(markup_check(page, true));
	free(page);
	record_free(record);
}

/* Samples of the record are joined until they are as long as wanted. */
static void maximum_is_the_largest_mean_of_a_sample(void **state)
{
	static const struct {
		uint32_t ios;
		uint64_t mean_ns;
		bool measured;
	} samples[] = {{1, 900, false}, {10, 100, true}, {30, 200, true},
		       {0, 0, true},	{5, 400, true},	 {1, 700, true}};
	struct record *record = record_new();

	record_add_stream(record);
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		struct record_sample *sample = record_add_sample(record);

		sample->length_ns = NS_PER_S;
		sample->measured = samples[i].measured;
		sample->streams[0].ios = samples[i].ios;
		sample->streams[0].mean_ns = samples[i].mean_ns;
	}
	assert_int_equal(exchange_max_sample_ns(record, 0, NS_PER_S), 700);
	assert_int_equal(exchange_max_sample_ns(record, 0, 2 * NS_PER_S), 700);
	assert_int_equal(exchange_max_sample_ns(record, 0, 4 * NS_PER_S), 700);
	assert_int_equal(exchange_max_sample_ns(record, 0, 5 * NS_PER_S),
			 (1000 + 6000 + 2000 + 700 + 23) / 46);
	assert_int_equal(exchange_max_sample_ns(record, 0, 9 * NS_PER_S),
			 (1000 + 6000 + 2000 + 700 + 23) / 46);
	record_free(record);
}

static void times_are_those_of_a_clock_with_twelve_hours(void **state)
{
	static const struct {
		uint64_t wall_s;
		const char *text;
	} cases[] = {
	    {1452772795, "1/14/2016 11:59:55 AM"},
	    {1452772800, "1/14/2016 12:00:00 PM"},
	    {1452729600, "1/14/2016 12:00:00 AM"},
	    {1452819599, "1/15/2016 12:59:59 AM"},
	};
	char text[48];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(jetstress_time(text, sizeof text, cases[i].wall_s * NS_PER_S),
				    cases[i].text);
}

static char *esrp_text(const struct esrp_run *runs, unsigned count, bool html)
{
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);

	assert_int_equal(esrp_write(runs, count, html, to), 0);
	assert_int_equal(fclose(to), 0);
	return text;
}

static void esrp_as_written(void **state)
{
	struct record *records[] = {exchange_two_servers(), exchange_of("stress"),
				    exchange_of("database-backup"), exchange_of("soft-recovery"),
				    fixture_full()};
	struct esrp_run runs[ARRAY_SIZE(records)];
	const char *wrong;
	char *page;

	for (size_t i = 0; i < ARRAY_SIZE(records); i++)
		runs[i] =
		    (struct esrp_run){.name = i ? "other/\"run\"" : "perf", .record = records[i]};
	page = esrp_text(runs, ARRAY_SIZE(runs), true);
	wrong = markup_check(page, true);
	if (wrong)
		fail_msg("%s", wrong);
	golden_compare("esrp.html", page);
	golden_compare("esrp.txt", esrp_text(runs, ARRAY_SIZE(runs), false));
	assert_int_equal(esrp_write(&runs[4], 1, false, stderr), -ENOENT);
	for (size_t i = 0; i < ARRAY_SIZE(records); i++)
		record_free(records[i]);
}

/* All of them in a directory, again from run.json, and away before the next run. */
static void files_come_and_go_with_the_run(void **state)
{
	static const char *const names[] = {"Performance_2016_1_14_11_59_55.html", "jetstress.log",
					    "esrp.html", "esrp.txt"};
	char *dir = scratch_make(), *again = scratch_make();
	struct record *record = exchange_qnap(), *loaded;
	struct report_dir *held;
	struct err err = {0};

	assert_int_equal(report_write_all(record, dir, &err), 0);
	assert_int_equal(report_load(dir, &loaded, &err), 0);
	assert_int_equal(report_write_all(loaded, again, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char *first = file_read(dir, names[i]), *second = file_read(again, names[i]);

		assert_string_equal(first, second);
		free(first);
		free(second);
	}
	file_write(dir, "Performance_of_mine.html", "");
	assert_int_equal(report_dir_open(dir, &held, &err), 0);
	report_dir_clear(held);
	report_dir_close(held);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_false(file_exists(dir, names[i]));
	assert_true(file_exists(dir, "Performance_of_mine.html"));
	record_free(loaded);
	record_free(record);
	scratch_remove(dir);
	scratch_remove(again);
}

/* What is not told, or told in another type than agreed, must not end a report. */
static void odd_documents_do_no_harm(void **state)
{
	static const char *const documents[] = {
	    "{}",
	    "[]",
	    "null",
	    "{\"servers\": 7, \"log\": {}, \"tuning\": []}",
	    "{\"test\": 3, \"servers\": [null, {}, {\"host\": 4, \"databases\": [1, {}]}]}",
	    "{\"servers\": [{\"host\": \"x\", \"sessions\": -1e300, \"copies\": \"two\", \"mix\": "
	    "4,"
	    " \"cache_min_bytes\": -5, \"databases\": [{\"initial_bytes\": -1, \"recovery\": 1}]}],"
	    " \"log\": [5, {\"wall_ns\": -3}], \"tuning\": {\"cycles\": [1, {\"read_ns\": 3}]},"
	    " \"checksum\": 5}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(documents); i++) {
		char *dir = scratch_make();
		struct record *record = fixture_full();
		struct err err = {0};

		record->exchange = json_loads(documents[i], JSON_DECODE_ANY, NULL);
		assert_non_null(record->exchange);
		assert_int_equal(report_write_all(record, dir, &err), 0);
		record_free(record);
		scratch_remove(dir);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(pages_as_written),
	    cmocka_unit_test(log_as_written),
	    cmocka_unit_test(summary_as_written),
	    cmocka_unit_test(every_server_has_its_own_page),
	    cmocka_unit_test(a_verdict_fails_whom_it_is_about),
	    cmocka_unit_test(logs_on_a_shared_volume_are_told_apart),
	    cmocka_unit_test(what_was_active_for_a_while_counts),
	    cmocka_unit_test(maximum_is_the_largest_mean_of_a_sample),
	    cmocka_unit_test(times_are_those_of_a_clock_with_twelve_hours),
	    cmocka_unit_test(esrp_as_written),
	    cmocka_unit_test(files_come_and_go_with_the_run),
	    cmocka_unit_test(odd_documents_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
