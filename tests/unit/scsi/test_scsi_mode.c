/* SPDX-License-Identifier: MIT
 *
 * MODE SENSE and MODE SELECT, and what the parameters do: software write protection, sense format,
 * write cache.
 */
#include "tests/unit/scsi/fixture.h"

#define TUR	  CDB(0, 0, 0, 0, 0, 0)
#define WRITE_ONE CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0)
#define SELECT(n) CDB(0x15, 0x10, 0, 0, (n), 0)

enum { CONTROL_BYTES = 12, CACHING_BYTES = 20 };

/* A MODE SELECT (6) list with the current page CODE; returns its length. */
static unsigned current_list(struct scsi_nexus *nexus, unsigned lun, uint8_t code, uint8_t *out)
{
	struct request request = {0};
	const uint8_t cdb[] = {0x1a, 0x08, code, 0, 0xff, 0};
	const uint8_t *data = request_good_in(&request, nexus, lun, cdb, sizeof cdb);
	unsigned bytes = request.task.in_bytes;

	memset(out, 0, 4);
	memcpy(out + 4, data + 4, bytes - 4);
	request_release(&request);
	return bytes;
}

static void set_control(struct scsi_nexus *nexus, unsigned lun, uint8_t d_sense, uint8_t swp)
{
	uint8_t list[64];
	unsigned bytes = current_list(nexus, lun, 0x0a, list);

	assert_int_equal(bytes, 4 + CONTROL_BYTES);
	list[4 + 2] = (uint8_t)((list[4 + 2] & ~0x04) | d_sense);
	list[4 + 4] = (uint8_t)((list[4 + 4] & ~0x08) | swp);
	request_expect(nexus, lun, SELECT((uint8_t)bytes), list, bytes, 0);
}

static void test_page_controls(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	const uint8_t *data;

	data = request_good_in(&request, fixture->a, LUN_THIN, CDB(0x1a, 8, 0x48, 0, 0xff, 0));
	for (unsigned i = 2; i < CACHING_BYTES; i++)
		assert_int_equal(data[4 + i], i == 2 ? 0x04 : 0); /* WCE */
	request_release(&request);
	data = request_good_in(&request, fixture->a, LUN_THIN, CDB(0x1a, 8, 0x4a, 0, 0xff, 0));
	for (unsigned i = 2; i < CONTROL_BYTES; i++) /* D_SENSE, SWP */
		assert_int_equal(data[4 + i], i == 2 ? 0x04 : i == 4 ? 0x08 : 0);
	request_release(&request);

	set_control(fixture->a, LUN_THIN, 0, 0x08);
	data = request_good_in(&request, fixture->a, LUN_THIN, CDB(0x1a, 8, 0x8a, 0, 0xff, 0));
	assert_int_equal(data[4 + 4], 0); /* the default is still the default */
	request_release(&request);
	request_expect(fixture->a, LUN_THIN, CDB(0x1a, 0, 0xca, 0, 0xff, 0), NULL, 0, 0x053900);
}

static void test_subpages(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	const uint8_t *data;

	data = request_good_in(&request, fixture->a, LUN_THIN, CDB(0x1a, 8, 0x0a, 0x01, 0xff, 0));
	assert_int_equal(request.task.in_bytes, 4 + 32);
	assert_int_equal(data[4], 0x4a); /* SPF */
	assert_int_equal(data[5], 0x01);
	assert_int_equal(get_be16(data + 6), 28);
	request_release(&request);
	data = request_good_in(&request, fixture->a, LUN_THIN, CDB(0x1a, 8, 0x0a, 0xff, 0xff, 0));
	assert_int_equal(request.task.in_bytes, 4 + 12 + 32);
	assert_int_equal(data[4], 0x0a);
	assert_int_equal(data[16], 0x4a);
	request_release(&request);
	request_good_in(&request, fixture->a, LUN_THIN, CDB(0x1a, 8, 0x3f, 0xff, 0xff, 0));
	assert_int_equal(request.task.in_bytes, 4 + 12 + 20 + 12 + 32 + 12);
	request_release(&request);
	fixture->thin.thin_threshold_percent = 80;
	fixture->thin.pool_total_bytes = 1000 * MIB;
	data = request_good_in(&request, fixture->a, LUN_THIN, CDB(0x1a, 8, 0x1c, 0x02, 0xff, 0));
	assert_int_equal(request.task.in_bytes, 4 + 24);
	assert_int_equal(data[4 + 16], 0x80);
	assert_int_equal(data[4 + 17], 0x01);
	assert_int_equal(get_be32(data + 4 + 20), 200); /* 20% of 1000 MiB */
	request_release(&request);
	request_expect(fixture->a, LUN_THIN, CDB(0x1a, 8, 0x3f, 0x01, 0xff, 0), NULL, 0, 0x052400);
	request_expect(fixture->a, LUN_THICK, CDB(0x1a, 8, 0x1c, 0x02, 0xff, 0), NULL, 0, 0x052400);
}

