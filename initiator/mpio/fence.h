/* SPDX-License-Identifier: MIT
 *
 * The ranges of lost writes whose old nexus is not yet proved dead.  Pure.
 *
 * A write that is lost gets a place in the order of losses and keeps it when it is lost again: all
 * its ranges carry that place.  It is held back by ranges of earlier places only; a write that was
 * never lost is held back by all of them.
 *
 * A range also knows the nexus it was lost with: the path and its key, which stands for initiator
 * port, target and target portal group.  A proof frees all ranges of one nexus, or all that are
 * older than some instant.
 *
 * Bounds: `limit` ranges.  Who sends a write reserves room for its loss (fence_room), so that
 * fence_add never fails.  Memory is touched as it is used.
 */
#ifndef SANLAB_INITIATOR_MPIO_FENCE_H
#define SANLAB_INITIATOR_MPIO_FENCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

enum {
	FENCE_PATHS_MAX = 64,
	FENCE_REGIONS = 1024, /* of FENCE_REGION_BYTES each, then again from the first */
	FENCE_REGION_SHIFT = 20,
};

#define FENCE_NO_PLACE UINT64_MAX /* a write that was never lost */

struct fence_range {
	uint64_t offset_bytes, length_bytes;
	uint64_t place;
	uint64_t lost_ns;
	uint64_t key;
	unsigned path;
	TAILQ_ENTRY(fence_range) link;
};
TAILQ_HEAD(fence_range_list, fence_range);

struct fence_table {
	struct fence_range *ranges;
	unsigned limit, touched, count;
	struct fence_range_list held, free; /* held: by lost_ns */
	uint64_t last_place;
	unsigned of_path[FENCE_PATHS_MAX];
	uint32_t regions[FENCE_REGIONS]; /* ranges that touch it: what few writes need to look at */
};

int fence_init(struct fence_table *table, unsigned limit);
void fence_done(struct fence_table *table);

/* Room for one more write besides IN_FLIGHT, each of which may be lost. */
static inline bool fence_room(const struct fence_table *table, uint64_t in_flight)
{
	return table->count + in_flight < table->limit;
}

/* PLACE: that of a write lost before, or FENCE_NO_PLACE.  Returns its place. */
uint64_t fence_add(struct fence_table *table, const struct fence_range *lost);

/* Must a write of that place wait? */
bool fence_blocks(const struct fence_table *table, uint64_t offset_bytes, uint64_t length_bytes,
		  uint64_t place);

/* Both return how many ranges were freed. */
unsigned fence_free_nexus(struct fence_table *table, unsigned path, uint64_t key);
unsigned fence_free_older(struct fence_table *table, uint64_t lost_before_ns);

/* The oldest range, or NULL. */
static inline const struct fence_range *fence_oldest(const struct fence_table *table)
{
	return TAILQ_FIRST(&table->held);
}
/* The oldest of PATH, or NULL. */
const struct fence_range *fence_oldest_of(const struct fence_table *table, unsigned path);

#endif
