/* SPDX-License-Identifier: MIT
 *
 * RAID sets under random requests against a shadow, many at a time, while drives fail, err and
 * return; parity and mirrors seen from below; failures beyond the tolerance.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "target/array/raid_geometry.h"
#include "tests/unit/array/rig.h"

enum {
	SECTOR = 512,
	CHUNK = 8192,
	ROWS = 12,
	QUEUE = 12,
	BYTES_MAX = 200 * 1024,
	SEEDS = 6,
	ROUNDS = 400,
};

static const struct shape {
	const char *level;
	unsigned drives;
	unsigned group; /* drives of which one may fail; 0: none may */
} shapes[] = {
    {"raid0", 1, 0}, {"raid0", 5, 0}, {"raid10", 2, 2}, {"raid10", 6, 2}, {"raid5", 3, 3},
    {"raid5", 4, 4}, {"raid5", 7, 7}, {"raid50", 6, 3}, {"raid50", 8, 4}, {"raid50", 9, 3},
};

static uint64_t seed; /* of the run at hand, for messages */
static const struct shape *shape;

#define ensure(condition, ...)                                                                     \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			print_error("%s over %u drives, seed %llu: ", shape->level, shape->drives, \
				    (unsigned long long)seed);                                     \
			fail_msg(__VA_ARGS__);                                                     \
		}                                                                                  \
	} while (0)

struct world {
	struct rig rig;
	struct rng rng;
	uint8_t *shadow;
	uint8_t *unsure; /* a byte a sector: a failed write may or may not be there */
	bool errors_allowed;
	unsigned busy;
	uint64_t completed, failed;
};

struct request {
	struct world *world;
	struct io io;
	struct iovec iov[3];
	uint8_t *buffer;
	bool active;
};
static struct request requests[QUEUE];

static bool overlaps(uint64_t offset, uint64_t length)
{
	for (unsigned i = 0; i < QUEUE; i++) {
		const struct io *io = &requests[i].io;
		if (requests[i].active && offset < io->offset_bytes + io->length_bytes &&
		    io->offset_bytes < offset + length)
			return true;
	}
	return false;
}

static void check_read(struct world *world, const struct request *request)
{
	const struct io *io = &request->io;
	for (uint64_t at = 0; at < io->length_bytes; at += SECTOR) {
		uint64_t place = io->offset_bytes + at;
		if (world->unsure[place / SECTOR])
			continue;
		ensure(memcmp(request->buffer + at, world->shadow + place, SECTOR) == 0,
		       "wrong data at %llu", (unsigned long long)place);
	}
}

static void request_done(struct io *io)
{
	struct request *request = io->owner;
	struct world *world = request->world;
	uint64_t first = io->offset_bytes / SECTOR, count = io->length_bytes / SECTOR;

	ensure(request->active, "completed twice");
	request->active = false;
	world->busy--;
	world->completed++;
	if (io->status) {
		ensure(world->errors_allowed, "status %d of op %d at %llu + %llu", io->status,
		       io->op, (unsigned long long)io->offset_bytes,
		       (unsigned long long)io->length_bytes);
		ensure(io->status == -EIO, "status %d, not -EIO", io->status);
		world->failed++;
		if (io->op != IO_READ)
			memset(world->unsure + first, 1, count);
		return;
	}
	if (io->op == IO_READ)
		check_read(world, request);
	else
		memset(world->unsure + first, 0, count);
}

/* Splits the buffer into one to three entries of odd sizes. */
static unsigned split(struct world *world, struct request *request, uint64_t length)
{
	uint64_t a = rng_below(&world->rng, length + 1);
	uint64_t b = a + rng_below(&world->rng, length - a + 1);
	if (rng_below(&world->rng, 2)) {
		request->iov[0] = (struct iovec){request->buffer, length};
		return 1;
	}
	request->iov[0] = (struct iovec){request->buffer, a};
	request->iov[1] = (struct iovec){request->buffer + a, b - a};
	request->iov[2] = (struct iovec){request->buffer + b, length - b};
	return 3;
}

