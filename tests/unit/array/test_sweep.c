/* SPDX-License-Identifier: MIT
 *
 * Background work of a member over a set that only pretends: which slot is rebuilt when, onto what,
 * how fast, and what is told about it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "target/array/member.h"

enum { DRIVES = 12, UNITS = 100, PENDING = 64, DRIVE_BYTES = 10 << 20 };
#define DELAY_NS (2 * NS_PER_S)
#define UNIT_NS	 (10 * NS_PER_MS)

struct pending {
	struct loop_timer timer;
	struct raid_unit *unit;
	struct fake *fake;
};

/* One set at a time: two groups of four slots, two of each may be out. */
struct fake {
	struct io_layer set;
	struct loop *loop;
	struct member member;
	struct drive *drives[DRIVES];
	struct pending pending[PENDING];
	unsigned in_flight, most_in_flight, verified, rebuilt[DRIVES];
	unsigned order[UNITS * 8], order_count; /* slots of the rebuild units, as begun */
	struct drive *in_slot[8];
	uint64_t good, assigned, fresh;
	int unit_status[UNITS];
	int busy;		       /* so many units find no memory */
	unsigned repaired_at, lost_at; /* units that VERIFY repairs or cannot, UNITS: none */
	uint64_t used_from;
	unsigned dirty; /* units 0, 1, ... below it are dirty */
};

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

struct knobs_of_test {
	unsigned drives, distributed;
	uint64_t rate, scrub_every_ns, stale_mask;
};

static void fake_open(struct fake *fake, struct knobs_of_test knobs)
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

static void fake_close(struct fake *fake)
{
	while (fake->in_flight > 0) /* as draining the drives does */
		assert_int_equal(loop_turn(fake->loop, true), 0);
	sweep_close(fake->member.sweep);
	for (unsigned i = 0; i < DRIVES; i++)
		drive_close(fake->drives[i]);
	loop_free(fake->loop);
}

static void run_for(struct fake *fake, uint64_t ns)
{
	assert_int_equal(loop_run_until(fake->loop, loop_now_ns(fake->loop) + ns), 0);
}

static void expect_state(struct fake *fake, enum member_state state)
{
	assert_string_equal(member_state_names[member_state(&fake->member)],
			    member_state_names[state]);
}

static void expect_drive(struct fake *fake, unsigned drive, enum member_drive_state state)
{
	assert_string_equal(member_drive_state_names[member_drive_state(&fake->member, drive)],
			    member_drive_state_names[state]);
}

static uint64_t rebuilds(struct fake *fake)
{
	struct rebuild_progress progress;
	member_rebuild_progress(&fake->member, &progress);
	return progress.completed;
}

/* ---- spares ---- */

static void test_spare_takes_over(void **state)
{
	struct fake fake;
	fake_open(&fake, (struct knobs_of_test){.drives = 10});
	expect_state(&fake, MEMBER_HEALTHY);
	expect_drive(&fake, 9, MEMBER_DRIVE_SPARE);

	drive_set_failed(fake.drives[3], true);
	run_for(&fake, DELAY_NS - 1);
	expect_state(&fake, MEMBER_DEGRADED);
	assert_int_equal(fake.assigned, 0);
	run_for(&fake, 2);
	expect_state(&fake, MEMBER_REBUILDING);
	expect_drive(&fake, 9, MEMBER_DRIVE_REBUILDING);
	expect_drive(&fake, 3, MEMBER_DRIVE_FAILED);
	assert_ptr_equal(fake.in_slot[3], fake.drives[9]);

	run_for(&fake, UNITS * UNIT_NS);
	expect_state(&fake, MEMBER_HEALTHY);
	assert_int_equal(fake.good, 0xff);
	assert_int_equal(fake.rebuilt[3], UNITS);
	assert_int_equal(rebuilds(&fake), 1);
	assert_in_range(fake.most_in_flight, 2, 8);

	/* No copy-back: what returns is a spare. */
	drive_set_failed(fake.drives[3], false);
	run_for(&fake, NS_PER_S);
	expect_drive(&fake, 3, MEMBER_DRIVE_SPARE);
	assert_int_equal(member_drive_slot(&fake.member, 9), 3);
	assert_int_equal(rebuilds(&fake), 1);
	fake_close(&fake);
}

