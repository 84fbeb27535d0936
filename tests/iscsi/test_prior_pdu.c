/* SPDX-License-Identifier: MIT
 *
 * Faults that other targets had with malformed PDUs, sequence numbers and tags (see
 * test_prior_login.c).
 */
#include "tests/iscsi/real_fixture.h"

static const size_t splits[] = {0, 1, 48, 100};

#define CHATTY "InitialR2T=Yes\0ImmediateData=Yes\0MaxBurstLength=8192\0FirstBurstLength=8192"

/* ---- 25 ---- */

static void bug_25_reject_of_a_pdu_with_long_ahs(void **state)
{
	static const unsigned opcodes[] = {0x1c, 0x07, 0x0f, 0x1f, 0x20, 0x3e, 0x3f};
	static const unsigned words[] = {0, 1, 2, 64, 254, 255};
	struct real_fixture *f = *state;

	for (unsigned digests = 0; digests < 2; digests++) {
		struct pdu_client *c =
		    digests ? real_login(f, 0, PDU_KEYS("HeaderDigest=CRC32C\0DataDigest=CRC32C"))
			    : real_login(f, 0, NULL, 0);

		for (size_t i = 0; i < ARRAY_SIZE(opcodes) * ARRAY_SIZE(words) * 8; i++) {
			unsigned ahs_bytes = words[i % ARRAY_SIZE(words)] * 4;
			uint8_t bhs[BHS_BYTES];
			struct pdu pdu;

			c->read_split = splits[i / 7 % ARRAY_SIZE(splits)];
			pdu_begin(bhs, opcodes[i % ARRAY_SIZE(opcodes)] | OP_IMMEDIATE, FLAG_FINAL);
			put_be32(bhs + BHS_ITT, (uint32_t)i);
			pdu_send_ahs(c, bhs, f->pattern, ahs_bytes, f->pattern, i % 3 * 500);
			pdu = pdu_expect(c, OP_REJECT);
			assert_int_equal(pdu.bhs[BHS_RESPONSE], REJECT_NOT_SUPPORTED);
			assert_int_equal(bhs_itt(pdu.bhs), ISCSI_NO_TAG);
			assert_int_equal(pdu.data_bytes, BHS_BYTES); /* the BHS and nothing else */
			assert_memory_equal(pdu.data, bhs, BHS_BYTES);
		}
		c->read_split = 0;
		real_alive(f, c);
		pdu_client_close(c);
	}
}

/* One AHS as SIZE bytes on the wire says it is LENGTH bytes of TYPE; then a command that is
 * either answered or rejected, and the session goes on. */
static void ahs_try(struct real_fixture *f, struct pdu_client *c, uint16_t length, uint8_t type,
		    unsigned size)
{
	static const uint8_t cdb[16];
	uint8_t bhs[BHS_BYTES], ahs[AHS_MAX_BYTES] = {0};
	struct pdu pdu;

	put_be16(ahs, length);
	ahs[2] = type;
	memset(ahs + 3, 0x5a, sizeof ahs - 3);
	pdu_command(c, bhs, FLAG_FINAL, cdb, 0);
	c->cmd_sn--; /* immediate: a rejected one leaves no gap */
	put_be32(bhs + BHS_CMD_SN, c->cmd_sn);
	bhs[BHS_OPCODE] |= OP_IMMEDIATE;
	pdu_send_ahs(c, bhs, ahs, size, NULL, 0);
	assert_true(pdu_receive(c, &pdu));
	if (bhs_opcode(pdu.bhs) == OP_REJECT) {
		assert_int_equal(pdu.bhs[BHS_RESPONSE], REJECT_INVALID_FIELD);
		assert_int_equal(pdu.data_bytes, BHS_BYTES);
		return;
	}
	assert_int_equal(bhs_opcode(pdu.bhs), OP_SCSI_RESPONSE);
	assert_int_equal(bhs_itt(pdu.bhs), bhs_itt(bhs));
	assert_int_equal(pdu.bhs[BHS_STATUS], SCSI_GOOD);
}

