/* SPDX-License-Identifier: MIT
 *
 * A small bounded set of byte ranges: sorted, disjoint, never touching.
 *
 * Threading: the owner's.  Units: whatever the owner counts; half-open [lo, hi).
 */
#ifndef SANLAB_TARGET_DRIVE_RANGE_SET_H
#define SANLAB_TARGET_DRIVE_RANGE_SET_H

#include <stdbool.h>
#include <stdint.h>

struct range {
	uint64_t lo, hi;
};

struct range_set {
	struct range *ranges; /* room for `limit`, the owner's */
	unsigned count, limit;
};

/* -ENOSPC: no room for one more. */
int range_set_add(struct range_set *set, uint64_t lo, uint64_t hi);
/* Takes [lo, hi) out.  A range that would fall in two when there is no room keeps only its longer
 * half; true when that was necessary. */
bool range_set_remove(struct range_set *set, uint64_t lo, uint64_t hi);
bool range_set_overlaps(const struct range_set *set, uint64_t lo, uint64_t hi);

#endif