static bool reports_write_protected(struct scsi_nexus *nexus, unsigned lun)
{
	struct request six = {0}, ten = {0};
	uint8_t six_bits = request_good_in(&six, nexus, lun, CDB(0x1a, 8, 0x0a, 0, 0xff, 0))[2];
	uint8_t ten_bits =
	    request_good_in(&ten, nexus, lun, CDB(0x5a, 8, 0x0a, 0, 0, 0, 0, 0, 0xff, 0))[3];

	request_release(&six);
	request_release(&ten);
	assert_int_equal(six_bits & 0x80, ten_bits & 0x80);
	return six_bits & 0x80;
}

static void test_software_write_protect(void **state)
{
	struct fixture *fixture = *state;
	static const uint8_t block[512];

	assert_false(reports_write_protected(fixture->a, LUN_THIN));
	set_control(fixture->a, LUN_THIN, 0, 0x08);
	assert_true(reports_write_protected(fixture->a, LUN_THIN));
	assert_false(reports_write_protected(fixture->a, LUN_THICK));
	request_expect(fixture->a, LUN_THIN, WRITE_ONE, block, sizeof block, 0x072702);
	request_expect(fixture->a, LUN_THIN, CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0), NULL, 0, 0);
	assert_int_equal(fixture->thin.writes, 0);
	set_control(fixture->a, LUN_THIN, 0, 0);
	request_expect(fixture->a, LUN_THIN, WRITE_ONE, block, sizeof block, 0);
	assert_int_equal(fixture->thin.writes, 1);
}

/* Other nexuses are told of a change, once; nobody of what changes nothing. */
static void test_attention(void **state)
{
	struct fixture *fixture = *state;

	set_control(fixture->a, LUN_THIN, 0, 0);
	request_expect(fixture->b, LUN_THIN, TUR, NULL, 0, 0);
	set_control(fixture->a, LUN_THIN, 0, 0x08);
	set_control(fixture->a, LUN_THIN, 0, 0);
	request_expect(fixture->a, LUN_THIN, TUR, NULL, 0, 0);
	request_expect(fixture->b, LUN_THICK, TUR, NULL, 0, 0);
	request_expect(fixture->b, LUN_THIN, TUR, NULL, 0, 0x062a01);
	request_expect(fixture->b, LUN_THIN, TUR, NULL, 0, 0);
}

