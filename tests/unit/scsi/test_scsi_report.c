/* SPDX-License-Identifier: MIT
 *
 * What the device tells about itself: supported commands and task management functions, log pages,
 * the thin provisioning threshold, the slice map.
 */
#include <stdlib.h>

#include "target/scsi/alua.h"
#include "tests/unit/scsi/fixture.h"

#define TUR CDB(0, 0, 0, 0, 0, 0)

enum { ALL, OPCODE, ACTION, EITHER, TIMEOUTS = 0x80 };

static const uint8_t *opcodes(struct request *request, struct scsi_nexus *nexus, unsigned lun,
			      uint8_t options, uint8_t opcode, uint16_t action)
{
	uint8_t cdb[12] = {0xa3, 0x0c, options, opcode, [8] = 0x80};

	put_be16(cdb + 4, action);
	return request_good_in(request, nexus, lun, cdb, sizeof cdb);
}

static void opcodes_refused(struct scsi_nexus *nexus, uint8_t options, uint8_t opcode)
{
	const uint8_t cdb[12] = {0xa3, 0x0c, options, opcode, [8] = 0x80};
	struct request request = {0};

	request_run(&request, nexus, LUN_THIN, cdb, sizeof cdb, NULL, 4096);
	assert_int_equal(request_sense_code(&request), 0x052400);
	assert_int_equal(request.task.sense[15], 0xc0); /* in the CDB */
	assert_int_equal(get_be16(request.task.sense + 16), 2);
	request_release(&request);
}

/* Every row of the whole list can be asked for alone, in the one way that fits it. */
static void test_opcodes(void **state)
{
	struct fixture *fixture = *state;
	struct request all = {0}, one = {0};
	const uint8_t *data = opcodes(&all, fixture->a, LUN_THIN, ALL, 0, 0);
	unsigned count = get_be32(data) / 8;

	assert_int_equal(get_be32(data), all.task.in_bytes - 4);
	assert_true(count > 40);
	for (const uint8_t *at = data + 4; at < data + all.task.in_bytes; at += 8) {
		bool has_action = at[5] & 0x01;
		const uint8_t *answer;

		assert_int_equal(at[5] & 0x02, 0);
		if (!has_action)
			assert_int_equal(get_be16(at + 2), 0);
		answer = opcodes(&one, fixture->a, LUN_THIN, has_action ? ACTION : OPCODE, at[0],
				 get_be16(at + 2));
		assert_int_equal(answer[1], 3);
		assert_int_equal(get_be16(answer + 2), get_be16(at + 6));
		assert_int_equal(one.task.in_bytes, 4 + get_be16(at + 6));
		assert_int_equal(answer[4], at[0]);
		if (has_action)
			assert_int_equal(answer[5] & 0x1f, get_be16(at + 2));
		request_release(&one);
		answer = opcodes(&one, fixture->a, LUN_THIN, EITHER, at[0], get_be16(at + 2));
		assert_int_equal(answer[1], 3);
		request_release(&one);
		opcodes_refused(fixture->a, has_action ? OPCODE : ACTION, at[0]);
	}
	request_release(&all);
	opcodes_refused(fixture->a, 4, 0);
}

/* The grouping function is not supported: nobody looks at GROUP NUMBER. */
static void test_group_number(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		uint8_t opcode, at;
	} rows[] = {
	    {0x28, 6},	{0x2a, 6},  {0x2e, 6},	{0x2f, 6},  {0x34, 6},	{0x35, 6},  {0x41, 6},
	    {0x42, 6},	{0xa8, 10}, {0xaa, 10}, {0xae, 10}, {0xaf, 10}, {0x88, 14}, {0x89, 14},
	    {0x8a, 14}, {0x8b, 14}, {0x8e, 14}, {0x8f, 14}, {0x90, 14}, {0x91, 14}, {0x93, 14},
	};
	struct request request = {0};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const uint8_t *data =
		    opcodes(&request, fixture->a, LUN_THIN, OPCODE, rows[i].opcode, 0);

		assert_int_equal(data[4 + rows[i].at], 0);
		request_release(&request);
	}
	request_expect(fixture->a, LUN_THIN, CDB(0x28, 0, 0, 0, 0, 0, 0x1f, 0, 1, 0), NULL, 0, 0);
}

