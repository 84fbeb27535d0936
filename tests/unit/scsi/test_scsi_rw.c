/* SPDX-License-Identifier: MIT
 *
 * The data path: READ, WRITE, VERIFY, SYNCHRONIZE CACHE; ranges, expected data transfer length,
 * and the sense of every io status.
 */
#include "tests/unit/scsi/fixture.h"

#include <errno.h>

enum { THIN_BLOCKS = 4 * 1024 * 2 };

static void fill(uint8_t *data, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		data[i] = (uint8_t)(i * 7 + (i >> 9) + seed);
}

/* Every CDB size reads back what it wrote, at the right place. */
static void test_write_read(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		uint8_t write[16], read[16], cdb_bytes;
		uint64_t lba;
		unsigned blocks;
	} rows[] = {
	    {{0x0a, 0, 1, 2, 3}, {0x08, 0, 1, 2, 3}, 6, 0x102, 3},
	    {{0x0a, 0, 0, 8, 0}, {0x08, 0, 0, 8, 0}, 6, 8, 256},
	    {{0x2a, 0, 0, 0, 4, 5, 0, 0, 9, 0}, {0x28, 0, 0, 0, 4, 5, 0, 0, 9, 0}, 10, 0x405, 9},
	    {{0xaa, 0x18, 0, 0, 6, 7, 0, 0, 0, 2},
	     {0xa8, 0x18, 0, 0, 6, 7, 0, 0, 0, 2},
	     12,
	     0x607,
	     2},
	    {{0x8a, 8, 0, 0, 0, 0, 0, 0, 7, 8, 0, 0, 0, 17},
	     {0x88, 8, 0, 0, 0, 0, 0, 0, 7, 8, 0, 0, 0, 17},
	     16,
	     0x708,
	     17},
	};
	static uint8_t out[256 * 512];

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct request request = {0};
		uint32_t bytes = rows[i].blocks * 512;

		fill(out, bytes, i);
		request_run(&request, fixture->a, LUN_THIN, rows[i].write, rows[i].cdb_bytes, out,
			    bytes);
		assert_int_equal(request.prepared, SCSI_NEEDS_DATA);
		assert_int_equal(request.task.status, SCSI_GOOD);
		assert_int_equal(request.task.transfer_bytes, bytes);
		assert_int_equal(fixture->thin.last.flags, i >= 3 ? IO_FUA : 0);
		request_release(&request);
		assert_memory_equal(fixture->thin.data + rows[i].lba * 512, out, bytes);

		request_run(&request, fixture->a, LUN_THIN, rows[i].read, rows[i].cdb_bytes, NULL,
			    bytes);
		assert_int_equal(request.prepared, SCSI_READY);
		assert_int_equal(request.task.status, SCSI_GOOD);
		assert_int_equal(request.task.in_bytes, bytes);
		assert_memory_equal(request.task.in_buf->data, out, bytes);
		request_release(&request);
	}
}

static void test_ranges(void **state)
{
	struct fixture *fixture = *state;
	const uint64_t last = THIN_BLOCKS - 1;
	const struct {
		uint64_t lba;
		uint32_t blocks;
		uint32_t sense; /* 0: GOOD */
	} rows[] = {
	    {0, 0, 0},
	    {last, 1, 0},
	    {last + 1, 0, 0},
	    {last, 2, 0x052100},
	    {last + 1, 1, 0x052100},
	    {last + 2, 0, 0x052100},
	    {UINT64_C(1) << 31, 0, 0x052100},
	    {UINT64_C(1) << 63, 0, 0x052100},
	    {UINT64_C(1) << 63, 1, 0x052100},
	    {UINT64_MAX, 0, 0x052100},
	    {UINT64_MAX, 1, 0x052100},
	    {UINT64_MAX, 2, 0x052100},
	    {UINT64_MAX - 1, 32768, 0x052100},
	    {0, THIN_BLOCKS, 0},
	    {0, 32768, 0x052100},
	    {0, 32769, 0x052400},
	    {0, UINT32_MAX, 0x052400},
	};
	static const uint8_t opcodes[] = {0x88, 0x8a, 0x8f};
	static uint8_t out[THIN_BYTES];

	for (unsigned i = 0; i < ARRAY_SIZE(rows) * ARRAY_SIZE(opcodes); i++) {
		unsigned row = i / ARRAY_SIZE(opcodes);
		struct request request = {0};
		uint8_t cdb[16];

		cdb16(cdb, opcodes[i % ARRAY_SIZE(opcodes)], 0, rows[row].lba, rows[row].blocks);
		request_run(&request, fixture->a, LUN_THIN, cdb, sizeof cdb, out, sizeof out);
		if (rows[row].sense != 0)
			assert_int_equal(request_sense_code(&request), rows[row].sense);
		else
			assert_int_equal(request.task.status, SCSI_GOOD);
		request_release(&request);
	}
}

