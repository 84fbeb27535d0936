/* SPDX-License-Identifier: MIT
 *
 * Several connections a session: joining, order over all of them, loss, replacement, logout.
 */
#include "tests/unit/iscsi/fixture.h"

#define NAMES "InitiatorName=iqn.2026-11.test.sanlab:client\0TargetName=" TARGET_NAME

enum { CONNECTIONS = 3 };

/* One initiator: clients with a common CmdSN. */
struct bundle {
	struct fixture *f;
	struct pdu_client extra[CONNECTIONS - 1];
	struct pdu_client *conn[CONNECTIONS];
};

static uint8_t pattern[65536];

static int setup(void **state)
{
	static struct bundle bundle;
	void *fixture;

	if (fixture_setup(&fixture) < 0)
		return -1;
	bundle.f = fixture;
	bundle.conn[0] = &bundle.f->client;
	for (unsigned i = 1; i < CONNECTIONS; i++) {
		bundle.conn[i] = &bundle.extra[i - 1];
		pdu_client_init(bundle.conn[i], bundle.f->server);
		bundle.conn[i]->cid = (uint16_t)i;
		bundle.conn[i]->itt = 1000 * i;
	}
	fixture_pattern(pattern, sizeof pattern, 3);
	*state = &bundle;
	return 0;
}

static int teardown(void **state)
{
	struct bundle *bundle = *state;
	void *fixture = bundle->f;

	fake_hold(bundle->f->target, false);
	for (unsigned i = 1; i < CONNECTIONS; i++)
		pdu_client_done(bundle->conn[i]);
	return fixture_teardown(&fixture);
}

/* Opens connection INDEX with KEYS; the status. */
static unsigned open_with(struct bundle *b, unsigned index, const char *keys, size_t size)
{
	struct pdu_client *c = b->conn[index];

	c->exp_stat_sn = c->exp_cmd_sn = c->max_cmd_sn = 0;
	c->tsih = index > 0 ? b->conn[0]->tsih : 0;
	c->cmd_sn = index > 0 ? b->conn[0]->cmd_sn : 1;
	pdu_client_open(c, b->f->portal);
	pdu_login_step(c, 0x81, PDU_KEYS(NAMES));
	if (c->login_status == 0)
		pdu_login_step(c, 0x87, keys, size);
	return c->login_status;
}

static void open_two(struct bundle *b)
{
	assert_int_equal(open_with(b, 0, PDU_KEYS("MaxConnections=8\0InitialR2T=No")), 0);
	assert_string_equal(pdu_login_value(b->conn[0], "MaxConnections"), "4");
	assert_int_equal(open_with(b, 1, NULL, 0), 0);
	assert_int_equal(b->conn[0]->tsih, b->conn[1]->tsih);
	assert_int_equal(b->f->server->session_count, 1);
	assert_int_equal(fake_nexuses(b->f->target), 1);
}

/* The next number of the session for a command of any connection. */
static void take_number(struct bundle *b, uint8_t *bhs)
{
	put_be32(bhs + BHS_CMD_SN, b->conn[0]->cmd_sn++);
}

static void make_read(struct bundle *b, unsigned index, uint8_t *bhs)
{
	pdu_read10(b->conn[index], bhs, 0, 8);
	b->conn[index]->cmd_sn--;
	take_number(b, bhs);
}

/* While the drives are held. */
static void start_read(struct bundle *b, unsigned index, uint8_t *bhs)
{
	make_read(b, index, bhs);
	pdu_send(b->conn[index], bhs, NULL, 0);
	pdu_expect_nothing(b->conn[index]);
}

static void make_write(struct bundle *b, unsigned index, uint8_t *bhs, uint16_t blocks)
{
	pdu_write10(b->conn[index], bhs, 0, blocks, FLAG_FINAL);
	b->conn[index]->cmd_sn--;
	take_number(b, bhs);
}

static void expect_read(struct bundle *b, unsigned index, const uint8_t *bhs)
{
	struct pdu pdu = pdu_expect(b->conn[index], OP_DATA_IN);

	assert_int_equal(bhs_itt(pdu.bhs), bhs_itt(bhs));
	assert_int_equal(pdu.data_bytes, 4096);
}

