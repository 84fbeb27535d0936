/* SPDX-License-Identifier: MIT
 *
 * The pure parts of the controller cache: sector sets, ARC, streams, the destage plan.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "target/array/cache_arc.h"
#include "target/array/cache_bits.h"
#include "target/array/cache_plan.h"
#include "target/array/cache_stream.h"

static void bits_of_every_range(void **state)
{
	for (unsigned first = 0; first < CACHE_BITS; first++)
		for (unsigned count = 1; first + count <= CACHE_BITS; count++) {
			cache_bits bits = bits_range(first, count), left = bits;
			unsigned run_first, run_count;
			assert_int_equal(bits_count(bits), count);
			assert_int_equal(bits_first(bits), first);
			assert_true(bits_take_run(&left, &run_first, &run_count));
			assert_int_equal(run_first, first);
			assert_int_equal(run_count, count);
			assert_false(bits_take_run(&left, &run_first, &run_count));
		}
}

static void bits_runs_in_order(void **state)
{
	static const unsigned runs[][2] = {{0, 3}, {5, 1}, {60, 10}, {100, 28}};
	cache_bits bits = 0;
	unsigned first, count;

	for (size_t i = 0; i < ARRAY_SIZE(runs); i++)
		bits |= bits_range(runs[i][0], runs[i][1]);
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
		assert_true(bits_take_run(&bits, &first, &count));
		assert_int_equal(first, runs[i][0]);
		assert_int_equal(count, runs[i][1]);
	}
	assert_true(bits == 0);
}

/* ---- ARC ---- */

enum { FRAMES = 64 };

/* A little cache of whole pages over ARC. */
struct toy {
	struct arc arc;
	uint64_t pages[FRAMES];
	uint32_t used;
	uint64_t hits;
};

static void toy_read(struct toy *toy, uint64_t page)
{
	for (uint32_t i = 0; i < toy->used; i++)
		if (toy->pages[i] == page) {
			toy->hits++;
			arc_hit(&toy->arc, i);
			return;
		}
	uint32_t frame = toy->used;
	if (toy->used < FRAMES) {
		toy->used++;
	} else {
		frame = arc_victim(&toy->arc);
		assert_int_not_equal(frame, ARC_NONE);
		arc_leave(&toy->arc, frame, toy->pages[frame], true);
	}
	toy->pages[frame] = page;
	arc_enter(&toy->arc, frame, page);
	arc_link(&toy->arc, frame, false);
}

static void arc_keeps_what_is_used_through_a_scan(void **state)
{
	struct toy toy = {.used = 0};
	assert_int_equal(arc_init(&toy.arc, FRAMES), 0);
	for (unsigned round = 0; round < 3; round++)
		for (uint64_t page = 0; page < 16; page++)
			toy_read(&toy, page);
	for (uint64_t page = 1000; page < 3000; page++)
		toy_read(&toy, page);
	toy.hits = 0;
	for (uint64_t page = 0; page < 16; page++)
		toy_read(&toy, page);
	assert_int_equal(toy.hits, 16);
	arc_done(&toy.arc);
}

static void arc_prefers_a_cold_frame(void **state)
{
	struct arc arc;
	assert_int_equal(arc_init(&arc, 4), 0);
	for (uint32_t i = 0; i < 4; i++) {
		arc_enter(&arc, i, i);
		arc_link(&arc, i, i == 2);
	}
	assert_int_equal(arc_victim(&arc), 2);
	arc_unlink(&arc, 2);
	assert_int_equal(arc_victim(&arc), 0);
	for (uint32_t i = 0; i < 4; i++)
		arc_unlink(&arc, i);
	assert_int_equal(arc_victim(&arc), ARC_NONE);
	arc_done(&arc);
}

