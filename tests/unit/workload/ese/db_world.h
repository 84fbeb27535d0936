/* SPDX-License-Identifier: MIT
 *
 * A database under random load on the virtual loop, and the ordered map that it must equal.
 *
 * Sessions own their keys (key % SESSIONS), so each key's operations come one after another and
 * each answer is known beforehand.  A key's states are kept with the dbtime that made them: after
 * a crash the database must be exactly as of one dbtime, no older than any durable commit's.
 */
#ifndef SANLAB_TESTS_UNIT_WORKLOAD_ESE_DB_WORLD_H
#define SANLAB_TESTS_UNIT_WORKLOAD_ESE_DB_WORLD_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_db.h"
#include "tests/unit/workload/ese/crash_device.h"

enum { SESSIONS = 8, KEYS = 4096, STATES = 24 };

/* After the update at DBTIME; dbtime 0: as created. */
struct db_state {
	uint64_t dbtime;
	uint32_t version;
	bool there;
};

struct db_key {
	uint64_t key;
	struct db_state states[STATES]; /* the last ones */
	unsigned count;
	bool busy;
};

struct db_session {
	struct db_world *world;
	struct ese_op op;
	struct db_key *key;
	struct loop_timer timer;
	struct rng rng;
	bool running;
};

struct db_world {
	uint64_t seed;
	struct loop *loop;
	struct crash_device device;
	struct ese_cache *cache;
	struct ese_db *db;
	struct ese_db_config config;
	struct ese_cache_config cache_config;
	struct workload_check check;
	struct db_session sessions[SESSIONS];
	struct db_key keys[KEYS];
	unsigned key_count;
	uint64_t durable; /* largest dbtime of a durable commit that was acknowledged */
	uint64_t ops, wanted_ops;
	unsigned active;
	bool crashed;
	struct loop_task drop;
	int status;
	bool ended;
};

static inline void world_ended(void *arg, int status)
{
	struct db_world *world = arg;

	world->status = status;
	world->ended = true;
	loop_stop(world->loop);
}

static inline int world_wait(struct db_world *world)
{
	uint64_t limit = loop_now_ns(world->loop) + 3600 * NS_PER_S;

	while (!world->ended && loop_now_ns(world->loop) < limit)
		loop_run_until(world->loop, limit);
	assert_true(world->ended);
	world->ended = false;
	return world->status;
}

static inline int world_create(struct db_world *world)
{
	ese_db_create(world->db, world_ended, world);
	return world_wait(world);
}

static inline int world_attach(struct db_world *world)
{
	ese_db_attach(world->db, world_ended, world);
	return world_wait(world);
}

static inline int world_detach(struct db_world *world)
{
	ese_db_detach(world->db, world_ended, world);
	return world_wait(world);
}

static inline void world_drop(void *arg)
{
	struct db_world *world = arg;

	ese_db_drop(world->db, world_ended, world);
}

static inline void world_crashed(void *arg)
{
	struct db_world *world = arg;

	world->crashed = true;
	loop_task_queue(world->loop, &world->drop);
}

static inline void world_open_db(struct db_world *world)
{
	struct ese_db_env env = {
	    .loop = world->loop,
	    .seed = world->seed,
	    .cache = world->cache,
	    .place = {.device = &world->device.device, .log_device = &world->device.device},
	    .check = &world->check,
	};
	struct err err = {0};

	if (ese_db_new(&env, &world->config, &world->db, &err) < 0)
		fail_msg("%s", err.what);
}