static void test_protection_bits(void **state)
{
	struct fixture *fixture = *state;
	static const uint8_t opcodes[] = {0x28, 0x2a, 0x2f, 0xa8, 0xaa, 0xaf, 0x88, 0x8a, 0x8f};

	for (unsigned i = 0; i < ARRAY_SIZE(opcodes); i++) {
		for (unsigned protect = 1; protect < 8; protect++) {
			const uint8_t cdb[16] = {opcodes[i], (uint8_t)(protect << 5)};
			struct request request = {0};

			request_run(&request, fixture->a, LUN_THIN, cdb, sizeof cdb, NULL, 0);
			assert_int_equal(request.prepared, SCSI_ENDED);
			assert_int_equal(request_sense_code(&request), 0x052400);
			request_release(&request);
		}
	}
}

/* Expected data transfer length against the CDB's, domain facts of iSCSIResiduals: the transport
 * computes O and U from transfer_bytes. */
static void test_short_edtl(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		unsigned blocks;
		uint32_t edtl, written;
	} rows[] = {
	    {1, 0, 0},	   {1, 200, 0},	  {1, 511, 0},	  {1, 512, 512},  {1, 10000, 512},
	    {2, 512, 512}, {2, 700, 512}, {2, 1023, 512}, {1, 1024, 512}, {5, 2048, 2048},
	};
	static uint8_t out[16384];

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct request request = {0};
		uint8_t cdb[16];

		fill(out, sizeof out, i + 1);
		memset(fixture->thin.data, 0xee, 8192);
		cdb16(cdb, 0x8a, 0, 0, rows[i].blocks);
		request_run(&request, fixture->a, LUN_THIN, cdb, sizeof cdb, out, rows[i].edtl);
		assert_int_equal(request.task.status, SCSI_GOOD);
		assert_int_equal(request.task.transfer_bytes, rows[i].blocks * 512);
		request_release(&request);
		assert_memory_equal(fixture->thin.data, out, rows[i].written);
		for (unsigned at = rows[i].written; at < 8192; at++)
			assert_int_equal(fixture->thin.data[at], 0xee);

		/* A read makes all its data; the transport cuts it. */
		cdb16(cdb, 0x88, 0, 0, rows[i].blocks);
		request_run(&request, fixture->a, LUN_THIN, cdb, sizeof cdb, NULL, rows[i].edtl);
		assert_int_equal(request.task.status, SCSI_GOOD);
		assert_int_equal(request.task.in_bytes, rows[i].blocks * 512);
		assert_int_equal(request.task.transfer_bytes, rows[i].blocks * 512);
		request_release(&request);
	}
}

