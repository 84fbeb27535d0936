/* SPDX-License-Identifier: MIT
 *
 * Which page to give up: ARC (Megiddo and Modha, FAST 2003).  Pages seen once are in T1, pages seen
 * again in T2; the pages that lately left either are remembered (ghosts), and a return of one
 * shifts the target between the two.  A scan passes through T1 and leaves T2 alone.
 *
 * Frames are numbers below the capacity.  A frame that cannot be given up at the moment (dirty, in
 * use) stays counted in its list but is not linked, so that a victim is found at once.
 *
 * Pure.  Threading: none.  Bounds: as many ghosts of either kind as frames.
 */
#ifndef SANLAB_TARGET_ARRAY_CACHE_ARC_H
#define SANLAB_TARGET_ARRAY_CACHE_ARC_H

#include <stdbool.h>
#include <stdint.h>

#define ARC_NONE UINT32_MAX

enum arc_list_kind { ARC_ONCE, ARC_OFTEN, ARC_LISTS };

struct arc_list {
	uint32_t head, tail; /* most and least recently used */
	uint32_t count;	     /* linked or not */
};

struct arc_node {
	uint32_t newer, older;
	uint8_t list; /* enum arc_list_kind; ARC_LISTS: not resident */
	bool linked;
};

struct arc_ghost {
	uint64_t page;
	uint32_t hash_next;
	bool used;
};

/* Those that left, oldest first: a ring and a hash over it. */
struct arc_ghosts {
	struct arc_ghost *ring;
	uint32_t next, count;
	uint32_t *buckets;
};

struct arc {
	uint32_t capacity;
	uint32_t bucket_mask;
	uint32_t target; /* frames that T1 should have */
	struct arc_node *nodes;
	struct arc_list lists[ARC_LISTS];
	struct arc_ghosts ghosts[ARC_LISTS];
};

int arc_init(struct arc *arc, uint32_t capacity); /* -ENOMEM */
void arc_done(struct arc *arc);

/* FRAME holds PAGE from now on, and is not linked. */
void arc_enter(struct arc *arc, uint32_t frame, uint64_t page);
/* FRAME was used again. */
void arc_hit(struct arc *arc, uint32_t frame);
/* FRAME can be given up: as the last of its list, or (COLD) as the first. */
void arc_link(struct arc *arc, uint32_t frame, bool cold);
void arc_unlink(struct arc *arc, uint32_t frame);
/* The frame to give up; ARC_NONE. */
uint32_t arc_victim(const struct arc *arc);
/* FRAME no longer holds PAGE; REMEMBER it as given up for room. */
void arc_leave(struct arc *arc, uint32_t frame, uint64_t page, bool remember);

#endif
