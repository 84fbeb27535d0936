/* SPDX-License-Identifier: MIT
 *
 * Moves of pages from one member of a pool to another while they are in use; private to the room.
 *
 * One move: a page is taken on the new member (journal: coming), the content is copied piece by
 * piece (page_copy.h says why that is right), flushed, then the page is closed to new requests,
 * what is left is copied and flushed, and the map is switched (journal: own, with the next
 * generation).  Requests that came meanwhile go on, in the new place; the old page goes to the
 * cleaner.  Until the switch the old place alone counts, so a move can be abandoned at any time: by
 * an error, by a member that goes offline, by an UNMAP of the whole page, by a volume that needs
 * the space.
 *
 * Below the application: one run of pieces a move at a time; while requests come to one of the two
 * members, a move rests four times as long as its last run took; the rate limit of the pool counts
 * for all moves together.
 *
 * Bounds: MOVES_MAX under way.  Threading: the loop's thread.
 */
#ifndef SANLAB_TARGET_ARRAY_PAGE_MOVE_H
#define SANLAB_TARGET_ARRAY_PAGE_MOVE_H

#include "target/array/page_copy.h"
#include "target/array/volume.h"

enum { MOVES_MAX = 4 };

struct mover;

struct move_order {
	struct volume *volume;
	uint32_t index; /* the volume's page */
	unsigned from, to;
};

struct mover_owner {
	/* The next page to move; false: none at present. */
	bool (*next)(void *arg, struct move_order *ret_order);
	/* 0, -ECANCELED or what failed. */
	void (*ended)(void *arg, const struct move_order *order, int status);
	void *arg;
};

/* RATE: bytes a second that are copied at most; 0: no limit. */
int mover_open(struct loop *loop, struct pool *pool, uint64_t rate_bytes_per_s,
	       const struct mover_owner *owner, struct mover **ret_mover);
/* After mover_stop and after all requests have ended. */
struct mover *mover_close(struct mover *mover);
/* Abandons what is under way and begins nothing more; requests that waited for a page go on. */
void mover_stop(struct mover *mover);

void mover_kick(struct mover *mover); /* there may be orders */
void mover_pause(struct mover *mover, bool paused);
/* Pages of MEMBER that moves under way have taken. */
unsigned mover_pages_taken(const struct mover *mover, unsigned member);
bool mover_is_idle(const struct mover *mover);
void mover_counters(const struct mover *mover, struct pool_moves *ret_moves);

/* A write to a page that moves has ended; offset within the page. */
void mover_written(struct mover *mover, const struct page_entry *entry, uint64_t offset_bytes,
		   uint64_t length_bytes);
/* The move of the page is to be abandoned soon; the volume is woken when it has been. */
void mover_cancel(struct mover *mover, const struct page_entry *entry);
/* Some page of VOLUME that was closed for its switch is idle. */
void mover_page_idle(struct mover *mover, const struct volume *volume);
/* A volume needs space: gives up what has been taken for copies.  True when that or the cleaner
 * will bring some. */
bool mover_reclaim(struct mover *mover);

#endif
