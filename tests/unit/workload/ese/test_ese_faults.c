/* SPDX-License-Identifier: MIT
 *
 * The whole engine over a volume that lies: writes acknowledged and lost, torn, put elsewhere, bits
 * that rot, pages of another creation.  The volume knows which pages it has wronged.  Whatever the
 * engine reports must be one of them and have its name; what is left of them in the end must all be
 * found by the pass over the whole database; and a volume that does not lie is never blamed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "harness/workload/ese/ese_checksum.h"
#include "harness/workload/ese/ese_db.h"

enum {
	VOLUME_BYTES = 64 << 20,
	PAGES = VOLUME_BYTES / ESE_PAGE_BYTES,
	INITIAL_BYTES = 24 << 20,
	SESSIONS = 6,
	UNITS = ESE_PAGE_UNITS,
};

enum lie { LOST, TORN, MISDIRECTED, ROTTEN, FOREIGN, LIES };

/* ---- the volume ---- */

struct liar {
	struct io_layer layer;
	struct loop *loop;
	struct rng rng;
	uint8_t *memory;
	uint64_t end_page; /* of the tree */
	unsigned one_in;   /* page writes lie; 0: never */
	int wrong[PAGES];  /* -1, or the mismatch_kind its reader must see */
	uint64_t lies[LIES];
	const struct ese_image_rules *rules;
	struct ese_image_pool *pool;
};

struct liar_io {
	struct loop_timer timer;
	struct liar *liar;
	struct io *io;
};

static uint8_t *page_at(struct liar *liar, uint64_t page)
{
	return liar->memory + page * ESE_PAGE_BYTES;
}

static bool is_zero(const uint8_t *bytes)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, ESE_PAGE_BYTES - 1) == 0;
}

static void put_foreign(struct liar *liar, uint64_t page)
{
	struct ese_identity other = {.creation = {99}, .database = 1, .seed = 4};
	struct ese_image image;

	ese_image_init(&image, liar->pool, (uint32_t)page);
	if (ese_image_initial(liar->rules, (uint32_t)page, &image) < 0)
		abort();
	ese_page_encode(&other, page, 77, &image, page_at(liar, page));
	ese_image_clear(&image);
}

static void lose(struct liar *liar, uint64_t page)
{
	if (liar->wrong[page] < 0)
		liar->wrong[page] =
		    is_zero(page_at(liar, page)) ? MISMATCH_NEVER_WRITTEN : MISMATCH_STALE;
}

static void tear(struct liar *liar, uint64_t page, const uint8_t *bytes)
{
	unsigned mask = 1 + (unsigned)rng_below(&liar->rng, (1U << UNITS) - 2);

	for (unsigned i = 0; i < UNITS; i++)
		if (mask >> i & 1)
			memcpy(page_at(liar, page) + (size_t)i * ESE_PAGE_UNIT_BYTES,
			       bytes + (size_t)i * ESE_PAGE_UNIT_BYTES, ESE_PAGE_UNIT_BYTES);
	liar->wrong[page] = MISMATCH_TORN;
}

static void misdirect(struct liar *liar, uint64_t page, const uint8_t *bytes)
{
	uint64_t victim = ESE_PAGE_FIRST + rng_below(&liar->rng, liar->end_page - ESE_PAGE_FIRST);

	lose(liar, page);
	if (victim == page)
		return;
	memcpy(page_at(liar, victim), bytes, ESE_PAGE_BYTES);
	liar->wrong[victim] = MISMATCH_MISDIRECTED;
}

/* The write of one page, whose bytes differ from what is there. */
static void lie_about(struct liar *liar, uint64_t page, const uint8_t *bytes)
{
	enum lie lie = (enum lie)rng_below(&liar->rng, LIES);

	liar->lies[lie]++;
	if (lie == LOST) {
		lose(liar, page);
	} else if (lie == TORN) {
		tear(liar, page, bytes);
	} else if (lie == MISDIRECTED) {
		misdirect(liar, page, bytes);
	} else if (lie == ROTTEN) {
		memcpy(page_at(liar, page), bytes, ESE_PAGE_BYTES);
		page_at(liar, page)[rng_below(&liar->rng, ESE_PAGE_BYTES)] ^=
		    (uint8_t)(1U << rng_below(&liar->rng, 8));
		liar->wrong[page] = MISMATCH_CORRUPT;
	} else {
		put_foreign(liar, page);
		liar->wrong[page] = MISMATCH_FOREIGN;
	}
}