static void test_opcode_timeouts(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	const uint8_t *data = opcodes(&request, fixture->a, LUN_THIN, TIMEOUTS | ALL, 0, 0);

	assert_int_equal(get_be32(data) % 20, 0);
	for (const uint8_t *at = data + 4; at < data + request.task.in_bytes; at += 20) {
		assert_int_equal(at[5] & 0x02, 0x02);
		assert_int_equal(get_be16(at + 8), 0x0a);
	}
	request_release(&request);
	data = opcodes(&request, fixture->a, LUN_THIN, TIMEOUTS | OPCODE, 0x28, 0);
	assert_int_equal(data[1], 0x83);
	assert_int_equal(request.task.in_bytes, 4 + 10 + 12);
	assert_int_equal(get_be16(data + 14), 0x0a);
	request_release(&request);
}

static void test_opcodes_absent(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	static const struct {
		unsigned lun;
		uint8_t options, opcode;
		uint16_t action;
		unsigned support;
	} rows[] = {
	    {LUN_THIN, OPCODE, 0x7b, 0, 1},    {LUN_THIN, ACTION, 0x7b, 0, 1},
	    {LUN_THIN, ACTION, 0x9e, 0x1f, 1}, {LUN_THIN, EITHER, 0x28, 1, 1},
	    {LUN_THIN, OPCODE, 0x42, 0, 3},    {LUN_THICK, OPCODE, 0x42, 0, 1}, /* UNMAP */
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		const uint8_t *data = opcodes(&request, fixture->a, rows[i].lun, rows[i].options,
					      rows[i].opcode, rows[i].action);

		assert_int_equal(data[1], rows[i].support);
		if (rows[i].support == 1)
			assert_int_equal(request.task.in_bytes, 4);
		request_release(&request);
	}
}

static void test_functions(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	const uint8_t *data;

	data = request_good_in(&request, fixture->a, LUN_THIN,
			       CDB(0xa3, 0x0d, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0));
	assert_int_equal(request.task.in_bytes, 4);
	assert_int_equal(data[0], 0xda);
	assert_int_equal(data[3], 0);
	request_release(&request);
	data = request_good_in(&request, fixture->a, LUN_THIN,
			       CDB(0xa3, 0x0d, 0x80, 0, 0, 0, 0, 0, 0, 16, 0, 0));
	assert_int_equal(request.task.in_bytes, 16);
	assert_int_equal(data[3], 12);
	request_release(&request);
	request_expect(fixture->a, LUN_THIN, CDB(0xa3, 0x0d, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0), NULL, 0,
		       0x052400);
}

static void test_log_pages(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	const uint8_t *data;

	data = request_good_in(&request, fixture->a, LUN_THIN,
			       CDB(0x4d, 0, 0x40, 0, 0, 0, 0, 1, 0, 0));
	assert_int_equal(get_be16(data + 2), 3);
	assert_memory_equal(data + 4, ((const uint8_t[]){0x00, 0x0c, 0x2f}), 3);
	request_release(&request);
	data = request_good_in(&request, fixture->a, LUN_THICK,
			       CDB(0x4d, 0, 0x40, 0xff, 0, 0, 0, 1, 0, 0));
	assert_int_equal(data[0], 0xc0);
	assert_int_equal(data[1], 0xff);
	assert_memory_equal(data + 4, ((const uint8_t[]){0, 0, 0, 0xff, 0x2f, 0}), 6);
	request_release(&request);
	fixture->thin.pool_total_bytes = 300 * MIB;
	fixture->thin.pool_used_bytes = 45 * MIB;
	data = request_good_in(&request, fixture->a, LUN_THIN,
			       CDB(0x4d, 0, 0x4c, 0, 0, 0, 0, 1, 0, 0));
	assert_int_equal(request.task.in_bytes, 4 + 24);
	assert_int_equal(data[0] & 0x3f, 0x0c);
	assert_int_equal(get_be16(data + 4), 1); /* available */
	assert_int_equal(get_be32(data + 8), 255);
	assert_int_equal(data[12], 2);		  /* shared */
	assert_int_equal(get_be16(data + 16), 2); /* used */
	assert_int_equal(get_be32(data + 20), THIN_BYTES / MIB);
	request_release(&request);
	data = request_good_in(&request, fixture->a, LUN_THIN,
			       CDB(0x4d, 0, 0x4c, 0, 0, 0, 2, 1, 0, 0));
	assert_int_equal(get_be16(data + 4), 2); /* from parameter 2 on */
	request_release(&request);
	data = request_good_in(&request, fixture->a, LUN_THIN,
			       CDB(0x4d, 0, 0x6f, 0, 0, 0, 0, 1, 0, 0));
	assert_int_equal(request.task.in_bytes, 4 + 8);
	assert_memory_equal(data + 8, ((const uint8_t[]){0, 0, 0xff}), 3); /* no temperature */
	request_release(&request);
}

