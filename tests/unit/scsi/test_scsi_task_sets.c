/* SPDX-License-Identifier: MIT
 *
 * Whole task sets: CLEAR TASK SET and target resets with their unit attentions; logical units that
 * are hidden from a nexus.
 */
#include "tests/unit/scsi/fixture.h"

#include <errno.h>

static const uint8_t lun_thin[8] = {0, LUN_THIN};
static const uint8_t lun_none[8] = {0, LUN_NONE};

static void expect_tur(struct scsi_nexus *nexus, unsigned lun, uint32_t code)
{
	request_expect(nexus, lun, CDB(0, 0, 0, 0, 0, 0), NULL, 0, code);
}

static void finished(void *arg)
{
	++*(unsigned *)arg;
}

static void start_read(struct request *request, struct scsi_nexus *nexus)
{
	memset(request, 0, sizeof *request);
	request_prepare(request, nexus, LUN_THIN, CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 8, 0), 4096);
	assert_int_equal(request->prepared, SCSI_READY);
	request_execute(request, NULL);
	assert_int_equal(request->done_count, 0);
}

/* All nexuses lose their tasks; only those that had any, and did not ask for it, are told. */
static void test_clear(void **state)
{
	struct fixture *fixture = *state;
	struct request read_a, read_b;
	unsigned count = 0;

	assert_int_equal(scsi_clear_task_set(fixture->a, lun_none, finished, &count), -ENXIO);
	assert_int_equal(scsi_clear_task_set(fixture->a, lun_thin, finished, &count), 0);
	assert_int_equal(count, 1); /* nothing to wait for, nobody to tell */
	expect_tur(fixture->b, LUN_THIN, 0);
	fixture->thin.deferred = true;
	start_read(&read_a, fixture->a);
	start_read(&read_b, fixture->b);
	assert_int_equal(scsi_clear_task_set(fixture->a, lun_thin, finished, &count), 0);
	assert_int_equal(count, 1);
	fake_volume_release(&fixture->thin, 1);
	assert_int_equal(count, 1);
	fake_volume_release(&fixture->thin, 1);
	assert_int_equal(count, 2);
	assert_true(read_a.task.aborted);
	assert_true(read_b.task.aborted);
	fixture->thin.deferred = false;
	expect_tur(fixture->a, LUN_THIN, 0);
	expect_tur(fixture->b, LUN_THIN, 0x062f00);
	expect_tur(fixture->b, LUN_THIN, 0);
	request_release(&read_a);
	request_release(&read_b);
	/* What one nexus alone had is its own business. */
	fixture->thin.deferred = true;
	start_read(&read_a, fixture->a);
	assert_int_equal(scsi_clear_task_set(fixture->a, lun_thin, finished, &count), 0);
	fake_volume_release(&fixture->thin, 1);
	fixture->thin.deferred = false;
	assert_int_equal(count, 3);
	expect_tur(fixture->b, LUN_THIN, 0);
	request_release(&read_a);
}

static void test_target_reset(void **state)
{
	struct fixture *fixture = *state;
	unsigned count = 0;

	assert_int_equal(scsi_reset_target_lu(fixture->a, lun_thin, finished, &count), 0);
	assert_int_equal(scsi_reset_target_lu(fixture->a, lun_none, finished, &count), -ENXIO);
	assert_int_equal(count, 1);
	expect_tur(fixture->b, LUN_THIN, 0x062902);
	expect_tur(fixture->b, LUN_THIN, 0);
	expect_tur(fixture->a, LUN_THIN, 0x062902);
}

static void test_hidden(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	unsigned count = 0;
	const uint8_t *data;

	scsi_nexus_hide(fixture->a, LUN_THIN);
	expect_tur(fixture->a, LUN_THIN, 0x052500);
	expect_tur(fixture->a, LUN_THICK, 0);
	expect_tur(fixture->b, LUN_THIN, 0);
	assert_int_equal(scsi_reset_lu(fixture->a, lun_thin, finished, &count), -ENXIO);
	data = request_good_in(&request, fixture->a, LUN_THICK,
			       CDB(0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0));
	assert_int_equal(get_be32(data), 2 * 8);
	assert_int_equal(data[8 + 1], LUN_THICK);
	request_release(&request);
	/* LUN 0 answers INQUIRY as a place without a logical unit, and reports the others. */
	data = request_good_in(&request, fixture->a, LUN_THIN, CDB(0x12, 0, 0, 0, 36, 0));
	assert_int_equal(data[0], 0x7f);
	request_release(&request);
	data = request_good_in(&request, fixture->a, LUN_THIN,
			       CDB(0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0));
	assert_int_equal(get_be32(data), 2 * 8);
	request_release(&request);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
	    CASE(test_clear),
	    CASE(test_target_reset),
	    CASE(test_hidden),
	};

	return cmocka_run_group_tests_name("scsi_task_sets", tests, NULL, NULL);
}