static void expect_good(struct bundle *b, unsigned index, const uint8_t *bhs)
{
	struct pdu pdu = pdu_expect(b->conn[index], OP_SCSI_RESPONSE);

	assert_int_equal(bhs_itt(pdu.bhs), bhs_itt(bhs));
	assert_int_equal(pdu.bhs[BHS_STATUS], SCSI_GOOD);
}

static void expect_alive(struct bundle *b, unsigned index)
{
	uint8_t bhs[BHS_BYTES];

	make_read(b, index, bhs);
	pdu_send(b->conn[index], bhs, NULL, 0);
	expect_read(b, index, bhs);
}

static void test_two(void **state)
{
	struct bundle *b = *state;

	open_two(b);
	for (unsigned i = 0; i < 64; i++)
		expect_alive(b, i * 7 % 3 % 2);
	/* Answers are numbered by connection: the clients have checked that. */
	assert_int_equal(b->conn[0]->exp_stat_sn + b->conn[1]->exp_stat_sn, 2 * 3 + 64);
}

static void test_limits(void **state)
{
	struct bundle *b = *state;

	assert_int_equal(open_with(b, 0, PDU_KEYS("MaxConnections=2")), 0);
	assert_int_equal(open_with(b, 1, NULL, 0), 0);
	assert_int_equal(open_with(b, 2, NULL, 0), 0x0206);
	expect_alive(b, 1);
	pdu_client_close(b->conn[1]);
	assert_int_equal(open_with(b, 2, NULL, 0), 0);
	expect_alive(b, 2);
	/* Another ISID, another name: not this session's. */
	b->conn[1]->isid[3] ^= 1;
	assert_int_equal(open_with(b, 1, NULL, 0), 0x020a);
	b->conn[1]->isid[3] ^= 1;
	b->conn[0]->tsih += 100;
	assert_int_equal(open_with(b, 1, NULL, 0), 0x020a);
	b->conn[0]->tsih -= 100;
	expect_alive(b, 0);
}

/* Keys that the first connection has settled are Irrelevant, and what it settled counts. */
static void test_settled_keys(void **state)
{
	struct bundle *b = *state;
	struct pdu_client *c = b->conn[1];
	uint8_t bhs[BHS_BYTES];
	struct pdu pdu;

	assert_int_equal(open_with(b, 0,
				   PDU_KEYS("MaxConnections=2\0MaxBurstLength=4096\0"
					    "ImmediateData=No\0InitialR2T=Yes")),
			 0);
	assert_int_equal(open_with(b, 1,
				   PDU_KEYS("MaxBurstLength=65536\0ImmediateData=Yes\0"
					    "MaxConnections=1\0HeaderDigest=CRC32C\0"
					    "DataDigest=CRC32C\0"
					    "MaxRecvDataSegmentLength=1024")),
			 0);
	assert_string_equal(pdu_login_value(c, "MaxBurstLength"), "Irrelevant");
	assert_string_equal(pdu_login_value(c, "ImmediateData"), "Irrelevant");
	assert_string_equal(pdu_login_value(c, "MaxConnections"), "Irrelevant");
	assert_string_equal(pdu_login_value(c, "HeaderDigest"), "CRC32C");
	c->header_digest = c->data_digest = true;
	make_write(b, 1, bhs, 16);
	pdu_send(c, bhs, NULL, 0);
	pdu = pdu_expect(c, OP_R2T);
	assert_int_equal(get_be32(pdu.bhs + BHS_DESIRED_BYTES), 4096);
	expect_alive(b, 0); /* without digests */
	pdu_data_out(bhs, bhs_itt(bhs), bhs_ttt(pdu.bhs), 0, 0, true);
	pdu_send(c, bhs, pattern, 4096);
	pdu = pdu_expect(c, OP_R2T);
	assert_int_equal(get_be32(pdu.bhs + BHS_OFFSET), 4096);
	pdu_data_out(bhs, bhs_itt(bhs), bhs_ttt(pdu.bhs), 0, 4096, true);
	pdu_send(c, bhs, pattern + 4096, 4096);
	assert_int_equal(pdu_expect(c, OP_SCSI_RESPONSE).bhs[BHS_STATUS], SCSI_GOOD);
	make_read(b, 1, bhs);
	pdu_send(c, bhs, NULL, 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pdu_expect(c, OP_DATA_IN).data_bytes, 1024);
}

