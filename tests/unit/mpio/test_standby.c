/* SPDX-License-Identifier: MIT
 *
 * Paths that log in while their port has no access: known by name, without capacity, and not for
 * I/O before a later login has seen the whole unit.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "rig.h"

enum { MS = 1000 * 1000 };

/* Logged in while its group has no access: standby, and no I/O before another login has seen the
 * whole unit (the fake path asserts it). */
static void standby_from_the_start(void **unused)
{
	struct mpio_config config = {.max_retries = 30, .alua_poll_ns = 2 * NS_PER_S};
	struct mpio_path_info info;
	struct rig rig;

	config.no_path_ns = NS_PER_S;
	for (unsigned told = 0; told < 2; told++) {
		rig_open_groups(&rig, &config, told ? GONE : STANDBY,
				AO); /* the first path is one */
		assert_int_equal(rig.ready_status, 0);
		assert_int_equal(rig.layer->size_bytes, (uint64_t)RIG_BLOCKS * FAKE_BLOCK_BYTES);
		rig_run_for(&rig, 20 * NS_PER_S);
		assert_int_equal(rig_state(&rig, 0), MPIO_PATH_STANDBY);
		assert_int_equal(rig.fakes[0]->logins, 1); /* and stays */
		mpio_path_info(rig.mpio, 0, &info);
		assert_true(info.identity->no_capacity);
		rig_do_some(&rig, 10);
		rig_expect_ios(&rig, 0, 10);
		rig.disk.groups[0].state = AO;
		rig.disk.groups[1].state = GONE;
		if (told) {
			fake_path_script(rig.fakes[2],
					 (struct fake_answer){PATH_SENSE, 2, 6, 0x2a, 6});
			assert_int_equal(rig_do(&rig, IO_WRITE, 0, 1, 1), 0);
		} else {
			rig_run_for(&rig, 2100 * MS); /* the poll */
		}
		assert_int_equal(rig_state(&rig, 0), MPIO_PATH_UP);
		assert_int_equal(rig.fakes[0]->logins, 2);
		rig_do_some(&rig, 10);
		rig_expect_ios(&rig, 10, 0);
		/* With the capacity seen, losing access and getting it back takes no login. */
		rig.disk.groups[0].state = STANDBY;
		rig_run_for(&rig, 2100 * MS);
		assert_int_equal(rig_state(&rig, 0), MPIO_PATH_STANDBY);
		rig.disk.groups[0].state = AO;
		rig_run_for(&rig, 1100 * MS);
		rig_do_some(&rig, 10);
		assert_int_equal(rig.fakes[0]->logins, 2);
		rig_close(&rig);
	}
}

/* No path sees the capacity: the device waits for the first that does. */
static void all_in_standby(void **unused)
{
	struct rig rig;

	rig_open_groups(&rig, NULL, STANDBY, GONE);
	assert_int_equal(rig.ready_status, -ENODEV);
	assert_int_equal(rig.layer->size_bytes, 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(rig_state(&rig, i), MPIO_PATH_STANDBY);
	assert_int_equal(rig_do(&rig, IO_READ, 0, 1, 1), -ENODEV);
	rig.disk.groups[1].state = ANO;
	rig_run_for(&rig, 1100 * MS);
	assert_int_equal(rig.layer->size_bytes, (uint64_t)RIG_BLOCKS * FAKE_BLOCK_BYTES);
	assert_int_equal(rig_do(&rig, IO_UNMAP, 0, 1, 1), 0);
	rig_do_some(&rig, 4);
	rig_expect_ios(&rig, 0, 4);
	assert_int_equal(rig_state(&rig, 0), MPIO_PATH_STANDBY);
	assert_int_equal(rig.fakes[0]->logins, 1);
	rig_close(&rig);
}

/* Without access the names are compared all the same, and the size once there is one. */
static void another_unit_in_standby(void **unused)
{
	struct rig rig;

	rig_open(&rig, NULL, 4, 1);
	rig.disk.group_count = 2;
	rig.disk.groups[0] = (struct fake_group){.id = 10, .state = AO};
	rig.disk.groups[1] = (struct fake_group){.id = 20, .state = STANDBY};
	for (unsigned i = 0; i < 4; i++) {
		rig.fakes[i]->identity.target_port_group = i < 1 ? 10 : 20;
		rig.fakes[i]->identity.tpgs = 3;
		rig.fakes[i]->identity.serial[0] = i == 2 ? 'B' : 'A';
	}
	rig.fakes[1]->identity.designator[3]++;
	rig.fakes[3]->identity.blocks /= 2;
	rig_start(&rig);
	assert_int_equal(rig_state(&rig, 1), MPIO_PATH_WRONG_LU);
	assert_int_equal(rig_state(&rig, 2), MPIO_PATH_WRONG_LU);
	assert_int_equal(rig_state(&rig, 3), MPIO_PATH_STANDBY);
	rig.disk.groups[1].state = AO;
	fake_path_script(rig.fakes[0], (struct fake_answer){PATH_SENSE, 2, 6, 0x2a, 6});
	rig_do_some(&rig, 4);
	rig_run_for(&rig, 500 * MS);
	assert_int_equal(rig_state(&rig, 3), MPIO_PATH_WRONG_LU);
	assert_int_equal(rig.fakes[3]->submitted, 0);
	rig_close(&rig);
}

/* Never any access, and no state that says so: looked at again, less and less often. */
static void no_access_and_no_state(void **unused)
{
	struct rig rig;

	for (unsigned tpgs = 0; tpgs < 2; tpgs++) {
		rig_open(&rig, NULL, 2, 1);
		rig.disk.group_count = 1;
		rig.disk.groups[0] = (struct fake_group){.id = 10, .state = AO};
		for (unsigned i = 0; i < 2; i++) {
			rig.fakes[i]->identity.target_port_group = 10;
			rig.fakes[i]->identity.tpgs = (uint8_t)tpgs;
		}
		rig.fakes[0]->no_access = true;
		rig_start(&rig);
		assert_int_equal(rig.ready_status, 0);
		rig_run_for(&rig, 60 * NS_PER_S);
		assert_int_equal(rig_state(&rig, 0), MPIO_PATH_DOWN);
		assert_in_range(rig.fakes[0]->logins, 10, 30);
		rig_do_some(&rig, 10);
		assert_int_equal(rig_ledger(&rig, 1)->ios, 10);
		rig.fakes[0]->no_access = false;
		rig_run_for(&rig, 5 * NS_PER_S);
		assert_int_equal(rig_state(&rig, 0), MPIO_PATH_UP);
		rig_close(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(standby_from_the_start),
	    cmocka_unit_test(all_in_standby),
	    cmocka_unit_test(another_unit_in_standby),
	    cmocka_unit_test(no_access_and_no_state),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
