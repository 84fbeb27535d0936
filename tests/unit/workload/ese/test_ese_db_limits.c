/* SPDX-License-Identifier: MIT
 *
 * The database at its limits: full, a log ring that is too small for the load, writes that fail, a
 * cache that several share, an end in the midst of work.
 */
#include "tests/unit/workload/ese/db_world.h"

static struct ese_db_config small(void)
{
	struct ese_db_config config = {
	    .initial_bytes = 64 * ESE_PAGE_BYTES,
	    .max_bytes = 40 * MIB,
	    .verified = true,
	    .checkpoint_depth_bytes = 2 * MIB,
	    .log_files = 8,
	    .lazy_flush_ns = 50 * NS_PER_MS,
	    .constants = ese_constants_default,
	};

	config.constants.fanout = 16;
	return config;
}

static struct db_world *world_at_work(uint64_t seed, const struct ese_db_config *config,
				      uint32_t cache_pages)
{
	struct db_world *world = world_new(seed, config, cache_pages);

	assert_int_equal(world_create(world), 0);
	assert_int_equal(world_attach(world), 0);
	model_init(world);
	return world;
}

static void end(struct db_world *world)
{
	world_check(world, UINT64_MAX);
	assert_int_equal(world_detach(world), 0);
	assert_int_equal(world_attach(world), 0);
	world_check(world, UINT64_MAX);
	assert_int_equal(world_detach(world), 0);
	world_free(world);
}

struct many {
	struct db_world *world;
	struct ese_op op;
	uint64_t left, full, done;
	struct rng rng;
};

static void insert_next(struct ese_op *op, int status)
{
	struct many *many = op->owner;

	assert_true(status == 0 || status == -ENOSPC);
	many->full += status == -ENOSPC;
	many->done += status == 0;
	if (many->left-- == 0) {
		loop_stop(many->world->loop);
		return;
	}
	*op = (struct ese_op){
	    .kind = ESE_OP_INSERT, .lazy = true, .pick = true, .done = insert_next, .owner = many};
	ese_db_submit(many->world->db, op);
}

static void test_a_full_database_refuses_and_lives(void **state)
{
	struct ese_db_config config = small();
	struct many many = {.left = 1500};
	uint64_t used;

	(void)state;
	config.max_bytes = 80 * ESE_PAGE_BYTES;
	many.world = world_at_work(1, &config, 40);
	insert_next(&(struct ese_op){.owner = &many}, 0);
	loop_run_until(many.world->loop, loop_now_ns(many.world->loop) + 3600 * NS_PER_S);
	assert_true(many.full > 100);
	assert_true(many.done > 100);
	used = ese_db_used_pages(many.world->db);
	assert_int_equal(used, 80);
	end(many.world);
}

static void test_a_small_ring_makes_updates_wait(void **state)
{
	struct ese_db_config config = small();
	struct db_world *world;

	(void)state;
	config.log_files = 4;
	config.constants.log_insert_bytes = 16000;
	config.constants.log_replace_bytes = 16000;
	config.checkpoint_depth_bytes = 100 * MIB;
	world = world_at_work(2, &config, 200);
	world_load(world, 3000);
	assert_true(ese_log_counters(ese_db_log(world->db))->files_closed > 8);
	assert_true(ese_db_counters(world->db)->log_waits > 0);
	end(world);
}

static void test_writes_that_fail_are_done_again(void **state)
{
	struct ese_db_config config = small();
	struct db_world *world;

	(void)state;
	world = world_at_work(3, &config, 24);
	world_load(world, 300);
	world->device.fail_writes = 7;
	world->device.fail_end = 64 * ESE_PAGE_BYTES;
	world_load(world, 1000);
	assert_int_equal(world->device.fail_writes, 0);
	assert_true(ese_db_counters(world->db)->io_errors > 0);
	end(world);
}

