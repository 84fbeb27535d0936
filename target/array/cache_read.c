/* SPDX-License-Identifier: MIT
 *
 * Reads: hits from the frames, misses from the set straight into the reader's memory and from
 * there into frames, read-ahead of sequential streams.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "target/array/cache_impl.h"

/* Copies SECTORS between the frame and the request, from (true) or to the request's memory. */
static void copy_sectors(struct cache_request *request, struct cache_frame *frame, cache_bits bits,
			 bool into_frame)
{
	struct cache *cache = request->cache;
	const struct io *io = request->parent;
	uint64_t page_at = frame->page * cache->page_bytes;
	uint8_t *content = records_content(&cache->records, cache_frame_index(cache, frame));
	unsigned first, count;

	if (cache->records.hollow && (into_frame || (io->flags & IO_BLIND)))
		return;
	while (bits_take_run(&bits, &first, &count)) {
		uint64_t within = (uint64_t)first * CACHE_SECTOR_BYTES;
		uint64_t bytes = (uint64_t)count * CACHE_SECTOR_BYTES;
		uint64_t skip = page_at + within - io->offset_bytes;
		if (cache->records.hollow)
			iov_zero(io->iov, io->iov_count, skip, bytes);
		else if (into_frame)
			iov_to_mem(io->iov, io->iov_count, skip, content + within, bytes);
		else
			iov_from_mem(io->iov, io->iov_count, skip, content + within, bytes);
	}
}

static void zero_sectors(struct cache_request *request, const struct cache_frame *frame,
			 cache_bits bits)
{
	const struct io *io = request->parent;
	uint64_t skip = frame->page * request->cache->page_bytes - io->offset_bytes;
	unsigned first, count;

	while (bits_take_run(&bits, &first, &count))
		iov_zero(io->iov, io->iov_count, skip + (uint64_t)first * CACHE_SECTOR_BYTES,
			 (size_t)count * CACHE_SECTOR_BYTES);
}

/* The reader got BITS of FRAME. */
static void note_use(struct cache_request *request, struct cache_frame *frame, cache_bits bits)
{
	struct cache *cache = request->cache;
	uint32_t index = cache_frame_index(cache, frame);

	if (request->ahead)
		return;
	if (frame->ahead & bits) {
		cache->counters.prefetch_used_bytes +=
		    (uint64_t)bits_count(frame->ahead & bits) * CACHE_SECTOR_BYTES;
		frame->ahead &= ~bits;
	}
	/* A stream that reads a page piece by piece has not come back to it. */
	if ((frame->touched & bits) && !request->sequential)
		arc_hit(&cache->arc, index);
	frame->touched |= bits;
	bool last = bits >> (cache->page_sectors - 1) & 1;
	if (request->sequential && last && cache->arc.nodes[index].linked)
		arc_link(&cache->arc, index, true);
}

static void serve_hit(struct cache_request *request, struct cache_frame *frame,
		      const struct cache_piece *piece)
{
	copy_sectors(request, frame, piece->bits, false);
	request->hit = true;
	request->cache->counters.read_hit_bytes += request->ahead ? 0 : piece->bytes;
	note_use(request, frame, piece->bits);
}

/* ---- misses ---- */

/* Frames that are here must stay; others are made, if there is room. */
static void pin_hull(struct cache_request *request)
{
	struct cache *cache = request->cache;
	unsigned index = 0;

	for (uint64_t at = request->lo_bytes; at < request->hi_bytes; index++) {
		struct cache_piece piece = cache_piece_at(cache, at, request->hi_bytes);
		struct cache_frame *frame = cache_find(cache, piece.page);
		if (frame)
			cache_frame_pin(cache, frame);
		else if (cache->read)
			frame = cache_frame_make(cache, piece.page);
		if (frame)
			request->pinned |= UINT64_C(1) << index;
		if (frame && request->ahead)
			frame->pending |= piece.bits & ~frame->valid;
		at += piece.bytes;
	}
}

/* What the set gave for one page: new sectors into the frame, newer ones from it. */
static void settle_piece(struct cache_request *request, struct cache_frame *frame,
			 const struct cache_piece *piece, int status)
{
	struct cache *cache = request->cache;
	cache_bits fresh = piece->bits & ~frame->valid & ~frame->poison & ~frame->zeros;
	cache_bits newer = piece->bits & frame->valid;

	if (status || !cache->read)
		fresh = 0;
	if (status == 0) {
		zero_sectors(request, frame, piece->bits & frame->zeros);
		copy_sectors(request, frame, newer, false);
		copy_sectors(request, frame, fresh, true);
		cache_set_valid(cache, frame, fresh);
		if (request->ahead) {
			frame->ahead |= fresh;
			cache->counters.prefetched_bytes +=
			    (uint64_t)bits_count(fresh) * CACHE_SECTOR_BYTES;
		}
	}
	if (request->ahead) {
		frame->pending &= ~piece->bits;
		cache_wake(cache, &frame->waiters);
	}
	cache_frame_unpin(cache, frame);
	frame = cache_find(cache, piece->page);
	if (status == 0 && frame)
		note_use(request, frame, piece->bits & frame->valid);
}

static void read_done(struct io *io)
{
	struct cache_request *request = io->owner;
	struct cache *cache = request->cache;
	uint64_t pinned = request->pinned;

	request->pinned = 0;
	for (uint64_t at = request->lo_bytes; at < request->hi_bytes; pinned >>= 1) {
		struct cache_piece piece = cache_piece_at(cache, at, request->hi_bytes);
		if (pinned & 1)
			settle_piece(request, cache_find(cache, piece.page), &piece, io->status);
		at += piece.bytes;
	}
	request->at_bytes = request->segment_end_bytes;
	if (io->status)
		cache_request_end(request, io->status);
	else
		cache_request_run(request);
	cache_pump(cache);
}

