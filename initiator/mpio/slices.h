/* SPDX-License-Identifier: MIT
 *
 * The slice map: which target port groups lead to a block without a hop inside the array.
 *
 * Pure: it is filled from the answers to REPORT REFERRALS (SBC-3 5.27), one after the other, and
 * then takes effect at once.  What it does not know anybody may own.  It is bounded: of a unit in
 * more runs than SLICE_RUNS_MAX the rest is unknown.
 */
#ifndef SANLAB_INITIATOR_MPIO_SLICES_H
#define SANLAB_INITIATOR_MPIO_SLICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SLICE_GROUPS_MAX = 16,	  /* target port groups that own one run */
	SLICE_OWNERS_MAX = 256,	  /* different sets of them */
	SLICE_RUNS_MAX = 1 << 19, /* 8 MiB */
};

struct slice_owners {
	unsigned count;
	uint16_t groups[SLICE_GROUPS_MAX];
};

struct slice_map;
int slice_map_new(struct slice_map **ret_map);
struct slice_map *slice_map_free(struct slice_map *map);

/* Begins a new map beside the one in use. */
void slice_map_begin(struct slice_map *map);
/* Adds the answer DATA to the request from block LBA on.  0: *ret_next_lba is where the next
 * request begins (beyond the end: all is told); -EPROTO: the answer is nonsense or leads nowhere;
 * -ENOMEM; -E2BIG: the map is full. */
int slice_map_add(struct slice_map *map, uint64_t lba, const uint8_t *data, size_t bytes,
		  uint64_t *ret_next_lba);
/* The new map takes effect; runs of one owner are one. */
void slice_map_commit(struct slice_map *map, uint32_t block_bytes);
void slice_map_clear(struct slice_map *map); /* nothing is known any more */
size_t slice_map_runs(const struct slice_map *map);

/* The owners of the block at OFFSET; NULL: not known.  MAP may be NULL.  Valid until commit. */
const struct slice_owners *slice_map_find(const struct slice_map *map, uint64_t offset_bytes);

static inline bool slice_owned_by(const struct slice_owners *owners, uint16_t group)
{
	for (unsigned i = 0; i < owners->count; i++)
		if (owners->groups[i] == group)
			return true;
	return false;
}

#endif