static void write_page(struct liar *liar, uint64_t page, const uint8_t *bytes)
{
	if (liar->one_in && rng_below(&liar->rng, liar->one_in) == 0 &&
	    memcmp(bytes, page_at(liar, page), ESE_PAGE_BYTES) != 0) {
		lie_about(liar, page, bytes);
		return;
	}
	memcpy(page_at(liar, page), bytes, ESE_PAGE_BYTES);
	liar->wrong[page] = -1;
}

static void do_write(struct liar *liar, const struct io *io)
{
	uint64_t first = io->offset_bytes / ESE_PAGE_BYTES;
	bool pages = first >= ESE_PAGE_FIRST && first < liar->end_page &&
		     io->offset_bytes % ESE_PAGE_BYTES == 0 &&
		     io->length_bytes % ESE_PAGE_BYTES == 0;

	if (!pages) {
		iov_to_mem(io->iov, io->iov_count, 0, liar->memory + io->offset_bytes,
			   io->length_bytes);
		return;
	}
	for (uint64_t i = 0; i < io->length_bytes / ESE_PAGE_BYTES; i++)
		write_page(liar, first + i,
			   (const uint8_t *)io->iov[0].iov_base + i * ESE_PAGE_BYTES);
}

static void liar_due(void *arg)
{
	struct liar_io *lio = arg;
	struct liar *liar = lio->liar;
	struct io *io = lio->io;

	if (io->op == IO_READ)
		iov_from_mem(io->iov, io->iov_count, 0, liar->memory + io->offset_bytes,
			     io->length_bytes);
	else if (io->op == IO_WRITE)
		do_write(liar, io);
	free(lio);
	io_complete(io, 0);
}

static void liar_submit(struct io_layer *layer, struct io *io)
{
	struct liar *liar = container_of(layer, struct liar, layer);
	struct liar_io *lio = calloc(1, sizeof *lio);
	uint64_t delay_ns = (io->op == IO_READ ? 2 : 1) * NS_PER_MS;

	if (!lio || !io_in_range(layer, io))
		abort();
	*lio = (struct liar_io){.liar = liar, .io = io};
	loop_timer_init(&lio->timer, liar_due, lio);
	loop_timer_set(liar->loop, &lio->timer,
		       loop_now_ns(liar->loop) + delay_ns + rng_below(&liar->rng, NS_PER_MS));
}

static const struct io_layer_ops liar_ops = {.name = "liar", .submit = liar_submit};

/* ---- the engine on it ---- */

struct world;

struct session {
	struct world *world;
	struct ese_op op;
	struct loop_timer timer;
};

struct world {
	struct loop *loop;
	struct liar liar;
	struct workload_device device;
	struct ese_cache *cache;
	struct ese_db *db;
	struct rng rng;
	struct session sessions[SESSIONS];
	struct workload_check check;
	uint64_t ops, failed, reported, false_alarms;
	bool running;
	unsigned busy;
	int status;
};

static void told(void *arg, const struct mismatch *mismatch)
{
	struct world *world = arg;
	uint64_t page = mismatch->offset_bytes / ESE_PAGE_BYTES;

	world->reported++;
	if (world->liar.wrong[page] == (int)mismatch->kind)
		return;
	world->false_alarms++;
	print_message(
	    "# page %u: %s reported, %s expected\n", (unsigned)page, mismatch_names[mismatch->kind],
	    world->liar.wrong[page] < 0 ? "nothing" : mismatch_names[world->liar.wrong[page]]);
}

static void ended(void *arg, int status)
{
	struct world *world = arg;

	world->status = status;
	loop_stop(world->loop);
}

static int wait_for(struct world *world)
{
	uint64_t deadline_ns = loop_now_ns(world->loop) + 600 * NS_PER_S;

	while (world->status == 1 && loop_now_ns(world->loop) < deadline_ns)
		loop_run_until(world->loop, deadline_ns);
	return world->status;
}

static int run_op(struct world *world, void (*op)(struct ese_db *db, workload_fn done, void *arg))
{
	world->status = 1;
	op(world->db, ended, world);
	return wait_for(world);
}

