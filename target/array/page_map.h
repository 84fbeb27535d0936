/* SPDX-License-Identifier: MIT
 *
 * A volume's page map: for each 15 MiB page of the volume, the member and the page there, or
 * nothing.  Pure: it finds places and cuts requests at page borders, and does no I/O.
 */
#ifndef SANLAB_TARGET_ARRAY_PAGE_MAP_H
#define SANLAB_TARGET_ARRAY_PAGE_MAP_H

#include <stdbool.h>
#include <stdint.h>

#define PAGE_NONE UINT32_MAX

/* May a request begin on the page? */
enum page_access {
	PAGE_OPEN,
	PAGE_CLOSED, /* being given back, or about to be switched to another member: it waits */
	PAGE_FROZEN, /* reads only: nobody knows which place opening would find */
};

struct page_entry {
	uint32_t page;	      /* of the member, or PAGE_NONE */
	uint8_t member;	      /* index in the pool */
	unsigned leaving : 2; /* enum page_access */
	unsigned pinned : 1;  /* never given back: an older claim could not be withdrawn */
	unsigned moving : 5;  /* number of the move under way, or 0 */
	uint16_t in_flight;   /* requests on it */
	uint16_t generation;  /* as in the page journal */
	uint16_t heat;	      /* requests, halved at each round of the balancer */
};
_Static_assert(sizeof(struct page_entry) == 12, "64 TiB have 4.5 million of them");

struct page_map {
	struct page_entry *entries;
	uint32_t count;
	uint32_t mapped;
};

/* A run of a request that is on adjacent pages of one member, or on none. */
struct page_extent {
	bool mapped;
	unsigned member;
	uint64_t offset_bytes; /* on the member */
	uint64_t length_bytes;
	uint32_t first, count; /* the volume's pages it touches */
};

/* A request was on the pages. */
static inline void page_map_warm(struct page_map *map, uint32_t first, uint32_t count)
{
	for (struct page_entry *entry = &map->entries[first]; count > 0; count--, entry++)
		entry->heat += entry->heat < UINT16_MAX;
}

int page_map_init(struct page_map *map, uint64_t size_bytes);
void page_map_done(struct page_map *map);
/* The run that begins at OFFSET, at most LENGTH (> 0) bytes. */
struct page_extent page_map_extent(const struct page_map *map, uint64_t offset, uint64_t length);

#endif
