/* SPDX-License-Identifier: MIT
 *
 * Random requests of a device, and the judgement of what comes back.
 *
 * Few blocks, so that ranges are written again and again.  Reads never overlap a change under way,
 * so that what they may find is known; changes overlap each other on some devices: then either is
 * there, and stays.  An error is none of ours while there are faults; what it leaves behind is
 * either the old or the new content, until a later write is acknowledged.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/sim/system/world.h"

static const char *const op_names[] = {"READ", "WRITE", "FLUSH", "UNMAP"};

/* ---- ends ---- */

static bool changes(const struct flight *flight)
{
	return flight->io.op == IO_WRITE || flight->io.op == IO_UNMAP;
}

/* Those that were under way beside it learn how it ended. */
static void tell_rivals(struct device *device, const struct flight *flight)
{
	for (unsigned i = 0; i < DEVICE_FLIGHTS; i++) {
		struct flight *other = &device->flights[i];

		for (unsigned j = 0; other->busy && j < other->rival_count; j++)
			if (other->rivals[j].number == flight->number)
				other->rivals[j].failed = flight->io.status != 0;
	}
}

static void take_change(struct device *device, const struct flight *flight)
{
	struct shadow *shadow = &device->shadow;

	tell_rivals(device, flight);
	if (flight->io.status) {
		shadow_may_come(shadow, flight->sector, flight->count, flight->id);
		return;
	}
	shadow_acknowledged(shadow, flight->sector, flight->count, flight->id, true);
	for (unsigned i = 0; i < flight->rival_count; i++) {
		const struct rival *rival = &flight->rivals[i];
		uint64_t from = MAX_OF(flight->sector, rival->sector);
		uint64_t to = MIN_OF(flight->sector + flight->count, rival->sector + rival->count);

		if (rival->failed)
			shadow_may_come(shadow, from, to - from, rival->id);
		else
			shadow_possible(shadow, from, to - from, rival->id);
	}
}

static void flight_done(struct io *io)
{
	struct flight *flight = container_of(io, struct flight, io);
	struct device *device = flight->device;
	struct world *world = device->world;
	struct shadow_fault fault;

	if (!flight->busy) {
		world_fault(world, "device %u: an I/O ended twice", device->index);
		return;
	}
	flight->busy = false;
	device->busy--;
	world_note(world,
		   (uint64_t)flight->id << 32 | (flight->sector * 256 + (uint8_t)io->status));
	world_trace(world, "  device %u ends %s %llu+%llu id %u: %d", device->index,
		    op_names[io->op], (unsigned long long)flight->sector,
		    (unsigned long long)flight->count, flight->id, io->status);
	if (changes(flight))
		take_change(device, flight);
	if (io->status)
		world->errors++;
	if (io->status && world->calm)
		world_fault(world, "device %u: %s of %llu sectors at %llu: %s", device->index,
			    op_names[io->op], (unsigned long long)flight->count,
			    (unsigned long long)flight->sector, strerror(-io->status));
	if (!io->status && io->op == IO_READ &&
	    !shadow_check(&device->shadow, flight->sector, flight->count, flight->data, &fault))
		world_fault(world, "device %u: %s", device->index, fault.text);
}

/* ---- beginnings ---- */

static bool meet(const struct flight *a, uint64_t sector, uint64_t count)
{
	return a->busy && a->io.op != IO_FLUSH && a->sector < sector + count &&
	       sector < a->sector + a->count;
}

static bool may_meet(const struct device *device, const struct flight *other, enum io_op op)
{
	if (op == IO_READ)
		return other->io.op == IO_READ;
	return other->io.op != IO_READ && device->overlaps && other->rival_count < FLIGHT_RIVALS;
}

static void add_rival(struct flight *flight, const struct flight *other)
{
	flight->rivals[flight->rival_count++] = (struct rival){.number = other->number,
							       .sector = other->sector,
							       .count = other->count,
							       .id = other->id};
}

static void meet_rivals(struct device *device, struct flight *flight)
{
	flight->rival_count = 0;
	for (unsigned i = 0; changes(flight) && i < DEVICE_FLIGHTS; i++) {
		struct flight *other = &device->flights[i];

		if (other == flight || !meet(other, flight->sector, flight->count))
			continue;
		add_rival(flight, other);
		add_rival(other, flight);
	}
}

