/* SPDX-License-Identifier: MIT
 *
 * The condition of the medium: START STOP UNIT, PREVENT ALLOW MEDIUM REMOVAL, write protection,
 * SANITIZE.
 */
#include <errno.h>

#include "tests/unit/scsi/fixture.h"

enum { BLOCK = 512 };

static const uint8_t lun_thin[8] = {0};

/* Runs the CDB on LUN_THIN and gives its sense code, 0 for GOOD. */
static uint32_t code_of(struct scsi_nexus *nexus, const uint8_t *cdb, size_t cdb_bytes)
{
	static const uint8_t out[4096];
	struct request request = {0};
	uint32_t code = 0;

	request_run(&request, nexus, LUN_THIN, cdb, cdb_bytes, out, sizeof out);
	if (request.task.status != SCSI_GOOD)
		code = request_sense_code(&request);
	request_release(&request);
	return code;
}

#define START_STOP(bits) CDB(0x1b, 0, 0, 0, bits, 0)
#define TEST_READY	 CDB(0, 0, 0, 0, 0, 0)
#define PREVENT(value)	 CDB(0x1e, 0, 0, 0, value, 0)

/* Everything that needs the medium, with data-out as needed by code_of. */
static const uint8_t medium_cdbs[][16] = {
    {0x00},
    {0x08, [4] = 1},
    {0x28, [8] = 1},
    {0xa8, [9] = 1},
    {0x88, [13] = 1},
    {0x0a, [4] = 1},
    {0x2a, [8] = 1},
    {0xaa, [9] = 1},
    {0x8a, [13] = 1},
    {0x2f, [8] = 1},
    {0xaf, [9] = 1},
    {0x8f, [13] = 1},
    {0x2e, [8] = 1},
    {0xae, [9] = 1},
    {0x8e, [13] = 1},
    {0x35, [8] = 1},
    {0x91, [13] = 1},
    {0x34, [8] = 1},
    {0x90, [13] = 1},
    {0x25},
    {0x9e, 0x10, [13] = 32},
    {0x9e, 0x12, [13] = 24},
    {0x41, 8, [8] = 1},
    {0x93, 9, [13] = 1},
    {0x8b, [13] = 1},
    {0x89},
    {0x9c, [13] = 8},
    {0x42},
    {0x37},
    {0xb7},
};

/* Those of them that change it. */
static bool is_write(uint8_t opcode)
{
	static const uint8_t opcodes[] = {0x0a, 0x2a, 0xaa, 0x8a, 0x2e, 0xae, 0x8e,
					  0x41, 0x93, 0x8b, 0x89, 0x9c, 0x42};

	return memchr(opcodes, opcode, sizeof opcodes) != NULL;
}

static void test_fixed_disk(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(code_of(fixture->a, START_STOP(2)), 0x052400); /* cannot eject */
	assert_int_equal(code_of(fixture->a, START_STOP(3)), 0x052400);
	assert_int_equal(code_of(fixture->a, PREVENT(1)), 0x052000);
	assert_int_equal(code_of(fixture->a, START_STOP(0)), 0);
	assert_int_equal(fixture->thin.flushes, 1);
	for (unsigned i = 0; i < ARRAY_SIZE(medium_cdbs); i++)
		assert_int_equal(code_of(fixture->b, medium_cdbs[i], 16), 0x020402);
	assert_int_equal(code_of(fixture->b, CDB(0x12, 0, 0, 0, 36, 0)), 0);
	assert_int_equal(code_of(fixture->b, START_STOP(1)), 0);
	assert_int_equal(code_of(fixture->a, TEST_READY), 0);
	/* Power conditions change nothing. */
	for (uint8_t condition = 1; condition < 16; condition++)
		assert_int_equal(code_of(fixture->a, START_STOP((uint8_t)(condition << 4 | 2))), 0);
	assert_int_equal(code_of(fixture->a, TEST_READY), 0);
	assert_int_equal(fixture->thin.flushes, 1);
}

static void test_failing_flush(void **state)
{
	struct fixture *fixture = *state;

	fixture->thin.fail_status = -EIO;
	assert_int_equal(code_of(fixture->a, START_STOP(0)), 0x030c00);
	assert_int_equal(code_of(fixture->a, START_STOP(4)), 0); /* NO_FLUSH */
	fixture->thin.fail_status = 0;
	assert_int_equal(code_of(fixture->a, TEST_READY), 0x020402);
	assert_int_equal(code_of(fixture->a, START_STOP(1)), 0);
}