static void bug_25_ahs_of_any_length_and_type(void **state)
{
	static const uint16_t lengths[] = {0,  1,  2,  3,   4,	  5,	  7,	  8,	 16,
					   17, 18, 32, 300, 1020, 0x7fff, 0xfffc, 0xffff};
	static const uint8_t types[] = {0, 1, 2, 3, 0x3f, 0x80, 0xff};
	static const unsigned sizes[] = {4, 8, 12, 20, 24, 512, 1016, 1020};
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, NULL, 0);
	size_t i = 0;

	for (size_t length = 0; length < ARRAY_SIZE(lengths); length++) {
		for (size_t type = 0; type < ARRAY_SIZE(types); type++) {
			for (size_t size = 0; size < ARRAY_SIZE(sizes); size++) {
				c->read_split = splits[i++ % ARRAY_SIZE(splits)];
				ahs_try(f, c, lengths[length], types[type], sizes[size]);
			}
		}
	}
	real_alive(f, c);
}

/* ---- 26 ---- */

static void bug_26_extended_cdb_reaches_the_device_whole(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, PDU_KEYS(CHATTY));

	for (unsigned extra = 1; extra <= SCSI_MAX_CDB_BYTES - 16; extra++) {
		uint8_t cdb[16] = {0x2a, 0, 0, 0, 0, 0, 0, 0, 8}, ahs[28] = {0}, bhs[BHS_BYTES];
		uint8_t whole[SCSI_MAX_CDB_BYTES] = {0};
		const struct iscsi_command *command;
		struct real_answer answer;

		/* A write waits for its data: time to look at its CDB. */
		put_be16(ahs, (uint16_t)(extra + 1));
		ahs[2] = AHS_EXTENDED_CDB;
		for (unsigned i = 0; i < extra; i++)
			ahs[4 + i] = whole[16 + i] = (uint8_t)(0xc0 + i);
		memcpy(whole, cdb, sizeof cdb);
		pdu_command(c, bhs, FLAG_FINAL | FLAG_WRITE, cdb, 4096);
		pdu_send_ahs(c, bhs, ahs, 4 + ((extra + 3) & ~3U), NULL, 0);
		pdu_client_push(c);
		command = TAILQ_FIRST(&c->conn->session->commands);
		assert_non_null(command);
		assert_memory_equal(command->task.cdb, whole, sizeof whole);
		answer = real_finish(f, c, bhs_itt(bhs));
		assert_int_equal(answer.status, SCSI_GOOD);
		/* Nothing of it is left for the next command. */
		real_command(c, bhs, 0, FLAG_FINAL | FLAG_WRITE, cdb, 10, 4096, NULL, 0);
		pdu_client_push(c);
		memset(whole + 16, 0, sizeof whole - 16);
		command = TAILQ_FIRST(&c->conn->session->commands);
		assert_memory_equal(command->task.cdb, whole, sizeof whole);
		real_finish(f, c, bhs_itt(bhs));
	}
}

/* ---- 28 ---- */

/* A PDU of OPCODE with CMD_SN, not immediate, with data where it may have some. */
static void numbered_send(struct real_fixture *f, struct pdu_client *c, unsigned opcode,
			  uint32_t cmd_sn)
{
	uint8_t bhs[BHS_BYTES];
	bool has_data = opcode == OP_NOP_OUT || opcode == OP_TEXT || opcode == OP_SCSI_COMMAND;

	pdu_begin(bhs, opcode, FLAG_FINAL);
	put_be32(bhs + BHS_ITT, 0x7000);
	put_be32(bhs + BHS_TTT, ISCSI_NO_TAG);
	put_be32(bhs + BHS_CMD_SN, cmd_sn);
	if (opcode == OP_SCSI_COMMAND) {
		bhs[BHS_FLAGS] |= FLAG_WRITE;
		put_be32(bhs + BHS_EDTL, 512);
		bhs[BHS_CDB] = 0x2a;
		bhs[BHS_CDB + 8] = 1;
	}
	if (opcode == OP_TASK_MANAGEMENT)
		bhs[BHS_FLAGS] |= TMF_TARGET_WARM_RESET;
	pdu_send(c, bhs, f->pattern, has_data ? 512 : 0);
}

