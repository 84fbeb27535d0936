/* SPDX-License-Identifier: MIT
 *
 * Faults that other targets had in login and text negotiation, each the whole kind of it.  The
 * numbers are those of the project's list of such faults; they are not consecutive.
 */
#include "tests/iscsi/real_fixture.h"

#include <stdio.h>

static const size_t splits[] = {0, 1, 17, 48};

static void open_client(struct real_fixture *f, struct pdu_client *c, size_t split)
{
	pdu_client_open(c, f->target.portal);
	c->read_split = split;
	c->tsih = 0;
	c->exp_stat_sn = c->exp_cmd_sn = c->max_cmd_sn = 0;
}

static void assert_closed(struct pdu_client *c)
{
	pdu_client_pump(c);
	assert_true(c->closed);
	assert_int_equal(c->got - c->taken, 0);
}

#define NAMES                                                                             \
	"InitiatorName=iqn.2026-11.test.sanlab:client\0TargetName=" REAL_TARGET_NAME "\0" \
	"AuthMethod=None"

/* ---- 1 ---- */

static void other_pdu(struct pdu_client *c, unsigned opcode, uint32_t data_bytes)
{
	static const uint8_t data[64] = "SendTargets=All";
	uint8_t bhs[BHS_BYTES];

	pdu_begin(bhs, opcode, FLAG_FINAL);
	put_be32(bhs + BHS_TTT, ISCSI_NO_TAG);
	pdu_send(c, bhs, data, data_bytes);
}

static void bug_01_non_login_pdu_before_login(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = &f->client[0];

	for (unsigned opcode = 0; opcode < 0x80; opcode++) {
		if ((opcode & OP_MASK) == OP_LOGIN)
			continue;
		open_client(f, c, splits[opcode % ARRAY_SIZE(splits)]);
		other_pdu(c, opcode, opcode % 3 * 16);
		assert_closed(c);
	}
	assert_int_equal(f->target.server->conn_count, 0);
	assert_int_equal(f->target.server->session_count, 0);
}

static void bug_01_non_login_pdu_during_login(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = &f->client[0];

	for (unsigned opcode = 0; opcode < 0x80; opcode++) {
		struct pdu pdu;

		if ((opcode & OP_MASK) == OP_LOGIN)
			continue;
		open_client(f, c, splits[opcode % ARRAY_SIZE(splits)]);
		pdu_login_step(c, 0x81, PDU_KEYS(NAMES));
		assert_int_equal(c->login_status, 0);
		other_pdu(c, opcode, opcode % 3 * 16);
		pdu = pdu_expect(c, OP_LOGIN_RESPONSE);
		assert_int_equal(get_be16(pdu.bhs + BHS_STATUS_CLASS), 0x020b);
		assert_closed(c);
	}
	assert_int_equal(f->target.server->session_count, 0);
}

/* ---- 3 ---- */

static void bug_03_login_that_never_completes(void **state)
{
	/* Bytes of the first login PDU that come; 1000: all of it. */
	static const size_t amounts[] = {0, 1, 20, 47, 48, 60, 1000};
	struct real_fixture *f = *state;
	struct pdu_client *c = &f->client[0];

	for (size_t i = 0; i < ARRAY_SIZE(amounts); i++) {
		open_client(f, c, 0);
		pdu_login_send(c, 0x81, PDU_KEYS(NAMES));
		c->filled = MIN_OF(c->filled, amounts[i]);
		pdu_client_pump(c);
		real_target_pass(&f->target, 14 * NS_PER_S);
		assert_false(c->closed);
		/* Others do not wait for it. */
		real_alive(f, real_login(f, 1, NULL, 0));
		pdu_client_close(&f->client[1]);
		real_target_pass(&f->target, 16 * NS_PER_S);
		assert_true(c->closed);
	}
	assert_int_equal(f->target.server->conn_count, 0);
}

