/* SPDX-License-Identifier: MIT
 *
 * Page frames: finding, making and giving them up, and the counts that follow from their bits.
 */
#include <assert.h>
#include <errno.h>

#include "base/bytes.h"
#include "target/array/cache_impl.h"

static uint32_t *bucket_of(const struct cache *cache, uint64_t page)
{
	uint64_t hash = page * UINT64_C(0x9e3779b97f4a7c15);
	return &cache->buckets[(uint32_t)(hash >> 32) & cache->bucket_mask];
}

struct cache_frame *cache_find(const struct cache *cache, uint64_t page)
{
	uint32_t index = *bucket_of(cache, page);
	while (index != ARC_NONE && cache->frames[index].page != page)
		index = cache->frames[index].hash_next;
	return index == ARC_NONE ? NULL : &cache->frames[index];
}

static void take(struct cache *cache, uint32_t index, uint64_t page)
{
	struct cache_frame *frame = &cache->frames[index];
	uint32_t *bucket = bucket_of(cache, page);

	*frame = (struct cache_frame){.page = page, .hash_next = *bucket, .used = true};
	TAILQ_INIT(&frame->waiters);
	*bucket = index;
	arc_enter(&cache->arc, index, page);
}

static void give(struct cache *cache, struct cache_frame *frame, bool remember)
{
	uint32_t index = cache_frame_index(cache, frame), *link = bucket_of(cache, frame->page);

	assert(frame->used && !frame->pins && !frame->dirty && !frame->unflushed && !frame->busy);
	while (*link != index)
		link = &cache->frames[*link].hash_next;
	*link = frame->hash_next;
	cache_clear_valid(cache, frame, frame->valid);
	arc_leave(&cache->arc, index, frame->page, remember);
	frame->used = false;
	frame->hash_next = cache->free_frame;
	cache->free_frame = index;
}

struct cache_frame *cache_frame_make(struct cache *cache, uint64_t page)
{
	if (cache->free_frame == ARC_NONE) {
		uint32_t victim = arc_victim(&cache->arc);
		if (victim == ARC_NONE)
			return NULL;
		cache->counters.evictions++;
		give(cache, &cache->frames[victim], true);
	}
	uint32_t index = cache->free_frame;
	cache->free_frame = cache->frames[index].hash_next;
	take(cache, index, page);
	cache->frames[index].pins = 1;
	return &cache->frames[index];
}

struct cache_frame *cache_frame_adopt(struct cache *cache, uint32_t index, uint64_t page)
{
	take(cache, index, page);
	return &cache->frames[index];
}

void cache_frame_pin(struct cache *cache, struct cache_frame *frame)
{
	frame->pins++;
	assert(frame->pins); /* requests are fewer */
	arc_unlink(&cache->arc, cache_frame_index(cache, frame));
}

void cache_frame_unpin(struct cache *cache, struct cache_frame *frame)
{
	assert(frame->pins > 0);
	if (--frame->pins == 0)
		frame->poison = frame->zeros = 0;
	cache_frame_settle(cache, frame);
}

void cache_frame_settle(struct cache *cache, struct cache_frame *frame)
{
	uint32_t index = cache_frame_index(cache, frame);
	bool idle = !frame->dirty && !frame->unflushed && !frame->busy && !frame->pins &&
		    TAILQ_EMPTY(&frame->waiters);
	if (!idle)
		arc_unlink(&cache->arc, index);
	else if (!frame->valid)
		give(cache, frame, false);
	else if (!cache->arc.nodes[index].linked)
		arc_link(&cache->arc, index, false);
}

void cache_set_valid(struct cache *cache, struct cache_frame *frame, cache_bits bits)
{
	cache->valid_sectors += bits_count(bits & ~frame->valid);
	frame->valid |= bits;
	frame->zeros &= ~bits;
}

void cache_clear_valid(struct cache *cache, struct cache_frame *frame, cache_bits bits)
{
	assert(!(bits & (frame->dirty | frame->unflushed)));
	cache->valid_sectors -= bits_count(bits & frame->valid);
	frame->valid &= ~bits;
	frame->touched &= ~bits;
	frame->ahead &= ~bits;
}

void cache_set_dirty(struct cache *cache, struct cache_frame *frame, cache_bits bits)
{
	unsigned more = bits_count(bits & ~frame->dirty);
	if (!more)
		return;
	cache->dirty_frames += !frame->dirty;
	cache->dirty_sectors += more;
	frame->dirty |= bits;
	plan_dirtied(&cache->plan, frame->page / cache->stripe_pages, more,
		     loop_now_ns(cache->loop));
}

void cache_clear_dirty(struct cache *cache, struct cache_frame *frame, cache_bits bits)
{
	unsigned fewer = bits_count(bits & frame->dirty);
	if (!fewer)
		return;
	frame->dirty &= ~bits;
	frame->doomed &= ~bits;
	cache->dirty_frames -= !frame->dirty;
	cache->dirty_sectors -= fewer;
	plan_cleaned(&cache->plan, frame->page / cache->stripe_pages, fewer);
}

void cache_set_unflushed(struct cache *cache, struct cache_frame *frame, cache_bits bits)
{
	if (!bits)
		return;
	if (!cache->unflushed_frames)
		cache->unflushed_since_ns = loop_now_ns(cache->loop);
	cache->unflushed_frames += !frame->unflushed;
	frame->unflushed |= bits;
	frame->epoch = cache->epoch;
	if (frame->written)
		TAILQ_REMOVE(&cache->written, frame, written_entry);
	frame->written = true;
	TAILQ_INSERT_TAIL(&cache->written, frame, written_entry);
}

void cache_clear_unflushed(struct cache *cache, struct cache_frame *frame, cache_bits bits)
{
	if (!(frame->unflushed & bits))
		return;
	frame->unflushed &= ~bits;
	frame->doomed &= ~(bits & ~frame->dirty);
	if (frame->unflushed)
		return;
	cache->unflushed_frames--;
	frame->written = false;
	TAILQ_REMOVE(&cache->written, frame, written_entry);
}

void cache_frame_commit(struct cache *cache, struct cache_frame *frame)
{
	records_commit(&cache->records, cache_frame_index(cache, frame), frame->page,
		       frame->dirty | frame->unflushed);
}

/* The bits of FRAME's page within [LO, HI), which touches it. */
static cache_bits bits_within(const struct cache *cache, uint64_t page, uint64_t lo, uint64_t hi)
{
	uint64_t begin = page * cache->page_bytes;
	return cache_piece_at(cache, MAX_OF(lo, begin), MIN_OF(hi, begin + cache->page_bytes)).bits;
}

bool cache_each_frame(struct cache *cache, uint64_t lo, uint64_t hi,
		      bool (*fn)(struct cache *cache, struct cache_frame *frame, cache_bits bits,
				 void *arg),
		      void *arg)
{
	uint64_t first = lo / cache->page_bytes, last = (hi - 1) / cache->page_bytes;
	bool many = last - first >= cache->frame_count;
	uint64_t count = many ? cache->frame_count : last - first + 1;

	for (uint64_t i = 0; i < count; i++) {
		struct cache_frame *frame = many ? &cache->frames[i] : cache_find(cache, first + i);
		if (!frame || !frame->used || frame->page < first || frame->page > last)
			continue;
		if (!fn(cache, frame, bits_within(cache, frame->page, lo, hi), arg))
			return false;
	}
	return true;
}
