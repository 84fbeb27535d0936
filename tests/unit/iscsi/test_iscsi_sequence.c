/* SPDX-License-Identifier: MIT
 *
 * Numbers and malformed PDUs: the command window, AHS, Data-Out that does not fit, digest errors,
 * Reject.
 */
#include "tests/unit/iscsi/fixture.h"

static uint8_t pattern[1 << 20];
static const uint8_t ready_cdb[16];

static struct pdu rejected(struct pdu_client *c, const uint8_t *bhs, unsigned reason)
{
	struct pdu pdu = pdu_expect(c, OP_REJECT);

	assert_int_equal(pdu.bhs[BHS_RESPONSE], reason);
	assert_int_equal(bhs_itt(pdu.bhs), ISCSI_NO_TAG);
	assert_int_equal(pdu.data_bytes, BHS_BYTES);
	assert_memory_equal(pdu.data, bhs, BHS_BYTES);
	return pdu;
}

static void failed(struct pdu_client *c, uint32_t itt, uint8_t asc, uint8_t ascq)
{
	struct pdu pdu = pdu_expect(c, OP_SCSI_RESPONSE);

	assert_int_equal(bhs_itt(pdu.bhs), itt);
	assert_int_equal(pdu.bhs[BHS_STATUS], SCSI_CHECK_CONDITION);
	assert_int_equal(pdu.data_bytes, 20);
	assert_int_equal(pdu.data[2 + 2], 0x0b);
	assert_int_equal(pdu.data[2 + 12], asc);
	assert_int_equal(pdu.data[2 + 13], ascq);
}

static void good(struct pdu_client *c, uint32_t itt)
{
	struct pdu pdu = pdu_expect(c, OP_SCSI_RESPONSE);

	assert_int_equal(bhs_itt(pdu.bhs), itt);
	assert_int_equal(pdu.bhs[BHS_STATUS], SCSI_GOOD);
}

/* Outside the window: dropped in silence, data and all (prior bug 28); then life goes on. */
static void test_outside_window(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	uint32_t numbers[2];
	uint8_t bhs[BHS_BYTES];

	c->cmd_sn = 0xfffffff0; /* wraps during the test */
	fixture_login(f, NULL, 0);
	for (int round = 0; round < 40; round++) {
		numbers[0] = c->max_cmd_sn + 1;
		numbers[1] = c->exp_cmd_sn - 1;
		for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
			pdu_write10(c, bhs, 0, 8, FLAG_FINAL);
			c->cmd_sn--;
			put_be32(bhs + BHS_CMD_SN, numbers[i]);
			pdu_send(c, bhs, pattern, 4096);
			pdu_expect_nothing(c);
		}
		assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
		assert_int_equal(c->exp_cmd_sn, c->cmd_sn);
		assert_int_equal(c->max_cmd_sn, c->cmd_sn + ISCSI_WINDOW - 1);
	}
	assert_int_equal(fake_executed(f->target), 0);
	assert_int_equal(iscsi_portal_counters(f->portal)->rejects, 0);
}

/* The window closes when all places are taken, and opens as answers go out. */
static void test_window_closes(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	uint8_t bhs[BHS_BYTES];
	struct pdu pdu;

	fixture_login(f, NULL, 0);
	fake_hold(f->target, true);
	for (int i = 0; i < ISCSI_WINDOW + 10; i++) {
		pdu_command(c, bhs, FLAG_FINAL, ready_cdb, 0);
		pdu_send(c, bhs, NULL, 0);
	}
	pdu_expect_nothing(c);
	assert_int_equal(fake_held_count(f->target), ISCSI_WINDOW);
	/* Immediate ones still get in, to a limit. */
	for (int i = 0; i < ISCSI_MAX_IMMEDIATE; i++) {
		pdu_command(c, bhs, FLAG_FINAL, ready_cdb, 0);
		bhs[BHS_OPCODE] |= OP_IMMEDIATE;
		pdu_send(c, bhs, NULL, 0);
	}
	pdu_expect_nothing(c);
	pdu_command(c, bhs, FLAG_FINAL, ready_cdb, 0);
	bhs[BHS_OPCODE] |= OP_IMMEDIATE;
	pdu_send(c, bhs, NULL, 0);
	rejected(c, bhs, REJECT_TOO_MANY_IMMEDIATE);
	fake_hold(f->target, false);
	for (int i = 0; i < ISCSI_WINDOW + ISCSI_MAX_IMMEDIATE; i++)
		pdu = pdu_expect(c, OP_SCSI_RESPONSE);
	pdu_expect_nothing(c);
	assert_int_equal(get_be32(pdu.bhs + BHS_MAX_CMD_SN) - get_be32(pdu.bhs + BHS_EXP_CMD_SN) +
			     1,
			 ISCSI_WINDOW);
	c->cmd_sn = c->exp_cmd_sn;
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
}

