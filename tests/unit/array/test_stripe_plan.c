/* SPDX-License-Identifier: MIT
 *
 * Plans of writes and reads, worked out by hand; and for every pattern of missing columns: what is
 * planned never reads what cannot be read, and nothing is given up that parity makes up for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "base/bytes.h"
#include "target/array/stripe_plan.h"

enum { C = 64 * 1024 };
enum { P = 1 << 4, Q = 1 << 5 };

static const struct stripe_shape raid5 = {4, 1, false, C};
static const struct stripe_shape raid6 = {4, 2, false, C};
static const struct stripe_shape mirror = {1, 2, true, C};

static const struct {
	const struct stripe_shape *shape;
	uint64_t lo, hi, unreadable, absent, out;
	bool dirty;
	enum stripe_method method;
	uint64_t hull_lo, hull_hi, reads, writes, lost;
} write_rows[] = {
    /* healthy: one chunk of four costs two reads to modify, three to reconstruct */
    {&raid5, 4096, 8192, 0, 0, 0, false, STRIPE_READ_MODIFY_WRITE, 4096, 8192, 1 | P, 1 | P, 0},
    {&raid5, 0, 4 * C, 0, 0, 0, false, STRIPE_RECONSTRUCT_WRITE, 0, C, 0, 15 | P, 0},
    {&raid5, 0, 3 * C, 0, 0, 0, false, STRIPE_RECONSTRUCT_WRITE, 0, C, 8, 7 | P, 0},
    {&raid5, C, 3 * C, 0, 0, 0, false, STRIPE_RECONSTRUCT_WRITE, 0, C, 1 | 8, 6 | P, 0},
    /* three chunks, the last one only in part: read it and the fourth */
    {&raid5, 0, 2 * C + 512, 0, 0, 0, false, STRIPE_RECONSTRUCT_WRITE, 0, C, 4 | 8, 7 | P, 0},
    /* no parity drive; or one that can be written but not read */
    {&raid5, 4096, 8192, P, P, P, false, STRIPE_DATA_ONLY, 4096, 8192, 0, 1 | P, 0},
    {&raid5, 4096, 8192, P, P, 0, false, STRIPE_RECONSTRUCT_WRITE, 4096, 8192, 2 | 4 | 8, 1 | P, 0},
    /* a data drive that the write leaves alone */
    {&raid5, 4096, 8192, 2, 2, 2, false, STRIPE_READ_MODIFY_WRITE, 4096, 8192, 1 | P, 1 | P, 0},
    /* the data drive that is written: its new content goes into the parity */
    {&raid5, 4096, 8192, 1, 1, 1, false, STRIPE_RECONSTRUCT_WRITE, 4096, 8192, 2 | 4 | 8, 1 | P, 0},
    /* of which only a part is written: its old content is needed */
    {&raid5, 512, 2 * C, 1, 1, 1, false, STRIPE_REBUILD_WRITE, 0, C, 2 | 4 | 8 | P, 3 | P, 1},
    {&raid5, 512, 2 * C, 2, 2, 2, false, STRIPE_RECONSTRUCT_WRITE, 0, C, 1 | 4 | 8, 3 | P, 0},
    /* a dirty stripe's parity is not read */
    {&raid5, 4096, 8192, 0, 0, 0, true, STRIPE_RECONSTRUCT_WRITE, 4096, 8192, 2 | 4 | 8, 1 | P, 0},
    {&raid5, 4096, 8192, 2, 2, 2, true, STRIPE_DATA_ONLY, 4096, 8192, 0, 1, 0},
    /* P and Q: three reads either way */
    {&raid6, 4096, 8192, 0, 0, 0, false, STRIPE_RECONSTRUCT_WRITE, 4096, 8192, 2 | 4 | 8, 1 | P | Q,
     0},
    {&raid6, 4096, 8192, 2, 2, 2, false, STRIPE_READ_MODIFY_WRITE, 4096, 8192, 1 | P | Q, 1 | P | Q,
     0},
    {&raid6, 4096, 8192, 2 | P, 2 | P, 2 | P, false, STRIPE_READ_MODIFY_WRITE, 4096, 8192, 1 | Q,
     1 | P | Q, 0},
    {&raid6, 4096, 8192, P | Q, P | Q, P | Q, false, STRIPE_DATA_ONLY, 4096, 8192, 0, 1 | P | Q, 0},
    {&raid6, 4096, 8192, 1 | 2, 1 | 2, 1 | 2, false, STRIPE_REBUILD_WRITE, 4096, 8192,
     4 | 8 | P | Q, 1 | P | Q, 1 | 2},
    {&raid6, 512, 2 * C, 1 | P, 1 | P, 1 | P, false, STRIPE_REBUILD_WRITE, 0, C, 2 | 4 | 8 | Q,
     3 | P | Q, 1},
    {&raid6, 0, 4 * C, 1 | 8, 1 | 8, 1 | 8, false, STRIPE_RECONSTRUCT_WRITE, 0, C, 0, 15 | P | Q,
     0},
    /* mirrors read nothing */
    {&mirror, 4096, 8192, 0, 0, 0, false, STRIPE_RECONSTRUCT_WRITE, 4096, 8192, 0, 7, 0},
    {&mirror, 4096, 8192, 1 | 4, 1 | 4, 1, false, STRIPE_RECONSTRUCT_WRITE, 4096, 8192, 0, 7, 0},
    {&mirror, 0, C, 6, 6, 6, true, STRIPE_DATA_ONLY, 0, C, 0, 7, 0},
};

