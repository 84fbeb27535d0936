/* SPDX-License-Identifier: MIT
 *
 * See sweep_fake.h.
 */
#include "tests/unit/array/sweep_fake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

static unsigned distributed_spares;

static uint64_t fake_unit_count(const struct io_layer *layer)
{
	return UNITS;
}

static struct raid_protection fake_protection(unsigned drive_count)
{
	return (struct raid_protection){
	    .group_drives = 4, .tolerance = 2, .distributed_spares = distributed_spares};
}

static void unit_ends(void *arg)
{
	struct pending *pending = arg;
	struct raid_unit *unit = pending->unit;
	struct fake *fake = pending->fake;
	bool rebuild = unit->kind == RAID_UNIT_REBUILD;

	pending->unit = NULL;
	fake->in_flight--;
	unit->moved_bytes = 100000;
	unit->status = fake->unit_status[unit->unit];
	if (fake->busy > 0) {
		fake->busy--;
		unit->status = -EBUSY;
	} else if (rebuild && fake->in_slot[unit->slot] && fake->in_slot[unit->slot]->failed) {
		unit->status = -ENODEV;
	} else if (rebuild) {
		fake->rebuilt[unit->slot]++;
	} else {
		fake->verified++;
		unit->repaired = unit->unit == fake->repaired_at ? 2 : 0;
		unit->inconsistent = unit->repaired > 0;
		if (unit->unit == fake->lost_at)
			unit->status = -EIO;
	}
	unit->done(unit);
}

static void fake_unit_run(struct io_layer *layer, struct raid_unit *unit)
{
	struct fake *fake = container_of(layer, struct fake, set);
	unsigned i = 0;

	assert_in_range(unit->unit, 0, UNITS - 1);
	while (fake->pending[i].unit)
		assert_true(++i < PENDING);
	if (unit->kind == RAID_UNIT_REBUILD) {
		fake->order[fake->order_count++] = unit->slot;
	}
	fake->pending[i] = (struct pending){.unit = unit, .fake = fake};
	loop_timer_init(&fake->pending[i].timer, unit_ends, &fake->pending[i]);
	loop_timer_set(fake->loop, &fake->pending[i].timer, loop_now_ns(fake->loop) + UNIT_NS);
	fake->in_flight++;
	fake->most_in_flight = MAX_OF(fake->most_in_flight, fake->in_flight);
}

static void fake_replace(struct io_layer *layer, unsigned slot, struct drive *drive)
{
	struct fake *fake = container_of(layer, struct fake, set);
	fake->in_slot[slot] = drive;
	fake->good &= ~(UINT64_C(1) << slot);
}

static void fake_good(struct io_layer *layer, unsigned slot)
{
	struct fake *fake = container_of(layer, struct fake, set);
	assert_true(fake->fresh >> slot & 1); /* recorded first */
	fake->good |= UINT64_C(1) << slot;
}

static uint64_t fake_dirty(const struct io_layer *layer, uint64_t from)
{
	const struct fake *fake = container_of(layer, struct fake, set);
	return from < fake->dirty ? from : UINT64_MAX;
}

static void fake_submit(struct io_layer *layer, struct io *io)
{
	assert_int_equal(io->op, IO_FLUSH);
	io_complete(io, 0);
}

static const struct io_layer_ops fake_layer_ops = {.name = "fake", .submit = fake_submit};

static const struct raid_ops fake_ops = {
    .name = "fake",
    .protection = fake_protection,
    .unit_count = fake_unit_count,
    .unit_run = fake_unit_run,
    .slot_replace = fake_replace,
    .slot_good = fake_good,
    .dirty_unit = fake_dirty,
};

static int fake_assign(void *arg, unsigned slot, unsigned drive)
{
	struct fake *fake = arg;
	fake->assigned |= UINT64_C(1) << slot;
	fake->fresh &= ~(UINT64_C(1) << slot);
	return 0;
}

static int fake_fresh(void *arg, unsigned slot)
{
	struct fake *fake = arg;
	fake->fresh |= UINT64_C(1) << slot;
	return 0;
}

static uint64_t fake_next_used(void *arg, uint64_t offset)
{
	struct fake *fake = arg;
	return MAX_OF(offset, fake->used_from);
}

static uint64_t fake_used_bytes(void *arg)
{
	struct fake *fake = arg;
	return fake->set.size_bytes - fake->used_from;
}

static void drive_tells(void *arg, struct drive *drive)
{
	struct fake *fake = arg;
	for (unsigned i = 0; i < DRIVES; i++)
		if (fake->drives[i] == drive)
			sweep_drive_changed(fake->member.sweep, i);
}

void fake_open(struct fake *fake, struct knobs_of_test knobs)
{
	uint8_t slots[8];
	struct err err;

	distributed_spares = knobs.distributed;

	*fake = (struct fake){.set = {.ops = &fake_layer_ops, .size_bytes = UNITS * MIB},
			      .good = 0xff,
			      .repaired_at = UNITS,
			      .lost_at = UNITS};
	assert_int_equal(loop_new_virtual(0, &fake->loop), 0);
	for (unsigned i = 0; i < DRIVES; i++) {
		char name[16];
		snprintf(name, sizeof name, "drive%02u", i);
		struct drive_config config = {
		    .name = name, .size_bytes = DRIVE_BYTES, .store = &store_memory_ops};
		assert_int_equal(drive_open(fake->loop, &config, &fake->drives[i], &err), 0);
		fake->drives[i]->changed = drive_tells;
		fake->drives[i]->changed_arg = fake;
		if (i < 8) {
			slots[i] = (uint8_t)i;
			fake->in_slot[i] = fake->drives[i];
		}
	}
	struct sweep_config config = {
	    .loop = fake->loop,
	    .name = "fake",
	    .ops = &fake_ops,
	    .set = &fake->set,
	    .drives = fake->drives,
	    .drive_count = knobs.drives,
	    .slot_count = 8,
	    .slot_drive = slots,
	    .stale_mask = knobs.stale_mask,
	    .spare_delay_ns = DELAY_NS,
	    .rate_bytes_per_s = knobs.rate,
	    .scrub_every_ns = knobs.scrub_every_ns,
	    .arg = fake,
	    .assign = fake_assign,
	    .fresh = fake_fresh,
	    .next_used = fake_next_used,
	    .used_bytes = fake_used_bytes,
	};
	fake->member.drive_count = knobs.drives;
	assert_int_equal(sweep_open(&config, &fake->member.sweep), 0);
}

void fake_close(struct fake *fake)
{
	while (fake->in_flight > 0) /* as draining the drives does */
		assert_int_equal(loop_turn(fake->loop, true), 0);
	sweep_close(fake->member.sweep);
	for (unsigned i = 0; i < DRIVES; i++)
		drive_close(fake->drives[i]);
	loop_free(fake->loop);
}

void run_for(struct fake *fake, uint64_t ns)
{
	assert_int_equal(loop_run_until(fake->loop, loop_now_ns(fake->loop) + ns), 0);
}

void expect_state(struct fake *fake, enum member_state state)
{
	assert_string_equal(member_state_names[member_state(&fake->member)],
			    member_state_names[state]);
}

void expect_drive(struct fake *fake, unsigned drive, enum member_drive_state state)
{
	assert_string_equal(member_drive_state_names[member_drive_state(&fake->member, drive)],
			    member_drive_state_names[state]);
}

uint64_t rebuilds(struct fake *fake)
{
	struct rebuild_progress progress;
	member_rebuild_progress(&fake->member, &progress);
	return progress.completed;
}
