/* SPDX-License-Identifier: MIT
 *
 * The cache's frames, what it remembers of those that left, and which are dirty.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_cache_impl.h"

static uint32_t buckets_for(uint32_t entries)
{
	uint32_t buckets = 64;

	while (buckets < entries && buckets < UINT32_C(1) << 31)
		buckets *= 2;
	return buckets;
}

static uint32_t hash_of(unsigned db, uint32_t page)
{
	uint64_t x = ((uint64_t)db << 32 | page) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(x >> 32);
}

static uint32_t *table_new(uint32_t buckets)
{
	uint32_t *table = malloc(buckets * sizeof *table);

	if (table)
		memset(table, 0xff, buckets * sizeof *table);
	return table;
}

int ese_cache_new(const struct ese_cache_config *config, struct ese_cache **ret_cache)
{
	struct ese_cache *cache = calloc(1, sizeof *cache);
	uint32_t max = config->max_pages, past = MAX_OF(config->history_max, 1);

	if (!cache)
		return -ENOMEM;
	assert(max >= 8);
	cache->config = *config;
	cache->config.history_max = past;
	cache->low = MAX_OF((uint32_t)(config->low_share * max), 1);
	cache->high = MAX_OF((uint32_t)(config->high_share * max), cache->low + 1);
	cache->hash_mask = buckets_for(max) - 1;
	cache->past_mask = buckets_for(past) - 1;
	cache->images = ese_image_pool_new();
	cache->frames = calloc(max, sizeof *cache->frames);
	cache->heap = calloc(max, sizeof *cache->heap);
	cache->past = calloc(past, sizeof *cache->past);
	cache->hash = table_new(cache->hash_mask + 1);
	cache->past_hash = table_new(cache->past_mask + 1);
	if (!cache->images || !cache->frames || !cache->heap || !cache->past || !cache->hash ||
	    !cache->past_hash) {
		ese_cache_free(cache);
		return -ENOMEM;
	}
	*ret_cache = cache;
	return 0;
}

struct ese_cache *ese_cache_free(struct ese_cache *cache)
{
	if (!cache)
		return NULL;
	ese_image_pool_free(cache->images);
	free(cache->frames);
	free(cache->heap);
	free(cache->past);
	free(cache->hash);
	free(cache->past_hash);
	free(cache);
	return NULL;
}

int ese_cache_add_db(struct ese_cache *cache, void *owner)
{
	if (cache->db_count == ESE_CACHE_DATABASES_MAX)
		return -ENOSPC;
	cache->dbs[cache->db_count].owner = owner;
	return (int)cache->db_count++;
}

void *ese_cache_owner(const struct ese_cache *cache, unsigned db)
{
	return cache->dbs[db].owner;
}

struct ese_image_pool *ese_cache_images(struct ese_cache *cache)
{
	return cache->images;
}

uint32_t ese_cache_used(const struct ese_cache *cache)
{
	return cache->used;
}

uint32_t ese_cache_max(const struct ese_cache *cache)
{
	return cache->config.max_pages;
}

uint32_t ese_cache_kept(const struct ese_cache *cache)
{
	return cache->kept;
}

uint32_t ese_cache_available(const struct ese_cache *cache)
{
	return cache->config.max_pages - cache->used;
}

uint32_t ese_cache_low(const struct ese_cache *cache)
{
	return cache->low;
}

uint64_t ese_cache_stalls(const struct ese_cache *cache)
{
	return cache->stalls;
}

const struct ese_cache_db_counters *ese_cache_counters(const struct ese_cache *cache, unsigned db)
{
	return &cache->dbs[db].counters;
}

struct ese_cache_line *ese_cache_line(struct ese_cache *cache)
{
	return &cache->line;
}

/* ---- who waits ---- */

void ese_page_wait(struct ese_page_waiters *list, struct ese_page_waiter *waiter)
{
	waiter->next = NULL;
	if (list->first)
		list->last->next = waiter;
	else
		list->first = waiter;
	list->last = waiter;
}

void ese_page_wait_first(struct ese_page_waiters *list, struct ese_page_waiter *waiter)
{
	waiter->next = list->first;
	if (!list->first)
		list->last = waiter;
	list->first = waiter;
}

struct ese_page_waiter *ese_page_wake(struct ese_page_waiters *list)
{
	struct ese_page_waiter *waiter = list->first;

	if (waiter)
		list->first = waiter->next;
	return waiter;
}

/* ---- what has left ---- */

static void past_forget(struct ese_cache *cache, struct past_page *past)
{
	uint32_t *link = &cache->past_hash[hash_of(past->db, past->page) & cache->past_mask];

	while (&cache->past[*link] != past)
		link = &cache->past[*link].hash_next;
	*link = past->hash_next;
	past->valid = false;
}

