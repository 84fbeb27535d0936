/* SPDX-License-Identifier: MIT
 *
 * A volume for workload tests: memory, a fixed delay, and faults that real storage has.  A fault is
 * armed for the next I/O of its kind that overlaps [from, to).
 */
#ifndef SANLAB_TESTS_UNIT_WORKLOAD_FAKE_DEVICE_H
#define SANLAB_TESTS_UNIT_WORKLOAD_FAKE_DEVICE_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/io.h"
#include "base/loop.h"
#include "harness/workload/workload.h"

enum fake_fault {
	FAKE_NONE,
	FAKE_LOST,	  /* write acknowledged, not done */
	FAKE_TORN,	  /* write acknowledged, only its first 4 KiB done */
	FAKE_MISDIRECTED, /* write done at the wrong place (1 MiB on) as well */
	FAKE_CORRUPT,	  /* one bit of a read flipped */
	FAKE_FAILED_DONE, /* write reported as failed, but done */
	FAKE_FAILED_NOT_DONE,
	FAKE_READ_ERROR,
	FAKE_GONE, /* everything ends with -ENODEV from now on */
};

struct fake_device {
	struct io_layer layer;
	struct loop *loop;
	uint8_t *memory;
	uint64_t delay_ns; /* 0: ends within submit */
	enum fake_fault fault;
	unsigned skip;	      /* I/Os of its kind that are let by first */
	unsigned fault_count; /* how many more times */
	uint64_t from, to;
	uint64_t submitted, ended, reads, writes, max_end;
	uint64_t in_flight, max_in_flight;
	struct workload_device device;
};

struct fake_pending {
	struct loop_timer timer;
	struct fake_device *fake;
	struct io *io;
	int status;
};

static bool fake_hit(struct fake_device *fake, const struct io *io, bool write)
{
	bool for_write = fake->fault == FAKE_LOST || fake->fault == FAKE_TORN ||
			 fake->fault == FAKE_MISDIRECTED || fake->fault == FAKE_FAILED_DONE ||
			 fake->fault == FAKE_FAILED_NOT_DONE;

	if (fake->fault == FAKE_NONE || fake->fault_count == 0 || for_write != write ||
	    io->offset_bytes + io->length_bytes <= fake->from || io->offset_bytes >= fake->to)
		return false;
	if (fake->skip > 0) {
		fake->skip--;
		return false;
	}
	fake->fault_count--;
	return true;
}

static int fake_write(struct fake_device *fake, const struct io *io)
{
	enum fake_fault fault = fake_hit(fake, io, true) ? fake->fault : FAKE_NONE;
	uint64_t done = io->length_bytes, at = io->offset_bytes;

	fake->writes++;
	if (fault == FAKE_LOST || fault == FAKE_FAILED_NOT_DONE)
		done = 0;
	if (fault == FAKE_TORN)
		done = 4096;
	if (fault == FAKE_MISDIRECTED)
		at = (at + MIB) % (fake->layer.size_bytes / 2);
	iov_to_mem(io->iov, io->iov_count, 0, fake->memory + at, done);
	return fault == FAKE_FAILED_DONE || fault == FAKE_FAILED_NOT_DONE ? -EIO : 0;
}

static int fake_read(struct fake_device *fake, const struct io *io)
{
	enum fake_fault fault = fake_hit(fake, io, false) ? fake->fault : FAKE_NONE;

	fake->reads++;
	if (fault == FAKE_READ_ERROR)
		return -EIO;
	iov_from_mem(io->iov, io->iov_count, 0, fake->memory + io->offset_bytes, io->length_bytes);
	if (fault == FAKE_CORRUPT)
		((uint8_t *)io->iov[0].iov_base)[1234] ^= 0x10;
	return 0;
}

static void fake_end(struct fake_device *fake, struct io *io, int status)
{
	fake->ended++;
	fake->in_flight--;
	io_complete(io, status);
}

