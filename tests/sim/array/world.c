/* SPDX-License-Identifier: MIT
 *
 * One simulated array.
 */
#include "tests/sim/array/world.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "target/drive/faults.h"
#include "tests/sim/array/crash.h"
#include "tests/sim/array/roam.h"
#include "tests/sim/array/trouble.h"

void world_fault(struct world *world, const char *format, ...)
{
	va_list args;
	if (world->fault[0])
		return; /* the first one counts */
	va_start(args, format);
	(void)vsnprintf(world->fault, sizeof world->fault, format, args);
	va_end(args);
}

void world_trace(struct world *world, const char *format, ...)
{
	va_list args;
	if (!world->trace)
		return;
	printf("%12.6f ", (double)loop_now_ns(world->loop) / (double)NS_PER_S);
	va_start(args, format);
	(void)vprintf(format, args);
	va_end(args);
	for (unsigned m = 0; world->group && m < world->pool.members.count; m++) {
		const struct member *member = world_member(world, m);
		printf(" [%s:", member_state_names[member_state(member)]);
		for (unsigned i = 0; i < member_drive_count(member); i++)
			printf(" %s%s", member_drive_state_names[member_drive_state(member, i)],
			       world->damaged[m] >> i & 1 ? "!" : "");
		printf("]");
	}
	putchar('\n');
}

void world_remove(struct world *world)
{
	struct dirent *entry;
	char path[WORLD_DIR_BYTES + 300];

	world_close(world);
	world->loop = loop_free(world->loop);
	for (unsigned i = 0; i < WORLD_VOLUMES; i++)
		shadow_done(&world->shadows[i]);
	DIR *dir = opendir(world->dir);
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof path, "%s/%s", world->dir, entry->d_name);
		(void)unlink(path);
	}
	if (dir)
		closedir(dir);
	(void)rmdir(world->dir);
}

bool world_open(struct world *world)
{
	struct err err = {0};
	int rc = group_open(world->loop, &world->config, "sim", world->seed, &world->group, &err);
	if (rc) {
		world_fault(world, "cannot open the group: %s", err.what);
		return false;
	}
	trouble_begin(world);
	roam_begin(world);
	return true;
}

void world_close(struct world *world)
{
	if (world->group)
		trouble_end(world);
	world->group = group_close(world->group);
}

void world_pass(struct world *world, uint64_t most_ns)
{
	(void)loop_run_until(world->loop, loop_now_ns(world->loop) + world_pick(world, 0, most_ns));
}

/* ---- drives ---- */

struct member *world_member(struct world *world, unsigned member)
{
	return group_member_at(world->group, member);
}

static unsigned slots_of(struct world *world)
{
	return world->actives;
}

/* Nothing that was planted is left when a scrub that began later has gone through. */
static void forget_cured(struct world *world, unsigned index)
{
	struct scrub_progress scrub;
	struct member *member = world_member(world, index);
	uint64_t total_bytes, used_bytes;

	member_scrub_progress(member, &scrub);
	member_pages(member, &total_bytes, &used_bytes);
	/* Pages that are free are not looked at. */
	if (world->damaged[index] && scrub.completed > world->scrubs[index] &&
	    used_bytes == total_bytes && member_state(member) == MEMBER_HEALTHY)
		world->damaged[index] = world->flipped[index] = 0;
}

/* Faults are part of the running drives, but flipped bits are there after a restart. */
void world_forget_faults(struct world *world)
{
	world->shaken = true;
	for (unsigned i = 0; i < WORLD_MEMBERS; i++) {
		world->damaged[i] &= world->flipped[i];
		world->scrubs[i] = 0;
	}
}

int world_slack(struct world *world, unsigned index, unsigned slot)
{
	struct member *member = world_member(world, index);
	unsigned width = world->protection.group_drives, base = slot / width * width;
	int touched = 0;

	forget_cured(world, index);
	for (unsigned i = base; i < base + width && i < slots_of(world); i++) {
		bool good = false;
		for (unsigned d = 0; d < member_drive_count(member); d++)
			if (member_drive_slot(member, d) == (int)i)
				good = member_drive_state(member, d) == MEMBER_DRIVE_ONLINE &&
				       !(world->damaged[index] >> d & 1);
		touched += !good;
	}
	return (int)world->protection.tolerance - touched;
}

/* A drive of the set, chosen at random, that may be touched; its place in *RET_MEMBER. */
static struct drive *choose_drive(struct world *world, unsigned *ret_member, unsigned *ret_drive)
{
	*ret_member = (unsigned)world_pick(world, 0, world->pool.members.count - 1);
	struct member *member = world_member(world, *ret_member);
	*ret_drive = (unsigned)world_pick(world, 0, member_drive_count(member) - 1);
	int slot = member_drive_slot(member, *ret_drive);
	struct drive *drive = member_drive(member, *ret_drive);

	if (drive->failed)
		return NULL;
	if (slot < 0)
		return drive;
	/* One that is touched already may be touched more. */
	bool touched = member_drive_state(member, *ret_drive) != MEMBER_DRIVE_ONLINE ||
		       (world->damaged[*ret_member] >> *ret_drive & 1);
	return touched || world_slack(world, *ret_member, (unsigned)slot) > 0 ? drive : NULL;
}

