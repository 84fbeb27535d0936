/* SPDX-License-Identifier: MIT
 *
 * Faults that other targets had in SCSI commands: allocation lengths, unit attentions, UNMAP, LUN
 * encoding (see test_prior_login.c).
 */
#include "tests/iscsi/real_fixture.h"

/* ---- 62 ---- */

struct data_in_command {
	uint8_t cdb[16];
	uint8_t at, bytes; /* where the allocation length stands */
	uint8_t least;	   /* SPC-4 wants an error below it */
};

static const struct data_in_command data_in_commands[] = {
    {{0x12}, 3, 2}, /* INQUIRY */
    {{0x12, 1, 0x00}, 3, 2},
    {{0x12, 1, 0x80}, 3, 2},
    {{0x12, 1, 0x83}, 3, 2},
    {{0x12, 1, 0x86}, 3, 2},
    {{0x12, 1, 0xb0}, 3, 2},
    {{0x12, 1, 0xb1}, 3, 2},
    {{0x12, 1, 0xb2}, 3, 2},
    {{0x12, 1, 0xb3}, 3, 2},
    {{0x03}, 4, 1}, /* REQUEST SENSE */
    {{0x03, 1}, 4, 1},
    {{0x1a, 0, 0x3f}, 4, 1}, /* MODE SENSE (6) */
    {{0x1a, 8, 0x3f}, 4, 1},
    {{0x1a, 0, 0x0a}, 4, 1},
    {{0x1a, 0, 0x08}, 4, 1},
    {{0x5a, 0, 0x3f}, 7, 2}, /* MODE SENSE (10) */
    {{0x5a, 0x10, 0x3f}, 7, 2},
    {{0x9e, 0x10}, 10, 4}, /* READ CAPACITY (16) */
    {{0x9e, 0x12}, 10, 4}, /* GET LBA STATUS */
    {{0x9e, 0x13}, 10, 4}, /* REPORT REFERRALS */
    {{0xa0}, 6, 4},	   /* REPORT LUNS */
    {{0xa0, 0, 2}, 6, 4},
    {{0xa3, 0x0a}, 6, 4}, /* REPORT TARGET PORT GROUPS */
    {{0xa3, 0x0c}, 6, 4}, /* REPORT SUPPORTED OPERATION CODES */
    {{0xa3, 0x0c, 0x81, 0x12}, 6, 4},
    {{0xa3, 0x0d}, 6, 4, 4}, /* REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS */
    {{0x5e, 0}, 7, 2},	     /* PERSISTENT RESERVE IN */
    {{0x5e, 1}, 7, 2},
    {{0x5e, 2}, 7, 2},
    {{0x5e, 3}, 7, 2},
    {{0x4d, 0, 0x40}, 7, 2}, /* LOG SENSE */
    {{0x37}, 7, 2},	     /* READ DEFECT DATA (10) */
    {{0xb7}, 6, 4},	     /* (12) */
};

static struct real_answer data_in_run(struct real_fixture *f, struct pdu_client *c, unsigned lun,
				      const struct data_in_command *command, uint32_t allocation,
				      uint32_t edtl)
{
	uint8_t cdb[16], length[4];

	memcpy(cdb, command->cdb, sizeof cdb);
	put_be32(length, allocation);
	memcpy(cdb + command->at, length + 4 - command->bytes, command->bytes);
	return real_run(f, c, lun, FLAG_READ, cdb, sizeof cdb, edtl, NULL, 0);
}

