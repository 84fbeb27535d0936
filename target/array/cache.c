/* SPDX-License-Identifier: MIT
 *
 * The controller cache as a layer: requests from arrival to end, the mode in force, FLUSH, and the
 * pump, which after every event does whatever has become possible.
 */
#include "target/array/cache.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "target/array/cache_impl.h"

const char *const cache_mode_names[] = {"none", "write-back", "write-through", NULL};

/* ---- requests ---- */

static void request_init(struct cache *cache, struct cache_request *request, struct io *io)
{
	/* All but the slices, which are large and filled where they are used. */
	memset(request, 0, offsetof(struct cache_request, slice));
	request->cache = cache;
	request->parent = io;
	request->at_bytes = io->offset_bytes;
	request->end_bytes = io->offset_bytes + io->length_bytes;
}

void cache_request_end(struct cache_request *request, int status)
{
	struct cache *cache = request->cache;
	struct io *parent = request->parent;

	assert(!request->list && !request->pinned);
	free(request->heap);
	request->heap = NULL;
	freelist_give(&cache->requests, request);
	io_complete(parent, cache->halted ? -ENODEV : status);
}

static void delay_over(void *arg)
{
	struct cache_request *request = arg;
	cache_request_leave(request);
	cache_request_end(request, 0);
}

void cache_request_finish(struct cache_request *request, uint64_t cost_ns)
{
	struct cache *cache = request->cache;
	if (!cache->modelled || cache->draining || cache->halted || request->ahead || !cost_ns) {
		cache_request_end(request, 0);
		return;
	}
	uint64_t now_ns = loop_now_ns(cache->loop);
	uint64_t start_ns = MAX_OF(now_ns, cache->controller_free_ns);
	uint64_t transfer_ns = request->parent->length_bytes * NS_PER_S / CACHE_BYTES_PER_S;

	cache->controller_free_ns = start_ns + CACHE_BUSY_NS + transfer_ns;
	loop_timer_init(&request->timer, delay_over, request);
	loop_timer_set(cache->loop, &request->timer, start_ns + cost_ns + transfer_ns);
	cache_request_wait(request, &cache->delayed);
}

void cache_request_wait(struct cache_request *request, struct cache_request_list *list)
{
	assert(!request->list);
	request->list = list;
	if (list == &request->cache->room && request == request->cache->first_in_room)
		TAILQ_INSERT_HEAD(list, request, entry);
	else
		TAILQ_INSERT_TAIL(list, request, entry);
}

void cache_request_leave(struct cache_request *request)
{
	TAILQ_REMOVE(request->list, request, entry);
	request->list = NULL;
}

void cache_wake(struct cache *cache, struct cache_request_list *list)
{
	struct cache_request *request;
	while ((request = TAILQ_FIRST(list))) {
		cache_request_leave(request);
		cache_request_wait(request, &cache->ready);
		cache->again = true;
	}
}

void cache_request_send(struct cache_request *request, void (*done)(struct io *io))
{
	const struct io *parent = request->parent;
	struct io *io = &request->io;

	*io = (struct io){
	    .op = parent->op,
	    .flags = parent->flags,
	    .offset_bytes = request->lo_bytes,
	    .length_bytes = request->hi_bytes - request->lo_bytes,
	    .done = done,
	    .owner = request,
	};
	/* Where writes count as stable when they are done, this one must be too. */
	if (io->op == IO_WRITE && !request->cache->through)
		io->flags |= IO_FUA;
	if (parent->iov_count) {
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): mixes up requests of a list */
		free(request->heap);
		request->heap = NULL;
		int count =
		    iov_slice_any(parent, io->offset_bytes - parent->offset_bytes, io->length_bytes,
				  request->slice, PART_SLICES, &request->heap, &io->iov);
		if (count < 0) {
			io_complete(io, -EBUSY);
			return;
		}
		io->iov_count = (unsigned)count;
	}
	io_submit(request->cache->below, io);
}

/* ---- FLUSH ---- */

static void flush_below_done(struct io *io)
{
	struct cache_request *request = io->owner;
	struct cache *cache = request->cache;
	if (io->status == 0)
		cache->flushed_through = MAX_OF(cache->flushed_through, request->began);
	cache_request_end(request, io->status);
	cache_pump(cache);
}

void cache_flush(struct cache_request *request)
{
	struct cache *cache = request->cache;

	if (!cache->through && records_sync(&cache->records)) {
		cache->records_good = false;
		cache_mode_changed(cache);
	}
	if (!cache->through && cache->through_count == cache->flushed_through) {
		cache_request_finish(request, CACHE_WRITE_NS);
		return;
	}
	if (cache->through && cache->dirty_sectors) {
		if (cache_stuck(cache))
			cache_request_end(request, -EIO);
		else
			cache_request_wait(request, &cache->flushes);
		return;
	}
	request->began = cache->through_count;
	request->lo_bytes = request->hi_bytes = 0;
	cache_request_send(request, flush_below_done);
}

/* ---- the layer ---- */

