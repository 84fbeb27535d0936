/* SPDX-License-Identifier: MIT
 *
 * Commands on blocks beyond READ and WRITE: WRITE SAME, COMPARE AND WRITE, ORWRITE, WRITE AND
 * VERIFY, WRITE ATOMIC, PRE-FETCH, READ DEFECT DATA, GET LBA STATUS.
 */
#include <errno.h>

#include "tests/unit/scsi/fixture.h"

enum { BLOCK = 512, THIN_BLOCKS = THIN_BYTES / BLOCK };

static void run(struct fixture *fixture, struct request *request, const uint8_t *cdb,
		const void *out, uint32_t edtl)
{
	request_run(request, fixture->a, LUN_THIN, cdb, 16, out, edtl);
}

static void expect(const struct request *request, uint32_t code)
{
	if (code)
		assert_int_equal(request_sense_code(request), code);
	else
		assert_int_equal(request->task.status, SCSI_GOOD);
}

static void assert_filled(const uint8_t *data, uint8_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(data[i], value);
}

/* ---- WRITE SAME ---- */

static void test_write_same(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		uint8_t cdb[16];
		uint32_t edtl;
		uint64_t first, blocks; /* that hold the block (zeros: NDOB) afterwards */
		uint32_t code;
	} rows[] = {
	    {{0x41, 0, 0, 0, 0, 9, 0, 0, 5, 0}, BLOCK, 9, 5, 0},
	    {{0x93, 0, [9] = 7, [12] = 0x10, [13] = 3}, BLOCK, 7, 0x1003, 0},
	    {{0x93, 1, [9] = 7, [13] = 3}, 0, 7, 3, 0},
	    {{0x41, 0, 0, 0, 0x1f, 0xff, 0, 0, 0, 0}, BLOCK, 0x1fff, 1, 0}, /* to the end */
	    {{0x93, 0, [8] = 0x20}, BLOCK, 0, 0, 0},			    /* nothing is left */
	    {{0x93, 0, [9] = 1, [13] = 1}, 0, 0, 0, 0},			    /* no data, no write */
	    {{0x93, 0, [9] = 1, [13] = 1}, BLOCK / 2, 0, 0, 0x052400},
	    {{0x93, 0, [9] = 1, [13] = 1}, 2 * BLOCK, 0, 0, 0x052400},
	    {{0x93, 0x10, [13] = 1}, BLOCK, 0, 0, 0x052400}, /* ANCHOR */
	    {{0x93, 0x18, [13] = 1}, BLOCK, 0, 0, 0x052400}, /* ANCHOR, UNMAP */
	    {{0x93, 0x20, [13] = 1}, BLOCK, 0, 0, 0x052400}, /* WRPROTECT */
	    {{0x93, 0x02, [13] = 1}, BLOCK, 0, 0, 0x052400}, /* LBDATA */
	    {{0x93, 0x04, [13] = 1}, BLOCK, 0, 0, 0x052400}, /* PBDATA */
	    {{0x41, 0x01, [8] = 1}, BLOCK, 0, 0, 0x052400},  /* no NDOB in WRITE SAME (10) */
	    {{0x93, 0, [8] = 0x20, [13] = 1}, BLOCK, 0, 0, 0x052100},
	    {{0x93, 0, [8] = 0x20, [9] = 1}, BLOCK, 0, 0, 0x052100},
	    {{0x93, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 2},
	     BLOCK,
	     0,
	     0,
	     0x052100},
	    {{0x93, 0, [12] = 0xf0, [13] = 1}, BLOCK, 0, 0, 0x052400}, /* one above the limit */
	    {{0x93, 0, [10] = 0xff}, BLOCK, 0, 0, 0x052400},
	};
	uint8_t block[2 * BLOCK];

	memset(block, 0x3c, sizeof block);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct request request = {0};
		uint64_t end = (rows[i].first + rows[i].blocks) * BLOCK;

		memset(fixture->thin.data, 0xee, THIN_BYTES);
		run(fixture, &request, rows[i].cdb, block, rows[i].edtl);
		expect(&request, rows[i].code);
		assert_filled(fixture->thin.data, 0xee, rows[i].first * BLOCK);
		assert_filled(fixture->thin.data + rows[i].first * BLOCK,
			      rows[i].cdb[1] & 1 ? 0 : 0x3c, rows[i].blocks * BLOCK);
		assert_filled(fixture->thin.data + end, 0xee, THIN_BYTES - end);
		request_release(&request);
	}
}