/* Commands ahead of a gap wait, keep their data, and run in order when it is filled. */
static void test_gap(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	uint8_t first[BHS_BYTES], bhs[BHS_BYTES], data_out[BHS_BYTES];
	uint32_t itt;
	struct pdu pdu;

	fixture_login(f, PDU_KEYS("InitialR2T=No\0FirstBurstLength=8192\0MaxBurstLength=8192"));
	fixture_pattern(pattern, 16384, 3);
	pdu_command(c, first, FLAG_FINAL, ready_cdb, 0);
	pdu_write10(c, bhs, 0, 32, 0); /* 16 KiB: immediate, unsolicited, then R2T */
	itt = bhs_itt(bhs);
	pdu_send(c, bhs, pattern, 1000);
	pdu_data_out(data_out, itt, ISCSI_NO_TAG, 0, 1000, true);
	pdu_send(c, data_out, pattern + 1000, 7192);
	pdu_begin(bhs, OP_NOP_OUT, FLAG_FINAL);
	put_be32(bhs + BHS_ITT, 500);
	put_be32(bhs + BHS_TTT, ISCSI_NO_TAG);
	put_be32(bhs + BHS_CMD_SN, c->cmd_sn++);
	pdu_send(c, bhs, "hello", 5);
	pdu_send(c, bhs, "again", 5); /* the same number twice: the second is dropped */
	pdu_expect_nothing(c);
	assert_int_equal(c->exp_cmd_sn, get_be32(first + BHS_CMD_SN));
	pdu_send(c, first, NULL, 0);
	good(c, bhs_itt(first));
	pdu = pdu_expect(c, OP_R2T);
	assert_int_equal(get_be32(pdu.bhs + BHS_OFFSET), 8192);
	pdu_data_out(data_out, itt, bhs_ttt(pdu.bhs), 0, 8192, true);
	pdu = pdu_expect(c, OP_NOP_IN);
	assert_int_equal(bhs_itt(pdu.bhs), 500);
	assert_memory_equal(pdu.data, "hello", 5);
	pdu_send(c, data_out, pattern + 8192, 8192);
	good(c, itt);
	assert_memory_equal(fake_disk(f->target, 0), pattern, 16384);
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
}

/* A rejected command has not come: its number is sent again (RFC 7143 11.17). */
static void test_rejected_number(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	uint8_t bhs[BHS_BYTES];
	struct pdu pdu;

	fixture_login(f, NULL, 0);
	fake_hold(f->target, true);
	pdu_command(c, bhs, FLAG_FINAL, ready_cdb, 0);
	pdu_send(c, bhs, NULL, 0);
	pdu_command(c, bhs, FLAG_FINAL, ready_cdb, 0);
	c->itt--;
	put_be32(bhs + BHS_ITT, c->itt - 1); /* the tag of the one under way */
	pdu_send(c, bhs, NULL, 0);
	pdu = rejected(c, bhs, REJECT_TASK_IN_PROGRESS);
	assert_int_equal(get_be32(pdu.bhs + BHS_EXP_CMD_SN), c->cmd_sn - 1);
	c->cmd_sn--;
	fake_hold(f->target, false);
	good(c, c->itt - 1);
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
}

/* Additional header segments: unknown ones skipped, a long CDB delivered whole (prior bugs 25,
 * 26). */
/* A bidirectional length belongs to a command that reads and writes, and we have none of those. */
static void test_bidirectional(void **state)
{
	static const struct {
		unsigned flags;
		uint8_t reason;
	} cases[] = {
	    {FLAG_FINAL | FLAG_READ | FLAG_WRITE, REJECT_NOT_SUPPORTED},
	    {FLAG_FINAL | FLAG_READ, REJECT_INVALID_FIELD},
	    {FLAG_FINAL, REJECT_INVALID_FIELD},
	};
	static const uint8_t ahs[8] = {0, 5, AHS_BIDIRECTIONAL_LENGTH, 0, 0, 0, 2, 0};
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	fixture_login(f, NULL, 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t bhs[BHS_BYTES], cdb[16] = {0x28, 0, 0, 0, 0, 0, 0, 0, 1};
		struct pdu pdu;

		pdu_command(c, bhs, cases[i].flags, cdb, 512);
		pdu_send_ahs(c, bhs, ahs, sizeof ahs, NULL, 0);
		pdu = pdu_expect(c, OP_REJECT);
		assert_int_equal(pdu.bhs[BHS_RESPONSE], cases[i].reason);
		assert_memory_equal(pdu.data, bhs, BHS_BYTES);
		c->cmd_sn--; /* its number was not taken */
		assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
	}
}