static void op_done(struct ese_op *op, int status)
{
	struct session *session = op->owner;
	struct world *world = session->world;

	world->ops++;
	world->failed += status < 0 && status != -ENOENT && status != -EEXIST;
	if (!world->running) {
		if (--world->busy == 0)
			ended(world, 0);
		return;
	}
	loop_timer_set(world->loop, &session->timer,
		       loop_now_ns(world->loop) + rng_below(&world->rng, 3 * NS_PER_MS));
}

static void next_op(void *arg)
{
	struct session *session = arg;
	struct world *world = session->world;
	uint64_t kind = rng_below(&world->rng, 100);

	session->op = (struct ese_op){
	    .kind = kind < 40	? ESE_OP_INSERT
		    : kind < 60 ? ESE_OP_DELETE
		    : kind < 65 ? ESE_OP_REPLACE
				: ESE_OP_READ,
	    .lazy = rng_below(&world->rng, 10) < 7,
	    .pick = true,
	    .done = op_done,
	    .owner = session,
	};
	ese_db_submit(world->db, &session->op);
}

static void load(struct world *world, uint64_t ns)
{
	world->running = true;
	world->busy = SESSIONS;
	for (unsigned i = 0; i < SESSIONS; i++) {
		struct session *session = &world->sessions[i];

		session->world = world;
		loop_timer_init(&session->timer, next_op, session);
		loop_timer_set(world->loop, &session->timer, loop_now_ns(world->loop) + i);
	}
	loop_run_until(world->loop, loop_now_ns(world->loop) + ns);
	world->running = false;
	world->status = 1;
	assert_int_equal(wait_for(world), 0);
}

static void world_init(struct world *world, uint64_t seed, unsigned one_in)
{
	struct ese_cache_config cache = {.max_pages = 200,
					 .low_share = 0.01,
					 .high_share = 0.02,
					 .correlated_ns = 128 * NS_PER_MS,
					 .history_ns = 100 * NS_PER_S,
					 .history_max = 1000};
	struct ese_db_config config = {.name = "db1",
				       .creation = {1, 2, 3, (uint8_t)seed},
				       .id = 1,
				       .seed = seed,
				       .initial_bytes = INITIAL_BYTES,
				       .max_bytes = 44 << 20,
				       .verified = true,
				       .checkpoint_depth_bytes = MIB,
				       .log_files = 8,
				       .lazy_flush_ns = NS_PER_S,
				       .constants = ese_constants_default};
	struct ese_db_env env;
	struct err err = {0};

	*world = (struct world){.status = 0};
	assert_int_equal(loop_new_virtual(1000, &world->loop), 0);
	rng_init(&world->rng, seed, 1);
	rng_init(&world->liar.rng, seed, 2);
	world->liar.layer = (struct io_layer){.ops = &liar_ops, .size_bytes = VOLUME_BYTES};
	world->liar.loop = world->loop;
	world->liar.memory = calloc(1, VOLUME_BYTES);
	world->liar.pool = ese_image_pool_new();
	for (unsigned i = 0; i < PAGES; i++)
		world->liar.wrong[i] = -1;
	world->device = (struct workload_device){.host = "h1",
						 .volume = "db1",
						 .layer = &world->liar.layer,
						 .block_bytes = 512,
						 .known_zero = true};
	assert_int_equal(ese_cache_new(&cache, &world->cache), 0);
	env = (struct ese_db_env){.loop = world->loop,
				  .seed = seed,
				  .cache = world->cache,
				  .place = {.device = &world->device, .log_device = &world->device},
				  .check = &world->check,
				  .mismatch = told,
				  .arg = world};
	assert_int_equal(ese_db_new(&env, &config, &world->db, &err), 0);
	world->liar.rules = ese_db_rules(world->db);
	assert_int_equal(run_op(world, ese_db_create), 0);
	assert_int_equal(run_op(world, ese_db_attach), 0);
	world->liar.end_page = ese_db_rules(world->db)->pages;
	world->liar.one_in = one_in;
}

static void world_free(struct world *world)
{
	ese_db_free(world->db);
	ese_cache_free(world->cache);
	ese_image_pool_free(world->liar.pool);
	free(world->liar.memory);
	loop_free(world->loop);
}

