/* SPDX-License-Identifier: MIT
 *
 * Parameter data: INQUIRY and VPD pages, capacity, mode pages, REPORT LUNS, and the allocation
 * length rules they share.
 */
#include "tests/unit/scsi/fixture.h"

#include <stdio.h>

static const uint8_t *run_good(struct request *request, struct scsi_nexus *nexus, unsigned lun,
			       const uint8_t *cdb, size_t cdb_bytes)
{
	request_run(request, nexus, lun, cdb, cdb_bytes, NULL, 4096);
	assert_int_equal(request->task.status, SCSI_GOOD);
	assert_non_null(request->task.in_buf);
	assert_int_equal(request->task.transfer_bytes, request->task.in_bytes);
	return request->task.in_buf->data;
}

static void expect_sense(struct scsi_nexus *nexus, unsigned lun, const uint8_t *cdb,
			 size_t cdb_bytes, uint32_t code)
{
	struct request request = {0};

	request_run(&request, nexus, lun, cdb, cdb_bytes, NULL, 4096);
	assert_int_equal(request_sense_code(&request), code);
	assert_int_equal(request.task.in_bytes, 0);
	request_release(&request);
}

static void test_inquiry_standard(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	static const uint16_t wanted[] = {0x04c0, 0x0960, 0x0460};
	const uint8_t *data;

	data = run_good(&request, fixture->a, LUN_THIN, CDB(0x12, 0, 0, 0x02, 0x00, 0));
	assert_int_equal(data[0], 0);
	assert_int_equal(data[1], 0);
	assert_int_equal(data[2], 6);
	assert_int_equal(data[3] & 0x0f, 2);
	assert_int_equal(data[4], request.task.in_bytes - 5);
	assert_int_equal(data[5], 0x38); /* TPGS: implicit and explicit; 3PC */
	assert_int_equal(data[7] & 0x02, 0x02);
	assert_memory_equal(data + 8, "SANLAB  ", 8);
	assert_memory_equal(data + 16, "db1             ", 16);
	for (unsigned i = 0; i < ARRAY_SIZE(wanted); i++) {
		bool found = false;

		for (unsigned at = 58; at < 74; at += 2)
			found = found || get_be16(data + at) == wanted[i];
		assert_true(found);
	}
	request_release(&request);
	data = run_good(&request, fixture->a, LUN_THICK, CDB(0x12, 0, 0, 0, 0xff, 0));
	assert_memory_equal(data + 16, "Log volume with ", 16);
	request_release(&request);
	expect_sense(fixture->a, LUN_THIN, CDB(0x12, 0, 0x83, 0, 0xff, 0), 0x052400);
	expect_sense(fixture->a, LUN_THIN, CDB(0x12, 2, 0, 0, 0xff, 0), 0x052400);
}

static void test_inquiry_unknown_lun(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	const uint8_t *data;

	data = run_good(&request, fixture->a, LUN_NONE, CDB(0x12, 0, 0, 0, 0xff, 0));
	assert_int_equal(data[0], 0x7f);
	request_release(&request);
	data = run_good(&request, fixture->a, LUN_NONE, CDB(0x12, 1, 0, 0, 0xff, 0));
	assert_int_equal(data[0], 0x7f);
	assert_int_equal(get_be16(data + 2), 1);
	request_release(&request);
	expect_sense(fixture->a, LUN_NONE, CDB(0x12, 1, 0x83, 0, 0xff, 0), 0x052400);
}

/* VPD 00 lists exactly the pages that can be read. */
static void test_vpd_list(void **state)
{
	struct fixture *fixture = *state;

	for (unsigned lun = LUN_THIN; lun <= LUN_THICK; lun++) {
		struct request list = {0};
		const uint8_t *pages =
		    run_good(&list, fixture->a, lun, CDB(0x12, 1, 0, 0, 0xff, 0));
		unsigned count = get_be16(pages + 2), next = 0;

		assert_int_equal(list.task.in_bytes, 4 + count);
		for (unsigned page = 0; page < 256; page++) {
			const uint8_t cdb[6] = {0x12, 1, (uint8_t)page, 0x04, 0x00, 0};
			struct request request = {0};

			if (next == count || pages[4 + next] != page) {
				expect_sense(fixture->a, lun, cdb, sizeof cdb, 0x052400);
				continue;
			}
			next++;
			assert_int_equal(run_good(&request, fixture->a, lun, cdb, sizeof cdb)[1],
					 page);
			assert_int_equal(get_be16(request.task.in_buf->data + 2),
					 request.task.in_bytes - 4);
			request_release(&request);
		}
		assert_int_equal(next, count);
		assert_int_equal(pages[4 + count - 1], 0xb3);
		request_release(&list);
	}
}

