/* SPDX-License-Identifier: MIT
 *
 * From io to requests on paths: queue, split, choose, send, and the one place where an io ends.
 */
#include "initiator/mpio/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

enum { REFUSE_AFTER_NS = 1000 * 1000 };

static bool is_queued(const struct mpio_req *req)
{
	return req->state != REQ_FREE && req->state != REQ_SENT;
}

static struct mpio_req_list *list_of(struct mpio *m, const struct mpio_req *req)
{
	switch (req->state) {
	case REQ_READY:
		return &m->ready;
	case REQ_DELAYED:
		return &m->delayed;
	case REQ_BLOCKED:
		return &m->blocked;
	case REQ_BEHIND:
		return &m->behind;
	case REQ_CROWDED:
		return &m->crowded;
	default:
		return &m->paths[req->path]->lost;
	}
}

static void unqueue(struct mpio *m, struct mpio_req *req)
{
	if (!is_queued(req))
		return;
	TAILQ_REMOVE(list_of(m, req), req, link);
	m->queued_reqs--;
}

void mpio_queue_req(struct mpio *m, struct mpio_req *req, enum req_state state)
{
	unqueue(m, req);
	req->state = state;
	TAILQ_INSERT_TAIL(list_of(m, req), req, link);
	m->queued_reqs++;
}

void mpio_requeue_first(struct mpio *m, struct mpio_req *req)
{
	unqueue(m, req);
	req->state = REQ_READY;
	TAILQ_INSERT_HEAD(&m->ready, req, link);
	m->queued_reqs++;
}

void mpio_delay(struct mpio *m, struct mpio_req *req, uint64_t delay_ns)
{
	struct mpio_req *before;

	req->due_ns = loop_now_ns(m->loop) + delay_ns;
	mpio_queue_req(m, req, REQ_DELAYED);
	/* Sorted by time; most delays are of one length, so the place is near the end. */
	TAILQ_REMOVE(&m->delayed, req, link);
	before = TAILQ_LAST(&m->delayed, mpio_req_list);
	while (before && before->due_ns > req->due_ns)
		before = TAILQ_PREV(before, mpio_req_list, link);
	if (before)
		TAILQ_INSERT_AFTER(&m->delayed, before, req, link);
	else
		TAILQ_INSERT_HEAD(&m->delayed, req, link);
	loop_timer_set(m->loop, &m->delay_timer, TAILQ_FIRST(&m->delayed)->due_ns);
}

static void end_io(struct mpio *m, struct io *io, int status)
{
	assert(m->open_ios > 0);
	m->open_ios--;
	io_complete(io, status);
}

void mpio_finish(struct mpio *m, struct mpio_req *req, int status)
{
	struct mpio_whole *whole = req->whole;
	struct io *io = req->io;

	assert(req->state != REQ_FREE);
	unqueue(m, req);
	if (req->place != FENCE_NO_PLACE)
		mpio_fence_write_ended(m); /* others may have to follow it */
	if (req->loss)
		mpio_track_ended(m, req, status);
	mpio_req_put(m, req);
	if (whole) {
		if (status && !whole->status)
			whole->status = status;
		assert(whole->open > 0);
		if (--whole->open)
			return;
		status = whole->status;
		mpio_whole_put(m, whole);
	}
	end_io(m, io, status);
}

static struct io *pop_incoming(struct mpio *m)
{
	struct io *io = m->incoming;

	m->incoming = io->link;
	if (!m->incoming)
		m->incoming_tail = &m->incoming;
	m->incoming_count--;
	return io;
}

void mpio_fail_waiting(struct mpio *m)
{
	uint64_t ios = m->incoming_count; /* not those that come in meanwhile */
	struct mpio_req *req;

	while ((req = TAILQ_FIRST(&m->ready)) || (req = TAILQ_FIRST(&m->delayed)) ||
	       (req = TAILQ_FIRST(&m->blocked)) || (req = TAILQ_FIRST(&m->behind)) ||
	       (req = TAILQ_FIRST(&m->crowded)))
		mpio_finish(m, req, -ENODEV);
	while (ios--)
		end_io(m, pop_incoming(m), -ENODEV);
}