/* ---- segments ---- */

/* Finds what is missing of the segment: [lo, hi), empty when nothing is.  The frame to wait for
 * when some of it is on its way already, or NULL. */
static struct cache_frame *find_missing(struct cache_request *request)
{
	struct cache *cache = request->cache;

	request->lo_bytes = request->hi_bytes = request->segment_end_bytes;
	for (uint64_t at = request->at_bytes; at < request->segment_end_bytes;) {
		struct cache_piece piece = cache_piece_at(cache, at, request->segment_end_bytes);
		struct cache_frame *frame = cache_find(cache, piece.page);
		cache_bits missing = frame ? piece.bits & ~frame->valid : piece.bits;
		if (frame && (missing & frame->pending))
			return frame;
		if (missing) {
			request->lo_bytes = MIN_OF(request->lo_bytes, at);
			request->hi_bytes = at + piece.bytes;
		}
		at += piece.bytes;
	}
	return NULL;
}

static void serve_between(struct cache_request *request, uint64_t from, uint64_t upto)
{
	struct cache *cache = request->cache;
	for (uint64_t at = from; at < upto;) {
		struct cache_piece piece = cache_piece_at(cache, at, upto);
		serve_hit(request, cache_find(cache, piece.page), &piece);
		at += piece.bytes;
	}
}

/* False: it waits, or the set is at work. */
static bool read_segment(struct cache_request *request)
{
	struct cache *cache = request->cache;
	uint64_t segment_bytes = (uint64_t)CACHE_SEGMENT_PAGES * cache->page_bytes;
	uint64_t border = request->at_bytes / cache->page_bytes * cache->page_bytes + segment_bytes;

	request->segment_end_bytes = MIN_OF(request->end_bytes, border);
	struct cache_frame *coming = find_missing(request);
	if (coming && request->ahead) { /* somebody else reads ahead there already */
		request->at_bytes = request->end_bytes;
		return true;
	}
	if (coming) {
		cache->counters.page_waits++;
		arc_unlink(&cache->arc, cache_frame_index(cache, coming));
		cache_request_wait(request, &coming->waiters);
		return false;
	}
	uint64_t lo = request->lo_bytes, hi = request->hi_bytes;
	if (lo >= hi) {
		serve_between(request, request->at_bytes, request->segment_end_bytes);
		request->at_bytes = request->segment_end_bytes;
		return true;
	}
	serve_between(request, request->at_bytes, lo);
	serve_between(request, hi, request->segment_end_bytes);
	request->missed = true;
	if (!request->ahead)
		cache->counters.read_miss_bytes += hi - lo;
	pin_hull(request);
	cache_request_send(request, read_done);
	return false;
}

/* ---- read-ahead ---- */

static void ahead_done(struct io *io)
{
	struct cache_ahead *ahead = container_of(io, struct cache_ahead, io);
	struct cache *cache = ahead->cache;
	ahead->next = cache->idle_aheads;
	cache->idle_aheads = ahead;
}

static bool send_ahead(struct cache *cache, uint64_t offset, uint64_t length, unsigned flags)
{
	struct cache_ahead *ahead = cache->idle_aheads;
	struct cache_request *request;

	if (!ahead)
		return false;
	if (!ahead->buffer)
		ahead->buffer = aligned_alloc(4096, CACHE_AHEAD_BYTES);
	if (!ahead->buffer)
		return false;
	request = freelist_take(&cache->requests);
	if (!request)
		return false;
	cache->idle_aheads = ahead->next;
	ahead->iov = (struct iovec){ahead->buffer, length};
	ahead->io = (struct io){
	    .op = IO_READ,
	    .flags = flags,
	    .offset_bytes = offset,
	    .length_bytes = length,
	    .iov = &ahead->iov,
	    .iov_count = 1,
	    .done = ahead_done,
	};
	memset(request, 0, offsetof(struct cache_request, slice));
	request->cache = cache;
	request->parent = &ahead->io;
	request->at_bytes = offset;
	request->end_bytes = offset + length;
	request->ahead = true;
	cache_read(request);
	return true;
}

static void read_ahead(struct cache *cache, const struct stream_advice *advice, unsigned flags)
{
	uint64_t done = 0;
	while (done < advice->length_bytes) {
		uint64_t size = MIN_OF(advice->length_bytes - done, (uint64_t)CACHE_AHEAD_BYTES);
		if (!send_ahead(cache, advice->offset_bytes + done, size, flags))
			return;
		done += size;
	}
}

/* ---- the request ---- */

static void count(struct cache_request *request)
{
	struct cache_counters *counters = &request->cache->counters;
	if (request->ahead)
		return;
	counters->read_hits += !request->missed;
	counters->read_partial_hits += request->missed && request->hit;
	counters->read_misses += request->missed && !request->hit;
}

void cache_read(struct cache_request *request)
{
	struct cache *cache = request->cache;
	const struct io *io = request->parent;

	if (!request->ahead && !request->noted && cache->prefetch) {
		struct stream_advice advice =
		    streams_note(&cache->streams, io->offset_bytes, io->length_bytes,
				 cache->page_bytes, cache->layer.size_bytes);
		request->sequential = advice.sequential;
		request->noted = true;
		if (advice.length_bytes)
			read_ahead(cache, &advice, io->flags);
	}
	while (request->at_bytes < request->end_bytes)
		if (!read_segment(request))
			return;
	count(request);
	cache_request_finish(request, request->missed ? 0 : CACHE_READ_HIT_NS);
}
