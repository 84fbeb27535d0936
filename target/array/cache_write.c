/* SPDX-License-Identifier: MIT
 *
 * Writes: back, into frames page by page, and through, to the set segment by segment.
 */
#include <assert.h>
#include <errno.h>

#include "base/bytes.h"
#include "target/array/cache_impl.h"

static void wait_for_room(struct cache_request *request)
{
	struct cache *cache = request->cache;
	cache->counters.write_waits += !request->waited;
	request->waited = true;
	cache_request_wait(request, &cache->room);
}

static void wait_for_page(struct cache_request *request, struct cache_frame *frame)
{
	request->cache->counters.page_waits++;
	arc_unlink(&request->cache->arc, cache_frame_index(request->cache, frame));
	cache_request_wait(request, &frame->waiters);
}

/* ---- through ---- */

static void unpin_range(struct cache_request *request, uint64_t upto)
{
	struct cache *cache = request->cache;
	uint64_t pinned = request->pinned;

	request->pinned = 0;
	for (uint64_t at = request->lo_bytes; at < upto; pinned >>= 1) {
		struct cache_piece piece = cache_piece_at(cache, at, upto);
		if (pinned & 1)
			cache_frame_unpin(cache, cache_find(cache, piece.page));
		at += piece.bytes;
	}
}

/* The set has the data; the frame gets it too.  A record of older content of these sectors becomes
 * one of the new content, until the set is flushed: neither may be lost in a crash of the host. */
static void through_piece(struct cache_request *request, struct cache_frame *frame,
			  const struct cache_piece *piece)
{
	struct cache *cache = request->cache;
	const struct io *io = request->parent;
	uint32_t index = cache_frame_index(cache, frame);
	uint64_t page_at = piece->page * cache->page_bytes;
	size_t within = (size_t)piece->first * CACHE_SECTOR_BYTES;
	uint64_t skip = page_at + within - io->offset_bytes;
	cache_bits committed = frame->dirty | frame->unflushed;

	if (committed & piece->bits)
		records_write(&cache->records, index, piece->page, io, skip, piece->first,
			      piece->sectors, committed, committed | piece->bits);
	else if (!cache->records.hollow)
		iov_to_mem(io->iov, io->iov_count, skip,
			   records_content(&cache->records, index) + within, piece->bytes);
	cache_set_valid(cache, frame, piece->bits);
	cache_clear_dirty(cache, frame, piece->bits);
	if (committed & piece->bits)
		cache_set_unflushed(cache, frame, piece->bits);
	frame->ahead &= ~piece->bits;
}

/* Nobody knows what the set has now.  What the record still names goes there again. */
static void through_failed(struct cache *cache, struct cache_frame *frame,
			   const struct cache_piece *piece)
{
	cache_bits again = frame->unflushed & piece->bits;

	cache_clear_unflushed(cache, frame, again);
	cache_set_dirty(cache, frame, again);
	cache_clear_valid(cache, frame, piece->bits & ~frame->dirty);
	if (frame->pins)
		frame->poison |= piece->bits & ~frame->dirty;
}

static void through_ended(struct cache_request *request, struct cache_frame *frame,
			  const struct cache_piece *piece, bool pinned)
{
	struct cache *cache = request->cache;

	if (pinned)
		frame->busy &= ~piece->bits;
	if (!cache->halted && pinned && request->io.status == 0)
		through_piece(request, frame, piece);
	else if (!cache->halted)
		through_failed(cache, frame, piece);
	if (pinned)
		cache_wake(cache, &frame->waiters);
	else
		cache_frame_settle(cache, frame);
}

static void through_done(struct io *io)
{
	struct cache_request *request = io->owner;
	struct cache *cache = request->cache;
	uint64_t pinned = request->pinned;

	for (uint64_t at = request->lo_bytes; at < request->hi_bytes; pinned >>= 1) {
		struct cache_piece piece = cache_piece_at(cache, at, request->hi_bytes);
		struct cache_frame *frame = cache_find(cache, piece.page);
		if (frame)
			through_ended(request, frame, &piece, pinned & 1);
		at += piece.bytes;
	}
	unpin_range(request, request->hi_bytes);
	if (request->list) {
		cache_request_leave(request);
		cache_wake(cache, &cache->barred);
	}
	if (!cache->halted)
		cache_release_range(cache, request->lo_bytes, request->hi_bytes);
	if (io->status == 0 && !(io->flags & IO_FUA))
		cache->through_count++;
	request->at_bytes = request->hi_bytes;
	if (io->status || request->at_bytes == request->end_bytes)
		cache_request_end(request, io->status);
	else
		cache_request_run(request);
	cache_pump(cache);
}

/* Pins the frames of [lo, hi), of as many pages as there are frames for: what the set refuses may
 * fill the cache, and must not hold up what it would take.  False: it waits, and holds none. */
static bool pin_some(struct cache_request *request)
{
	struct cache *cache = request->cache;
	unsigned index = 0;

	for (uint64_t at = request->lo_bytes; at < request->hi_bytes; index++) {
		struct cache_piece piece = cache_piece_at(cache, at, request->hi_bytes);
		struct cache_frame *frame = cache_find(cache, piece.page);
		if (frame && (frame->busy & piece.bits)) {
			unpin_range(request, at);
			wait_for_page(request, frame);
			return false;
		}
		if (frame)
			cache_frame_pin(cache, frame);
		else
			frame = cache_frame_make(cache, piece.page);
		if (frame)
			request->pinned |= UINT64_C(1) << index;
		at += piece.bytes;
	}
	return true;
}