static void allocation_check(struct real_fixture *f, struct pdu_client *c, unsigned lun,
			     const struct data_in_command *command)
{
	static const uint32_t lengths[] = {0,  1,  2,  3,  4,  5,  7,  8,   9,	 11,  12,  16,
					   18, 24, 35, 36, 64, 95, 96, 255, 511, 512, 4096};
	uint32_t most = command->bytes == 1 ? 255 : 4096, whole;
	static uint8_t full[4096];
	struct real_answer answer = data_in_run(f, c, lun, command, most, most);

	if (answer.sense == 0x052000 || answer.sense == 0x052400)
		return; /* not on this logical unit */
	assert_int_equal(answer.status, SCSI_GOOD);
	whole = answer.data_bytes;
	memcpy(full, f->back, whole);
	for (size_t i = 0; i < ARRAY_SIZE(lengths) * 2; i++) {
		uint32_t allocation = lengths[i / 2], fits = MIN_OF(allocation, whole);
		uint32_t edtl = i % 2 ? most : allocation;

		if (allocation > most)
			continue;
		answer = data_in_run(f, c, lun, command, allocation, edtl);
		if (allocation < command->least) {
			assert_int_equal(answer.sense, 0x052400);
			continue;
		}
		assert_int_equal(answer.status, SCSI_GOOD);
		assert_int_equal(answer.data_bytes, fits);
		assert_memory_equal(f->back, full, fits); /* length fields stay as they are */
		assert_int_equal(answer.overflow, 0);
		assert_int_equal(answer.underflow, edtl - fits);
	}
	real_alive(f, c);
}

static void bug_62_allocation_length_of_every_command(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, NULL, 0);

	for (unsigned lun = 0; lun < REAL_LUN_COUNT; lun++) {
		for (size_t i = 0; i < ARRAY_SIZE(data_in_commands); i++)
			allocation_check(f, c, lun, &data_in_commands[i]);
	}
}

/* ---- 63 ---- */

static void bug_63_request_sense_and_inquiry_without_room(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login_only(f, 0, NULL, 0);
	struct real_answer answer;

	/* INQUIRY and REPORT LUNS leave the unit attention alone, with and without room. */
	for (unsigned length = 0; length < 40; length++) {
		answer = real_run(f, c, 0, FLAG_READ, CDB(0x12, 0, 0, 0, (uint8_t)length, 0),
				  length, NULL, 0);
		assert_int_equal(answer.status, SCSI_GOOD);
		answer = real_run(f, c, 0, FLAG_READ,
				  CDB(0xa0, 0, 0, 0, 0, 0, 0, 0, 0, (uint8_t)length, 0, 0), length,
				  NULL, 0);
		assert_int_equal(answer.status, SCSI_GOOD);
	}
	/* A REQUEST SENSE that fails has reported nothing. */
	answer = real_run(f, c, 0, FLAG_READ, CDB(0x03, 0, 0, 0, 18, 0x04), 18, NULL, 0);
	assert_int_equal(answer.sense, 0x052400);
	/* One without room has, on this unit alone. */
	answer = real_run(f, c, 0, FLAG_READ, CDB(0x03, 0, 0, 0, 0, 0), 0, NULL, 0);
	assert_int_equal(answer.status, SCSI_GOOD);
	assert_int_equal(answer.data_bytes, 0);
	assert_int_equal(real_attention(f, c, 0), 0);
	assert_int_equal(real_attention(f, c, 1), 0x062900);
	/* Cut short, the additional sense length still says what there is. */
	for (uint8_t length = 8; length <= 18; length++) {
		answer =
		    real_run(f, c, 0, FLAG_READ, CDB(0x03, 0, 0, 0, length, 0), length, NULL, 0);
		assert_int_equal(answer.data_bytes, length);
		assert_int_equal(f->back[7], 10);
	}
	answer = real_run(f, c, 2, FLAG_READ, CDB(0x03, 0, 0, 0, 8, 0), 8, NULL, 0);
	assert_int_equal(answer.status, SCSI_GOOD);
	assert_int_equal(f->back[2], 6);
	assert_int_equal(real_attention(f, c, 2), 0);
}

/* ---- 65 ---- */

struct descriptor {
	uint64_t lba;
	uint32_t blocks;
};