static void test_io_status(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		int error;
		uint8_t status;
		uint32_t read_sense, write_sense;
	} rows[] = {
	    {-EIO, SCSI_CHECK_CONDITION, 0x031100, 0x030c00},
	    {-ENODEV, SCSI_CHECK_CONDITION, 0x043e01, 0x043e01},
	    {-ENOSPC, SCSI_CHECK_CONDITION, 0x072707, 0x072707},
	    {-ERANGE, SCSI_CHECK_CONDITION, 0x052100, 0x052100},
	    {-EROFS, SCSI_CHECK_CONDITION, 0x072700, 0x072700},
	    {-ETIMEDOUT, SCSI_CHECK_CONDITION, 0x0b2e01, 0x0b2e01},
	    {-ECANCELED, SCSI_CHECK_CONDITION, 0x0b0000, 0x0b0000},
	    {-EBUSY, SCSI_BUSY, 0, 0},
	    {-ENOMEM, SCSI_BUSY, 0, 0},
	    {-EPIPE, SCSI_CHECK_CONDITION, 0x044400, 0x044400},
	};
	static const uint8_t opcodes[] = {0x88, 0x8f, 0x8a, 0x91};
	uint8_t out[512] = {0};

	for (unsigned i = 0; i < ARRAY_SIZE(rows) * ARRAY_SIZE(opcodes); i++) {
		unsigned row = i / ARRAY_SIZE(opcodes), op = i % ARRAY_SIZE(opcodes);
		struct request request = {0};
		uint8_t cdb[16];

		fixture->thin.fail_status = rows[row].error;
		cdb16(cdb, opcodes[op], 0, 1, 1);
		request_run(&request, fixture->a, LUN_THIN, cdb, sizeof cdb, out, sizeof out);
		assert_int_equal(request.task.status, rows[row].status);
		if (rows[row].status == SCSI_CHECK_CONDITION)
			assert_int_equal(request_sense_code(&request),
					 op < 2 ? rows[row].read_sense : rows[row].write_sense);
		else
			assert_int_equal(request.task.sense_bytes, 0);
		assert_int_equal(request.task.in_bytes, 0);
		request_release(&request);
	}
	fixture->thin.fail_status = 0;
}

static void test_verify(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		uint8_t cdb[16], cdb_bytes;
	} rows[] = {
	    {{0x2f, 2, 0, 0, 0, 1, 0, 0, 4}, 10},
	    {{0xaf, 2, 0, 0, 0, 1, 0, 0, 0, 4}, 12},
	    {{0x8f, 2, [9] = 1, [13] = 4}, 16},
	};
	uint8_t out[2048];

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct request request = {0};
		uint8_t cdb[16];

		memcpy(cdb, rows[i].cdb, sizeof cdb);
		fill(fixture->thin.data + 512, sizeof out, i);
		fill(out, sizeof out, i);
		request_run(&request, fixture->a, LUN_THIN, cdb, rows[i].cdb_bytes, out,
			    sizeof out);
		assert_int_equal(request.task.status, SCSI_GOOD);
		assert_int_equal(request.task.transfer_bytes, sizeof out);
		out[sizeof out - 1] ^= 1;
		request_run(&request, fixture->a, LUN_THIN, cdb, rows[i].cdb_bytes, out,
			    sizeof out);
		assert_int_equal(request_sense_code(&request), 0x0e1d00);
		cdb[1] = 0; /* BYTCHK 00: no data, no comparison */
		request_run(&request, fixture->a, LUN_THIN, cdb, rows[i].cdb_bytes, NULL, 0);
		assert_int_equal(request.prepared, SCSI_READY);
		assert_int_equal(request.task.status, SCSI_GOOD);
		assert_int_equal(request.task.transfer_bytes, 0);
		cdb[1] = 4; /* BYTCHK 10b is reserved */
		request_run(&request, fixture->a, LUN_THIN, cdb, rows[i].cdb_bytes, NULL, 0);
		assert_int_equal(request_sense_code(&request), 0x052400);
		cdb[1] = 6; /* BYTCHK 11b: one block for all */
		memset(fixture->thin.data + 512, 0x5a, sizeof out);
		memset(out, 0x5a, 512);
		request_run(&request, fixture->a, LUN_THIN, cdb, rows[i].cdb_bytes, out, 512);
		assert_int_equal(request.task.status, SCSI_GOOD);
		assert_int_equal(request.task.transfer_bytes, 512);
		fixture->thin.data[512 + sizeof out - 1] ^= 1;
		request_run(&request, fixture->a, LUN_THIN, cdb, rows[i].cdb_bytes, out, 512);
		assert_int_equal(request_sense_code(&request), 0x0e1d00);
		request_release(&request);
	}
}

