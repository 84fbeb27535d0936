/* SPDX-License-Identifier: MIT
 *
 * The virtual loop: no descriptors, and instead of waiting the clock jumps.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/loop_impl.h"

/* 2026-01-01T00:00:00Z */
static const uint64_t epoch_ns = UINT64_C(1767225600) * NS_PER_S;

struct virtual_loop {
	struct loop loop;
	uint64_t now_ns;
};

static struct virtual_loop *virtual_of(struct loop *loop)
{
	return container_of(loop, struct virtual_loop, loop);
}

static uint64_t virtual_now_ns(const struct loop *loop)
{
	return ((const struct virtual_loop *)(const void *)loop)->now_ns;
}

static uint64_t virtual_wall_ns(const struct loop *loop)
{
	return epoch_ns + virtual_now_ns(loop);
}

static int virtual_wait(struct loop *loop, uint64_t until_ns)
{
	struct virtual_loop *self = virtual_of(loop);

	if (until_ns != LOOP_NEVER && until_ns > self->now_ns)
		self->now_ns = until_ns;
	return 0;
}

static void virtual_wake(struct loop *loop)
{
	(void)loop; /* never waits */
}

static int virtual_watch_refuse(struct loop *loop, struct loop_watch *watch, uint32_t events)
{
	return -ENOTSUP;
}

static void virtual_watch_del(struct loop *loop, struct loop_watch *watch)
{
	(void)loop; /* none can have been added */
}

static void virtual_free(struct loop *loop)
{
	loop_done(loop);
	free(virtual_of(loop));
}

static const struct loop_ops virtual_ops = {
    .now_ns = virtual_now_ns,
    .wall_ns = virtual_wall_ns,
    .wait = virtual_wait,
    .wake = virtual_wake,
    .watch_add = virtual_watch_refuse,
    .watch_set = virtual_watch_refuse,
    .watch_del = virtual_watch_del,
    .free = virtual_free,
    .is_virtual = true,
};

int loop_new_virtual(uint64_t start_ns, struct loop **ret_loop)
{
	struct virtual_loop *self = calloc(1, sizeof *self);
	int rc;

	if (!self)
		return -ENOMEM;
	rc = loop_init(&self->loop, &virtual_ops);
	if (rc < 0) {
		free(self);
		return rc;
	}
	self->now_ns = start_ns;
	*ret_loop = &self->loop;
	return 0;
}
