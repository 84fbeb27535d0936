/* SPDX-License-Identifier: MIT
 *
 * Rebuilds of sets under load: onto drives that hold anything, onto distributed spare space and
 * back, with drives that fail meanwhile; what a verification finds and repairs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/array/world.h"

static void spoil(struct world *world, unsigned drive)
{
	static uint8_t garbage[CHUNK];
	rng_fill(&world->rng, garbage, sizeof garbage);
	for (uint64_t at = 0; at + CHUNK <= world->rig.drives[drive]->layer.size_bytes; at += CHUNK)
		rig_poke(&world->rig, drive, at, garbage, CHUNK);
}

static void unit_done(struct raid_unit *unit)
{
	*(bool *)unit->owner = true;
}

/* Rebuilds SLOT while requests go on, LOAD of them a unit; false when it missed an update. */
static bool rebuild_beside(struct world *world, unsigned slot, int load)
{
	const struct raid_ops *ops = world->rig.ops;
	for (uint64_t i = 0; i < ops->unit_count(world->rig.set); i++) {
		bool ended = false;
		struct raid_unit unit = {.kind = RAID_UNIT_REBUILD,
					 .slot = slot,
					 .unit = i,
					 .done = unit_done,
					 .owner = &ended};
		ops->unit_run(world->rig.set, &unit);
		world_load(world, load);
		while (!ended)
			world_turn(world);
		if (unit.status == -ENODEV && !(world->rig.filling >> slot & 1))
			return false;
		ensure(unit.status == 0, "unit %llu of slot %u: status %d", (unsigned long long)i,
		       slot, unit.status);
	}
	world_quiesce(world);
	return world->rig.filling >> slot & 1;
}

static void rebuild_under_load(struct world *world, unsigned slot)
{
	ensure(rebuild_beside(world, slot, 4), "slot %u missed an update", slot);
}

static void fail_some(struct world *world, uint64_t victims)
{
	for (uint64_t left = victims; left; left &= left - 1) {
		drive_set_failed(world->rig.drives[__builtin_ctzll(left)], true);
		world_load(world, ROUNDS / 8);
	}
	world_quiesce(world);
}

/* As many drives as may fail are replaced and rebuilt, all at a time. */
static void replaced_body(struct world *world)
{
	uint64_t victims = 0;

	world_load(world, ROUNDS / 4);
	for (unsigned base = 0; base < shape->drives; base += shape->group)
		victims |= world_victims(world, base, shape->tolerance);
	fail_some(world, victims);
	for (uint64_t left = victims; left; left &= left - 1) {
		unsigned slot = (unsigned)__builtin_ctzll(left);
		spoil(world, slot);
		drive_set_failed(world->rig.drives[slot], false);
		rig_replace(&world->rig, slot, world->rig.drives[slot]);
	}
	world_read_all(world);
	for (uint64_t left = victims; left; left &= left - 1) {
		rebuild_under_load(world, (unsigned)__builtin_ctzll(left));
		rig_good(&world->rig, (unsigned)__builtin_ctzll(left));
	}
	world_quiesce(world);
	world_check_redundancy(world);
	world_verify_clean(world);
	world_read_all(world);
	ensure(world->rig.stale_told == 0, "still stale");
}

static void replaced(void **state)
{
	world_everywhere(replaced_body, true);
}

/* A drive that misses an update while it is being rebuilt is told again, its units end with
 * -ENODEV, and nothing is lost. */
