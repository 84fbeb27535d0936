/* SPDX-License-Identifier: MIT
 *
 * The shell of a modelled drive (drive_core.h): holds requests on the loop's clock and hands each
 * to the layer below at its modelled instant.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "target/drive/drive_core.h"
#include "target/drive/freelist.h"
#include "target/drive/model.h"

/* The queue is never the first bound to be reached: see drive.c. */
enum { MODEL_QUEUE_MAX = 1 << 18 };

struct model_layer {
	struct io_layer layer;
	struct loop *loop;
	struct io_layer *below;
	struct loop_timer timer;
	struct freelist commands;
	bool drained;
	bool serving;
	void (*watch)(void *arg, const struct drive_command *command);
	void *watch_arg;
	struct drive_counters own_counters; /* until somebody else's are set */
	struct drive_core core;
};

static struct model_layer *model_of(struct io_layer *layer)
{
	return container_of(layer, struct model_layer, layer);
}

static void serve(struct model_layer *ml, struct drive_command *command)
{
	struct io *io = command->io;
	freelist_give(&ml->commands, command);
	io_submit(ml->below, io);
}

static void model_wake(struct model_layer *ml)
{
	uint64_t next_ns = drive_core_next_ns(&ml->core);
	if (next_ns == DRIVE_CORE_NEVER)
		loop_timer_cancel(ml->loop, &ml->timer);
	else if (!loop_timer_pending(&ml->timer) || ml->timer.deadline_ns != next_ns)
		loop_timer_set(ml->loop, &ml->timer, next_ns);
}

static void model_serve(void *arg)
{
	struct model_layer *ml = arg;
	uint64_t now_ns = loop_now_ns(ml->loop);
	struct drive_command *command;

	/* Requests that arrive from within a completion join the queue; the timer is set once. */
	ml->serving = true;
	while (!ml->drained && (command = drive_core_take(&ml->core, now_ns))) {
		uint64_t *late_max_ns = &ml->core.counters->late_max_ns;
		*late_max_ns = MAX_OF(*late_max_ns, now_ns - command->due_ns);
		if (ml->watch)
			ml->watch(ml->watch_arg, command);
		serve(ml, command);
	}
	ml->serving = false;
	if (!ml->drained)
		model_wake(ml);
}

static void model_submit(struct io_layer *layer, struct io *io)
{
	struct model_layer *ml = model_of(layer);
	if (ml->drained) {
		io_submit(ml->below, io);
		return;
	}
	struct drive_command *command = freelist_take(&ml->commands);
	if (!command) {
		io_complete(io, -EBUSY);
		return;
	}
	command->io = io;
	command->op = io->op;
	command->offset_bytes = io->offset_bytes;
	command->length_bytes = io->length_bytes;
	drive_core_add(&ml->core, command, loop_now_ns(ml->loop));
	if (!ml->serving)
		model_wake(ml);
}

static void model_free(struct io_layer *layer)
{
	struct model_layer *ml = model_of(layer);
	loop_timer_cancel(ml->loop, &ml->timer);
	freelist_done(&ml->commands);
	free(ml);
}

static const struct io_layer_ops model_layer_ops = {
    .name = "drive model",
    .submit = model_submit,
    .free = model_free,
};

int drive_model_open(struct loop *loop, const struct drive_model *model,
		     const struct drive_scheduler *scheduler, struct io_layer *below,
		     struct io_layer **ret_layer)
{
	struct model_layer *ml = calloc(1, sizeof *ml);
	if (!ml)
		return -ENOMEM;
	ml->layer = (struct io_layer){.ops = &model_layer_ops, .size_bytes = below->size_bytes};
	ml->loop = loop;
	ml->below = below;
	int rc = drive_core_init(&ml->core, model, scheduler, below->size_bytes, &ml->own_counters);
	if (rc) {
		free(ml);
		return rc;
	}
	loop_timer_init(&ml->timer, model_serve, ml);
	ml->timer.exact = true;
	freelist_init(&ml->commands, sizeof(struct drive_command), MODEL_QUEUE_MAX);
	*ret_layer = &ml->layer;
	return 0;
}

void drive_model_count(struct io_layer *layer, struct drive_counters *counters)
{
	model_of(layer)->core.counters = counters;
}

void drive_model_watch(struct io_layer *layer,
		       void (*watch)(void *arg, const struct drive_command *command), void *arg)
{
	model_of(layer)->watch = watch;
	model_of(layer)->watch_arg = arg;
}

void drive_model_set_slow(struct io_layer *layer, const struct drive_slow *slow)
{
	model_of(layer)->core.slow = *slow;
}

struct drive_slow drive_model_slow(const struct io_layer *layer)
{
	return ((const struct model_layer *)(const void *)layer)->core.slow;
}

void drive_model_drain(struct io_layer *layer)
{
	struct model_layer *ml = model_of(layer);
	struct drive_command *command;

	ml->drained = true;
	loop_timer_cancel(ml->loop, &ml->timer);
	while ((command = drive_core_drain(&ml->core)))
		serve(ml, command);
}