static void test_descriptor_sense(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	const struct scsi_task *task = &request.task;
	const uint8_t *data;

	set_control(fixture->a, LUN_THIN, 0x04, 0);
	/* The unit attention of it comes in the new format already. */
	request_run(&request, fixture->b, LUN_THIN, TUR, NULL, 0);
	assert_int_equal(task->sense[0], 0x72);
	assert_int_equal(task->sense[1], 0x06);
	assert_int_equal(get_be16(task->sense + 2), 0x2a01);
	assert_int_equal(task->sense_bytes, 8 + task->sense[7]);
	request_release(&request);
	request_run(&request, fixture->b, LUN_THIN, CDB(0xa3, 0x0c, 7, 0, 0, 0, 0, 0, 1, 0, 0, 0),
		    NULL, 256);
	assert_int_equal(task->sense[0], 0x72);
	assert_int_equal(get_be16(task->sense + 2), 0x2400);
	assert_int_equal(task->sense_bytes, 16);
	assert_int_equal(task->sense[7], 8);
	assert_int_equal(task->sense[8], 0x02); /* sense key specific: CDB byte 2 */
	assert_int_equal(task->sense[12], 0xc0);
	assert_int_equal(get_be16(task->sense + 13), 2);
	request_release(&request);
	/* Faults of the transport come in it too. */
	request_prepare(&request, fixture->b, LUN_THIN, WRITE_ONE, 512);
	assert_int_equal(request.prepared, SCSI_NEEDS_DATA);
	scsi_abort(&request.task);
	assert_int_equal(request.done_count, 1);
	scsi_task_fault(&request.task, 0x47, 0x05);
	assert_int_equal(task->status, SCSI_CHECK_CONDITION);
	assert_int_equal(get_be32(task->sense), 0x720b4705);
	assert_int_equal(task->sense_bytes, 8);
	request_release(&request);
	/* Other logical units and REQUEST SENSE, which asks by its DESC bit, are as they were. */
	request_expect(fixture->b, LUN_THICK, CDB(0x7b, 0, 0, 0, 0, 0), NULL, 0, 0x052000);
	data = request_good_in(&request, fixture->a, LUN_THIN, CDB(0x03, 0, 0, 0, 0xff, 0));
	assert_int_equal(data[0], 0x70);
	request_release(&request);
	data = request_good_in(&request, fixture->a, LUN_THIN, CDB(0x03, 1, 0, 0, 0xff, 0));
	assert_int_equal(data[0], 0x72);
	request_release(&request);
	set_control(fixture->a, LUN_THIN, 0, 0);
	request_expect(fixture->b, LUN_THIN, TUR, NULL, 0, 0x062a01);
}

static void test_write_cache(void **state)
{
	struct fixture *fixture = *state;
	static const uint8_t block[512];
	uint8_t list[64];
	unsigned bytes = current_list(fixture->a, LUN_THIN, 0x08, list);

	request_expect(fixture->a, LUN_THIN, WRITE_ONE, block, sizeof block, 0);
	assert_int_equal(fixture->thin.last.flags & IO_FUA, 0);
	list[4 + 2] &= (uint8_t)~0x04;
	request_expect(fixture->a, LUN_THIN, SELECT((uint8_t)bytes), list, bytes, 0);
	request_expect(fixture->a, LUN_THIN, WRITE_ONE, block, sizeof block, 0);
	assert_int_equal(fixture->thin.last.flags & IO_FUA, IO_FUA);
	list[4 + 2] |= 0x04;
	request_expect(fixture->a, LUN_THIN, SELECT((uint8_t)bytes), list, bytes, 0);
	request_expect(fixture->a, LUN_THIN, WRITE_ONE, block, sizeof block, 0);
	assert_int_equal(fixture->thin.last.flags & IO_FUA, 0);
}

static void nothing(void *arg) {}

static void test_reset_brings_defaults(void **state)
{
	struct fixture *fixture = *state;
	static const uint8_t lun[8];

	set_control(fixture->a, LUN_THIN, 0x04, 0x08);
	assert_true(reports_write_protected(fixture->a, LUN_THIN));
	assert_int_equal(scsi_reset_lu(fixture->a, lun, nothing, NULL), 0);
	request_expect(fixture->a, LUN_THIN, TUR, NULL, 0, 0x062903); /* in fixed format */
	assert_false(reports_write_protected(fixture->a, LUN_THIN));
}

