/* SPDX-License-Identifier: MIT
 *
 * What follows from cache, checkpoint depth and the number and size of databases, and is put into
 * the engine nowhere: the direction of each effect, with some room, and that it is absent where it
 * must be.  The curves themselves: scripts/exchange-curves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/sim/ese/ese_rig.h"

#define BASE "engine: ese, mailboxes: 1000, iops-per-mailbox: 0.168, content: none, sessions: 5, "
#define HOT  "access: {kind: hot, hot-pages: 0.02%, hot-share: 60%}, "

/* Caches a quarter of Jetstress' and databases to match: all comes about sooner. */
#define CACHE "cache-max: 64MiB, cache-min: 8MiB"

enum { WARM_S = 300, WINDOW_S = 300 };

/* Of one transaction, and of the server in a second. */
struct outcome {
	double reads, writes;
	double all_per_s; /* log, maintenance and log replication included */
};

static struct outcome run(const char *title, unsigned databases, uint64_t bytes, double warm_s,
			  double window_s, const char *keys)
{
	char config[600];
	struct rig_setup setup = {
	    .config = config,
	    .databases = databases,
	    .database_bytes = bytes + 16 * GIB,
	    .seed = 1,
	};
	struct rig_figures f;
	struct outcome outcome;
	struct rig *rig;

	snprintf(config, sizeof config, BASE "initial-size: %llu%s%s", (unsigned long long)bytes,
		 *keys ? ", " : "", keys);
	rig = rig_new(&setup);
	rig_run(rig, warm_s);
	rig_reset(rig);
	rig_run(rig, window_s);
	rig_figures(rig, &f);
	outcome = (struct outcome){
	    .reads = f.reads * databases / f.transactions,
	    .writes = f.writes * databases / f.transactions,
	    .all_per_s = (f.reads + f.writes + f.log_writes + f.bdm + f.log_reads) * databases,
	};
	print_message("# %-28s a transaction: %.3f reads, %.3f writes; in all %.1f I/Os/s, %.1f "
		      "transactions/s\n",
		      title, outcome.reads, outcome.writes, outcome.all_per_s, f.transactions);
	rig_free(rig);
	return outcome;
}

static void a_deep_checkpoint_saves_writes_of_hot_pages(void **state)
{
	struct outcome shallow =
	    run("hot, 20 MB", 1, 64 * GIB, WARM_S, WINDOW_S, HOT "checkpoint-depth: 20MB");
	struct outcome deep =
	    run("hot, 100 MB", 1, 64 * GIB, WARM_S, WINDOW_S, HOT "checkpoint-depth: 100MB");

	(void)state;
	assert_true(deep.writes < 0.85 * shallow.writes);
	assert_true(deep.writes > 0.5 * shallow.writes);
	assert_true(deep.reads < 1.05 * shallow.reads && deep.reads > 0.95 * shallow.reads);
}

/* Pages that are touched once gain nothing. */
static void depth_matters_little_when_all_pages_are_alike(void **state)
{
	struct outcome shallow =
	    run("uniform, 20 MB", 2, 524 * GIB, WARM_S, WINDOW_S, "checkpoint-depth: 20MB");
	struct outcome deep =
	    run("uniform, 100 MB", 2, 524 * GIB, WARM_S, WINDOW_S, "checkpoint-depth: 100MB");

	(void)state;
	assert_true(deep.writes > 0.92 * shallow.writes);
	assert_true(deep.writes < 1.02 * shallow.writes);
}

static void a_larger_database_reads_more(void **state)
{
	struct outcome small = run("50 GB", 1, 50 * GIB, WARM_S, WINDOW_S, CACHE);
	struct outcome middle = run("125 GB", 1, 125 * GIB, WARM_S, WINDOW_S, CACHE);
	struct outcome large = run("250 GB", 1, 250 * GIB, WARM_S, WINDOW_S, CACHE);

	(void)state;
	assert_true(small.reads >= 0.99 && small.reads < 1.25);
	assert_true(middle.reads > 1.1 * small.reads);
	assert_true(large.reads > 1.1 * middle.reads);
	assert_true(large.reads < 2.05);
	/* Writes do not care. */
	assert_true(large.writes > 0.93 * small.writes && large.writes < 1.07 * small.writes);
}

/* The same users, mailboxes and memory (BP1036). */
static void fewer_databases_do_less_io(void **state)
{
	struct outcome many =
	    run("8 databases", 8, 62 * GIB, WARM_S, WINDOW_S, "cache-max: 32MiB, cache-min: 4MiB");
	struct outcome few = run("2 databases", 2, 248 * GIB, WARM_S, WINDOW_S,
				 "cache-max: 128MiB, cache-min: 16MiB");

	(void)state;
	assert_true(few.all_per_s < 0.95 * many.all_per_s);
	assert_true(few.reads < 1.05 * many.reads);
}

static void a_cold_cache_reads_more_and_writes_less(void **state)
{
	struct outcome cold = run("the first minute", 2, 131 * GIB, 0, 60, CACHE);
	struct outcome warm = run("after 10 minutes", 2, 131 * GIB, 600, WINDOW_S, CACHE);

	(void)state;
	assert_true(cold.reads > 1.2 * warm.reads);
	assert_true(cold.writes < 0.8 * warm.writes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_deep_checkpoint_saves_writes_of_hot_pages),
	    cmocka_unit_test(depth_matters_little_when_all_pages_are_alike),
	    cmocka_unit_test(a_larger_database_reads_more),
	    cmocka_unit_test(fewer_databases_do_less_io),
	    cmocka_unit_test(a_cold_cache_reads_more_and_writes_less),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
