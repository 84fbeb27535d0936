/* SPDX-License-Identifier: MIT
 *
 * Commands that have their range to themselves: who waits for whom, in which order, and what
 * aborts and resets do to those that wait.
 */
#include <stdlib.h>

#include "tests/unit/scsi/fixture.h"

enum { BLOCK = 512, CAW = 0x89, ORWRITE = 0x8b, READ = 0x88, WRITE = 0x8a, ATOMIC = 0x9c };

static uint8_t data[128 * BLOCK];

static void start(struct request *request, struct scsi_nexus *nexus, uint8_t opcode, uint64_t lba,
		  uint8_t blocks)
{
	uint8_t cdb[16] = {opcode, [13] = blocks};
	uint32_t bytes = (opcode == CAW ? 2U : 1U) * blocks * BLOCK;

	put_be64(cdb + 2, lba);
	request_prepare(request, nexus, LUN_THIN, cdb, sizeof cdb, bytes);
	assert_int_not_equal(request->prepared, SCSI_ENDED);
	request_execute(request, data);
}

static void finish_all(struct fixture *fixture)
{
	while (fixture->thin.held)
		fake_volume_release(&fixture->thin, 1);
}

/* Which pairs may be at the volume at the same time? */
static void test_pairs(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		uint8_t first, second;
		uint64_t lba; /* of the second; the first has 8 blocks from 16 on */
		uint8_t blocks;
		bool waits;
	} rows[] = {
	    {READ, WRITE, 16, 8, false},  {WRITE, WRITE, 16, 8, false},
	    {CAW, READ, 16, 8, true},	  {CAW, WRITE, 16, 8, true},
	    {CAW, CAW, 16, 8, true},	  {READ, CAW, 16, 8, true},
	    {WRITE, CAW, 16, 8, true},	  {WRITE, ORWRITE, 16, 8, true},
	    {ORWRITE, READ, 16, 8, true}, {ATOMIC, READ, 16, 8, true},
	    {WRITE, ATOMIC, 16, 8, true}, {CAW, READ, 8, 8, false},
	    {CAW, READ, 24, 8, false},	  {CAW, READ, 8, 9, true},
	    {CAW, READ, 23, 8, true},	  {CAW, CAW, 24, 8, false},
	    {CAW, READ, 18, 1, true},	  {READ, CAW, 0, 64, true},
	};

	fixture->thin.deferred = true;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct request first = {0}, second = {0};

		start(&first, fixture->a, rows[i].first, 16, 8);
		assert_int_equal(fixture->thin.held_count, 1);
		start(&second, fixture->b, rows[i].second, rows[i].lba, rows[i].blocks);
		assert_int_equal(fixture->thin.held_count, rows[i].waits ? 1 : 2);
		finish_all(fixture);
		assert_int_equal(first.done_count, 1);
		assert_int_equal(second.done_count, 1);
		request_release(&first);
		request_release(&second);
	}
}

/* Two COMPARE AND WRITE from 0 to another value over two nexuses: exactly one wins each round. */
static void test_one_winner(void **state)
{
	struct fixture *fixture = *state;

	for (unsigned round = 0; round < 4; round++) {
		struct request a = {0}, b = {0};
		unsigned good;

		memset(data, (int)round, BLOCK);
		memset(data + BLOCK, (int)round + 1, BLOCK);
		fixture->thin.deferred = true;
		start(&a, fixture->a, CAW, 5, 1);
		start(&b, fixture->b, CAW, 5, 1);
		finish_all(fixture);
		assert_int_equal(a.done_count + b.done_count, 2);
		good = (a.task.status == SCSI_GOOD) + (b.task.status == SCSI_GOOD);
		assert_int_equal(good, 1);
		assert_int_equal(request_sense_code(a.task.status == SCSI_GOOD ? &b : &a),
				 0x0e1d00);
		assert_int_equal(fixture->thin.data[5 * BLOCK], round + 1);
		request_release(&a);
		request_release(&b);
	}
}

/* First come, first served: reads that come after a waiting COMPARE AND WRITE do not pass it. */
static void test_no_starvation(void **state)
{
	struct fixture *fixture = *state;
	struct request before = {0}, caw = {0}, after = {0}, elsewhere = {0};

	memset(data, 0, sizeof data); /* as the volume: the comparison finds no difference */
	fixture->thin.deferred = true;
	start(&before, fixture->a, READ, 0, 8);
	start(&caw, fixture->b, CAW, 4, 1);
	start(&after, fixture->a, READ, 0, 8);
	start(&elsewhere, fixture->a, READ, 40, 8);
	assert_int_equal(fixture->thin.held_count, 2); /* before and elsewhere */
	fake_volume_release(&fixture->thin, 1);
	assert_int_equal(before.done_count, 1);
	fake_volume_release(&fixture->thin, 1);
	assert_int_equal(elsewhere.done_count, 1);
	assert_int_equal(fixture->thin.held_count, 1); /* the comparison's read */
	fake_volume_release(&fixture->thin, 1);
	assert_int_equal(after.done_count, 0);
	assert_int_equal(fixture->thin.held_count, 1); /* its write */
	fake_volume_release(&fixture->thin, 1);
	assert_int_equal(caw.done_count, 1);
	fake_volume_release(&fixture->thin, 1);
	assert_int_equal(after.done_count, 1);
	request_release(&before);
	request_release(&caw);
	request_release(&after);
	request_release(&elsewhere);
}

