/* SPDX-License-Identifier: MIT
 *
 * Passes requests on, and holds answers that come too early.
 *
 * The floor is the same for all, so those that are held leave in the order they came: one queue,
 * one timer.
 */
#include "harness/sim/direct.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/bytes.h"
#include "target/drive/freelist.h"

enum { REQUESTS_MAX = 65536 };

struct request {
	struct io io; /* what goes below */
	struct direct *direct;
	struct io *parent;
	uint64_t due_ns; /* not answered before */
	TAILQ_ENTRY(request) entry;
};

struct direct {
	struct io_layer layer;
	struct loop *loop;
	struct io_layer *below;
	uint64_t floor_ns;
	struct freelist requests;
	TAILQ_HEAD(request_list, request) held;
	struct loop_timer timer;
};

static void end(struct request *request)
{
	struct direct *direct = request->direct;
	struct io *parent = request->parent;
	int status = request->io.status;

	freelist_give(&direct->requests, request);
	io_complete(parent, status);
}

static void hold(struct direct *direct, struct request *request)
{
	struct request *before = TAILQ_LAST(&direct->held, request_list);

	/* Answered in another order than sent: not before those that are due earlier. */
	while (before && before->due_ns > request->due_ns)
		before = TAILQ_PREV(before, request_list, entry);
	if (before)
		TAILQ_INSERT_AFTER(&direct->held, before, request, entry);
	else
		TAILQ_INSERT_HEAD(&direct->held, request, entry);
	loop_timer_set(direct->loop, &direct->timer, TAILQ_FIRST(&direct->held)->due_ns);
}

static void held_due(void *arg)
{
	struct direct *direct = arg;
	uint64_t now_ns = loop_now_ns(direct->loop);
	struct request *request;

	while ((request = TAILQ_FIRST(&direct->held)) && request->due_ns <= now_ns) {
		TAILQ_REMOVE(&direct->held, request, entry);
		end(request);
	}
	if (request)
		loop_timer_set(direct->loop, &direct->timer, request->due_ns);
}

static void answered(struct io *io)
{
	struct request *request = io->owner;

	if (loop_now_ns(request->direct->loop) >= request->due_ns)
		end(request);
	else
		hold(request->direct, request);
}

static void submit(struct io_layer *layer, struct io *io)
{
	struct direct *direct = container_of(layer, struct direct, layer);
	struct request *request = freelist_take(&direct->requests);

	if (!request) {
		io_complete(io, -EBUSY);
		return;
	}
	request->direct = direct;
	request->parent = io;
	request->due_ns = loop_now_ns(direct->loop) + direct->floor_ns;
	request->io = *io;
	request->io.done = answered;
	request->io.owner = request;
	io_submit(direct->below, &request->io);
}

static const struct io_layer_ops direct_ops = {.name = "direct", .submit = submit};

int sim_direct_new(struct loop *loop, struct io_layer *below, uint64_t floor_ns,
		   struct io_layer **ret_layer)
{
	struct direct *direct = calloc(1, sizeof *direct);

	if (!direct)
		return -ENOMEM;
	*direct = (struct direct){
	    .layer = {.ops = &direct_ops, .size_bytes = below->size_bytes},
	    .loop = loop,
	    .below = below,
	    .floor_ns = floor_ns,
	};
	freelist_init(&direct->requests, sizeof(struct request), REQUESTS_MAX);
	TAILQ_INIT(&direct->held);
	loop_timer_init(&direct->timer, held_due, direct);
	*ret_layer = &direct->layer;
	return 0;
}

struct io_layer *sim_direct_free(struct io_layer *layer)
{
	struct direct *direct;
	struct request *request;

	if (!layer)
		return NULL;
	direct = container_of(layer, struct direct, layer);
	loop_timer_cancel(direct->loop, &direct->timer);
	while ((request = TAILQ_FIRST(&direct->held))) {
		TAILQ_REMOVE(&direct->held, request, entry);
		end(request);
	}
	freelist_done(&direct->requests);
	free(direct);
	return NULL;
}
