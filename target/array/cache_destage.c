/* SPDX-License-Identifier: MIT
 *
 * Destage: dirty stripes on their way to the set, and the flushes of the set after which their
 * records are given up.
 *
 * A stripe goes as few writes as its dirty runs make; one that is cached altogether and mostly
 * dirty goes whole, because that spares a parity level all reads.
 */
#include <assert.h>
#include <errno.h>

#include "base/bytes.h"
#include "base/log.h"
#include "target/array/cache_impl.h"

/* ---- errors ---- */

uint64_t cache_failed_sectors(const struct cache *cache)
{
	const struct plan_stripe *stripe;
	uint64_t sectors = 0;
	TAILQ_FOREACH (stripe, &cache->failed, age_entry)
		sectors += stripe->dirty;
	return sectors;
}

static bool nothing_goes_down(const struct cache *cache)
{
	return cache->destages_out == 0 && !cache->flush_out && TAILQ_EMPTY(&cache->plan.age) &&
	       TAILQ_EMPTY(&cache->unmaps);
}

bool cache_stuck(const struct cache *cache)
{
	return nothing_goes_down(cache) && !TAILQ_EMPTY(&cache->failed);
}

bool cache_full_for_long(const struct cache *cache)
{
	bool refused = !TAILQ_EMPTY(&cache->failed) || cache->flush_retry_ns > 0;
	bool full = cache->dirty_frames >= cache->dirty_limit ||
		    (cache->free_frame == ARC_NONE && arc_victim(&cache->arc) == ARC_NONE);
	return full && refused && nothing_goes_down(cache);
}

void cache_retry_failed(struct cache *cache, bool all)
{
	uint64_t now_ns = loop_now_ns(cache->loop);
	struct plan_stripe *stripe;

	while ((stripe = TAILQ_FIRST(&cache->failed)) &&
	       (all || stripe->since_ns + CACHE_RETRY_NS <= now_ns)) {
		TAILQ_REMOVE(&cache->failed, stripe, age_entry);
		stripe->failed = false;
		plan_release(&cache->plan, stripe, 0); /* old, so that it goes at once */
	}
}

static void stripe_failed(struct cache *cache, struct plan_stripe *stripe)
{
	stripe->since_ns = loop_now_ns(cache->loop);
	TAILQ_INSERT_TAIL(&cache->failed, stripe, age_entry);
	if (cache->failing)
		return;
	cache->failing = true;
	log_debug("member %s: the set refuses cached writes; they are kept and tried again",
		  cache->name);
}

/* One of the stripe's writes has ended.  A stripe of which nothing could be SENT, because writes
 * through are under way on all that is dirty, stays held until they end. */
static void stripe_ended(struct cache *cache, struct plan_stripe *stripe, bool sent)
{
	if (--stripe->writes > 0)
		return;
	if (stripe->failed && stripe->dirty)
		stripe_failed(cache, stripe);
	else if (sent || !stripe->dirty)
		plan_release(&cache->plan, stripe, loop_now_ns(cache->loop));
}

/* ---- one write ---- */

static void destaged(struct cache *cache, struct cache_frame *frame, cache_bits bits)
{
	cache_bits was = frame->dirty & bits;
	frame->busy &= ~bits;
	cache_clear_dirty(cache, frame, was);
	cache_set_unflushed(cache, frame, was);
}

static void count_destage(struct cache *cache, const struct io *io)
{
	uint64_t stripe_bytes = (uint64_t)cache->stripe_pages * cache->page_bytes;
	cache->counters.destages++;
	cache->counters.destaged_bytes += io->length_bytes;
	if (io->length_bytes == stripe_bytes && cache->stripe_pages > 1) {
		cache->counters.full_stripes++;
		cache->counters.full_stripe_bytes += stripe_bytes;
	}
}