/* UNMAP with a parameter list of LIST_BYTES that holds COUNT descriptors; header fields as given.
 */
static uint32_t unmap_raw(struct real_fixture *f, struct pdu_client *c, const struct descriptor *d,
			  unsigned count, uint16_t data_bytes, uint16_t list_bytes)
{
	uint8_t cdb[10] = {0x42};
	uint8_t *list = f->pattern;

	memset(list, 0, 65536);
	put_be16(list, (uint16_t)(data_bytes + 6));
	put_be16(list + 2, data_bytes);
	for (unsigned i = 0; i < count; i++) {
		put_be64(list + 8 + i * 16, d[i].lba);
		put_be32(list + 16 + i * 16, d[i].blocks);
	}
	put_be16(cdb + 7, list_bytes);
	return real_run(f, c, 0, FLAG_WRITE, cdb, sizeof cdb, list_bytes, NULL, 0).sense;
}

static uint32_t unmap(struct real_fixture *f, struct pdu_client *c, const struct descriptor *d,
		      unsigned count)
{
	return unmap_raw(f, c, d, count, (uint16_t)(count * 16), (uint16_t)(8 + count * 16));
}

static void bug_65_unmap_limits_are_those_of_vpd_b0(void **state)
{
	enum { SOME = 4000 };
	static struct descriptor many[SOME];
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, NULL, 0);
	uint32_t max_blocks, max_descriptors;
	uint64_t capacity = REAL_VOLUME_BYTES / 512;

	real_run(f, c, 0, FLAG_READ, CDB(0x12, 1, 0xb0, 0, 64, 0), 64, NULL, 0);
	max_blocks = get_be32(f->back + 20);
	max_descriptors = get_be32(f->back + 24);
	assert_in_range(max_descriptors, 1, SOME - 1);
	assert_true(max_blocks > 0);
	for (unsigned i = 0; i < SOME; i++)
		many[i] = (struct descriptor){i, 1};
	assert_int_equal(unmap(f, c, many, max_descriptors), 0);
	assert_int_equal(unmap(f, c, many, max_descriptors + 1) >> 8, 0x0526);
	if (max_blocks < capacity) {
		assert_int_equal(unmap(f, c, &(struct descriptor){0, max_blocks}, 1), 0);
		assert_int_equal(unmap(f, c, &(struct descriptor){0, max_blocks + 1}, 1) >> 8,
				 0x0526);
	} else {
		/* More than the unit has is too much for another reason; the sum counts as well. */
		for (unsigned i = 0; i < max_descriptors; i++)
			many[i] = (struct descriptor){0, (uint32_t)capacity};
		assert_int_equal(unmap(f, c, many, 1), 0);
		if (max_blocks / capacity + 1 <= max_descriptors)
			assert_int_equal(
			    unmap(f, c, many, (unsigned)(max_blocks / capacity) + 1) >> 8, 0x0526);
	}
	real_alive(f, c);
}

static void bug_65_unmap_lists_of_any_length(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, NULL, 0);
	const struct descriptor two[] = {{0, 8}, {8, 8}};

	assert_int_equal(unmap_raw(f, c, NULL, 0, 0, 0), 0); /* nothing to do is no error */
	assert_int_equal(unmap_raw(f, c, NULL, 0, 0, 8), 0);
	for (uint16_t bytes = 1; bytes < 8; bytes++)
		assert_int_equal(unmap_raw(f, c, two, 2, 32, bytes), 0x051a00);
	for (uint16_t bytes = 8; bytes < 40; bytes++)
		assert_int_equal(unmap_raw(f, c, two, 2, 32, bytes), 0x051a00);
	for (uint16_t bytes = 0; bytes < 16; bytes++) /* no whole descriptor */
		assert_int_equal(unmap_raw(f, c, two, 2, bytes, 40), 0);
	assert_int_equal(unmap_raw(f, c, two, 2, 0xfff0, 40), 0x051a00);
	real_alive(f, c);
}