static void bug_28_cmdsn_outside_the_window(void **state)
{
	static const unsigned opcodes[] = {OP_SCSI_COMMAND, OP_NOP_OUT, OP_TEXT, OP_TASK_MANAGEMENT,
					   OP_LOGOUT};
	static const uint32_t beginnings[] = {1, 0x7fffffff, 0xffffff80, 0xffffffff};
	struct real_fixture *f = *state;
	struct pdu_client *c = &f->client[0];

	for (size_t b = 0; b < ARRAY_SIZE(beginnings); b++) {
		c->cmd_sn = beginnings[b];
		real_login(f, 0, NULL, 0);
		for (size_t o = 0; o < ARRAY_SIZE(opcodes); o++) {
			/* The window moves on with each round. */
			uint32_t outside[] = {
			    c->max_cmd_sn + 1,		c->max_cmd_sn + 2,
			    c->max_cmd_sn + 1000,	c->exp_cmd_sn - 1,
			    c->exp_cmd_sn - 2,		c->exp_cmd_sn - 1000,
			    c->exp_cmd_sn + 0x7fffffff, c->exp_cmd_sn - 0x7fffffff,
			};

			for (size_t i = 0; i < ARRAY_SIZE(outside); i++)
				numbered_send(f, c, opcodes[o], outside[i]);
			pdu_expect_nothing(c);
			assert_int_equal(c->cmd_sn, c->exp_cmd_sn);
			real_alive(f, c);
		}
		assert_int_equal(real_read(f, c, 0, 0, 1)[1], 0); /* none of the writes ran */
		pdu_client_close(c);
	}
}

/* A duplicate of a command that is still running is dropped as well, whatever it is. */
static void bug_28_cmdsn_seen_before(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, NULL, 0);
	uint8_t bhs[BHS_BYTES];

	real_command(c, bhs, REAL_LUN_SLOW, FLAG_FINAL | FLAG_READ,
		     CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0), 512, NULL, 0);
	for (unsigned i = 0; i < 100; i++)
		numbered_send(f, c, i % 2 ? OP_SCSI_COMMAND : OP_LOGOUT,
			      get_be32(bhs + BHS_CMD_SN));
	pdu_expect_nothing(c);
	assert_int_equal(real_finish(f, c, bhs_itt(bhs)).status, SCSI_GOOD);
	pdu_expect_nothing(c);
	real_alive(f, c);
}

/* ---- 30 and 31 ---- */