static void test_eject(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};

	fixture->thin.removable = true;
	request_run(&request, fixture->a, LUN_THIN, CDB(0x12, 0, 0, 0, 36, 0), NULL, 36);
	assert_int_equal(request.task.in_buf->data[1], 0x80); /* RMB */
	request_release(&request);
	assert_int_equal(code_of(fixture->a, START_STOP(0)), 0); /* no LOEJ: stays */
	assert_int_equal(code_of(fixture->a, TEST_READY), 0);
	assert_int_equal(code_of(fixture->a, START_STOP(2)), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(medium_cdbs); i++)
		assert_int_equal(code_of(fixture->b, medium_cdbs[i], 16), 0x023a00);
	assert_int_equal(code_of(fixture->b, CDB(0x12, 0, 0, 0, 36, 0)), 0);
	assert_int_equal(code_of(fixture->a, START_STOP(2)), 0); /* twice is fine */
	assert_int_equal(code_of(fixture->a, START_STOP(1)), 0); /* does not load */
	assert_int_equal(code_of(fixture->a, TEST_READY), 0x023a00);
	assert_int_equal(code_of(fixture->a, START_STOP(3)), 0);
	assert_int_equal(code_of(fixture->a, TEST_READY), 0);
	assert_int_equal(code_of(fixture->b, TEST_READY), 0x062800); /* may have changed */
	assert_int_equal(code_of(fixture->b, TEST_READY), 0);
}

static void on_reset(void *arg)
{
	++*(unsigned *)arg;
}

static void test_prevent(void **state)
{
	struct fixture *fixture = *state;
	unsigned resets = 0;

	fixture->thin.removable = true;
	assert_int_equal(code_of(fixture->a, PREVENT(2)), 0x052400);
	assert_int_equal(code_of(fixture->a, PREVENT(1)), 0);
	assert_int_equal(code_of(fixture->a, START_STOP(2)), 0x055302);
	assert_int_equal(code_of(fixture->b, START_STOP(2)), 0x055302);
	assert_int_equal(code_of(fixture->b, PREVENT(0)),
			 0); /* the other nexus' prevention stays */
	assert_int_equal(code_of(fixture->b, START_STOP(2)), 0x055302);
	assert_int_equal(code_of(fixture->a, PREVENT(0)), 0);
	assert_int_equal(code_of(fixture->b, START_STOP(2)), 0);
	assert_int_equal(code_of(fixture->a, PREVENT(1)), 0);
	assert_int_equal(code_of(fixture->b, START_STOP(3)), 0x055302); /* nor loaded */
	assert_int_equal(scsi_reset_lu(fixture->b, lun_thin, on_reset, &resets), 0);
	assert_int_equal(resets, 1);
	assert_int_equal(code_of(fixture->b, TEST_READY), 0x062903);
	assert_int_equal(code_of(fixture->a, TEST_READY), 0x062903);
	assert_int_equal(code_of(fixture->b, START_STOP(3)), 0);
	assert_int_equal(code_of(fixture->a, TEST_READY), 0x062800);
	/* The end of a nexus ends its prevention. */
	assert_int_equal(code_of(fixture->b, PREVENT(1)), 0);
	assert_int_equal(code_of(fixture->a, START_STOP(2)), 0x055302);
	fixture->b = scsi_nexus_free(fixture->b);
	assert_int_equal(code_of(fixture->a, START_STOP(2)), 0);
}

static void test_read_only(void **state)
{
	struct fixture *fixture = *state;
	static struct volume volume; /* the device knows it until the end */
	struct request request = {0};
	struct scsi_target *target;
	static const uint8_t block[4096];

	fake_volume_init(&volume, "ro", THIN_BYTES, BLOCK, true, true);
	volume.read_only = true;
	target = scsi_target_new(fixture->device, "iqn.2026-11.test.sanlab:unit:ro");
	assert_int_equal(scsi_target_add_lun(target, 0, scsi_device_add(fixture->device, &volume)),
			 0);
	fixture->b = scsi_nexus_free(fixture->b);
	fixture->b = scsi_nexus_new(target, "iqn.2026-11.test:b", (const uint8_t[6]){0x80}, 1, 1);
	assert_int_equal(code_of(fixture->b, TEST_READY), 0x062900);
	for (unsigned i = 0; i < ARRAY_SIZE(medium_cdbs); i++) {
		request_run(&request, fixture->b, 0, medium_cdbs[i], 16, block, sizeof block);
		if (is_write(medium_cdbs[i][0]))
			assert_int_equal(request_sense_code(&request), 0x072700);
		else
			assert_int_equal(request.task.status, SCSI_GOOD);
		request_release(&request);
	}
	for (uint8_t action = 1; action <= 3; action++)
		assert_int_equal(code_of(fixture->b, CDB(0x48, action, 0, 0, 0, 0, 0, 0, 0, 0)),
				 0x072700);
	assert_int_equal(volume.writes + volume.unmaps, 0);
	request_run(&request, fixture->b, 0, CDB(0x1a, 8, 0x0a, 0, 32, 0), NULL, 32);
	assert_int_equal(request.task.in_buf->data[2] & 0x80, 0x80); /* WP */
	request_release(&request);
	fixture->b = scsi_nexus_free(fixture->b);
	scsi_target_free(target);
	fake_volume_done(&volume);
}