static void submit_random(struct world *world, struct request *request)
{
	uint64_t size = world->rig.set->size_bytes;
	uint64_t offset = rng_below(&world->rng, size / SECTOR) * SECTOR;
	uint64_t most = rng_below(&world->rng, 3) ? 4 * CHUNK : BYTES_MAX;
	most = MIN_OF(size - offset, most);
	uint64_t length = (1 + rng_below(&world->rng, most / SECTOR)) * SECTOR;
	uint64_t dice = rng_below(&world->rng, 100);
	enum io_op op = dice < 45 ? IO_READ : dice < 90 ? IO_WRITE : IO_UNMAP;

	if (overlaps(offset, length))
		return;
	if (op == IO_WRITE) {
		rng_fill(&world->rng, request->buffer, length);
		memcpy(world->shadow + offset, request->buffer, length);
	} else if (op == IO_UNMAP) {
		memset(world->shadow + offset, 0, length);
	} else {
		memset(request->buffer, 0xee, length);
	}
	request->world = world;
	request->active = true;
	world->busy++;
	request->io = (struct io){
	    .op = op,
	    .flags = op == IO_WRITE && dice % 2 ? IO_FUA : 0,
	    .offset_bytes = offset,
	    .length_bytes = length,
	    .iov = request->iov,
	    .done = request_done,
	    .owner = request,
	};
	request->io.iov_count = op == IO_UNMAP ? 0 : split(world, request, length);
	io_submit(world->rig.set, &request->io);
}

static void turn(struct world *world)
{
	if (world->rig.drives[0]->model)
		assert_int_equal(loop_turn(world->rig.loop, true), 0);
}

static void load(struct world *world, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		struct request *request = &requests[rng_below(&world->rng, QUEUE)];
		if (!request->active)
			submit_random(world, request);
		while (world->busy && rng_below(&world->rng, 2))
			turn(world);
	}
}

static void quiesce(struct world *world)
{
	while (world->busy)
		turn(world);
}

static void read_all(struct world *world)
{
	uint64_t size = world->rig.set->size_bytes;
	for (uint64_t at = 0; at < size; at += CHUNK) {
		struct request *request = &requests[0];
		request->world = world;
		request->active = true;
		world->busy++;
		request->iov[0] = (struct iovec){request->buffer, CHUNK};
		request->io = (struct io){
		    .op = IO_READ,
		    .offset_bytes = at,
		    .length_bytes = CHUNK,
		    .iov = request->iov,
		    .iov_count = 1,
		    .done = request_done,
		    .owner = request,
		};
		io_submit(world->rig.set, &request->io);
		quiesce(world);
	}
}

/* From below: halves of mirrors are equal, rows of parity sets XOR to zero. */
static void check_redundancy(struct world *world)
{
	static uint8_t sum[CHUNK], chunk[CHUNK];
	for (unsigned base = 0; shape->group && base < shape->drives; base += shape->group)
		for (uint64_t row = 0; row < ROWS; row++) {
			memset(sum, 0, sizeof sum);
			for (unsigned i = 0; i < shape->group; i++) {
				rig_peek(&world->rig, base + i, row * CHUNK, chunk, CHUNK);
				for (unsigned b = 0; b < CHUNK; b++)
					sum[b] ^= chunk[b];
			}
			for (unsigned b = 0; b < CHUNK; b++)
				ensure(sum[b] == 0, "drives from %u, row %llu: redundancy is wrong",
				       base, (unsigned long long)row);
		}
}