/* One write of BYTES by R2T alone; every R2T is looked at. */
static void r2t_write(struct real_fixture *f, struct pdu_client *c, const uint8_t lun[8],
		      uint32_t bytes)
{
	uint8_t cdb[16] = {0x2a}, bhs[BHS_BYTES], data_out[BHS_BYTES];
	uint32_t offset = 0, r2t_sn = 0;
	uint32_t most = c->conn->params.max_outstanding_r2t;
	struct pdu pdu;

	put_be16(cdb + 7, (uint16_t)(bytes / 512));
	pdu_command(c, bhs, FLAG_FINAL | FLAG_WRITE, cdb, bytes);
	memcpy(bhs + BHS_LUN, lun, 8);
	pdu_send(c, bhs, NULL, 0);
	while (pdu_receive(c, &pdu) && bhs_opcode(pdu.bhs) == OP_R2T) {
		uint32_t desired = get_be32(pdu.bhs + BHS_DESIRED_BYTES);

		/* 30: numbers valid, StatSN shown and not used (the client checks the latter). */
		assert_int_equal(get_be32(pdu.bhs + BHS_STAT_SN), c->exp_stat_sn);
		assert_int_equal(get_be32(pdu.bhs + BHS_EXP_CMD_SN), c->cmd_sn);
		assert_false(serial_less(c->max_cmd_sn, c->cmd_sn - 1));
		assert_int_equal(get_be32(pdu.bhs + BHS_DATA_SN), r2t_sn++);
		/* 31 */
		assert_int_not_equal(bhs_ttt(pdu.bhs), ISCSI_NO_TAG);
		assert_memory_equal(pdu.bhs + BHS_LUN, lun, 8);
		assert_int_equal(get_be32(pdu.bhs + BHS_OFFSET), offset);
		assert_true(TAILQ_FIRST(&c->conn->session->commands)->r2t_count <= most);
		pdu_data_out(data_out, bhs_itt(bhs), bhs_ttt(pdu.bhs), 0, offset, true);
		pdu_send(c, data_out, f->pattern + offset, desired);
		offset += desired;
	}
	assert_int_equal(offset, bytes);
	assert_int_equal(bhs_opcode(pdu.bhs), OP_SCSI_RESPONSE);
	assert_int_equal(pdu.bhs[BHS_STATUS], SCSI_GOOD);
	assert_int_equal(pdu.bhs[BHS_FLAGS], FLAG_FINAL);
	assert_int_equal(get_be32(pdu.bhs + BHS_DATA_SN), r2t_sn);
}

static void bug_30_sequence_numbers_of_r2t(void **state)
{
	static const uint8_t lun[8];
	static const struct {
		const char *keys;
		size_t size;
	} logins[] = {
	    {PDU_KEYS(CHATTY "\0MaxOutstandingR2T=1")},
	    {PDU_KEYS(CHATTY "\0MaxOutstandingR2T=3")},
	    {PDU_KEYS(CHATTY "\0MaxOutstandingR2T=65535\0HeaderDigest=CRC32C")},
	};
	struct real_fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(logins); i++) {
		struct pdu_client *c = &f->client[0];

		c->cmd_sn = 0xfffffff0;
		real_login(f, 0, logins[i].keys, logins[i].size);
		for (uint32_t bytes = 512; bytes <= 128 * KIB; bytes += bytes / 1024 * 512 + 512)
			r2t_write(f, c, lun, bytes);
		real_alive(f, c);
		pdu_client_close(c);
	}
}

static void bug_31_transfer_tags_wrap_past_ffffffff(void **state)
{
	static const uint8_t luns[][8] = {{0, 0}, {0x40, 0}, {0x40, 1}, {0, 1}};
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, PDU_KEYS(CHATTY "\0MaxOutstandingR2T=8"));
	uint8_t bhs[BHS_BYTES];
	struct pdu pdu;

	for (uint32_t ahead = 0; ahead < 20; ahead++) {
		c->conn->next_ttt = ISCSI_NO_TAG - ahead;
		r2t_write(f, c, luns[ahead % 2], 96 * KIB);
		/* Tags of text exchanges. */
		c->conn->next_ttt = ISCSI_NO_TAG;
		pdu_begin(bhs, OP_TEXT | OP_IMMEDIATE, FLAG_CONTINUE);
		put_be32(bhs + BHS_ITT, 4711);
		put_be32(bhs + BHS_TTT, ISCSI_NO_TAG);
		pdu_send(c, bhs, "X-a", 3);
		pdu = pdu_expect(c, OP_TEXT_RESPONSE);
		assert_int_not_equal(bhs_ttt(pdu.bhs), ISCSI_NO_TAG);
	}
	/* And of keep-alive. */
	c->conn->next_ttt = ISCSI_NO_TAG;
	for (unsigned i = 0; i < 20 && !pdu_receive(c, &pdu); i++)
		real_target_pass(&f->target, 10 * NS_PER_S);
	assert_int_equal(bhs_opcode(pdu.bhs), OP_NOP_IN);
	assert_int_not_equal(bhs_ttt(pdu.bhs), ISCSI_NO_TAG);
}

