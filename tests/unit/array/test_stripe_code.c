/* SPDX-License-Identifier: MIT
 *
 * Coding against arithmetic done bit by bit, and every pattern of one or two lost columns.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "target/array/array.h"
#include "target/array/stripe_code.h"

enum { SIZE = 1024 };

static uint8_t *column[RAID_DRIVES_MAX], *expected[RAID_DRIVES_MAX];

static uint8_t multiply(uint8_t a, uint8_t b)
{
	unsigned product = 0, shifted = a;
	for (; b; b >>= 1, shifted <<= 1) {
		if (shifted & 0x100)
			shifted ^= 0x11d;
		if (b & 1)
			product ^= shifted;
	}
	return (uint8_t)product;
}

static void fill(struct rng *rng, const struct stripe_shape *shape)
{
	memset(expected[shape->data], 0, SIZE);
	if (shape->parities == 2)
		memset(expected[shape->data + 1], 0, SIZE);
	uint8_t factor = 1;
	for (unsigned i = 0; i < shape->data; i++) {
		rng_fill(rng, expected[i], SIZE);
		for (unsigned b = 0; b < SIZE; b++) {
			expected[shape->data][b] ^= expected[i][b];
			if (shape->parities == 2)
				expected[shape->data + 1][b] ^= multiply(expected[i][b], factor);
		}
		factor = multiply(factor, 2);
	}
	for (unsigned i = 0; i < shape->data + shape->parities; i++)
		memcpy(column[i], expected[i], SIZE);
}

static const struct stripe_shape shapes[] = {
    {2, 1, false, SIZE}, {6, 1, false, SIZE},  {63, 1, false, SIZE}, {2, 2, false, SIZE},
    {3, 2, false, SIZE}, {21, 2, false, SIZE}, {62, 2, false, SIZE},
};

static void encodes(void **state)
{
	struct rng rng;
	rng_init(&rng, 1, 0);
	for (size_t s = 0; s < ARRAY_SIZE(shapes); s++) {
		const struct stripe_shape *shape = &shapes[s];
		fill(&rng, shape);
		assert_true(stripe_fits(shape, column, SIZE));
		for (unsigned i = shape->data; i < shape->data + shape->parities; i++)
			memset(column[i], 0xee, SIZE);
		stripe_encode(shape, column, SIZE);
		for (unsigned i = 0; i < shape->data + shape->parities; i++) {
			assert_memory_equal(column[i], expected[i], SIZE);
			column[i][SIZE - 1] ^= 0x10;
			assert_false(stripe_fits(shape, column, SIZE));
			column[i][SIZE - 1] ^= 0x10;
		}
	}
}

static void recovers(void **state)
{
	struct rng rng;
	rng_init(&rng, 2, 0);
	for (size_t s = 0; s < ARRAY_SIZE(shapes); s++) {
		const struct stripe_shape *shape = &shapes[s];
		unsigned width = shape->data + shape->parities;
		fill(&rng, shape);
		for (unsigned a = 0; a < width; a++)
			for (unsigned b = a; b < width; b++) {
				struct stripe_state now = {1ULL << a | 1ULL << b, 0, 0, false};
				struct stripe_plan plan = {.lost = 0};
				if (a != b && shape->parities == 1)
					continue;
				memset(column[a], 0xee, SIZE);
				memset(column[b], 0xee, SIZE);
				assert_int_equal(stripe_plan_read(shape, 1ULL << a, &now, &plan),
						 0);
				stripe_recover(shape, plan.lost, plan.read_mask, column, SIZE);
				stripe_encode(shape, column, SIZE);
				assert_memory_equal(column[a], expected[a], SIZE);
				assert_memory_equal(column[b], expected[b], SIZE);
			}
	}
}

static void applies(void **state)
{
	struct rng rng;
	rng_init(&rng, 3, 0);
	for (size_t s = 0; s < ARRAY_SIZE(shapes); s++) {
		const struct stripe_shape *shape = &shapes[s];
		fill(&rng, shape);
		for (unsigned i = 0; i < shape->data; i++) {
			uint8_t *p = column[shape->data];
			uint8_t *q = shape->parities == 2 ? column[shape->data + 1] : NULL;
			rng_fill(&rng, column[i], SIZE);
			stripe_difference(expected[i], column[i], expected[i], SIZE);
			stripe_apply(i, expected[i], p, q, SIZE);
			assert_true(stripe_fits(shape, column, SIZE));
		}
	}
}

static void copies(void **state)
{
	const struct stripe_shape shape = {1, 2, true, SIZE};
	struct rng rng;
	rng_init(&rng, 4, 0);
	rng_fill(&rng, column[0], SIZE);
	stripe_encode(&shape, column, SIZE);
	assert_true(stripe_fits(&shape, column, SIZE));
	column[0][5] ^= 1;
	assert_false(stripe_fits(&shape, column, SIZE));
	stripe_recover(&shape, 1, 4, column, SIZE);
	assert_true(stripe_fits(&shape, column, SIZE));
}

static int make_columns(void **state)
{
	for (unsigned i = 0; i < RAID_DRIVES_MAX; i++) {
		column[i] = aligned_alloc(STRIPE_CODE_ALIGN, SIZE);
		expected[i] = aligned_alloc(STRIPE_CODE_ALIGN, SIZE);
	}
	return 0;
}

static int free_columns(void **state)
{
	for (unsigned i = 0; i < RAID_DRIVES_MAX; i++) {
		free(column[i]);
		free(expected[i]);
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(encodes),
	    cmocka_unit_test(recovers),
	    cmocka_unit_test(applies),
	    cmocka_unit_test(copies),
	};
	return cmocka_run_group_tests_name("stripe_code", tests, make_columns, free_columns);
}
