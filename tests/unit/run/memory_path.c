/* SPDX-License-Identifier: MIT
 *
 * The path of memory_path.h.  All I/O takes the same time, so one timer serves a queue in order.
 */
#include "memory_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

#define BLOCK_BYTES 512

static struct memory_path *of(struct path *path)
{
	return container_of(path, struct memory_path, base);
}

static void execute(struct memory_path *path, struct path_io *pio)
{
	uint8_t *at = path->disk->memory + pio->lba * BLOCK_BYTES;
	uint64_t size = (uint64_t)pio->blocks * BLOCK_BYTES;

	if (pio->op == IO_READ)
		iov_from_mem(pio->iov, pio->iov_count, 0, at, size);
	else if (pio->op == IO_WRITE)
		iov_to_mem(pio->iov, pio->iov_count, 0, at, size);
}

static struct path_io *take(struct memory_path *path)
{
	struct path_io *pio = path->pending;

	path->pending = pio->next;
	if (!path->pending)
		path->pending_end = &path->pending;
	path->base.in_flight--;
	path->base.in_flight_bytes -= (uint64_t)pio->blocks * BLOCK_BYTES;
	return pio;
}

static void io_due(void *arg)
{
	struct memory_path *path = arg;
	uint64_t now_ns = loop_now_ns(path->base.loop);

	while (path->pending && !path->silent &&
	       path->pending->submit_ns + path->disk->delay_ns <= now_ns) {
		struct path_io *pio = take(path);

		execute(path, pio);
		path->base.heard_ns = now_ns;
		pio->result = PATH_OK;
		pio->done(pio);
	}
	if (path->pending && !path->silent)
		loop_timer_set(path->base.loop, &path->io_timer,
			       path->pending->submit_ns + path->disk->delay_ns);
}

static void connect_due(void *arg)
{
	struct memory_path *path = arg;
	struct path_identity *identity = &path->base.identity;

	if (path->cut) {
		path->base.config.event(path->base.config.arg, &path->base, PATH_EVENT_DOWN,
					"connection refused");
		return;
	}
	*identity = (struct path_identity){
	    .designator = {0x60, path->disk->id},
	    .designator_bytes = 16,
	    .block_bytes = BLOCK_BYTES,
	    .blocks = path->disk->size_bytes / BLOCK_BYTES,
	};
	path->base.up = true;
	path->base.config.event(path->base.config.arg, &path->base, PATH_EVENT_UP, "logged in");
}

static int connect_path(struct path *base)
{
	struct memory_path *path = of(base);

	loop_timer_set(base->loop, &path->connect_timer, loop_now_ns(base->loop) + NS_PER_MS);
	return 0;
}

static void submit(struct path *base, struct path_io *pio)
{
	struct memory_path *path = of(base);

	pio->submit_ns = loop_now_ns(base->loop);
	pio->next = NULL;
	*path->pending_end = pio;
	path->pending_end = &pio->next;
	base->in_flight++;
	base->in_flight_bytes += (uint64_t)pio->blocks * BLOCK_BYTES;
	if (!loop_timer_pending(&path->io_timer))
		loop_timer_set(base->loop, &path->io_timer, pio->submit_ns + path->disk->delay_ns);
}

static void lose_all(struct memory_path *path)
{
	while (path->pending) {
		struct path_io *pio = take(path);

		pio->result = PATH_LOST;
		pio->done(pio);
	}
}

static void disconnect(struct path *base)
{
	struct memory_path *path = of(base);

	base->up = false;
	loop_timer_cancel(base->loop, &path->connect_timer);
	loop_timer_cancel(base->loop, &path->io_timer);
	lose_all(path);
}

static void free_path(struct path *base)
{
	disconnect(base);
	free(of(base));
}

static const struct path_ops memory_path_ops = {
    .name = "memory",
    .connect = connect_path,
    .submit = submit,
    .disconnect = disconnect,
    .free = free_path,
};

int memory_path_new(struct loop *loop, const struct path_config *config, struct memory_disk *disk,
		    struct memory_path **ret_path)
{
	struct memory_path *path = calloc(1, sizeof *path);

	if (!path)
		return -ENOMEM;
	path->base.ops = &memory_path_ops;
	path->base.loop = loop;
	path->base.config = *config;
	snprintf(path->portal, sizeof path->portal, "%s", config->portal);
	path->base.config.portal = path->portal;
	path->disk = disk;
	path->pending_end = &path->pending;
	loop_timer_init(&path->io_timer, io_due, path);
	loop_timer_init(&path->connect_timer, connect_due, path);
	*ret_path = path;
	return 0;
}

void memory_path_cut(struct memory_path *path, bool cut)
{
	path->cut = cut;
	if (!cut || !path->base.up)
		return;
	path->base.up = false;
	loop_timer_cancel(path->base.loop, &path->io_timer);
	lose_all(path);
	path->base.config.event(path->base.config.arg, &path->base, PATH_EVENT_DOWN,
				"connection reset by peer");
}