static void plans(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(write_rows); i++) {
		struct stripe_state now = {write_rows[i].unreadable, write_rows[i].absent,
					   write_rows[i].out, write_rows[i].dirty};
		struct stripe_plan plan;
		assert_int_equal(
		    stripe_plan_write(write_rows[i].shape, write_rows[i].lo, write_rows[i].hi,
				      stripe_hull(C, write_rows[i].lo, write_rows[i].hi), &now,
				      &plan),
		    0);
		assert_int_equal(plan.method, write_rows[i].method);
		assert_int_equal(plan.hull.lo, write_rows[i].hull_lo);
		assert_int_equal(plan.hull.hi, write_rows[i].hull_hi);
		assert_int_equal(plan.read_mask, write_rows[i].reads);
		assert_int_equal(plan.write_mask, write_rows[i].writes);
		assert_int_equal(plan.lost, write_rows[i].lost);
	}
}

static void too_much_is_gone(void **state)
{
	static const struct {
		const struct stripe_shape *shape;
		uint64_t lo, hi;
		struct stripe_state now;
	} rows[] = {
	    {&raid5, 0, 512, {3, 3, 1, false}},
	    {&raid5, 0, 4 * C, {3, 3, 0, false}}, /* it could not be read again */
	    {&raid5, 0, 512, {1, 1, 1, true}},	  /* of a dirty stripe: neither */
	    {&raid6, 0, 512, {7, 7, 0, false}},
	    {&raid6, 0, 4 * C, {1 | P | Q, 1 | P | Q, 1 | P | Q, false}},
	    {&raid5, 0, 512, {3, 0, 0, false}}, /* two medium errors, one of them written in part */
	    {&mirror, 0, C, {7, 7, 7, false}},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct stripe_plan plan = {.lost = 77};
		assert_int_equal(stripe_plan_write(rows[i].shape, rows[i].lo, rows[i].hi,
						   stripe_hull(C, rows[i].lo, rows[i].hi),
						   &rows[i].now, &plan),
				 -EIO);
		assert_int_equal(plan.lost, 77);
	}
	/* Two medium errors, of which one is overwritten: that heals it, parity is left behind. */
	struct stripe_state now = {3, 0, 0, false};
	struct stripe_plan plan;
	assert_int_equal(stripe_plan_write(&raid5, 0, C, (struct stripe_span){0, C}, &now, &plan),
			 0);
	assert_int_equal(plan.method, STRIPE_DATA_ONLY);
	assert_true(plan.spoils);
	assert_int_equal(plan.write_mask, 1);
}

/* All writes of half chunks, all patterns of columns that are out. */
static void every_pattern(void **state)
{
	static const struct stripe_shape *const shapes[] = {&raid5, &raid6};
	for (size_t s = 0; s < ARRAY_SIZE(shapes); s++) {
		const struct stripe_shape *shape = shapes[s];
		uint64_t patterns = stripe_all_mask(shape);
		for (uint64_t out = 0; out <= patterns; out++)
			for (unsigned lo = 0; lo < 8; lo++)
				for (unsigned hi = lo + 1; hi <= 8; hi++) {
					struct stripe_state now = {out, out, out, false};
					struct stripe_plan plan;
					uint64_t from = lo * (C / 2), to = hi * (C / 2);
					bool few =
					    __builtin_popcountll(out) <= (int)shape->parities;
					int rc = stripe_plan_write(
					    shape, from, to, stripe_hull(C, from, to), &now, &plan);
					assert_int_equal(rc, few ? 0 : -EIO);
					if (rc)
						continue;
					assert_int_equal(plan.read_mask & out, 0);
					assert_true(__builtin_popcountll(plan.read_mask) <= 4);
					assert_false(plan.spoils);
				}
	}
}

static void reads(void **state)
{
	static const struct {
		const struct stripe_shape *shape;
		uint64_t wanted;
		struct stripe_state now;
		int rc;
		uint64_t reads, lost;
	} rows[] = {
	    {&raid5, 1, {0, 0, 0, false}, 0, 1, 0},
	    {&raid5, 1, {1, 1, 1, false}, 0, 2 | 4 | 8 | P, 1},
	    {&raid5, P, {P, P, 0, true}, 0, 15, 0},
	    {&raid5, 1, {1, 1, 1, true}, -EIO, 0, 0},
	    {&raid5, 1, {3, 0, 0, false}, -EIO, 0, 0},
	    {&raid6, 1, {1, 1, 1, false}, 0, 2 | 4 | 8 | P, 1},
	    {&raid6, 1, {1 | P, 1, 1, false}, 0, 2 | 4 | 8 | Q, 1},
	    {&raid6, 1, {3, 1, 1, false}, 0, 4 | 8 | P | Q, 3},
	    {&raid6, Q, {1 | Q, Q, 0, false}, 0, 2 | 4 | 8 | P, 1},
	    {&raid6, 1, {3 | P, 3, 3, false}, -EIO, 0, 0},
	    {&mirror, 1, {3, 0, 0, true}, 0, 4, 1},
	    {&mirror, 1, {7, 0, 0, false}, -EIO, 0, 0},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct stripe_plan plan = {.read_mask = 0};
		assert_int_equal(
		    stripe_plan_read(rows[i].shape, rows[i].wanted, &rows[i].now, &plan),
		    rows[i].rc);
		assert_int_equal(plan.read_mask, rows[i].reads);
		assert_int_equal(plan.lost, rows[i].lost);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(plans),
	    cmocka_unit_test(too_much_is_gone),
	    cmocka_unit_test(every_pattern),
	    cmocka_unit_test(reads),
	};
	return cmocka_run_group_tests_name("stripe_plan", tests, NULL, NULL);
}
