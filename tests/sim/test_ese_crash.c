/* SPDX-License-Identifier: MIT
 *
 * The fault loop of the Exchange engine, in SQLite's manner: the power goes with the Nth I/O of a
 * seeded run, whatever that is (a page, the log, the checkpoint, the flush map, the header; of a
 * new database, under load, in recovery itself), writes under way are torn; then recovery, and the
 * oracle (ese_oracle.h) says whether what is there may be so.  Virtual time.
 *
 *   test_ese_crash [SEED [N]]      one seed, one N: what a failure's last line says
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/killed/ese_load.h"
#include "tests/unit/workload/ese/crash_device.h"

enum { KEYS = 400, CRASHES = 3 };
#define LAZY_FLUSH_NS (200 * NS_PER_MS)
#define BOUND_NS      (LAZY_FLUSH_NS + 100 * NS_PER_MS)
#define LOAD_NS	      (3 * NS_PER_S)
#define VOLUME_BYTES  (16 * MIB)

struct crash_test {
	struct loop *loop;
	struct crash_device device;
	struct oracle oracle;
	struct ese_load *load;
	uint64_t seed, n;
	uint64_t dead_ns; /* the first crash since everything was last read */
	bool dead, wrong;
	bool opened, verified, detached, dropped;
	int status;
	uint64_t redone, mended, recoveries;
	uint64_t durable, lazy, lazy_lost;
};

static void trace_open(const struct crash_test *test, int status);

static void took_event(void *arg, const struct ese_load_event *event)
{
	struct crash_test *test = arg;
	struct oracle *oracle = &test->oracle;

	switch ((enum ese_load_what)event->what) {
	case ESE_LOAD_OPENED:
		trace_open(test, event->status);
		test->opened = true;
		test->status = event->status;
		test->redone += event->redone;
		test->mended += event->pages_mended;
		test->recoveries += event->recovered;
		break;
	case ESE_LOAD_FOUND:
		if (!oracle_found(oracle, event->key, event->exists, event->version))
			test->wrong = true; /* told outside of the loop */
		break;
	case ESE_LOAD_VERIFIED:
		test->verified = true;
		test->status = event->status;
		break;
	case ESE_LOAD_BEGIN:
		oracle_begin(oracle, event->key, event->kind, event->lazy);
		break;
	case ESE_LOAD_END:
		oracle_end(oracle, event->key, event->status < 0, event->version, event->dbtime,
			   event->at_ns);
		break;
	case ESE_LOAD_DETACHED:
		test->detached = true;
		test->status = event->status;
		break;
	}
}

static uint64_t only_seed, only_n;
static uint64_t at_seed, at_n;

/* With one N only: how it came about. */
static void trace_open(const struct crash_test *test, int status)
{
	const struct ese_recovery_result *r = ese_db_recovery(test->load->db);

	if (!only_n)
		return;
	print_message("%.3f: attached: %d\n", (double)loop_now_ns(test->loop) / 1e9, status);
	if (r)
		print_message(
		    "  redo %d from %llu to %llu, log ends (%d) at %llu, epoch %u; %llu "
		    "updates done, %llu there, %llu pages mended, %llu wrong; dbtime %llu "
		    "-> %llu\n",
		    r->status, (unsigned long long)r->checkpoint.redo_lgpos,
		    (unsigned long long)r->log.end_lgpos, (int)r->log.end,
		    (unsigned long long)r->log.next_lgpos, r->log.epoch,
		    (unsigned long long)r->updates_done, (unsigned long long)r->updates_there,
		    (unsigned long long)r->pages_mended, (unsigned long long)r->pages_wrong,
		    (unsigned long long)r->checkpoint.dbtime, (unsigned long long)r->dbtime);
}

static void trace_crash(const struct crash_test *test)
{
	const struct ese_log *log = ese_db_log(test->load->db);

	if (!only_n)
		return;
	print_message("%.3f: power goes with I/O %llu\n", (double)loop_now_ns(test->loop) / 1e9,
		      (unsigned long long)test->device.ios);
	if (log)
		print_message("  log flushed to %llu, tip %llu, %llu pages in use\n",
			      (unsigned long long)ese_log_flushed(log),
			      (unsigned long long)ese_log_tip(log),
			      (unsigned long long)ese_db_used_pages(test->load->db));
}

static void crashed(void *arg)
{
	struct crash_test *test = arg;

	if (!test->dead)
		test->dead_ns = loop_now_ns(test->loop);
	test->dead = true;
	loop_stop(test->loop);
}

static void dropped(void *arg, int status)
{
	((struct crash_test *)arg)->dropped = true;
}

static void new_server(struct crash_test *test)
{
	struct ese_load_config config = {
	    .loop = test->loop,
	    .device = &test->device.device,
	    .seed = test->seed,
	    .keys = KEYS,
	    .lazy_flush_ns = LAZY_FLUSH_NS,
	    .think_ns = 60 * NS_PER_MS,
	    .cache_pages = 64,
	    .checkpoint_depth_bytes = 256 * KIB,
	    .log_files = 4,
	    .initial_bytes = 2 * MIB,
	    .max_bytes = 8 * MIB,
	    .event = took_event,
	    .arg = test,
	};

	test->load = ese_load_new(&config);
	assert_non_null(test->load);
	test->opened = test->verified = test->detached = test->dropped = false;
	test->status = 1;
}

/* True: *FLAG; false: the power has gone. */
static bool run_until(struct crash_test *test, const bool *flag, uint64_t limit_ns)
{
	uint64_t deadline = loop_now_ns(test->loop) + limit_ns;

	while (!(flag && *flag) && !test->device.off && loop_now_ns(test->loop) < deadline)
		loop_run_until(test->loop,
			       MIN_OF(deadline, loop_now_ns(test->loop) + 20 * NS_PER_MS));
	if (test->wrong)
		fail_msg("%s", test->oracle.why);
	return !test->device.off;
}

