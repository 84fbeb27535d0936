/* SPDX-License-Identifier: MIT
 *
 * Automatic tuning of the whole engine, on devices whose read latency follows the load as the
 * QNAP ES1640DC report logs it for server 1: 15.4 ms with 4 and 5 sessions, 20 ms with 8.  It has
 * to take that report's path, 8 -> 4 -> 5 sessions.
 *
 * The report's tuning cycles fit a think time of two timer ticks, 31.25 ms (at 4 sessions a
 * transaction takes 52.6 ms, 20.2 ms of them for reads); the default fits the measured run.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_workload.h"
#include "tests/sim/ese/ese_rig.h"

#define DATABASE_BYTES UINT64_C(524527075328) /* 2,098,108,301,312 B in 4 */

#define SERVER_1                                                                            \
	"engine: ese, mailboxes: 1000, iops-per-mailbox: 0.168, copies: 2, content: none, " \
	"initial-size: 524527075328, think-time: 31.25ms"

static uint64_t report_latency_ns(struct rig *rig, const struct io *io, bool log)
{
	unsigned sessions = ese_server_sessions(rig_server(rig, 0));

	if (log)
		return io->op == IO_WRITE ? (sessions >= 8 ? 1700 : 1100) * NS_PER_US
					  : 2700 * NS_PER_US;
	if (io->op == IO_WRITE)
		return 2400 * NS_PER_US;
	return sessions >= 8 ? 20050 * NS_PER_US : 15400 * NS_PER_US;
}

static json_t *describe(struct rig *rig)
{
	json_t *exchange = ese_workload_ops.describe(rig->workload);

	assert_true(json_is_object(exchange));
	return exchange;
}

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static double number_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_number(value))
		fail_msg("%s is no number", key);
	return json_number_value(value);
}

/* How often TEXT stands in the test log. */
static unsigned log_lines(const json_t *exchange, const char *text)
{
	const json_t *line;
	unsigned count = 0;
	size_t i;

	json_array_foreach(json_object_get(exchange, "log"), i, line)
	{
		count += strstr(text_of(line, "text"), text) != NULL;
	}
	return count;
}

static const struct {
	unsigned sessions;
	double iops, batch_per_s; /* published */
} report_path[] = {{8, 270, 135}, {4, 166, 76}, {5, 196, 96}};

static void assert_path(const json_t *exchange)
{
	size_t count = ARRAY_SIZE(report_path);
	const json_t *cycles = json_object_get(json_object_get(exchange, "tuning"), "cycles");
	const json_t *cycle;
	size_t i;

	json_array_foreach(cycles, i, cycle)
	{
		print_message(
		    "# %.0f sessions: %.1f IOPS, %.1f batch/s, read %.2f ms, %s\n",
		    number_of(cycle, "sessions"), number_of(cycle, "iops"),
		    number_of(cycle, "batch_per_s"),
		    json_number_value(json_array_get(json_object_get(cycle, "read_ns"), 0)) / 1e6,
		    text_of(cycle, "verdict"));
	}
	assert_int_equal(json_array_size(cycles), count);
	json_array_foreach(cycles, i, cycle)
	{
		assert_int_equal(number_of(cycle, "sessions"), report_path[i].sessions);
		assert_int_equal(number_of(cycle, "next_sessions"),
				 i + 1 < count ? report_path[i + 1].sessions : 0);
		assert_true(fabs(number_of(cycle, "iops") / report_path[i].iops - 1) < 0.10);
		assert_true(fabs(number_of(cycle, "batch_per_s") / report_path[i].batch_per_s - 1) <
			    0.05);
	}
}