static void test_bad_lists(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		uint8_t bytes, list[64];
		uint32_t code;
	} rows[] = {
	    {0, {0}, 0},
	    {3, {0}, 0x051a00},		  /* header cut */
	    {4, {0}, 0},		  /* no page */
	    {4, {0, 1}, 0x052600},	  /* medium type */
	    {8, {0, 0, 0, 8}, 0x051a00},  /* block descriptor cut */
	    {12, {0, 0, 0, 7}, 0x052600}, /* of another length */
	    {12, {[3] = 8, [10] = 2}, 0}, /* 512-byte blocks, count 0: as is */
	    {12, {[3] = 8, 0xff, 0xff, 0xff, 0xff, [10] = 2}, 0},
	    {12, {[3] = 8, [10] = 16}, 0x052600},	  /* 4 KiB blocks */
	    {12, {[3] = 8, [7] = 1, [10] = 2}, 0x052600}, /* one block */
	    {5, {[4] = 0x0a}, 0x051a00},		  /* page header cut */
	    {6, {[4] = 0x0a, 10}, 0x051a00},		  /* page cut */
	    {16, {[4] = 0x0a, 11}, 0x052600},		  /* page of another length */
	    {16, {[4] = 0x1d, 10}, 0x052600},		  /* no such page */
	    {7, {[4] = 0x4a, 1, 0}, 0x051a00},		  /* subpage header cut */
	    {16, {[4] = 0x4a, 2, 0, 8}, 0x052600},	  /* no such subpage */
	    {16, {[4] = 0x0a, 10}, 0x052600},		  /* clears what cannot change */
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		request_expect(fixture->a, LUN_THIN, SELECT(rows[i].bytes), rows[i].list,
			       rows[i].bytes, rows[i].code);
	/* SP, RTD, and a list without PF */
	request_expect(fixture->a, LUN_THIN, CDB(0x15, 0x11, 0, 0, 4, 0), rows[0].list, 4,
		       0x052400);
	request_expect(fixture->a, LUN_THIN, CDB(0x15, 0x12, 0, 0, 4, 0), rows[0].list, 4,
		       0x052400);
	request_expect(fixture->a, LUN_THIN, CDB(0x15, 0x00, 0, 0, 4, 0), rows[0].list, 4,
		       0x052400);
	request_expect(fixture->a, LUN_THIN, CDB(0x15, 0x00, 0, 0, 0, 0), NULL, 0, 0);
}

/* A good page before a bad one has no effect; the sense tells the bad byte. */
static void test_all_or_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	uint8_t list[64] = {0}, caching[64];
	unsigned bytes = current_list(fixture->a, LUN_THIN, 0x0a, list);
	unsigned more = current_list(fixture->a, LUN_THIN, 0x08, caching) - 4;

	list[4 + 4] |= 0x08; /* SWP */
	memcpy(list + bytes, caching + 4, more);
	list[bytes + 3] = 0x55;
	request_run(&request, fixture->a, LUN_THIN, SELECT((uint8_t)(bytes + more)), list,
		    bytes + more);
	assert_int_equal(request_sense_code(&request), 0x052600);
	assert_int_equal(request.task.sense[15], 0x80); /* SKSV, in the parameter list */
	assert_int_equal(get_be16(request.task.sense + 16), bytes + 3);
	request_release(&request);
	assert_false(reports_write_protected(fixture->a, LUN_THIN));
	list[bytes + 3] = 0;
	request_expect(fixture->a, LUN_THIN, SELECT((uint8_t)(bytes + more)), list, bytes + more,
		       0);
	assert_true(reports_write_protected(fixture->a, LUN_THIN));
}

static void test_select_ten(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	uint8_t list[64] = {0};
	const uint8_t *data = request_good_in(&request, fixture->a, LUN_HUGE,
					      CDB(0x5a, 0x10, 0x0a, 0, 0, 0, 0, 0, 0xff, 0));
	uint8_t bytes = (uint8_t)request.task.in_bytes;

	memcpy(list, data, bytes);
	request_release(&request);
	put_be16(list, 0);
	list[3] = 0;
	list[8 + 16 + 4] |= 0x08;
	request_expect(fixture->a, LUN_HUGE, CDB(0x55, 0x10, 0, 0, 0, 0, 0, 0, bytes, 0), list,
		       bytes, 0);
	assert_true(reports_write_protected(fixture->a, LUN_HUGE));
	put_be64(list + 8, 17);
	request_expect(fixture->a, LUN_HUGE, CDB(0x55, 0x10, 0, 0, 0, 0, 0, 0, bytes, 0), list,
		       bytes, 0x052600);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
	    CASE(test_page_controls),	 CASE(test_subpages),
	    CASE(test_attention),	 CASE(test_software_write_protect),
	    CASE(test_descriptor_sense), CASE(test_write_cache),
	    CASE(test_bad_lists),	 CASE(test_reset_brings_defaults),
	    CASE(test_all_or_nothing),	 CASE(test_select_ten),
	};

	return cmocka_run_group_tests_name("scsi_mode", tests, NULL, NULL);
}
