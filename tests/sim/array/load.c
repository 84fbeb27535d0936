/* SPDX-License-Identifier: MIT
 *
 * Random requests to a simulated array, and the judgement of what comes back.
 */
#include "tests/sim/array/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "target/array/cache.h"
#include "tests/sim/array/crash.h"
#include "tests/sim/array/trouble.h"

enum { PROBES = 24, VERIFY_NS_MAX = 600 };

bool load_init(struct load *load, struct world *world)
{
	static uint8_t data[LOAD_FLIGHTS][LOAD_SECTORS_MAX * SECTOR_BYTES];

	*load = (struct load){.world = world, .next_id = 1};
	for (unsigned i = 0; i < LOAD_FLIGHTS; i++) {
		load->flights[i].load = load;
		load->flights[i].data = data[i];
	}
	for (unsigned i = 0; i < world->config.volumes.count; i++) {
		load->touched[i] = calloc(world->shadows[i].count / LOAD_BLOCK_SECTORS + 1, 1);
		if (!load->touched[i])
			return false;
	}
	return true;
}

void load_done(struct load *load)
{
	for (unsigned i = 0; i < WORLD_VOLUMES; i++)
		free(load->touched[i]);
}

static uint64_t pick(struct load *load, uint64_t least, uint64_t most)
{
	return least + rng_below(&load->world->rng, most - least + 1);
}

/* ---- ends ---- */

/* The members that hold anything of the range; of a flush, all. */
static unsigned members_of(struct load *load, const struct flight *flight)
{
	const struct volume *volume = group_volume(load->world->group, flight->volume);
	uint64_t at = flight->sector * SECTOR_BYTES, end = at + flight->count * SECTOR_BYTES;
	unsigned members = flight->io.op == IO_FLUSH ? ~0U : 0;

	while (at < end) {
		const struct member *member;
		uint64_t run;
		volume_slice(volume, at, &member, &run);
		for (unsigned i = 0; i < load->world->pool.members.count; i++)
			members |= (unsigned)(world_member(load->world, i) == member) << i;
		at += run;
	}
	return members;
}

/* Is that a clean error for what has happened to the members of the range? */
static bool is_due(struct load *load, const struct flight *flight)
{
	unsigned members = flight->members | members_of(load, flight);

	switch (flight->io.status) {
	case -ENOSPC:
		return flight->io.op == IO_WRITE;
	case -EIO:
		return load->errors_allowed && members & 1;
	case -ENODEV:
		for (unsigned i = 0; i < load->world->pool.members.count; i++)
			if (members >> i & 1 && trouble_was_away(load->world, i, flight->absences))
				return true;
		return false;
	default:
		return false;
	}
}

static void judge_error(struct load *load, const struct flight *flight)
{
	static const char *const names[] = {"READ", "WRITE", "FLUSH", "UNMAP"};
	int status = flight->io.status;

	load->errors++;
	if (is_due(load, flight))
		return;
	world_fault(load->world, "%s of %llu sectors at %llu of volume %u ends with %s",
		    names[flight->io.op], (unsigned long long)flight->count,
		    (unsigned long long)flight->sector, flight->volume, strerror(-status));
}

static void flight_done(struct io *io)
{
	struct flight *flight = container_of(io, struct flight, io);
	struct load *load = flight->load;
	struct shadow *shadow = &load->world->shadows[flight->volume];
	bool changes = io->op == IO_WRITE || io->op == IO_UNMAP;
	struct shadow_fault fault;

	load->lost = load->lost || crash_happened();
	flight->busy = false;
	load->busy--;
	if (load->world->trace)
		world_trace(load->world, "  end %u: %d", (unsigned)(flight - load->flights),
			    io->status);
	if (changes && (load->lost || io->status))
		shadow_uncertain(shadow, flight->sector, flight->count, flight->id);
	if (load->lost)
		return;
	if (io->status)
		judge_error(load, flight);
	else if (changes)
		shadow_acknowledged(shadow, flight->sector, flight->count, flight->id,
				    io->flags & IO_FUA);
	else if (io->op == IO_FLUSH)
		shadow_flushed(shadow, flight->stamp);
	else if (!shadow_check(shadow, flight->sector, flight->count, flight->data, &fault))
		world_fault(load->world, "volume %u: %s", flight->volume, fault.text);
}

/* ---- beginnings ---- */

static bool overlaps(const struct flight *a, unsigned volume, uint64_t sector, uint64_t count,
		     bool changes)
{
	if (!a->busy || a->io.op == IO_FLUSH || a->volume != volume)
		return false;
	if (!changes && a->io.op == IO_READ)
		return false;
	return a->sector < sector + count && sector < a->sector + a->count;
}

static struct flight *find_idle(struct load *load)
{
	for (unsigned i = 0; i < LOAD_FLIGHTS; i++)
		if (!load->flights[i].busy)
			return &load->flights[i];
	return NULL;
}

