/* SPDX-License-Identifier: MIT
 *
 * The controller cache, inside; private to its files:
 *   cache.c          the layer, requests, modes, the pump that carries on what can go on
 *   cache_open.c     opening, recovery, closing
 *   cache_frame.c    page frames: hash, allocation, states
 *   cache_read.c     reads, read-ahead
 *   cache_write.c    writes back and through
 *   cache_unmap.c    UNMAP
 *   cache_destage.c  dirty stripes to the set, flushes of the set
 *   pure: cache_arc, cache_stream, cache_plan, cache_record, cache_bits.h
 *
 * A page frame knows of each sector whether it is
 *   valid      the frame has the newest content
 *   dirty      and the set does not (within valid)
 *   unflushed  the set has it since its last flush only (within valid, not dirty)
 *   busy       on its way to the set: a write of it must wait, because the set may read it twice
 *   doomed     an UNMAP is under way; gone once that has succeeded, unless written anew
 *   poison     reads under way may bring what is no longer true: not to be kept
 *   pending    on its way into the frame, read ahead
 * The frame's record in the battery-backed memory names the dirty and the unflushed.
 *
 * What races with what
 *   write - destage of the sectors: the write waits for it.
 *   write - read miss: the frame is pinned while the set reads, so that the write's sectors are
 *           still valid when the read's content arrives, which then does not replace them.
 *   UNMAP - destage: UNMAP waits for what is under way, and what becomes dirty later waits for it.
 *   UNMAP - read miss: poison.
 *   write through - anything: its sectors are busy.  Where there are no frames for them, it bars
 *           what an UNMAP bars, and a frame that comes meanwhile keeps nothing that was read.
 *   page moves: the pool reads and writes members through this layer, like any other.
 */
#ifndef SANLAB_TARGET_ARRAY_CACHE_IMPL_H
#define SANLAB_TARGET_ARRAY_CACHE_IMPL_H

#include <stddef.h>
#include <sys/queue.h>

#include "target/array/cache.h"
#include "target/array/cache_arc.h"
#include "target/array/cache_bits.h"
#include "target/array/cache_plan.h"
#include "target/array/cache_record.h"
#include "target/array/cache_stream.h"
#include "target/array/part.h"
#include "target/drive/freelist.h"

#define CACHE_AGE_NS	     (UINT64_C(5) * 1000000000) /* dirty for so long at most; assumed */
#define CACHE_FLUSH_NS	     (UINT64_C(1) * 1000000000) /* unflushed for so long at most */
#define CACHE_RETRY_NS	     (UINT64_C(1) * 1000000000) /* after an error of the set */
#define CACHE_PAGE_MAX_BYTES (CACHE_BITS * CACHE_SECTOR_BYTES)

enum {
	CACHE_DESTAGES_MAX = 64,  /* writes under way */
	CACHE_SEGMENT_PAGES = 64, /* of a request at a time, where it needs the set */
	CACHE_REQUESTS_MAX = 65536,
	CACHE_AHEAD_BYTES = 256 << 10, /* one read ahead */
	CACHE_AHEAD_MAX = 32,	       /* under way */
};

struct cache_request;
TAILQ_HEAD(cache_request_list, cache_request);

struct cache_frame {
	uint64_t page;
	cache_bits valid, dirty, unflushed, busy, doomed, poison, pending;
	cache_bits zeros;   /* unmapped while reads were under way: that is what these get */
	cache_bits touched; /* asked for since it is here: asked for again, it is worth keeping */
	cache_bits ahead;   /* read ahead, and not yet asked for */
	uint64_t epoch;	    /* of the last destage, to be flushed */
	uint32_t hash_next; /* or the next free one */
	uint16_t pins;	    /* requests under way that need it */
	bool used;
	bool written; /* in the list of unflushed ones */
	TAILQ_ENTRY(cache_frame) written_entry;
	struct cache_request_list waiters;
};

TAILQ_HEAD(cache_frame_list, cache_frame);