static bool make_slice(struct mpio_req *req, const struct io *io, uint64_t skip)
{
	int n;

	if (req->slice_room < io->iov_count) {
		struct iovec *slice = realloc(req->slice, io->iov_count * sizeof *slice);

		if (!slice)
			return false;
		req->slice = slice;
		req->slice_room = io->iov_count;
	}
	n = iov_slice(io->iov, io->iov_count, skip, req->length_bytes, req->slice, req->slice_room);
	if (n < 0)
		return false;
	req->pio.iov = req->slice;
	req->pio.iov_count = (unsigned)n;
	return true;
}

/* The request for [skip, skip + length) of IO; NULL without memory. */
static struct mpio_req *make_req(struct mpio *m, struct io *io, uint64_t skip, uint64_t length)
{
	bool data = io->op == IO_READ || io->op == IO_WRITE;
	struct mpio_req *req = mpio_req_get(m);

	if (!req)
		return NULL;
	req->io = io;
	req->offset_bytes = io->op == IO_FLUSH ? 0 : io->offset_bytes + skip;
	req->length_bytes = io->op == IO_FLUSH ? 0 : length;
	req->pio.op = io->op;
	req->pio.flags = io->flags;
	req->pio.lba = req->offset_bytes / m->unit.block_bytes;
	req->pio.blocks = (uint32_t)(req->length_bytes / m->unit.block_bytes);
	req->pio.iov = data ? io->iov : NULL;
	req->pio.iov_count = data ? io->iov_count : 0;
	if (data && length < io->length_bytes && !make_slice(req, io, skip)) {
		mpio_req_put(m, req);
		return NULL;
	}
	return req;
}

static void split(struct mpio *m, struct io *io, uint64_t limit)
{
	struct mpio_req_list parts = TAILQ_HEAD_INITIALIZER(parts);
	struct mpio_whole *whole = mpio_whole_get(m);
	struct mpio_req *req;
	uint64_t length;

	if (!whole) {
		end_io(m, io, -ENOMEM);
		return;
	}
	whole->io = io;
	for (uint64_t at = 0; at < io->length_bytes; at += length) {
		length = MIN_OF(limit, io->length_bytes - at);
		req = make_req(m, io, at, length);
		if (!req) {
			while ((req = TAILQ_FIRST(&parts))) {
				TAILQ_REMOVE(&parts, req, link);
				mpio_req_put(m, req);
			}
			mpio_whole_put(m, whole);
			end_io(m, io, -ENOMEM);
			return;
		}
		req->whole = whole;
		whole->open++;
		TAILQ_INSERT_TAIL(&parts, req, link);
	}
	while ((req = TAILQ_FIRST(&parts))) {
		TAILQ_REMOVE(&parts, req, link);
		mpio_queue_req(m, req, REQ_READY);
	}
}

/* What the unit takes at once, in bytes. */
static uint64_t limit_bytes(const struct mpio *m, enum io_op op)
{
	uint64_t block = m->unit.block_bytes;
	uint64_t told = op == IO_UNMAP ? m->unit.max_unmap_blocks : m->unit.max_transfer_blocks;
	uint64_t most =
	    op == IO_UNMAP ? UINT32_MAX * block : MPIO_MAX_TRANSFER_BYTES / block * block;

	return told && told < most / block ? told * block : most;
}

static int check_io(const struct mpio *m, const struct io *io)
{
	if (io->op == IO_FLUSH)
		return 0;
	if (!io_in_range(&m->layer, io))
		return -ERANGE;
	if (io->offset_bytes % m->unit.block_bytes || io->length_bytes % m->unit.block_bytes)
		return -EINVAL;
	if (io->op == IO_UNMAP && !m->unit.can_unmap)
		return -EOPNOTSUPP;
	return 0;
}