static inline struct db_world *world_new(uint64_t seed, const struct ese_db_config *config,
					 uint32_t cache_pages)
{
	struct db_world *world = calloc(1, sizeof *world);

	assert_non_null(world);
	world->seed = seed;
	world->config = *config;
	world->config.name = "db1";
	world->config.id = 7;
	world->config.seed = seed * 31 + 5;
	world->config.creation[0] = (uint8_t)seed;
	world->cache_config = (struct ese_cache_config){
	    .max_pages = cache_pages,
	    .low_share = 0.05,
	    .high_share = 0.1,
	    .correlated_ns = 128 * NS_PER_MS,
	    .history_ns = 100 * NS_PER_S,
	    .history_max = 1000,
	};
	assert_int_equal(loop_new_virtual(1000, &world->loop), 0);
	crash_device_init(&world->device, world->loop, "db1", 64 * MIB, seed);
	world->device.crashed = world_crashed;
	world->device.arg = world;
	loop_task_init(&world->drop, world_drop, world);
	assert_int_equal(ese_cache_new(&world->cache_config, &world->cache), 0);
	world_open_db(world);
	return world;
}

static inline void world_free(struct db_world *world)
{
	ese_db_free(world->db);
	ese_cache_free(world->cache);
	crash_device_fini(&world->device);
	loop_free(world->loop);
	free(world);
}

/* ---- the model ---- */

static inline struct db_state *state_now(struct db_key *key)
{
	return &key->states[key->count - 1];
}

static inline void state_add(struct db_key *key, struct db_state state)
{
	if (key->count == STATES) {
		memmove(key->states, key->states + 1, (STATES - 1) * sizeof *key->states);
		key->count--;
	}
	key->states[key->count++] = state;
}

/* A few born records, and keys around them, of which some share leaves. */
static inline void model_init(struct db_world *world)
{
	const struct ese_image_rules *rules = ese_db_rules(world->db);
	struct ese_image image;
	struct rng rng;

	rng_init(&rng, world->seed, 3);
	ese_image_init(&image, ese_cache_images(world->cache), 0);
	while (world->key_count < KEYS) {
		uint64_t hot = rng_below(&rng, 4) ? rng_below(&rng, MIN_OF(rules->count[0], 7))
						  : rng_below(&rng, rules->count[0]);
		struct db_key *key = &world->keys[world->key_count];
		bool born = rng_below(&rng, 4) == 0;

		*key = (struct db_key){.key = hot << 32 | (rng_u64(&rng) >> 32), .count = 1};
		assert_int_equal(ese_image_initial(rules, (uint32_t)(ESE_PAGE_FIRST + hot), &image),
				 0);
		if (born && image.count) {
			key->key = image.slots[rng_below(&rng, image.count)].key;
			key->states[0].there = true;
		}
		for (unsigned i = 0; i < world->key_count; i++)
			if (world->keys[i].key == key->key)
				born = false, key->count = 0;
		world->key_count += key->count;
	}
	ese_image_clear(&image);
}

static inline int expected(const struct ese_op *op, struct db_key *key)
{
	bool there = state_now(key)->there;

	if (op->kind == ESE_OP_INSERT)
		return there ? -EEXIST : 0;
	return there ? 0 : -ENOENT;
}

static inline void session_next(void *arg);

static inline void session_ended(struct ese_op *op, int status)
{
	struct db_session *session = op->owner;
	struct db_world *world = session->world;
	struct db_key *key = session->key;
	struct db_state now = *state_now(key);
	bool failed = world->device.off && (status == -ECANCELED || status == -EIO);

	if (!failed && status != expected(op, key))
		fail_msg("seed %llu: %s of key %llx ends with %d, expected %d",
			 (unsigned long long)world->seed, ese_op_names[op->kind],
			 (unsigned long long)key->key, status, expected(op, key));
	if (status == 0 && op->kind != ESE_OP_INSERT && op->kind != ESE_OP_REPLACE)
		assert_int_equal(op->item.version, now.version);
	if (op->dbtime) {
		now.dbtime = op->dbtime;
		now.there = op->kind != ESE_OP_DELETE;
		now.version = op->kind == ESE_OP_REPLACE ? now.version + 1 : 0;
		if (status == 0)
			assert_true(op->kind == ESE_OP_DELETE || op->item.version == now.version);
		state_add(key, now);
		if (status == 0 && !op->lazy)
			world->durable = MAX_OF(world->durable, op->dbtime);
	}
	key->busy = false;
	world->ops++;
	world->active--;
	session->running = false;
	if (!world->device.off && world->ops + world->active < world->wanted_ops)
		session_next(session);
	else if (!world->active && !world->device.off)
		world_ended(world, 0);
}