static void takes_the_reports_path(void **state)
{
	struct rig_setup setup = {
	    .config = SERVER_1,
	    .databases = 4,
	    .database_bytes = DATABASE_BYTES + 8 * GIB,
	    .seed = 1,
	    .latency_ns = report_latency_ns,
	};
	struct rig *rig = rig_new(&setup);
	json_t *exchange;

	/* The caches are warm, not merely full: while parents of leaves are still being seen for
	 * the first time, every transaction takes more I/Os, and 4 sessions would do. */
	rig_run(rig, 2400);
	assert_int_equal(rig_warm_up(rig, 3600), 0);
	exchange = describe(rig);
	assert_path(exchange);
	assert_int_equal(ese_server_sessions(rig_server(rig, 0)), 5);
	assert_string_equal(text_of(json_object_get(exchange, "tuning"), "result"), "succeeded");
	assert_string_equal(text_of(exchange, "test"), "performance");
	assert_true(json_is_true(json_object_get(json_object_get(exchange, "warm_up"), "met")));
	/* 0.9 x 1 GiB, as in the report's log. */
	assert_int_equal(number_of(json_object_get(exchange, "warm_up"), "cache_wanted_bytes"),
			 966367641);
	assert_int_equal(log_lines(exchange, "Attaining prerequisites:"), 2);
	assert_int_equal(log_lines(exchange, "Database Cache Size, Last: "), 2);
	assert_int_equal(log_lines(exchange, "(minimum: 128.0 MB, maximum: 1.0 GB)"), 1);
	assert_int_equal(log_lines(exchange, "(start: 10.2 MB, stop: 20.5 MB)"), 1);
	assert_int_equal(log_lines(exchange, "for read latency slope."), 12);
	assert_int_equal(log_lines(exchange, "(target IOPS: 168)"), 3);
	assert_int_equal(log_lines(exchange, "latencies higher than 20.000 msec."), 1);
	assert_int_equal(log_lines(exchange, "Operation mix: Sessions 4, Inserts 40%, Deletes 20%, "
					     "Replaces 5%, Reads 35%, Lazy Commits 70%."),
			 1);
	assert_int_equal(log_lines(exchange, "Automatic tuning succeeded."), 1);
	json_decref(exchange);
	rig_free(rig);
}

/* Disks that never do 20 ms: nothing to be found, and that is what is said. */
static uint64_t slow_ns(struct rig *rig, const struct io *io, bool log)
{
	return 40 * NS_PER_MS;
}

static void failure_says_why(void **state)
{
	struct rig_setup setup = {
	    .config = SERVER_1,
	    .databases = 4,
	    .database_bytes = DATABASE_BYTES + 8 * GIB,
	    .seed = 2,
	    .latency_ns = slow_ns,
	};
	struct rig *rig = rig_new(&setup);
	json_t *exchange, *tuning;

	assert_true(rig_warm_up(rig, 7200) < 0);
	assert_true(rig->failed);
	if (!strstr(rig->why, "automatic tuning of mbx1 failed"))
		fail_msg("%s", rig->why);
	exchange = describe(rig);
	tuning = json_object_get(exchange, "tuning");
	assert_string_equal(text_of(tuning, "result"), "failed");
	assert_non_null(strstr(rig->why, text_of(tuning, "why")));
	assert_string_equal(text_of(exchange, "error"), rig->why);
	json_decref(exchange);
	rig_free(rig);
}

/* `sessions: N` and `loop: open` measure as soon as the cache is full. */
static void tuning_can_be_left_out(void **state)
{
	static const char *const configs[] = {SERVER_1 ", sessions: 3", SERVER_1 ", loop: open"};

	for (size_t i = 0; i < ARRAY_SIZE(configs); i++) {
		struct rig_setup setup = {
		    .config = configs[i],
		    .databases = 4,
		    .database_bytes = DATABASE_BYTES + 8 * GIB,
		    .seed = 3,
		};
		struct rig *rig = rig_new(&setup);
		struct rig_figures figures;
		json_t *exchange;

		assert_int_equal(rig_warm_up(rig, 3600), 0);
		exchange = describe(rig);
		assert_string_equal(text_of(json_object_get(exchange, "tuning"), "result"),
				    "not run");
		json_decref(exchange);
		rig_reset(rig);
		rig_run(rig, 900);
		rig_figures(rig, &figures);
		rig_print(configs[i] + sizeof SERVER_1 - 1, &figures);
		if (i == 1 && fabs(figures.iops / 168 - 1) > 0.05)
			fail_msg("%.1f IOPS, but an open loop holds 168", figures.iops);
		rig_free(rig);
	}
}

/* A cache that cannot fill in time fails the test instead of keeping it for ever. */
static void prerequisites_have_a_limit(void **state)
{
	struct rig_setup setup = {
	    .config = SERVER_1 ", sessions: 1, warm-up: {limit: 60s}",
	    .databases = 1,
	    .database_bytes = DATABASE_BYTES + 8 * GIB,
	    .seed = 4,
	};
	struct rig *rig = rig_new(&setup);
	json_t *exchange, *warm_up;

	assert_true(rig_warm_up(rig, 3600) < 0);
	if (!strstr(rig->why, "prerequisites were not attained within 60"))
		fail_msg("%s", rig->why);
	exchange = describe(rig);
	warm_up = json_object_get(exchange, "warm_up");
	assert_false(json_is_true(json_object_get(warm_up, "met")));
	assert_non_null(strstr(text_of(warm_up, "why"), "of 230.4 MB"));
	json_decref(exchange);
	rig_free(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(takes_the_reports_path),
	    cmocka_unit_test(failure_says_why),
	    cmocka_unit_test(tuning_can_be_left_out),
	    cmocka_unit_test(prerequisites_have_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
