/* SPDX-License-Identifier: MIT
 *
 * FORMAT UNIT: parameter lists, patterns, immediate and not, failure; SEND DIAGNOSTIC.
 */
#include <errno.h>

#include "tests/unit/scsi/fixture.h"

#define TUR CDB(0, 0, 0, 0, 0, 0)

enum { BLOCK = 512, DATA = 0x10, LONG = 0x20, COMPLETE = 0x08, FOV_IP = 0x88, IMMED = 0x02 };

/* FORMAT UNIT with BITS in byte 1; OUT_BYTES of LIST are what the initiator sends. */
static void format(struct request *request, struct scsi_nexus *nexus, uint8_t bits,
		   const uint8_t *list, uint32_t out_bytes)
{
	const uint8_t cdb[6] = {0x04, bits};

	memset(request, 0, sizeof *request);
	request_prepare(request, nexus, LUN_THIN, cdb, sizeof cdb, out_bytes);
	if (request->prepared != SCSI_ENDED)
		request_execute(request, list);
}

static void expect_code(struct fixture *fixture, const uint8_t *cdb, size_t cdb_bytes,
			uint32_t code)
{
	request_expect(fixture->b, LUN_THIN, cdb, cdb_bytes, NULL, 0, code);
}

static bool all_are(const struct fixture *fixture, const uint8_t *pattern, size_t bytes)
{
	for (size_t i = 0; i < THIN_BYTES; i++) {
		if (fixture->thin.data[i] != pattern[i % BLOCK % bytes])
			return false;
	}
	return true;
}

static void test_default(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		uint8_t bits, list[8];
		uint32_t bytes;
		bool immediate;
	} rows[] = {
	    {0, {0}, 0, false},
	    {DATA, {0}, 4, false},
	    {DATA | COMPLETE, {0, IMMED}, 4, true},
	    {DATA | LONG, {0, 0x80 | 0x70}, 8, false}, /* FOV with DPRY, DCRT, STPF */
	    {DATA | LONG, {0, 0x80 | IMMED}, 8, true},
	    {DATA, {0, IMMED, 0, 0, 0xff}, 8, true}, /* longer than the list: a residual */
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct request request;

		memset(fixture->thin.data, 'x', THIN_BYTES);
		format(&request, fixture->a, rows[i].bits, rows[i].list, rows[i].bytes);
		assert_int_equal(request.done_count, rows[i].immediate ? 1 : 0);
		expect_code(fixture, TUR, 0x020404);
		loop_run(fixture->loop);
		assert_int_equal(request.done_count, 1);
		assert_int_equal(request.task.status, SCSI_GOOD);
		if (rows[i].bytes == 8 && !(rows[i].bits & LONG))
			assert_int_equal(request.task.transfer_bytes, 4);
		else
			assert_int_equal(request.task.transfer_bytes, rows[i].bytes);
		request_release(&request);
		expect_code(fixture, TUR, 0);
		assert_true(all_are(fixture, (const uint8_t[1]){0}, 1));
	}
	assert_int_equal(fixture->thin.writes, 0);
}

/* With a pattern it goes at the pace of a disk, and tells how far it is. */
static void test_pattern(void **state)
{
	struct fixture *fixture = *state;
	static const uint8_t list[11] = {0, FOV_IP, 0, 0, 0, 1, 0, 3, 'a', 'b', 'c'};
	static const uint8_t long_list[15] = {0, FOV_IP, 0, 0, 0,   0,	 0,  0,
					      0, 1,	 0, 3, 'd', 'e', 'f'};
	struct request request, sense = {0};
	const uint8_t *data;

	format(&request, fixture->a, DATA, list, sizeof list);
	assert_int_equal(request.done_count, 0);
	loop_run_until(fixture->loop, UINT64_C(70000000));
	data = request_good_in(&sense, fixture->b, LUN_THIN, CDB(3, 0, 0, 0, 18, 0));
	assert_int_equal(data[2], 0x02);
	assert_int_equal(get_be16(data + 12), 0x0404);
	assert_int_equal(data[15], 0x80); /* SKSV */
	assert_in_range(get_be16(data + 16), 0x7000, 0xd000);
	request_release(&sense);
	expect_code(fixture, CDB(0x12, 0, 0, 0, 36, 0), 0);
	expect_code(fixture, CDB(0x04, 0, 0, 0, 0, 0), 0x020404);
	expect_code(fixture, CDB(0x48, 3, 0, 0, 0, 0, 0, 0, 0, 0), 0x020404);
	loop_run(fixture->loop);
	assert_int_equal(request.done_count, 1);
	assert_int_equal(request.task.status, SCSI_GOOD);
	assert_true(all_are(fixture, list + 8, 3));
	assert_int_equal(fixture->thin.flushes, 1);
	request_release(&request);
	format(&request, fixture->a, DATA | LONG, long_list, sizeof long_list);
	loop_run(fixture->loop);
	assert_int_equal(request.task.status, SCSI_GOOD);
	assert_true(all_are(fixture, long_list + 12, 3));
	request_release(&request);
}