static void arc_target_follows_returns(void **state)
{
	struct toy toy = {.used = 0};
	assert_int_equal(arc_init(&toy.arc, FRAMES), 0);
	/* A loop a little larger than the cache: pages seen once return. */
	for (unsigned round = 0; round < 10; round++)
		for (uint64_t page = 0; page < FRAMES + 8; page++)
			toy_read(&toy, page);
	assert_true(toy.arc.lists[ARC_OFTEN].count > 0);
	assert_int_equal(toy.arc.lists[ARC_ONCE].count + toy.arc.lists[ARC_OFTEN].count, FRAMES);
	arc_done(&toy.arc);
}

static void arc_random_walk_stays_whole(void **state)
{
	struct toy toy = {.used = 0};
	struct rng rng;
	rng_init(&rng, 7, 0);
	assert_int_equal(arc_init(&toy.arc, FRAMES), 0);
	for (unsigned i = 0; i < 20000; i++) {
		toy_read(&toy, rng_below(&rng, rng_below(&rng, 2) ? 40 : 400));
		assert_true(toy.arc.target <= FRAMES);
		for (unsigned k = 0; k < ARC_LISTS; k++)
			assert_true(toy.arc.ghosts[k].count <= FRAMES);
	}
	assert_true(toy.hits > 6000);
	arc_done(&toy.arc);
}

/* ---- streams ---- */

static void a_stream_is_seen_at_the_third_read(void **state)
{
	struct streams streams = {0};
	uint64_t ahead = 0, at = 0;

	for (unsigned i = 0; i < 64; i++, at += 32 * KIB) {
		struct stream_advice advice = streams_note(&streams, at, 32 * KIB, 64 * KIB, GIB);
		assert_int_equal(advice.sequential, i >= 2);
		if (!advice.length_bytes)
			continue;
		assert_true(i >= 2);
		/* No byte is asked for twice, and none is left out. */
		assert_true(advice.offset_bytes == (ahead ? ahead : at + 32 * KIB));
		ahead = advice.offset_bytes + advice.length_bytes;
		assert_true(ahead <= at + 32 * KIB + STREAM_WINDOW_BYTES + 64 * KIB);
	}
	assert_true(ahead >= at + STREAM_WINDOW_BYTES / 2);
}

static void random_reads_are_no_stream(void **state)
{
	struct streams streams = {0};
	struct rng rng;
	rng_init(&rng, 3, 0);
	for (unsigned i = 0; i < 1000; i++)
		assert_false(
		    streams_note(&streams, rng_below(&rng, 1 << 20) * 4096, 4096, 64 * KIB, 8 * GIB)
			.sequential);
}

static void several_streams_side_by_side(void **state)
{
	struct streams streams = {0};
	for (unsigned i = 0; i < 10; i++)
		for (unsigned k = 0; k < STREAMS_MAX; k++) {
			struct stream_advice advice = streams_note(
			    &streams, k * GIB + i * 256 * KIB, 256 * KIB, 64 * KIB, 64 * GIB);
			assert_int_equal(advice.sequential, i >= 2);
		}
}

static void nothing_is_read_beyond_the_end(void **state)
{
	struct streams streams = {0};
	for (uint64_t at = 0; at < MIB; at += 64 * KIB) {
		struct stream_advice advice = streams_note(&streams, at, 64 * KIB, 64 * KIB, MIB);
		assert_true(advice.offset_bytes + advice.length_bytes <= MIB);
	}
}

/* ---- the plan ---- */

static void stripes_in_ascending_order_whole_ones_first(void **state)
{
	struct plan plan;
	static const uint64_t numbers[] = {40, 7, 99, 3, 55};
	static const uint64_t order[] = {99, 3, 7, 40, 55};

	plan_init(&plan, 8, NS_PER_S, 16);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		plan_dirtied(&plan, numbers[i], numbers[i] == 99 ? 8 : 3, i);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		struct plan_stripe *stripe = plan_next(&plan, false, 10);
		assert_non_null(stripe);
		assert_int_equal(stripe->number, order[i]);
		plan_hold(&plan, stripe);
	}
	assert_null(plan_next(&plan, false, 10));
	/* The sweep goes on from where it was. */
	plan_release(&plan, plan_find(&plan, 3), 20);
	plan_release(&plan, plan_find(&plan, 55), 20);
	plan_dirtied(&plan, 60, 1, 20);
	assert_int_equal(plan_next(&plan, false, 20)->number, 60);
	plan_done(&plan);
}