static void bug_65_unmap_of_one_bad_descriptor_does_nothing(void **state)
{
	static const uint64_t end = REAL_VOLUME_BYTES / 512;
	static const struct descriptor bad[] = {
	    {REAL_VOLUME_BYTES / 512, 1},
	    {REAL_VOLUME_BYTES / 512 - 1, 2},
	    {UINT64_MAX, 1},
	    {UINT64_MAX, 0},
	    {1, UINT32_MAX},
	    {UINT64_MAX - 7, 16},
	    {UINT64_C(1) << 63, 8},
	    {REAL_VOLUME_BYTES / 512 + 1, 0},
	};
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, NULL, 0);
	uint8_t data[4096];

	real_pattern(data, sizeof data, 9);
	real_write(f, c, 0, 0, 8, data);
	for (size_t i = 0; i < ARRAY_SIZE(bad) * 3; i++) {
		struct descriptor three[3] = {{0, 2}, {2, 2}, {4, 2}};
		uint32_t sense;

		three[i % 3] = bad[i / 3];
		sense = unmap(f, c, three, 3);
		assert_true(sense == 0x052100 || sense >> 8 == 0x0526);
		assert_memory_equal(real_read(f, c, 0, 0, 8), data, sizeof data);
	}
	/* Nothing at the very end is nothing wrong. */
	assert_int_equal(unmap(f, c, (const struct descriptor[]){{end, 0}, {0, 0}}, 2), 0);
	assert_memory_equal(real_read(f, c, 0, 0, 8), data, sizeof data);
}

/* ---- 70 ---- */

static void bug_70_what_esxi_needs_for_vmfs(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, NULL, 0);
	struct real_answer answer;

	for (unsigned lun = 0; lun < REAL_LUN_COUNT; lun++) {
		answer = real_run(f, c, lun, 0, CDB(0x16, 0, 0, 0, 0, 0), 0, NULL, 0);
		assert_int_equal(answer.status, SCSI_GOOD);
		answer = real_run(f, c, lun, 0, CDB(0x17, 0, 0, 0, 0, 0), 0, NULL, 0);
		assert_int_equal(answer.status, SCSI_GOOD);
		answer =
		    real_run(f, c, lun, FLAG_READ, CDB(0x1a, 8, 0x0a, 0, 255, 0), 255, NULL, 0);
		assert_int_equal(answer.status, SCSI_GOOD);
		assert_int_equal(f->back[4] & 0x3f, 0x0a);
		assert_int_equal(f->back[5], 10);
		/* COMPARE AND WRITE is offered: MAXIMUM COMPARE AND WRITE LENGTH. */
		answer = real_run(f, c, lun, FLAG_READ, CDB(0x12, 1, 0xb0, 0, 64, 0), 64, NULL, 0);
		assert_int_equal(answer.status, SCSI_GOOD);
		assert_true(f->back[5] > 0);
	}
}

/* ---- 72 ---- */

