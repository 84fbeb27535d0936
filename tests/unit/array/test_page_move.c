/* SPDX-License-Identifier: MIT
 *
 * Page moves under load: drains, balancing, pauses, lost members and UNMAP while requests go on,
 * against shadows; after each step no page is lost or has two owners.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "target/array/page_copy.h"
#include "target/array/volume.h"
#include "tests/unit/array/load.h"
#include "tests/unit/array/pool_check.h"
#include "tests/unit/array/rig.h"

#define P POOL_PAGE_BYTES

static struct lab lab;
static struct load load;

static void open_lab(enum drive_timing timing)
{
	struct err err = {0};

	lab_init(&lab);
	struct member_config *members[] = {
	    lab_member(&lab, "m1", "raid0", 1, 7 * P),
	    lab_member(&lab, "m2", "raid5", 3, 48 * MIB),
	    lab_member(&lab, "m3", "raid10", 4, 32 * MIB),
	};
	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		members[i]->timing = timing;
		members[i]->drives.model = 5; /* the SSD: several at a time */
	}
	lab_volume(&lab, "a", LOAD_PAGES * P, true);
	lab_volume(&lab, "b", LOAD_PAGES * P, true);
	if (lab_open(&lab, &err))
		fail_msg("%s", err.what);
}

static struct pool *the_pool(void)
{
	return group_pool(lab.open, 0);
}

static void turn_until(bool (*reached)(void))
{
	uint64_t deadline = loop_now_ns(lab.loop) + 600 * NS_PER_S;

	while (!reached()) {
		assert_true(loop_now_ns(lab.loop) < deadline);
		assert_int_equal(loop_turn(lab.loop, true), 0);
		pool_check(the_pool());
	}
}

static struct drain_progress drain_of(unsigned index)
{
	struct drain_progress progress;

	pool_drain_progress(the_pool(), pool_member(the_pool(), index), &progress);
	return progress;
}

static bool first_is_empty(void)
{
	return drain_of(0).state == DRAIN_EMPTY;
}

static bool all_is_quiet(void)
{
	struct pool_moves moves;

	pool_moves(the_pool(), &moves);
	return moves.under_way == 0 && moves.planned == 0 && moves.cleaning == 0;
}

static void drain_empties(void **state)
{
	struct err err = {0};
	uint8_t sector[512], read[512];
	struct pool_moves moves;

	open_lab(DRIVE_TIMING_NONE);
	for (uint64_t i = 0; i < 2 * LOAD_PAGES; i++) {
		memset(sector, (int)i + 1, sizeof sector);
		assert_int_equal(lab_io(&lab, i % 2 ? "b" : "a", IO_WRITE,
					i / 2 * P + i * 70000 / 512 * 512, sector, 512),
				 0);
	}
	struct member *first = pool_member(the_pool(), 0);
	assert_true(drain_of(0).state == DRAIN_NONE);
	assert_int_equal(pool_drain(the_pool(), first, &err), 0);
	assert_int_equal(pool_drain(the_pool(), first, &err), -EALREADY);
	assert_true(drain_of(0).left_bytes > 0);
	turn_until(first_is_empty);
	assert_int_equal(drain_of(0).left_bytes, 0);
	assert_int_equal(first->used_pages, 0);
	pool_moves(the_pool(), &moves);
	assert_int_equal(moves.done * P, drain_of(0).moved_bytes);
	assert_true(moves.done > 0);
	for (uint64_t i = 0; i < 2 * LOAD_PAGES; i++) {
		memset(sector, (int)i + 1, sizeof sector);
		assert_int_equal(lab_io(&lab, i % 2 ? "b" : "a", IO_READ,
					i / 2 * P + i * 70000 / 512 * 512, read, 512),
				 0);
		assert_memory_equal(sector, read, sizeof read);
	}
	assert_true(volume_slice_changes(group_find_volume(lab.open, "a")) > 0);
	/* It takes nothing new. */
	assert_int_equal(lab_io(&lab, "a", IO_UNMAP, 0, NULL, LOAD_PAGES * P), 0);
	assert_int_equal(lab_io(&lab, "a", IO_WRITE, 0, sector, 512), 0);
	assert_int_equal(first->used_pages, 0);
	pool_check_free_pages(lab.loop, the_pool());
	lab_close(&lab);
}

static void drain_without_room(void **state)
{
	struct err err = {0};
	static uint8_t sector[512] = {1};

	lab_init(&lab);
	lab_member(&lab, "m1", "raid0", 1, 4 * P);
	lab_member(&lab, "m2", "raid0", 1, 2 * P);
	lab_volume(&lab, "a", 5 * P, true);
	if (lab_open(&lab, &err))
		fail_msg("%s", err.what);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(lab_io(&lab, "a", IO_WRITE, i * P, sector, 512), 0);
	assert_int_equal(pool_drain(the_pool(), pool_member(the_pool(), 0), &err), -ENOSPC);
	assert_non_null(strstr(err.what, "member m1 holds"));
	assert_true(drain_of(0).state == DRAIN_NONE);
	/* The room goes away while the drain is under way: it says so, and goes on later. */
	assert_int_equal(lab_io(&lab, "a", IO_UNMAP, 0, NULL, 3 * P), 0);
	assert_int_equal(pool_drain(the_pool(), pool_member(the_pool(), 0), &err), 0);
	pool_moves_pause(the_pool(), true);
	assert_int_equal(loop_turn(lab.loop, false), 0);
	lab_close(&lab);
}