/* A later number on one connection waits for the earlier one of another. */
static void test_order(void **state)
{
	struct bundle *b = *state;
	uint8_t first[BHS_BYTES], second[BHS_BYTES], third[BHS_BYTES];

	open_two(b);
	make_write(b, 0, first, 8);
	make_write(b, 1, second, 8);
	make_read(b, 1, third);
	pdu_send(b->conn[1], second, pattern + 512, 4096);
	pdu_send(b->conn[1], third, NULL, 0);
	pdu_expect_nothing(b->conn[1]);
	assert_int_equal(fake_executed(b->f->target), 0);
	pdu_send(b->conn[0], first, pattern, 4096);
	expect_good(b, 0, first);
	expect_good(b, 1, second);
	expect_read(b, 1, third);
	assert_memory_equal(fake_disk(b->f->target, 0), pattern + 512, 4096);
}

/* ... also while its own PDU is still on the way. */
static void test_order_in_pieces(void **state)
{
	struct bundle *b = *state;
	uint8_t first[BHS_BYTES], second[BHS_BYTES];

	open_two(b);
	make_read(b, 0, first);
	make_write(b, 1, second, 8);
	put_be24(second + BHS_DATA_BYTES, 4096);
	pdu_send_raw(b->conn[1], second, BHS_BYTES);
	pdu_send_raw(b->conn[1], pattern, 1000);
	pdu_expect_nothing(b->conn[1]);
	pdu_send(b->conn[0], first, NULL, 0);
	expect_read(b, 0, first);
	pdu_expect_nothing(b->conn[1]);
	assert_int_equal(fake_executed(b->f->target), 0);
	pdu_send_raw(b->conn[1], pattern + 1000, 3096);
	expect_good(b, 1, second);
	assert_memory_equal(fake_disk(b->f->target, 0), pattern, 4096);
	expect_alive(b, 0);
}

/* A NOP-Out in pieces, whose turn comes while it is received, and one that waits. */
static void test_nop_order(void **state)
{
	struct bundle *b = *state;
	uint8_t first[BHS_BYTES], nop[BHS_BYTES];

	open_two(b);
	make_read(b, 0, first);
	pdu_begin(nop, OP_NOP_OUT, FLAG_FINAL);
	put_be32(nop + BHS_ITT, 77);
	put_be32(nop + BHS_TTT, ISCSI_NO_TAG);
	take_number(b, nop);
	put_be24(nop + BHS_DATA_BYTES, 64);
	pdu_send_raw(b->conn[1], nop, BHS_BYTES);
	pdu_send_raw(b->conn[1], pattern, 10);
	pdu_expect_nothing(b->conn[1]);
	pdu_send(b->conn[0], first, NULL, 0);
	expect_read(b, 0, first);
	pdu_send_raw(b->conn[1], pattern + 10, 54);
	assert_int_equal(bhs_itt(pdu_expect(b->conn[1], OP_NOP_IN).bhs), 77);
	expect_alive(b, 1);
}

/* The same number by two connections: the first to be complete counts, the other is dropped. */
static void test_duplicate(void **state)
{
	struct bundle *b = *state;
	uint8_t slow[BHS_BYTES], fast[BHS_BYTES];

	open_two(b);
	make_write(b, 0, slow, 8);
	make_read(b, 1, fast);
	b->conn[0]->cmd_sn--;
	put_be32(fast + BHS_CMD_SN, get_be32(slow + BHS_CMD_SN));
	put_be24(slow + BHS_DATA_BYTES, 4096);
	pdu_send_raw(b->conn[0], slow, BHS_BYTES);
	pdu_send_raw(b->conn[0], pattern, 100);
	pdu_expect_nothing(b->conn[0]);
	pdu_send(b->conn[1], fast, NULL, 0);
	expect_read(b, 1, fast);
	pdu_send_raw(b->conn[0], pattern + 100, 3996);
	pdu_expect_nothing(b->conn[0]);
	assert_int_equal(fake_executed(b->f->target), 0);
	for (unsigned i = 0; i < 8; i++)
		expect_alive(b, i % 2);
	assert_int_equal(b->conn[0]->conn->session->window.occupied, 0);
}