/* Finds a designator by association and type; returns its descriptor header. */
static const uint8_t *designator(const uint8_t *page, unsigned association, unsigned type)
{
	const uint8_t *at = page + 4, *end = at + get_be16(page + 2);

	for (; at < end; at += 4 + at[3]) {
		if ((at[1] & 0x0f) == type && (at[1] >> 4 & 3) == association)
			return at;
	}
	fail_msg("no designator of type %u", type);
	return NULL;
}

static void test_vpd_identification(void **state)
{
	struct fixture *fixture = *state;
	struct request a = {0}, b = {0};
	const uint8_t cdb[] = {0x12, 1, 0x83, 0x04, 0x00, 0};
	const uint8_t *page_a = run_good(&a, fixture->a, LUN_THIN, cdb, sizeof cdb);
	const uint8_t *page_b = run_good(&b, fixture->b, LUN_THIN, cdb, sizeof cdb);
	const uint8_t *at = designator(page_a, 0, 3);

	assert_int_equal(at[0], 0x01);
	assert_int_equal(at[3], 16);
	assert_memory_equal(at + 4, fixture->thin.naa, 16);
	assert_memory_equal(at, designator(page_b, 0, 3), 20);
	at = designator(page_a, 0, 1);
	assert_int_equal(at[0], 0x02);
	assert_memory_equal(at + 4, "SANLAB  ", 8);
	assert_memory_equal(at, designator(page_b, 0, 1), 4 + (size_t)at[3]);
	assert_int_equal(get_be32(designator(page_a, 1, 4) + 4), 1);
	assert_int_equal(get_be32(designator(page_b, 1, 4) + 4), 0x102);
	assert_int_equal(designator(page_a, 1, 4)[0], 0x51);
	assert_int_equal(designator(page_a, 1, 4)[1] & 0x80, 0x80);
	assert_int_equal(get_be32(designator(page_b, 1, 5) + 4), 2);
	at = designator(page_b, 1, 8);
	assert_string_equal((const char *)at + 4, "iqn.2026-11.test.sanlab:unit:t,t,0x0102");
	assert_int_equal(at[3] % 4, 0);
	at = designator(page_b, 2, 8);
	assert_string_equal((const char *)at + 4, "iqn.2026-11.test.sanlab:unit:t");
	request_release(&a);
	request_release(&b);
}

static void test_vpd_serial_and_limits(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	const uint8_t *data;
	char hex[3];

	data = run_good(&request, fixture->a, LUN_THIN, CDB(0x12, 1, 0x80, 0, 0xff, 0));
	assert_int_equal(get_be16(data + 2), 32);
	snprintf(hex, sizeof hex, "%02x", fixture->thin.naa[15]);
	assert_memory_equal(data + 34, hex, 2);
	request_release(&request);

	data = run_good(&request, fixture->a, LUN_THIN, CDB(0x12, 1, 0xb0, 0, 0xff, 0));
	assert_int_equal(get_be16(data + 2), 60);
	assert_int_equal(get_be16(data + 6), 8);
	assert_int_equal(get_be32(data + 8), 32768);
	assert_int_equal(get_be32(data + 12), 2048);
	assert_int_equal(get_be32(data + 20), 34 * 30720);
	assert_int_equal(get_be32(data + 24), 256);
	assert_int_equal(get_be32(data + 28), 30720);
	request_release(&request);
	data = run_good(&request, fixture->a, LUN_THICK, CDB(0x12, 1, 0xb0, 0, 0xff, 0));
	assert_int_equal(get_be16(data + 6), 1);
	assert_int_equal(get_be32(data + 8), 4096);
	assert_int_equal(get_be32(data + 20), 0);
	assert_int_equal(get_be32(data + 24), 0);
	request_release(&request);
	data = run_good(&request, fixture->a, LUN_THIN, CDB(0x12, 1, 0xb2, 0, 0xff, 0));
	assert_int_equal(data[4], 11); /* 2^11 blocks are 1 MiB */
	assert_int_equal(data[5] & 0xe0, 0xe0);
	assert_int_equal(data[6] & 0x07, 2);
	request_release(&request);
}

