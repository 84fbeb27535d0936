/* SPDX-License-Identifier: MIT
 *
 * The walk over all page maps of a pool, once a round: sums and halves the pages' heat, finds the
 * hottest, and, when a member is slow, which pages to swap.  Private to the room.
 *
 * In slices, so that a pool of 4.5 million pages (64 TiB) does not stop its loop.
 */
#ifndef SANLAB_TARGET_ARRAY_HEAT_SCAN_H
#define SANLAB_TARGET_ARRAY_HEAT_SCAN_H

#include "target/array/balance_plan.h"
#include "target/array/pool.h"

enum { HEAT_SLICE_PAGES = 32768 };

struct hot_page {
	const struct volume *volume;
	uint32_t index;
	uint16_t heat;
};

struct heat_scan {
	struct pool *pool;
	bool swapping; /* SLOW is valid, and swaps are wanted */
	unsigned slow;
	struct balance_load loads[POOL_MEMBERS_MAX];
	/* the place */
	unsigned volume;
	uint32_t page;
	/* of the volume at hand */
	uint64_t volume_heat;
	unsigned peer;
	struct balance_top hot, cold;
	/* results */
	uint64_t member_heat[POOL_MEMBERS_MAX];
	struct balance_swaps swaps;
	struct hot_page hottest[POOL_HOT_PAGES_MAX];
	unsigned hottest_count;
};

void heat_scan_begin(struct heat_scan *scan, struct pool *pool);
/* Goes on; true when the walk is over. */
bool heat_scan_slice(struct heat_scan *scan);

#endif
