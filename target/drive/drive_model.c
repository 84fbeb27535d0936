/* SPDX-License-Identifier: MIT
 *
 * Service time of a drive: one queue in arrival order, served by `channels` servers.
 *
 *   service = overhead + (sequential ? 0 : seek + half a rotation) + length / rate
 *
 * The seek over a distance d is average * 15/8 * sqrt(d / size), at least a sixteenth of the
 * average: the square root is how an accelerating arm moves, and 15/8 makes the mean over random
 * pairs of places the average of the data sheet (the mean of sqrt(d) is 8/15).  A request is
 * sequential when it begins where the one before it in the queue ended.  FLUSH and UNMAP cost the
 * overhead and leave the arm alone.
 *
 * The order of service is the order of arrival, so the instant a request ends is known when it
 * arrives; it waits in its server's list until then and only then goes to the layer below.
 */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "target/drive/freelist.h"
#include "target/drive/model.h"

/* The queue is never the first bound to be reached: see drive.c. */
enum { MODEL_QUEUE_MAX = 1 << 18, CHANNELS_MAX = 32 };

struct waiting {
	struct io *io;
	uint64_t due_ns;
	uint64_t order;
	struct waiting *next;
};

struct channel {
	struct waiting *first, **last;
	uint64_t free_ns; /* when the last of the list ends */
};

struct model_layer {
	struct io_layer layer;
	struct loop *loop;
	const struct drive_model *model;
	struct io_layer *below;
	uint64_t *busy_ns;
	uint64_t unread_busy_ns; /* where busy_ns points until somebody counts */
	uint64_t head_bytes;
	uint64_t order;
	bool drained;
	bool serving;
	struct loop_timer timer;
	struct freelist queue;
	unsigned channel_count;
	struct channel channels[CHANNELS_MAX];
};

static uint64_t seek_ns(uint64_t average_ns, uint64_t size_bytes, uint64_t from, uint64_t to)
{
	uint64_t distance = from > to ? from - to : to - from;
	double share = size_bytes ? sqrt((double)distance / (double)size_bytes) : 0;
	uint64_t seek = (uint64_t)((double)average_ns * 1.875 * share);
	return MAX_OF(seek, average_ns / 16);
}

uint64_t drive_service_ns(const struct drive_model *model, uint64_t size_bytes, uint64_t head_bytes,
			  const struct io *io)
{
	uint64_t service = model->overhead_ns;
	if (io->op != IO_READ && io->op != IO_WRITE)
		return service;
	if (model->rpm && io->offset_bytes != head_bytes) {
		uint64_t average = io->op == IO_READ ? model->seek_read_ns : model->seek_write_ns;
		service += seek_ns(average, size_bytes, head_bytes, io->offset_bytes);
		service += 30 * NS_PER_S / model->rpm;
	}
	return service + (uint64_t)((double)io->length_bytes * (double)NS_PER_S /
				    (double)model->transfer_bytes_per_s);
}

static struct channel *earliest(struct model_layer *ml)
{
	struct channel *best = NULL;
	for (unsigned i = 0; i < ml->channel_count; i++) {
		struct channel *channel = &ml->channels[i];
		if (!channel->first)
			continue;
		if (!best || channel->first->due_ns < best->first->due_ns ||
		    (channel->first->due_ns == best->first->due_ns &&
		     channel->first->order < best->first->order))
			best = channel;
	}
	return best;
}

static void serve_first(struct model_layer *ml, struct channel *channel)
{
	struct waiting *waiting = channel->first;
	struct io *io = waiting->io;
	channel->first = waiting->next;
	if (!channel->first)
		channel->last = &channel->first;
	freelist_give(&ml->queue, waiting);
	io_submit(ml->below, io);
}

static void model_serve(void *arg)
{
	struct model_layer *ml = arg;
	uint64_t now_ns = loop_now_ns(ml->loop);
	struct channel *channel;

	/* Requests that arrive from within a completion join the lists; the timer is set once. */
	ml->serving = true;
	while ((channel = earliest(ml)) && (ml->drained || channel->first->due_ns <= now_ns))
		serve_first(ml, channel);
	ml->serving = false;
	if (channel)
		loop_timer_set(ml->loop, &ml->timer, channel->first->due_ns);
}

static struct channel *first_free(struct model_layer *ml)
{
	struct channel *best = &ml->channels[0];
	for (unsigned i = 1; i < ml->channel_count; i++)
		if (ml->channels[i].free_ns < best->free_ns)
			best = &ml->channels[i];
	return best;
}

static void model_submit(struct io_layer *layer, struct io *io)
{
	struct model_layer *ml = container_of(layer, struct model_layer, layer);
	if (ml->drained) {
		io_submit(ml->below, io);
		return;
	}
	struct waiting *waiting = freelist_take(&ml->queue);
	if (!waiting) {
		io_complete(io, -EBUSY);
		return;
	}
	uint64_t service = drive_service_ns(ml->model, layer->size_bytes, ml->head_bytes, io);
	struct channel *channel = first_free(ml);
	uint64_t start_ns = MAX_OF(loop_now_ns(ml->loop), channel->free_ns);

	channel->free_ns = start_ns + service;
	*waiting = (struct waiting){
	    .io = io,
	    .due_ns = channel->free_ns,
	    .order = ml->order++,
	};
	*channel->last = waiting;
	channel->last = &waiting->next;
	*ml->busy_ns += service;
	if (io->op == IO_READ || io->op == IO_WRITE)
		ml->head_bytes = io->offset_bytes + io->length_bytes;
	if (!ml->serving &&
	    (!loop_timer_pending(&ml->timer) || waiting->due_ns < ml->timer.deadline_ns))
		loop_timer_set(ml->loop, &ml->timer, waiting->due_ns);
}

static void model_free(struct io_layer *layer)
{
	struct model_layer *ml = container_of(layer, struct model_layer, layer);
	loop_timer_cancel(ml->loop, &ml->timer);
	freelist_done(&ml->queue);
	free(ml);
}

static const struct io_layer_ops model_layer_ops = {
    .name = "drive model",
    .submit = model_submit,
    .free = model_free,
};

int drive_model_open(struct loop *loop, const struct drive_model *model, uint64_t seed,
		     struct io_layer *below, struct io_layer **ret_layer)
{
	assert(model->channels > 0 && model->channels <= CHANNELS_MAX);
	struct model_layer *ml = calloc(1, sizeof *ml);
	if (!ml)
		return -ENOMEM;
	ml->layer = (struct io_layer){.ops = &model_layer_ops, .size_bytes = below->size_bytes};
	ml->loop = loop;
	ml->model = model;
	ml->below = below;
	ml->busy_ns = &ml->unread_busy_ns;
	ml->channel_count = model->channels;
	for (unsigned i = 0; i < ml->channel_count; i++)
		ml->channels[i].last = &ml->channels[i].first;
	loop_timer_init(&ml->timer, model_serve, ml);
	freelist_init(&ml->queue, sizeof(struct waiting), MODEL_QUEUE_MAX);
	*ret_layer = &ml->layer;
	return 0;
}

void drive_model_count_busy(struct io_layer *layer, uint64_t *busy_ns)
{
	container_of(layer, struct model_layer, layer)->busy_ns = busy_ns;
}

void drive_model_drain(struct io_layer *layer)
{
	struct model_layer *ml = container_of(layer, struct model_layer, layer);
	ml->drained = true;
	loop_timer_cancel(ml->loop, &ml->timer);
	model_serve(ml);
}