struct cache_request {
	struct io io; /* to the layer below */
	struct cache *cache;
	struct io *parent;
	uint64_t at_bytes, end_bytes; /* what is left */
	uint64_t lo_bytes, hi_bytes;  /* what the set is working on */
	uint64_t segment_end_bytes;
	uint64_t pinned;		 /* bit: page of the segment, from lo on, that it holds */
	uint64_t began;			 /* what a flush covers */
	bool sequential;		 /* a read of a stream */
	bool ahead;			 /* a read ahead, of the cache's own */
	bool noted;			 /* by the streams */
	bool missed, hit;		 /* some of it was */
	bool through;			 /* a write that goes to the set itself */
	bool waited;			 /* counted as waiting for room */
	struct loop_timer timer;	 /* modelled controller time */
	struct cache_request_list *list; /* which it is in */
	TAILQ_ENTRY(cache_request) entry;
	struct iovec *heap;
	struct iovec slice[PART_SLICES];
};

struct cache_destage {
	struct io io;
	struct cache *cache;
	struct plan_stripe *stripe;
	struct iovec *iov; /* a page each */
	struct cache_destage *next;
};

struct cache_ahead {
	struct io io;
	struct cache *cache;
	struct iovec iov;
	uint8_t *buffer; /* CACHE_AHEAD_BYTES; NULL until first used */
	struct cache_ahead *next;
};

struct cache {
	struct io_layer layer;
	struct loop *loop;
	struct io_layer *below;
	char name[64];
	enum cache_mode configured;
	bool read, prefetch, modelled;
	bool mirrored, battery, records_good;
	bool through; /* mode in force */
	bool draining, halted;

	struct nvram *nvram, own_nvram;
	struct records records;
	uint32_t page_bytes, page_sectors, frame_count, dirty_limit, low_frames;
	uint32_t stripe_pages;
	struct cache_frame *frames;
	uint32_t *buckets, bucket_mask, free_frame;
	struct arc arc;
	struct plan plan;
	struct streams streams;

	uint32_t dirty_frames, unflushed_frames;
	uint64_t dirty_sectors, valid_sectors;
	struct cache_frame_list written; /* in order of epoch */

	struct freelist requests;
	struct io *overflow, **overflow_last; /* more than there are requests for */
	struct cache_request_list ready;      /* to go on */
	struct cache_request_list room;	      /* wait for a frame */
	struct cache_request *first_in_room;  /* tries again just now; nobody overtakes it */
	struct cache_request_list flushes;    /* wait until nothing is dirty */
	struct cache_request_list unmaps;     /* under way */
	struct cache_request_list passing;    /* writes through that lack a frame, under way */
	struct cache_request_list barred;     /* wait for an UNMAP or one of those */
	struct cache_request_list delayed;    /* modelled time */
	uint64_t controller_free_ns;

	struct cache_destage *destages, *idle_destages;
	unsigned destages_out;
	uint64_t sent_count; /* destages ever sent */
	struct iovec *destage_iov;
	struct plan_list failed; /* stripes the set refused */
	bool failing;		 /* and that was reported */
	struct cache_ahead *aheads, *idle_aheads;

	struct io flush;
	bool flush_out;
	uint64_t epoch, flush_epoch;
	uint64_t unflushed_since_ns, flush_retry_ns;
	uint64_t through_count, flush_through,
	    flushed_through; /* writes through; of them flushed */

	bool pumping, again;
	struct loop_timer timer;
	struct cache_counters counters;
};

/* A piece of a request: what of it lies on one page. */
struct cache_piece {
	uint64_t page;
	unsigned first, sectors;
	uint64_t bytes;
	cache_bits bits;
};

static inline struct cache_piece cache_piece_at(const struct cache *cache, uint64_t at,
						uint64_t end)
{
	uint64_t page = at / cache->page_bytes, within = at - page * cache->page_bytes;
	uint64_t left = cache->page_bytes - within;
	uint64_t bytes = end - at < left ? end - at : left;
	struct cache_piece piece = {
	    .page = page,
	    .first = (unsigned)(within / CACHE_SECTOR_BYTES),
	    .sectors = (unsigned)(bytes / CACHE_SECTOR_BYTES),
	    .bytes = bytes,
	};
	piece.bits = bits_range(piece.first, piece.sectors);
	return piece;
}