static void past_add(struct ese_cache *cache, const struct ese_frame *frame)
{
	uint32_t at = cache->past_next;
	struct past_page *past = &cache->past[at];
	uint32_t *bucket;

	cache->past_next = (at + 1) % cache->config.history_max;
	if (past->valid)
		past_forget(cache, past);
	bucket = &cache->past_hash[hash_of(frame->db, frame->page) & cache->past_mask];
	*past = (struct past_page){
	    .last_ns = frame->last_ns,
	    .page = frame->page,
	    .db = frame->db,
	    .hash_next = *bucket,
	    .valid = true,
	};
	*bucket = at;
}

/* When the page was last used, if it is remembered; else 0. */
static uint64_t past_take(struct ese_cache *cache, unsigned db, uint32_t page, uint64_t now_ns)
{
	uint32_t at = cache->past_hash[hash_of(db, page) & cache->past_mask];

	while (at != NO_INDEX) {
		struct past_page *past = &cache->past[at];

		if (past->page == page && past->db == db) {
			uint64_t last_ns = past->last_ns;

			past_forget(cache, past);
			return now_ns - last_ns <= cache->config.history_ns ? last_ns : 0;
		}
		at = past->hash_next;
	}
	return 0;
}

/* ---- frames ---- */

struct ese_frame *ese_cache_find(const struct ese_cache *cache, unsigned db, uint32_t page)
{
	uint32_t at = cache->hash[hash_of(db, page) & cache->hash_mask];

	while (at != NO_INDEX) {
		struct ese_frame *frame = &cache->frames[at];

		if (frame->page == page && frame->db == db)
			return frame;
		at = frame->hash_next;
	}
	return NULL;
}

static struct ese_frame *frame_new(struct ese_cache *cache)
{
	struct ese_frame *frame = cache->free;

	if (frame) {
		cache->free = frame->order_next;
	} else {
		if (cache->made == cache->config.max_pages)
			return NULL;
		frame = &cache->frames[cache->made++];
	}
	cache->used++;
	return frame;
}

struct ese_frame *ese_cache_take(struct ese_cache *cache, unsigned db, uint32_t page,
				 uint64_t now_ns)
{
	struct ese_frame *frame = frame_new(cache);
	struct cache_db *owner = &cache->dbs[db];
	uint32_t *bucket;

	if (!frame) {
		cache->stalls++;
		return NULL;
	}
	bucket = &cache->hash[hash_of(db, page) & cache->hash_mask];
	*frame = (struct ese_frame){
	    .last_ns = now_ns,
	    .before_ns = past_take(cache, db, page, now_ns),
	    .page = page,
	    .db = (uint8_t)db,
	    .hash_next = *bucket,
	};
	*bucket = (uint32_t)(frame - cache->frames);
	ese_image_init(&frame->image, cache->images, page);
	owner->counters.cached++;
	if (frame->before_ns)
		owner->counters.history_hits++;
	return frame;
}

static void frame_free(struct ese_cache *cache, struct ese_frame *frame)
{
	uint32_t *link = &cache->hash[hash_of(frame->db, frame->page) & cache->hash_mask];

	assert(!frame->pins && !frame->waiters.first && !frame->writing && !frame->dirty);
	while (&cache->frames[*link] != frame)
		link = &cache->frames[*link].hash_next;
	*link = frame->hash_next;
	ese_image_clear(&frame->image);
	cache->dbs[frame->db].counters.cached--;
	cache->kept -= frame->pinned;
	frame->present = frame->pinned = false;
	frame->order_next = cache->free;
	cache->free = frame;
	cache->used--;
}

void ese_cache_arrived(struct ese_cache *cache, struct ese_frame *frame, bool keep)
{
	assert(!frame->present);
	frame->present = true;
	frame->pinned = keep;
	cache->kept += keep;
	if (!keep)
		order_enter(cache, frame);
}

void ese_cache_keep(struct ese_cache *cache, struct ese_frame *frame, bool keep)
{
	assert(frame->present);
	if (frame->pinned == keep)
		return;
	ese_cache_spare(cache, frame);
	frame->pinned = keep;
	if (keep) {
		cache->kept++;
		order_leave(cache, frame);
	} else {
		cache->kept--;
		order_enter(cache, frame);
	}
}

void ese_cache_give_up(struct ese_cache *cache, struct ese_frame *frame)
{
	assert(!frame->present);
	frame_free(cache, frame);
}