/* UNMAP deallocates whatever the block holds, and also without one. */
static void test_write_same_unmap(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	static const uint8_t same10[16] = {0x41, 8, 0, 0, 0, 9, 0, 0, 5, 0};
	static const uint8_t same16[16] = {0x93, 8, [9] = 20, [13] = 6};
	uint8_t block[BLOCK];

	memset(block, 0xff, sizeof block);
	memset(fixture->thin.data, 0xee, THIN_BYTES);
	run(fixture, &request, same10, block, sizeof block);
	expect(&request, 0);
	run(fixture, &request, same16, NULL, 0);
	expect(&request, 0);
	assert_int_equal(fixture->thin.unmaps, 2);
	assert_int_equal(fixture->thin.writes, 0);
	assert_filled(fixture->thin.data + 9 * BLOCK, 0, 5 * BLOCK);
	assert_filled(fixture->thin.data + 20 * BLOCK, 0, 6 * BLOCK);
	/* A thick volume has nothing to deallocate. */
	request_run(&request, fixture->a, LUN_THICK, same16, 16, NULL, 0);
	expect(&request, 0x052400);
	request_release(&request);
}

static void test_write_same_errors(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	static const uint8_t cdb[16] = {0x93, 1, [12] = 0x20};

	fixture->thin.deferred = true;
	request_prepare(&request, fixture->a, LUN_THIN, cdb, sizeof cdb, 0);
	request_execute(&request, NULL);
	fake_volume_release(&fixture->thin, 1);
	assert_int_equal(fixture->thin.writes, 2); /* a chunk at a time */
	fixture->thin.fail_status = -ENOSPC;
	fake_volume_release(&fixture->thin, 1);
	assert_int_equal(request.done_count, 1);
	expect(&request, 0x072707);
	assert_int_equal(fixture->thin.writes, 2);
	fixture->thin.fail_status = 0;
	request_release(&request);
}

/* ---- COMPARE AND WRITE ---- */

static void test_compare_write(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		uint8_t blocks;
		uint32_t edtl_blocks;
		size_t differs; /* byte of the range; SIZE_MAX: none */
		uint32_t code;
	} rows[] = {
	    {1, 2, SIZE_MAX, 0},
	    {1, 2, 0, 0x0e1d00},
	    {1, 2, 27, 0x0e1d00},
	    {3, 6, 2 * 512 + 511, 0x0e1d00},
	    {3, 6, SIZE_MAX, 0},
	    {128, 256, SIZE_MAX, 0},
	    {129, 258, SIZE_MAX, 0x052400},
	    {1, 4, SIZE_MAX, 0x052400},
	    {3, 4, SIZE_MAX, 0x052400},
	    {1, 0, SIZE_MAX, 0x052400},
	    {0, 2, SIZE_MAX, 0x052400},
	    {0, 0, SIZE_MAX, 0},
	};
	static uint8_t out[258 * BLOCK];

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct request request = {0};
		uint8_t cdb[16] = {0x89, i % 2 ? 0x08 : 0x10, [9] = 40, [13] = rows[i].blocks};
		size_t bytes = rows[i].blocks * (size_t)BLOCK;
		uint8_t *medium = fixture->thin.data + (size_t)40 * BLOCK;

		memset(fixture->thin.data, 0x11, THIN_BYTES);
		memset(out, 0x11, bytes);
		memset(out + bytes, 0x22, sizeof out - bytes);
		if (rows[i].differs != SIZE_MAX)
			medium[rows[i].differs] = 0x12;
		run(fixture, &request, cdb, out, rows[i].edtl_blocks * BLOCK);
		expect(&request, rows[i].code);
		if (rows[i].code == 0) {
			assert_filled(medium, 0x22, bytes);
			assert_filled(medium + bytes, 0x11, BLOCK);
			if (bytes > 0)
				assert_int_equal(fixture->thin.last.flags, i % 2 ? IO_FUA : 0);
		} else {
			assert_int_equal(medium[BLOCK], 0x11);
		}
		if (rows[i].code == 0x0e1d00) {
			assert_int_equal(request.task.sense[0], 0xf0); /* VALID */
			assert_int_equal(get_be32(request.task.sense + 3), rows[i].differs);
		}
		request_release(&request);
	}
}

