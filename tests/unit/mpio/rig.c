/* SPDX-License-Identifier: MIT
 *
 * The device under test and its surroundings.
 */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/bytes.h"

static const char *const portals[RIG_PATHS_MAX] = {
    "10.0.0.1:3260", "10.0.0.2:3260", "10.0.0.3:3260", "10.0.0.4:3260",
    "10.0.0.5:3260", "10.0.0.6:3260", "10.0.0.7:3260", "10.0.0.8:3260",
};

static void on_event(void *arg, const struct mpio_event *event)
{
	struct rig *rig = arg;
	unsigned at = rig->event_count;

	if (at == RIG_EVENTS_MAX)
		return;
	rig->events[at] = *event;
	snprintf(rig->event_whys[at], sizeof rig->event_whys[at], "%s", event->why);
	rig->events[at].why = rig->event_whys[at];
	rig->event_count++;
}

static void on_ready(void *arg, int status, const char *why)
{
	struct rig *rig = arg;

	rig->ready_calls++;
	rig->ready_status = status;
	snprintf(rig->ready_why, sizeof rig->ready_why, "%s", why);
}

void rig_open(struct rig *rig, const struct mpio_config *config, unsigned paths, uint64_t seed)
{
	struct mpio_config defaults = {.no_path_ns = 20 * NS_PER_S, .max_retries = 30};

	*rig = (struct rig){.paths = paths};
	assert_int_equal(loop_new_virtual(0, &rig->loop), 0);
	fake_disk_init(&rig->disk, rig->loop, RIG_BLOCKS);
	assert_int_equal(mpio_new(rig->loop, config ? config : &defaults, "vol", seed, &rig->mpio),
			 0);
	for (unsigned i = 0; i < paths; i++) {
		rig->fakes[i] = fake_path_new(rig->loop, &rig->disk, portals[i], seed);
		assert_int_equal(mpio_add_path(rig->mpio, &rig->fakes[i]->path), 0);
	}
	mpio_on_event(rig->mpio, on_event, rig);
	rig->layer = mpio_layer(rig->mpio);
}

void rig_start(struct rig *rig)
{
	mpio_start(rig->mpio, 2 * NS_PER_S, on_ready, rig);
	assert_int_equal(rig->ready_calls, 0); /* never from within */
	rig_run_for(rig, 2 * NS_PER_S);
	assert_int_equal(rig->ready_calls, 1);
}

void rig_close(struct rig *rig)
{
	mpio_free(rig->mpio);
	fake_disk_done(&rig->disk);
	loop_free(rig->loop);
}

void rig_run_for(struct rig *rig, uint64_t ns)
{
	assert_int_equal(loop_run_until(rig->loop, loop_now_ns(rig->loop) + ns), 0);
}

static void io_done(struct io *io)
{
	struct rig_io *rio = io->owner;

	rio->done++;
	rio->done_ns = loop_now_ns(rio->rig->loop);
}

struct rig_io *rig_io_new(struct rig *rig, enum io_op op, uint64_t block, uint64_t blocks,
			  uint8_t fill)
{
	size_t size = blocks * FAKE_BLOCK_BYTES;
	struct rig_io *rio = calloc(1, sizeof *rio);

	assert_non_null(rio);
	rio->rig = rig;
	rio->data = malloc(size + 1);
	assert_non_null(rio->data);
	memset(rio->data, fill, size);
	rio->iov[0] = (struct iovec){rio->data, size / 2 + 100 * (size > 200)};
	rio->iov[1] = (struct iovec){rio->data + rio->iov[0].iov_len, size - rio->iov[0].iov_len};
	rio->io = (struct io){
	    .op = op,
	    .offset_bytes = block * FAKE_BLOCK_BYTES,
	    .length_bytes = size,
	    .iov = op == IO_READ || op == IO_WRITE ? rio->iov : NULL,
	    .iov_count = op == IO_READ || op == IO_WRITE ? 2 : 0,
	    .status = 12345,
	    .done = io_done,
	    .owner = rio,
	};
	return rio;
}

void rig_io_free(struct rig_io *rio)
{
	free(rio->data);
	free(rio);
}

int rig_do(struct rig *rig, enum io_op op, uint64_t block, uint64_t blocks, uint8_t fill)
{
	struct rig_io *rio = rig_io_new(rig, op, block, blocks, fill);
	int status;

	io_submit(rig->layer, &rio->io);
	for (unsigned i = 0; i < 1000 && !rio->done; i++)
		rig_run_for(rig, 100 * NS_PER_MS);
	assert_int_equal(rio->done, 1);
	status = rio->io.status;
	rig_io_free(rio);
	return status;
}

const struct mpio_ledger *rig_ledger(struct rig *rig, unsigned path)
{
	struct mpio_path_info info;

	mpio_path_info(rig->mpio, path, &info);
	return info.ledger;
}

enum mpio_path_state rig_state(struct rig *rig, unsigned path)
{
	struct mpio_path_info info;

	mpio_path_info(rig->mpio, path, &info);
	return info.state;
}

const struct mpio_event *rig_find_event(const struct rig *rig, unsigned path,
					enum mpio_path_state from, enum mpio_path_state to)
{
	for (unsigned i = 0; i < rig->event_count; i++)
		if (rig->events[i].path == path && rig->events[i].from == from &&
		    rig->events[i].to == to)
			return &rig->events[i];
	return NULL;
}

void rig_open_groups(struct rig *rig, const struct mpio_config *config, uint8_t a, uint8_t b)
{
	const struct mpio_config some = {.max_retries = 30, .no_path_ns = 2 * NS_PER_S};

	rig_open(rig, config ? config : &some, 4, 1);
	rig->disk.group_count = 2;
	rig->disk.groups[0] = (struct fake_group){.id = 10, .state = a};
	rig->disk.groups[1] = (struct fake_group){.id = 20, .state = b};
	for (unsigned i = 0; i < 4; i++) {
		rig->fakes[i]->identity.target_port_group = i < 2 ? 10 : 20;
		rig->fakes[i]->identity.tpgs = 3;
	}
	rig_start(rig);
}

void rig_do_some(struct rig *rig, unsigned ios)
{
	mpio_ledger_reset(rig->mpio);
	for (unsigned i = 0; i < ios; i++)
		assert_int_equal(rig_do(rig, i % 2 ? IO_READ : IO_WRITE, i, 1, 1), 0);
}

void rig_expect_ios(struct rig *rig, unsigned a, unsigned b)
{
	assert_int_equal(rig_ledger(rig, 0)->ios + rig_ledger(rig, 1)->ios, a);
	assert_int_equal(rig_ledger(rig, 2)->ios + rig_ledger(rig, 3)->ios, b);
}