void cache_evict(struct ese_cache *cache, struct ese_frame *frame)
{
	if (!frame->preread)
		past_add(cache, frame);
	cache->dbs[frame->db].counters.evicted++;
	frame_free(cache, frame);
}

void ese_cache_touch(struct ese_cache *cache, struct ese_frame *frame, uint64_t now_ns)
{
	bool once = frame->before_ns == 0;

	assert(frame->present);
	cache->dbs[frame->db].counters.touches++;
	if (frame->preread)
		frame->preread = false; /* this is its first use */
	else if (now_ns - frame->last_ns > cache->config.correlated_ns)
		frame->before_ns = frame->last_ns;
	frame->last_ns = now_ns;
	if (frame->pinned)
		return;
	if (frame->leaves)
		ese_cache_spare(cache, frame);
	else
		order_used(cache, frame, once);
}

/* ---- dirty frames ---- */

static void dirty_remove(struct cache_db *db, struct ese_frame *frame)
{
	if (frame->dirty_prev)
		frame->dirty_prev->dirty_next = frame->dirty_next;
	else
		db->dirty_first = frame->dirty_next;
	if (frame->dirty_next)
		frame->dirty_next->dirty_prev = frame->dirty_prev;
	else
		db->dirty_last = frame->dirty_prev;
	frame->dirty_prev = frame->dirty_next = NULL;
	frame->dirty = false;
	db->counters.dirty--;
}

/* By lgpos_first: nearly always at the end. */
static void dirty_add(struct cache_db *db, struct ese_frame *frame)
{
	struct ese_frame *after = db->dirty_last;

	while (after && after->lgpos_first > frame->lgpos_first)
		after = after->dirty_prev;
	frame->dirty_prev = after;
	frame->dirty_next = after ? after->dirty_next : db->dirty_first;
	if (frame->dirty_next)
		frame->dirty_next->dirty_prev = frame;
	else
		db->dirty_last = frame;
	if (after)
		after->dirty_next = frame;
	else
		db->dirty_first = frame;
	frame->dirty = true;
	db->counters.dirty++;
}

void ese_cache_dirty(struct ese_cache *cache, struct ese_frame *frame, uint64_t lgpos,
		     uint64_t lgpos_end)
{
	struct cache_db *db = &cache->dbs[frame->db];

	assert(frame->present);
	frame->lgpos_last = lgpos_end;
	if (frame->dirty)
		return;
	frame->lgpos_first = lgpos;
	frame->dbtime_first = frame->image.dbtime;
	dirty_add(db, frame);
	db->counters.dirtied++;
}

void ese_cache_write_begin(struct ese_cache *cache, struct ese_frame *frame)
{
	assert(frame->present && !frame->writing);
	frame->writing = true;
	if (frame->dirty)
		dirty_remove(&cache->dbs[frame->db], frame);
}

void ese_cache_write_end(struct ese_cache *cache, struct ese_frame *frame, bool written,
			 const struct ese_dirt *before)
{
	struct cache_db *db = &cache->dbs[frame->db];

	assert(frame->writing);
	frame->writing = false;
	if (!written) { /* lgpos_last of later updates stays */
		if (frame->dirty)
			dirty_remove(db, frame);
		else
			frame->lgpos_last = before->lgpos_last;
		frame->lgpos_first = before->lgpos_first;
		frame->dbtime_first = before->dbtime_first;
		dirty_add(db, frame);
		ese_cache_spare(cache, frame);
		return;
	}
	if (!frame->leaves)
		return;
	if (frame->pins || frame->dirty) {
		ese_cache_spare(cache, frame);
		return;
	}
	frame->leaves = false;
	cache->leaving--;
	cache_evict(cache, frame);
}

struct ese_frame *ese_cache_oldest(const struct ese_cache *cache, unsigned db)
{
	return cache->dbs[db].dirty_first;
}

void ese_cache_drop_db(struct ese_cache *cache, unsigned db)
{
	struct cache_db *owner = &cache->dbs[db];

	for (uint32_t i = 0; i < cache->made; i++) {
		struct ese_frame *frame = &cache->frames[i];

		if (frame->db != db || !frame->present)
			continue;
		if (frame->dirty)
			dirty_remove(owner, frame);
		if (frame->leaves)
			ese_cache_spare(cache, frame);
		if (!frame->pinned)
			order_leave(cache, frame);
		frame_free(cache, frame);
	}
	for (uint32_t i = 0; i < cache->config.history_max; i++)
		if (cache->past[i].valid && cache->past[i].db == db)
			past_forget(cache, &cache->past[i]);
	assert(owner->counters.cached == 0 && owner->counters.dirty == 0);
}