/* Data-Out by the wrong connection is nobody's. */
static void test_allegiance(void **state)
{
	struct bundle *b = *state;
	uint8_t bhs[BHS_BYTES], data_out[BHS_BYTES];
	struct pdu r2t;

	open_two(b);
	make_write(b, 0, bhs, 8);
	pdu_send(b->conn[0], bhs, NULL, 0);
	r2t = pdu_expect(b->conn[0], OP_R2T);
	pdu_data_out(data_out, bhs_itt(bhs), bhs_ttt(r2t.bhs), 0, 0, true);
	pdu_send(b->conn[1], data_out, pattern, 4096);
	pdu_expect_nothing(b->conn[1]);
	pdu_expect_nothing(b->conn[0]);
	pdu_send(b->conn[0], data_out, pattern, 4096);
	expect_good(b, 0, bhs);
}

/* A function by one connection for a task of another. */
static void test_task_management(void **state)
{
	struct bundle *b = *state;
	uint8_t bhs[BHS_BYTES], tmf[BHS_BYTES];
	struct pdu pdu;

	open_two(b);
	fake_hold(b->f->target, true);
	start_read(b, 0, bhs);
	pdu_tmf(b->conn[1], tmf, TMF_ABORT_TASK, bhs_itt(bhs), get_be32(bhs + BHS_CMD_SN));
	put_be32(tmf + BHS_CMD_SN, b->conn[0]->cmd_sn);
	pdu_send(b->conn[1], tmf, NULL, 0);
	pdu_expect_nothing(b->conn[1]);
	fake_hold(b->f->target, false);
	pdu = pdu_expect(b->conn[1], OP_TASK_MANAGEMENT_RESPONSE);
	assert_int_equal(pdu.bhs[BHS_RESPONSE], TMF_COMPLETE);
	pdu_expect_nothing(b->conn[0]);
	/* All tasks of both. */
	fake_hold(b->f->target, true);
	for (unsigned i = 0; i < 4; i++) {
		make_read(b, i % 2, bhs);
		pdu_send(b->conn[i % 2], bhs, NULL, 0);
		pdu_expect_nothing(b->conn[i % 2]);
	}
	pdu_tmf(b->conn[1], tmf, TMF_ABORT_TASK_SET, 0, 0);
	put_be32(tmf + BHS_CMD_SN, b->conn[0]->cmd_sn);
	pdu_send(b->conn[1], tmf, NULL, 0);
	pdu_expect_nothing(b->conn[1]);
	fake_hold(b->f->target, false);
	pdu_expect(b->conn[1], OP_TASK_MANAGEMENT_RESPONSE);
	pdu_expect_nothing(b->conn[0]);
	expect_alive(b, 0);
	expect_alive(b, 1);
}

/* A task aborted before it came stays aborted when the connection that asked for it is lost. */
static void test_abort_outlives_connection(void **state)
{
	struct bundle *b = *state;
	uint8_t before[BHS_BYTES], late[BHS_BYTES], tmf[BHS_BYTES];
	struct pdu pdu;

	open_two(b);
	make_read(b, 0, before);
	make_write(b, 0, late, 8);
	pdu_tmf(b->conn[1], tmf, TMF_ABORT_TASK, bhs_itt(late), get_be32(late + BHS_CMD_SN));
	put_be32(tmf + BHS_CMD_SN, b->conn[0]->cmd_sn);
	pdu_send(b->conn[1], tmf, NULL, 0);
	pdu = pdu_expect(b->conn[1], OP_TASK_MANAGEMENT_RESPONSE);
	assert_int_equal(pdu.bhs[BHS_RESPONSE], TMF_COMPLETE);
	pdu_client_close(b->conn[1]);
	pdu_send(b->conn[0], before, NULL, 0);
	expect_read(b, 0, before);
	pdu_send(b->conn[0], late, pattern, 4096);
	pdu_expect_nothing(b->conn[0]);
	assert_int_equal(fake_executed(b->f->target), 0);
	expect_alive(b, 0);
}

static void test_loss(void **state)
{
	struct bundle *b = *state;
	uint8_t first[BHS_BYTES], second[BHS_BYTES];

	open_two(b);
	fake_hold(b->f->target, true);
	start_read(b, 0, first);
	start_read(b, 1, second);
	pdu_client_close(b->conn[0]);
	assert_int_equal(b->f->server->session_count, 1);
	fake_hold(b->f->target, false);
	expect_read(b, 1, second);
	expect_alive(b, 1);
	assert_int_equal(b->f->server->conn_count, 1);
	assert_int_equal(fake_nexuses(b->f->target), 1);
	/* The last one takes the session along. */
	pdu_client_close(b->conn[1]);
	assert_int_equal(b->f->server->session_count, 0);
}