static void test_log_refused(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		unsigned lun;
		uint8_t cdb[10];
	} rows[] = {
	    {LUN_THICK, {0x4d, 0, 0x4c, 0, 0, 0, 0, 1, 0, 0}}, /* thin volumes only */
	    {LUN_THIN, {0x4d, 0, 0x50, 0, 0, 0, 0, 1, 0, 0}},
	    {LUN_THIN, {0x4d, 0, 0x4c, 1, 0, 0, 0, 1, 0, 0}},
	    {LUN_THIN, {0x4d, 1, 0x4c, 0, 0, 0, 0, 1, 0, 0}}, /* SP */
	    {LUN_THIN, {0x4d, 0, 0x8c, 0, 0, 0, 0, 1, 0, 0}}, /* threshold values */
	    {LUN_THIN, {0x4d, 0, 0x4c, 0, 0, 0, 3, 1, 0, 0}}, /* beyond the last */
	    {LUN_THIN, {0x4d, 0, 0x40, 0, 0, 0, 1, 1, 0, 0}},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		request_expect(fixture->a, rows[i].lun, rows[i].cdb, sizeof rows[i].cdb, NULL, 0,
			       0x052400);
}

static void test_threshold(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		unsigned percent;
		bool told;
	} steps[] = {
	    {50, false}, {79, false}, {80, true},  {95, false}, {78, false},  {85, false},
	    {75, false}, {81, false}, {74, false}, {80, true},	{100, false},
	};

	fixture->thin.thin_threshold_percent = 80;
	fixture->thin.pool_total_bytes = 100 * MIB;
	for (unsigned i = 0; i < ARRAY_SIZE(steps); i++) {
		uint32_t code = steps[i].told ? 0x063807 : 0;

		fixture->thin.pool_used_bytes = steps[i].percent * MIB;
		request_expect(fixture->a, LUN_THIN, TUR, NULL, 0, code);
		request_expect(fixture->b, LUN_THIN, TUR, NULL, 0, code);
		request_expect(fixture->a, LUN_THIN, TUR, NULL, 0, 0);
		request_expect(fixture->a, LUN_THICK, TUR, NULL, 0, 0);
	}
	/* INQUIRY neither tells nor takes it */
	fixture->thin.pool_used_bytes = 10 * MIB;
	request_expect(fixture->a, LUN_THIN, TUR, NULL, 0, 0);
	fixture->thin.pool_used_bytes = 90 * MIB;
	request_expect(fixture->a, LUN_THIN, CDB(0x12, 0, 0, 0, 36, 0), NULL, 0, 0);
	request_expect(fixture->a, LUN_THIN, TUR, NULL, 0, 0x063807);
}

static const uint8_t *referrals(struct request *request, struct scsi_nexus *nexus, uint64_t lba,
				uint32_t allocation, bool one)
{
	uint8_t cdb[16] = {0x9e, 0x13, [14] = one};

	put_be64(cdb + 2, lba);
	put_be32(cdb + 10, allocation);
	return request_good_in(request, nexus, LUN_THIN, cdb, sizeof cdb);
}

