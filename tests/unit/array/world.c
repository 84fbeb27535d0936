/* SPDX-License-Identifier: MIT
 *
 * Random requests to a RAID set and a shadow.
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

#include "target/array/raid_levels.h"
#include "tests/unit/array/world.h"

static const struct shape shapes[] = {
    {"raid0", 1, 1, 0},	 {"raid0", 5, 5, 0},   {"raid1", 2, 2, 1},   {"raid1", 3, 3, 2},
    {"raid10", 6, 2, 1}, {"raid5", 3, 3, 1},   {"raid5", 4, 4, 1},   {"raid5", 7, 7, 1},
    {"raid50", 6, 3, 1}, {"raid50", 8, 4, 1},  {"raid6", 4, 4, 2},   {"raid6", 7, 7, 2},
    {"raid60", 8, 4, 2}, {"raid60", 10, 5, 2}, {"adapt", 12, 12, 2}, {"adapt", 16, 16, 2},
};

const struct shape *shape;
uint64_t seed;

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

void world_turn(struct world *world)
{
	if (world->rig.drives[0]->model)
		assert_int_equal(loop_turn(world->rig.loop, true), 0);
}

void world_load(struct world *world, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		struct request *request = &requests[rng_below(&world->rng, QUEUE)];
		if (!request->active)
			submit_random(world, request);
		while (world->busy && rng_below(&world->rng, 2))
			world_turn(world);
	}
}

void world_quiesce(struct world *world)
{
	while (world->busy)
		world_turn(world);
}

void world_request(struct world *world, struct request *request, enum io_op op, uint64_t offset,
		   uint64_t length)
{
	request->world = world;
	request->active = true;
	world->busy++;
	request->iov[0] = (struct iovec){request->buffer, length};
	request->io = (struct io){
	    .op = op,
	    .offset_bytes = offset,
	    .length_bytes = length,
	    .iov = request->iov,
	    .iov_count = op == IO_UNMAP ? 0 : 1,
	    .done = request_done,
	    .owner = request,
	};
}

void world_read_all(struct world *world)
{
	uint64_t size = world->rig.set->size_bytes;
	world_quiesce(world);
	for (uint64_t at = 0; at < size; at += CHUNK) {
		world_request(world, &requests[0], IO_READ, at, CHUNK);
		io_submit(world->rig.set, &requests[0].io);
		world_quiesce(world);
	}
}

void world_check_redundancy(struct world *world)
{
	const struct stripe_geometry *geometry = &world->rig.geometry;
	struct stripe_shape code = {geometry->data, geometry->parities, geometry->copies, CHUNK};
	static uint8_t *column[RAID_DRIVES_MAX];

	for (unsigned i = 0; i < geometry->width; i++)
		if (!column[i])
			column[i] = aligned_alloc(4096, CHUNK);
	for (uint64_t stripe = 0; stripe < geometry->stripe_count; stripe++) {
		struct stripe_at at = stripe_at(geometry, stripe);
		for (unsigned i = 0; i < geometry->width; i++) {
			struct stripe_place place = stripe_place(geometry, &at, i);
			rig_peek(&world->rig, place.drive, place.offset_bytes, column[i], CHUNK);
		}
		ensure(stripe_fits(&code, column, CHUNK), "stripe %llu: redundancy is wrong",
		       (unsigned long long)stripe);
	}
}

void world_verify_clean(struct world *world)
{
	struct raid_unit unit = {.kind = RAID_UNIT_VERIFY};
	const struct raid_ops *ops = world->rig.ops;

	for (uint64_t i = 0; ops->unit_count && i < ops->unit_count(world->rig.set); i++) {
		unit.unit = i;
		rig_unit(&world->rig, &unit);
		ensure(unit.status == 0 && !unit.repaired && !unit.inconsistent,
		       "unit %llu: status %d, repaired %u, inconsistent %d", (unsigned long long)i,
		       unit.status, unit.repaired, unit.inconsistent);
	}
}

uint64_t world_victims(struct world *world, unsigned base, unsigned count)
{
	uint64_t victims = 0;
	while (__builtin_popcountll(victims) < (int)count)
		victims |= UINT64_C(1) << (base + rng_below(&world->rng, shape->group));
	return victims;
}

void world_open(struct world *world, enum drive_timing timing)
{
	*world = (struct world){.errors_allowed = false};
	rng_init(&world->rng, seed, shape->drives);
	/* A little more than whole chunks: the rest is not used.  Declustered stripes need more
	 * rows before they lie on all drives. */
	unsigned rows = strcmp(shape->level, "adapt") == 0 ? 4 * ROWS : ROWS;
	rig_open(&world->rig, shape->level, shape->drives, rows * CHUNK + 4096, CHUNK, timing,
		 seed);
	world->shadow = calloc(1, world->rig.set->size_bytes);
	world->unsure = calloc(1, world->rig.set->size_bytes / SECTOR);
	for (unsigned i = 0; i < QUEUE; i++)
		requests[i] = (struct request){.buffer = malloc(BYTES_MAX)};
}

void world_close(struct world *world)
{
	rig_close(&world->rig);
	free(world->shadow);
	free(world->unsure);
	for (unsigned i = 0; i < QUEUE; i++)
		free(requests[i].buffer);
}

void world_everywhere(void (*body)(struct world *world), bool redundant_only)
{
	for (size_t s = 0; s < ARRAY_SIZE(shapes); s++)
		for (unsigned run = 0; run < SEEDS; run++) {
			struct world world;
			shape = &shapes[s];
			seed = 1000 + run;
			if (redundant_only && !shape->tolerance)
				continue;
			world_open(&world, run % 3 ? DRIVE_TIMING_MODELLED : DRIVE_TIMING_NONE);
			body(&world);
			world_close(&world);
		}
}