static void world_open(struct world *world, enum drive_timing timing)
{
	*world = (struct world){.errors_allowed = false};
	rng_init(&world->rng, seed, shape->drives);
	/* A little more than whole chunks: the rest is not used. */
	rig_open(&world->rig, shape->level, shape->drives, ROWS * CHUNK + 4096, CHUNK, timing,
		 seed);
	world->shadow = calloc(1, world->rig.set->size_bytes);
	world->unsure = calloc(1, world->rig.set->size_bytes / SECTOR);
	for (unsigned i = 0; i < QUEUE; i++)
		requests[i] = (struct request){.buffer = malloc(BYTES_MAX)};
}

static void world_close(struct world *world)
{
	rig_close(&world->rig);
	free(world->shadow);
	free(world->unsure);
	for (unsigned i = 0; i < QUEUE; i++)
		free(requests[i].buffer);
}

/* Calls BODY for every shape, with and without timing, for some seeds. */
static void everywhere(void (*body)(struct world *world), bool redundant_only)
{
	for (size_t s = 0; s < ARRAY_SIZE(shapes); s++)
		for (unsigned run = 0; run < SEEDS; run++) {
			struct world world;
			shape = &shapes[s];
			seed = 1000 + run;
			if (redundant_only && !shape->group)
				continue;
			world_open(&world, run % 3 ? DRIVE_TIMING_MODELLED : DRIVE_TIMING_NONE);
			body(&world);
			world_close(&world);
		}
}

static void healthy_body(struct world *world)
{
	load(world, ROUNDS);
	quiesce(world);
	check_redundancy(world);
	read_all(world);
	ensure(world->completed > ROUNDS / 8, "hardly anything ran");
	ensure(world->rig.stale_told == 0, "a drive became stale for nothing");
}

static void healthy(void **state)
{
	everywhere(healthy_body, false);
}

/* One drive of each group fails in the middle of the load. */
static void degraded_body(struct world *world)
{
	load(world, ROUNDS / 2);
	for (unsigned base = 0; base < shape->drives; base += shape->group) {
		unsigned victim = base + (unsigned)rng_below(&world->rng, shape->group);
		drive_set_failed(world->rig.drives[victim], true);
		load(world, ROUNDS / 4);
	}
	quiesce(world);
	read_all(world);
	/* Stale drives that come back are not believed. */
	for (unsigned i = 0; i < shape->drives; i++)
		drive_set_failed(world->rig.drives[i], false);
	read_all(world);
	load(world, ROUNDS / 4);
	quiesce(world);
	read_all(world);
	ensure(__builtin_popcountll(world->rig.stale_told) == (int)(shape->drives / shape->group),
	       "stale drives: %llx", (unsigned long long)world->rig.stale_told);
}

static void degraded(void **state)
{
	everywhere(degraded_body, true);
}

/* A drive that was away while nothing was written is as good as before. */
static void returned_body(struct world *world)
{
	unsigned victim = (unsigned)rng_below(&world->rng, shape->drives);
	load(world, ROUNDS / 2);
	quiesce(world);
	drive_set_failed(world->rig.drives[victim], true);
	read_all(world);
	drive_set_failed(world->rig.drives[victim], false);
	ensure(world->rig.stale_told == 0, "stale without a missed write");
	load(world, ROUNDS / 2);
	quiesce(world);
	check_redundancy(world);
	read_all(world);
}

static void returned(void **state)
{
	everywhere(returned_body, true);
}

/* Reads of one drive of each group fail now and then: redundancy hides it, and since the drive
 * takes its writes it stays in the set. */
static void medium_errors_body(struct world *world)
{
	for (unsigned base = 0; base < shape->drives; base += shape->group) {
		unsigned victim = base + (unsigned)rng_below(&world->rng, shape->group);
		world->rig.faults[victim].read_errors = 0.2;
	}
	load(world, ROUNDS);
	quiesce(world);
	check_redundancy(world);
	read_all(world);
	ensure(world->rig.stale_told == 0, "stale by reads");
}

static void medium_errors(void **state)
{
	everywhere(medium_errors_body, true);
}

