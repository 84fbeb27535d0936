/* SPDX-License-Identifier: MIT
 *
 * The bounded set of ranges against a bitmap, and its bound.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "target/drive/range_set.h"

enum { SPACE = 64, ROOM = SPACE, ROUNDS = 20000 };

static struct range memory[ROOM];

static void check(const struct range_set *set, const bool *bits)
{
	for (unsigned i = 0; i < set->count; i++) {
		assert_true(set->ranges[i].lo < set->ranges[i].hi);
		assert_true(i == 0 || set->ranges[i - 1].hi < set->ranges[i].lo);
	}
	for (unsigned at = 0; at < SPACE; at++)
		assert_int_equal(range_set_overlaps(set, at, at + 1), bits[at]);
}

static void against_bitmap(void **state)
{
	struct range_set set = {.ranges = memory, .limit = ROOM};
	bool bits[SPACE] = {false};
	struct rng rng;

	rng_init(&rng, 1, 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t lo = rng_below(&rng, SPACE), hi = lo + rng_below(&rng, SPACE - lo + 1);
		bool any = false, on = rng_below(&rng, 2);
		for (uint64_t at = lo; at < hi; at++)
			any |= bits[at];
		assert_int_equal(range_set_overlaps(&set, lo, hi), any);
		memset(bits + lo, on, hi - lo);
		if (on)
			assert_int_equal(range_set_add(&set, lo, hi), 0);
		else
			assert_false(range_set_remove(&set, lo, hi));
		check(&set, bits);
	}
}

static void bound(void **state)
{
	struct range_set set = {.ranges = memory, .limit = 2};

	assert_int_equal(range_set_add(&set, 0, 10), 0);
	assert_int_equal(range_set_add(&set, 20, 30), 0);
	assert_int_equal(range_set_add(&set, 40, 50), -ENOSPC);
	assert_int_equal(range_set_add(&set, 10, 12), 0); /* joins */
	assert_true(range_set_remove(&set, 22, 24));	  /* would be three */
	assert_int_equal(set.count, 2);
	assert_true(range_set_overlaps(&set, 24, 30));
	assert_false(range_set_overlaps(&set, 20, 24));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(against_bitmap),
	    cmocka_unit_test(bound),
	};
	return cmocka_run_group_tests_name("range_set", tests, NULL, NULL);
}