/* ---- SANITIZE ---- */

static void sanitize_start(struct fixture *fixture, struct request *request, uint8_t bits,
			   const uint8_t *list, uint16_t list_bytes)
{
	uint8_t cdb[10] = {0x48, bits};

	put_be16(cdb + 7, list_bytes);
	request_prepare(request, fixture->a, LUN_THIN, cdb, sizeof cdb, list_bytes);
	assert_int_not_equal(request->prepared, SCSI_ENDED);
	request_execute(request, list);
}

static void test_sanitize_fields(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		uint8_t cdb[10];
		uint8_t list[16];
		uint32_t code;
	} rows[] = {
	    {{0x48, 0x01}, {0}, 0x052400},
	    {{0x48, 0x01, [8] = 4}, {0}, 0x052400},
	    {{0x48, 0x01, [7] = 2, [8] = 5}, {0}, 0x052400},
	    {{0x48, 0x41, [8] = 5}, {1, 0, 0, 1}, 0x052400},
	    {{0x48, 0x01, 1, [8] = 5}, {1, 0, 0, 1}, 0x052400},
	    {{0x48, 0x02, [6] = 1}, {0}, 0x052400},
	    {{0x48, 0x02, [8] = 8}, {0}, 0x052400},
	    {{0x48, 0x03, [8] = 8}, {0}, 0x052400},
	    {{0x48, 0x1f, [8] = 8}, {0}, 0x052400},
	    {{0x48, 0x04}, {0}, 0x052400},
	    {{0x48, 0x1f}, {0}, 0},
	    {{0x48, 0x01, [8] = 8}, {0, 0, 0, 4}, 0x052600}, /* no pass */
	    {{0x48, 0x01, [8] = 8}, {1, 0, 0, 0}, 0x052600}, /* no pattern */
	    {{0x48, 0x01, [8] = 8}, {1, 0, 0, 5}, 0x052600}, /* more than the list has */
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct request request = {0};

		request_run(&request, fixture->a, LUN_THIN, rows[i].cdb, sizeof rows[i].cdb,
			    rows[i].list, sizeof rows[i].list);
		if (rows[i].code)
			assert_int_equal(request_sense_code(&request), rows[i].code);
		else
			assert_int_equal(request.task.status, SCSI_GOOD);
		request_release(&request);
	}
	/* Block erase leaves blocks deallocated: not on a thick volume. */
	struct request request = {0};
	request_run(&request, fixture->a, LUN_THICK, CDB(0x48, 2, 0, 0, 0, 0, 0, 0, 0, 0), NULL, 0);
	assert_int_equal(request_sense_code(&request), 0x052400);
	request_release(&request);
	assert_int_equal(code_of(fixture->a, TEST_READY), 0);
}

static void test_overwrite(void **state)
{
	struct fixture *fixture = *state;
	static const uint8_t list[7] = {0x82, 0, 0, 3, 0xaa, 0x55, 0x01}; /* two passes, invert */
	struct request request = {0}, sense = {0};

	memset(fixture->thin.data, 'a', THIN_BYTES);
	sanitize_start(fixture, &request, 0x01, list, sizeof list);
	assert_int_equal(request.done_count, 0);
	/* 4 MiB at 32 MiB/s, twice: a quarter of a second. */
	loop_run_until(fixture->loop, UINT64_C(140000000));
	for (unsigned i = 0; i < ARRAY_SIZE(medium_cdbs); i++)
		assert_int_equal(code_of(fixture->b, medium_cdbs[i], 16), 0x02041b);
	assert_int_equal(code_of(fixture->b, START_STOP(1)), 0x02041b);
	assert_int_equal(code_of(fixture->b, CDB(0x48, 3, 0, 0, 0, 0, 0, 0, 0, 0)), 0x02041b);
	assert_int_equal(code_of(fixture->b, CDB(0x12, 0, 0, 0, 36, 0)), 0);
	request_run(&sense, fixture->b, LUN_THIN, CDB(3, 0, 0, 0, 18, 0), NULL, 18);
	assert_int_equal(sense.task.in_buf->data[2], 0x02);
	assert_int_equal(sense.task.in_buf->data[12], 0x04);
	assert_int_equal(sense.task.in_buf->data[13], 0x1b);
	assert_int_equal(sense.task.in_buf->data[15], 0x80); /* SKSV */
	assert_in_range(get_be16(sense.task.in_buf->data + 16), 0x8000, 0xb000);
	request_release(&sense);
	loop_run_until(fixture->loop, UINT64_C(300000000));
	assert_int_equal(request.done_count, 1);
	assert_int_equal(request.task.status, SCSI_GOOD);
	assert_int_equal(fixture->thin.flushes, 1);
	for (size_t i = 0; i < THIN_BYTES; i++)
		assert_int_equal(fixture->thin.data[i], (uint8_t)~list[4 + i % BLOCK % 3]);
	assert_int_equal(code_of(fixture->b, TEST_READY), 0);
	request_release(&request);
}

