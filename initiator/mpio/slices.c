/* SPDX-License-Identifier: MIT
 *
 * The slice map: runs of blocks in order, each with a set of owners; the sets stand once.
 */
#include "initiator/mpio/slices.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

enum {
	HEADER_BYTES = 4,
	SEGMENT_BYTES = 20,
	GROUP_BYTES = 4,
	STATES = 16,
};

struct run {
	uint64_t end; /* the first block (while it is made) or byte (in use) behind it */
	uint16_t owners;
};

struct slice_set {
	struct run *runs;
	size_t count, room;
	struct slice_owners owners[SLICE_OWNERS_MAX];
	unsigned owners_count;
};

struct slice_map {
	struct slice_set sets[2], *used, *made;
};

int slice_map_new(struct slice_map **ret_map)
{
	struct slice_map *map = calloc(1, sizeof *map);

	if (!map)
		return -ENOMEM;
	map->used = &map->sets[0];
	map->made = &map->sets[1];
	*ret_map = map;
	return 0;
}

struct slice_map *slice_map_free(struct slice_map *map)
{
	if (map) {
		free(map->sets[0].runs);
		free(map->sets[1].runs);
	}
	free(map);
	return NULL;
}

void slice_map_begin(struct slice_map *map)
{
	map->made->count = 0;
	map->made->owners_count = 0;
}

/* Of the groups told for a segment those in the best access state. */
static void read_owners(const uint8_t *at, unsigned count, struct slice_owners *owners)
{
	/* Optimized before LBA dependent before non-optimized; whatever else is no owner. */
	static const uint8_t order[STATES] = {[0] = 3, [4] = 2, [1] = 1};
	uint8_t best = 1;

	owners->count = 0;
	for (unsigned i = 0; i < count; i++, at += GROUP_BYTES) {
		uint8_t mark = order[at[0] & 0x0f];

		if (mark > best)
			owners->count = 0;
		best = MAX_OF(best, mark);
		if (mark == best && owners->count < SLICE_GROUPS_MAX)
			owners->groups[owners->count++] = get_be16(at + 2);
	}
}

static bool same_owners(const struct slice_owners *a, const struct slice_owners *b)
{
	return a->count == b->count &&
	       memcmp(a->groups, b->groups, a->count * sizeof a->groups[0]) == 0;
}

static int find_owners(struct slice_set *set, const struct slice_owners *owners)
{
	for (unsigned i = 0; i < set->owners_count; i++)
		if (same_owners(&set->owners[i], owners))
			return (int)i;
	if (set->owners_count == SLICE_OWNERS_MAX)
		return -E2BIG;
	set->owners[set->owners_count] = *owners;
	return (int)set->owners_count++;
}

static int add_run(struct slice_set *set, uint64_t end, const struct slice_owners *owners)
{
	int index = find_owners(set, owners);

	if (index < 0)
		return index;
	if (set->count && set->runs[set->count - 1].owners == index) {
		set->runs[set->count - 1].end = end;
		return 0;
	}
	if (set->count == SLICE_RUNS_MAX)
		return -E2BIG;
	if (set->count == set->room) {
		size_t room = MAX_OF(set->room * 2, (size_t)64);
		struct run *grown = realloc(set->runs, room * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		set->runs = grown;
		set->room = room;
	}
	set->runs[set->count++] = (struct run){.end = end, .owners = (uint16_t)index};
	return 0;
}

int slice_map_add(struct slice_map *map, uint64_t lba, const uint8_t *data, size_t bytes,
		  uint64_t *ret_next_lba)
{
	uint64_t next = lba;
	size_t end;

	if (bytes < HEADER_BYTES)
		return -EPROTO;
	end = MIN_OF(bytes, (size_t)get_be32(data) + HEADER_BYTES);
	for (size_t at = HEADER_BYTES; at + SEGMENT_BYTES <= end;) {
		unsigned groups = data[at + 3];
		uint64_t first = get_be64(data + at + 4), last = get_be64(data + at + 12);
		struct slice_owners owners;
		int r;

		if (at + SEGMENT_BYTES + (size_t)groups * GROUP_BYTES > end)
			break; /* cut off by the allocation length: asked for again */
		/* Segments follow each other; the first may begin before what was asked for. */
		if (first > next || last < next || last == UINT64_MAX)
			return -EPROTO;
		read_owners(data + at + SEGMENT_BYTES, groups, &owners);
		r = add_run(map->made, last + 1, &owners);
		if (r < 0)
			return r;
		next = last + 1;
		at += SEGMENT_BYTES + (size_t)groups * GROUP_BYTES;
	}
	if (next == lba)
		return -EPROTO;
	*ret_next_lba = next;
	return 0;
}

void slice_map_commit(struct slice_map *map, uint32_t block_bytes)
{
	struct slice_set *old = map->used;

	for (size_t i = 0; i < map->made->count; i++)
		map->made->runs[i].end *= block_bytes;
	map->used = map->made;
	map->made = old;
}

void slice_map_clear(struct slice_map *map)
{
	map->used->count = 0;
}

size_t slice_map_runs(const struct slice_map *map)
{
	return map->used->count;
}

const struct slice_owners *slice_map_find(const struct slice_map *map, uint64_t offset_bytes)
{
	const struct slice_set *set = map ? map->used : NULL;
	size_t low = 0, high;

	if (!set || !set->count || offset_bytes >= set->runs[set->count - 1].end)
		return NULL;
	for (high = set->count - 1; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (offset_bytes < set->runs[middle].end)
			high = middle;
		else
			low = middle + 1;
	}
	if (!set->owners[set->runs[low].owners].count)
		return NULL;
	return &set->owners[set->runs[low].owners];
}