/* A byte now and then does not buy time. */
static void bug_03_login_byte_by_byte(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = &f->client[0];
	uint8_t wire[512];
	size_t size, seconds = 0;

	open_client(f, c, 0);
	pdu_login_send(c, 0x81, PDU_KEYS(NAMES));
	size = MIN_OF(c->filled, sizeof wire);
	memcpy(wire, c->to_server, size);
	c->filled = 0;
	while (!c->closed) {
		assert_true(++seconds <= 30);
		pdu_send_raw(c, wire + seconds, 1);
		pdu_client_pump(c);
		real_target_pass(&f->target, NS_PER_S);
	}
	assert_in_range(seconds, 10, 30);
}

/* When there is no room any more, those that have been at their login for longest make it. */
static void bug_03_full_server_makes_room(void **state)
{
	struct real_fixture *f = *state;
	struct iscsi_server *server = f->target.server;
	unsigned others;

	real_login(f, 0, NULL, 0);
	open_client(f, &f->client[1], 0);
	real_target_pass(&f->target, NS_PER_S);
	open_client(f, &f->client[2], 0);
	others = ISCSI_MAX_CONNECTIONS - server->conn_count;
	server->conn_count += others;
	real_login(f, 3, NULL, 0); /* takes the place of the older silent one */
	assert_true(f->client[1].closed);
	assert_false(f->client[2].closed);
	real_alive(f, &f->client[0]);
	pdu_client_close(&f->client[3]);
	server->conn_count++;
	real_login(f, 3, NULL, 0);
	assert_true(f->client[2].closed);
	real_alive(f, &f->client[0]);
	/* Nobody is left who could: sessions are not ended for newcomers. */
	assert_null(iscsi_conn_new(f->target.portal, "127.0.0.1", NULL, NULL));
	real_alive(f, &f->client[0]);
	real_alive(f, &f->client[3]);
	server->conn_count -= others + 1;
}

/* ---- 4 ---- */

static void bug_04_logins_killed_midway_while_tasks_are_pending(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = &f->client[0], *again = &f->client[1];
	uint8_t bhs[BHS_BYTES];

	memcpy(again->isid, c->isid, sizeof c->isid);
	for (unsigned round = 0; round < 24; round++) {
		real_target_pass(&f->target, NS_PER_S); /* the drives let go of the last round */
		real_login(f, 0, NULL, 0);
		for (unsigned i = 0; i < 4; i++)
			real_command(c, bhs, REAL_LUN_SLOW, FLAG_FINAL | FLAG_READ,
				     CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 8, 0), 4096, NULL, 0);
		pdu_tmf(c, bhs, TMF_ABORT_TASK_SET + round % 4 / 3 * 3, ISCSI_NO_TAG, 0);
		bhs[BHS_LUN + 1] = REAL_LUN_SLOW;
		pdu_send(c, bhs, NULL, 0);
		pdu_client_push(c);
		/* The next login takes the session over, and goes away while it waits for that. */
		open_client(f, again, 0);
		pdu_login_step(again, 0x81, PDU_KEYS(NAMES));
		if (round % 2)
			pdu_login_send(again, 0x87, NULL, 0);
		pdu_client_push(again);
		pdu_client_close(again);
		if (round % 3 == 0)
			real_target_pass(&f->target, NS_PER_MS);
		pdu_client_close(c);
	}
	real_target_pass(&f->target, NS_PER_S);
	assert_int_equal(f->target.server->session_count, 0);
	real_alive(f, real_login(f, 0, NULL, 0));
}

/* ---- 5 ---- */

static void bug_05_data_segment_longer_than_login_allows(void **state)
{
	static const uint32_t lengths[] = {8193, 8196, 0xffff, 0x10000, 0xffffff};
	struct real_fixture *f = *state;
	struct pdu_client *c = &f->client[0];
	uint8_t bhs[BHS_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(lengths) * ARRAY_SIZE(splits) * 2; i++) {
		bool second = i % 2;

		open_client(f, c, splits[i / 2 % ARRAY_SIZE(splits)]);
		if (second)
			pdu_login_step(c, 0x81, PDU_KEYS(NAMES));
		pdu_begin(bhs, OP_LOGIN | OP_IMMEDIATE, 0x81);
		memcpy(bhs + BHS_ISID, c->isid, sizeof c->isid);
		put_be32(bhs + BHS_CMD_SN, c->cmd_sn);
		put_be24(bhs + BHS_DATA_BYTES, lengths[i / 2 / ARRAY_SIZE(splits)]);
		pdu_send_raw(c, bhs, sizeof bhs);
		pdu_send_raw(c, f->pattern, 9000);
		assert_closed(c);
	}
	assert_int_equal(buf_pool_in_use_bytes(f->target.pool), 0);
}

