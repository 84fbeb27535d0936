/* SPDX-License-Identifier: MIT
 *
 * Rebuilds of a member over a set that only pretends: which slot is rebuilt when, onto what, how
 * fast, and what is told about it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "tests/unit/array/sweep_fake.h"

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

/* With too many other drives out, what moves back waits as what is rebuilt does. */
static void test_move_back_beyond_tolerance(void **state)
{
	struct fake fake;

	fake_open(&fake, (struct knobs_of_test){.drives = 8, .distributed = 1});
	drive_set_failed(fake.drives[3], true);
	run_for(&fake, DELAY_NS + UNITS * UNIT_NS);
	drive_set_failed(fake.drives[3], false);
	run_for(&fake, 10 * UNIT_NS);
	for (unsigned i = 0; i < UNITS; i++)
		fake.unit_status[i] = -EIO;
	for (unsigned i = 0; i < 3; i++)
		drive_set_failed(fake.drives[i], true);
	run_for(&fake, 10 * UNIT_NS);
	unsigned begun = fake.order_count;
	run_for(&fake, 10 * NS_PER_S);
	assert_int_equal(fake.order_count, begun);
	expect_state(&fake, MEMBER_FAILED);

	memset(fake.unit_status, 0, sizeof fake.unit_status);
	for (unsigned i = 0; i < 3; i++)
		drive_set_failed(fake.drives[i], false);
	run_for(&fake, 10 * NS_PER_S);
	expect_state(&fake, MEMBER_HEALTHY);
	assert_int_equal(member_drive_slot(&fake.member, 3), 3);
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
	    cmocka_unit_test(test_spare_space),
	    cmocka_unit_test(test_rate_and_progress),
	    cmocka_unit_test(test_only_what_is_used),
	    cmocka_unit_test(test_move_back_beyond_tolerance),
	};
	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