static void test_sync_cache(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	uint8_t cdb[16];

	cdb16(cdb, 0x91, 0x02, 8, 0);
	request_run(&request, fixture->a, LUN_THIN, cdb, sizeof cdb, NULL, 0);
	assert_int_equal(request.task.status, SCSI_GOOD);
	assert_int_equal(fixture->thin.last.offset_bytes, 8 * 512);
	assert_int_equal(fixture->thin.last.length_bytes, THIN_BYTES - 8 * 512);
	request_run(&request, fixture->a, LUN_THIN, CDB(0x35, 0, 0, 0, 0, 2, 0, 0, 3, 0), NULL, 0);
	assert_int_equal(fixture->thin.last.offset_bytes, 1024);
	assert_int_equal(fixture->thin.last.length_bytes, 1536);
	assert_int_equal(fixture->thin.flushes, 2);
	cdb16(cdb, 0x91, 0, THIN_BLOCKS, 1);
	request_run(&request, fixture->a, LUN_THIN, cdb, sizeof cdb, NULL, 0);
	assert_int_equal(request_sense_code(&request), 0x052100);
	cdb16(cdb, 0x91, 0, UINT64_MAX, 0);
	request_run(&request, fixture->a, LUN_THIN, cdb, sizeof cdb, NULL, 0);
	assert_int_equal(request_sense_code(&request), 0x052100);
	assert_int_equal(fixture->thin.flushes, 2);
	request_release(&request);
}

/* An UNMAP of COUNT descriptors; the data length field says CLAIMED descriptors. */
static void run_unmap(struct request *request, struct fixture *fixture, unsigned lun,
		      const uint64_t (*descriptors)[2], unsigned count, unsigned claimed,
		      uint32_t list_bytes)
{
	static uint8_t list[8 + 16 * 300];
	uint8_t cdb[10] = {0x42};

	memset(list, 0, sizeof list);
	put_be16(list, (uint16_t)(6 + 16 * claimed));
	put_be16(list + 2, (uint16_t)(16 * claimed));
	for (unsigned i = 0; i < count; i++) {
		put_be64(list + 8 + (size_t)16 * i, descriptors[i][0]);
		put_be32(list + 16 + (size_t)16 * i, (uint32_t)descriptors[i][1]);
	}
	put_be16(cdb + 7, (uint16_t)list_bytes);
	request_run(request, fixture->a, lun, cdb, sizeof cdb, list, list_bytes);
}