void cache_request_run(struct cache_request *request)
{
	struct cache *cache = request->cache;
	if (cache->halted) {
		cache_request_end(request, -ENODEV);
		return;
	}
	switch (request->parent->op) {
	case IO_READ:
		cache_read(request);
		break;
	case IO_WRITE:
		cache_write(request);
		break;
	case IO_FLUSH:
		cache_flush(request);
		break;
	case IO_UNMAP:
		cache_unmap(request);
		break;
	}
}

static bool start(struct cache *cache, struct io *io)
{
	struct cache_request *request = freelist_take(&cache->requests);
	if (!request)
		return false;
	request_init(cache, request, io);
	cache_request_run(request);
	return true;
}

static void cache_submit(struct io_layer *layer, struct io *io)
{
	struct cache *cache = container_of(layer, struct cache, layer);

	if (!io_in_range(layer, io)) {
		io_complete(io, -ERANGE);
		return;
	}
	if (io->op != IO_FLUSH && io->length_bytes == 0) {
		io_complete(io, 0);
		return;
	}
	if (cache->overflow || !start(cache, io)) {
		io->link = NULL;
		*cache->overflow_last = io;
		cache->overflow_last = &io->link;
	}
	cache_pump(cache);
}

static const struct io_layer_ops cache_layer_ops = {.name = "cache", .submit = cache_submit};

struct io_layer *cache_layer(struct cache *cache)
{
	cache->layer.ops = &cache_layer_ops;
	return &cache->layer;
}

/* ---- the pump ---- */

static void run_ready(struct cache *cache)
{
	struct cache_request *request;
	while ((request = TAILQ_FIRST(&cache->ready))) {
		cache_request_leave(request);
		cache_request_run(request);
	}
}

/* Those that wait for room, first come first served: until the first that must wait again. */
static void run_room(struct cache *cache)
{
	struct cache_request *request;
	while ((request = TAILQ_FIRST(&cache->room))) {
		cache_request_leave(request);
		cache->first_in_room = request;
		cache_request_run(request);
		if (TAILQ_FIRST(&cache->room) == cache->first_in_room)
			break;
	}
	cache->first_in_room = NULL;
}

static void run_overflow(struct cache *cache)
{
	while (cache->overflow) {
		struct io *io = cache->overflow, *next = io->link;
		if (!start(cache, io))
			return;
		cache->overflow = next;
		if (!next)
			cache->overflow_last = &cache->overflow;
	}
}

static void set_timer(struct cache *cache)
{
	uint64_t due_ns = cache_destage_due_ns(cache);
	if (due_ns == UINT64_MAX)
		loop_timer_cancel(cache->loop, &cache->timer);
	else if (!loop_timer_pending(&cache->timer) || cache->timer.deadline_ns != due_ns)
		loop_timer_set(cache->loop, &cache->timer, due_ns);
}

void cache_pump(struct cache *cache)
{
	cache->again = true;
	if (cache->pumping || cache->halted)
		return;
	cache->pumping = true;
	while (cache->again) {
		cache->again = false;
		run_ready(cache);
		run_room(cache);
		run_overflow(cache);
		if (!TAILQ_EMPTY(&cache->flushes) &&
		    (!cache->dirty_sectors || !cache->through || cache_stuck(cache)))
			cache_wake(cache, &cache->flushes);
		cache_destage_start(cache);
		cache_flush_start(cache);
	}
	cache->pumping = false;
	set_timer(cache);
}

/* ---- modes ---- */

void cache_mode_changed(struct cache *cache)
{
	bool through = cache->configured != CACHE_WRITE_BACK || !cache->mirrored ||
		       !cache->battery || !cache->records_good;
	if (through == cache->through)
		return;
	cache->through = through;
	cache_retry_failed(cache, true);
	cache->again = true;
}

void cache_set_mirrored(struct cache *cache, bool mirrored)
{
	cache->mirrored = mirrored;
	cache_mode_changed(cache);
	cache_pump(cache);
}

void cache_set_battery(struct cache *cache, bool good)
{
	cache->battery = good;
	cache_mode_changed(cache);
	cache_pump(cache);
}

void cache_status(const struct cache *cache, struct cache_status *ret_status)
{
	struct cache_status status = {
	    .configured = cache->configured,
	    .in_force = cache->through ? CACHE_WRITE_THROUGH : CACHE_WRITE_BACK,
	    .why = !cache->records_good			   ? "records cannot be kept"
		   : cache->configured != CACHE_WRITE_BACK ? "configured"
		   : !cache->battery			   ? "battery lost"
		   : !cache->mirrored			   ? "mirror lost"
							   : "configured",
	    .mirrored = cache->mirrored,
	    .battery = cache->battery,
	    .size_bytes = (uint64_t)cache->frame_count * cache->page_bytes,
	    .page_bytes = cache->page_bytes,
	    .dirty_bytes = cache->dirty_sectors * CACHE_SECTOR_BYTES,
	    .failed_bytes = cache_failed_sectors(cache) * CACHE_SECTOR_BYTES,
	    .valid_bytes = cache->valid_sectors * CACHE_SECTOR_BYTES,
	    .counters = cache->counters,
	};
	const struct cache_request *request;
	TAILQ_FOREACH (request, &cache->room, entry)
		status.waiting++;
	*ret_status = status;
}
