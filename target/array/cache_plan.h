/* SPDX-License-Identifier: MIT
 *
 * What to destage next: the dirty stripes of a cache in order.
 *
 * A stripe with dirty sectors is known here.  Stripes that are dirty altogether go first, because
 * a parity level writes them without reading; then the others in ascending order from where the
 * last one was (one sweep of the arms after the other).  How many may be on their way at once
 * grows between the watermarks; below the low one only stripes that have been dirty for the age
 * bound go.  A stripe on its way, refused, or under an UNMAP is held: plan_next does not find it
 * until it is released.
 *
 * Pure: a treap by stripe number, whose priorities are hashes of the number.
 * Bounds: as many stripes as pages.
 */
#ifndef SANLAB_TARGET_ARRAY_CACHE_PLAN_H
#define SANLAB_TARGET_ARRAY_CACHE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "target/drive/freelist.h"

/* EMC's defaults for CLARiiON and VNX; others do not publish theirs. */
enum { CACHE_LOW_PERCENT = 60, CACHE_HIGH_PERCENT = 80 };

struct plan_stripe {
	uint64_t number;
	uint64_t since_ns; /* dirty since */
	uint32_t dirty;	   /* sectors */
	bool held, whole_queued;
	bool failed;	 /* the owner's: the set refused it */
	unsigned writes; /* the owner's: under way */
	struct plan_stripe *left, *right;
	TAILQ_ENTRY(plan_stripe) age_entry;   /* while not held */
	TAILQ_ENTRY(plan_stripe) whole_entry; /* while whole and not held */
};

TAILQ_HEAD(plan_list, plan_stripe);

struct plan {
	uint32_t stripe_sectors;
	uint64_t age_ns;
	uint64_t cursor;
	struct plan_stripe *ready, *held; /* roots */
	struct plan_list age, whole;
	struct freelist stripes;
};

void plan_init(struct plan *plan, uint32_t stripe_sectors, uint64_t age_ns, uint32_t stripes_max);
void plan_done(struct plan *plan);

/* NULL: nothing of it is dirty. */
struct plan_stripe *plan_find(const struct plan *plan, uint64_t number);
/* SECTORS more of the stripe became dirty. */
void plan_dirtied(struct plan *plan, uint64_t number, uint32_t sectors, uint64_t now_ns);
/* SECTORS of it are no longer dirty.  A stripe without any stays while it is held. */
void plan_cleaned(struct plan *plan, uint64_t number, uint32_t sectors);
void plan_hold(struct plan *plan, struct plan_stripe *stripe);
/* It can be found again, its age counted anew from NOW; or it goes, being clean. */
void plan_release(struct plan *plan, struct plan_stripe *stripe, uint64_t now_ns);

/* The first held one from NUMBER on; NULL. */
struct plan_stripe *plan_held_from(const struct plan *plan, uint64_t number);

/* How many stripes may be on their way with DIRTY of LIMIT pages dirty, MOST at most. */
unsigned plan_depth(uint64_t dirty, uint64_t limit, unsigned most);
/* The next to go; AGED_ONLY: only when it is old enough.  NULL: none. */
struct plan_stripe *plan_next(struct plan *plan, bool aged_only, uint64_t now_ns);
/* When the oldest comes of age; UINT64_MAX. */
uint64_t plan_due_ns(const struct plan *plan);

#endif