static void test_unmap(void **state)
{
	struct fixture *fixture = *state;
	static const uint64_t good[][2] = {{1, 2}, {9, 0}, {THIN_BLOCKS, 0}, {16, 1}};
	static const uint64_t bad[][2] = {{1, 1}, {THIN_BLOCKS - 1, 2}, {5, 1}};
	static const uint64_t wrap[][2] = {{UINT64_MAX, 2}};
	static const uint64_t much[][2] = {{0, 34 * 30720}, {9, 1}};
	static const uint64_t many[257][2];
	struct request request = {0};

	memset(fixture->thin.data, 0xee, 32 * 512);
	run_unmap(&request, fixture, LUN_THIN, good, 4, 4, 8 + 64);
	assert_int_equal(request.task.status, SCSI_GOOD);
	assert_int_equal(fixture->thin.unmaps, 2);
	assert_int_equal(fixture->thin.data[511], 0xee);
	assert_int_equal(fixture->thin.data[512], 0);
	assert_int_equal(fixture->thin.data[1535], 0);
	assert_int_equal(fixture->thin.data[1536], 0xee);
	assert_int_equal(fixture->thin.data[16 * 512], 0);

	/* All are checked before the first is carried out. */
	run_unmap(&request, fixture, LUN_THIN, bad, 3, 3, 8 + 48);
	assert_int_equal(request_sense_code(&request), 0x052100);
	run_unmap(&request, fixture, LUN_THIN, wrap, 1, 1, 8 + 16);
	assert_int_equal(request_sense_code(&request), 0x052100);
	assert_int_equal(fixture->thin.unmaps, 2);

	run_unmap(&request, fixture, LUN_THIN, good, 0, 0, 8);
	assert_int_equal(request.task.status, SCSI_GOOD);
	run_unmap(&request, fixture, LUN_THIN, good, 0, 0, 0);
	assert_int_equal(request.task.status, SCSI_GOOD);
	run_unmap(&request, fixture, LUN_THIN, good, 0, 0, 7);
	assert_int_equal(request_sense_code(&request), 0x051a00);
	run_unmap(&request, fixture, LUN_THIN, good, 1, 2, 8 + 16);
	assert_int_equal(request_sense_code(&request), 0x051a00);

	run_unmap(&request, fixture, LUN_THIN, many, 256, 256, 8 + 16 * 256);
	assert_int_equal(request.task.status, SCSI_GOOD);
	run_unmap(&request, fixture, LUN_THIN, many, 257, 257, 8 + 16 * 257);
	assert_int_equal(request_sense_code(&request), 0x052600);
	run_unmap(&request, fixture, LUN_HUGE, much, 1, 1, 8 + 16);
	assert_int_equal(request.task.status, SCSI_GOOD);
	run_unmap(&request, fixture, LUN_HUGE, much, 2, 2, 8 + 32);
	assert_int_equal(request_sense_code(&request), 0x052600);
	assert_int_equal(fixture->huge.unmaps, 1);

	run_unmap(&request, fixture, LUN_THICK, good, 1, 1, 8 + 16);
	assert_int_equal(request_sense_code(&request), 0x052000);
	request_run(&request, fixture->a, LUN_THIN, CDB(0x42, 1, 0, 0, 0, 0, 0, 0, 24, 0), NULL, 0);
	assert_int_equal(request_sense_code(&request), 0x052400);
	request_release(&request);
}

/* One descriptor after the other, also when the volume takes its time; the first error ends it. */
static void test_unmap_deferred(void **state)
{
	struct fixture *fixture = *state;
	uint8_t list[8 + 3 * 16] = {0, 54, 0, 48};
	struct request request = {0};

	for (unsigned i = 0; i < 3; i++)
		put_be32(list + 16 + (size_t)16 * i, 1);
	fixture->thin.deferred = true;
	for (unsigned failing = 0; failing <= 3; failing++) {
		request_prepare(&request, fixture->a, LUN_THIN,
				CDB(0x42, 0, 0, 0, 0, 0, 0, 0, sizeof list, 0), sizeof list);
		request_execute(&request, list);
		for (unsigned i = 0; i < 3 && request.done_count == 0; i++) {
			assert_int_equal(fixture->thin.held_count, 1);
			fixture->thin.fail_status = i == failing ? -ENODEV : 0;
			fake_volume_release(&fixture->thin, 1);
			assert_int_equal(request.done_count, i == failing || i == 2);
		}
		if (failing < 3)
			assert_int_equal(request_sense_code(&request), 0x043e01);
		else
			assert_int_equal(request.task.status, SCSI_GOOD);
	}
	assert_int_equal(fixture->thin.unmaps, 1 + 2 + 3 + 3);
	request_release(&request);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
	    CASE(test_write_read), CASE(test_ranges),	 CASE(test_protection_bits),
	    CASE(test_short_edtl), CASE(test_io_status), CASE(test_verify),
	    CASE(test_sync_cache), CASE(test_unmap),	 CASE(test_unmap_deferred),
	};

	return cmocka_run_group_tests_name("scsi_rw", tests, NULL, NULL);
}