static bool start(struct load *load, unsigned volume, enum io_op op, unsigned flags,
		  uint64_t sector, uint64_t count)
{
	struct flight *flight = find_idle(load);
	struct shadow *shadow = &load->world->shadows[volume];
	bool changes = op == IO_WRITE || op == IO_UNMAP, data = op == IO_READ || op == IO_WRITE;

	if (!flight)
		return false;
	for (unsigned i = 0; op != IO_FLUSH && i < LOAD_FLIGHTS; i++)
		if (overlaps(&load->flights[i], volume, sector, count, changes))
			return false;
	flight->volume = volume;
	flight->sector = sector;
	flight->count = count;
	flight->stamp = shadow->stamp;
	flight->id = op == IO_WRITE ? load->next_id++ : 0;
	flight->busy = true;
	flight->iov = (struct iovec){flight->data, count * SECTOR_BYTES};
	flight->io = (struct io){
	    .op = op,
	    .flags = flags,
	    .offset_bytes = sector * SECTOR_BYTES,
	    .length_bytes = count * SECTOR_BYTES,
	    .iov = data ? &flight->iov : NULL,
	    .iov_count = data ? 1 : 0,
	    .done = flight_done,
	};
	flight->absences = load->world->absences;
	flight->members = members_of(load, flight);
	if (op == IO_WRITE)
		shadow_fill(flight->data, sector, count, flight->id);
	for (uint64_t i = sector; changes && i < sector + count; i += LOAD_BLOCK_SECTORS)
		load->touched[volume][i / LOAD_BLOCK_SECTORS] = 1;
	if (changes)
		load->touched[volume][(sector + count - 1) / LOAD_BLOCK_SECTORS] = 1;
	load->busy++;
	load->requests++;
	if (load->world->trace)
		world_trace(load->world, "  begin %u: op %d flags %u, %llu at %llu of %u, id %u",
			    (unsigned)(flight - load->flights), op, flags,
			    (unsigned long long)count, (unsigned long long)sector, volume,
			    flight->id);
	io_submit(volume_layer(group_volume(load->world->group, volume)), &flight->io);
	return true;
}

/* Few places, so that requests meet: the beginning, a page's border or the middle, the end. */
static void choose_range(struct load *load, unsigned volume, uint64_t *ret_sector,
			 uint64_t *ret_count)
{
	static const uint64_t most[] = {1, 8, 64, LOAD_SECTORS_MAX};
	uint64_t all = load->world->shadows[volume].count;
	uint64_t zone = 512 * KIB / SECTOR_BYTES, page = POOL_PAGE_BYTES / SECTOR_BYTES;
	uint64_t middle = all > page + zone ? page - zone / 2 : all / 2;
	const uint64_t begins[] = {0, 0, middle, all - zone};
	uint64_t count = pick(load, 1, most[pick(load, 0, 3)]);
	uint64_t sector = begins[pick(load, 0, 3)] + pick(load, 0, zone - count);

	if (pick(load, 0, 19) == 0)
		sector = pick(load, 0, all - count);
	if (load->world->focused && volume == 0 && pick(load, 0, 9)) {
		sector = load->world->focus * page + pick(load, 0, zone - count);
		sector = MIN_OF(sector, all - count);
	}
	if (pick(load, 0, 1)) /* as file systems do */
		sector = sector / 8 * 8;
	*ret_sector = sector;
	*ret_count = count;
}

void load_issue(struct load *load)
{
	unsigned volume = (unsigned)pick(load, 0, load->world->config.volumes.count - 1);
	uint64_t kind = pick(load, 0, 99), sector, count;

	choose_range(load, volume, &sector, &count);
	if (!trouble_reaches(load->world, volume))
		return;
	if (kind < 40)
		(void)start(load, volume, IO_READ, 0, sector, count);
	else if (kind < 85)
		(void)start(load, volume, IO_WRITE, kind < 55 ? IO_FUA : 0, sector, count);
	else if (kind < 92)
		(void)start(load, volume, IO_FLUSH, 0, 0, 0);
	else if (kind < 99)
		(void)start(load, volume, IO_UNMAP, 0, sector, count);
	else if (load->world->shadows[volume].count * SECTOR_BYTES > POOL_PAGE_BYTES)
		(void)start(load, volume, IO_UNMAP, 0, 0, POOL_PAGE_BYTES / SECTOR_BYTES);
}

bool load_wait(struct load *load)
{
	struct loop *loop = load->world->loop;
	uint64_t end_ns = loop_now_ns(loop) + VERIFY_NS_MAX * NS_PER_S;

	while (load->busy && loop_now_ns(loop) < end_ns)
		(void)loop_run_until(loop, loop_now_ns(loop) + 10 * NS_PER_MS);
	if (load->busy)
		world_fault(load->world, "%u requests never end", load->busy);
	return load->busy == 0;
}

/* ---- the whole ---- */

/* Reads and waits; its status. */
static int read_now(struct load *load, unsigned volume, uint64_t sector, uint64_t count)
{
	struct flight *flight = find_idle(load);

	if (!start(load, volume, IO_READ, 0, sector, count) || !load_wait(load))
		return -ETIMEDOUT;
	return flight->io.status;
}

