/* SPDX-License-Identifier: MIT
 *
 * Random requests, many at a time, on two volumes that share the pages of their pool, against
 * shadows: what one volume gives back and the other takes must be zeros.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/unit/array/lab.h"
#include "tests/unit/array/rig.h"

#define P POOL_PAGE_BYTES

static struct lab lab;

enum { VOLUME_PAGES = 3, QUEUE = 8, ROUNDS = 1500, BYTES_MAX = 96 * 1024 };

struct request {
	struct io io;
	struct iovec iov;
	unsigned volume;
	bool active;
	uint8_t buffer[BYTES_MAX];
};

static struct request requests[QUEUE];
static uint8_t *shadows[2];
static unsigned busy;

static void request_done(struct io *io)
{
	struct request *request = io->owner;
	request->active = false;
	busy--;
	if (io->status)
		fail_msg("status %d", io->status);
	if (io->op == IO_READ)
		assert_memory_equal(request->buffer, shadows[request->volume] + io->offset_bytes,
				    io->length_bytes);
}

static bool taken(unsigned volume, uint64_t offset, uint64_t length)
{
	for (unsigned i = 0; i < QUEUE; i++) {
		const struct io *io = &requests[i].io;
		if (requests[i].active && requests[i].volume == volume &&
		    offset < io->offset_bytes + io->length_bytes &&
		    io->offset_bytes < offset + length)
			return true;
	}
	return false;
}

/* Places cluster around the page borders and the beginning of pages. */
static void random_request(struct rng *rng, struct request *request)
{
	uint64_t size = VOLUME_PAGES * P, dice = rng_below(rng, 100);
	uint64_t length = (1 + rng_below(rng, BYTES_MAX / 512)) * 512;
	uint64_t offset = rng_below(rng, VOLUME_PAGES) * P + rng_below(rng, 400) * 512;
	unsigned volume = (unsigned)rng_below(rng, 2);
	enum io_op op = dice < 45 ? IO_READ : dice < 90 ? IO_WRITE : IO_UNMAP;

	offset = offset >= 100 * 512 ? offset - 100 * 512 : 0;
	if (op == IO_UNMAP && dice >= 93) {
		offset = rng_below(rng, VOLUME_PAGES) * P;
		length = (1 + rng_below(rng, 2)) * P;
	}
	length = MIN_OF(length, size - offset);
	if (taken(volume, offset, length))
		return;
	if (op == IO_WRITE) {
		rng_fill(rng, request->buffer, length);
		memcpy(shadows[volume] + offset, request->buffer, length);
	} else if (op == IO_UNMAP) {
		memset(shadows[volume] + offset, 0, length);
	}
	request->volume = volume;
	request->active = true;
	busy++;
	request->iov = (struct iovec){request->buffer, length};
	request->io = (struct io){
	    .op = op,
	    .offset_bytes = offset,
	    .length_bytes = length,
	    .iov = &request->iov,
	    .iov_count = op != IO_UNMAP,
	    .done = request_done,
	    .owner = request,
	};
	io_submit(lab_layer(&lab, volume ? "b" : "a"), &request->io);
}

static void random_body(uint64_t seed, enum drive_timing timing)
{
	struct rng rng;
	rng_init(&rng, seed, 0);
	lab_init(&lab);
	struct member_config *m1 = lab_member(&lab, "m1", "raid5", 3, 24 * MIB);
	struct member_config *m2 = lab_member(&lab, "m2", "raid10", 4, 32 * MIB);
	m1->timing = m2->timing = timing;
	m1->drives.model = m2->drives.model = 5; /* the SSD: several at a time */
	lab_volume(&lab, "a", VOLUME_PAGES * P, true);
	lab_volume(&lab, "b", VOLUME_PAGES * P, true);
	struct err err = {0};
	if (lab_open(&lab, &err))
		fail_msg("%s", err.what);
	for (unsigned i = 0; i < 2; i++)
		shadows[i] = calloc(1, VOLUME_PAGES * P);
	for (int i = 0; i < ROUNDS; i++) {
		struct request *request = &requests[rng_below(&rng, QUEUE)];
		if (!request->active)
			random_request(&rng, request);
		while (timing && busy && rng_below(&rng, 2))
			assert_int_equal(loop_turn(lab.loop, true), 0);
	}
	while (busy)
		assert_int_equal(loop_turn(lab.loop, true), 0);
	uint8_t *all = malloc(VOLUME_PAGES * P);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(lab_io(&lab, i ? "b" : "a", IO_READ, 0, all, VOLUME_PAGES * P), 0);
		if (memcmp(all, shadows[i], VOLUME_PAGES * P) != 0)
			fail_msg("volume %u differs, seed %llu", i, (unsigned long long)seed);
	}
	free(all);
	for (unsigned i = 0; i < 2; i++)
		free(shadows[i]);
	lab_close(&lab);
}

static void random_load(void **state)
{
	for (uint64_t seed = 1; seed <= 6; seed++) {
		print_message("# seed %llu\n", (unsigned long long)seed);
		random_body(seed, seed % 3 ? DRIVE_TIMING_MODELLED : DRIVE_TIMING_NONE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(random_load)};
	return cmocka_run_group_tests_name("volume_load", tests, NULL, NULL);
}
