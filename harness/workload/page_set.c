/* SPDX-License-Identifier: MIT
 *
 * Generations, locks and doubts of pages.
 */
#include "harness/workload/page_set.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static bool bit_get(const uint64_t *map, uint64_t i)
{
	return map[i / 64] >> (i % 64) & 1;
}

static void bit_set(uint64_t *map, uint64_t i)
{
	map[i / 64] |= UINT64_C(1) << (i % 64);
}

static void bit_clear(uint64_t *map, uint64_t i)
{
	map[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

int page_set_init(struct page_set *set, uint64_t pages, bool unwritten_is_zero)
{
	uint64_t words = (pages + 63) / 64;

	*set = (struct page_set){.pages = pages, .unwritten_is_zero = unwritten_is_zero};
	set->generation = calloc(pages, sizeof *set->generation);
	set->low = calloc(pages, sizeof *set->low);
	set->locked = calloc(words, sizeof *set->locked);
	set->either = calloc(words, sizeof *set->either);
	if (!set->generation || !set->low || !set->locked || !set->either) {
		page_set_done(set);
		return -ENOMEM;
	}
	return 0;
}

void page_set_done(struct page_set *set)
{
	free(set->generation);
	free(set->low);
	free(set->locked);
	free(set->either);
	*set = (struct page_set){0};
}

uint64_t page_set_free_run(const struct page_set *set, uint64_t first, uint64_t count)
{
	assert(first + count <= set->pages);
	for (uint64_t i = 0; i < count; i++)
		if (bit_get(set->locked, first + i))
			return i;
	return count;
}

void page_set_lock(struct page_set *set, uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++) {
		assert(!bit_get(set->locked, i));
		bit_set(set->locked, i);
	}
}

void page_set_unlock(struct page_set *set, uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++) {
		assert(bit_get(set->locked, i));
		bit_clear(set->locked, i);
	}
}

bool page_set_is_tried(const struct page_set *set, uint64_t page)
{
	return set->generation[page] != 0;
}

bool page_set_is_written(const struct page_set *set, uint64_t page)
{
	if (bit_get(set->either, page))
		return set->low[page] != 0;
	return set->generation[page] != 0;
}

uint64_t page_set_write_begin(struct page_set *set, uint64_t page)
{
	assert(bit_get(set->locked, page));
	/* From here until the end the page holds the old or the new one. */
	if (!bit_get(set->either, page)) {
		set->low[page] = set->generation[page];
		bit_set(set->either, page);
	}
	assert(set->generation[page] < UINT32_MAX);
	return ++set->generation[page];
}

void page_set_write_end(struct page_set *set, uint64_t page, bool acknowledged)
{
	assert(bit_get(set->locked, page) && bit_get(set->either, page));
	if (!acknowledged)
		return;
	if (set->low[page] == 0)
		set->written++;
	bit_clear(set->either, page);
}

void page_set_expect(const struct page_set *set, uint64_t page, struct page_expect *ret_expect)
{
	ret_expect->high = set->generation[page];
	ret_expect->low = bit_get(set->either, page) ? set->low[page] : ret_expect->high;
	ret_expect->unwritten_is_zero = set->unwritten_is_zero;
}