void world_fail_drive(struct world *world)
{
	unsigned member, index;
	struct drive *drive = choose_drive(world, &member, &index);
	if (!drive)
		return;
	drive_set_failed(drive, true);
	world_trace(world, "drive %u of member %u fails", index, member + 1);
}

void world_return_drive(struct world *world)
{
	unsigned index = (unsigned)world_pick(world, 0, world->pool.members.count - 1);
	struct member *member = world_member(world, index);
	unsigned first = (unsigned)world_pick(world, 0, member_drive_count(member) - 1);

	for (unsigned i = 0; i < member_drive_count(member); i++) {
		struct drive *drive =
		    member_drive(member, (first + i) % member_drive_count(member));
		if (!drive->failed)
			continue;
		drive_set_failed(drive, false);
		world->shaken = true;
		world_trace(world, "%s returns", drive->name);
		return;
	}
}

void world_return_all(struct world *world)
{
	for (unsigned m = 0; m < world->pool.members.count; m++) {
		struct member *member = world_member(world, m);
		for (unsigned i = 0; i < member_drive_count(member); i++) {
			drive_set_failed(member_drive(member, i), false);
		}
	}
}

void world_damage(struct world *world)
{
	unsigned member, index;
	struct scrub_progress scrub;
	struct drive *drive = choose_drive(world, &member, &index);

	if (!drive || member_drive_slot(world_member(world, member), index) < 0)
		return;
	uint64_t size = drive->layer.size_bytes;
	uint64_t offset = world_pick(world, 0, size / 4096 - 17) * 4096;
	if (world_pick(world, 0, 2) == 0)
		offset = offset % MIB; /* where something was written */
	world->damaged[member] |= UINT64_C(1) << index;
	member_scrub_progress(world_member(world, member), &scrub);
	/* One that runs may have passed the place. */
	world->scrubs[member] = scrub.completed + scrub.running;
	uint64_t sectors = world_pick(world, 1, 128);
	bool flip =
	    world->members[member].checksums == MEMBER_CHECKSUMS_ON && world_pick(world, 0, 1);
	world->flipped[member] |= (uint64_t)flip << index;
	if (flip)
		(void)drive_corrupt(drive, offset, sectors * SECTOR_BYTES, 8, rng_u64(&world->rng));
	else
		(void)drive_add_media_error(drive, offset, sectors * SECTOR_BYTES);
	world_trace(world, "%s: %llu sectors at %llu go bad", drive->name,
		    (unsigned long long)sectors, (unsigned long long)offset / SECTOR_BYTES);
}

void world_scrub(struct world *world)
{
	unsigned index = (unsigned)world_pick(world, 0, world->pool.members.count - 1);
	(void)member_scrub_start(world_member(world, index));
	world_trace(world, "a scrub of member %u is asked for", index + 1);
}

/* ---- quiet ---- */

static bool is_quiet(struct world *world, unsigned index)
{
	struct scrub_progress scrub;
	struct member *member = world_member(world, index);
	member_scrub_progress(member, &scrub);
	return member_state(member) == MEMBER_HEALTHY && !scrub.running;
}

static bool run_until_quiet(struct world *world)
{
	uint64_t end_ns = loop_now_ns(world->loop) + 3600 * NS_PER_S;
	bool quiet = false;

	while (!quiet && !crash_happened() && loop_now_ns(world->loop) < end_ns) {
		(void)loop_run_until(world->loop, loop_now_ns(world->loop) + 100 * NS_PER_MS);
		quiet = true;
		for (unsigned i = 0; i < world->pool.members.count; i++)
			quiet = quiet && is_quiet(world, i);
	}
	return quiet || crash_happened();
}

bool world_heal(struct world *world)
{
	if (run_until_quiet(world))
		return true;
	for (unsigned i = 0; i < world->pool.members.count; i++)
		if (!is_quiet(world, i))
			world_fault(world, "member %u stays %s", i + 1,
				    member_state_names[member_state(world_member(world, i))]);
	return false;
}

bool world_scrub_any(struct world *world)
{
	for (unsigned i = 0; i < world->pool.members.count; i++)
		(void)member_scrub_start(world_member(world, i));
	if (run_until_quiet(world))
		return true;
	world_fault(world, "a scrub does not end");
	return false;
}

bool world_scrub_clean(struct world *world)
{
	if (!world_scrub_any(world))
		return false;
	for (unsigned i = 0; i < world->pool.members.count; i++) {
		struct scrub_progress scrub;
		member_scrub_progress(world_member(world, i), &scrub);
		bool repaired = scrub.units_repaired && !world->damaged[i];
		if (repaired || scrub.units_inconsistent || scrub.units_lost)
			world_fault(
			    world,
			    "the scrub of member %u finds (first at sector %llu of it) %llu "
			    "units to repair, %llu inconsistent, %llu lost",
			    i + 1, (unsigned long long)scrub.places[0].offset_bytes / SECTOR_BYTES,
			    (unsigned long long)scrub.units_repaired,
			    (unsigned long long)scrub.units_inconsistent,
			    (unsigned long long)scrub.units_lost);
	}
	return world->fault[0] == '\0';
}