/* ---- ORWRITE, WRITE AND VERIFY, WRITE ATOMIC ---- */

static void test_orwrite(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	static const uint8_t cdb[16] = {0x8b, 0x08, [9] = 3, [13] = 2};
	uint8_t out[2 * BLOCK];

	memset(fixture->thin.data, 0x50, 8 * BLOCK);
	memset(out, 0x0f, sizeof out);
	out[700] = 0xa0;
	run(fixture, &request, cdb, out, sizeof out);
	expect(&request, 0);
	assert_int_equal(fixture->thin.last.flags, IO_FUA);
	assert_int_equal(fixture->thin.data[3 * BLOCK + 700], 0xf0);
	fixture->thin.data[3 * BLOCK + 700] = 0x5f;
	assert_filled(fixture->thin.data, 0x50, 3 * BLOCK);
	assert_filled(fixture->thin.data + 3 * BLOCK, 0x5f, 2 * BLOCK);
	assert_filled(fixture->thin.data + 5 * BLOCK, 0x50, BLOCK);
	request_release(&request);
}

static void test_write_verify(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		uint8_t cdb[16], bytes;
	} rows[] = {
	    {{0x2e, 0, 0, 0, 0, 5, 0, 0, 2, 0}, 10},
	    {{0xae, 2, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0}, 12},
	    {{0x8e, 0x12, [9] = 5, [13] = 2}, 16},
	};
	uint8_t out[2 * BLOCK];

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct request request = {0};
		uint8_t cdb[16];

		memset(fixture->thin.data, 0, 8 * BLOCK);
		memset(out, 0x41 + (int)i, sizeof out);
		request_run(&request, fixture->a, LUN_THIN, rows[i].cdb, rows[i].bytes, out,
			    sizeof out);
		expect(&request, 0);
		assert_int_equal(request.task.transfer_bytes, sizeof out);
		assert_filled(fixture->thin.data + 5 * BLOCK, (uint8_t)(0x41 + i), 2 * BLOCK);
		assert_int_equal(fixture->thin.reads, i + 1);
		memcpy(cdb, rows[i].cdb, sizeof cdb);
		cdb[1] = 4;
		request_run(&request, fixture->a, LUN_THIN, cdb, rows[i].bytes, out, sizeof out);
		expect(&request, 0x052400);
		request_release(&request);
	}
}

/* The medium comes back with something else than was written. */
static void test_write_verify_miscompare(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	static const uint8_t cdb[16] = {0x8e, 2, [9] = 5, [13] = 2};
	uint8_t out[2 * BLOCK];

	memset(out, 0x41, sizeof out);
	fixture->thin.deferred = true;
	request_prepare(&request, fixture->a, LUN_THIN, cdb, sizeof cdb, sizeof out);
	request_execute(&request, out);
	fake_volume_release(&fixture->thin, 1);
	assert_int_equal(fixture->thin.writes, 1);
	assert_int_equal(request.done_count, 0);
	fixture->thin.data[6 * BLOCK + 1] ^= 1;
	fake_volume_release(&fixture->thin, 1);
	assert_int_equal(request.done_count, 1);
	expect(&request, 0x0e1d00);
	request_release(&request);
}

static void test_write_atomic(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		uint64_t lba;
		uint16_t blocks, boundary;
		uint32_t code;
	} rows[] = {
	    {0, 8, 0, 0},
	    {16, 2048, 0, 0},
	    {0, 0, 0, 0},
	    {THIN_BLOCKS - 8, 8, 0, 0},
	    {0, 2056, 0, 0x052400}, /* above the limit */
	    {4, 8, 0, 0x052400},    /* not on a physical block */
	    {8, 4, 0, 0x052400},    /* not a whole one */
	    {8, 16, 8, 0x052400},   /* boundaries are not offered */
	    {THIN_BLOCKS - 8, 16, 0, 0x052100},
	    {UINT64_MAX - 7, 8, 0, 0x052100},
	};
	static uint8_t out[2056 * BLOCK];

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct request request = {0};
		uint8_t cdb[16] = {0x9c};

		memset(fixture->thin.data, 0, THIN_BYTES);
		memset(out, 0x77, sizeof out);
		put_be64(cdb + 2, rows[i].lba);
		put_be16(cdb + 10, rows[i].boundary);
		put_be16(cdb + 12, rows[i].blocks);
		run(fixture, &request, cdb, out, rows[i].blocks * BLOCK);
		expect(&request, rows[i].code);
		if (!rows[i].code)
			assert_filled(fixture->thin.data + rows[i].lba * BLOCK, 0x77,
				      rows[i].blocks * (size_t)BLOCK);
		request_release(&request);
	}
}