static void test_short_absence(void **state)
{
	struct fake fake;
	fake_open(&fake, (struct knobs_of_test){.drives = 10});
	drive_set_failed(fake.drives[3], true);
	run_for(&fake, DELAY_NS / 2);
	drive_set_failed(fake.drives[3], false);
	run_for(&fake, 10 * NS_PER_S);
	expect_state(&fake, MEMBER_HEALTHY);
	assert_int_equal(rebuilds(&fake), 0);

	/* Updates went by meanwhile: rebuilt in place, no spare is spent. */
	drive_set_failed(fake.drives[3], true);
	sweep_slot_stale(fake.member.sweep, 3);
	run_for(&fake, DELAY_NS / 2);
	drive_set_failed(fake.drives[3], false);
	expect_drive(&fake, 3, MEMBER_DRIVE_STALE);
	run_for(&fake, 10 * NS_PER_S);
	expect_state(&fake, MEMBER_HEALTHY);
	assert_int_equal(rebuilds(&fake), 1);
	assert_int_equal(fake.assigned, 0);
	assert_int_equal(member_drive_slot(&fake.member, 3), 3);
	fake_close(&fake);
}

static void test_no_spare(void **state)
{
	struct fake fake;
	fake_open(&fake, (struct knobs_of_test){.drives = 8});
	drive_set_failed(fake.drives[5], true);
	sweep_slot_stale(fake.member.sweep, 5);
	run_for(&fake, 60 * NS_PER_S);
	expect_state(&fake, MEMBER_DEGRADED);
	drive_set_failed(fake.drives[5], false);
	run_for(&fake, UNITS * UNIT_NS);
	expect_state(&fake, MEMBER_HEALTHY);
	assert_int_equal(fake.rebuilt[5], UNITS);

	/* A drive that answers errors is rewritten in place where there is no other. */
	sweep_slot_stale(fake.member.sweep, 6);
	run_for(&fake, DELAY_NS + UNITS * UNIT_NS);
	expect_state(&fake, MEMBER_HEALTHY);
	fake_close(&fake);
}

/* What an earlier process left undone. */
static void test_stale_at_opening(void **state)
{
	struct fake fake;
	fake_open(&fake, (struct knobs_of_test){.drives = 8, .stale_mask = 1 << 6});
	expect_state(&fake, MEMBER_DEGRADED);
	run_for(&fake, UNITS * UNIT_NS);
	expect_state(&fake, MEMBER_HEALTHY);
	assert_int_equal(fake.fresh, 1 << 6);
	fake_close(&fake);
}

static void test_target_fails(void **state)
{
	struct fake fake;
	fake_open(&fake, (struct knobs_of_test){.drives = 10});
	drive_set_failed(fake.drives[3], true);
	run_for(&fake, DELAY_NS + 10 * UNIT_NS);
	expect_drive(&fake, 9, MEMBER_DRIVE_REBUILDING);
	drive_set_failed(fake.drives[9], true);
	run_for(&fake, DELAY_NS + 2 * UNIT_NS);
	expect_drive(&fake, 8, MEMBER_DRIVE_REBUILDING);
	run_for(&fake, UNITS * UNIT_NS);
	expect_state(&fake, MEMBER_HEALTHY);
	assert_int_equal(member_drive_slot(&fake.member, 8), 3);
	fake_close(&fake);
}

/* The target missed an update: what was rebuilt counts for nothing. */
static void test_target_goes_stale(void **state)
{
	struct fake fake;
	fake_open(&fake, (struct knobs_of_test){.drives = 9});
	drive_set_failed(fake.drives[3], true);
	run_for(&fake, DELAY_NS + 10 * UNIT_NS);
	unsigned before = fake.rebuilt[3];
	assert_in_range(before, 1, UNITS - 1);
	sweep_slot_stale(fake.member.sweep, 3);
	run_for(&fake, DELAY_NS + 2 * UNITS * UNIT_NS);
	expect_state(&fake, MEMBER_HEALTHY);
	assert_true(fake.rebuilt[3] >= before + UNITS);
	fake_close(&fake);
}

/* ---- order, failures in the middle ---- */

static void test_exposed_overtakes(void **state)
{
	struct fake fake;
	fake_open(&fake, (struct knobs_of_test){.drives = 12, .rate = 1000000});
	drive_set_failed(fake.drives[0], true);
	run_for(&fake, DELAY_NS + NS_PER_S);
	unsigned of_slot_0 = fake.order_count;
	drive_set_failed(fake.drives[4], true);
	drive_set_failed(fake.drives[5], true);
	run_for(&fake, DELAY_NS + NS_PER_S);
	assert_int_equal(fake.order[of_slot_0 - 1], 0);
	assert_in_range(fake.order[fake.order_count - 1], 4, 5);
	struct rebuild_progress progress;
	member_rebuild_progress(&fake.member, &progress);
	assert_true(progress.running);
	assert_in_range(progress.slot, 4, 5);
	assert_int_equal(progress.waiting, 2);
	run_for(&fake, 60 * NS_PER_S);
	expect_state(&fake, MEMBER_HEALTHY);
	assert_int_equal(rebuilds(&fake), 3);
	assert_int_equal(fake.rebuilt[0], UNITS); /* went on where it was */
	fake_close(&fake);
}