/* A write that finds no space takes that of copies. */
static void space_is_given_back(void **state)
{
	struct err err = {0};
	static uint8_t sector[512] = {1};

	lab_init(&lab);
	lab_member(&lab, "m1", "raid0", 1, 2 * P);
	lab_member(&lab, "m2", "raid0", 1, 2 * P)->timing = DRIVE_TIMING_MODELLED;
	lab_volume(&lab, "a", 4 * P, true);
	if (lab_open(&lab, &err))
		fail_msg("%s", err.what);
	member_set_offline(pool_member(the_pool(), 1), true);
	for (uint64_t i = 0; i < 2; i++)
		assert_int_equal(lab_io(&lab, "a", IO_WRITE, i * P, sector, 512), 0);
	member_set_offline(pool_member(the_pool(), 1), false);
	assert_int_equal(pool_drain(the_pool(), pool_member(the_pool(), 0), &err), 0);
	assert_int_equal(loop_turn(lab.loop, false), 0);
	struct pool_moves moves;
	pool_moves(the_pool(), &moves);
	assert_int_equal(moves.under_way, 2);
	assert_int_equal(pool_drain_stop(the_pool(), pool_member(the_pool(), 0), &err), 0);
	assert_int_equal(lab_io(&lab, "a", IO_WRITE, 2 * P, sector, 512), 0);
	assert_int_equal(lab_io(&lab, "a", IO_WRITE, 3 * P, sector, 512), 0);
	pool_check(the_pool());
	pool_moves(the_pool(), &moves);
	assert_int_equal(moves.done + moves.cancelled, 2);
	/* Now it is really full. */
	assert_int_equal(pool_member(the_pool(), 0)->used_pages, 2);
	turn_until(all_is_quiet);
	lab_close(&lab);
}

/* ---- under load ---- */

static void random_act(struct rng *rng, bool losses)
{
	struct pool *pool = the_pool();
	struct member *member = pool_member(pool, (unsigned)rng_below(rng, 3));
	struct err err = {0};

	switch (rng_below(rng, losses ? 9 : 8)) {
	case 0:
	case 1:
	case 2:
	case 3:
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(pool_drain_stop(pool, pool_member(pool, i), &err), 0);
		(void)pool_drain(pool, member, &err);
		break;
	case 4:
		assert_int_equal(pool_drain_stop(pool, member, &err), 0);
		pool_balance_now(pool);
		break;
	case 5:
		pool_moves_pause(pool, true);
		break;
	case 6:
	case 7:
		pool_moves_pause(pool, false);
		break;
	default:
		member_set_offline(member, !member_is_offline(member));
	}
}

static uint64_t moved;

static void random_body(uint64_t seed, bool losses)
{
	enum { ROUNDS = 1200 };
	struct pool_moves moves;
	struct rng rng;

	rng_init(&rng, seed, 8);
	open_lab(seed % 3 ? DRIVE_TIMING_MODELLED : DRIVE_TIMING_NONE);
	load_init(&load, &lab, seed);
	load.may_fail = losses;
	for (int i = 0; i < ROUNDS; i++) {
		load_step(&load);
		if (rng_below(&rng, 60) == 0)
			random_act(&rng, losses);
		for (uint64_t turns = rng_below(&rng, 6); turns > 0; turns--)
			assert_int_equal(loop_turn(lab.loop, false), 0);
		if (rng_below(&rng, 2))
			assert_int_equal(loop_turn(lab.loop, true), 0);
		if (i % 8 == 0)
			pool_check(the_pool());
	}
	for (unsigned i = 0; i < 3; i++)
		member_set_offline(pool_member(the_pool(), i), false);
	pool_moves_pause(the_pool(), false);
	load_settle(&load);
	load_compare(&load);
	pool_moves(the_pool(), &moves);
	moved += moves.done;
	turn_until(all_is_quiet);
	load_compare(&load);
	pool_check_free_pages(lab.loop, the_pool());
	load_done(&load);
	lab_close(&lab);
}

static void moves_under_load(void **state)
{
	moved = 0;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		print_message("# seed %llu\n", (unsigned long long)seed);
		random_body(seed, false);
	}
	print_message("# %llu pages moved\n", (unsigned long long)moved);
	assert_true(moved > 6);
}

static void moves_and_losses(void **state)
{
	for (uint64_t seed = 11; seed <= 15; seed++) {
		print_message("# seed %llu\n", (unsigned long long)seed);
		random_body(seed, true);
	}
}