static void only_the_aged_below_the_low_mark(void **state)
{
	struct plan plan;
	plan_init(&plan, 8, NS_PER_S, 16);
	plan_dirtied(&plan, 5, 1, 100);
	plan_dirtied(&plan, 2, 1, 200);
	assert_null(plan_next(&plan, true, 100));
	assert_true(plan_due_ns(&plan) == NS_PER_S + 100);
	assert_int_equal(plan_next(&plan, true, NS_PER_S + 100)->number, 5);
	plan_cleaned(&plan, 5, 1);
	assert_null(plan_find(&plan, 5));
	assert_true(plan_due_ns(&plan) == NS_PER_S + 200);
	plan_done(&plan);
}

static void depth_grows_between_the_marks(void **state)
{
	assert_int_equal(plan_depth(0, 1000, 64), 0);
	assert_int_equal(plan_depth(599, 1000, 64), 0);
	assert_int_equal(plan_depth(600, 1000, 64), 1);
	assert_int_equal(plan_depth(800, 1000, 64), 64);
	assert_int_equal(plan_depth(1000, 1000, 64), 64);
	unsigned last = 0;
	for (unsigned dirty = 600; dirty <= 800; dirty++) {
		unsigned depth = plan_depth(dirty, 1000, 64);
		assert_true(depth >= last);
		last = depth;
	}
}

/* Against a plain array of counts. */
static void plan_random_walk(void **state)
{
	enum { STRIPES = 200, STEPS = 20000 };
	struct plan plan;
	uint32_t dirty[STRIPES] = {0};
	bool held[STRIPES] = {false};
	struct rng rng;

	rng_init(&rng, 11, 0);
	plan_init(&plan, 16, NS_PER_S, STRIPES);
	for (unsigned i = 0; i < STEPS; i++) {
		unsigned n = (unsigned)rng_below(&rng, STRIPES);
		struct plan_stripe *stripe = plan_find(&plan, n);
		assert_int_equal(stripe != NULL, dirty[n] > 0 || held[n]);
		switch (rng_below(&rng, 4)) {
		case 0:
			if (dirty[n] < 16) {
				plan_dirtied(&plan, n, 1, i);
				dirty[n]++;
			}
			break;
		case 1:
			if (dirty[n]) {
				plan_cleaned(&plan, n, dirty[n]);
				dirty[n] = 0;
			}
			break;
		case 2:
			if (stripe && held[n]) {
				plan_release(&plan, stripe, i);
				held[n] = false;
			}
			break;
		default:
			stripe = plan_next(&plan, false, i);
			if (!stripe)
				break;
			assert_false(held[stripe->number]);
			assert_int_equal(stripe->dirty, dirty[stripe->number]);
			held[stripe->number] = true;
			plan_hold(&plan, stripe);
			break;
		}
	}
	plan_done(&plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(bits_of_every_range),
	    cmocka_unit_test(bits_runs_in_order),
	    cmocka_unit_test(arc_keeps_what_is_used_through_a_scan),
	    cmocka_unit_test(arc_prefers_a_cold_frame),
	    cmocka_unit_test(arc_target_follows_returns),
	    cmocka_unit_test(arc_random_walk_stays_whole),
	    cmocka_unit_test(a_stream_is_seen_at_the_third_read),
	    cmocka_unit_test(random_reads_are_no_stream),
	    cmocka_unit_test(several_streams_side_by_side),
	    cmocka_unit_test(nothing_is_read_beyond_the_end),
	    cmocka_unit_test(stripes_in_ascending_order_whole_ones_first),
	    cmocka_unit_test(only_the_aged_below_the_low_mark),
	    cmocka_unit_test(depth_grows_between_the_marks),
	    cmocka_unit_test(plan_random_walk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
