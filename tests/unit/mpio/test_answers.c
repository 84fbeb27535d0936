/* SPDX-License-Identifier: MIT
 *
 * What the device makes of a target's answers, and of a logical unit that is not the one it knows.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "rig.h"

static void wrong_unit_is_refused(void **unused)
{
	struct rig rig;

	rig_open(&rig, NULL, 3, 1);
	rig.fakes[1]->identity.designator[9] = 0xff;
	rig.fakes[2]->identity.blocks--;
	rig.fakes[0]->connect_ns = 1; /* the first one says what the unit is */
	rig_start(&rig);
	assert_int_equal(rig.ready_status, 0);
	assert_int_equal(rig_state(&rig, 0), MPIO_PATH_UP);
	assert_int_equal(rig_state(&rig, 1), MPIO_PATH_WRONG_LU);
	assert_int_equal(rig_state(&rig, 2), MPIO_PATH_WRONG_LU);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(rig_do(&rig, IO_WRITE, i, 1, 1), 0);
	assert_int_equal(rig.fakes[1]->submitted + rig.fakes[2]->submitted, 0);
	assert_false(rig.fakes[1]->path.up); /* logged out */
	/* Mapped right again: found after the longest back-off. */
	rig.fakes[1]->identity = rig.fakes[0]->identity;
	rig_run_for(&rig, 10 * NS_PER_S);
	assert_int_equal(rig_state(&rig, 1), MPIO_PATH_UP);
	rig_close(&rig);

	rig_open(&rig, NULL, 2, 1);
	rig.fakes[0]->identity.designator_bytes = rig.fakes[1]->identity.designator_bytes = 0;
	rig_start(&rig);
	assert_int_equal(rig.ready_status, -ENODEV);
	rig_close(&rig);
}

/* A unit remapped during the run: the path that comes back to another unit stays unused. */
static void remapped_unit_is_not_written(void **unused)
{
	struct rig rig;
	unsigned before;

	rig_open(&rig, NULL, 2, 1);
	rig_start(&rig);
	rig.fakes[0]->identity.designator[0] ^= 1;
	fake_path_script(rig.fakes[0], (struct fake_answer){PATH_SENSE, 2, 6, 0x3f, 0x0e});
	assert_int_equal(rig_do(&rig, IO_WRITE, 0, 1, 1), 0);
	before = rig.fakes[0]->submitted;
	rig_run_for(&rig, 2 * NS_PER_S);
	assert_int_equal(rig_state(&rig, 0), MPIO_PATH_WRONG_LU);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(rig_do(&rig, IO_WRITE, i, 1, 1), 0);
	assert_int_equal(rig.fakes[0]->submitted, before);
	assert_non_null(rig_find_event(&rig, 0, MPIO_PATH_CONNECTING, MPIO_PATH_WRONG_LU));
	rig_close(&rig);
}

/* The designator of the old unit, taken over by another (a restored snapshot): the serial number
 * gives it away, where both logins were told one. */
static void serial_number_must_agree(void **unused)
{
	struct rig rig;

	rig_open(&rig, NULL, 3, 1);
	snprintf(rig.fakes[0]->identity.serial, sizeof rig.fakes[0]->identity.serial, "A1");
	snprintf(rig.fakes[1]->identity.serial, sizeof rig.fakes[1]->identity.serial, "A2");
	rig.fakes[0]->connect_ns = 1;
	rig_start(&rig);
	assert_int_equal(rig_state(&rig, 0), MPIO_PATH_UP);
	assert_int_equal(rig_state(&rig, 1), MPIO_PATH_WRONG_LU);
	assert_int_equal(rig_state(&rig, 2), MPIO_PATH_UP);
	assert_non_null(rig_find_event(&rig, 1, MPIO_PATH_CONNECTING, MPIO_PATH_WRONG_LU));
	rig_close(&rig);
}

