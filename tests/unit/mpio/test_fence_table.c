/* SPDX-License-Identifier: MIT
 *
 * The table of fenced ranges against a plain list, seeded: what blocks, what is freed, and its
 * bound.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "initiator/mpio/fence.h"

enum { LIMIT = 48, STEPS = 20000, PATHS = 3, KEYS = 2 };

struct plain {
	struct fence_range ranges[LIMIT];
	unsigned count;
};

/* From one block to more than all regions. */
static void draw(struct rng *rng, uint64_t *offset, uint64_t *length)
{
	uint64_t most = UINT64_C(1) << (9 + rng_below(rng, 24));

	*offset = rng_below(rng, UINT64_C(1) << (20 + rng_below(rng, 12)));
	*length = rng_below(rng, most) + 1;
}

static bool plain_blocks(const struct plain *plain, uint64_t offset, uint64_t length,
			 uint64_t place)
{
	for (unsigned i = 0; i < plain->count; i++) {
		const struct fence_range *range = &plain->ranges[i];

		if (range->place < place && range->offset_bytes < offset + length &&
		    offset < range->offset_bytes + range->length_bytes)
			return true;
	}
	return false;
}

static unsigned plain_free(struct plain *plain, bool all_paths, unsigned path, uint64_t key,
			   uint64_t older_ns)
{
	unsigned kept = 0, before = plain->count;

	for (unsigned i = 0; i < before; i++) {
		const struct fence_range *range = &plain->ranges[i];
		bool gone = all_paths ? range->lost_ns <= older_ns
				      : range->path == path && range->key == key;

		if (!gone)
			plain->ranges[kept++] = *range;
	}
	plain->count = kept;
	return before - kept;
}

static void add(struct fence_table *table, struct plain *plain, struct rng *rng, uint64_t now)
{
	struct fence_range range = {.lost_ns = now,
				    .key = rng_below(rng, KEYS),
				    .path = (unsigned)rng_below(rng, PATHS),
				    .place = FENCE_NO_PLACE};

	if (!fence_room(table, 0)) {
		assert_int_equal(plain->count, LIMIT);
		return;
	}
	draw(rng, &range.offset_bytes, &range.length_bytes);
	if (plain->count && rng_below(rng, 3) == 0) /* lost again */
		range.place = plain->ranges[rng_below(rng, plain->count)].place;
	range.place = fence_add(table, &range);
	plain->ranges[plain->count++] = range;
}

static void compare(const struct fence_table *table, const struct plain *plain, struct rng *rng)
{
	uint64_t offset, length, place = FENCE_NO_PLACE;
	unsigned of_path = 0;

	draw(rng, &offset, &length);
	if (plain->count && rng_below(rng, 2))
		place = plain->ranges[rng_below(rng, plain->count)].place;
	assert_int_equal(fence_blocks(table, offset, length, place),
			 plain_blocks(plain, offset, length, place));
	assert_int_equal(table->count, plain->count);
	for (unsigned i = 0; i < plain->count; i++)
		of_path += plain->ranges[i].path == 1;
	assert_int_equal(table->of_path[1], of_path);
	assert_int_equal(fence_oldest_of(table, 1) != NULL, of_path > 0);
	assert_int_equal(fence_oldest(table) != NULL, plain->count > 0);
}

static void agrees_with_a_plain_list(void **unused)
{
	for (volatile uint64_t seed = 1; seed <= 5; seed++) {
		struct fence_table table;
		struct plain plain = {.count = 0};
		struct rng rng;

		rng_init(&rng, seed, 5);
		assert_int_equal(fence_init(&table, LIMIT), 0);
		for (uint64_t now = 1; now < STEPS; now++) {
			unsigned path = (unsigned)rng_below(&rng, PATHS);
			uint64_t key = rng_below(&rng, KEYS);
			uint64_t older = now - rng_below(&rng, 30);

			switch (rng_below(&rng, 40)) {
			case 0:
				assert_int_equal(fence_free_nexus(&table, path, key),
						 plain_free(&plain, false, path, key, 0));
				break;
			case 1:
				assert_int_equal(fence_free_older(&table, older),
						 plain_free(&plain, true, 0, 0, older));
				break;
			default:
				add(&table, &plain, &rng, now);
			}
			compare(&table, &plain, &rng);
		}
		fence_free_older(&table, UINT64_MAX);
		for (unsigned i = 0; i < FENCE_REGIONS; i++)
			assert_int_equal(table.regions[i], 0);
		fence_done(&table);
	}
}

/* Writes in flight need room, too: each may be lost. */
static void room_is_reserved(void **unused)
{
	struct fence_table table;

	assert_int_equal(fence_init(&table, 2), 0);
	assert_true(fence_room(&table, 1));
	assert_false(fence_room(&table, 2));
	fence_add(&table, &(struct fence_range){.length_bytes = 1, .place = FENCE_NO_PLACE});
	assert_true(fence_room(&table, 0));
	assert_false(fence_room(&table, 1));
	fence_done(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(agrees_with_a_plain_list),
	    cmocka_unit_test(room_is_reserved),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
