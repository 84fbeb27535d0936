/* SPDX-License-Identifier: MIT
 *
 * Random requests against shadows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/unit/array/load.h"

#define P POOL_PAGE_BYTES

void load_init(struct load *load, struct lab *lab, uint64_t seed)
{
	*load = (struct load){.lab = lab, .volumes = {"a", "b"}};
	rng_init(&load->rng, seed, 7);
	for (unsigned i = 0; i < LOAD_VOLUMES; i++)
		load->shadows[i] = calloc(1, LOAD_PAGES * P);
	for (unsigned i = 0; i < LOAD_QUEUE; i++)
		load->requests[i].load = load;
}

void load_done(struct load *load)
{
	for (unsigned i = 0; i < LOAD_VOLUMES; i++)
		free(load->shadows[i]);
}

static void request_done(struct io *io)
{
	struct load_request *request = io->owner;
	struct load *load = request->load;
	uint8_t *shadow = load->shadows[request->volume] + io->offset_bytes;

	if (io->status == -ENODEV && load->may_fail) {
		load->failed++;
		request->again = true;
		return;
	}
	request->active = false;
	load->busy--;
	if (io->status)
		fail_msg("status %d", io->status);
	if (io->op == IO_READ && memcmp(request->buffer, shadow, io->length_bytes) != 0)
		fail_msg("volume %u at %llu reads wrong", request->volume,
			 (unsigned long long)io->offset_bytes);
	if (io->op == IO_WRITE)
		memcpy(shadow, request->buffer, io->length_bytes);
	if (io->op == IO_UNMAP)
		memset(shadow, 0, io->length_bytes);
}

static bool taken(const struct load *load, unsigned volume, uint64_t offset, uint64_t length)
{
	for (unsigned i = 0; i < LOAD_QUEUE; i++) {
		const struct io *io = &load->requests[i].io;
		if (load->requests[i].active && load->requests[i].volume == volume &&
		    offset < io->offset_bytes + io->length_bytes &&
		    io->offset_bytes < offset + length)
			return true;
	}
	return false;
}

/* Places cluster around the page borders and the beginning of pages. */
static bool choose(struct load *load, struct io *io, unsigned *ret_volume)
{
	struct rng *rng = &load->rng;
	uint64_t dice = rng_below(rng, 100);
	uint64_t length = (1 + rng_below(rng, LOAD_BYTES_MAX / 512)) * 512;
	uint64_t offset = rng_below(rng, LOAD_PAGES) * P + rng_below(rng, 400) * 512;
	unsigned volume = (unsigned)rng_below(rng, LOAD_VOLUMES);
	enum io_op op = dice < 40 ? IO_READ : dice < 94 ? IO_WRITE : IO_UNMAP;

	offset = offset >= 100 * 512 ? offset - 100 * 512 : 0;
	if (rng_below(rng, 4) == 0) /* the middle of pages is copied later */
		offset = rng_below(rng, LOAD_PAGES * P / 512) * 512;
	if (op == IO_UNMAP && dice >= 98) {
		offset = rng_below(rng, LOAD_PAGES) * P;
		length = (1 + rng_below(rng, 2)) * P;
	}
	length = MIN_OF(length, LOAD_PAGES * P - offset);
	*io = (struct io){.op = op, .offset_bytes = offset, .length_bytes = length};
	*ret_volume = volume;
	return !taken(load, volume, offset, length);
}

static void repeat(struct load *load, struct load_request *request)
{
	request->again = false;
	io_submit(lab_layer(load->lab, load->volumes[request->volume]), &request->io);
}

void load_step(struct load *load)
{
	struct load_request *request = &load->requests[rng_below(&load->rng, LOAD_QUEUE)];
	struct io io;
	unsigned volume;

	if (request->again) {
		repeat(load, request);
		return;
	}
	if (request->active || !choose(load, &io, &volume))
		return;
	if (io.op == IO_WRITE)
		rng_fill(&load->rng, request->buffer, io.length_bytes);
	request->volume = volume;
	request->active = true;
	load->busy++;
	request->iov = (struct iovec){request->buffer, io.length_bytes};
	io.iov = &request->iov;
	io.iov_count = io.op != IO_UNMAP;
	io.done = request_done;
	io.owner = request;
	request->io = io;
	io_submit(lab_layer(load->lab, load->volumes[volume]), &request->io);
}

void load_settle(struct load *load)
{
	while (load->busy) {
		for (unsigned i = 0; i < LOAD_QUEUE; i++)
			if (load->requests[i].again)
				repeat(load, &load->requests[i]);
		if (load->busy)
			assert_int_equal(loop_turn(load->lab->loop, true), 0);
	}
}

void load_compare(struct load *load)
{
	uint8_t *all = malloc(LOAD_PAGES * P);

	for (unsigned i = 0; i < LOAD_VOLUMES; i++) {
		assert_int_equal(
		    lab_io(load->lab, load->volumes[i], IO_READ, 0, all, LOAD_PAGES * P), 0);
		if (memcmp(all, load->shadows[i], LOAD_PAGES * P) != 0)
			fail_msg("volume %s differs", load->volumes[i]);
	}
	free(all);
}