/* A chain of waiting commands on a volume that completes at once does not recurse. */
static void test_long_chain(void **state)
{
	struct fixture *fixture = *state;
	enum { COUNT = 2000 };
	struct request *requests = calloc(COUNT, sizeof *requests), first = {0};

	assert_non_null(requests);
	fixture->thin.deferred = true;
	start(&first, fixture->a, WRITE, 0, 8);
	for (unsigned i = 0; i < COUNT; i++)
		start(&requests[i], i % 2 ? fixture->a : fixture->b, ORWRITE, i % 8, 1);
	assert_int_equal(fixture->thin.held_count, 1);
	fixture->thin.deferred = false;
	fake_volume_release(&fixture->thin, 1);
	for (unsigned i = 0; i < COUNT; i++) {
		assert_int_equal(requests[i].done_count, 1);
		assert_int_equal(requests[i].task.status, SCSI_GOOD);
		request_release(&requests[i]);
	}
	request_release(&first);
	free(requests);
}

static void finished(void *arg)
{
	++*(unsigned *)arg;
}

/* Aborted while waiting: nothing is done to the volume, done comes in its turn. */
static void test_abort_waiting(void **state)
{
	struct fixture *fixture = *state;
	struct request write = {0}, caw = {0}, read = {0};

	fixture->thin.deferred = true;
	start(&write, fixture->a, WRITE, 0, 8);
	start(&caw, fixture->a, CAW, 0, 1);
	start(&read, fixture->b, READ, 0, 1);
	scsi_abort(&caw.task);
	fake_volume_release(&fixture->thin, 1);
	assert_int_equal(write.done_count, 1);
	assert_int_equal(caw.done_count, 1);
	assert_true(caw.task.aborted);
	finish_all(fixture);
	assert_int_equal(read.done_count, 1);
	assert_int_equal(fixture->thin.reads, 1);
	request_release(&write);
	request_release(&caw);
	request_release(&read);
}

static void test_abort_between(void **state)
{
	struct fixture *fixture = *state;
	struct request caw = {0};

	memset(data, 0, sizeof data);
	fixture->thin.deferred = true;
	start(&caw, fixture->a, CAW, 0, 1);
	scsi_abort(&caw.task); /* its read is under way */
	assert_int_equal(caw.done_count, 0);
	fake_volume_release(&fixture->thin, 1);
	assert_int_equal(caw.done_count, 1);
	assert_int_equal(fixture->thin.writes, 0);
	request_release(&caw);
}

static void test_reset_waits_for_all(void **state)
{
	struct fixture *fixture = *state;
	struct request write = {0}, caw = {0}, read = {0};
	static const uint8_t lun[8] = {0};
	unsigned count = 0;

	fixture->thin.deferred = true;
	start(&write, fixture->a, WRITE, 0, 8);
	start(&caw, fixture->b, CAW, 0, 1);
	start(&read, fixture->a, READ, 0, 1);
	assert_int_equal(scsi_reset_lu(fixture->a, lun, finished, &count), 0);
	assert_int_equal(count, 0);
	fake_volume_release(&fixture->thin, 1);
	assert_int_equal(count, 1);
	assert_int_equal(write.done_count + caw.done_count + read.done_count, 3);
	assert_true(write.task.aborted && caw.task.aborted && read.task.aborted);
	assert_int_equal(fixture->thin.reads, 0);
	request_release(&write);
	request_release(&caw);
	request_release(&read);
}

/* UNMAP names its blocks in its data: it keeps out of every atomic command's way. */
static void test_unmap_waits(void **state)
{
	struct fixture *fixture = *state;
	struct request caw = {0}, unmap = {0};
	static const uint8_t list[24] = {0, 22, 0, 16, [15] = 60, [19] = 1};

	fixture->thin.deferred = true;
	start(&caw, fixture->a, CAW, 0, 1);
	request_prepare(&unmap, fixture->b, LUN_THIN, CDB(0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0),
			sizeof list);
	request_execute(&unmap, list);
	assert_int_equal(fixture->thin.unmaps, 0);
	finish_all(fixture);
	assert_int_equal(fixture->thin.unmaps, 1);
	assert_int_equal(unmap.task.status, SCSI_GOOD);
	request_release(&caw);
	request_release(&unmap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_pairs, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_one_winner, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_no_starvation, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_long_chain, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_abort_waiting, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_abort_between, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_reset_waits_for_all, fixture_setup,
					    fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_unmap_waits, fixture_setup, fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