static void test_ahs(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	static uint8_t long_ahs[AHS_MAX_BYTES];
	uint8_t bhs[BHS_BYTES], cdb[32], ahs[28] = {0};

	fixture_login(f, PDU_KEYS("HeaderDigest=CRC32C"));
	/* Four bytes of an unknown kind. */
	put_be16(ahs, 1);
	ahs[2] = 63;
	pdu_command(c, bhs, FLAG_FINAL, ready_cdb, 0);
	pdu_send_ahs(c, bhs, ahs, 4, NULL, 0);
	good(c, bhs_itt(bhs));
	/* A 32-byte CDB: 16 bytes in the header, one reserved and 16 in the AHS. */
	for (unsigned i = 0; i < sizeof cdb; i++)
		cdb[i] = (uint8_t)(i + 0x40);
	cdb[0] = 0x7f;
	put_be16(ahs, 17);
	ahs[2] = AHS_EXTENDED_CDB;
	memcpy(ahs + 4, cdb + 16, 16);
	pdu_command(c, bhs, FLAG_FINAL, cdb, 0);
	pdu_send_ahs(c, bhs, ahs, 20, NULL, 0);
	good(c, bhs_itt(bhs));
	assert_memory_equal(fake_last_cdb(f->target), cdb, sizeof cdb);
	/* The next short one has no remains of it. */
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
	assert_int_equal(fake_last_cdb(f->target)[16], 0);
	/* A CDB that is too long, a length of nothing, and one beyond the end. */
	for (unsigned i = 0; i < 3; i++) {
		static const uint16_t lengths[] = {24, 0, 200};

		put_be16(ahs, lengths[i]);
		pdu_command(c, bhs, FLAG_FINAL, ready_cdb, 0);
		c->cmd_sn--;
		pdu_send_ahs(c, bhs, ahs, 28, NULL, 0);
		rejected(c, bhs, REJECT_INVALID_FIELD);
	}
	/* An unknown opcode with as much as fits: only the BHS comes back. */
	pdu_begin(bhs, 0x1c, 0x80);
	pdu_send_ahs(c, bhs, long_ahs, sizeof long_ahs, "data", 4);
	rejected(c, bhs, REJECT_NOT_SUPPORTED);
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
}

static void test_rejects(void **state)
{
	static const struct {
		uint8_t opcode, reason;
	} cases[] = {
	    {0x1c, REJECT_NOT_SUPPORTED}, {OP_SCSI_RESPONSE, REJECT_NOT_SUPPORTED},
	    {OP_SNACK, REJECT_SNACK},	  {OP_LOGIN, REJECT_PROTOCOL_ERROR},
	    {0x3f, REJECT_NOT_SUPPORTED},
	};
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	uint8_t bhs[BHS_BYTES];

	fixture_login(f, NULL, 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		pdu_begin(bhs, cases[i].opcode, 0x80);
		pdu_send(c, bhs, "abc", 3);
		rejected(c, bhs, cases[i].reason);
	}
	pdu_command(c, bhs, FLAG_FINAL, ready_cdb, 0);
	put_be32(bhs + BHS_ITT, ISCSI_NO_TAG);
	c->cmd_sn--;
	pdu_send(c, bhs, NULL, 0);
	rejected(c, bhs, REJECT_INVALID_FIELD);
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
}

/* A data segment longer than we take: Reject and the end, before a byte of it is read. */
static void test_segment_too_long(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	uint8_t bhs[BHS_BYTES];

	fixture_login(f, NULL, 0);
	pdu_write10(c, bhs, 0, 1024, FLAG_FINAL);
	put_be24(bhs + BHS_DATA_BYTES, 262148);
	put_be32(bhs + BHS_EXP_STAT_SN, c->exp_stat_sn);
	pdu_send_raw(c, bhs, BHS_BYTES);
	rejected(c, bhs, REJECT_PROTOCOL_ERROR);
	assert_true(c->closed);
}

/* More unsolicited data than FirstBurstLength or EDTL allow (prior bug 37): drained, refused,
 * nothing written. */