static void test_capacity(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	const uint8_t *data;
	const uint8_t rc16[16] = {0x9e, 0x10, [13] = 32};

	data = run_good(&request, fixture->a, LUN_THIN, CDB(0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0));
	assert_int_equal(get_be32(data), THIN_BYTES / 512 - 1);
	assert_int_equal(get_be32(data + 4), 512);
	request_release(&request);
	data = run_good(&request, fixture->a, LUN_HUGE, CDB(0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0));
	assert_int_equal(get_be32(data), 0xffffffff);
	request_release(&request);
	expect_sense(fixture->a, LUN_THIN, CDB(0x25, 0, 0, 0, 0, 1, 0, 0, 0, 0), 0x052400);

	data = run_good(&request, fixture->a, LUN_HUGE, rc16, sizeof rc16);
	assert_int_equal(request.task.in_bytes, 32);
	assert_true(get_be64(data) == HUGE_BYTES / 512 - 1);
	assert_int_equal(data[13] & 0x0f, 3);
	assert_int_equal(data[14] & 0xc0, 0xc0);
	request_release(&request);
	data = run_good(&request, fixture->a, LUN_THICK, rc16, sizeof rc16);
	assert_int_equal(get_be32(data + 8), 4096);
	assert_int_equal(data[13] & 0x0f, 0);
	assert_int_equal(data[14] & 0xc0, 0);
	request_release(&request);
	fixture->thin.physical_block_bytes = 512;
	data = run_good(&request, fixture->a, LUN_THIN, rc16, sizeof rc16);
	assert_int_equal(get_be32(data + 8), 512);
	assert_int_equal(data[13] & 0x0f, 0);
	request_release(&request);
	expect_sense(fixture->a, LUN_THIN, CDB(0x9e, 0x11), 0x052400);
}

static void test_mode_sense(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	const uint8_t *data;

	data = run_good(&request, fixture->a, LUN_THIN, CDB(0x1a, 0, 0x3f, 0, 0xff, 0));
	assert_int_equal(request.task.in_bytes, 4 + 8 + 12 + 20 + 12 + 12);
	assert_int_equal(data[0], request.task.in_bytes - 1);
	assert_int_equal(data[2], 0x10);
	assert_int_equal(data[3], 8);
	assert_int_equal(get_be32(data + 4), THIN_BYTES / 512);
	assert_int_equal(get_be24(data + 9), 512);
	assert_int_equal(get_be24(data + 12), 0x010ac0); /* AWRE, ARRE */
	assert_int_equal(data[24], 0x08);
	assert_int_equal(data[25], 0x12);
	assert_int_equal(data[26] & 0x04, 0x04);
	assert_int_equal(data[44], 0x0a);
	assert_int_equal(data[45], 0x0a);
	assert_int_equal(data[46] & 0x04, 0); /* D_SENSE: fixed format */
	request_release(&request);

	data =
	    run_good(&request, fixture->a, LUN_HUGE, CDB(0x5a, 0x10, 0x0a, 0, 0, 0, 0, 0, 0xff, 0));
	assert_int_equal(request.task.in_bytes, 8 + 16 + 12);
	assert_int_equal(get_be16(data), request.task.in_bytes - 2);
	assert_int_equal(data[3], 0x10);
	assert_int_equal(data[4], 1);
	assert_int_equal(get_be16(data + 6), 16);
	assert_true(get_be64(data + 8) == HUGE_BYTES / 512);
	assert_int_equal(data[24], 0x0a);
	request_release(&request);

	expect_sense(fixture->a, LUN_THIN, CDB(0x1a, 0, 0x1d, 0, 0xff, 0), 0x052400);
	expect_sense(fixture->a, LUN_THIN, CDB(0x1a, 0, 0x08, 1, 0xff, 0), 0x052400);
	expect_sense(fixture->a, LUN_THIN, CDB(0x1a, 0, 0xc8, 0, 0xff, 0), 0x053900);
}

static void test_report_luns(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	const uint8_t cdb[12] = {0xa0, [8] = 1};
	const uint8_t *data = run_good(&request, fixture->a, LUN_THIN, cdb, sizeof cdb);

	assert_int_equal(get_be32(data), 24);
	assert_int_equal(request.task.in_bytes, 32);
	for (unsigned i = 0; i < 3; i++)
		assert_true(get_be64(data + 8 + (size_t)8 * i) == (uint64_t)i << 48);
	request_release(&request);
	data = run_good(&request, fixture->a, LUN_THIN, CDB(0xa0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0));
	assert_int_equal(get_be32(data), 0);
	request_release(&request);
	expect_sense(fixture->a, LUN_THIN, CDB(0xa0, 0, 3, 0, 0, 0, 0, 0, 1, 0, 0, 0), 0x052400);
	expect_sense(fixture->a, LUN_NONE, cdb, sizeof cdb, 0x052500);

	/* To the REPORT LUNS well-known logical unit. */
	request.task.nexus = fixture->a;
	memcpy(request.task.lun, (const uint8_t[8]){0xc1, 0x01}, 8);
	memcpy(request.task.cdb, cdb, sizeof cdb);
	assert_int_equal(scsi_prepare(&request.task), SCSI_READY);
	scsi_execute(&request.task);
	assert_int_equal(get_be32(request.task.in_buf->data), 24);
	request_release(&request);
}

