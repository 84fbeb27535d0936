/* SPDX-License-Identifier: MIT
 *
 * Automatic tuning: its path on a published report, its rules, and on simulated servers that it
 * finds a number of sessions whenever there is one, and a reason when there is none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "harness/workload/ese/ese_tuning.h"

enum { DATABASES = 4 };

/* Jetstress' numbers. */
static const struct ese_tuning_setup jetstress = {
    .databases = DATABASES,
    .start = 8,
    .sessions_max = 10000,
    .target_iops = 168,
    .read_limit_ns = 20e6,
    .log_limit_ns = 10e6,
    .transient = 30,
    .stable = 120,
    .slope_ns = 5e6,
    .cycle_limit_ns = 600 * NS_PER_S,
    .limit_ns = 3600 * NS_PER_S,
};

/* What a server does with some number of sessions: read and log latency of each database, IOPS
 * and transactions of all together. */
struct load {
	double iops, batch_per_s;
	double read_ms[DATABASES], log_ms[DATABASES];
};

/* One second of it: as many I/Os as make the rate exact over 100 samples. */
static enum ese_tuning_step one_second(struct ese_tuning *tuning, uint64_t second,
				       const struct load *load)
{
	struct ese_tuning_sample samples[DATABASES];
	uint64_t batches = (uint64_t)(load->batch_per_s * (double)second) -
			   (uint64_t)(load->batch_per_s * (double)(second - 1));

	for (unsigned d = 0; d < DATABASES; d++) {
		double share = load->iops / DATABASES;
		uint64_t ios = (uint64_t)(share * (double)second + d * 0.25) -
			       (uint64_t)(share * (double)(second - 1) + d * 0.25);
		uint64_t reads = ios * 64 / 100;

		samples[d] = (struct ese_tuning_sample){
		    .reads = reads,
		    .read_sum_ns = (uint64_t)((double)reads * load->read_ms[d] * 1e6),
		    .writes = ios - reads,
		    .log_writes = 5,
		    .log_sum_ns = (uint64_t)(5 * load->log_ms[d] * 1e6),
		    .log_reads = 1,
		    .log_read_sum_ns = 2600000,
		};
	}
	return ese_tuning_sample(tuning, second * NS_PER_S, samples, batches);
}

static struct ese_tuning *tuning_new(const struct ese_tuning_setup *setup)
{
	struct ese_tuning *tuning = NULL;

	assert_int_equal(ese_tuning_new(setup, 0, &tuning), 0);
	return tuning;
}

