/* SPDX-License-Identifier: MIT
 *
 * Inside of the cache; used by ese_cache.c (frames, history, dirty lists) and ese_cache_order.c
 * (who leaves next) only.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_CACHE_IMPL_H
#define SANLAB_HARNESS_WORKLOAD_ESE_CACHE_IMPL_H

#include "harness/workload/ese/ese_cache.h"

#define NO_INDEX UINT32_MAX

/* Keys may lag behind their frames' before_ns: they are put right when they come to the top. */
struct heap_slot {
	uint64_t key_ns;
	struct ese_frame *frame;
};

struct past_page {
	uint64_t last_ns;
	uint32_t page;
	uint32_t hash_next;
	uint8_t db;
	bool valid;
};

struct cache_db {
	struct ese_cache_db_counters counters;
	struct ese_frame *dirty_first, *dirty_last;
	void *owner;
};

struct ese_cache {
	struct ese_cache_config config;
	struct ese_image_pool *images;
	struct ese_frame *frames;
	uint32_t made; /* frames that have been in use */
	uint32_t used; /* frames in use */
	uint32_t leaving;
	uint32_t kept;
	uint32_t low, high;
	bool scavenging;
	uint64_t stalls;
	struct ese_cache_line line;
	struct ese_frame *free;

	uint32_t *hash, hash_mask;

	/* Seen once, oldest first. */
	struct ese_frame *once_first, *once_last;
	uint32_t once_count;
	struct heap_slot *heap;
	uint32_t heap_count;

	struct past_page *past;
	uint32_t past_next, *past_hash, past_mask;

	unsigned db_count;
	struct cache_db dbs[ESE_CACHE_DATABASES_MAX];
};

/* ese_cache_order.c: a present frame takes part, moves after a use, or does not any more. */
void order_enter(struct ese_cache *cache, struct ese_frame *frame);
void order_used(struct ese_cache *cache, struct ese_frame *frame, bool was_once);
void order_leave(struct ese_cache *cache, struct ese_frame *frame);
static inline bool order_has(const struct ese_cache *cache, const struct ese_frame *frame)
{
	return frame->heap_slot || frame->order_prev || cache->once_first == frame;
}

/* ese_cache.c: the page leaves the cache and is remembered. */
void cache_evict(struct ese_cache *cache, struct ese_frame *frame);

#endif