static void test_too_much_unsolicited(void **state)
{
	static const struct {
		const char *keys;
		size_t keys_size;
		uint16_t blocks;
		uint32_t immediate, unsolicited;
		uint8_t ascq;
	} cases[] = {
	    {PDU_KEYS("InitialR2T=No\0FirstBurstLength=65536"), 512, 8192, 65536 + 512 - 8192,
	     0x0c},
	    {PDU_KEYS("InitialR2T=No\0FirstBurstLength=65536"), 512, 65536 + 512, 0, 0x0c},
	    {PDU_KEYS("InitialR2T=No\0FirstBurstLength=65536"), 8, 4608, 0, 0x0d},
	    {PDU_KEYS("InitialR2T=No\0FirstBurstLength=65536"), 8, 512, 4096, 0x0d},
	    {PDU_KEYS("InitialR2T=No\0ImmediateData=No"), 8, 512, 0, 0x0c},
	    {PDU_KEYS("InitialR2T=Yes"), 8, 512, 3584, 0x0c},
	};
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t offset = cases[i].immediate, left = cases[i].unsolicited, sn = 0;
		uint8_t bhs[BHS_BYTES], data_out[BHS_BYTES];

		c->cmd_sn = 1;
		c->tsih = 0;
		fixture_login(f, cases[i].keys, cases[i].keys_size);
		pdu_write10(c, bhs, 0, cases[i].blocks, left ? 0 : FLAG_FINAL);
		pdu_send(c, bhs, pattern, cases[i].immediate);
		while (left > 0) {
			uint32_t size = MIN_OF(left, 8192U);

			pdu_expect_nothing(c);
			pdu_data_out(data_out, bhs_itt(bhs), ISCSI_NO_TAG, sn++, offset,
				     size == left);
			pdu_send(c, data_out, pattern, size);
			offset += size;
			left -= size;
		}
		failed(c, bhs_itt(bhs), 0x0c, cases[i].ascq);
		assert_int_equal(fake_executed(f->target), 0);
		assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
		pdu_client_close(c);
	}
}

/* Unsolicited data of a wrong number or offset, without being allowed, in a wrong amount. */
enum data_out_fault {
	FAULT_SN_27,
	FAULT_SN_REPEATED,
	FAULT_SN_MINUS_1,
	FAULT_OFFSET,
	FAULT_TTT,
	FAULT_SHORT, /* F before all that R2T asked for */
	FAULT_LONG,
	FAULT_COUNT,
};

static void fault_put(enum data_out_fault fault, uint8_t *bhs, uint32_t *size)
{
	switch (fault) {
	case FAULT_SN_27:
		put_be32(bhs + BHS_DATA_SN, 27);
		break;
	case FAULT_SN_REPEATED:
		put_be32(bhs + BHS_DATA_SN, 0);
		break;
	case FAULT_SN_MINUS_1:
		put_be32(bhs + BHS_DATA_SN, UINT32_MAX);
		break;
	case FAULT_OFFSET:
		put_be32(bhs + BHS_OFFSET, 512);
		break;
	case FAULT_TTT:
		put_be32(bhs + BHS_TTT, bhs_ttt(bhs) + 1);
		break;
	case FAULT_SHORT:
		*size -= 512;
		break;
	default:
		*size += 512;
		break;
	}
}

static void test_bad_data_out(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	fixture_login(f, PDU_KEYS("InitialR2T=No\0ImmediateData=No"));
	for (unsigned i = 0; i < 2 * FAULT_COUNT; i++) {
		enum data_out_fault fault = (enum data_out_fault)(i / 2);
		bool solicited = i % 2 || fault >= FAULT_TTT;
		uint8_t bhs[BHS_BYTES], data_out[BHS_BYTES];
		uint32_t size = 4096, ttt = ISCSI_NO_TAG, itt;

		pdu_write10(c, bhs, 0, 16, solicited ? FLAG_FINAL : 0);
		itt = bhs_itt(bhs);
		pdu_send(c, bhs, NULL, 0);
		if (solicited)
			ttt = bhs_ttt(pdu_expect(c, OP_R2T).bhs);
		pdu_data_out(data_out, itt, ttt, 0, 0, false);
		pdu_send(c, data_out, pattern, 4096);
		pdu_expect_nothing(c);
		pdu_data_out(data_out, itt, ttt, 1, 4096, true);
		fault_put(fault, data_out, &size);
		pdu_send(c, data_out, pattern, size);
		if (fault == FAULT_SN_27 || fault == FAULT_SN_REPEATED ||
		    fault == FAULT_SN_MINUS_1 || fault == FAULT_SHORT)
			rejected(c, data_out, REJECT_PROTOCOL_ERROR);
		else
			rejected(c, data_out, REJECT_INVALID_FIELD);
		failed(c, itt, 0x0c, fault == FAULT_TTT ? 0x0c : 0x0d);
		/* More for a command that is no more: drained (prior bug 34). */
		pdu_data_out(data_out, itt, ttt, 2, 8192, true);
		pdu_send(c, data_out, pattern, 4096);
		assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
		assert_int_equal(fake_executed(f->target), 0);
	}
}