static uint64_t through_end(const struct cache_request *request)
{
	const struct cache *cache = request->cache;
	uint64_t pages = MIN_OF((uint64_t)CACHE_SEGMENT_PAGES, cache->frame_count / 8);
	uint64_t stripe_bytes = (uint64_t)cache->stripe_pages * cache->page_bytes;
	uint64_t first = request->at_bytes / cache->page_bytes;
	uint64_t border = (first + pages) * cache->page_bytes;

	if (request->end_bytes <= border)
		return request->end_bytes;
	/* A long write is cut between stripes, so that whole ones stay whole. */
	uint64_t cut = border / stripe_bytes * stripe_bytes;
	return cut > request->at_bytes ? cut : border;
}

static void write_through(struct cache_request *request)
{
	struct cache *cache = request->cache;

	request->lo_bytes = request->at_bytes;
	request->hi_bytes = through_end(request);
	if (cache_bars(cache, request->lo_bytes, request->hi_bytes)) {
		cache_request_wait(request, &cache->barred);
		return;
	}
	if (!pin_some(request))
		return;
	uint64_t pinned = request->pinned;
	bool all = true;
	for (uint64_t at = request->lo_bytes; at < request->hi_bytes; pinned >>= 1) {
		struct cache_piece piece = cache_piece_at(cache, at, request->hi_bytes);
		if (pinned & 1)
			cache_find(cache, piece.page)->busy |= piece.bits;
		else
			all = false;
		at += piece.bytes;
	}
	if (!all)
		cache_request_wait(request, &cache->passing);
	cache_request_send(request, through_done);
}

/* ---- back ---- */

static void put_piece(struct cache_request *request, struct cache_frame *frame,
		      const struct cache_piece *piece)
{
	struct cache *cache = request->cache;
	cache_bits committed = frame->dirty | frame->unflushed;

	records_write(&cache->records, cache_frame_index(cache, frame), frame->page,
		      request->parent, request->at_bytes - request->parent->offset_bytes,
		      piece->first, piece->sectors, committed, committed | piece->bits);
	cache->counters.overwritten_bytes +=
	    (uint64_t)bits_count(frame->dirty & piece->bits) * CACHE_SECTOR_BYTES;
	if (frame->touched & piece->bits)
		arc_hit(&cache->arc, cache_frame_index(cache, frame));
	frame->touched |= piece->bits;
	frame->ahead &= ~piece->bits;
	frame->doomed &= ~piece->bits;
	cache_clear_unflushed(cache, frame, piece->bits);
	cache_set_valid(cache, frame, piece->bits);
	cache_set_dirty(cache, frame, piece->bits);
	cache_frame_settle(cache, frame);
}

/* The frame for the piece, which may take it; NULL: the request waits. */
static struct cache_frame *frame_for(struct cache_request *request, const struct cache_piece *piece)
{
	struct cache *cache = request->cache;
	struct cache_frame *frame = cache_find(cache, piece->page);

	if (frame && (frame->busy & piece->bits)) {
		wait_for_page(request, frame);
		return NULL;
	}
	if (frame && frame->dirty)
		return frame;
	bool others =
	    request != cache->first_in_room && (cache->first_in_room || !TAILQ_EMPTY(&cache->room));
	if (others || cache->dirty_frames >= cache->dirty_limit) {
		wait_for_room(request);
		return NULL;
	}
	if (frame)
		return frame;
	frame = cache_frame_make(cache, piece->page);
	if (frame)
		frame->pins = 0; /* it is dirty in a moment, which keeps it */
	else
		wait_for_room(request);
	return frame;
}

static void write_back(struct cache_request *request)
{
	struct cache *cache = request->cache;
	bool fua = request->parent->flags & IO_FUA;

	while (request->at_bytes < request->end_bytes) {
		struct cache_piece piece =
		    cache_piece_at(cache, request->at_bytes, request->end_bytes);
		struct cache_frame *frame = frame_for(request, &piece);
		if (!frame)
			return;
		put_piece(request, frame, &piece);
		if (fua && records_sync_frame(&cache->records, cache_frame_index(cache, frame),
					      piece.first, piece.sectors)) {
			cache->records_good = false;
			cache_mode_changed(cache);
			cache_request_run(request);
			return;
		}
		request->at_bytes += piece.bytes;
	}
	cache->counters.write_back++;
	cache_request_finish(request, CACHE_WRITE_NS);
}

void cache_write(struct cache_request *request)
{
	struct cache *cache = request->cache;
	/* Pages the set refuses could fill the cache for ever: then it is out of the way. */
	bool through = cache->through || cache_full_for_long(cache);

	if (through && !request->through) {
		/* What went into frames so far counts no more than the rest. */
		request->through = true;
		request->at_bytes = request->parent->offset_bytes;
		cache->counters.write_through++;
	}
	if (request->through)
		write_through(request);
	else
		write_back(request);
}