/* As long as is allowed, to the byte, is taken. */
static void bug_05_longest_login_text(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = &f->client[0];
	char *text = (char *)f->back;
	size_t at = sizeof NAMES;

	memcpy(text, NAMES, at);
	for (unsigned key = 0; at < 8192; key++) {
		size_t room = 8192 - at;
		size_t fill = MIN_OF(room, 200U);

		if (room - fill < 16)
			fill = room > 250 ? fill - 16 : room;
		memset(text + at, 'v', fill - 1);
		text[at + fill - 1] = '\0';
		snprintf(text + at, 12, "X-%07u", key);
		text[at + 9] = '=';
		at += fill;
	}
	assert_int_equal(at, 8192);
	open_client(f, c, 0);
	pdu_login_step(c, 0x81, text, at);
	assert_int_equal(c->login_status, 0);
	assert_string_equal(pdu_login_value(c, "X-0000000"), "NotUnderstood");
}

/* In the full feature phase: refused before it is stored, and dropped. */
static void bug_05_data_segment_longer_than_declared(void **state)
{
	static const uint32_t lengths[] = {262145, 262148, 0xffffff};
	static const uint8_t opcodes[] = {OP_NOP_OUT,  OP_SCSI_COMMAND, OP_TASK_MANAGEMENT, OP_TEXT,
					  OP_DATA_OUT, OP_LOGOUT,	OP_SNACK,	    0x1c};
	struct real_fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(lengths) * ARRAY_SIZE(opcodes); i++) {
		struct pdu_client *c = real_login(f, 0, NULL, 0);
		size_t before = buf_pool_in_use_bytes(f->target.pool);
		uint8_t bhs[BHS_BYTES];
		struct pdu pdu;

		pdu_begin(bhs, opcodes[i % ARRAY_SIZE(opcodes)] | OP_IMMEDIATE, FLAG_FINAL);
		put_be24(bhs + BHS_DATA_BYTES, lengths[i / ARRAY_SIZE(opcodes)]);
		pdu_send_raw(c, bhs, sizeof bhs);
		pdu_send_raw(c, f->pattern, 100000);
		pdu = pdu_expect(c, OP_REJECT);
		assert_int_equal(pdu.bhs[BHS_RESPONSE], REJECT_PROTOCOL_ERROR);
		assert_memory_equal(pdu.data, bhs, BHS_BYTES);
		assert_true(buf_pool_in_use_bytes(f->target.pool) <= before);
		assert_closed(c);
	}
}

/* ---- 19 ---- */

static void bug_19_isids_that_differ_in_one_byte(void **state)
{
	struct real_fixture *f = *state;

	for (unsigned byte = 0; byte < 6; byte++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			struct pdu_client *a = &f->client[0], *b = &f->client[1];

			memcpy(b->isid, a->isid, sizeof a->isid);
			b->isid[byte] ^= (uint8_t)(1U << bit);
			real_login(f, 0, NULL, 0);
			real_login(f, 1, NULL, 0);
			assert_int_equal(f->target.server->session_count, 2);
			assert_int_not_equal(a->tsih, b->tsih);
			real_alive(f, a);
			real_alive(f, b);
			pdu_client_close(a);
			pdu_client_close(b);
		}
	}
}

/* ---- 20 ---- */