static void test_referrals_of_members(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	const struct member *one = (const struct member *)fixture; /* only compared */
	const struct member *two = (const struct member *)state;
	const uint64_t slice = MIB / 512;
	const uint8_t *data;

	scsi_alua_set_member(fixture->device, 1, one);
	scsi_alua_set_member(fixture->device, 2, two);
	fixture->thin.slice_bytes = MIB;
	fixture->thin.slices[0] = one;
	fixture->thin.slices[1] = two;
	fixture->thin.slices[2] = NULL;
	fixture->thin.slices[3] = one;
	data = referrals(&request, fixture->a, 5, 4096, false);
	assert_int_equal(get_be32(data), request.task.in_bytes - 4);
	assert_int_equal(request.task.in_bytes, 4 + 4 * 20 + 5 * 4);
	assert_int_equal(data[7], 1);
	assert_int_equal(get_be64(data + 8), 5);
	assert_int_equal(get_be64(data + 16), slice - 1);
	assert_int_equal(get_be16(data + 26), 1);
	assert_int_equal(data[24], ALUA_OPTIMIZED);
	assert_int_equal(get_be64(data + 32), slice);
	assert_int_equal(get_be16(data + 50), 2);
	assert_int_equal(data[55], 2); /* not mapped yet: either group */
	assert_int_equal(get_be64(data + 56), 2 * slice);
	request_release(&request);
	data = referrals(&request, fixture->a, slice, 4096, true);
	assert_int_equal(request.task.in_bytes, 4 + 24);
	assert_int_equal(get_be64(data + 16), 2 * slice - 1);
	request_release(&request);
	referrals(&request, fixture->a, 0, 10, false);
	assert_int_equal(request.task.in_bytes, 10);
	request_release(&request);
	/* Pages have moved: each nexus is told once. */
	fixture->thin.slice_changes++;
	request_expect(fixture->a, LUN_THIN, CDB(0, 0, 0, 0, 0, 0), NULL, 0, 0x063f15);
	request_expect(fixture->a, LUN_THIN, CDB(0, 0, 0, 0, 0, 0), NULL, 0, 0);
	request_expect(fixture->b, LUN_THIN, CDB(0, 0, 0, 0, 0, 0), NULL, 0, 0x063f15);
	request_expect(fixture->b, LUN_THIN, CDB(0, 0, 0, 0, 0, 0), NULL, 0, 0);
}

static void test_referrals(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	uint8_t cdb[16] = {0x9e, 0x13, [13] = 255};
	const uint8_t *data;

	/* Controllers, not members: each leads everywhere. */
	fixture->thin.slices[0] = (const struct member *)fixture;
	data = referrals(&request, fixture->a, 0, 4096, false);
	assert_int_equal(request.task.in_bytes, 4 + 20 + 8);
	assert_int_equal(data[7], 2);
	assert_int_equal(get_be64(data + 16), THIN_BYTES / 512 - 1);
	request_release(&request);
	/* So nobody need know that pages move. */
	fixture->thin.slice_changes++;
	request_expect(fixture->a, LUN_THIN, CDB(0, 0, 0, 0, 0, 0), NULL, 0, 0);
	put_be64(cdb + 2, THIN_BYTES / 512);
	request_expect(fixture->a, LUN_THIN, cdb, sizeof cdb, NULL, 0, 0x052100);
	data = request_good_in(&request, fixture->a, LUN_THIN, CDB(0x12, 1, 0xb3, 0, 0xff, 0));
	assert_int_equal(request.task.in_bytes, 16);
	assert_int_equal(get_be32(data + 8), 0);
	request_release(&request);
	data = request_good_in(&request, fixture->a, LUN_THIN, CDB(0x12, 1, 0x86, 0, 0xff, 0));
	assert_int_equal(data[8] & 0x10, 0x10); /* R_SUP */
	assert_int_equal(data[13], SCSI_SENSE_MAX_BYTES);
	request_release(&request);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
	    CASE(test_opcodes),	       CASE(test_opcode_timeouts),
	    CASE(test_opcodes_absent), CASE(test_functions),
	    CASE(test_log_pages),      CASE(test_log_refused),
	    CASE(test_threshold),      CASE(test_referrals_of_members),
	    CASE(test_referrals),      CASE(test_group_number),
	};

	return cmocka_run_group_tests_name("scsi_report", tests, NULL, NULL);
}
