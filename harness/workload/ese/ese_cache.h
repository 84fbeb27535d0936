/* SPDX-License-Identifier: MIT
 *
 * The page cache of a server, shared by its databases: LRU-2 with history, as ESE's.
 *
 * Pages seen once leave first, in the order in which they were seen; of the others the one whose
 * last but one use is oldest.  Uses within the correlation interval count as one.  What has left
 * is remembered for a while, so that a page that comes back soon counts as seen twice.
 *
 * The cache grows with the faults up to its maximum (and never shrinks).  Then a pool of free
 * frames is kept between two marks: below the low mark the writer takes victims until the high mark
 * is reached; clean ones are free at once, dirty ones when they have been written.  Who faults
 * while no frame is free waits: a page-fault stall.
 *
 * Pure: no I/O, no clock (the time is handed in), no chance.  One thread.  Ownership: frames are
 * the cache's; a frame's image is valid while the frame is `present`.  Bounds: max_pages frames,
 * history_max remembered pages.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_CACHE_H
#define SANLAB_HARNESS_WORKLOAD_ESE_CACHE_H

#include "harness/workload/ese/ese_image.h"

enum { ESE_CACHE_DATABASES_MAX = 256 };

struct ese_cache_config {
	uint32_t max_pages;
	double low_share, high_share; /* of max_pages: 1 %, 2 % */
	uint64_t correlated_ns;	      /* 128 ms */
	uint64_t history_ns;	      /* how long a page that left is remembered */
	uint32_t history_max;	      /* 100,000 */
};

/* Who waits for a page or for a free frame; embedded in the waiter's object. */
struct ese_page_waiter {
	struct ese_page_waiter *next;
	/* 0: look again; else why the page could not be had. */
	void (*step)(struct ese_page_waiter *waiter, int status);
};
struct ese_page_waiters {
	struct ese_page_waiter *first, *last;
};
void ese_page_wait(struct ese_page_waiters *list, struct ese_page_waiter *waiter);
void ese_page_wait_first(struct ese_page_waiters *list, struct ese_page_waiter *waiter);
struct ese_page_waiter *ese_page_wake(struct ese_page_waiters *list); /* NULL: nobody waits */

struct ese_frame {
	struct ese_image image;
	uint64_t last_ns, before_ns; /* uses; before_ns 0: seen once */
	/* Oldest update that is not on the volume yet, newest: the write-ahead rule.  Log streams
	 * are per database. */
	uint64_t lgpos_first, lgpos_last;
	uint64_t dbtime_first;			   /* of the update at lgpos_first */
	struct ese_page_waiters waiters;	   /* for the read, in order */
	struct ese_frame *order_prev, *order_next; /* seen once; or the free list */
	struct ese_frame *dirty_prev, *dirty_next;
	struct ese_frame *queue_prev, *queue_next; /* the writer's: victims in turn */
	uint32_t hash_next;
	uint32_t heap_slot; /* seen twice: place in the heap + 1 */
	uint32_t page;
	uint16_t pins; /* by operations under way */
	uint8_t db;
	bool present; /* false: being read */
	bool pinned;  /* for good: nodes above the parents of leaves */
	bool dirty;
	bool writing; /* a write is under way; what is dirtied meanwhile is dirty again */
	bool leaves;  /* taken as a victim: free when written, unless used again */
	bool preread; /* came with another page; nobody has asked for it yet */
	bool queued;
	/* Redo: torn by a crash, waits for an update that makes it whole; 1 + enum mismatch_kind.
	 */
	uint8_t unreadable;
};

struct ese_cache_db_counters {
	uint64_t cached, dirty;	  /* pages now */
	uint64_t touches, faults; /* requests for pages; those that had to be read */
	uint64_t history_hits;
	uint64_t evicted;
	uint64_t dirtied; /* clean -> dirty */
};

struct ese_cache;