bool load_verify(struct load *load)
{
	for (unsigned v = 0; v < load->world->config.volumes.count; v++) {
		uint64_t all = load->world->shadows[v].count;
		for (uint64_t at = 0; at < all; at += LOAD_BLOCK_SECTORS) {
			if (!load->touched[v][at / LOAD_BLOCK_SECTORS])
				continue;
			(void)read_now(load, v, at, MIN_OF(LOAD_BLOCK_SECTORS, all - at));
			if (load->world->fault[0])
				return false;
		}
	}
	return true;
}

/* ---- beyond the tolerance ---- */

struct probe {
	unsigned volume;
	uint64_t sector;
	uint64_t drives; /* of member 0, that served it while all was well */
	bool cached;	 /* none of them, but a cache of that member may have */
};

static uint64_t reads_of(struct load *load, unsigned index)
{
	return member_drive(world_member(load->world, 0), index)->counters.reads;
}

static void probe_healthy(struct load *load, struct probe *probe)
{
	unsigned count = member_drive_count(world_member(load->world, 0));
	uint64_t before[RAID_DRIVES_MAX];

	for (unsigned i = 0; i < count; i++)
		before[i] = reads_of(load, i);
	(void)read_now(load, probe->volume, probe->sector, 1);
	probe->drives = 0;
	for (unsigned i = 0; i < count; i++)
		if (reads_of(load, i) != before[i])
			probe->drives |= UINT64_C(1) << i;
	struct flight place = {
	    .volume = probe->volume, .sector = probe->sector, .count = 1, .io.op = IO_READ};
	probe->cached = !probe->drives && load->world->members[0].cache.size_bytes &&
			members_of(load, &place) & 1;
}

/* One drive more than the level tolerates, all of one group. */
static uint64_t fail_too_many(struct load *load)
{
	struct world *world = load->world;
	struct member *member = world_member(world, 0);
	unsigned width = world->protection.group_drives, failed = 0;
	unsigned base = (unsigned)pick(load, 0, world->actives / width - 1) * width;
	unsigned first = (unsigned)pick(load, 0, width - 1);
	uint64_t mask = 0;

	for (unsigned i = 0; failed < world->protection.tolerance + 1; i++) {
		for (unsigned d = 0; d < member_drive_count(member); d++) {
			if (member_drive_slot(member, d) != (int)(base + (first + i) % width))
				continue;
			drive_set_failed(member_drive(member, d), true);
			mask |= UINT64_C(1) << d;
			failed++;
		}
	}
	return mask;
}

/* Too many drives that go while an update is under way leave it half-way, and then redundancy is of
 * no use for the rest of the stripe: a cache's own updates are to end before. */
static bool caches_clean(struct world *world)
{
	uint64_t end_ns = loop_now_ns(world->loop) + 60 * NS_PER_S, dirty_bytes;

	do {
		dirty_bytes = 0;
		for (unsigned i = 0; i < world->pool.members.count; i++) {
			struct cache_status status;
			if (member_cache_status(world_member(world, i), &status))
				dirty_bytes += status.dirty_bytes;
		}
		if (dirty_bytes)
			(void)loop_run_until(world->loop,
					     loop_now_ns(world->loop) + 100 * NS_PER_MS);
	} while (dirty_bytes && loop_now_ns(world->loop) < end_ns);
	if (dirty_bytes)
		world_fault(world, "caches keep %llu dirty bytes", (unsigned long long)dirty_bytes);
	return dirty_bytes == 0;
}

bool load_beyond_tolerance(struct load *load)
{
	struct world *world = load->world;
	struct probe probes[PROBES];

	if (!caches_clean(world))
		return false;

	for (unsigned i = 0; i < PROBES; i++) {
		uint64_t count;
		probes[i].volume = (unsigned)pick(load, 0, world->config.volumes.count - 1);
		choose_range(load, probes[i].volume, &probes[i].sector, &count);
		probe_healthy(load, &probes[i]);
	}
	uint64_t failed = fail_too_many(load);
	if (member_state(world_member(world, 0)) != MEMBER_FAILED)
		world_fault(world, "a member that has lost too many drives calls itself %s",
			    member_state_names[member_state(world_member(world, 0))]);
	load->errors_allowed = true;
	for (unsigned i = 0; i < PROBES; i++) {
		int status = read_now(load, probes[i].volume, probes[i].sector, 1);
		if (status && !(probes[i].drives & failed) && !probes[i].cached)
			world_fault(world,
				    "sector %llu of volume %u cannot be read although its drive is "
				    "there (read from %llx, failed %llx)",
				    (unsigned long long)probes[i].sector, probes[i].volume,
				    (unsigned long long)probes[i].drives,
				    (unsigned long long)failed);
	}
	for (unsigned i = 0; i < PROBES; i++)
		load_issue(load);
	bool ended = load_wait(load);
	load->errors_allowed = false;
	world_return_all(world);
	return ended && world_heal(world);
}