static void bug_72_lun_encodings(void **state)
{
	static const struct {
		uint8_t lun[8];
		int unit; /* -1: none */
	} cases[] = {
	    {{0x00, 0}, 0},	   {{0x00, 1}, 1},
	    {{0x40, 1}, 1},	   {{0x40, 2}, 2},
	    {{0x40, 0}, 0},	   {{0x00, 3}, -1},
	    {{0x40, 3}, -1},	   {{0x41, 0x2c}, -1},
	    {{0x01, 0x2c}, -1},	   {{0x01, 1}, -1},
	    {{0x3f, 1}, -1},	   {{0x7f, 0xff}, -1},
	    {{0x41, 1}, -1},	   {{0x80, 1}, -1},
	    {{0xc0, 1}, -1},	   {{0xd2, 0, 0, 1}, -1},
	    {{0xe2, 0, 1}, -1},	   {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, -1},
	    {{0x00, 0xff}, -1},	   {{0x40, 0xff}, -1},
	    {{0x00, 1, 0, 1}, -1}, {{0, 0, 0, 0, 0, 0, 0, 1}, -1},
	};
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, NULL, 0);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		static const uint8_t ready[16], inquiry[16] = {0x12, 0, 0, 0, 96};
		struct real_answer answer;
		uint8_t bhs[BHS_BYTES];

		pdu_command(c, bhs, FLAG_FINAL, ready, 0);
		memcpy(bhs + BHS_LUN, cases[i].lun, 8);
		pdu_send(c, bhs, NULL, 0);
		answer = real_finish(f, c, bhs_itt(bhs));
		assert_int_equal(answer.sense, cases[i].unit >= 0 ? 0 : 0x052500);
		pdu_command(c, bhs, FLAG_FINAL | FLAG_READ, inquiry, 96);
		memcpy(bhs + BHS_LUN, cases[i].lun, 8);
		pdu_send(c, bhs, NULL, 0);
		answer = real_finish(f, c, bhs_itt(bhs));
		assert_int_equal(answer.status, SCSI_GOOD);
		assert_int_equal(f->back[0], cases[i].unit >= 0 ? 0 : 0x7f);
	}
}

/* ---- 83 ---- */

static void bug_83_unit_attention_once_for_each_nexus_and_unit(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *a = real_login(f, 0, NULL, 0), *b = real_login(f, 1, NULL, 0);

	/* A new nexus tells the old ones nothing, nor does its end. */
	for (unsigned i = 0; i < 8; i++) {
		real_login(f, 2, NULL, 0);
		pdu_client_close(&f->client[2]);
		for (unsigned lun = 0; lun < REAL_LUN_COUNT; lun++)
			assert_int_equal(real_attention(f, a, lun), 0);
	}
	/* The same condition many times is one attention, on that unit. */
	for (unsigned i = 0; i < 20; i++) {
		uint8_t bhs[BHS_BYTES];

		pdu_tmf(a, bhs, TMF_LU_RESET, ISCSI_NO_TAG, 0);
		bhs[BHS_LUN + 1] = 1;
		pdu_send(a, bhs, NULL, 0);
		assert_int_equal(pdu_expect(a, OP_TASK_MANAGEMENT_RESPONSE).bhs[BHS_RESPONSE], 0);
	}
	for (unsigned lun = 0; lun < REAL_LUN_COUNT; lun++) {
		assert_int_equal(real_attention(f, a, lun) >> 8, lun == 1 ? 0x0629 : 0);
		assert_int_equal(real_attention(f, b, lun) >> 8, lun == 1 ? 0x0629 : 0);
		assert_int_equal(real_attention(f, a, lun), 0);
		assert_int_equal(real_attention(f, b, lun), 0);
	}
	/* And its command was not carried out: told instead of done. */
	real_write(f, a, 0, 0, 8, f->pattern);
	pdu_client_close(b);
	b = real_login_only(f, 1, NULL, 0);
	assert_int_equal(
	    real_run(f, b, 0, FLAG_READ, CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 8, 0), 4096, NULL, 0).sense,
	    0x062900);
	assert_memory_equal(real_read(f, b, 0, 0, 8), f->pattern, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    REAL_TEST(bug_62_allocation_length_of_every_command),
	    REAL_TEST(bug_63_request_sense_and_inquiry_without_room),
	    REAL_TEST(bug_65_unmap_limits_are_those_of_vpd_b0),
	    REAL_TEST(bug_65_unmap_lists_of_any_length),
	    REAL_TEST(bug_65_unmap_of_one_bad_descriptor_does_nothing),
	    REAL_TEST(bug_70_what_esxi_needs_for_vmfs),
	    REAL_TEST(bug_72_lun_encodings),
	    REAL_TEST(bug_83_unit_attention_once_for_each_nexus_and_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