/* Every data-in command with every interesting allocation length: GOOD, truncated, the same bytes
 * as without truncation. */
static void test_allocation_length(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		uint8_t cdb[16];
		uint8_t cdb_bytes, length_at, length_bytes;
	} rows[] = {
	    {{0x12}, 6, 3, 2},		 {{0x12, 1, 0x00}, 6, 3, 2},	 {{0x12, 1, 0x80}, 6, 3, 2},
	    {{0x12, 1, 0x83}, 6, 3, 2},	 {{0x12, 1, 0x86}, 6, 3, 2},	 {{0x12, 1, 0xb0}, 6, 3, 2},
	    {{0x12, 1, 0xb1}, 6, 3, 2},	 {{0x12, 1, 0xb2}, 6, 3, 2},	 {{0x03}, 6, 4, 1},
	    {{0x03, 1}, 6, 4, 1},	 {{0x1a, 0, 0x3f}, 6, 4, 1},	 {{0x1a, 8, 0x08}, 6, 4, 1},
	    {{0x5a, 0, 0x3f}, 10, 7, 2}, {{0x5a, 0x10, 0x0a}, 10, 7, 2}, {{0x9e, 0x10}, 16, 10, 4},
	    {{0xa0}, 12, 6, 4},
	};
	static const unsigned lengths[] = {0, 1, 4, 5, 35, 36, 255, 511, 512};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		uint8_t cdb[16], *length = cdb + rows[i].length_at;
		struct request full = {0};

		memcpy(cdb, rows[i].cdb, sizeof cdb);
		memset(length + rows[i].length_bytes - 1, 0xff, 1);
		if (rows[i].length_bytes > 1)
			length[rows[i].length_bytes - 2] = 0x0f;
		run_good(&full, fixture->a, LUN_THIN, cdb, rows[i].cdb_bytes);
		for (unsigned j = 0; j < ARRAY_SIZE(lengths); j++) {
			struct request cut = {0};

			if (lengths[j] > 255 && rows[i].length_bytes == 1)
				continue;
			memset(length, 0, rows[i].length_bytes);
			length[rows[i].length_bytes - 1] = (uint8_t)lengths[j];
			if (rows[i].length_bytes > 1)
				length[rows[i].length_bytes - 2] = (uint8_t)(lengths[j] >> 8);
			request_run(&cut, fixture->a, LUN_THIN, cdb, rows[i].cdb_bytes, NULL, 512);
			assert_int_equal(cut.task.status, SCSI_GOOD);
			assert_int_equal(cut.task.in_bytes, MIN_OF(lengths[j], full.task.in_bytes));
			assert_int_equal(cut.task.transfer_bytes, cut.task.in_bytes);
			if (lengths[j] > 0)
				assert_memory_equal(cut.task.in_buf->data, full.task.in_buf->data,
						    cut.task.in_bytes);
			request_release(&cut);
		}
		request_release(&full);
	}
}

/* No buffer in the pool: BUSY, and nothing is lost. */
static void test_no_buffer(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	struct buf *hog[64];
	unsigned count = 0;

	while (count < ARRAY_SIZE(hog) && (hog[count] = buf_new(fixture->pool, MIB)))
		count++;
	request_run(&request, fixture->a, LUN_THIN, CDB(0x12, 0, 0, 0, 0xff, 0), NULL, 255);
	assert_int_equal(request.task.status, SCSI_BUSY);
	request_release(&request);
	request_run(&request, fixture->a, LUN_THIN, CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0), NULL,
		    512);
	assert_int_equal(request.task.status, SCSI_BUSY);
	assert_int_equal(request.task.in_bytes, 0);
	request_release(&request);
	while (count > 0)
		buf_unref(hog[--count]);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
	    CASE(test_inquiry_standard),
	    CASE(test_inquiry_unknown_lun),
	    CASE(test_vpd_list),
	    CASE(test_vpd_identification),
	    CASE(test_vpd_serial_and_limits),
	    CASE(test_capacity),
	    CASE(test_mode_sense),
	    CASE(test_report_luns),
	    CASE(test_allocation_length),
	    CASE(test_no_buffer),
	};

	return cmocka_run_group_tests_name("scsi_data_in", tests, NULL, NULL);
}