/* A login with the CID of a connection replaces it, when its tasks have ended. */
static void test_replacement(void **state)
{
	struct bundle *b = *state;
	uint8_t bhs[BHS_BYTES], other[BHS_BYTES];
	struct pdu_client *again = b->conn[2];

	open_two(b);
	fake_hold(b->f->target, true);
	start_read(b, 1, bhs);
	again->cid = b->conn[1]->cid;
	again->tsih = b->conn[0]->tsih;
	again->cmd_sn = b->conn[0]->cmd_sn;
	pdu_client_open(again, b->f->portal);
	pdu_login_step(again, 0x81, PDU_KEYS(NAMES));
	pdu_login_send(again, 0x87, NULL, 0);
	pdu_expect_nothing(again);
	assert_true(b->conn[1]->closed);
	start_read(b, 0, other);
	fake_hold(b->f->target, false);
	assert_int_equal(pdu_expect(again, OP_LOGIN_RESPONSE).bhs[BHS_FLAGS], 0x87);
	expect_read(b, 0, other);
	expect_alive(b, 2);
	assert_int_equal(b->f->server->session_count, 1);
	assert_int_equal(b->f->server->conn_count, 2);
}

/* The session ends while a replacement waits for its turn. */
static void test_replacement_of_the_dying(void **state)
{
	struct bundle *b = *state;
	uint8_t bhs[BHS_BYTES];
	struct pdu_client *again = b->conn[2];

	open_two(b);
	fake_hold(b->f->target, true);
	start_read(b, 1, bhs);
	again->cid = b->conn[1]->cid;
	again->tsih = b->conn[0]->tsih;
	again->cmd_sn = b->conn[0]->cmd_sn;
	pdu_client_open(again, b->f->portal);
	pdu_login_send(again, 0x87, PDU_KEYS(NAMES));
	pdu_expect_nothing(again);
	assert_false(again->closed);
	iscsi_session_end(b->conn[0]->conn->session);
	assert_true(again->closed);
	fake_hold(b->f->target, false);
	loop_turn(b->f->loop, false);
	assert_int_equal(b->f->server->session_count, 0);
	assert_int_equal(b->f->server->conn_count, 0);
}

static void logout_send(struct bundle *b, unsigned index, unsigned reason, uint16_t cid)
{
	uint8_t bhs[BHS_BYTES];

	pdu_begin(bhs, OP_LOGOUT, FLAG_FINAL | reason);
	put_be32(bhs + BHS_ITT, 4242);
	put_be16(bhs + BHS_CID, cid);
	take_number(b, bhs);
	pdu_send(b->conn[index], bhs, NULL, 0);
}

static void expect_logout(struct bundle *b, unsigned index, unsigned response)
{
	struct pdu pdu = pdu_expect(b->conn[index], OP_LOGOUT_RESPONSE);

	assert_int_equal(pdu.bhs[BHS_RESPONSE], response);
	assert_int_equal(bhs_itt(pdu.bhs), 4242);
}

static void test_logout_of_one(void **state)
{
	struct bundle *b = *state;
	uint8_t bhs[BHS_BYTES];

	open_two(b);
	logout_send(b, 0, LOGOUT_CONNECTION, 9);
	expect_logout(b, 0, LOGOUT_NO_CID);
	fake_hold(b->f->target, true);
	start_read(b, 1, bhs);
	logout_send(b, 0, LOGOUT_CONNECTION, 1); /* the other one */
	pdu_expect_nothing(b->conn[0]);
	logout_send(b, 0, LOGOUT_CONNECTION, 1); /* it is leaving already */
	expect_logout(b, 0, LOGOUT_NO_CID);
	fake_hold(b->f->target, false);
	expect_read(b, 1, bhs);
	expect_logout(b, 0, LOGOUT_CLOSED);
	pdu_client_pump(b->conn[1]);
	assert_true(b->conn[1]->closed);
	expect_alive(b, 0);
	assert_int_equal(open_with(b, 1, NULL, 0), 0);
	logout_send(b, 1, LOGOUT_CONNECTION, 1); /* itself */
	expect_logout(b, 1, LOGOUT_CLOSED);
	assert_true(b->conn[1]->closed);
	expect_alive(b, 0);
}

