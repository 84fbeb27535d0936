/* SPDX-License-Identifier: MIT
 *
 * The database against an ordered map: caches of a few pages, small nodes, many sessions, all in
 * virtual time.
 *
 * usage: test_ese_db [--first SEED] [--seeds COUNT]
 */
#include "tests/unit/workload/ese/db_world.h"

static struct ese_db_config small(uint64_t pages, uint32_t fanout, uint32_t record_bytes)
{
	struct ese_db_config config = {
	    .initial_bytes = pages * ESE_PAGE_BYTES,
	    .max_bytes = 40 * MIB,
	    .verified = true,
	    .checkpoint_depth_bytes = 2 * MIB,
	    .log_files = 8,
	    .lazy_flush_ns = 50 * NS_PER_MS,
	    .constants = ese_constants_default,
	};

	config.constants.fanout = fanout;
	config.constants.children_max = fanout + 2;
	config.constants.record_bytes = record_bytes;
	config.constants.log_insert_bytes = 1000;
	config.constants.log_delete_bytes = 200;
	config.constants.log_replace_bytes = 500;
	return config;
}

/* Shapes that differ in what is scarce. */
static struct db_world *world_of_seed(uint64_t seed)
{
	static const uint32_t fanouts[] = {2, 4, 16, 1334};
	static const uint32_t records[] = {2129, 8000, 500};
	static const uint32_t caches[] = {16, 24, 40, 100, 400};
	struct rng rng;
	struct ese_db_config config;
	struct db_world *world;

	rng_init(&rng, seed, 9);
	config = small(20 + rng_below(&rng, 300), fanouts[rng_below(&rng, ARRAY_SIZE(fanouts))],
		       records[rng_below(&rng, ARRAY_SIZE(records))]);
	config.verified = rng_below(&rng, 4) > 0;
	config.constants.write_depth = 1 + (uint32_t)rng_below(&rng, 16);
	config.constants.write_run = 0.3;
	config.constants.read_run = 0.3;
	config.constants.extra_dirty = 0.3;
	world = world_new(seed, &config, caches[rng_below(&rng, ARRAY_SIZE(caches))]);
	if (rng_below(&rng, 3) == 0) { /* a volume that somebody has used: all pages are written */
		world->device.device.known_zero = false;
		rng_fill(&rng, world->device.memory, world->device.layer.size_bytes);
	}
	return world;
}

static void run_seed(uint64_t seed, unsigned ops)
{
	struct db_world *world = world_of_seed(seed);
	const struct ese_db_counters *counters = ese_db_counters(world->db);

	assert_int_equal(world_attach(world), -ENOENT);
	assert_int_equal(world_create(world), 0);
	assert_int_equal(world_attach(world), 0);
	model_init(world);
	world_load(world, ops);
	world_check(world, UINT64_MAX);
	assert_int_equal(world_detach(world), 0);
	assert_int_equal(ese_cache_used(world->cache), 0);
	assert_int_equal(world_attach(world), 0);
	assert_null(ese_db_recovery(world->db));
	world_check(world, UINT64_MAX);
	world_load(world, ops / 4);
	world_check(world, UINT64_MAX);
	assert_int_equal(world_detach(world), 0);
	assert_true(counters->splits > 0);
	world_free(world);
}

static uint64_t first = 1, seeds, at_seed;

static void test_equals_an_ordered_map(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < (seeds ? seeds : 12); i++)
		run_seed(at_seed = first + i, 2000);
}

/* Crashes at the Nth I/O, for many N: recovered, the database is as of one moment, and no durable
 * commit is older than that. */
static void crash_seed(uint64_t seed)
{
	struct db_world *world = world_of_seed(seed);
	struct rng rng;

	rng_init(&rng, seed, 10);
	if (!world->config.verified) { /* then only memory knows the pages, and it is lost */
		world_free(world);
		return;
	}
	assert_int_equal(world_create(world), 0);
	assert_int_equal(world_attach(world), 0);
	model_init(world);
	for (unsigned round = 0; round < 6; round++) {
		const struct ese_recovery_result *result;

		world->device.crash_at = world->device.ios + 1 + rng_below(&rng, 1500);
		world_load(world, 1000000);
		assert_true(world->crashed);
		crash_device_power_on(&world->device);
		world->crashed = false;
		assert_int_equal(world_attach(world), 0);
		result = ese_db_recovery(world->db);
		assert_non_null(result);
		if (result->dbtime < world->durable)
			fail_msg("seed %llu: recovered to dbtime %llu, durable was %llu",
				 (unsigned long long)seed, (unsigned long long)result->dbtime,
				 (unsigned long long)world->durable);
		world_check(world, result->dbtime);
	}
	assert_int_equal(world_detach(world), 0);
	assert_int_equal(world_attach(world), 0);
	world_check(world, UINT64_MAX);
	assert_int_equal(world_detach(world), 0);
	world_free(world);
}

static void test_crashes_lose_nothing_durable(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < (seeds ? seeds : 8); i++)
		crash_seed(at_seed = first + i);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_equals_an_ordered_map),
	    cmocka_unit_test(test_crashes_lose_nothing_durable),
	};
	int failed;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--first"))
			first = strtoull(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--seeds"))
			seeds = strtoull(argv[i + 1], NULL, 0);
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (failed)
		fprintf(stderr, "# repeat it with: %s --first %llu --seeds 1\n", argv[0],
			(unsigned long long)at_seed);
	return failed;
}