static void test_beyond_tolerance(void **state)
{
	struct fake fake;
	fake_open(&fake, (struct knobs_of_test){.drives = 9});
	drive_set_failed(fake.drives[3], true);
	run_for(&fake, DELAY_NS + 10 * UNIT_NS);
	drive_set_failed(fake.drives[0], true);
	expect_state(&fake, MEMBER_REBUILDING); /* survived */
	for (unsigned i = 0; i < UNITS; i++)
		fake.unit_status[i] = -EIO;
	drive_set_failed(fake.drives[1], true);
	expect_state(&fake, MEMBER_FAILED);
	run_for(&fake, 10 * NS_PER_S);
	expect_state(&fake, MEMBER_FAILED);
	unsigned begun = fake.order_count;
	run_for(&fake, 10 * NS_PER_S);
	assert_int_equal(fake.order_count, begun); /* nothing is tried in vain */

	memset(fake.unit_status, 0, sizeof fake.unit_status);
	drive_set_failed(fake.drives[1], false);
	drive_set_failed(fake.drives[0], false);
	run_for(&fake, UNITS * UNIT_NS);
	expect_state(&fake, MEMBER_HEALTHY);
	assert_int_equal(rebuilds(&fake), 1);
	fake_close(&fake);
}

/* What cannot be worked out is for the set to remember; the rest is redundant again. */
static void test_lost_places(void **state)
{
	struct fake fake;

	fake_open(&fake, (struct knobs_of_test){.drives = 9});
	fake.unit_status[17] = -EIO;
	fake.busy = 5;
	drive_set_failed(fake.drives[3], true);
	run_for(&fake, DELAY_NS + 2 * UNITS * UNIT_NS);
	expect_state(&fake, MEMBER_HEALTHY);
	assert_int_equal(rebuilds(&fake), 1);
	fake_close(&fake);
}

/* Units that the set calls dirty are verified without a scrub. */
static void test_dirty_units(void **state)
{
	struct fake fake;
	struct scrub_progress scrub;

	fake_open(&fake, (struct knobs_of_test){.drives = 9});
	run_for(&fake, NS_PER_S);
	assert_int_equal(fake.verified, 0);
	fake.dirty = 3;
	drive_set_failed(fake.drives[3], true);
	drive_set_failed(fake.drives[3], false);
	run_for(&fake, NS_PER_S);
	assert_int_equal(fake.verified, 3);
	member_scrub_progress(&fake.member, &scrub);
	assert_int_equal(scrub.units_checked, 0);
	fake_close(&fake);
}

/* ---- distributed spare space ---- */

static void test_spare_space(void **state)
{
	struct fake fake;

	fake_open(&fake, (struct knobs_of_test){.drives = 8, .distributed = 1});
	drive_set_failed(fake.drives[3], true);
	drive_set_failed(fake.drives[5], true);
	run_for(&fake, DELAY_NS + UNITS * UNIT_NS);
	assert_int_equal(rebuilds(&fake), 1);
	assert_int_equal(member_drive_slot(&fake.member, 3), -1);
	assert_int_equal(fake.assigned, 1 << 3);
	expect_state(&fake, MEMBER_DEGRADED); /* there was room for one */
	drive_set_failed(fake.drives[5], false);
	run_for(&fake, NS_PER_S);
	expect_state(&fake, MEMBER_HEALTHY);

	/* It moves back when the drive returns, and is complete all the time. */
	drive_set_failed(fake.drives[3], false);
	run_for(&fake, 10 * UNIT_NS);
	expect_state(&fake, MEMBER_REBUILDING);
	drive_set_failed(fake.drives[3], true);
	run_for(&fake, 2 * UNIT_NS);
	assert_int_equal(member_drive_slot(&fake.member, 3), -1);
	drive_set_failed(fake.drives[3], false);
	run_for(&fake, 10 * NS_PER_S);
	expect_state(&fake, MEMBER_HEALTHY);
	assert_int_equal(member_drive_slot(&fake.member, 3), 3);
	assert_ptr_equal(fake.in_slot[3], fake.drives[3]);
	fake_close(&fake);
}

/* ---- rate, progress, pause ---- */