/* Who asked is gone before, and what leaves is lost before. */
static void test_logout_and_loss(void **state)
{
	for (unsigned lost = 0; lost < 2; lost++) {
		struct bundle *b = *state;
		uint8_t bhs[BHS_BYTES];

		b->conn[0]->cmd_sn = 1;
		open_two(b);
		fake_hold(b->f->target, true);
		start_read(b, 1, bhs);
		logout_send(b, 0, LOGOUT_CONNECTION, 1);
		pdu_expect_nothing(b->conn[0]);
		pdu_client_close(b->conn[lost]);
		if (lost == 1)
			expect_logout(b, 0, LOGOUT_CLOSED);
		fake_hold(b->f->target, false);
		if (lost == 0)
			expect_read(b, 1, bhs);
		pdu_client_pump(b->conn[1]);
		assert_true(b->conn[1]->closed);
		assert_int_equal(b->f->server->session_count, lost);
		pdu_client_close(b->conn[0]);
		assert_int_equal(b->f->server->session_count, 0);
	}
}

static void test_logout_of_all(void **state)
{
	struct bundle *b = *state;
	uint8_t bhs[BHS_BYTES];

	open_two(b);
	fake_hold(b->f->target, true);
	start_read(b, 1, bhs);
	logout_send(b, 0, LOGOUT_SESSION, 0);
	pdu_expect_nothing(b->conn[0]);
	assert_int_equal(open_with(b, 2, NULL, 0), 0x020a); /* nobody joins any more */
	fake_hold(b->f->target, false);
	expect_read(b, 1, bhs);
	expect_logout(b, 0, LOGOUT_CLOSED);
	pdu_client_pump(b->conn[1]);
	assert_true(b->conn[0]->closed);
	assert_true(b->conn[1]->closed);
	assert_int_equal(b->f->server->session_count, 0);
}

/* ... and who asked for it is lost before. */
static void test_logout_of_all_and_loss(void **state)
{
	struct bundle *b = *state;
	uint8_t bhs[BHS_BYTES];

	open_two(b);
	fake_hold(b->f->target, true);
	start_read(b, 1, bhs);
	logout_send(b, 0, LOGOUT_SESSION, 0);
	pdu_expect_nothing(b->conn[0]);
	pdu_client_close(b->conn[0]);
	loop_turn(b->f->loop, false);
	assert_true(b->conn[1]->closed);
	fake_hold(b->f->target, false);
	loop_turn(b->f->loop, false);
	assert_int_equal(b->f->server->session_count, 0);
}

/* A login with the identity of the session, TSIH 0: all connections go. */
static void test_reinstatement(void **state)
{
	struct bundle *b = *state;
	struct pdu_client *again = b->conn[2];

	open_two(b);
	again->cmd_sn = 1;
	pdu_client_open(again, b->f->portal);
	assert_int_equal(pdu_login(again, TARGET_NAME, NULL, 0), 0);
	assert_true(b->conn[0]->closed);
	assert_true(b->conn[1]->closed);
	assert_int_equal(pdu_test_unit_ready(again), SCSI_GOOD);
	assert_int_equal(b->f->server->session_count, 1);
}

#define BUNDLE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    BUNDLE_TEST(test_two),
	    BUNDLE_TEST(test_limits),
	    BUNDLE_TEST(test_settled_keys),
	    BUNDLE_TEST(test_order),
	    BUNDLE_TEST(test_order_in_pieces),
	    BUNDLE_TEST(test_nop_order),
	    BUNDLE_TEST(test_duplicate),
	    BUNDLE_TEST(test_allegiance),
	    BUNDLE_TEST(test_task_management),
	    BUNDLE_TEST(test_abort_outlives_connection),
	    BUNDLE_TEST(test_loss),
	    BUNDLE_TEST(test_replacement),
	    BUNDLE_TEST(test_replacement_of_the_dying),
	    BUNDLE_TEST(test_logout_of_one),
	    BUNDLE_TEST(test_logout_and_loss),
	    BUNDLE_TEST(test_logout_of_all),
	    BUNDLE_TEST(test_logout_of_all_and_loss),
	    BUNDLE_TEST(test_reinstatement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
