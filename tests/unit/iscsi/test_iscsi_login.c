/* SPDX-License-Identifier: MIT
 *
 * The login phase: what is refused and how, stages, text in parts, timer, redirection.
 */
#include "tests/unit/iscsi/fixture.h"

#include <stdio.h>

#define NAMES "InitiatorName=iqn.2026-11.test.sanlab:client\0TargetName=" TARGET_NAME

static void test_plain(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	fixture_login(f, PDU_KEYS("InitialR2T=No\0MaxBurstLength=16776192"));
	assert_string_equal(pdu_login_value(c, "TargetPortalGroupTag"), "1");
	assert_string_equal(pdu_login_value(c, "AuthMethod"), "None");
	assert_string_equal(pdu_login_value(c, "InitialR2T"), "No");
	assert_string_equal(pdu_login_value(c, "MaxBurstLength"), "1048576");
	assert_string_equal(pdu_login_value(c, "MaxRecvDataSegmentLength"), "262144");
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
	assert_int_equal(iscsi_portal_counters(f->portal)->logins, 1);
	assert_int_equal(iscsi_portal_counters(f->portal)->connections_now, 1);
}

static void test_straight_to_operational(void **state)
{
	struct fixture *f = *state;

	pdu_client_open(&f->client, f->portal);
	pdu_login_step(&f->client, 0x87, PDU_KEYS(NAMES "\0HeaderDigest=None"));
	assert_int_equal(f->client.login_status, 0);
	assert_int_equal(pdu_test_unit_ready(&f->client), SCSI_GOOD);
}

struct refusal {
	const char *what;
	unsigned flags;
	const char *keys;
	size_t size;
	unsigned status;
};

static const struct refusal refusals[] = {
    {"no initiator name", 0x81, PDU_KEYS("TargetName=" TARGET_NAME), 0x0207},
    {"no target name", 0x81, PDU_KEYS("InitiatorName=iqn.2026-11.x:a"), 0x0207},
    {"no keys", 0x81, NULL, 0, 0x0207},
    {"unknown target", 0x81, PDU_KEYS("InitiatorName=iqn.2026-11.x:a\0TargetName=iqn.2026-11.x:z"),
     0x0203},
    {"name with a space", 0x81, PDU_KEYS("InitiatorName=foo bar\0TargetName=" TARGET_NAME), 0x0200},
    {"empty name", 0x81, PDU_KEYS("InitiatorName=\0TargetName=" TARGET_NAME), 0x0200},
    {"repeated key", 0x81, PDU_KEYS(NAMES "\0InitiatorName=iqn.2026-11.test.sanlab:client"),
     0x0200},
    {"unknown session type", 0x81, PDU_KEYS(NAMES "\0SessionType=Odd"), 0x0209},
    {"no value", 0x81, PDU_KEYS(NAMES "\0Garbage"), 0x0200},
    {"reserved stage 2", 0x89, PDU_KEYS(NAMES), 0x0200},
    {"next stage reserved", 0x82, PDU_KEYS(NAMES), 0x0200},
    {"next stage not later", 0x80, PDU_KEYS(NAMES), 0x0200},
    {"next stage earlier", 0x84, PDU_KEYS(NAMES), 0x0200},
    {"T with C", 0xc1, PDU_KEYS(NAMES), 0x0200},
    {"only CHAP offered", 0x81, PDU_KEYS(NAMES "\0AuthMethod=CHAP"), 0x0201},
    {"operational key in security", 0x81, PDU_KEYS(NAMES "\0MaxBurstLength=4096"), 0x0200},
};

static void test_refusals(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		print_message("# %s\n", refusals[i].what);
		c->exp_stat_sn = c->exp_cmd_sn = c->max_cmd_sn = 0;
		pdu_client_open(c, f->portal);
		pdu_login_step(c, refusals[i].flags, refusals[i].keys, refusals[i].size);
		assert_int_equal(c->login_status, refusals[i].status);
		assert_true(c->closed);
		assert_int_equal(iscsi_portal_counters(f->portal)->login_failures, i + 1);
	}
	assert_int_equal(iscsi_portal_counters(f->portal)->connections_now, 0);
	assert_int_equal(f->server->session_count, 0);
}

static void test_versions(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	uint8_t bhs[BHS_BYTES];
	struct pdu pdu;

	pdu_client_open(c, f->portal);
	pdu_begin(bhs, OP_LOGIN | OP_IMMEDIATE, 0x81);
	bhs[BHS_VERSION_MAX] = 2;
	bhs[BHS_VERSION_MIN] = 1;
	pdu_send(c, bhs, PDU_KEYS(NAMES));
	pdu = pdu_expect(c, OP_LOGIN_RESPONSE);
	assert_int_equal(get_be16(pdu.bhs + BHS_STATUS_CLASS), 0x0205);
}