/* Closing in the midst of moves leaves no request behind. */
static void close_under_way(void **state)
{
	struct err err = {0};

	for (unsigned turns = 0; turns < 40; turns += 3) {
		open_lab(DRIVE_TIMING_MODELLED);
		load_init(&load, &lab, turns);
		for (int i = 0; i < 100; i++) {
			load_step(&load);
			assert_int_equal(loop_turn(lab.loop, true), 0);
		}
		assert_int_equal(pool_drain(the_pool(), pool_member(the_pool(), 0), &err), 0);
		for (unsigned i = 0; i < turns; i++) {
			load_step(&load);
			assert_int_equal(loop_turn(lab.loop, true), 0);
		}
		lab_close(&lab);
		assert_int_equal(load.busy, 0);
		load_done(&load);
	}
}

/* ---- a lost member ---- */

static void offline_member(void **state)
{
	struct err err = {0};
	static uint8_t sector[512] = {1};

	open_lab(DRIVE_TIMING_NONE);
	for (uint64_t i = 0; i < LOAD_PAGES; i++)
		assert_int_equal(lab_io(&lab, "a", IO_WRITE, i * P, sector, 512), 0);
	struct member *lost = pool_member(the_pool(), 1);
	struct volume *volume = group_find_volume(lab.open, "a");
	assert_int_equal(volume->member_pages[1], 1);
	member_set_offline(lost, true);
	assert_int_equal(pool_drain(the_pool(), lost, &err), -ENODEV);
	unsigned failed = 0;
	for (uint64_t i = 0; i < LOAD_PAGES; i++) {
		int rc = lab_io(&lab, "a", IO_READ, i * P, sector, 512);
		assert_true(rc == 0 || rc == -ENODEV);
		failed += rc != 0;
	}
	assert_int_equal(failed, 1);
	/* Another volume is spread over what is left, and is whole. */
	for (uint64_t i = 0; i < LOAD_PAGES; i++)
		assert_int_equal(lab_io(&lab, "b", IO_WRITE, i * P, sector, 512), 0);
	assert_int_equal(lab_io(&lab, "b", IO_FLUSH, 0, NULL, 0), 0);
	assert_int_equal(lab_io(&lab, "a", IO_FLUSH, 0, NULL, 0), -ENODEV);
	assert_int_equal(lost->used_pages, 1);
	member_set_offline(lost, false);
	for (uint64_t i = 0; i < LOAD_PAGES; i++)
		assert_int_equal(lab_io(&lab, "a", IO_READ, i * P, sector, 512), 0);
	lab_close(&lab);
}

/* ---- the copy's plan ---- */

static void copy_plan(void **state)
{
	struct page_copy copy;
	uint64_t offset, length, copied = 0;

	page_copy_begin(&copy);
	assert_false(page_copy_may_close(&copy));
	while (!page_copy_may_close(&copy)) {
		assert_true(page_copy_next(&copy, &offset, &length));
		assert_int_equal(offset, copied);
		copied += length;
	}
	assert_true(P - copied <= COPY_CLOSE_PIECES * COPY_PIECE_BYTES);
	while (page_copy_next(&copy, &offset, &length))
		copied += length;
	assert_int_equal(copied, P);
	/* A write that touches two pieces by a sector each. */
	page_copy_touch(&copy, 5 * COPY_PIECE_BYTES - 512, 1024);
	page_copy_touch(&copy, 5 * COPY_PIECE_BYTES, 512);
	assert_int_equal(copy.dirty_count, 2);
	assert_true(page_copy_next(&copy, &offset, &length));
	assert_int_equal(offset, 4 * COPY_PIECE_BYTES);
	assert_int_equal(length, 2 * COPY_PIECE_BYTES);
	assert_false(page_copy_next(&copy, &offset, &length));
	/* One that never ends to be written is closed in the end. */
	page_copy_begin(&copy);
	for (unsigned i = 0; !page_copy_may_close(&copy); i++) {
		assert_true(i < (COPY_PASSES_MAX + 1) * COPY_PIECES);
		assert_true(page_copy_next(&copy, &offset, &length));
		page_copy_touch(&copy, offset, length);
	}
	assert_int_equal(copy.dirty_count, COPY_PIECES);
	page_copy_wrote(&copy, COPY_PIECE_BYTES, COPY_PIECE_BYTES);
	assert_true(page_copy_is_fresh(&copy, 0, COPY_PIECE_BYTES));
	assert_false(page_copy_is_fresh(&copy, 0, 2 * COPY_PIECE_BYTES));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(copy_plan),	  cmocka_unit_test(drain_empties),
	    cmocka_unit_test(drain_without_room), cmocka_unit_test(space_is_given_back),
	    cmocka_unit_test(offline_member),	  cmocka_unit_test(close_under_way),
	    cmocka_unit_test(moves_under_load),	  cmocka_unit_test(moves_and_losses),
	};
	return cmocka_run_group_tests_name("page_move", tests, NULL, NULL);
}
