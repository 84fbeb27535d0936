/* SPDX-License-Identifier: MIT
 *
 * Jetstress' tests are broken off at any time, as by a user: while they warm up, tune, write log
 * files, read a backup, recover, or verify.  They must come to rest, leave databases that open
 * again, and still tell what they did.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "tests/sim/ese/ese_rig.h"

#define SMALL                                                                             \
	"engine: ese, mailboxes: 500, copies: 2, initial-size: 4MiB, cache-min: 1MiB, "   \
	"cache-max: 2MiB, checkpoint-depth: 1MiB, log-files: 16, tuning: {transient: 5, " \
	"stable: 10, limit: 3m}, recovery: {files: 3}, test: "

/* About how long what is to be met takes. */
static const struct {
	const char *config;
	double warm_s, window_s;
} kinds[] = {
    {SMALL "performance", 120, 20},	   {SMALL "performance, loop: open", 60, 20},
    {SMALL "stress, sessions: 4", 30, 20}, {SMALL "database-backup, backup-depth: 1", 0, 0.06},
    {SMALL "soft-recovery", 20, 1},
};
enum { KINDS = ARRAY_SIZE(kinds), SEEDS = 60 };

struct call {
	bool came;
	int status;
};

static void came(void *arg, int status)
{
	struct call *call = arg;

	assert_false(call->came);
	*call = (struct call){true, status};
}

static void await(struct rig *rig, const struct call *call, uint64_t seed, const char *what)
{
	for (unsigned i = 0; i < 600 && !call->came; i++)
		rig_run(rig, 0.5);
	if (!call->came)
		fail_msg("seed %llu: %s never ended", (unsigned long long)seed, what);
}

static uint64_t fast_ns(struct rig *rig, const struct io *io, bool log)
{
	return io->op == IO_READ ? 3 * NS_PER_MS : NS_PER_MS;
}

/* How far it gets follows from the seed. */
static void break_off(uint64_t seed)
{
	struct call warm = {0}, stopped = {0}, verified = {0}, again = {0};
	struct rig_setup setup = {
	    .config = kinds[seed % KINDS].config,
	    .databases = 2,
	    .hosts = seed % 2 + 1,
	    .database_bytes = 16 * MIB,
	    .seed = seed,
	    .content = true,
	    .latency_ns = fast_ns,
	};
	struct rng rng;
	struct rig *rig;
	json_t *exchange;

	rng_init(&rng, seed, 1);
	rig = rig_new(&setup);
	ese_workload_ops.warm_up(rig->workload, came, &warm);
	rig_run(rig, rng_unit(&rng) * kinds[seed % KINDS].warm_s);
	if (warm.came && warm.status == 0) {
		ese_workload_ops.window(rig->workload, true);
		rig_run(rig, rng_unit(&rng) * kinds[seed % KINDS].window_s);
		ese_workload_ops.window(rig->workload, false);
	}
	ese_workload_ops.stop(rig->workload, came, &stopped);
	await(rig, &stopped, seed, "stop");
	ese_workload_ops.verify(rig->workload, came, &verified);
	rig_run(rig, rng_unit(&rng) * 0.06);
	if (!verified.came)
		ese_workload_ops.stop(rig->workload, came, &again);
	await(rig, verified.came ? &verified : &again, seed, "verify");
	exchange = ese_workload_ops.describe(rig->workload);
	assert_true(json_is_object(exchange));
	for (unsigned i = 0; i < MISMATCH_KINDS; i++)
		if (rig->workload->check.mismatches[i])
			fail_msg("seed %llu: %s", (unsigned long long)seed, mismatch_names[i]);
	if (rig->failed)
		fail_msg("seed %llu: %s", (unsigned long long)seed, rig->why);
	json_decref(exchange);
	rig_free(rig);
}

static void tests_can_be_broken_off(void **state)
{
	const char *one = getenv("SANLAB_TEST_SEED");
	uint64_t first = one ? strtoull(one, NULL, 10) : 0, count = one ? 1 : SEEDS;

	for (uint64_t seed = first; seed < first + count; seed++)
		break_off(seed);
}

static bool damaged;

/* Flips a bit of the log on its way, once. */
static uint64_t damaging_ns(struct rig *rig, const struct io *io, bool log)
{
	if (log && io->op == IO_WRITE && io->offset_bytes >= 2 * MIB && !damaged) {
		((uint8_t *)io->iov[0].iov_base)[100] ^= 4;
		damaged = true;
	}
	return NS_PER_MS;
}

static void damaged_log_files_are_found(void **state)
{
	struct call stopped = {0}, verified = {0};
	struct rig_setup setup = {
	    .config = SMALL "performance, loop: open",
	    .databases = 2,
	    .database_bytes = 16 * MIB,
	    .seed = 5,
	    .content = true,
	    .latency_ns = damaging_ns,
	};
	struct rig *rig = rig_new(&setup);
	json_t *exchange, *databases;
	unsigned bad = 0;

	rig_run(rig, 60);
	assert_true(damaged);
	ese_workload_ops.stop(rig->workload, came, &stopped);
	await(rig, &stopped, 5, "stop");
	ese_workload_ops.verify(rig->workload, came, &verified);
	await(rig, &verified, 5, "verify");
	assert_int_equal(verified.status, 0);
	exchange = ese_workload_ops.describe(rig->workload);
	databases =
	    json_object_get(json_array_get(json_object_get(exchange, "servers"), 0), "databases");
	for (size_t i = 0; i < 2; i++) {
		const json_t *log = json_object_get(json_array_get(databases, i), "log_checksum");

		assert_true(json_number_value(json_object_get(log, "files")) > 2);
		bad += !json_is_true(json_object_get(log, "good"));
	}
	assert_int_equal(bad, 1);
	json_decref(exchange);
	rig_free(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(tests_can_be_broken_off),
	    cmocka_unit_test(damaged_log_files_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
