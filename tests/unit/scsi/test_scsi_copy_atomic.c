/* SPDX-License-Identifier: MIT
 *
 * EXTENDED COPY and COMPARE AND WRITE on the same blocks.
 */
#include "tests/unit/scsi/fixture.h"

enum { HEADER = 16, TARGET = 32, SEGMENT = 28, LIST = HEADER + TARGET + SEGMENT };

/* Copies 8 blocks of the thin volume from LBA 8 to LBA 100. */
static void start_copy(struct fixture *fixture, struct request *request)
{
	uint8_t list[LIST] = {1, 0x10, 0, TARGET, [11] = SEGMENT};
	uint8_t *target = list + HEADER, *segment = target + TARGET;
	const uint8_t cdb[16] = {0x83, [13] = LIST};

	target[0] = 0xe4;
	target[4] = 1;
	target[5] = 3;
	target[7] = 16;
	memcpy(target + 8, fixture->thin.naa, 16);
	put_be24(target + 29, 512);
	segment[0] = 0x02;
	segment[3] = SEGMENT - 4;
	put_be16(segment + 10, 8);
	put_be64(segment + 12, 8);
	put_be64(segment + 20, 100);
	request_prepare(request, fixture->a, LUN_THIN, cdb, sizeof cdb, sizeof list);
	assert_int_equal(request->prepared, SCSI_NEEDS_DATA);
	request_execute(request, list);
}

static void start_compare_write(struct request *request, struct scsi_nexus *nexus, uint8_t lba)
{
	static const uint8_t zeros_twice[1024];
	const uint8_t cdb[16] = {0x89, [9] = lba, [13] = 1};

	request_prepare(request, nexus, LUN_THIN, cdb, sizeof cdb, sizeof zeros_twice);
	assert_int_equal(request->prepared, SCSI_NEEDS_DATA);
	request_execute(request, zeros_twice);
}

/* The copy's reads and writes wait for a COMPARE AND WRITE on the same blocks, and it for them. */
static void test_atomic(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0}, source = {0}, destination = {0};

	fixture->thin.deferred = true;
	start_compare_write(&source, fixture->b, 8);
	start_copy(fixture, &request);
	assert_int_equal(fixture->thin.reads, 1); /* the comparison's only */
	fake_volume_release(&fixture->thin, 2);
	assert_int_equal(source.done_count, 1);
	assert_int_equal(fixture->thin.held_count, 1); /* the copy's read */
	start_compare_write(&destination, fixture->b, 107);
	assert_int_equal(fixture->thin.held_count, 2);
	fake_volume_release(&fixture->thin, 1);
	assert_int_equal(fixture->thin.writes, 1); /* the copy's waits */
	fake_volume_release(&fixture->thin, 2);
	assert_int_equal(destination.done_count, 1);
	assert_int_equal(request.done_count, 0);
	fake_volume_release(&fixture->thin, 1);
	assert_int_equal(request.done_count, 1);
	assert_int_equal(request.task.status, SCSI_GOOD);
	request_release(&request);
	request_release(&source);
	request_release(&destination);
}

/* Aborted, or the medium gone, while it waits for its range. */
static void test_waiting_in_vain(void **state)
{
	struct fixture *fixture = *state;

	fixture->thin.deferred = true;
	for (unsigned i = 0; i < 2; i++) {
		struct request request = {0}, other = {0}, stop = {0};
		start_compare_write(&other, fixture->b, 8);
		start_copy(fixture, &request);
		if (i == 0)
			scsi_abort(&request.task);
		else
			request_run(&stop, fixture->b, LUN_THIN, CDB(0x1b, 0, 0, 0, 4, 0), NULL, 0);
		fake_volume_release(&fixture->thin, 2);
		assert_int_equal(other.done_count, 1);
		assert_int_equal(request.done_count, 1);
		assert_int_equal(fixture->thin.held_count, 0);
		if (i == 0)
			assert_true(request.task.aborted);
		else
			assert_int_equal(request_sense_code(&request), 0x0a0d01);
		request_release(&request);
		request_release(&other);
		request_release(&stop);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_atomic, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_waiting_in_vain, fixture_setup, fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