static void test_unknown_tsih(void **state)
{
	struct fixture *f = *state;

	f->client.tsih = 77;
	pdu_client_open(&f->client, f->portal);
	pdu_login_step(&f->client, 0x81, PDU_KEYS(NAMES));
	assert_int_equal(f->client.login_status, 0x020a);
}

/* The first PDU is no login: dropped without an answer (prior bug 1). */
static void test_first_pdu_no_login(void **state)
{
	static const uint8_t opcodes[] = {OP_TEXT, OP_NOP_OUT, OP_SCSI_COMMAND, OP_DATA_OUT, 0x1c};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
		uint8_t bhs[BHS_BYTES];

		pdu_client_open(&f->client, f->portal);
		pdu_begin(bhs, opcodes[i], 0x80);
		pdu_send(&f->client, bhs, "0123456789abcdef", 16);
		pdu_expect_nothing(&f->client);
		assert_true(f->client.closed);
	}
	assert_int_equal(iscsi_portal_counters(f->portal)->protocol_errors, ARRAY_SIZE(opcodes));
}

/* Another PDU in the middle of the login: 020b, then dropped. */
static void test_other_pdu_during_login(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	uint8_t bhs[BHS_BYTES];
	struct pdu pdu;

	pdu_client_open(c, f->portal);
	pdu_login_step(c, 0x81, PDU_KEYS(NAMES));
	assert_int_equal(c->login_status, 0);
	pdu_begin(bhs, OP_NOP_OUT, 0x80);
	pdu_send(c, bhs, NULL, 0);
	pdu = pdu_expect(c, OP_LOGIN_RESPONSE);
	assert_int_equal(get_be16(pdu.bhs + BHS_STATUS_CLASS), 0x020b);
	assert_true(c->closed);
}

/* Silence, half a header, or only the first request: the timer ends it (prior bug 3). */
static void test_login_timer(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	for (int stage = 0; stage < 3; stage++) {
		c->exp_stat_sn = c->exp_cmd_sn = c->max_cmd_sn = 0;
		pdu_client_open(c, f->portal);
		if (stage == 1) {
			pdu_send_raw(c, "\x43\x81\0\0\0\0\0\x40\0\0\0\0\0\0\0\0\0\0\0\0", 20);
			pdu_client_pump(c);
		}
		if (stage == 2)
			pdu_login_step(c, 0x81, PDU_KEYS(NAMES));
		loop_run_until(f->loop, loop_now_ns(f->loop) + ISCSI_LOGIN_NS - 1);
		assert_false(c->closed);
		loop_run_until(f->loop, loop_now_ns(f->loop) + 2);
		assert_true(c->closed);
	}
	assert_int_equal(f->server->conn_count, 0);
}

/* A data segment above 8192 bytes is not even read (prior bug 5). */
static void test_huge_first_pdu(void **state)
{
	struct fixture *f = *state;
	uint8_t bhs[BHS_BYTES];

	pdu_client_open(&f->client, f->portal);
	pdu_begin(bhs, OP_LOGIN | OP_IMMEDIATE, 0x81);
	put_be24(bhs + BHS_DATA_BYTES, 0xffff);
	pdu_send_raw(&f->client, bhs, sizeof bhs);
	pdu_expect_nothing(&f->client);
	assert_true(f->client.closed);
}

/* Text in parts: a value straddles PDUs; each part is answered with an empty response. */
static void test_continued_text(void **state)
{
	static const char keys[] = NAMES "\0AuthMethod=None";
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	pdu_client_open(c, f->portal);
	for (size_t at = 0; at < sizeof keys; at += 10) {
		size_t size = MIN_OF(sizeof keys - at, 10U);
		bool last = at + size == sizeof keys;
		struct pdu pdu;

		pdu_login_send(c, last ? 0x81 : 0x40, keys + at, size);
		pdu = pdu_expect(c, OP_LOGIN_RESPONSE);
		assert_int_equal(get_be16(pdu.bhs + BHS_STATUS_CLASS), 0);
		assert_int_equal(pdu.bhs[BHS_FLAGS], last ? 0x81 : 0x00);
		assert_int_equal(pdu.data_bytes > 0, last);
	}
	pdu_login_step(c, 0x87, NULL, 0);
	assert_int_equal(c->login_status, 0);
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
}

