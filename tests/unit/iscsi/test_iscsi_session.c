/* SPDX-License-Identifier: MIT
 *
 * Sessions: reinstatement, logout, NOP and keep-alive, resets, and what a fuzzer would send.
 */
#include "base/rng.h"
#include "tests/unit/iscsi/fixture.h"

static uint8_t pattern[65536];

static void writes_start(struct pdu_client *c, int count)
{
	uint8_t bhs[BHS_BYTES];

	for (int i = 0; i < count; i++) {
		pdu_write10(c, bhs, (uint32_t)i * 8, 8, FLAG_FINAL);
		pdu_send(c, bhs, i % 2 ? pattern : NULL, i % 2 ? 4096 : 0);
	}
	pdu_client_pump(c);
}

/* A second login with the same name and ISID (prior bug 57): the old session ends first. */
static void test_reinstatement(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client, again;

	fixture_login(f, PDU_KEYS("InitialR2T=Yes"));
	fake_hold(f->target, true);
	writes_start(c, 8); /* half of them run, half wait for data */
	assert_int_equal(fake_held_count(f->target), 4);
	pdu_client_init(&again, f->server);
	pdu_client_open(&again, f->portal);
	pdu_login_step(&again, 0x81,
		       PDU_KEYS("InitiatorName=iqn.2026-11.test.sanlab:client\0"
				"TargetName=" TARGET_NAME));
	assert_false(c->closed);
	pdu_login_send(&again, 0x87, NULL, 0);
	pdu_expect_nothing(&again); /* tasks of the old session are still with the drive */
	assert_true(c->closed);
	assert_false(again.closed);
	fake_hold(f->target, false);
	assert_int_equal(pdu_expect(&again, OP_LOGIN_RESPONSE).bhs[BHS_FLAGS], 0x87);
	assert_int_equal(f->server->session_count, 1);
	assert_int_equal(fake_nexuses(f->target), 1);
	assert_int_equal(f->server->conn_count, 1);
	assert_int_equal(pdu_test_unit_ready(&again), SCSI_GOOD);
	pdu_client_done(&again);
}

/* ... and a third one, while the second waits, takes its place. */
static void test_reinstatement_overtaken(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client, second, third;

	fixture_login(f, NULL, 0);
	fake_hold(f->target, true);
	writes_start(c, 2);
	pdu_client_init(&second, f->server);
	pdu_client_init(&third, f->server);
	pdu_client_open(&second, f->portal);
	pdu_login_send(&second, 0x87,
		       PDU_KEYS("InitiatorName=iqn.2026-11.test.sanlab:client\0"
				"TargetName=" TARGET_NAME));
	pdu_expect_nothing(&second);
	pdu_client_open(&third, f->portal);
	pdu_login_send(&third, 0x87,
		       PDU_KEYS("InitiatorName=iqn.2026-11.test.sanlab:client\0"
				"TargetName=" TARGET_NAME));
	pdu_expect_nothing(&third);
	assert_true(second.closed);
	fake_hold(f->target, false);
	pdu_expect(&third, OP_LOGIN_RESPONSE);
	assert_int_equal(f->server->session_count, 1);
	assert_int_equal(pdu_test_unit_ready(&third), SCSI_GOOD);
	pdu_client_done(&second);
	pdu_client_done(&third);
}

/* ISIDs that differ in one byte are two sessions (prior bug 19), as are two tags or names. */
static void test_different_sessions(void **state)
{
	struct fixture *f = *state;
	struct iscsi_portal *second = fixture_portal(f, "127.0.0.1", 3262, 2, false);
	struct pdu_client other[3];

	fixture_login(f, NULL, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(other); i++) {
		pdu_client_init(&other[i], f->server);
		if (i == 0)
			other[i].isid[1] ^= 0x40;
		if (i == 1)
			other[i].initiator_name = "iqn.2026-11.test.sanlab:clienT2";
		pdu_client_open(&other[i], i == 2 ? second : f->portal);
		assert_int_equal(pdu_login(&other[i], TARGET_NAME, NULL, 0), 0);
		assert_int_not_equal(other[i].tsih, f->client.tsih);
	}
	assert_int_equal(f->server->session_count, 4);
	assert_int_equal(pdu_test_unit_ready(&f->client), SCSI_GOOD);
	for (unsigned i = 0; i < ARRAY_SIZE(other); i++) {
		assert_int_equal(pdu_test_unit_ready(&other[i]), SCSI_GOOD);
		pdu_client_done(&other[i]);
	}
	assert_int_equal(f->server->session_count, 1);
}