static void answers_become_actions(void **unused)
{
	static const struct {
		struct fake_answer answer;
		int status;		  /* of the io */
		unsigned first, second;	  /* ledger.ios of the paths afterwards */
		unsigned retries, errors; /* of path 0 */
		uint64_t at_least_ns;
	} cases[] = {
	    {{PATH_SENSE, 2, 1, 0x17, 1}, 0, 1, 0, 0, 0, 0},
	    {{PATH_SENSE, 2, 6, 0x29, 0}, 0, 1, 0, 1, 0, 0},
	    {{PATH_SENSE, 2, 6, 0x2a, 6}, 0, 1, 0, 1, 0, 0},
	    {{PATH_SENSE, 2, 0xb, 0, 0}, 0, 1, 0, 1, 0, 0},
	    {{PATH_STATUS, 0x40, 0, 0, 0}, 0, 1, 0, 1, 0, 0},
	    {{PATH_STATUS, 0x08, 0, 0, 0}, 0, 0, 1, 1, 0, 7 * NS_PER_MS},
	    {{PATH_STATUS, 0x28, 0, 0, 0}, 0, 0, 1, 1, 0, 7 * NS_PER_MS},
	    {{PATH_SENSE, 2, 2, 4, 0xa}, 0, 0, 1, 1, 0, 0},
	    {{PATH_SENSE, 2, 2, 4, 0x1}, 0, 0, 1, 1, 0, 7 * NS_PER_MS},
	    {{PATH_SENSE, 2, 2, 4, 0xb}, 0, 0, 1, 1, 0, 0},
	    {{PATH_SENSE, 2, 2, 4, 0xc}, 0, 0, 1, 1, 0, 0},
	    {{PATH_SENSE, 2, 4, 0x44, 0}, 0, 0, 1, 1, 0, 0},
	    {{PATH_SENSE, 2, 5, 0x25, 0}, 0, 0, 1, 1, 0, 0},
	    {{PATH_NOT_SENT, 0, 0, 0, 0}, 0, 0, 1, 1, 0, 0},
	    {{PATH_SENSE, 2, 3, 0x11, 0}, -EIO, 0, 0, 0, 1, 0},
	    {{PATH_SENSE, 2, 5, 0x21, 0}, -ERANGE, 0, 0, 0, 1, 0},
	    {{PATH_SENSE, 2, 5, 0x24, 0}, -EIO, 0, 0, 0, 1, 0},
	    {{PATH_SENSE, 2, 7, 0x27, 0}, -EROFS, 0, 0, 0, 1, 0},
	    {{PATH_SENSE, 2, 7, 0x27, 7}, -ENOSPC, 0, 0, 0, 1, 0},
	    {{PATH_STATUS, 0x18, 0, 0, 0}, -EBUSY, 0, 0, 0, 1, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig rig;
		struct rig_io *rio;
		uint64_t began_ns;

		rig_open(&rig, NULL, 2, 1);
		rig_start(&rig);
		fake_path_script(rig.fakes[0], cases[i].answer);
		rio = rig_io_new(&rig, IO_WRITE, 3, 2, 9);
		began_ns = loop_now_ns(rig.loop);
		io_submit(rig.layer, &rio->io);
		rig_run_for(&rig, 5 * NS_PER_S);
		assert_int_equal(rio->done, 1);
		assert_int_equal(rio->io.status, cases[i].status);
		assert_true(rio->done_ns - began_ns >= cases[i].at_least_ns);
		assert_int_equal(rig_ledger(&rig, 0)->ios, cases[i].first);
		assert_int_equal(rig_ledger(&rig, 1)->ios, cases[i].second);
		assert_int_equal(rig_ledger(&rig, 0)->retries, cases[i].retries);
		assert_int_equal(rig_ledger(&rig, 0)->errors, cases[i].errors);
		rig_io_free(rio);
		rig_close(&rig);
	}
}

static void retries_are_bounded(void **unused)
{
	static const struct {
		struct fake_answer answer;
		int status;
		unsigned sent;
	} cases[] = {
	    {{PATH_STATUS, 0x08, 0, 0, 0}, -EBUSY, 6},
	    {{PATH_SENSE, 2, 6, 0x29, 0}, -EIO, 6},
	    {{PATH_SENSE, 2, 4, 0x44, 0}, -EIO, 2}, /* every path once */
	    {{PATH_SENSE, 2, 2, 4, 0xb}, -EIO, 6},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct mpio_config config = {.max_retries = 5, .no_path_ns = NS_PER_S};
		struct rig rig;

		rig_open(&rig, &config, 2, 1);
		rig_start(&rig);
		for (unsigned n = 0; n < 100; n++) {
			fake_path_script(rig.fakes[0], cases[i].answer);
			fake_path_script(rig.fakes[1], cases[i].answer);
		}
		assert_int_equal(rig_do(&rig, IO_READ, 0, 1, 0), cases[i].status);
		assert_int_equal(rig.fakes[0]->submitted + rig.fakes[1]->submitted, cases[i].sent);
		assert_int_equal(rig_ledger(&rig, 0)->errors + rig_ledger(&rig, 1)->errors, 1);
		rig_close(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(wrong_unit_is_refused),
	    cmocka_unit_test(remapped_unit_is_not_written),
	    cmocka_unit_test(serial_number_must_agree),
	    cmocka_unit_test(answers_become_actions),
	    cmocka_unit_test(retries_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