static inline uint32_t cache_frame_index(const struct cache *cache, const struct cache_frame *frame)
{
	return (uint32_t)(frame - cache->frames);
}

/* ---- cache_frame.c ---- */
struct cache_frame *cache_find(const struct cache *cache, uint64_t page);
/* A frame for PAGE, empty, pinned once by the caller; NULL: none can be given up. */
struct cache_frame *cache_frame_make(struct cache *cache, uint64_t page);
/* Takes the frame INDEX for PAGE at opening. */
struct cache_frame *cache_frame_adopt(struct cache *cache, uint32_t index, uint64_t page);
void cache_frame_pin(struct cache *cache, struct cache_frame *frame);
void cache_frame_unpin(struct cache *cache, struct cache_frame *frame);
/* After any change of its bits: it can be given up, or not, or is free. */
void cache_frame_settle(struct cache *cache, struct cache_frame *frame);
void cache_set_valid(struct cache *cache, struct cache_frame *frame, cache_bits bits);
void cache_clear_valid(struct cache *cache, struct cache_frame *frame, cache_bits bits);
void cache_set_dirty(struct cache *cache, struct cache_frame *frame, cache_bits bits);
void cache_clear_dirty(struct cache *cache, struct cache_frame *frame, cache_bits bits);
void cache_set_unflushed(struct cache *cache, struct cache_frame *frame, cache_bits bits);
void cache_clear_unflushed(struct cache *cache, struct cache_frame *frame, cache_bits bits);
/* The record of FRAME names what is dirty and unflushed from now on. */
void cache_frame_commit(struct cache *cache, struct cache_frame *frame);
/* Calls FN for the frames that hold anything of [LO, HI) until it returns false; so does this. */
bool cache_each_frame(struct cache *cache, uint64_t lo, uint64_t hi,
		      bool (*fn)(struct cache *cache, struct cache_frame *frame, cache_bits bits,
				 void *arg),
		      void *arg);

/* ---- cache.c ---- */
/* Carries REQUEST on, from where it stands. */
void cache_request_run(struct cache_request *request);
/* Ends it, after COST_NS of controller time when that is modelled. */
void cache_request_finish(struct cache_request *request, uint64_t cost_ns);
void cache_request_end(struct cache_request *request, int status);
void cache_request_wait(struct cache_request *request, struct cache_request_list *list);
void cache_request_leave(struct cache_request *request);
void cache_wake(struct cache *cache, struct cache_request_list *list); /* all may go on */
/* The part [lo, hi) of the parent goes down as it is. */
void cache_request_send(struct cache_request *request, void (*done)(struct io *io));
/* Does what has become possible; from within itself, later. */
void cache_pump(struct cache *cache);
void cache_mode_changed(struct cache *cache);

/* ---- requests, each of its kind ---- */
void cache_read(struct cache_request *request);
void cache_write(struct cache_request *request);
void cache_unmap(struct cache_request *request);
void cache_flush(struct cache_request *request);
/* Is an UNMAP, or a write through past the frames, under way in [LO, HI)? */
bool cache_bars(const struct cache *cache, uint64_t lo, uint64_t hi);

/* ---- cache_destage.c ---- */
void cache_destage_start(struct cache *cache);
void cache_flush_start(struct cache *cache);
/* When it next has something to do by itself. */
uint64_t cache_destage_due_ns(const struct cache *cache);
void cache_retry_failed(struct cache *cache, bool all);
void cache_release_range(struct cache *cache, uint64_t lo, uint64_t hi);
/* Nothing dirty can get away until the set recovers. */
bool cache_stuck(const struct cache *cache);
/* No room for writes comes before the set takes writes and flushes again. */
bool cache_full_for_long(const struct cache *cache);
uint64_t cache_failed_sectors(const struct cache *cache);

#endif