/* The session's TSIH: the same CID replaces the connection, another is one too many. */
static void test_connection_reinstatement(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client, again;

	fixture_login(f, NULL, 0);
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
	pdu_client_init(&again, f->server);
	again.tsih = c->tsih;
	again.cid = 5;
	again.cmd_sn = c->cmd_sn;
	pdu_client_open(&again, f->portal);
	assert_int_equal(pdu_login(&again, TARGET_NAME, NULL, 0), 0x0206);
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
	again.cid = c->cid;
	again.cmd_sn = c->cmd_sn;
	pdu_client_open(&again, f->portal);
	assert_int_equal(pdu_login(&again, TARGET_NAME, NULL, 0), 0);
	assert_true(c->closed);
	assert_int_equal(again.tsih, c->tsih);
	assert_int_equal(f->server->session_count, 1);
	assert_int_equal(pdu_test_unit_ready(&again), SCSI_GOOD);
	pdu_client_done(&again);
	assert_int_equal(f->server->session_count, 0);
}

static void logout_send(struct pdu_client *c, unsigned reason, uint16_t cid)
{
	uint8_t bhs[BHS_BYTES];

	pdu_begin(bhs, OP_LOGOUT, FLAG_FINAL | reason);
	put_be32(bhs + BHS_ITT, 4242);
	put_be16(bhs + BHS_CID, cid);
	put_be32(bhs + BHS_CMD_SN, c->cmd_sn++);
	pdu_send(c, bhs, NULL, 0);
}

/* Logout in the middle of I/O (prior bug 58): what runs is answered, then the logout. */
static void test_logout_during_io(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	struct pdu pdu;

	fixture_login(f, PDU_KEYS("InitialR2T=Yes"));
	fake_hold(f->target, true);
	writes_start(c, 32);
	for (int i = 0; i < 16; i++)
		pdu_expect(c, OP_R2T);
	logout_send(c, LOGOUT_SESSION, 0);
	pdu_expect_nothing(c);
	assert_int_equal(c->conn->command_count, 16); /* those without data have been ended */
	fake_hold(f->target, false);
	for (int i = 0; i < 16; i++)
		assert_int_equal(pdu_expect(c, OP_SCSI_RESPONSE).bhs[BHS_STATUS], SCSI_GOOD);
	pdu = pdu_expect(c, OP_LOGOUT_RESPONSE);
	assert_int_equal(pdu.bhs[BHS_RESPONSE], LOGOUT_CLOSED);
	assert_int_equal(bhs_itt(pdu.bhs), 4242);
	assert_true(c->closed);
	assert_int_equal(f->server->session_count, 0);
	assert_int_equal(fake_executed(f->target), 16);
}

static void test_logout_answers(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	struct pdu pdu;

	c->cid = 3;
	fixture_login(f, NULL, 0);
	logout_send(c, LOGOUT_RECOVERY, 3);
	pdu = pdu_expect(c, OP_LOGOUT_RESPONSE);
	assert_int_equal(pdu.bhs[BHS_RESPONSE], LOGOUT_NO_RECOVERY);
	logout_send(c, LOGOUT_CONNECTION, 4);
	pdu = pdu_expect(c, OP_LOGOUT_RESPONSE);
	assert_int_equal(pdu.bhs[BHS_RESPONSE], LOGOUT_NO_CID);
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
	logout_send(c, LOGOUT_CONNECTION, 3);
	pdu = pdu_expect(c, OP_LOGOUT_RESPONSE);
	assert_int_equal(pdu.bhs[BHS_RESPONSE], LOGOUT_CLOSED);
	assert_true(c->closed);
}