static void power_off(struct crash_test *test)
{
	uint64_t deadline = loop_now_ns(test->loop) + 100 * NS_PER_S;

	trace_crash(test);
	/* What it was about ends as everything does then. */
	while (test->load->phase == LOAD_MOVING && loop_now_ns(test->loop) < deadline)
		loop_run_until(test->loop, loop_now_ns(test->loop) + NS_PER_S);
	assert_int_not_equal(test->load->phase, LOAD_MOVING);
	if (test->load->phase == LOAD_OPEN) {
		ese_load_drop(test->load, dropped, test);
		while (!test->dropped && loop_now_ns(test->loop) < deadline)
			loop_run_until(test->loop, loop_now_ns(test->loop) + NS_PER_S);
		assert_true(test->dropped);
	}
	test->load = ese_load_free(test->load);
	crash_device_power_on(&test->device);
}

/* One life of a server, up to the crash or its end in order.  True: it crashed. */
static bool live(struct crash_test *test, uint64_t crash_at)
{
	test->device.ios = 0;
	test->device.crash_at = crash_at;
	new_server(test);
	ese_load_open(test->load);
	if (!run_until(test, &test->opened, 1000 * NS_PER_S))
		return true;
	assert_true(test->opened);
	assert_int_equal(test->status, 0);
	oracle_check_begin(&test->oracle, test->dead_ns, BOUND_NS);
	ese_load_verify(test->load);
	if (!run_until(test, &test->verified, 1000 * NS_PER_S))
		return true;
	assert_int_equal(test->status, 0);
	if (!oracle_check_end(&test->oracle))
		fail_msg("%s", test->oracle.why);
	test->dead = false;
	ese_load_run(test->load);
	if (!run_until(test, NULL, LOAD_NS))
		return true;
	ese_load_detach(test->load);
	if (!run_until(test, &test->detached, 1000 * NS_PER_S))
		return true;
	assert_true(test->detached);
	assert_int_equal(test->status, 0);
	test->load = ese_load_free(test->load);
	test->device.crash_at = 0;
	test->dead_ns = loop_now_ns(test->loop) + 1000 * NS_PER_S; /* everything must be there */
	test->dead = true;
	return false;
}

/* The Nth I/O of the first life, then others of those that follow.  True: the first one crashed. */
static bool crash_with(struct crash_test *test, uint64_t seed, uint64_t n)
{
	bool crashed_at_all;
	struct rng rng;

	test->seed = seed;
	test->n = n;
	rng_init(&rng, seed, n);
	rng_init(&test->device.rng, seed, n + 1);
	test->dead = false;
	memset(test->device.memory, 0, VOLUME_BYTES);
	test->durable += test->oracle.durable;
	test->lazy += test->oracle.lazy;
	test->lazy_lost += test->oracle.lazy_lost;
	oracle_done(&test->oracle);
	assert_true(oracle_init(&test->oracle, KEYS));
	crashed_at_all = live(test, n);
	for (unsigned i = 0; i < CRASHES && crashed_at_all; i++) {
		power_off(test);
		test->seed++;
		if (i + 1 == CRASHES || !live(test, 1 + rng_below(&rng, 600)))
			break;
	}
	if (test->load)
		power_off(test);
	/* The last one finds everything, ends in order, and leaves a clean database. */
	assert_false(live(test, 0));
	test->seed++;
	assert_false(live(test, 0));
	return crashed_at_all;
}

static int setup(void **state)
{
	struct crash_test *test = calloc(1, sizeof *test);

	assert_int_equal(loop_new_virtual(0, &test->loop), 0);
	crash_device_init(&test->device, test->loop, "db1", VOLUME_BYTES, 1);
	test->device.crashed = crashed;
	test->device.arg = test;
	*state = test;
	return 0;
}

static int teardown(void **state)
{
	struct crash_test *test = *state;

	oracle_done(&test->oracle);
	crash_device_fini(&test->device);
	loop_free(test->loop);
	free(test);
	return 0;
}

static void power_goes_with_each_io(void **state)
{
	struct crash_test *test = *state;
	uint64_t runs = 0, step = 1;

	at_seed = only_seed ? only_seed : 1;
	for (at_n = only_n ? only_n : 1;; at_n += step) {
		bool crashed_at_all = crash_with(test, at_seed, at_n);

		runs++;
		if (only_n || !crashed_at_all)
			break;
		/* Every one of the first, which make the database; then with growing steps. */
		step = at_n < 40 ? 1 : 1 + at_n / 16;
		at_seed += !only_seed;
	}
	printf("# %llu runs up to N=%llu: %llu recoveries, %llu updates redone, %llu torn pages "
	       "mended; %llu durable commits, %llu lazy ones, of which %llu were lost\n",
	       (unsigned long long)runs, (unsigned long long)at_n,
	       (unsigned long long)test->recoveries, (unsigned long long)test->redone,
	       (unsigned long long)test->mended, (unsigned long long)test->durable,
	       (unsigned long long)test->lazy, (unsigned long long)test->lazy_lost);
	if (!only_n) {
		assert_true(test->recoveries > 50);
		assert_true(test->redone > 100);
		assert_true(test->mended > 0);
		assert_true(test->lazy_lost > 0);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(power_goes_with_each_io, setup, teardown),
	};
	int failed;

	only_seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	only_n = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (failed)
		fprintf(stderr, "# again: %s %llu %llu\n", argv[0], (unsigned long long)at_seed,
			(unsigned long long)at_n);
	return failed;
}
