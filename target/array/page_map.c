/* SPDX-License-Identifier: MIT
 *
 * The page map: storage and runs.
 */
#include "target/array/page_map.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "target/array/array.h"

int page_map_init(struct page_map *map, uint64_t size_bytes)
{
	uint64_t count = (size_bytes + POOL_PAGE_BYTES - 1) / POOL_PAGE_BYTES;
	if (count == 0 || count >= PAGE_NONE)
		return -EINVAL;
	struct page_entry *entries = calloc(count, sizeof *entries);
	if (!entries)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++)
		entries[i].page = PAGE_NONE;
	*map = (struct page_map){.entries = entries, .count = (uint32_t)count};
	return 0;
}

void page_map_done(struct page_map *map)
{
	free(map->entries);
	*map = (struct page_map){0};
}

static bool continues(const struct page_entry *before, const struct page_entry *entry)
{
	if (before->page == PAGE_NONE || entry->page == PAGE_NONE)
		return before->page == entry->page;
	return before->member == entry->member && before->page + 1 == entry->page;
}

struct page_extent page_map_extent(const struct page_map *map, uint64_t offset, uint64_t length)
{
	uint32_t first = (uint32_t)(offset / POOL_PAGE_BYTES);
	uint64_t within = offset - first * POOL_PAGE_BYTES;
	const struct page_entry *entry = &map->entries[first];
	uint64_t run = MIN_OF(length, POOL_PAGE_BYTES - within);
	uint32_t count = 1;

	while (run < length && continues(entry + count - 1, entry + count)) {
		run += MIN_OF(length - run, POOL_PAGE_BYTES);
		count++;
	}
	return (struct page_extent){
	    .mapped = entry->page != PAGE_NONE,
	    .member = entry->member,
	    .offset_bytes = entry->page == PAGE_NONE ? 0 : entry->page * POOL_PAGE_BYTES + within,
	    .length_bytes = run,
	    .first = first,
	    .count = count,
	};
}
