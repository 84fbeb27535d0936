/* SPDX-License-Identifier: MIT
 *
 * The flush map in memory and the coding of its pages.  See ese_flush_map.h.
 */
#include "harness/workload/ese/ese_flush_map.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"

#define MAP_MAGIC UINT32_C(0x45534546) /* "ESEF" */

enum { AT_MAGIC = 4, AT_CREATION = 8, AT_DATABASE = 24, AT_MAP_PAGE = 32 };

static uint64_t words_of(uint64_t bits)
{
	return (bits + 63) / 64;
}

static void bit_set(uint64_t *bitmap, uint64_t bit)
{
	bitmap[bit / 64] |= UINT64_C(1) << bit % 64;
}

static void bit_clear(uint64_t *bitmap, uint64_t bit)
{
	bitmap[bit / 64] &= ~(UINT64_C(1) << bit % 64);
}

int ese_flush_map_init(struct ese_flush_map *map, const struct ese_identity *identity,
		       uint64_t pages)
{
	assert(pages > 0);
	*map = (struct ese_flush_map){
	    .identity = *identity,
	    .pages = pages,
	    .map_pages = ese_flush_map_bytes(pages) / ESE_MAP_PAGE_BYTES,
	    .stride = ESE_FLUSH_STRIDE,
	};
	/* What is never touched stays zero pages of the kernel. */
	map->flush = calloc(pages, 1);
	map->unsure = calloc(words_of(pages), sizeof *map->unsure);
	map->dirty = calloc(words_of(map->map_pages), sizeof *map->dirty);
	if (map->flush && map->unsure && map->dirty)
		return 0;
	ese_flush_map_done(map);
	return -ENOMEM;
}

void ese_flush_map_done(struct ese_flush_map *map)
{
	free(map->flush);
	free(map->unsure);
	free(map->dirty);
	map->flush = NULL;
	map->unsure = map->dirty = NULL;
}

static void mark_dirty(struct ese_flush_map *map, uint64_t map_page)
{
	if (ese_flush_map_dirty(map, map_page))
		return;
	bit_set(map->dirty, map_page);
	map->dirty_count++;
}

void ese_flush_map_set_dirty(struct ese_flush_map *map, uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++)
		mark_dirty(map, i);
}

void ese_flush_map_set_clean(struct ese_flush_map *map, uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++) {
		map->dirty_count -= ese_flush_map_dirty(map, i);
		bit_clear(map->dirty, i);
	}
}

/* What lies there of an earlier creation began with another number, most likely. */
static uint8_t first_flush(const struct ese_flush_map *map, uint64_t page)
{
	uint64_t v = (get_be64(map->identity.creation) ^ page) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint8_t)((v >> 32) % ESE_FLUSH_LAST + 1);
}

uint8_t ese_flush_map_begin(struct ese_flush_map *map, uint64_t page)
{
	uint8_t last = map->flush[page];
	/* A number that a failed write may have left on the volume must not be taken again. */
	uint64_t step =
	    ese_flush_map_unsure(map, page) ? map->stride + 1 + map->failures % 100 : map->stride;

	assert(page < map->pages);
	bit_set(map->unsure, page);
	if (last == ESE_FLUSH_NEVER || last == ESE_FLUSH_BORN || last == ESE_FLUSH_UNKNOWN)
		last = first_flush(map, page);
	return (uint8_t)((last - 1 + step) % ESE_FLUSH_LAST + 1);
}

static void put(struct ese_flush_map *map, uint64_t page, uint8_t flush)
{
	if (map->flush[page] == flush)
		return;
	map->flush[page] = flush;
	mark_dirty(map, page / ESE_MAP_ENTRIES);
}

void ese_flush_map_end(struct ese_flush_map *map, uint64_t page, uint8_t flush, bool acknowledged)
{
	assert(ese_flush_map_unsure(map, page));
	if (!acknowledged) {
		map->failures++;
		return;
	}
	bit_clear(map->unsure, page);
	put(map, page, flush);
}

void ese_flush_map_adopt(struct ese_flush_map *map, uint64_t page, uint8_t flush)
{
	put(map, page, flush);
}

static uint64_t entries_of(const struct ese_flush_map *map, uint64_t map_page)
{
	return MIN_OF(ESE_MAP_ENTRIES, map->pages - map_page * ESE_MAP_ENTRIES);
}

void ese_flush_map_encode(const struct ese_flush_map *map, uint64_t map_page, void *buf)
{
	uint8_t *bytes = buf;
	uint64_t entries = entries_of(map, map_page);

	memset(bytes, 0, ESE_MAP_HEADER_BYTES);
	put_be32(bytes + AT_MAGIC, MAP_MAGIC);
	memcpy(bytes + AT_CREATION, map->identity.creation, sizeof map->identity.creation);
	put_be32(bytes + AT_DATABASE, map->identity.database);
	put_be64(bytes + AT_MAP_PAGE, map_page);
	memcpy(bytes + ESE_MAP_HEADER_BYTES, map->flush + map_page * ESE_MAP_ENTRIES, entries);
	memset(bytes + ESE_MAP_HEADER_BYTES + entries, 0, ESE_MAP_ENTRIES - entries);
	put_be32(bytes, crc32c(0, bytes + AT_MAGIC, ESE_MAP_PAGE_BYTES - AT_MAGIC));
}

static bool is_zero(const uint8_t *bytes)
{
	return get_be64(bytes) == 0 && memcmp(bytes, bytes + 8, ESE_MAP_PAGE_BYTES - 8) == 0;
}

static bool is_ours(const struct ese_flush_map *map, uint64_t map_page, const uint8_t *bytes)
{
	return get_be32(bytes + AT_MAGIC) == MAP_MAGIC &&
	       get_be32(bytes) == crc32c(0, bytes + AT_MAGIC, ESE_MAP_PAGE_BYTES - AT_MAGIC) &&
	       memcmp(bytes + AT_CREATION, map->identity.creation, sizeof map->identity.creation) ==
		   0 &&
	       get_be32(bytes + AT_DATABASE) == map->identity.database &&
	       get_be64(bytes + AT_MAP_PAGE) == map_page;
}

int ese_flush_map_decode(struct ese_flush_map *map, uint64_t map_page, const void *buf)
{
	uint8_t *entry = map->flush + map_page * ESE_MAP_ENTRIES;
	const uint8_t *bytes = buf;
	uint64_t entries = entries_of(map, map_page);

	if (is_zero(bytes)) {
		/* Only what is not so already is touched: the map stays sparse. */
		if (entry[0] || memcmp(entry, entry + 1, entries - 1) != 0)
			memset(entry, ESE_FLUSH_NEVER, entries);
		return 0;
	}
	if (is_ours(map, map_page, bytes)) {
		memcpy(entry, bytes + ESE_MAP_HEADER_BYTES, entries);
		return 0;
	}
	memset(entry, ESE_FLUSH_UNKNOWN, entries);
	mark_dirty(map, map_page);
	return -EBADMSG;
}