static void test_erase(void **state)
{
	struct fixture *fixture = *state;

	for (uint8_t action = 2; action <= 3; action++) {
		struct request request = {0};

		memset(fixture->thin.data, 'a', THIN_BYTES);
		sanitize_start(fixture, &request, (uint8_t)(0x80 | action), NULL, 0);
		assert_int_equal(request.done_count, 1); /* IMMED */
		assert_int_equal(request.task.status, SCSI_GOOD);
		assert_int_equal(code_of(fixture->b, TEST_READY), 0x02041b);
		loop_run(fixture->loop);
		assert_int_equal(code_of(fixture->b, TEST_READY), 0);
		for (size_t i = 0; i < THIN_BYTES; i++)
			assert_int_equal(fixture->thin.data[i], 0);
		request_release(&request);
	}
}

/* It waits for commands under way; those that have not begun fail, and it survives its task. */
static void test_sanitize_order(void **state)
{
	struct fixture *fixture = *state;
	struct request write = {0}, late = {0}, sanitize = {0};
	static const uint8_t list[5] = {1, 0, 0, 1, 0x77};
	static const uint8_t cdb[16] = {0x8a, [13] = 1};
	uint8_t block[BLOCK] = {0};
	unsigned resets = 0;

	fixture->thin.deferred = true;
	request_prepare(&write, fixture->b, LUN_THIN, cdb, sizeof cdb, BLOCK);
	request_execute(&write, block);
	request_prepare(&late, fixture->b, LUN_THIN, cdb, sizeof cdb, BLOCK);
	sanitize_start(fixture, &sanitize, 0x01, list, sizeof list);
	loop_run_until(fixture->loop, 1000000);
	assert_int_equal(fixture->thin.writes, 1); /* not begun */
	fixture->thin.deferred = false;
	fake_volume_release(&fixture->thin, 1);
	assert_int_equal(write.done_count, 1);
	request_execute(&late, block);
	assert_int_equal(late.done_count, 1);
	assert_int_equal(request_sense_code(&late), 0x02041b);
	assert_int_equal(scsi_reset_lu(fixture->b, lun_thin, on_reset, &resets), 0);
	assert_int_equal(resets, 1); /* the reset does not wait for the operation */
	assert_true(sanitize.task.aborted);
	assert_int_equal(sanitize.done_count, 1);
	assert_int_equal(code_of(fixture->b, TEST_READY), 0x062903);
	assert_int_equal(code_of(fixture->b, TEST_READY), 0x02041b);
	loop_run(fixture->loop);
	assert_int_equal(code_of(fixture->b, TEST_READY), 0);
	assert_int_equal(fixture->thin.data[THIN_BYTES - 1], 0x77);
	request_release(&write);
	request_release(&late);
	request_release(&sanitize);
}

static void test_sanitize_failure(void **state)
{
	struct fixture *fixture = *state;
	static const uint8_t exit_failure[10] = {0x48, 0x1f};

	for (unsigned ause = 0; ause < 2; ause++) {
		struct request request = {0};

		fixture->thin.fail_status = -EIO;
		sanitize_start(fixture, &request, ause ? 0x23 : 0x03, NULL, 0);
		loop_run(fixture->loop);
		assert_int_equal(request.done_count, 1);
		assert_int_equal(request_sense_code(&request), 0x033103);
		request_release(&request);
		fixture->thin.fail_status = 0;
		assert_int_equal(code_of(fixture->a, TEST_READY), 0x033103);
		assert_int_equal(code_of(fixture->a, exit_failure, sizeof exit_failure),
				 ause ? 0 : 0x033103);
		assert_int_equal(code_of(fixture->a, TEST_READY), ause ? 0 : 0x033103);
	}
}

/* The device goes while the operation is between two pieces. */
static void test_sanitize_cut_short(void **state)
{
	struct fixture *fixture = *state;
	static const uint8_t list[5] = {0x1f, 0, 0, 1, 0x77};
	struct request request = {0};

	sanitize_start(fixture, &request, 0x81, list, sizeof list);
	loop_run_until(fixture->loop, UINT64_C(50000000));
	assert_int_equal(request.done_count, 1);
	request_release(&request);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_fixed_disk, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_failing_flush, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_eject, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_prevent, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_read_only, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_sanitize_fields, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_overwrite, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_erase, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_sanitize_order, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_sanitize_failure, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_sanitize_cut_short, fixture_setup,
					    fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