static void pass_done(void *arg)
{
	ended(arg, 0);
}

static struct ese_checksum_result pass(struct world *world)
{
	struct ese_checksum_config config = {
	    .loop = world->loop,
	    .pager = ese_db_pager(world->db),
	    .first = ESE_PAGE_FIRST,
	    .end = ese_db_used_pages(world->db),
	    .depth = 4,
	    .done = pass_done,
	    .arg = world,
	};
	struct ese_checksum_result result;
	struct ese_checksum *checksum;

	world->status = 1;
	assert_int_equal(ese_checksum_start(&config, &checksum), 0);
	wait_for(world);
	result = *ese_checksum_result(checksum);
	ese_checksum_free(checksum);
	return result;
}

static void compare(struct world *world, const struct ese_checksum_result *found)
{
	uint64_t expected[MISMATCH_KINDS] = {0};

	for (unsigned page = ESE_PAGE_FIRST; page < ese_db_used_pages(world->db); page++)
		if (world->liar.wrong[page] >= 0)
			expected[world->liar.wrong[page]]++;
	for (unsigned kind = 0; kind < MISMATCH_KINDS; kind++)
		if (found->of_kind[kind] != expected[kind])
			fail_msg("%s: %u found, %u there", mismatch_names[kind],
				 (unsigned)found->of_kind[kind], (unsigned)expected[kind]);
	assert_int_equal(found->unsure, 0);
	assert_int_equal(found->unreadable, 0);
}

static void every_lie_is_found(void **state)
{
	const char *more = getenv("ESE_FAULT_SEEDS");
	uint64_t seeds = more ? strtoull(more, NULL, 10) : 3;

	(void)state;
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		static struct world world;
		struct ese_checksum_result found;
		uint64_t left = 0;

		world_init(&world, seed, 30);
		load(&world, 8 * NS_PER_S);
		assert_int_equal(run_op(&world, ese_db_detach), 0);
		world.liar.one_in = 0;
		/* What is wronged among the inner nodes may keep it from being attached. */
		if (run_op(&world, ese_db_attach) == 0) {
			found = pass(&world);
			left = found.bad;
			compare(&world, &found);
			assert_int_equal(run_op(&world, ese_db_detach), 0);
		}
		print_message(
		    "# seed %u: %u operations, %u failed; %u lies (%u lost, %u torn, %u "
		    "misdirected, %u rotten, %u foreign), %u reports, %u left\n",
		    (unsigned)seed, (unsigned)world.ops, (unsigned)world.failed,
		    (unsigned)(world.liar.lies[0] + world.liar.lies[1] + world.liar.lies[2] +
			       world.liar.lies[3] + world.liar.lies[4]),
		    (unsigned)world.liar.lies[0], (unsigned)world.liar.lies[1],
		    (unsigned)world.liar.lies[2], (unsigned)world.liar.lies[3],
		    (unsigned)world.liar.lies[4], (unsigned)world.reported, (unsigned)left);
		assert_int_equal(world.false_alarms, 0);
		assert_true(world.reported > 0);
		world_free(&world);
	}
}

static void an_honest_volume_is_never_blamed(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 2; seed++) {
		static struct world world;
		struct ese_checksum_result found;

		world_init(&world, seed, 0);
		load(&world, 8 * NS_PER_S);
		found = pass(&world);
		assert_int_equal(found.bad, 0);
		/* With and without an orderly end. */
		assert_int_equal(run_op(&world, seed == 1 ? ese_db_detach : ese_db_drop), 0);
		assert_int_equal(run_op(&world, ese_db_attach), 0);
		load(&world, 5 * NS_PER_S);
		assert_int_equal(run_op(&world, ese_db_detach), 0);
		assert_int_equal(run_op(&world, ese_db_attach), 0);
		found = pass(&world);
		assert_int_equal(found.bad, 0);
		assert_int_equal(found.unsure, 0);
		assert_int_equal(run_op(&world, ese_db_detach), 0);
		assert_int_equal(world.failed, 0);
		assert_int_equal(world.reported, 0);
		assert_true(world.ops > 5000);
		assert_true(world.check.pages_checked > 1000);
		world_free(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_honest_volume_is_never_blamed),
	    cmocka_unit_test(every_lie_is_found),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