static void failed_again_body(struct world *world)
{
	unsigned slot = (unsigned)rng_below(&world->rng, shape->drives);
	uint64_t bit = UINT64_C(1) << slot;
	struct raid_unit unit = {.kind = RAID_UNIT_REBUILD, .slot = slot};

	fail_some(world, bit);
	drive_set_failed(world->rig.drives[slot], false);
	rig_replace(&world->rig, slot, world->rig.drives[slot]);
	rig_unit(&world->rig, &unit);
	ensure(unit.status == 0, "status %d", unit.status);
	for (int i = 0; i < 20 && world->rig.filling & bit; i++)
		fail_some(world, bit);
	ensure(!(world->rig.filling & bit), "not told anew");
	drive_set_failed(world->rig.drives[slot], false);
	rig_unit(&world->rig, &unit);
	ensure(unit.status == -ENODEV, "status %d", unit.status);
	world->rig.ops->slot_good(world->rig.set, slot);
	world_read_all(world);
	rig_rebuild(&world->rig, slot, world->rig.drives[slot]);
	world_check_redundancy(world);
	world_read_all(world);
}

static void failed_again(void **state)
{
	world_everywhere(failed_again_body, true);
}

/* Onto spare space, then two more drives, then back onto drives. */
static void distributed_body(struct world *world)
{
	struct rig *rig = &world->rig;
	uint64_t victims, others;

	if (rig->ops->protection(shape->drives).distributed_spares == 0)
		return;
	world_load(world, ROUNDS / 4);
	victims = world_victims(world, 0, 2);
	for (uint64_t left = victims; left; left &= left - 1) {
		unsigned slot = (unsigned)__builtin_ctzll(left);
		drive_set_failed(rig->drives[slot], true);
		world_load(world, ROUNDS / 8);
		rig_replace(rig, slot, NULL);
		rebuild_under_load(world, slot);
		world_quiesce(world);
		rig_good(rig, slot);
		world_read_all(world);
		world_verify_clean(world);
	}
	do
		others = world_victims(world, 0, 2);
	while (others & victims);
	fail_some(world, others);
	world_read_all(world);
	for (uint64_t left = others; left; left &= left - 1) {
		unsigned slot = (unsigned)__builtin_ctzll(left);
		drive_set_failed(rig->drives[slot], false);
		spoil(world, slot);
		rig_replace(rig, slot, rig->drives[slot]);
		rebuild_under_load(world, slot);
		rig_good(rig, slot);
	}
	world_read_all(world);
	world_verify_clean(world);
	for (uint64_t left = victims; left; left &= left - 1) {
		unsigned slot = (unsigned)__builtin_ctzll(left);
		drive_set_failed(rig->drives[slot], false);
		spoil(world, slot);
		rig_replace(rig, slot, rig->drives[slot]);
		world_load(world, ROUNDS / 8);
		/* The copy that is left behind serves until all is back. */
		world_quiesce(world);
		world_verify_clean(world);
		/* The drive with some of its spare slots fails meanwhile. */
		unsigned third = (unsigned)__builtin_ctzll(others);
		fail_some(world, UINT64_C(1) << third);
		if (!(rig->filling >> slot & 1))
			rig_replace(rig, slot, rig->drives[slot]);
		for (int load = 4; !rebuild_beside(world, slot, load); load = 0)
			rig_replace(rig, slot, rig->drives[slot]);
		rig_good(rig, slot);
		world_read_all(world);
		drive_set_failed(rig->drives[third], false);
		rig_rebuild(rig, third, rig->drives[third]);
	}
	world_quiesce(world);
	ensure(rig->stale_told == 0, "still stale");
	world_check_redundancy(world);
	world_read_all(world);
}

static void distributed(void **state)
{
	world_everywhere(distributed_body, true);
}