/* Turns IO into requests that are ready to go, or ends it. */
static void prepare(struct mpio *m, struct io *io)
{
	int status = check_io(m, io);
	struct mpio_req *req;

	if (status < 0 || (io->op != IO_FLUSH && io->length_bytes == 0)) {
		end_io(m, io, status);
		return;
	}
	if (io->op != IO_FLUSH && io->length_bytes > limit_bytes(m, io->op)) {
		split(m, io, limit_bytes(m, io->op));
		return;
	}
	req = make_req(m, io, 0, io->length_bytes);
	if (req)
		mpio_queue_req(m, req, REQ_READY);
	else
		end_io(m, io, -ENOMEM);
}

/* -1: nothing now.  Else it is sent at once, and the time is the same. */
static int choose(struct mpio *m, struct mpio_req *req)
{
	const struct mpio_path_view *views = m->views;
	struct mpio_path_view masked[MPIO_MAX_PATHS];
	struct mpio_ask ask = {req->offset_bytes, req->length_bytes, loop_now_ns(m->loop)};
	bool others = false;

	req->sent_ns = ask.now_ns;
	if (req->same_path && views[req->path].able && !views[req->path].full)
		return (int)req->path;
	if (req->avoid) {
		memcpy(masked, views, m->count * sizeof *masked);
		for (unsigned i = 0; i < m->count; i++) {
			if (req->avoid >> i & 1)
				masked[i].able = false;
			others |= masked[i].able;
		}
		if (others) {
			mpio_rank_views(masked, m->count, m->policy->all_ranks);
			views = masked;
		}
	}
	return m->policy->select(m->policy_state, views, m->count, &ask);
}

static void send(struct mpio *m, struct mpio_req *req, unsigned path)
{
	mpio_view_sent(m, path, req->length_bytes);
	unqueue(m, req);
	req->state = REQ_SENT;
	req->path = path;
	req->same_path = false;
	m->writes_in_flight += mpio_changes_data(req);
	if (req->loss)
		mpio_track_sent(m, req);
	path_submit(m->paths[path]->path, &req->pio);
}

static bool dispatch_one(struct mpio *m)
{
	struct mpio_req *req = TAILQ_FIRST(&m->ready);
	int path;

	if (m->holding)
		return false;
	if (!req) {
		if (!m->incoming || !m->available)
			return false;
		prepare(m, pop_incoming(m));
		return true;
	}
	if (!m->available)
		return false;
	if (mpio_changes_data(req) && !mpio_fence_passes(m, req))
		return true;
	path = choose(m, req);
	if (path < 0)
		return false;
	send(m, req, (unsigned)path);
	return true;
}

/* Sends what can go.  Entered again from a completion it leaves the work to the outer call. */
void mpio_pump(struct mpio *m)
{
	if (m->pumping || m->freeing)
		return;
	m->pumping = true;
	while (dispatch_one(m))
		;
	m->pumping = false;
}

void mpio_submit(struct io_layer *layer, struct io *io)
{
	struct mpio *m = container_of(layer, struct mpio, layer);

	m->open_ios++;
	if (m->freeing) {
		end_io(m, io, -ENODEV);
		return;
	}
	io->link = NULL;
	*m->incoming_tail = io;
	m->incoming_tail = &io->link;
	m->incoming_count++;
	/* A device that is gone refuses from the loop and a little later, so that a submitter
	 * that tries again at once neither recurses nor spins. */
	if (m->gone && !loop_timer_pending(&m->refuse_timer))
		loop_timer_set(m->loop, &m->refuse_timer, loop_now_ns(m->loop) + REFUSE_AFTER_NS);
	else if (!m->gone)
		mpio_pump(m);
}

void mpio_refuse_due(void *arg)
{
	struct mpio *m = arg;

	m->depth++;
	if (m->gone)
		mpio_fail_waiting(m);
	mpio_pump(m);
	m->depth--;
}