int ese_cache_new(const struct ese_cache_config *config, struct ese_cache **ret_cache);
struct ese_cache *ese_cache_free(struct ese_cache *cache);
/* A number for one more database.  -ENOSPC. */
int ese_cache_add_db(struct ese_cache *cache, void *owner);
void *ese_cache_owner(const struct ese_cache *cache, unsigned db);
/* Forgets all pages of DB, as when the power goes; none may be pinned, read or written. */
void ese_cache_drop_db(struct ese_cache *cache, unsigned db);
struct ese_image_pool *ese_cache_images(struct ese_cache *cache);

/* Frames in use and their bound: "Database Cache Size" is used * 32 KiB. */
uint32_t ese_cache_used(const struct ese_cache *cache);
uint32_t ese_cache_max(const struct ese_cache *cache);
uint32_t ese_cache_kept(const struct ese_cache *cache);	     /* frames that never leave */
uint32_t ese_cache_available(const struct ese_cache *cache); /* frames that a fault can have */
uint32_t ese_cache_low(const struct ese_cache *cache);	     /* the low mark */
uint64_t ese_cache_stalls(const struct ese_cache *cache);    /* faults that found none */
const struct ese_cache_db_counters *ese_cache_counters(const struct ese_cache *cache, unsigned db);

/* NULL: not there (the background scan leaves out what is there). */
struct ese_frame *ese_cache_find(const struct ese_cache *cache, unsigned db, uint32_t page);
/* A use of a frame. */
void ese_cache_touch(struct ese_cache *cache, struct ese_frame *frame, uint64_t now_ns);
/* A frame for a page that is not there: to be read (or made); NULL: none is free. */
struct ese_frame *ese_cache_take(struct ese_cache *cache, unsigned db, uint32_t page,
				 uint64_t now_ns);
/* The frame's image is there: it takes part in the order.  KEEP: it never leaves. */
void ese_cache_arrived(struct ese_cache *cache, struct ese_frame *frame, bool keep);
/* From now on it never leaves, or may leave again. */
void ese_cache_keep(struct ese_cache *cache, struct ese_frame *frame, bool keep);
/* The read failed: as if it had never been. */
void ese_cache_give_up(struct ese_cache *cache, struct ese_frame *frame);

/* An update at LGPOS .. LGPOS_END has changed the frame's image (and given it its dbtime). */
void ese_cache_dirty(struct ese_cache *cache, struct ese_frame *frame, uint64_t lgpos,
		     uint64_t lgpos_end);
/* A write of the frame begins (it is clean from now on; a clean neighbour may be written too) and
 * ends.  A write that failed leaves it dirty as it was before. */
void ese_cache_write_begin(struct ese_cache *cache, struct ese_frame *frame);
struct ese_dirt {
	uint64_t lgpos_first, lgpos_last, dbtime_first;
};
void ese_cache_write_end(struct ese_cache *cache, struct ese_frame *frame, bool written,
			 const struct ese_dirt *before);
/* The dirty frame of DB with the oldest lgpos_first, and the next; NULL: none. */
struct ese_frame *ese_cache_oldest(const struct ese_cache *cache, unsigned db);

/* Those for whom there was no free frame, in order.  The first one is privileged until it ends: it
 * may hold what it has while it waits, so that somebody gets on however small the cache is. */
struct ese_cache_line {
	struct ese_page_waiters waiters;
	const struct ese_page_waiter *privileged, *stepping;
};
struct ese_cache_line *ese_cache_line(struct ese_cache *cache);

/* True below the low mark until the high mark is reached again, those on their way counted. */
bool ese_cache_wants_victims(struct ese_cache *cache);
enum ese_victim { ESE_VICTIM_NONE, ESE_VICTIM_FREED, ESE_VICTIM_DIRTY };
/* The next victim.  A clean one has left already (FREED).  A dirty one (*ret_frame) is marked
 * `leaves`: it is free when it has been written, unless it is used before.  NONE: nothing can
 * leave now. */
enum ese_victim ese_cache_victim(struct ese_cache *cache, uint64_t now_ns,
				 struct ese_frame **ret_frame);
/* A dirty victim cannot be written now: back into the order. */
void ese_cache_spare(struct ese_cache *cache, struct ese_frame *frame);

#endif