/* Which spare slots a slot has outlives the target, whatever order they were taken in. */
static void spares_are_remembered(void **state)
{
	static uint8_t data[CHUNK], seen[CHUNK];
	struct rig rig;
	struct rng rng;

	rng_init(&rng, 1, 1);
	rig_open_journaled(&rig, "adapt", 13, 20 * CHUNK, CHUNK);
	rng_fill(&rng, data, sizeof data);
	for (uint64_t at = 0; at < rig.set->size_bytes; at += CHUNK)
		assert_int_equal(io_wait(rig.loop, rig.set, IO_WRITE, at, data, CHUNK), 0);
	drive_set_failed(rig.drives[9], true);
	rig_rebuild(&rig, 9, NULL);
	drive_set_failed(rig.drives[2], true);
	rig_rebuild(&rig, 2, NULL);
	drive_set_failed(rig.drives[9], false);
	rig_rebuild(&rig, 9, rig.drives[9]); /* the first spare is free, slot 2 has the second */
	rig_reopen(&rig);
	drive_set_failed(rig.drives[5], true);
	drive_set_failed(rig.drives[6], true);
	for (uint64_t at = 0; at < rig.set->size_bytes; at += CHUNK) {
		assert_int_equal(io_wait(rig.loop, rig.set, IO_READ, at, seen, CHUNK), 0);
		assert_memory_equal(seen, data, CHUNK);
	}
	assert_int_equal(rig.stale_told, 0);
	/* A journal that knows nothing: the slot is out of date, and the rest makes up for it. */
	drive_set_failed(rig.drives[5], false);
	memset(rig.journal.memory, 0, 4096);
	rig_reopen(&rig);
	assert_int_equal(rig.stale_told, 1 << 2);
	for (uint64_t at = 0; at < rig.set->size_bytes; at += CHUNK) {
		assert_int_equal(io_wait(rig.loop, rig.set, IO_READ, at, seen, CHUNK), 0);
		assert_memory_equal(seen, data, CHUNK);
	}
	rig_close(&rig);
}

/* Planted in every column of a stripe, by one and two: errors of both kinds, content that does not
 * fit.  A verification finds and repairs them. */
static void verify_body(struct world *world)
{
	struct rig *rig = &world->rig;
	const struct stripe_geometry *geometry = &rig->geometry;
	uint64_t stripe = rng_below(&world->rng, geometry->stripe_count);
	struct stripe_at at = stripe_at(geometry, stripe);
	static uint8_t garbage[SECTOR];

	world_load(world, ROUNDS / 4);
	world_quiesce(world);
	for (unsigned a = 0; a < geometry->width; a++) {
		unsigned b = geometry->parities > 1 ? (a + 1) % geometry->width : a;
		struct raid_unit unit = {.kind = RAID_UNIT_VERIFY, .unit = stripe / geometry->sets};
		for (unsigned i = 0; i < 2; i++) {
			struct stripe_place place = stripe_place(geometry, &at, i ? b : a);
			struct fault *fault = &rig->faults[place.drive];
			fault->bad_offset = place.offset_bytes + 512 * i;
			fault->bad_bytes = SECTOR;
			fault->bad_status = i ? -EILSEQ : -EIO;
		}
		rig_unit(rig, &unit);
		ensure(unit.status == 0 && unit.repaired == 1u + (a != b) && !unit.inconsistent,
		       "status %d, repaired %u, inconsistent %d", unit.status, unit.repaired,
		       unit.inconsistent);
		rig_unit(rig, &unit);
		ensure(unit.repaired == 0, "it was not repaired");
	}
	struct stripe_place parity = stripe_place(geometry, &at, geometry->data);
	rng_fill(&world->rng, garbage, sizeof garbage);
	rig_poke(rig, parity.drive, parity.offset_bytes + 1024, garbage, sizeof garbage);
	struct raid_unit unit = {.kind = RAID_UNIT_VERIFY, .unit = stripe / geometry->sets};
	rig_unit(rig, &unit);
	ensure(unit.status == 0 && unit.inconsistent && unit.repaired == geometry->parities,
	       "status %d, repaired %u", unit.status, unit.repaired);
	world_check_redundancy(world);
	world_verify_clean(world);
	world_read_all(world);
}

static void verify(void **state)
{
	world_everywhere(verify_body, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(replaced),	   cmocka_unit_test(failed_again),
	    cmocka_unit_test(distributed), cmocka_unit_test(spares_are_remembered),
	    cmocka_unit_test(verify),
	};
	return cmocka_run_group_tests_name("raid_rebuild", tests, NULL, NULL);
}