static void nop_send(struct pdu_client *c, uint32_t itt, uint32_t ttt, const void *data,
		     uint32_t bytes)
{
	uint8_t bhs[BHS_BYTES];

	pdu_begin(bhs, OP_NOP_OUT | OP_IMMEDIATE, FLAG_FINAL);
	put_be32(bhs + BHS_ITT, itt);
	put_be32(bhs + BHS_TTT, ttt);
	put_be32(bhs + BHS_CMD_SN, c->cmd_sn);
	pdu_send(c, bhs, data, bytes);
}

static void test_nop(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	struct pdu pdu;

	fixture_login(f, PDU_KEYS("MaxRecvDataSegmentLength=512"));
	fixture_pattern(pattern, sizeof pattern, 1);
	nop_send(c, 17, ISCSI_NO_TAG, pattern, 100);
	pdu = pdu_expect(c, OP_NOP_IN);
	assert_int_equal(bhs_itt(pdu.bhs), 17);
	assert_int_equal(bhs_ttt(pdu.bhs), ISCSI_NO_TAG);
	assert_int_equal(pdu.data_bytes, 100);
	assert_memory_equal(pdu.data, pattern, 100);
	nop_send(c, 18, ISCSI_NO_TAG, pattern, 4000); /* echoed up to what the initiator takes */
	pdu = pdu_expect(c, OP_NOP_IN);
	assert_int_equal(pdu.data_bytes, 512);
	nop_send(c, ISCSI_NO_TAG, ISCSI_NO_TAG, NULL, 0);
	pdu_expect_nothing(c);
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
}

static void test_keep_alive(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	struct pdu ping;

	fixture_login(f, NULL, 0);
	loop_run_until(f->loop, loop_now_ns(f->loop) + ISCSI_PING_NS);
	pdu_expect_nothing(c); /* the login was traffic */
	for (int i = 0; i < 3; i++) {
		loop_run_until(f->loop, loop_now_ns(f->loop) + ISCSI_PING_NS);
		ping = pdu_expect(c, OP_NOP_IN);
		assert_int_equal(bhs_itt(ping.bhs), ISCSI_NO_TAG);
		assert_int_not_equal(bhs_ttt(ping.bhs), ISCSI_NO_TAG);
		nop_send(c, ISCSI_NO_TAG, bhs_ttt(ping.bhs), NULL, 0);
		pdu_expect_nothing(c);
		loop_run_until(f->loop, loop_now_ns(f->loop) + ISCSI_PING_NS);
		pdu_expect_nothing(c);
	}
	/* A ping unanswered, but a command: alive (prior bug 60). */
	loop_run_until(f->loop, loop_now_ns(f->loop) + ISCSI_PING_NS);
	pdu_expect(c, OP_NOP_IN);
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
	loop_run_until(f->loop, loop_now_ns(f->loop) + ISCSI_PING_NS);
	assert_false(c->closed);
	/* Nothing at all: dead, and the session with it. */
	loop_run_until(f->loop, loop_now_ns(f->loop) + 2 * ISCSI_PING_NS);
	assert_true(c->closed);
	assert_int_equal(f->server->session_count, 0);
}

static void test_portal_reset(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client, other;

	fixture_login(f, NULL, 0);
	pdu_client_init(&other, f->server);
	other.initiator_name = "iqn.2026-11.test.sanlab:other";
	pdu_client_open(&other, f->portal);
	assert_int_equal(pdu_login(&other, TARGET_NAME, NULL, 0), 0);
	assert_int_equal(iscsi_portal_reset(f->portal, "iqn.2026-11.test.sanlab:nobody"), 0);
	assert_int_equal(iscsi_portal_reset(f->portal, other.initiator_name), 1);
	assert_true(other.closed && other.was_reset);
	assert_false(c->closed);
	assert_int_equal(iscsi_portal_reset(f->portal, NULL), 1);
	assert_true(c->closed && c->was_reset);
	assert_int_equal(iscsi_portal_counters(f->portal)->resets, 2);
	assert_int_equal(iscsi_portal_counters(f->portal)->connections_now, 0);
	pdu_client_done(&other);
}

