/* SPDX-License-Identifier: MIT
 *
 * The table of fenced ranges.
 */
#include "initiator/mpio/fence.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"

int fence_init(struct fence_table *table, unsigned limit)
{
	*table = (struct fence_table){.limit = limit};
	TAILQ_INIT(&table->held);
	TAILQ_INIT(&table->free);
	table->ranges = calloc(limit, sizeof *table->ranges);
	return table->ranges ? 0 : -ENOMEM;
}

void fence_done(struct fence_table *table)
{
	free(table->ranges);
	table->ranges = NULL;
}

/* The regions a range touches: from FIRST on, COUNT of them, each at most once. */
static unsigned regions_of(uint64_t offset_bytes, uint64_t length_bytes, uint64_t *ret_first)
{
	uint64_t first = offset_bytes >> FENCE_REGION_SHIFT;
	uint64_t last =
	    (offset_bytes + MAX_OF(length_bytes, UINT64_C(1)) - 1) >> FENCE_REGION_SHIFT;

	*ret_first = first;
	return (unsigned)MIN_OF(last - first + 1, (uint64_t)FENCE_REGIONS);
}

static void count_regions(struct fence_table *table, const struct fence_range *range, int by)
{
	uint64_t first;
	unsigned count = regions_of(range->offset_bytes, range->length_bytes, &first);

	for (unsigned i = 0; i < count; i++)
		table->regions[(first + i) % FENCE_REGIONS] += (uint32_t)by;
}

uint64_t fence_add(struct fence_table *table, const struct fence_range *lost)
{
	struct fence_range *range = TAILQ_FIRST(&table->free);

	if (range) {
		TAILQ_REMOVE(&table->free, range, link);
	} else {
		assert(table->touched < table->limit); /* fence_room was asked */
		range = &table->ranges[table->touched++];
	}
	*range = *lost;
	if (range->place == FENCE_NO_PLACE)
		range->place = ++table->last_place;
	TAILQ_INSERT_TAIL(&table->held, range, link);
	table->count++;
	table->of_path[range->path]++;
	count_regions(table, range, 1);
	return range->place;
}

static void release(struct fence_table *table, struct fence_range *range)
{
	TAILQ_REMOVE(&table->held, range, link);
	TAILQ_INSERT_HEAD(&table->free, range, link);
	assert(table->count > 0 && table->of_path[range->path] > 0);
	table->count--;
	table->of_path[range->path]--;
	count_regions(table, range, -1);
}

static bool regions_clear(const struct fence_table *table, uint64_t offset_bytes,
			  uint64_t length_bytes)
{
	uint64_t first;
	unsigned count = regions_of(offset_bytes, length_bytes, &first);

	for (unsigned i = 0; i < count; i++)
		if (table->regions[(first + i) % FENCE_REGIONS])
			return false;
	return true;
}

bool fence_blocks(const struct fence_table *table, uint64_t offset_bytes, uint64_t length_bytes,
		  uint64_t place)
{
	const struct fence_range *range;

	if (regions_clear(table, offset_bytes, length_bytes))
		return false;
	TAILQ_FOREACH (range, &table->held, link)
		if (range->place < place && range->offset_bytes < offset_bytes + length_bytes &&
		    offset_bytes < range->offset_bytes + range->length_bytes)
			return true;
	return false;
}

unsigned fence_free_nexus(struct fence_table *table, unsigned path, uint64_t key)
{
	struct fence_range *range, *next;
	unsigned freed = 0;

	for (range = TAILQ_FIRST(&table->held); range && table->of_path[path]; range = next) {
		next = TAILQ_NEXT(range, link);
		if (range->path != path || range->key != key)
			continue;
		release(table, range);
		freed++;
	}
	return freed;
}

unsigned fence_free_older(struct fence_table *table, uint64_t lost_before_ns)
{
	struct fence_range *range;
	unsigned freed = 0;

	while ((range = TAILQ_FIRST(&table->held)) && range->lost_ns <= lost_before_ns) {
		release(table, range);
		freed++;
	}
	return freed;
}

const struct fence_range *fence_oldest_of(const struct fence_table *table, unsigned path)
{
	const struct fence_range *range;

	if (table->of_path[path] == 0)
		return NULL;
	TAILQ_FOREACH (range, &table->held, link)
		if (range->path == path)
			return range;
	return NULL;
}
