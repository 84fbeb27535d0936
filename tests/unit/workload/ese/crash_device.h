/* SPDX-License-Identifier: MIT
 *
 * A volume whose power goes: memory, delays, and a crash at the Nth I/O.  What is under way then is
 * done in part, in units of 4 KiB, as chance will have it; from then on everything ends with
 * -ECANCELED, until crash_device_power_on.  Acknowledged writes stay.
 */
#ifndef SANLAB_TESTS_UNIT_WORKLOAD_ESE_CRASH_DEVICE_H
#define SANLAB_TESTS_UNIT_WORKLOAD_ESE_CRASH_DEVICE_H

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/io.h"
#include "base/loop.h"
#include "base/rng.h"
#include "harness/workload/workload.h"

struct crash_io {
	struct loop_timer timer;
	struct crash_device *device;
	struct io *io;
	struct crash_io *next, **prev;
};

struct crash_device {
	struct io_layer layer;
	struct loop *loop;
	uint8_t *memory;
	uint64_t read_ns, write_ns;
	struct rng rng;
	uint64_t ios, reads, writes;
	uint64_t crash_at;    /* the I/O it happens with, from 1; 0: none */
	unsigned fail_writes; /* so many end with -EIO, and are not done */
	uint64_t fail_end;    /* ... of those below; 0: of all */
	bool off;
	struct crash_io *pending;
	void (*crashed)(void *arg); /* after everything under way has ended */
	void *arg;
	struct workload_device device;
};

static void crash_unlink(struct crash_io *cio)
{
	loop_timer_cancel(cio->device->loop, &cio->timer);
	*cio->prev = cio->next;
	if (cio->next)
		cio->next->prev = cio->prev;
}

static void crash_end(struct crash_io *cio, int status)
{
	struct io *io = cio->io;

	crash_unlink(cio);
	free(cio);
	io_complete(io, status);
}

static void crash_due(void *arg)
{
	struct crash_io *cio = arg;
	struct io *io = cio->io;
	uint8_t *at = cio->device->memory + io->offset_bytes;

	if (io->op == IO_WRITE && cio->device->fail_writes &&
	    (!cio->device->fail_end || io->offset_bytes < cio->device->fail_end)) {
		cio->device->fail_writes--;
		crash_end(cio, -EIO);
		return;
	}
	if (io->op == IO_READ)
		iov_from_mem(io->iov, io->iov_count, 0, at, io->length_bytes);
	else if (io->op == IO_WRITE)
		iov_to_mem(io->iov, io->iov_count, 0, at, io->length_bytes);
	crash_end(cio, 0);
}

/* None, all, or some of the units. */
static void crash_tear(struct crash_device *device, const struct io *io)
{
	unsigned how = (unsigned)rng_below(&device->rng, 4);

	if (io->op != IO_WRITE || how == 0)
		return;
	for (uint64_t off = 0; off < io->length_bytes; off += 4096) {
		uint64_t part = MIN_OF(4096, io->length_bytes - off);

		if (how == 1 || rng_below(&device->rng, 2))
			iov_to_mem(io->iov, io->iov_count, off,
				   device->memory + io->offset_bytes + off, part);
	}
}

static inline void crash_now(struct crash_device *device)
{
	device->off = true;
	for (struct crash_io *cio = device->pending; cio; cio = cio->next)
		crash_tear(device, cio->io);
	while (device->pending)
		crash_end(device->pending, -ECANCELED);
	if (device->crashed)
		device->crashed(device->arg);
}

static void crash_submit(struct io_layer *layer, struct io *io)
{
	struct crash_device *device = container_of(layer, struct crash_device, layer);
	struct crash_io *cio;

	if (!io_in_range(layer, io) || iov_bytes(io->iov, io->iov_count) != io->length_bytes)
		abort();
	if (device->off) {
		io_complete(io, -ECANCELED);
		return;
	}
	device->ios++;
	if (io->op == IO_READ)
		device->reads++;
	else
		device->writes++;
	cio = calloc(1, sizeof *cio);
	cio->device = device;
	cio->io = io;
	cio->next = device->pending;
	cio->prev = &device->pending;
	if (cio->next)
		cio->next->prev = &cio->next;
	device->pending = cio;
	loop_timer_init(&cio->timer, crash_due, cio);
	loop_timer_set(device->loop, &cio->timer,
		       loop_now_ns(device->loop) +
			   (io->op == IO_READ ? device->read_ns : device->write_ns));
	if (device->ios == device->crash_at)
		crash_now(device);
}

static const struct io_layer_ops crash_ops = {.name = "crash", .submit = crash_submit};

static inline void crash_device_init(struct crash_device *device, struct loop *loop,
				     const char *volume, uint64_t size_bytes, uint64_t seed)
{
	*device = (struct crash_device){
	    .layer = {.ops = &crash_ops, .size_bytes = size_bytes},
	    .loop = loop,
	    .memory = calloc(1, size_bytes),
	    .read_ns = 5 * NS_PER_MS,
	    .write_ns = NS_PER_MS,
	};
	rng_init(&device->rng, seed, 77);
	device->device = (struct workload_device){
	    .host = "h1",
	    .volume = volume,
	    .layer = &device->layer,
	    .block_bytes = 512,
	    .known_zero = true,
	};
}

static inline void crash_device_power_on(struct crash_device *device)
{
	device->off = false;
	device->crash_at = 0;
}

static inline void crash_device_fini(struct crash_device *device)
{
	free(device->memory);
}

#endif