/* ---- without data-out ---- */

static void test_prefetch(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		uint8_t cdb[16];
		uint32_t code;
	} rows[] = {
	    {{0x34, 2, 0, 0, 0, 5, 3, 0, 9, 0}, 0},
	    {{0x34, 0, 0, 0, 0x20, 0, 0, 0, 0, 0}, 0},
	    {{0x34, 0, 0, 0, 0x1f, 0xff, 0, 0, 2, 0}, 0x052100},
	    {{0x90, 2, [9] = 1, [13] = 1, [14] = 3}, 0},
	    {{0x90, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 0x052100},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct request request = {0};

		run(fixture, &request, rows[i].cdb, NULL, 0);
		expect(&request, rows[i].code);
		request_release(&request);
	}
}

static void test_defect_data(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	static const uint8_t defect10[16] = {0x37, 0, 0x1d, 0, 0, 0, 0, 0, 32, 0};
	static const uint8_t defect12[16] = {0xb7, 0x0d, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0};

	run(fixture, &request, defect10, NULL, 32);
	expect(&request, 0);
	assert_int_equal(request.task.in_bytes, 4);
	assert_memory_equal(request.task.in_buf->data, "\0\x1d\0\0", 4);
	request_release(&request);
	run(fixture, &request, defect12, NULL, 32);
	expect(&request, 0);
	assert_int_equal(request.task.in_bytes, 8);
	assert_memory_equal(request.task.in_buf->data, "\0\x0d\0\0\0\0\0\0", 8);
	request_release(&request);
}

static void test_lba_status(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	uint8_t cdb[16] = {0x9e, 0x12, [9] = 7, [13] = 255};
	const uint8_t *data;

	fixture->thin.mapped_bytes = MIB;
	run(fixture, &request, cdb, NULL, 255);
	expect(&request, 0);
	assert_int_equal(request.task.in_bytes, 40);
	data = request.task.in_buf->data;
	assert_int_equal(get_be32(data), 36);
	assert_int_equal(get_be64(data + 8), 7);
	assert_int_equal(get_be32(data + 16), 2048 - 7);
	assert_int_equal(data[20], 0); /* mapped */
	assert_int_equal(get_be64(data + 24), 2048);
	assert_int_equal(get_be32(data + 32), THIN_BLOCKS - 2048);
	assert_int_equal(data[36], 1); /* deallocated */
	request_release(&request);
	cdb[13] = 24; /* room for one */
	run(fixture, &request, cdb, NULL, 24);
	assert_int_equal(request.task.in_bytes, 24);
	assert_int_equal(get_be32(request.task.in_buf->data), 36); /* what there is */
	request_release(&request);
	put_be64(cdb + 2, THIN_BLOCKS);
	run(fixture, &request, cdb, NULL, 24);
	expect(&request, 0x052100);
	put_be64(cdb + 2, UINT64_MAX);
	run(fixture, &request, cdb, NULL, 24);
	expect(&request, 0x052100);
	/* A run of more blocks than the field holds. */
	memset(cdb + 2, 0, 8);
	request_run(&request, fixture->a, LUN_HUGE, cdb, 16, NULL, 24);
	assert_int_equal(get_be32(request.task.in_buf->data + 16), UINT32_MAX);
	request_release(&request);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_write_same, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_write_same_unmap, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_write_same_errors, fixture_setup,
					    fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_compare_write, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_orwrite, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_write_verify, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_write_verify_miscompare, fixture_setup,
					    fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_write_atomic, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_prefetch, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_defect_data, fixture_setup, fixture_teardown),
	    cmocka_unit_test_setup_teardown(test_lba_status, fixture_setup, fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