static void destage_done(struct io *io)
{
	struct cache_destage *destage = container_of(io, struct cache_destage, io);
	struct cache *cache = destage->cache;
	struct plan_stripe *stripe = destage->stripe;
	uint64_t end = io->offset_bytes + io->length_bytes;
	int status = cache->halted ? -ENODEV : io->status;

	for (uint64_t at = io->offset_bytes; at < end;) {
		struct cache_piece piece = cache_piece_at(cache, at, end);
		struct cache_frame *frame = cache_find(cache, piece.page);
		if (status == 0)
			destaged(cache, frame, piece.bits);
		else
			frame->busy &= ~piece.bits;
		cache_wake(cache, &frame->waiters);
		cache_frame_settle(cache, frame);
		at += piece.bytes;
	}
	if (status == 0)
		count_destage(cache, io);
	else
		cache->counters.destage_errors++;
	destage->next = cache->idle_destages;
	cache->idle_destages = destage;
	cache->destages_out--;
	stripe->failed |= status != 0;
	stripe_ended(cache, stripe, true);
	if (status == 0)
		cache->failing = false;
	cache_pump(cache);
}

/* A run of sectors within one stripe, gathered page by page. */
static void send_run(struct cache *cache, struct plan_stripe *stripe, uint64_t lo, uint64_t hi)
{
	struct cache_destage *destage = cache->idle_destages;
	unsigned count = 0;

	cache->idle_destages = destage->next;
	for (uint64_t at = lo; at < hi;) {
		struct cache_piece piece = cache_piece_at(cache, at, hi);
		struct cache_frame *frame = cache_find(cache, piece.page);
		uint8_t *content =
		    records_content(&cache->records, cache_frame_index(cache, frame));
		frame->busy |= piece.bits;
		arc_unlink(&cache->arc, cache_frame_index(cache, frame));
		destage->iov[count++] =
		    (struct iovec){content + (size_t)piece.first * CACHE_SECTOR_BYTES, piece.bytes};
		at += piece.bytes;
	}
	destage->stripe = stripe;
	destage->io = (struct io){
	    .op = IO_WRITE,
	    .offset_bytes = lo,
	    .length_bytes = hi - lo,
	    .iov = destage->iov,
	    .iov_count = count,
	    .done = destage_done,
	};
	stripe->writes++;
	cache->destages_out++;
	cache->sent_count++;
	io_submit(cache->below, &destage->io);
}

/* ---- one stripe ---- */

/* Is all of the stripe here, and most of it dirty? */
static bool goes_whole(const struct cache *cache, const struct plan_stripe *stripe, uint64_t first)
{
	cache_bits all = bits_range(0, cache->page_sectors);

	if (stripe->dirty * 2 < cache->plan.stripe_sectors)
		return false;
	for (uint64_t page = first; page < first + cache->stripe_pages; page++) {
		const struct cache_frame *frame = cache_find(cache, page);
		if (!frame || frame->valid != all || frame->busy)
			return false;
	}
	return true;
}

/* Runs of dirty sectors, over page borders, as many as there are writes left for. */
static void send_runs(struct cache *cache, struct plan_stripe *stripe, uint64_t first)
{
	uint64_t lo = 0, hi = 0; /* the run gathered so far; empty */

	for (uint64_t page = first; page < first + cache->stripe_pages; page++) {
		const struct cache_frame *frame = cache_find(cache, page);
		cache_bits dirty = frame ? frame->dirty & ~frame->busy : 0;
		unsigned from, count;
		while (bits_take_run(&dirty, &from, &count)) {
			uint64_t begin =
			    page * cache->page_bytes + (uint64_t)from * CACHE_SECTOR_BYTES;
			if (begin != hi && lo < hi) {
				send_run(cache, stripe, lo, hi);
				lo = hi = 0;
				if (!cache->idle_destages)
					return;
			}
			if (lo >= hi)
				lo = begin;
			hi = begin + (uint64_t)count * CACHE_SECTOR_BYTES;
		}
	}
	if (lo < hi)
		send_run(cache, stripe, lo, hi);
}

static void send_stripe(struct cache *cache, struct plan_stripe *stripe)
{
	uint64_t first = stripe->number * cache->stripe_pages;
	uint64_t lo = first * cache->page_bytes;
	uint64_t hi = lo + (uint64_t)cache->stripe_pages * cache->page_bytes;

	plan_hold(&cache->plan, stripe);
	stripe->failed = false;
	if (cache_bars(cache, lo, hi))
		return; /* released when the UNMAP ends */
	/* One more, so that it stays while the first of its writes may end at once. */
	uint64_t before = cache->sent_count;
	stripe->writes = 1;
	if (hi <= cache->layer.size_bytes && goes_whole(cache, stripe, first))
		send_run(cache, stripe, lo, hi);
	else
		send_runs(cache, stripe, first);
	stripe_ended(cache, stripe, cache->sent_count > before);
}