/* A write error puts the drive out of the set, and nothing is lost. */
static void write_error_body(struct world *world)
{
	unsigned victim = (unsigned)rng_below(&world->rng, shape->drives);
	load(world, ROUNDS / 2);
	world->rig.faults[victim].write_errors = 1;
	load(world, ROUNDS / 2);
	quiesce(world);
	read_all(world);
	ensure(world->rig.faults[victim].write_errors == 0, "no write reached the victim");
	ensure(world->rig.stale_told == UINT64_C(1) << victim, "stale: %llx",
	       (unsigned long long)world->rig.stale_told);
}

static void write_error(void **state)
{
	everywhere(write_error_body, true);
}

/* Two drives of one group: errors where the data is gone, never wrong data, and the rest works. */
static void beyond_body(struct world *world)
{
	unsigned group = MAX_OF(shape->group, 1), groups = shape->drives / group;
	unsigned base = (unsigned)rng_below(&world->rng, groups) * group;

	load(world, ROUNDS / 2);
	unsigned first = base + (unsigned)rng_below(&world->rng, group);
	drive_set_failed(world->rig.drives[first], true);
	if (shape->group) {
		load(world, ROUNDS / 4);
		unsigned second = base + (first - base + 1) % group;
		world->errors_allowed = true;
		drive_set_failed(world->rig.drives[second], true);
	}
	world->errors_allowed = true;
	load(world, ROUNDS / 2);
	quiesce(world);
	world->failed = 0;
	uint64_t before = world->completed;
	read_all(world);
	uint64_t reads = world->completed - before;
	ensure(world->failed > 0, "nothing failed with two drives gone");
	if (groups > 1 || shape->group > 2)
		ensure(world->failed < reads, "ranges that are not affected fail too");
	if (groups > 1 && shape->group)
		ensure(world->failed <= reads / groups + 1, "other groups are affected");
	/* Whether the first two drives return or not, no read may give anything false. */
	for (unsigned i = 0; i < shape->drives; i++)
		drive_set_failed(world->rig.drives[i], false);
	read_all(world);
}

static void beyond_tolerance(void **state)
{
	everywhere(beyond_body, false);
}

/* Writes to one place at a time: afterwards mirrors agree and parity is right. */
static void overlapping_body(struct world *world)
{
	static struct request writes[64];
	uint64_t size = world->rig.set->size_bytes;
	for (unsigned i = 0; i < 64; i++) {
		struct request *request = &writes[i];
		uint64_t length = (1 + rng_below(&world->rng, 40)) * SECTOR;
		uint64_t offset =
		    rng_below(&world->rng, MIN_OF(size, 6 * CHUNK) / SECTOR - 40) * SECTOR;
		*request =
		    (struct request){.world = world, .buffer = malloc(length), .active = true};
		rng_fill(&world->rng, request->buffer, length);
		request->iov[0] = (struct iovec){request->buffer, length};
		memset(world->unsure + offset / SECTOR, 1, length / SECTOR);
		request->io = (struct io){
		    .op = IO_WRITE,
		    .offset_bytes = offset,
		    .length_bytes = length,
		    .iov = request->iov,
		    .iov_count = 1,
		    .done = request_done,
		    .owner = request,
		};
		world->busy++;
		io_submit(world->rig.set, &request->io);
	}
	quiesce(world);
	for (unsigned i = 0; i < 64; i++)
		free(writes[i].buffer);
	check_redundancy(world);
}

static void overlapping(void **state)
{
	everywhere(overlapping_body, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(healthy),	   cmocka_unit_test(degraded),
	    cmocka_unit_test(returned),	   cmocka_unit_test(medium_errors),
	    cmocka_unit_test(write_error), cmocka_unit_test(beyond_tolerance),
	    cmocka_unit_test(overlapping),
	};
	return cmocka_run_group_tests_name("raid", tests, NULL, NULL);
}