/* ---- 34 ---- */

static void bug_34_data_out_for_no_task(void **state)
{
	static const uint32_t lengths[] = {0, 1, 512, 513, 8192, 262144};
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, NULL, 0);

	for (size_t i = 0; i < ARRAY_SIZE(lengths) * 16; i++) {
		uint8_t bhs[BHS_BYTES];

		c->read_split = splits[i / 3 % ARRAY_SIZE(splits)];
		pdu_data_out(bhs, i & 1 ? 1 : 0xdead0000, i & 2 ? ISCSI_NO_TAG : (uint32_t)i,
			     i & 4 ? 0 : 27, i & 8 ? 0 : 0xfffffe00, i % 3);
		pdu_send(c, bhs, f->pattern, lengths[i / 16]);
		real_alive(f, c);
	}
}

/* Data-Out numbered or placed wrongly: never GOOD, nothing written, no hang. */
static void bug_34_wrong_datasn_or_offset(void **state)
{
	static const struct {
		uint32_t sn[2], offset[2];
	} cases[] = {
	    {{0, 0}, {0, 4096}},       {{27, 28}, {0, 4096}},	{{UINT32_MAX, 0}, {0, 4096}},
	    {{1, 0}, {0, 4096}},       {{0, 2}, {0, 4096}},	{{0, 1}, {4096, 0}},
	    {{0, 1}, {0, 0}},	       {{0, 1}, {0, 4097}},	{{0, 1}, {1, 4096}},
	    {{0, 1}, {0, UINT32_MAX}}, {{0, 1}, {8192, 12288}}, {{0, 1}, {0, 8192}},
	};
	struct real_fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases) * 2; i++) {
		bool solicited = i % 2;
		struct pdu_client *c =
		    real_login(f, 0, PDU_KEYS("InitialR2T=No\0ImmediateData=No"));
		uint8_t cdb[16] = {0x2a, 0, 0, 0, 0, 64, 0, 0, 16}, bhs[BHS_BYTES], out[BHS_BYTES];
		uint32_t ttt = ISCSI_NO_TAG;
		struct pdu pdu;

		pdu_command(c, bhs, FLAG_WRITE | (solicited ? FLAG_FINAL : 0), cdb, 8192);
		pdu_send(c, bhs, NULL, 0);
		if (solicited)
			ttt = bhs_ttt(pdu_expect(c, OP_R2T).bhs);
		for (unsigned half = 0; half < 2; half++) {
			pdu_data_out(out, bhs_itt(bhs), ttt, cases[i / 2].sn[half],
				     cases[i / 2].offset[half], half == 1);
			pdu_send(c, out, f->pattern, 4096);
		}
		while (pdu_receive(c, &pdu)) {
			assert_true(bhs_opcode(pdu.bhs) == OP_REJECT ||
				    (bhs_opcode(pdu.bhs) == OP_SCSI_RESPONSE &&
				     pdu.bhs[BHS_STATUS] == SCSI_CHECK_CONDITION));
		}
		real_alive(f, c);
		memset(f->pattern + 8192, 0, 8192);
		assert_memory_equal(real_read(f, c, 0, 64, 16), f->pattern + 8192, 8192);
		real_pattern(f->pattern, REAL_MOST_BYTES, 1);
		pdu_client_close(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    REAL_TEST(bug_25_reject_of_a_pdu_with_long_ahs),
	    REAL_TEST(bug_25_ahs_of_any_length_and_type),
	    REAL_TEST(bug_26_extended_cdb_reaches_the_device_whole),
	    REAL_TEST(bug_28_cmdsn_outside_the_window),
	    REAL_TEST(bug_28_cmdsn_seen_before),
	    REAL_TEST(bug_30_sequence_numbers_of_r2t),
	    REAL_TEST(bug_31_transfer_tags_wrap_past_ffffffff),
	    REAL_TEST(bug_34_data_out_for_no_task),
	    REAL_TEST(bug_34_wrong_datasn_or_offset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