void cache_release_range(struct cache *cache, uint64_t lo, uint64_t hi)
{
	uint64_t stripe_bytes = (uint64_t)cache->stripe_pages * cache->page_bytes;
	struct plan_stripe *stripe = plan_held_from(&cache->plan, lo / stripe_bytes);

	while (stripe && stripe->number * stripe_bytes < hi) {
		uint64_t number = stripe->number;
		if (!stripe->writes && !stripe->failed)
			plan_release(&cache->plan, stripe, stripe->since_ns);
		stripe = plan_held_from(&cache->plan, number + 1);
	}
}

/* ---- how many ---- */

void cache_destage_start(struct cache *cache)
{
	if (!cache->plan.ready && TAILQ_EMPTY(&cache->failed))
		return;
	uint64_t now_ns = loop_now_ns(cache->loop);
	bool hurry = cache->through || cache->draining || !TAILQ_EMPTY(&cache->room);

	cache_retry_failed(cache, false);
	for (;;) {
		unsigned depth = CACHE_DESTAGES_MAX;
		if (!hurry)
			depth = plan_depth(cache->dirty_frames, cache->dirty_limit, depth);
		bool aged_only = depth == 0;
		if (aged_only)
			depth = CACHE_DESTAGES_MAX / 4;
		if (cache->destages_out >= depth)
			return;
		struct plan_stripe *stripe = plan_next(&cache->plan, aged_only, now_ns);
		if (!stripe)
			return;
		send_stripe(cache, stripe);
	}
}

/* ---- flushing the set ---- */

static void flush_done(struct io *io)
{
	struct cache *cache = container_of(io, struct cache, flush);
	struct cache_frame *frame;

	cache->flush_out = false;
	if (io->status || cache->halted) {
		cache->flush_retry_ns = loop_now_ns(cache->loop) + CACHE_RETRY_NS;
		return;
	}
	cache->flush_retry_ns = 0;
	cache->flushed_through = MAX_OF(cache->flushed_through, cache->flush_through);
	while ((frame = TAILQ_FIRST(&cache->written)) && frame->epoch <= cache->flush_epoch) {
		cache_clear_unflushed(cache, frame, frame->unflushed);
		cache_frame_commit(cache, frame);
		cache_frame_settle(cache, frame);
	}
	cache->unflushed_since_ns = loop_now_ns(cache->loop);
	cache_pump(cache);
}

static bool flush_wanted(const struct cache *cache, uint64_t now_ns)
{
	if (cache->flush_out || now_ns < cache->flush_retry_ns)
		return false;
	return cache->unflushed_frames >= cache->frame_count / 8 || !TAILQ_EMPTY(&cache->room) ||
	       cache->draining || cache->unflushed_since_ns + CACHE_FLUSH_NS <= now_ns;
}

void cache_flush_start(struct cache *cache)
{
	if (!cache->unflushed_frames || !flush_wanted(cache, loop_now_ns(cache->loop)))
		return;
	cache->flush_out = true;
	cache->flush_epoch = cache->epoch++;
	cache->flush_through = cache->through_count;
	cache->counters.flushes_below++;
	cache->flush = (struct io){.op = IO_FLUSH, .done = flush_done};
	io_submit(cache->below, &cache->flush);
}

uint64_t cache_destage_due_ns(const struct cache *cache)
{
	const struct plan_stripe *failed = TAILQ_FIRST(&cache->failed);
	uint64_t due_ns = UINT64_MAX;

	/* What is older and did not go waits for a write to end. */
	if (cache->destages_out == 0)
		due_ns = plan_due_ns(&cache->plan);
	if (failed)
		due_ns = MIN_OF(due_ns, failed->since_ns + CACHE_RETRY_NS);
	if (cache->unflushed_frames && !cache->flush_out)
		due_ns = MIN_OF(due_ns, MAX_OF(cache->flush_retry_ns,
					       cache->unflushed_since_ns + CACHE_FLUSH_NS));
	return due_ns;
}
