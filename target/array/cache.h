/* SPDX-License-Identifier: MIT
 *
 * A member's controller cache: a layer between the member and its RAID set.
 *
 * Write-back: a write is done when it is in battery-backed memory (drive/nvram.h), which survives
 * kill -9 with a file store and, as real controllers' memory does, counts as stable: FUA and FLUSH
 * make it durable against a crash of the host as well (nvram_sync), nothing more.  Dirty pages are
 * destaged in stripe order, whole stripes first, as fast as the fill between the watermarks asks.
 * A record leaves the memory only after the set below has been flushed.
 *
 * Write-through: without a mirror (second controller) or a battery; what is dirty is destaged at
 * once, writes end when the set has them, and FUA and FLUSH go down.
 *
 * Reads are served from what is dirty or clean; misses, prefetched streams and destaged pages stay
 * under ARC (cache_arc.h).  When there is no room a write waits, it never fails for that.
 *
 * Threading: the loop's thread.  Ownership: the opener's; the layer below is not freed with it.
 */
#ifndef SANLAB_TARGET_ARRAY_CACHE_H
#define SANLAB_TARGET_ARRAY_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/io.h"
#include "base/loop.h"
#include "target/drive/nvram.h"

/* Controller time with `timing: modelled`.  No paper states these; all are assumed, of the order
 * that dual-controller arrays of 2010 to 2016 show for a cache hit at queue depth 1 without the
 * network.  A command occupies the controller for CACHE_BUSY_NS and the transfer; the rest of its
 * latency overlaps with that of others. */
#define CACHE_READ_HIT_NS UINT64_C(100000)     /* assumed: decode, look-up, set up the transfer */
#define CACHE_WRITE_NS	  UINT64_C(180000)     /* assumed: the same and the copy to the mirror */
#define CACHE_BUSY_NS	  UINT64_C(10000)      /* assumed: 100,000 commands a second */
#define CACHE_BYTES_PER_S UINT64_C(1500000000) /* assumed: memory and back-end bus */

enum cache_mode { CACHE_NONE, CACHE_WRITE_BACK, CACHE_WRITE_THROUGH };
extern const char *const cache_mode_names[]; /* "none", "write-back", "write-through", NULL */

struct cache_config {
	const char *name; /* the member's; the memory is NAME-cache.nvram */
	uint64_t size_bytes;
	enum cache_mode mode;
	bool read;     /* keep what was read */
	bool prefetch; /* read ahead of sequential streams */
	uint64_t chunk_bytes;
	uint64_t stripe_bytes; /* data of a whole stripe: a multiple of the chunk */
	bool hollow;	       /* the set keeps nothing: nor does the cache */
	bool modelled;	       /* hits and write-back completions cost controller time */
	const char *place;     /* directory of the file store, or NULL */
	/* With a PLACE: whose the memory must be, and since when (nvram_claim). */
	const uint8_t *owner;
	uint64_t committed, start;
	bool needed; /* it may hold what the set has not: it must be there */
	bool fresh;  /* the set below is new: what the memory holds is not its own */
	/* In place of a memory of the cache's own, and kept by the caller (a simulated crash). */
	struct nvram *nvram;
};

/* uint64_t only: status names them by a table. */
struct cache_counters {
	uint64_t read_hits, read_partial_hits, read_misses; /* requests */
	uint64_t read_hit_bytes, read_miss_bytes;
	uint64_t write_back, write_through; /* requests */
	uint64_t overwritten_bytes;	    /* dirty bytes that were written again before destage */
	uint64_t write_waits;		    /* writes that found no room and waited */
	uint64_t page_waits;		    /* requests that waited for a page on its way down */
	uint64_t prefetched_bytes, prefetch_used_bytes;
	uint64_t destages, destaged_bytes; /* writes to the set */
	uint64_t full_stripes;		   /* of them: whole stripes */
	uint64_t full_stripe_bytes;
	uint64_t destage_errors;
	uint64_t flushes_below;
	uint64_t evictions;
	uint64_t recovered_bytes; /* dirty content found when the member was opened */
	uint64_t torn_records;	  /* an update the crash cut short; its write was never answered */
	uint64_t lost_bytes;	  /* dirty content found damaged: gone */
	uint64_t lost_records;	  /* records found damaged: what they held is unknown */
};

struct cache_status {
	enum cache_mode configured, in_force;
	const char *why; /* "configured", "mirror lost", "battery lost", "records cannot be kept" */
	bool mirrored, battery;
	uint64_t size_bytes, page_bytes;
	uint64_t dirty_bytes;  /* not yet in the set */
	uint64_t failed_bytes; /* of them: the set refused them; they are tried again */
	uint64_t valid_bytes;  /* all that can be read from the cache */
	uint64_t waiting;      /* requests that wait for room */
	struct cache_counters counters;
};

struct cache;

/* Opens the cache over BELOW.  Dirty content of a former life is adopted and destaged.  -EINVAL,
 * -ENOMEM, or the memory's error, with ERR. */
int cache_open(struct loop *loop, const struct cache_config *config, struct io_layer *below,
	       struct cache **ret_cache, struct err *err);
/* Destages what the set takes, and ends what waits (-ENODEV when it must): afterwards nothing is
 * in flight.  The layers below complete at once by then (drive_drain). */
void cache_drain(struct cache *cache);
/* The controller stops dead, its memory as it is: nothing more is sent or recorded, what is under
 * way ends with -ENODEV.  For simulated crashes: what was answered must be there when the memory
 * (cache_config.nvram, kept) is opened again. */
void cache_halt(struct cache *cache);
/* An orderly end: its memory takes part in the number START as well (nvram_claim). */
int cache_claim(struct cache *cache, const uint8_t *owner, uint64_t committed, uint64_t start,
		struct err *err);
struct cache *cache_close(struct cache *cache); /* NULL is fine */
/* Where no cache is configured: tells whether a memory of that name holds dirty content, then it
 * must be opened all the same.  A clean one is only claimed, so that it does not grow old. */
int cache_left_dirty(const struct cache_config *config, bool *ret_dirty, struct err *err);

struct io_layer *cache_layer(struct cache *cache);
void cache_set_mirrored(struct cache *cache, bool mirrored);
void cache_set_battery(struct cache *cache, bool good);
void cache_status(const struct cache *cache, struct cache_status *ret_status);

#endif