static void test_rate_and_progress(void **state)
{
	struct fake fake;
	struct rebuild_progress progress;

	/* 100 units of 100000 bytes at 1 MB/s: ten seconds. */
	fake_open(&fake, (struct knobs_of_test){.drives = 9, .rate = 1000000});
	drive_set_failed(fake.drives[3], true);
	run_for(&fake, DELAY_NS + 5 * NS_PER_S);
	member_rebuild_progress(&fake.member, &progress);
	assert_true(progress.running);
	assert_int_equal(progress.slot, 3);
	assert_int_equal(progress.drive, 8);
	assert_true(progress.percent > 40 && progress.percent < 60);
	assert_in_range(progress.bytes_per_s, DRIVE_BYTES / 12, DRIVE_BYTES / 8);
	assert_in_range(progress.remaining_ns, 4 * NS_PER_S, 6 * NS_PER_S);

	member_background_pause(&fake.member, true);
	run_for(&fake, NS_PER_S);
	unsigned begun = fake.order_count;
	run_for(&fake, 20 * NS_PER_S);
	assert_int_equal(fake.order_count, begun);
	member_rebuild_progress(&fake.member, &progress);
	assert_true(progress.paused && progress.running);
	member_background_pause(&fake.member, false);
	run_for(&fake, 3 * NS_PER_S);
	expect_state(&fake, MEMBER_REBUILDING);
	member_set_rebuild_rate(&fake.member, 0);
	run_for(&fake, NS_PER_S);
	expect_state(&fake, MEMBER_HEALTHY);
	assert_in_range(fake.most_in_flight, 1, 4);
	fake_close(&fake);
}

static void test_only_what_is_used(void **state)
{
	struct fake fake;
	fake_open(&fake, (struct knobs_of_test){.drives = 9});
	fake.used_from = 90 * MIB;
	drive_set_failed(fake.drives[3], true);
	run_for(&fake, DELAY_NS + UNITS * UNIT_NS);
	expect_state(&fake, MEMBER_HEALTHY);
	assert_int_equal(fake.rebuilt[3], 10);
	fake_close(&fake);
}

/* ---- scrub ---- */

static void test_scrub(void **state)
{
	struct fake fake;
	struct scrub_progress scrub;

	fake_open(&fake, (struct knobs_of_test){.drives = 9});
	fake.repaired_at = 42;
	fake.lost_at = 43;
	assert_int_equal(member_scrub_start(&fake.member), 0);
	assert_int_equal(member_scrub_start(&fake.member), -EALREADY);
	run_for(&fake, 10 * UNIT_NS);
	member_scrub_progress(&fake.member, &scrub);
	assert_true(scrub.running && !scrub.waiting);
	assert_in_range(scrub.units_checked, 10, UNITS - 1);

	/* A rebuild goes first, and the scrub goes on after it. */
	drive_set_failed(fake.drives[3], true);
	run_for(&fake, UNIT_NS);
	unsigned verified = fake.verified;
	run_for(&fake, DELAY_NS + 5 * UNIT_NS);
	assert_int_equal(fake.verified, verified);
	member_scrub_progress(&fake.member, &scrub);
	assert_true(scrub.running && scrub.waiting);
	run_for(&fake, 3 * UNITS * UNIT_NS);
	member_scrub_progress(&fake.member, &scrub);
	assert_false(scrub.running);
	assert_int_equal(scrub.completed, 1);
	assert_int_equal(scrub.units_checked, UNITS);
	assert_int_equal(scrub.units_repaired, 1);
	assert_int_equal(scrub.units_inconsistent, 1);
	assert_int_equal(scrub.units_lost, 1);
	assert_int_equal(scrub.place_count, 2);
	assert_int_equal(scrub.places[0].offset_bytes, 42 * MIB);
	assert_int_equal(scrub.places[0].repaired, 2);
	assert_true(scrub.places[1].lost);
	fake_close(&fake);
}

static void test_scrub_stops_and_comes_back(void **state)
{
	struct fake fake;
	struct scrub_progress scrub;

	fake_open(&fake, (struct knobs_of_test){.drives = 9, .scrub_every_ns = 60 * NS_PER_S});
	run_for(&fake, 60 * NS_PER_S + 10 * UNIT_NS);
	member_scrub_progress(&fake.member, &scrub);
	assert_true(scrub.running);
	member_scrub_stop(&fake.member);
	run_for(&fake, 5 * NS_PER_S);
	assert_true(fake.verified < UNITS);
	member_scrub_progress(&fake.member, &scrub);
	assert_false(scrub.running);
	assert_int_equal(scrub.completed, 0);
	run_for(&fake, 120 * NS_PER_S);
	member_scrub_progress(&fake.member, &scrub);
	assert_int_equal(scrub.completed, 2);
	fake_close(&fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_spare_takes_over),
	    cmocka_unit_test(test_short_absence),
	    cmocka_unit_test(test_no_spare),
	    cmocka_unit_test(test_stale_at_opening),
	    cmocka_unit_test(test_target_fails),
	    cmocka_unit_test(test_target_goes_stale),
	    cmocka_unit_test(test_exposed_overtakes),
	    cmocka_unit_test(test_beyond_tolerance),
	    cmocka_unit_test(test_lost_places),
	    cmocka_unit_test(test_dirty_units),
	    cmocka_unit_test(test_spare_space),
	    cmocka_unit_test(test_rate_and_progress),
	    cmocka_unit_test(test_only_what_is_used),
	    cmocka_unit_test(test_scrub),
	    cmocka_unit_test(test_scrub_stops_and_comes_back),
	};
	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