static bool start(struct device *device, enum io_op op, unsigned flags, uint64_t sector,
		  uint64_t count)
{
	struct world *world = device->world;
	bool data = op == IO_READ || op == IO_WRITE;
	struct flight *flight = NULL;

	for (unsigned i = 0; i < DEVICE_FLIGHTS; i++) {
		const struct flight *other = &device->flights[i];

		if (!other->busy)
			flight = &device->flights[i];
		if (op != IO_FLUSH && meet(other, sector, count) && !may_meet(device, other, op))
			return false;
	}
	if (!flight)
		return false;
	flight->sector = sector;
	flight->count = count;
	flight->id = op == IO_WRITE ? world->next_id++ : 0;
	flight->busy = true;
	flight->number = world->requests;
	flight->iov = (struct iovec){flight->data, count * SECTOR_BYTES};
	flight->io = (struct io){
	    .op = op,
	    .flags = flags,
	    .offset_bytes = op == IO_FLUSH ? 0 : device->first_byte + sector * SECTOR_BYTES,
	    .length_bytes = op == IO_FLUSH ? 0 : count * SECTOR_BYTES,
	    .iov = data ? &flight->iov : NULL,
	    .iov_count = data ? 1 : 0,
	    .done = flight_done,
	};
	if (op == IO_WRITE)
		shadow_fill(flight->data, sector, count, flight->id);
	meet_rivals(device, flight);
	device->busy++;
	world->requests++;
	world_trace(world, "  device %u begins %s %llu+%llu id %u", device->index, op_names[op],
		    (unsigned long long)sector, (unsigned long long)count, flight->id);
	io_submit(mpio_layer(device->mpio), &flight->io);
	return true;
}

static void issue(struct device *device)
{
	static const uint64_t most[] = {1, 8, 8, FLIGHT_SECTORS};
	struct world *world = device->world;
	uint64_t kind = world_pick(world, 0, 99);
	uint64_t count = world_pick(world, 1, most[world_pick(world, 0, ARRAY_SIZE(most) - 1)]);
	/* Half of them in an eighth of the room. */
	uint64_t room = world_pick(world, 0, 1) ? DEVICE_SECTORS : DEVICE_SECTORS / 8;
	uint64_t sector = world_pick(world, 0, (room > count ? room : DEVICE_SECTORS) - count);

	if (kind < 35)
		(void)start(device, IO_READ, 0, sector, count);
	else if (kind < 90)
		(void)start(device, IO_WRITE, kind < 45 ? IO_FUA : 0, sector, count);
	else if (kind < 93)
		(void)start(device, IO_FLUSH, 0, 0, 0);
	else
		(void)start(device, IO_UNMAP, 0, sector, count);
}

static void next_due(void *arg)
{
	struct device *device = arg;
	struct world *world = device->world;

	if (!world->load || world->fault[0])
		return;
	for (uint64_t n = world_pick(world, 1, 4); n > 0; n--)
		issue(device);
	loop_timer_set(world->loop, &device->next,
		       loop_now_ns(world->loop) + world_pick(world, 1, 40) * NS_PER_MS);
}

/* ---- life ---- */

bool load_init(struct device *device)
{
	static uint8_t data[WORLD_DEVICES][DEVICE_FLIGHTS][FLIGHT_SECTORS * SECTOR_BYTES];

	if (!shadow_init(&device->shadow, DEVICE_SECTORS * SECTOR_BYTES) ||
	    !shadow_expect_late(&device->shadow))
		return false;
	device->overlaps = world_pick(device->world, 0, 2) == 0;
	loop_timer_init(&device->next, next_due, device);
	for (unsigned i = 0; i < DEVICE_FLIGHTS; i++) {
		device->flights[i].device = device;
		device->flights[i].data = data[device->index][i];
	}
	return true;
}

void load_done(struct device *device)
{
	loop_timer_cancel(device->world->loop, &device->next);
	shadow_done(&device->shadow);
}

void load_start(struct device *device)
{
	device->world->load = true;
	loop_timer_set(device->world->loop, &device->next,
		       loop_now_ns(device->world->loop) + NS_PER_MS);
}

static const struct flight *any_busy(const struct world *world)
{
	for (unsigned i = 0; i < world->device_count; i++)
		for (unsigned j = 0; j < DEVICE_FLIGHTS; j++)
			if (world->devices[i].flights[j].busy)
				return &world->devices[i].flights[j];
	return NULL;
}

bool load_wait(struct world *world, uint64_t limit_ns)
{
	uint64_t end_ns = loop_now_ns(world->loop) + limit_ns;
	const struct flight *flight;

	while ((flight = any_busy(world)) && loop_now_ns(world->loop) < end_ns && !world->fault[0])
		world_pass(world, 20 * NS_PER_MS);
	if (flight && !world->fault[0])
		world_fault(world, "device %u: %s of %llu sectors at %llu never ends",
			    flight->device->index, op_names[flight->io.op],
			    (unsigned long long)flight->count, (unsigned long long)flight->sector);
	return !world->fault[0];
}

bool load_verify(struct device *device)
{
	struct world *world = device->world;

	for (uint64_t at = 0; at < DEVICE_SECTORS && !world->fault[0];) {
		uint64_t count = MIN_OF((uint64_t)FLIGHT_SECTORS, DEVICE_SECTORS - at);

		if (start(device, IO_READ, 0, at, count))
			at += count;
		else if (!load_wait(world, 60 * NS_PER_S))
			return false;
	}
	return load_wait(world, 60 * NS_PER_S);
}