static void name_check(struct real_fixture *f, const char *name, bool good)
{
	struct pdu_client *c = &f->client[0];
	char text[1024];
	int n = snprintf(text, sizeof text, "InitiatorName=%s%cTargetName=%s", name, 0,
			 REAL_TARGET_NAME);

	open_client(f, c, 0);
	pdu_login_step(c, 0x87, text, (size_t)n + 1);
	if (good) {
		assert_int_equal(c->login_status, 0);
		real_settle_attentions(f, c, REAL_LUN_FAST);
	} else {
		assert_int_equal(c->login_status >> 8, 2);
		assert_closed(c);
	}
	pdu_client_close(c);
	assert_int_equal(f->target.server->session_count, 0);
}

static void bug_20_invalid_initiator_names(void **state)
{
	static const char *const bad[] = {
	    "",
	    "foo",
	    "foo bar",
	    "iqn",
	    "iqn.",
	    "iqn.2026-11.test bar",
	    "iqn.2026-11.test:tab\tx",
	    "iqn.2026-11.test:control\x01",
	    "iqn.2026-11.test:comma,x",
	    "iqn.2026-11.test:delete\x7f",
	    "eui.",
	    "eui.0123",
	    "eui.0123456789abcdeg",
	    "eui.0123456789abcdef0",
	    "naa.",
	    "naa.5200",
	    "naa.52004567BA64678X",
	    "naa.52004567BA64678D0",
	    "naa.62004567BA64678D0123456789ABCDEFF",
	};
	static const char *const good[] = {
	    "iqn.2026-11.test.sanlab:client",
	    "IQN.2026-11.test.Sanlab:CLIENT",
	    "eui.0123456789ABCDEF",
	    "naa.52004567BA64678D",
	    "naa.62004567BA64678D0123456789ABCDEF",
	};
	struct real_fixture *f = *state;
	char name[512];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		name_check(f, bad[i], false);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		name_check(f, good[i], true);
	for (size_t length = 220; length < 260; length++) {
		memset(name, 'x', sizeof name);
		memcpy(name, "iqn.2026-11.test:", 17);
		name[length] = '\0';
		name_check(f, name, length <= 223);
	}
}

/* ---- 22 ---- */

static void bug_22_redirection_to_nowhere(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = &f->client[0];
	struct iscsi_portal *group = real_target_portal(&f->target, "127.0.0.1", 3300, 1, true);

	assert_non_null(group);
	for (unsigned i = 0; i < 3; i++) {
		f->target.portal->down = true;
		pdu_client_open(c, group);
		c->tsih = 0;
		c->exp_stat_sn = 0;
		pdu_login_step(c, 0x83, PDU_KEYS(NAMES));
		assert_int_equal(c->login_status >> 8, 3);
		assert_null(pdu_login_value(c, "TargetAddress"));
		assert_closed(c);
		assert_int_equal(f->target.server->session_count, 0);
		/* As soon as there is somewhere to go, it says where; never itself. */
		f->target.portal->down = false;
		pdu_client_open(c, group);
		c->exp_stat_sn = 0;
		pdu_login_step(c, 0x83, PDU_KEYS(NAMES));
		assert_int_equal(c->login_status, 0x0101);
		assert_string_equal(pdu_login_value(c, "TargetAddress"), "127.0.0.1:3260");
		assert_closed(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    REAL_TEST(bug_01_non_login_pdu_before_login),
	    REAL_TEST(bug_01_non_login_pdu_during_login),
	    REAL_TEST(bug_03_login_that_never_completes),
	    REAL_TEST(bug_03_login_byte_by_byte),
	    REAL_TEST(bug_03_full_server_makes_room),
	    REAL_TEST(bug_04_logins_killed_midway_while_tasks_are_pending),
	    REAL_TEST(bug_05_data_segment_longer_than_login_allows),
	    REAL_TEST(bug_05_longest_login_text),
	    REAL_TEST(bug_05_data_segment_longer_than_declared),
	    REAL_TEST(bug_19_isids_that_differ_in_one_byte),
	    REAL_TEST(bug_20_invalid_initiator_names),
	    REAL_TEST(bug_22_redirection_to_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