static void slope_is_that_of_the_line(void **state)
{
	static const struct {
		double values[5];
		unsigned count;
		double want;
	} cases[] = {
	    {{1, 2, 3, 4, 5}, 5, 1},
	    {{7, 7, 7, 7, 7}, 5, 0},
	    {{10, 8, 6, 4, 2}, 5, -2},
	    {{1, NAN, 3, NAN, 5}, 5, 1}, /* nothing was read in a sample */
	    {{NAN, NAN, NAN, 4, NAN}, 5, 0},
	    {{3}, 1, 0},
	    {{0}, 0, 0},
	    {{0, 1, 0, 1, 0}, 5, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		double slope = ese_tuning_slope(cases[i].values, cases[i].count);

		if (fabs(slope - cases[i].want) > 1e-9)
			fail_msg("case %zu: %g, want %g", i, slope, cases[i].want);
	}
}

/* The figures that the QNAP ES1640DC report logs while it tunes server 1. */
static const struct load *qnap(unsigned sessions)
{
	static const struct load eight = {270, 135, {19.6, 19.9, 20.1, 20.3}, {1.4, 1.6, 1.8, 2.0}};
	static const struct load four = {166, 76, {15.1, 15.3, 15.5, 15.7}, {0.8, 0.9, 1.1, 1.2}};
	static const struct load five = {196, 96, {15.2, 15.4, 15.6, 15.9}, {1.2, 1.3, 1.4, 1.5}};

	switch (sessions) {
	case 8:
		return &eight;
	case 4:
		return &four;
	case 5:
		return &five;
	default:
		fail_msg("%u sessions are not on the report's path", sessions);
		return NULL;
	}
}

static void takes_the_path_of_the_qnap_report(void **state)
{
	static const struct {
		unsigned sessions, next;
		enum ese_tuning_verdict verdict;
		double iops, batch_per_s;
	} want[] = {{8, 4, ESE_TUNING_TOO_SLOW, 270, 135},
		    {4, 5, ESE_TUNING_TOO_FEW, 166, 76},
		    {5, 0, ESE_TUNING_ACCEPTED, 196, 96}};
	struct ese_tuning *tuning = tuning_new(&jetstress);
	enum ese_tuning_step step = ESE_TUNING_GO_ON;
	unsigned stable = 0;
	uint64_t second = 0;

	while (step != ESE_TUNING_SUCCEEDED && second < 1000) {
		step = one_second(tuning, second + 1, qnap(ese_tuning_sessions(tuning)));
		second++;
		assert_int_not_equal(step, ESE_TUNING_FAILED);
		if (step == ESE_TUNING_STABLE)
			assert_int_equal(second, stable++ * 150 + 30);
		if (step == ESE_TUNING_NEXT)
			assert_int_equal(second % 150, 0);
	}
	assert_int_equal(second, 450);
	assert_int_equal(stable, 3);
	assert_int_equal(ese_tuning_sessions(tuning), 5);
	assert_string_equal(ese_tuning_why(tuning), "");
	assert_int_equal(ese_tuning_cycle_count(tuning), 3);
	for (unsigned i = 0; i < 3; i++) {
		const struct ese_tuning_cycle *cycle = ese_tuning_cycle(tuning, i);
		const struct load *load = qnap(want[i].sessions);

		assert_int_equal(cycle->sessions, want[i].sessions);
		assert_int_equal(cycle->next_sessions, want[i].next);
		assert_int_equal(cycle->verdict, want[i].verdict);
		assert_true(fabs(cycle->iops - want[i].iops) < 0.1);
		assert_true(fabs(cycle->batch_per_s - want[i].batch_per_s) < 0.1);
		for (unsigned d = 0; d < DATABASES; d++) {
			assert_true(fabs(cycle->read_ns[d] - load->read_ms[d] * 1e6) < 1e3);
			assert_true(fabs(cycle->log_write_ns[d] - load->log_ms[d] * 1e6) < 1e3);
			assert_true(fabs(cycle->slope_ns[d]) < 1e5);
		}
		assert_int_equal(cycle->end_ns, (i + 1) * 150 * NS_PER_S);
	}
	/* What comes afterwards changes nothing. */
	assert_int_equal(one_second(tuning, 451, qnap(8)), ESE_TUNING_SUCCEEDED);
	assert_int_equal(ese_tuning_cycle_count(tuning), 3);
	ese_tuning_free(tuning);
}

/* One cycle with SESSIONS that behaves so; the next number of sessions, or 0 and the step. */
static void single_cycles_follow_the_rules(void **state)
{
	static const struct {
		unsigned sessions, sessions_max;
		double iops, read_ms, log_ms;
		enum ese_tuning_step step;
		unsigned next;
		const char *why;
	} cases[] = {
	    {8, 100, 168, 20, 10, ESE_TUNING_SUCCEEDED, 0, ""}, /* limits are met exactly */
	    {8, 100, 900, 3, 1, ESE_TUNING_SUCCEEDED, 0, ""},	/* more than the target is fine */
	    {8, 100, 167.9, 3, 1, ESE_TUNING_NEXT, 9, ""},	/* no margin while tuning */
	    {8, 100, 84, 3, 1, ESE_TUNING_NEXT, 16, ""},
	    {8, 100, 1, 3, 1, ESE_TUNING_NEXT, 32, ""}, /* not by more than four times at once */
	    {8, 12, 84, 3, 1, ESE_TUNING_NEXT, 12, ""},
	    {8, 8, 84, 3, 1, ESE_TUNING_FAILED, 0, "the most there may be"},
	    {8, 100, 336, 20.1, 1, ESE_TUNING_NEXT, 4, ""},
	    {8, 100, 170, 20.1, 1, ESE_TUNING_NEXT, 7, ""},
	    {8, 100, 300, 5, 10.1, ESE_TUNING_NEXT, 4, ""}, /* the log's latency counts as well */
	    {8, 100, 10000, 21, 1, ESE_TUNING_NEXT, 1, ""},
	    {1, 100, 300, 21, 1, ESE_TUNING_FAILED, 0, "one session alone"},
	    {8, 100, 160, 21, 1, ESE_TUNING_FAILED, 0, "does not reach the target"},
	    {8, 100, 160, 5, 11, ESE_TUNING_FAILED, 0, "does not reach the target"},
	    {8, 100, 0, 0, 0, ESE_TUNING_FAILED, 0, "no I/O at all"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ese_tuning_setup setup = jetstress;
		struct load load = {.iops = cases[i].iops};
		enum ese_tuning_step step = ESE_TUNING_GO_ON;
		struct ese_tuning *tuning;

		/* One slow database is enough. */
		load.read_ms[2] = cases[i].read_ms;
		load.log_ms[1] = cases[i].log_ms;
		setup.start = cases[i].sessions;
		setup.sessions_max = cases[i].sessions_max;
		tuning = tuning_new(&setup);
		for (uint64_t second = 1; second <= 150; second++)
			step = one_second(tuning, second, &load);
		if (step != cases[i].step)
			fail_msg("case %zu: step %d, want %d: %s", i, (int)step, (int)cases[i].step,
				 ese_tuning_why(tuning));
		if (cases[i].next)
			assert_int_equal(ese_tuning_sessions(tuning), cases[i].next);
		if (!strstr(ese_tuning_why(tuning), cases[i].why) ||
		    !*cases[i].why != !*ese_tuning_why(tuning))
			fail_msg("case %zu: '%s'", i, ese_tuning_why(tuning));
		ese_tuning_free(tuning);
	}
}

/* Latency that climbs by SLOPE_MS a sample for so many seconds. */
static enum ese_tuning_step climb(struct ese_tuning *tuning, double slope_ms, unsigned from,
				  unsigned until)
{
	enum ese_tuning_step step = ESE_TUNING_GO_ON;

	for (unsigned second = from; second <= until; second++) {
		struct load load = {.iops = 200};

		load.read_ms[3] = 1 + slope_ms * second;
		step = one_second(tuning, second, &load);
		if (step != ESE_TUNING_GO_ON)
			return step;
	}
	return step;
}

static void waits_for_latency_to_settle(void **state)
{
	struct ese_tuning *tuning = tuning_new(&jetstress);
	struct load load = {.iops = 200, .read_ms = {2, 2, 2, 300}};
	enum ese_tuning_step step = ESE_TUNING_GO_ON;
	unsigned second = 60;

	assert_int_equal(climb(tuning, 4.9, 1, 30), ESE_TUNING_STABLE);
	ese_tuning_free(tuning);

	tuning = tuning_new(&jetstress);
	assert_int_equal(climb(tuning, 5.1, 1, 60), ESE_TUNING_GO_ON);
	while (step == ESE_TUNING_GO_ON)
		step = one_second(tuning, ++second, &load);
	assert_int_equal(step, ESE_TUNING_STABLE);
	assert_in_range(second, 62, 91);
	ese_tuning_free(tuning);
}

static void unstable_slope_ends_it_with_the_reason(void **state)
{
	struct ese_tuning *tuning = tuning_new(&jetstress);

	assert_int_equal(climb(tuning, 6, 1, 599), ESE_TUNING_GO_ON);
	assert_int_equal(climb(tuning, 6, 600, 600), ESE_TUNING_FAILED);
	assert_non_null(strstr(ese_tuning_why(tuning), "unstable latency slope"));
	assert_non_null(strstr(ese_tuning_why(tuning), "6.0 ms"));
	assert_int_equal(ese_tuning_cycle(tuning, 0)->verdict, ESE_TUNING_UNSTABLE);
	assert_int_equal(climb(tuning, 0, 601, 601), ESE_TUNING_FAILED);
	ese_tuning_free(tuning);
}

static void the_whole_has_a_limit(void **state)
{
	struct ese_tuning_setup setup = jetstress;
	struct load load = {.iops = 1, .read_ms = {1, 1, 1, 1}};
	enum ese_tuning_step step = ESE_TUNING_GO_ON;
	struct ese_tuning *tuning;
	uint64_t second = 0;

	setup.limit_ns = 400 * NS_PER_S;
	tuning = tuning_new(&setup);
	while (step != ESE_TUNING_FAILED && second < 1000)
		step = one_second(tuning, ++second, &load);
	assert_int_equal(second, 400);
	assert_int_equal(ese_tuning_cycle(tuning, 2)->verdict, ESE_TUNING_OUT_OF_TIME);
	assert_true(strlen(ese_tuning_why(tuning)) > 20);
	ese_tuning_free(tuning);
}

/* ---- simulated servers ---- */

/* A closed loop: sessions think, read and wait for their log; latency grows with the rate. */
struct server {
	double think_ms, ios_per_tx, reads_per_tx, base_ms, knee_iops, log_ms;
	double target_iops;
};

static struct load answer(const struct server *server, unsigned sessions)
{
	double low = 0, high = server->knee_iops * 0.9999, read_ms = 0;
	struct load load = {0};

	/* IOPS at which the sessions make just what the latency at that rate lets them make. */
	for (unsigned i = 0; i < 60; i++) {
		double iops = (low + high) / 2, made;

		read_ms = server->base_ms / (1 - iops / server->knee_iops);
		made = sessions * server->ios_per_tx * 1000 /
		       (server->think_ms + server->reads_per_tx * read_ms + server->log_ms);
		if (made > iops)
			low = iops;
		else
			high = iops;
	}
	load.iops = low;
	load.batch_per_s = low / server->ios_per_tx;
	for (unsigned d = 0; d < DATABASES; d++) {
		load.read_ms[d] = read_ms;
		load.log_ms[d] = server->log_ms;
	}
	return load;
}

static bool fits(const struct server *server, unsigned sessions)
{
	struct load load = answer(server, sessions);

	return load.iops >= server->target_iops && load.read_ms[0] * 1e6 <= 20e6 &&
	       load.log_ms[0] * 1e6 <= 10e6;
}

static void check_server(uint64_t seed)
{
	struct ese_tuning_setup setup = jetstress;
	enum ese_tuning_step step = ESE_TUNING_GO_ON;
	struct server server;
	struct rng rng;
	struct ese_tuning *tuning;
	struct load load;
	uint64_t second = 0;
	bool possible = false;

	rng_init(&rng, seed, 1);
	server = (struct server){.think_ms = rng_unit(&rng) * 50,
				 .ios_per_tx = 2 + rng_unit(&rng),
				 .reads_per_tx = 1 + rng_unit(&rng),
				 .base_ms = 0.1 + rng_unit(&rng) * 18,
				 .log_ms = rng_unit(&rng) * 11,
				 .target_iops = 20 + rng_unit(&rng) * 2000};
	server.knee_iops = server.target_iops * (0.9 + rng_unit(&rng) * 3);
	setup.target_iops = server.target_iops;
	setup.start = 1 + (unsigned)rng_below(&rng, 64);
	setup.sessions_max = 512;
	setup.limit_ns = 4 * 3600 * NS_PER_S;
	tuning = tuning_new(&setup);
	load = answer(&server, setup.start);
	while (step != ESE_TUNING_SUCCEEDED && step != ESE_TUNING_FAILED) {
		step = one_second(tuning, ++second, &load);
		if (step == ESE_TUNING_NEXT)
			load = answer(&server, ese_tuning_sessions(tuning));
	}
	for (unsigned sessions = 1; sessions <= setup.sessions_max; sessions++)
		possible |= fits(&server, sessions);
	if (possible != (step == ESE_TUNING_SUCCEEDED))
		fail_msg("seed %llu: %s although %s, after %u cycles: %s", (unsigned long long)seed,
			 step == ESE_TUNING_SUCCEEDED ? "succeeded" : "failed",
			 possible ? "some sessions fit" : "none fit",
			 ese_tuning_cycle_count(tuning), ese_tuning_why(tuning));
	if (possible && !fits(&server, ese_tuning_sessions(tuning)))
		fail_msg("seed %llu: %u sessions do not fit", (unsigned long long)seed,
			 ese_tuning_sessions(tuning));
	if (ese_tuning_cycle_count(tuning) > 12)
		fail_msg("seed %llu: %u cycles", (unsigned long long)seed,
			 ese_tuning_cycle_count(tuning));
	ese_tuning_free(tuning);
}

static void finds_sessions_whenever_some_fit(void **state)
{
	const char *one = getenv("SANLAB_TEST_SEED");

	if (one) {
		check_server(strtoull(one, NULL, 10));
		return;
	}
	for (uint64_t seed = 1; seed <= 400; seed++)
		check_server(seed);
}

static void nonsense_is_refused(void **state)
{
	struct ese_tuning *tuning = NULL;
	struct ese_tuning_setup setup;

	setup = jetstress, setup.start = 0;
	assert_int_equal(ese_tuning_new(&setup, 0, &tuning), -EINVAL);
	setup = jetstress, setup.databases = 0;
	assert_int_equal(ese_tuning_new(&setup, 0, &tuning), -EINVAL);
	setup = jetstress, setup.target_iops = 0;
	assert_int_equal(ese_tuning_new(&setup, 0, &tuning), -EINVAL);
	assert_null(tuning);
	assert_null(ese_tuning_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(slope_is_that_of_the_line),
	    cmocka_unit_test(takes_the_path_of_the_qnap_report),
	    cmocka_unit_test(single_cycles_follow_the_rules),
	    cmocka_unit_test(waits_for_latency_to_settle),
	    cmocka_unit_test(unstable_slope_ends_it_with_the_reason),
	    cmocka_unit_test(the_whole_has_a_limit),
	    cmocka_unit_test(finds_sessions_whenever_some_fit),
	    cmocka_unit_test(nonsense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
