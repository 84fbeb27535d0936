/* SPDX-License-Identifier: MIT
 *
 * Automatic tuning of the whole engine takes the path of the published report: 8 sessions are too
 * many, 4 too few, 5 are right.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/sim/ese/ese_rig.h"

#define DATABASE_BYTES UINT64_C(524527075328)

/* Database reads take 15.4 ms up to 5 sessions and 20 ms at 8, as that report's test log says. */
static uint64_t latency_ns(struct rig *rig, const struct io *io, bool log)
{
	unsigned sessions = ese_server_sessions(rig_server(rig, 0));
	double more = sessions > 5 ? (sessions - 5) / 3.0 * 4.7 : 0;

	if (log)
		return io->op == IO_WRITE ? 1100 * NS_PER_US : 2700 * NS_PER_US;
	return io->op == IO_WRITE ? 2400 * NS_PER_US : (uint64_t)((15.4 + more) * 1e6);
}

/* Two ticks of a Windows timer: what the report's transactions a second while tuning come to. */
#define SERVER_1                                                                            \
	"engine: ese, mailboxes: 1000, iops-per-mailbox: 0.168, copies: 2, content: none, " \
	"initial-size: 524527075328, sessions: auto, think-time: 31.25ms"

enum { WARM_S = 2400, LIMIT_S = 3600, CYCLES = 3 };

struct published {
	int sessions;
	const char *verdict;
	double iops, per_s;
};
static const struct published report[CYCLES] = {
    {8, "latency too high", 270, 135},
    {4, "too few I/Os", 166, 76},
    {5, "accepted", 196, 96},
};

static void check_cycle(const json_t *cycle, const struct published *wanted)
{
	const char *verdict = json_string_value(json_object_get(cycle, "verdict"));
	int sessions = (int)json_integer_value(json_object_get(cycle, "sessions"));
	double iops = json_real_value(json_object_get(cycle, "iops"));
	double per_s = json_real_value(json_object_get(cycle, "batch_per_s"));

	print_message("# %d sessions: %.0f IOPS (%.0f), %.0f transactions/s (%.0f): %s\n", sessions,
		      iops, wanted->iops, per_s, wanted->per_s, verdict);
	assert_int_equal(sessions, wanted->sessions);
	assert_string_equal(verdict, wanted->verdict);
	assert_true(fabs(iops / wanted->iops - 1) < 0.10);
	assert_true(fabs(per_s / wanted->per_s - 1) < 0.05);
}

/* The caches are warm, not merely full: while parents of leaves are still being seen for the first
 * time, every transaction takes more I/Os, and 4 sessions would do. */
static void tuning_takes_the_path_of_the_report(void **state)
{
	struct rig_setup setup = {
	    .config = SERVER_1,
	    .databases = 4,
	    .database_bytes = DATABASE_BYTES + 8 * GIB,
	    .seed = 1,
	    .latency_ns = latency_ns,
	};
	struct rig *rig = rig_new(&setup);
	json_t *told, *cycles;

	rig_run(rig, WARM_S);
	assert_int_equal(rig_warm_up(rig, LIMIT_S), 0);
	told = ese_workload_ops.describe(rig->workload);
	cycles = json_object_get(json_object_get(told, "tuning"), "cycles");
	for (size_t i = 0; i < CYCLES && i < json_array_size(cycles); i++)
		check_cycle(json_array_get(cycles, i), &report[i]);
	assert_int_equal(json_array_size(cycles), CYCLES);
	assert_int_equal(ese_server_sessions(rig_server(rig, 0)), 5);
	json_decref(told);
	rig_free(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(tuning_takes_the_path_of_the_report),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