static inline void session_submit(void *arg)
{
	struct db_session *session = arg;

	if (session->world->device.off) {
		session->world->active--;
		session->running = false;
		return;
	}
	ese_db_submit(session->world->db, &session->op);
}

static inline void session_next(void *arg)
{
	struct db_session *session = arg;
	struct db_world *world = session->world;

	do {
		session->key = &world->keys[rng_below(&session->rng, world->key_count)];
	} while (session->key->busy);
	session->key->busy = true;
	session->op = (struct ese_op){
	    .kind = (enum ese_op_kind)rng_below(&session->rng, ESE_OP_KINDS),
	    .lazy = rng_below(&session->rng, 10) < 7,
	    .key = session->key->key,
	    .done = session_ended,
	    .owner = session,
	};
	world->active++;
	session->running = true;
	loop_timer_set(world->loop, &session->timer,
		       loop_now_ns(world->loop) + 1 + rng_below(&session->rng, 2 * NS_PER_MS));
}

/* COUNT operations; ends early when the device crashes, then everything is dropped. */
static inline void world_load(struct db_world *world, uint64_t count)
{
	world->wanted_ops = world->ops + count;
	for (unsigned i = 0; i < SESSIONS; i++) {
		struct db_session *session = &world->sessions[i];

		session->world = world;
		rng_init(&session->rng, world->seed + world->ops, 100 + i);
		loop_timer_init(&session->timer, session_submit, session);
		session_next(session);
	}
	world_wait(world);
	for (unsigned i = 0; i < SESSIONS && world->device.off; i++) {
		struct db_session *session = &world->sessions[i];

		loop_timer_cancel(world->loop, &session->timer);
		session->key->busy = session->running = false;
		world->active = 0;
	}
}

/* ---- checks ---- */

struct world_probe {
	struct db_world *world;
	struct ese_op op;
	int status;
	bool ended;
};

static inline void probe_ended(struct ese_op *op, int status)
{
	struct world_probe *probe = op->owner;

	probe->status = status;
	probe->ended = true;
	loop_stop(probe->world->loop);
}

static inline bool world_read(struct db_world *world, uint64_t key, uint32_t *ret_version)
{
	struct world_probe probe = {.world = world};

	probe.op = (struct ese_op){
	    .kind = ESE_OP_READ, .key = key, .lazy = true, .done = probe_ended, .owner = &probe};
	ese_db_submit(world->db, &probe.op);
	while (!probe.ended)
		loop_run_until(world->loop, loop_now_ns(world->loop) + NS_PER_S);
	assert_true(probe.status == 0 || probe.status == -ENOENT);
	*ret_version = probe.op.item.version;
	return probe.status == 0;
}

/* Every key as of DBTIME. */
static inline void world_check(struct db_world *world, uint64_t dbtime)
{
	for (unsigned i = 0; i < world->key_count; i++) {
		struct db_key *key = &world->keys[i];
		unsigned at = key->count - 1;
		uint32_t version = 0;
		bool there = world_read(world, key->key, &version);

		while (at && key->states[at].dbtime > dbtime)
			at--;
		if (there != key->states[at].there || (there && version != key->states[at].version))
			fail_msg("seed %llu: key %llx is %s version %u, expected %s version %u "
				 "as of dbtime %llu (its last is %llu)",
				 (unsigned long long)world->seed, (unsigned long long)key->key,
				 there ? "there," : "not there,", version,
				 key->states[at].there ? "there," : "not there,",
				 key->states[at].version, (unsigned long long)dbtime,
				 (unsigned long long)state_now(key)->dbtime);
		/* What was lost never was. */
		key->count = at + 1;
	}
	for (unsigned i = 0; i < MISMATCH_KINDS; i++)
		if (world->check.mismatches[i])
			fail_msg("seed %llu: %llu pages said to be %s",
				 (unsigned long long)world->seed,
				 (unsigned long long)world->check.mismatches[i], mismatch_names[i]);
}

#endif
