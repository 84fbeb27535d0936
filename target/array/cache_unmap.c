/* SPDX-License-Identifier: MIT
 *
 * UNMAP: what is cached of the range is given up, and the set is told.
 *
 * What is dirty stays until the set has done it: were it dropped before and the set then failed,
 * an older content would come back.  Meanwhile nothing of the range is destaged, so that a write
 * that arrives after the UNMAP reaches the set after it.
 */
#include <errno.h>

#include "base/bytes.h"
#include "target/array/cache_impl.h"

bool cache_bars(const struct cache *cache, uint64_t lo, uint64_t hi)
{
	const struct cache_request *request;
	TAILQ_FOREACH (request, &cache->unmaps, entry)
		if (request->parent->offset_bytes < hi && lo < request->end_bytes)
			return true;
	TAILQ_FOREACH (request, &cache->passing, entry)
		if (request->lo_bytes < hi && lo < request->hi_bytes)
			return true;
	return false;
}

static bool doom(struct cache *cache, struct cache_frame *frame, cache_bits bits, void *arg)
{
	struct cache_frame **ret_busy = arg;

	if (frame->busy & bits) {
		*ret_busy = frame;
		return false;
	}
	frame->doomed |= bits & (frame->dirty | frame->unflushed);
	cache_clear_valid(cache, frame, bits & ~(frame->dirty | frame->unflushed));
	if (frame->pins)
		frame->poison |= bits & ~frame->valid;
	cache_frame_settle(cache, frame);
	return true;
}

static bool drop(struct cache *cache, struct cache_frame *frame, cache_bits bits, void *arg)
{
	cache_bits gone = frame->doomed & bits;

	if (gone) {
		cache_clear_dirty(cache, frame, gone);
		cache_clear_unflushed(cache, frame, gone);
		cache_frame_commit(cache, frame);
		/* A read under way had them covered by the frame; what the set gives it is older.
		 */
		if (frame->pins)
			frame->zeros |= gone;
	}
	/* Reads that came in meanwhile may have brought in the old content. */
	cache_clear_valid(cache, frame, bits & ~(frame->dirty | frame->unflushed));
	if (frame->pins)
		frame->poison |= bits & ~frame->valid;
	cache_frame_settle(cache, frame);
	return true;
}

/* It failed, and nobody knows what the set has now: what the record names goes there again. */
static bool spare(struct cache *cache, struct cache_frame *frame, cache_bits bits, void *arg)
{
	cache_bits again = frame->unflushed & bits;

	frame->doomed &= ~bits;
	cache_clear_unflushed(cache, frame, again);
	cache_set_dirty(cache, frame, again);
	cache_clear_valid(cache, frame, bits & ~frame->dirty);
	if (frame->pins)
		frame->poison |= bits & ~frame->valid;
	cache_frame_settle(cache, frame);
	return true;
}

static bool is_spared(struct cache *cache, struct cache_frame *frame, cache_bits bits, void *arg)
{
	return !(frame->doomed & bits);
}

static void unmap_done(struct io *io)
{
	struct cache_request *request = io->owner;
	struct cache *cache = request->cache;
	uint64_t lo = request->parent->offset_bytes, hi = request->end_bytes;

	/* A record goes only when the set can no longer come back with something older. */
	if (io->op == IO_UNMAP && io->status == 0 && !cache->halted &&
	    !cache_each_frame(cache, lo, hi, is_spared, NULL)) {
		*io = (struct io){.op = IO_FLUSH, .done = unmap_done, .owner = request};
		io_submit(cache->below, io);
		return;
	}
	if (!cache->halted)
		(void)cache_each_frame(cache, lo, hi, io->status ? spare : drop, NULL);
	cache_request_leave(request);
	if (io->status == 0)
		cache->through_count++;
	if (!cache->halted)
		cache_release_range(cache, lo, hi);
	cache_wake(cache, &cache->barred);
	cache_request_end(request, io->status);
	cache_pump(cache);
}

void cache_unmap(struct cache_request *request)
{
	struct cache *cache = request->cache;
	uint64_t lo = request->parent->offset_bytes, hi = request->end_bytes;
	struct cache_frame *busy = NULL;

	if (cache_bars(cache, lo, hi)) {
		cache_request_wait(request, &cache->barred);
		return;
	}
	if (!cache_each_frame(cache, lo, hi, doom, &busy)) {
		cache->counters.page_waits++;
		cache_request_wait(request, &busy->waiters);
		return;
	}
	request->lo_bytes = lo;
	request->hi_bytes = hi;
	cache_request_wait(request, &cache->unmaps);
	cache_request_send(request, unmap_done);
}