static void test_refused(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		uint8_t cdb[6], list[16];
		uint32_t bytes, code;
	} rows[] = {
	    {{0x04, 0x40}, {0}, 0, 0x052400}, /* FMTPINFO */
	    {{0x04, 0x80 | DATA}, {0}, 4, 0x052400},
	    {{0x04, COMPLETE}, {0}, 0, 0x052400},      /* without a list */
	    {{0x04, DATA | 4}, {0}, 4, 0x052400},      /* a defect list format */
	    {{0x04, 0, 0, 0, 1}, {0}, 0, 0x052400},    /* FFMT */
	    {{0x04, 0, 0, 0, 0, 4}, {0}, 0, 0x052400}, /* NACA */
	    {{0x04, DATA}, {0}, 0, 0x051a00},
	    {{0x04, DATA}, {0}, 3, 0x051a00},
	    {{0x04, DATA | LONG}, {0}, 7, 0x051a00},
	    {{0x04, DATA}, {1}, 4, 0x052600},		/* PROTECTION FIELDS USAGE */
	    {{0x04, DATA}, {0, 0, 0, 8}, 12, 0x052600}, /* a defect list */
	    {{0x04, DATA | LONG}, {0, 0, 0, 0, 0, 0, 0, 8}, 16, 0x052600},
	    {{0x04, DATA | LONG}, {0, 0, 0, 0x10}, 8, 0x052600}, /* P_I_INFORMATION */
	    {{0x04, DATA}, {0, 0x40}, 4, 0x052600},		 /* DPRY without FOV */
	    {{0x04, DATA}, {0, 0x08}, 8, 0x052600},
	    {{0x04, DATA}, {0, 0x01}, 4, 0x052600}, /* a vendor's */
	    {{0x04, DATA}, {0, 0x04}, 4, 0x052600}, /* obsolete */
	    {{0x04, DATA}, {0, FOV_IP}, 4, 0x051a00},
	    {{0x04, DATA}, {0, FOV_IP, 0, 0, 0, 1, 0, 4, 'a', 'b', 'c'}, 11, 0x051a00},
	    {{0x04, DATA}, {0, FOV_IP, 0, 0, 0, 1, 0, 0}, 8, 0x052600}, /* no pattern */
	    {{0x04, DATA}, {0, FOV_IP, 0, 0, 0, 0, 0, 1, 'a'}, 9, 0x052600},
	    {{0x04, DATA}, {0, FOV_IP, 0, 0, 0, 2, 0, 1, 'a'}, 9, 0x052600},	/* type */
	    {{0x04, DATA}, {0, FOV_IP, 0, 0, 0x20, 1, 0, 1, 'a'}, 9, 0x052600}, /* SI */
	    {{0x04, DATA}, {0, FOV_IP, 0, 0, 0, 1, 2, 1, 'a'}, 16, 0x052600},	/* 513 */
	};

	memset(fixture->thin.data, 'x', THIN_BYTES);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct request request = {0};

		request_run(&request, fixture->a, LUN_THIN, rows[i].cdb, 6, rows[i].list,
			    rows[i].bytes);
		if (request_sense_code(&request) != rows[i].code)
			fail_msg("row %zu: %06x", i, request_sense_code(&request));
		request_release(&request);
	}
	loop_run(fixture->loop);
	assert_true(all_are(fixture, (const uint8_t[1]){'x'}, 1));
	fixture->thin.removable = true;
	expect_code(fixture, CDB(0x1b, 0, 0, 0, 2, 0), 0);
	expect_code(fixture, CDB(0x04, 0, 0, 0, 0, 0), 0x023a00);
}

/* A whole block is the longest pattern; more than the longest list is not even taken. */
static void test_longest_list(void **state)
{
	struct fixture *fixture = *state;
	static uint8_t list[8 + BLOCK + 100] = {0, FOV_IP, 0, 0, 0, 1, 2, 0};
	struct request request;

	for (unsigned i = 0; i < BLOCK; i++)
		list[8 + i] = (uint8_t)(i * 7 + 1);
	format(&request, fixture->a, DATA, list, sizeof list);
	assert_in_range(request.task.out_bytes, 8 + BLOCK, 12 + BLOCK);
	loop_run(fixture->loop);
	assert_int_equal(request.task.status, SCSI_GOOD);
	assert_int_equal(request.task.transfer_bytes, 8 + BLOCK);
	assert_true(all_are(fixture, list + 8, BLOCK));
	request_release(&request);
}