/* Random headers with random flaws: whatever comes, nothing breaks and the server serves on. */
static void test_random_pdus(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	struct rng rng;

	rng_init(&rng, 7, 143);
	for (int round = 0; round < 300; round++) {
		struct pdu pdu;

		c->tsih = 0;
		c->cmd_sn = 1;
		c->exp_stat_sn = c->exp_cmd_sn = c->max_cmd_sn = 0;
		fixture_login(f, PDU_KEYS("InitialR2T=No\0ImmediateData=Yes"));
		c->read_split = rng_below(&rng, 2) ? rng_below(&rng, 100) + 1 : 0;
		fake_hold(f->target, rng_below(&rng, 2));
		for (int i = 0; i < 30 && c->conn; i++) {
			static const uint8_t opcodes[] = {0, 1, 1, 1, 2, 4, 5, 5, 6, 0x10, 0x1f};
			uint8_t bhs[BHS_BYTES];
			uint32_t bytes = (uint32_t)rng_below(&rng, 2000);

			rng_fill(&rng, bhs, sizeof bhs);
			bhs[BHS_OPCODE] = opcodes[rng_below(&rng, sizeof opcodes)];
			if (rng_below(&rng, 3) == 0)
				bhs[BHS_OPCODE] |= OP_IMMEDIATE;
			memset(bhs + BHS_LUN, 0, 8);
			put_be32(bhs + BHS_ITT, (uint32_t)rng_below(&rng, 8));
			put_be32(bhs + BHS_CMD_SN,
				 c->exp_cmd_sn + (uint32_t)rng_below(&rng, 4) - 1);
			if (bhs[BHS_OPCODE] == OP_SCSI_COMMAND) {
				static const uint8_t cdbs[] = {0x00, 0x28, 0x2a, 0x2a, 0x12};

				memset(bhs + BHS_CDB, 0, 16);
				bhs[BHS_CDB] = cdbs[rng_below(&rng, sizeof cdbs)];
				bhs[BHS_CDB + 8] = (uint8_t)rng_below(&rng, 20);
				put_be32(bhs + BHS_EDTL, (uint32_t)rng_below(&rng, 12000));
			}
			if (bhs[BHS_OPCODE] == OP_DATA_OUT) {
				put_be32(bhs + BHS_TTT, rng_below(&rng, 2)
							    ? ISCSI_NO_TAG
							    : (uint32_t)rng_below(&rng, 8));
				put_be32(bhs + BHS_DATA_SN, (uint32_t)rng_below(&rng, 2));
				put_be32(bhs + BHS_OFFSET, (uint32_t)rng_below(&rng, 3) * 500);
			}
			pdu_send(c, bhs, pattern, bytes);
			while (pdu_receive(c, &pdu))
				continue;
		}
		fake_hold(f->target, false);
		while (pdu_receive(c, &pdu))
			continue;
		pdu_client_close(c);
		assert_int_equal(f->server->session_count, 0);
		assert_int_equal(f->server->conn_count, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    FIXTURE_TEST(test_reinstatement),
	    FIXTURE_TEST(test_reinstatement_overtaken),
	    FIXTURE_TEST(test_different_sessions),
	    FIXTURE_TEST(test_connection_reinstatement),
	    FIXTURE_TEST(test_logout_during_io),
	    FIXTURE_TEST(test_logout_answers),
	    FIXTURE_TEST(test_nop),
	    FIXTURE_TEST(test_keep_alive),
	    FIXTURE_TEST(test_portal_reset),
	    FIXTURE_TEST(test_random_pdus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