static void fake_due(void *arg)
{
	struct fake_pending *pending = arg;
	struct fake_device *fake = pending->fake;
	struct io *io = pending->io;
	int status = pending->status;

	free(pending);
	fake_end(fake, io, status);
}

static void fake_submit(struct io_layer *layer, struct io *io)
{
	struct fake_device *fake = container_of(layer, struct fake_device, layer);
	struct fake_pending *pending;
	int status;

	fake->submitted++;
	fake->in_flight++;
	fake->max_in_flight = MAX_OF(fake->max_in_flight, fake->in_flight);
	fake->max_end = MAX_OF(fake->max_end, io->offset_bytes + io->length_bytes);
	if (!io_in_range(layer, io) || iov_bytes(io->iov, io->iov_count) != io->length_bytes)
		abort();
	if (fake->fault == FAKE_GONE)
		status = -ENODEV;
	else
		status = io->op == IO_WRITE ? fake_write(fake, io) : fake_read(fake, io);
	if (!fake->delay_ns) {
		fake_end(fake, io, status);
		return;
	}
	pending = calloc(1, sizeof *pending);
	pending->fake = fake;
	pending->io = io;
	pending->status = status;
	loop_timer_init(&pending->timer, fake_due, pending);
	loop_timer_set(fake->loop, &pending->timer, loop_now_ns(fake->loop) + fake->delay_ns);
}

static const struct io_layer_ops fake_ops = {.name = "fake", .submit = fake_submit};

static inline void fake_init(struct fake_device *fake, struct loop *loop, const char *volume,
			     uint64_t size_bytes, uint64_t delay_ns)
{
	*fake = (struct fake_device){
	    .layer = {.ops = &fake_ops, .size_bytes = size_bytes},
	    .loop = loop,
	    .memory = calloc(1, size_bytes),
	    .delay_ns = delay_ns,
	    .to = UINT64_MAX,
	};
	fake->device = (struct workload_device){
	    .host = "h1",
	    .volume = volume,
	    .layer = &fake->layer,
	    .block_bytes = 512,
	    .known_zero = true,
	};
}

static inline void fake_done(struct fake_device *fake)
{
	free(fake->memory);
}

/* ---- driving a workload ---- */

struct fake_run {
	struct loop *loop;
	struct workload *workload;
	int status; /* of the last callback; 1 while none came */
	uint64_t mismatches;
	struct mismatch last;
};

static inline void fake_callback(void *arg, int status)
{
	struct fake_run *run = arg;

	run->status = status;
	loop_stop(run->loop);
}

static inline void fake_mismatch(void *arg, const struct mismatch *mismatch)
{
	struct fake_run *run = arg;

	run->mismatches++;
	run->last = *mismatch;
}

/* Waits for the callback of a step; at most an hour of virtual time. */
static inline int fake_wait(struct fake_run *run)
{
	uint64_t deadline = loop_now_ns(run->loop) + 3600 * NS_PER_S;

	while (run->status == 1 && loop_now_ns(run->loop) < deadline)
		loop_run_until(run->loop, deadline);
	return run->status;
}

static inline int fake_prepare(struct fake_run *run)
{
	run->status = 1;
	run->workload->ops->prepare(run->workload, fake_callback, run);
	return fake_wait(run);
}

static inline int fake_stop(struct fake_run *run)
{
	run->status = 1;
	run->workload->ops->stop(run->workload, fake_callback, run);
	return fake_wait(run);
}

static inline int fake_verify(struct fake_run *run)
{
	run->status = 1;
	run->workload->ops->verify(run->workload, fake_callback, run);
	return fake_wait(run);
}

static inline void fake_run_for(struct fake_run *run, uint64_t ns)
{
	uint64_t until = loop_now_ns(run->loop) + ns;

	while (loop_now_ns(run->loop) < until)
		loop_run_until(run->loop, until);
}

#endif