/* The medium is of no use then, until it is formatted. */
static void test_failure(void **state)
{
	struct fixture *fixture = *state;
	struct request request;

	fixture->thin.fail_status = -EIO;
	format(&request, fixture->a, 0, NULL, 0);
	loop_run(fixture->loop);
	assert_int_equal(request.done_count, 1);
	assert_int_equal(request_sense_code(&request), 0x033101);
	request_release(&request);
	fixture->thin.fail_status = 0;
	expect_code(fixture, TUR, 0x033100);
	expect_code(fixture, CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0), 0x033100);
	expect_code(fixture, CDB(0x12, 0, 0, 0, 36, 0), 0);
	format(&request, fixture->a, 0, NULL, 0);
	loop_run(fixture->loop);
	assert_int_equal(request.task.status, SCSI_GOOD);
	request_release(&request);
	expect_code(fixture, TUR, 0);
}

/* Nor does a format help where a restricted SANITIZE has failed. */
static void test_after_sanitize(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};

	fixture->thin.fail_status = -EIO;
	request_prepare(&request, fixture->a, LUN_THIN, CDB(0x48, 0x83, 0, 0, 0, 0, 0, 0, 0, 0), 0);
	request_execute(&request, NULL);
	loop_run(fixture->loop);
	request_release(&request);
	fixture->thin.fail_status = 0;
	expect_code(fixture, CDB(0x04, 0, 0, 0, 0, 0), 0x033103);
}

static void on_reset(void *arg)
{
	++*(unsigned *)arg;
}

/* It survives the reset that ends its command. */
static void test_reset(void **state)
{
	struct fixture *fixture = *state;
	static const uint8_t lun[8] = {0, LUN_THIN};
	static const uint8_t list[9] = {0, FOV_IP, 0, 0, 0, 1, 0, 1, 'r'};
	struct request request;
	unsigned resets = 0;

	format(&request, fixture->a, DATA, list, sizeof list);
	loop_run_until(fixture->loop, 1000000);
	assert_int_equal(scsi_reset_lu(fixture->b, lun, on_reset, &resets), 0);
	assert_int_equal(resets, 1);
	assert_true(request.task.aborted);
	request_release(&request);
	expect_code(fixture, TUR, 0x062903);
	expect_code(fixture, TUR, 0x020404);
	loop_run(fixture->loop);
	expect_code(fixture, TUR, 0);
	assert_true(all_are(fixture, list + 8, 1));
}

static void test_self_test(void **state)
{
	struct fixture *fixture = *state;
	static const uint8_t self_test[6] = {0x1d, 0x04};
	struct request request = {0};

	expect_code(fixture, CDB(0x1d, 0, 0, 0, 0, 0), 0); /* nothing to send */
	assert_int_equal(fixture->thin.reads, 0);
	expect_code(fixture, self_test, sizeof self_test, 0);
	assert_int_equal(fixture->thin.reads, 2);
	assert_int_equal(fixture->thin.last.offset_bytes, THIN_BYTES - BLOCK);
	expect_code(fixture, CDB(0x1d, 0x07, 0, 0, 0, 0), 0); /* DEVOFFL, UNITOFFL: as you like */
	for (unsigned code = 1; code < 8; code++)
		expect_code(fixture, CDB(0x1d, (uint8_t)(code << 5), 0, 0, 0, 0), 0x052400);
	expect_code(fixture, CDB(0x1d, 0x10, 0, 0, 4, 0), 0x052400); /* a diagnostic page */
	fixture->thin.fail_status = -EIO;
	expect_code(fixture, self_test, sizeof self_test, 0x043e03);
	fixture->thin.fail_status = -EBUSY;
	request_run(&request, fixture->a, LUN_THIN, self_test, sizeof self_test, NULL, 0);
	assert_int_equal(request.task.status, SCSI_BUSY);
	request_release(&request);
	fixture->thin.fail_status = 0;
	expect_code(fixture, CDB(0x1b, 0, 0, 0, 0, 0), 0); /* stop */
	expect_code(fixture, self_test, sizeof self_test, 0x020402);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
	    CASE(test_default),	     CASE(test_pattern),   CASE(test_refused),
	    CASE(test_longest_list), CASE(test_failure),   CASE(test_after_sanitize),
	    CASE(test_reset),	     CASE(test_self_test),
	};

	return cmocka_run_group_tests_name("scsi_format", tests, NULL, NULL);
}