/* Too much text, or requests without end, are refused. */
static void test_text_bounds(void **state)
{
	static char many[8192];
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	memset(many, 'x', sizeof many);
	pdu_client_open(c, f->portal);
	pdu_login_step(c, 0x40, many, sizeof many);
	pdu_login_step(c, 0x40, many, sizeof many);
	assert_int_equal(c->login_status, 0);
	pdu_login_step(c, 0x40, many, 4);
	assert_int_equal(c->login_status, 0x0200);
	assert_true(c->closed);

	c->exp_stat_sn = c->exp_cmd_sn = c->max_cmd_sn = 0;
	pdu_client_open(c, f->portal);
	pdu_login_step(c, 0x04, PDU_KEYS(NAMES));
	for (int i = 0; i < LOGIN_MAX_REQUESTS && c->login_status == 0; i++)
		pdu_login_step(c, 0x04, NULL, 0);
	assert_int_equal(c->login_status, 0x0200);
}

/* Many unknown keys make an answer above 8192 bytes: it comes in parts (prior bug 6: whatever
 * the initiator has declared). */
static void test_long_answer(void **state)
{
	static char keys[8192];
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	size_t at = 0, count = 0, answers = 0;
	struct pdu pdu;

	pdu_client_open(c, f->portal);
	pdu_login_step(c, 0x81, PDU_KEYS(NAMES));
	at += (size_t)snprintf(keys, sizeof keys, "MaxRecvDataSegmentLength=512") + 1;
	while (at + 8 < sizeof keys) {
		at += (size_t)snprintf(keys + at, sizeof keys - at, "X%zu=1", count % 1000) + 1;
		count++;
	}
	c->login_text_bytes = 0;
	pdu_login_send(c, 0x87, keys, at);
	for (;;) {
		pdu = pdu_expect(c, OP_LOGIN_RESPONSE);
		assert_int_equal(get_be16(pdu.bhs + BHS_STATUS_CLASS), 0);
		assert_true(pdu.data_bytes <= 8192);
		memcpy(c->login_text + c->login_text_bytes, pdu.data, pdu.data_bytes);
		c->login_text_bytes += pdu.data_bytes;
		answers++;
		if (!(pdu.bhs[BHS_FLAGS] & FLAG_CONTINUE))
			break;
		assert_false(pdu.bhs[BHS_FLAGS] & FLAG_TRANSIT);
		pdu_login_send(c, 0x87, NULL, 0);
	}
	assert_true(answers > 1);
	assert_int_equal(pdu.bhs[BHS_FLAGS], 0x87);
	assert_string_equal(pdu_login_value(c, "X7"), "NotUnderstood");
	for (size_t i = 0; i < c->login_text_bytes; i += strlen(c->login_text + i) + 1)
		count -= strstr(c->login_text + i, "NotUnderstood") != NULL;
	assert_int_equal(count, 0);
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
}

/* ITT, CmdSN, ISID, CID and the stage stay what they were. */
static void test_changing_fields(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	for (int field = 0; field < 4; field++) {
		uint8_t bhs[BHS_BYTES];
		struct pdu pdu;

		c->exp_stat_sn = c->exp_cmd_sn = c->max_cmd_sn = 0;
		pdu_client_open(c, f->portal);
		pdu_login_step(c, 0x81, PDU_KEYS(NAMES));
		assert_int_equal(c->login_status, 0);
		pdu_begin(bhs, OP_LOGIN | OP_IMMEDIATE, field == 3 ? 0x81 : 0x87);
		memcpy(bhs + BHS_ISID, c->isid, sizeof c->isid);
		put_be32(bhs + BHS_CMD_SN, c->cmd_sn);
		bhs[BHS_ITT] = field == 0;
		bhs[BHS_CMD_SN] += field == 1;
		bhs[BHS_ISID] ^= field == 2;
		pdu_send(c, bhs, NULL, 0);
		pdu = pdu_expect(c, OP_LOGIN_RESPONSE);
		assert_int_equal(get_be16(pdu.bhs + BHS_STATUS_CLASS), 0x0200);
	}
}

/* "CHAP,None" from an initiator without credentials (prior bug 17). */
static void test_auth_list(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	pdu_client_open(c, f->portal);
	pdu_login_step(c, 0x81, PDU_KEYS(NAMES "\0AuthMethod=CHAP,None"));
	assert_int_equal(c->login_status, 0);
	assert_string_equal(pdu_login_value(c, "AuthMethod"), "None");
}

/* T before authentication is done must not skip it (prior bug 14). */
static enum iscsi_login_status admit_all(void *arg, const struct iscsi_login *login, char *address)
{
	return LOGIN_SUCCESS;
}