/* Data-Out nobody allowed. */
static void test_unexpected_data_out(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	uint8_t bhs[BHS_BYTES], data_out[BHS_BYTES];

	fixture_login(f, PDU_KEYS("InitialR2T=Yes\0ImmediateData=No"));
	pdu_write10(c, bhs, 0, 16, FLAG_FINAL);
	pdu_send(c, bhs, NULL, 0);
	pdu_expect(c, OP_R2T);
	pdu_data_out(data_out, bhs_itt(bhs), ISCSI_NO_TAG, 0, 0, true);
	pdu_send(c, data_out, pattern, 512);
	rejected(c, data_out, REJECT_PROTOCOL_ERROR);
	failed(c, bhs_itt(bhs), 0x0c, 0x0c);
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
}

/* A wrong header digest ends the connection; a wrong data digest costs one PDU. */
static void test_digest_errors(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	uint8_t bhs[BHS_BYTES], data_out[BHS_BYTES];
	uint32_t itt;
	struct pdu pdu;

	fixture_login(f, PDU_KEYS("HeaderDigest=CRC32C\0DataDigest=CRC32C\0InitialR2T=No"));
	/* Immediate data: rejected, and the command can be sent again with the same number. */
	pdu_write10(c, bhs, 0, 8, FLAG_FINAL);
	pdu_send(c, bhs, pattern, 4096);
	c->to_server[c->filled - 5] ^= 1;
	pdu = rejected(c, bhs, REJECT_DATA_DIGEST);
	assert_int_equal(get_be32(pdu.bhs + BHS_EXP_CMD_SN), get_be32(bhs + BHS_CMD_SN));
	pdu_send(c, bhs, pattern, 4096);
	good(c, bhs_itt(bhs));
	assert_int_equal(fake_executed(f->target), 1);
	/* Data-Out: the command ends with PROTOCOL SERVICE CRC ERROR. */
	pdu_write10(c, bhs, 0, 8, 0);
	itt = bhs_itt(bhs);
	pdu_send(c, bhs, pattern, 512);
	pdu_data_out(data_out, itt, ISCSI_NO_TAG, 0, 512, false);
	pdu_send(c, data_out, pattern, 1024);
	c->to_server[c->filled - 5] ^= 1;
	rejected(c, data_out, REJECT_DATA_DIGEST);
	pdu_expect_nothing(c);
	pdu_data_out(data_out, itt, ISCSI_NO_TAG, 1, 1536, true);
	pdu_send(c, data_out, pattern, 2560);
	failed(c, itt, 0x47, 0x05);
	/* A NOP. */
	pdu_begin(bhs, OP_NOP_OUT | OP_IMMEDIATE, FLAG_FINAL);
	put_be32(bhs + BHS_ITT, 9999);
	put_be32(bhs + BHS_TTT, ISCSI_NO_TAG);
	pdu_send(c, bhs, "ping", 4);
	c->to_server[c->filled - 5] ^= 1;
	rejected(c, bhs, REJECT_DATA_DIGEST);
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
	assert_int_equal(fake_executed(f->target), 1);
	/* The header. */
	pdu_command(c, bhs, FLAG_FINAL, ready_cdb, 0);
	pdu_send(c, bhs, NULL, 0);
	c->to_server[c->filled - 1] ^= 1;
	pdu_expect_nothing(c);
	assert_true(c->closed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    FIXTURE_TEST(test_outside_window),
	    FIXTURE_TEST(test_window_closes),
	    FIXTURE_TEST(test_gap),
	    FIXTURE_TEST(test_rejected_number),
	    FIXTURE_TEST(test_ahs),
	    FIXTURE_TEST(test_bidirectional),
	    FIXTURE_TEST(test_rejects),
	    FIXTURE_TEST(test_segment_too_long),
	    FIXTURE_TEST(test_too_much_unsolicited),
	    FIXTURE_TEST(test_bad_data_out),
	    FIXTURE_TEST(test_unexpected_data_out),
	    FIXTURE_TEST(test_digest_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