static void test_an_end_in_the_midst_of_work(void **state)
{
	struct ese_db_config config = small();

	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct db_world *world = world_at_work(seed, &config, 24);

		world_load(world, 500);
		ese_db_drop(world->db, world_ended, world);
		assert_int_equal(world_wait(world), 0);
		assert_int_equal(ese_cache_used(world->cache), 0);
		assert_int_equal(world_attach(world), 0);
		assert_non_null(ese_db_recovery(world->db));
		assert_true(ese_db_recovery(world->db)->dbtime >= world->durable);
		world_check(world, ese_db_recovery(world->db)->dbtime);
		world_load(world, 200);
		end(world);
	}
}

/* ---- several databases, one cache ---- */

enum { NEIGHBOURS = 3 };

struct neighbour {
	struct crash_device device;
	struct ese_db *db;
	struct many many;
};

static void test_databases_share_a_cache(void **state)
{
	struct ese_db_config config = small();
	struct db_world *world;
	struct neighbour all[NEIGHBOURS] = {0};

	(void)state;
	config.name = "n";
	world = world_at_work(4, &config, 48);
	for (unsigned i = 0; i < NEIGHBOURS; i++) {
		struct ese_db_env env = {.loop = world->loop, .seed = i, .cache = world->cache};
		struct err err = {0};

		crash_device_init(&all[i].device, world->loop, "n", 64 * MIB, i);
		env.place.device = env.place.log_device = &all[i].device.device;
		config.id = 100 + i;
		assert_int_equal(ese_db_new(&env, &config, &all[i].db, &err), 0);
		ese_db_create(all[i].db, world_ended, world);
		assert_int_equal(world_wait(world), 0);
		ese_db_attach(all[i].db, world_ended, world);
		assert_int_equal(world_wait(world), 0);
	}
	world_load(world, 200);
	for (unsigned i = 0; i < NEIGHBOURS; i++) {
		/* They load beside the one that is checked. */
		all[i].many = (struct many){.world = world, .left = 1000};
		all[i].many.op.kind = ESE_OP_INSERT;
		all[i].many.op = (struct ese_op){.kind = ESE_OP_INSERT,
						 .lazy = true,
						 .pick = true,
						 .done = insert_next,
						 .owner = &all[i].many};
	}
	for (unsigned i = 0; i < NEIGHBOURS; i++) {
		struct db_world other = {.loop = world->loop, .db = all[i].db};

		all[i].many.world = &other;
		ese_db_submit(all[i].db, &all[i].many.op);
		world_load(world, 300);
		while (all[i].many.left != UINT64_MAX)
			loop_run_until(world->loop, loop_now_ns(world->loop) + NS_PER_S);
		assert_int_equal(all[i].many.done, 1001);
	}
	assert_true(ese_cache_counters(world->cache, ese_db_number(world->db))->evicted > 0);
	for (unsigned i = 0; i < NEIGHBOURS; i++) {
		ese_db_detach(all[i].db, world_ended, world);
		assert_int_equal(world_wait(world), 0);
		ese_db_free(all[i].db);
		crash_device_fini(&all[i].device);
	}
	end(world);
}

static void test_constants_that_cannot_be(void **state)
{
	struct ese_db_config bad[3] = {small(), small(), small()};
	struct db_world *world = world_new(1, &bad[0], 24);
	struct ese_db_env env = {.loop = world->loop, .cache = world->cache};

	(void)state;
	env.place.device = env.place.log_device = &world->device.device;
	bad[0].constants.write_depth = 0;
	bad[1].constants.coalesce_bytes = 100;
	bad[2].max_bytes = 100 * GIB;
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err err = {0};
		struct ese_db *db = NULL;

		bad[i].name = "bad";
		assert_true(ese_db_new(&env, &bad[i], &db, &err) < 0);
		assert_null(db);
		assert_true(err.what[0]);
	}
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_full_database_refuses_and_lives),
	    cmocka_unit_test(test_a_small_ring_makes_updates_wait),
	    cmocka_unit_test(test_writes_that_fail_are_done_again),
	    cmocka_unit_test(test_an_end_in_the_midst_of_work),
	    cmocka_unit_test(test_databases_share_a_cache),
	    cmocka_unit_test(test_constants_that_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
