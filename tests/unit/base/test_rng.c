/* SPDX-License-Identifier: MIT
 *
 * Random streams: reproducible, apart from each other, within bounds and about uniform.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/rng.h"

static void same_seed_same_sequence(void **state)
{
	struct rng a, b;

	rng_init(&a, 42, 7);
	rng_init(&b, 42, 7);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(rng_u64(&a), rng_u64(&b));
}

/* The step of xoshiro256** from the state 1, 2, 3, 4, as its authors' program gives it. */
static void known_sequence(void **state)
{
	static const uint64_t want[] = {11520, 0, 1509978240, 1215971899390074240};
	struct rng rng = {{1, 2, 3, 4}};

	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		assert_int_equal(rng_u64(&rng), want[i]);
}

/* Recorded once: stored seeds must mean the same in every later version. */
static void seeds_keep_their_meaning(void **state)
{
	struct rng rng;

	rng_init(&rng, 42, rng_stream_of("mbx1"));
	assert_int_equal(rng_u64(&rng), UINT64_C(2592694908536967387));
	assert_int_equal(rng_u64(&rng), UINT64_C(682979192803024996));
	assert_int_equal(rng_stream_of(""), UINT64_C(0xcbf29ce484222325));
	assert_int_equal(rng_stream_of("a"), UINT64_C(0xaf63dc4c8601ec8c));
}

static void streams_differ(void **state)
{
	uint64_t first[64];

	for (uint64_t seed = 0; seed < 8; seed++) {
		for (uint64_t stream = 0; stream < 8; stream++) {
			struct rng rng;

			rng_init(&rng, seed, stream);
			first[seed * 8 + stream] = rng_u64(&rng);
		}
	}
	for (size_t i = 0; i < 64; i++)
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(first[i], first[j]);
}

static void below_is_bounded_and_uniform(void **state)
{
	static const uint64_t limits[] = {1, 2, 3, 10, 1000, UINT64_C(1) << 63, UINT64_MAX};
	unsigned seen[10] = {0};
	struct rng rng;

	rng_init(&rng, 3, 0);
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		for (unsigned n = 0; n < 1000; n++)
			assert_true(rng_below(&rng, limits[i]) < limits[i]);
	for (unsigned n = 0; n < 100000; n++)
		seen[rng_below(&rng, 10)]++;
	for (unsigned i = 0; i < 10; i++)
		assert_in_range(seen[i], 9500, 10500); /* five sigma */
}

static void unit_and_exponential(void **state)
{
	double sum = 0, sum_gaps = 0, below_mean = 0;
	const unsigned n = 100000;
	struct rng rng;

	rng_init(&rng, 5, 0);
	for (unsigned i = 0; i < n; i++) {
		double unit = rng_unit(&rng);
		double gap = rng_exponential(&rng, 250);

		assert_true(unit >= 0 && unit < 1);
		assert_true(gap >= 0 && isfinite(gap));
		sum += unit;
		sum_gaps += gap;
		below_mean += gap < 250;
	}
	assert_true(fabs(sum / n - 0.5) < 0.005);
	assert_true(fabs(sum_gaps / n - 250) < 5);
	assert_true(fabs(below_mean / n - (1 - exp(-1))) < 0.01);
}

static void fill_stays_in_place(void **state)
{
	for (size_t size = 0; size < 40; size++) {
		uint8_t a[48], b[48];
		struct rng rng;

		memset(a, 0xee, sizeof a);
		memset(b, 0xee, sizeof b);
		rng_init(&rng, 9, size);
		rng_fill(&rng, a, size);
		rng_init(&rng, 9, size);
		rng_fill(&rng, b, size);
		assert_memory_equal(a, b, sizeof a);
		for (size_t i = size; i < sizeof a; i++)
			assert_int_equal(a[i], 0xee);
		if (size >= 16)
			assert_memory_not_equal(a, a + 8, 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(same_seed_same_sequence),	    cmocka_unit_test(known_sequence),
	    cmocka_unit_test(seeds_keep_their_meaning),	    cmocka_unit_test(streams_differ),
	    cmocka_unit_test(below_is_bounded_and_uniform), cmocka_unit_test(unit_and_exponential),
	    cmocka_unit_test(fill_stays_in_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
