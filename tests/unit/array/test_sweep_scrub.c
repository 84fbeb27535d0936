/* SPDX-License-Identifier: MIT
 *
 * Scrubs of a member over a set that only pretends: when units are verified, and what is told about
 * it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "base/log.h"
#include "tests/unit/array/sweep_fake.h"

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
	    cmocka_unit_test(test_dirty_units),
	    cmocka_unit_test(test_scrub),
	    cmocka_unit_test(test_scrub_stops_and_comes_back),
	};
	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