static void test_auth_required(void **state)
{
	static struct iscsi_login login;
	struct iscsi_login_env env = {.group_tag = 1, .auth_required = true, .admit = admit_all};
	uint8_t bhs[BHS_BYTES], answer[BHS_BYTES];
	const char *text;
	uint32_t bytes;

	iscsi_login_init(&login, &env);
	memcpy(iscsi_login_room(&login, sizeof NAMES), NAMES, sizeof NAMES);
	pdu_begin(bhs, OP_LOGIN | OP_IMMEDIATE, 0x83);
	put_be24(bhs + BHS_DATA_BYTES, sizeof NAMES);
	assert_int_equal(iscsi_login_request(&login, bhs, answer, &text, &bytes), LOGIN_CONTINUE);
	assert_false(answer[BHS_FLAGS] & FLAG_TRANSIT);

	iscsi_login_init(&login, &env);
	memcpy(iscsi_login_room(&login, sizeof NAMES "\0AuthMethod=None"),
	       NAMES "\0AuthMethod=None", sizeof NAMES "\0AuthMethod=None");
	put_be24(bhs + BHS_DATA_BYTES, sizeof NAMES "\0AuthMethod=None");
	assert_int_equal(iscsi_login_request(&login, bhs, answer, &text, &bytes), LOGIN_REFUSED);
	assert_int_equal(get_be16(answer + BHS_STATUS_CLASS), 0x0201);
}

static void redirected_to(struct fixture *f, struct iscsi_portal *via, const char *wanted)
{
	struct pdu_client *c = &f->client;

	c->exp_stat_sn = c->exp_cmd_sn = c->max_cmd_sn = 0;
	pdu_client_open(c, via);
	pdu_login_step(c, 0x81, PDU_KEYS(NAMES));
	if (wanted) {
		assert_int_equal(c->login_status, 0x0101);
		assert_string_equal(pdu_login_value(c, "TargetAddress"), wanted);
		assert_null(pdu_login_value(c, "TargetPortalGroupTag"));
	} else {
		assert_int_equal(c->login_status, 0x0301);
	}
	assert_true(c->closed);
	assert_int_equal(c->tsih, 0);
}

static void test_redirect(void **state)
{
	struct fixture *f = *state;
	struct iscsi_portal *group = fixture_portal(f, "127.0.0.1", 3270, 1, true);
	struct iscsi_portal *second = fixture_portal(f, "::1", 3262, 1, false);
	struct pdu_client there;

	/* One connection at the first member: the second has fewer. */
	pdu_client_init(&there, f->server);
	there.initiator_name = "iqn.2026-11.test.sanlab:there";
	pdu_client_open(&there, f->portal);
	assert_int_equal(pdu_login(&there, TARGET_NAME, NULL, 0), 0);
	redirected_to(f, group, "[::1]:3262");
	/* That login is on its way and counts: now they are equal, the first is taken. */
	redirected_to(f, group, "127.0.0.1:3260");
	redirected_to(f, group, "[::1]:3262");
	assert_int_equal(iscsi_portal_counters(group)->redirects, 3);
	/* Redirected logins that never came are forgotten. */
	loop_run_until(f->loop, loop_now_ns(f->loop) + ISCSI_REDIRECT_NS);
	redirected_to(f, group, "[::1]:3262");
	loop_run_until(f->loop, loop_now_ns(f->loop) + ISCSI_REDIRECT_NS);
	/* Never to one that is down; to none when all are. */
	second->down = true;
	redirected_to(f, group, "127.0.0.1:3260");
	f->portal->down = true;
	redirected_to(f, group, NULL);
	f->portal->down = second->down = false;
	/* A target that is not there is told before any redirect. */
	f->client.exp_stat_sn = f->client.exp_cmd_sn = f->client.max_cmd_sn = 0;
	pdu_client_open(&f->client, group);
	pdu_login_step(&f->client, 0x81,
		       PDU_KEYS("InitiatorName=iqn.2026-11.x:a\0TargetName=iqn.2026-11.x:z"));
	assert_int_equal(f->client.login_status, 0x0203);
	/* Discovery is not redirected. */
	f->client.exp_stat_sn = f->client.exp_cmd_sn = f->client.max_cmd_sn = 0;
	pdu_client_open(&f->client, group);
	assert_int_equal(pdu_login_discovery(&f->client, NULL, 0), 0);
	pdu_client_done(&there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    FIXTURE_TEST(test_plain),
	    FIXTURE_TEST(test_straight_to_operational),
	    FIXTURE_TEST(test_refusals),
	    FIXTURE_TEST(test_versions),
	    FIXTURE_TEST(test_unknown_tsih),
	    FIXTURE_TEST(test_first_pdu_no_login),
	    FIXTURE_TEST(test_other_pdu_during_login),
	    FIXTURE_TEST(test_login_timer),
	    FIXTURE_TEST(test_huge_first_pdu),
	    FIXTURE_TEST(test_continued_text),
	    FIXTURE_TEST(test_text_bounds),
	    FIXTURE_TEST(test_long_answer),
	    FIXTURE_TEST(test_changing_fields),
	    FIXTURE_TEST(test_auth_list),
	    FIXTURE_TEST(test_auth_required),
	    FIXTURE_TEST(test_redirect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
