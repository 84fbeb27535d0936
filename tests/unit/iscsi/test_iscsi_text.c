/* SPDX-License-Identifier: MIT
 *
 * Text requests: discovery, long answers in parts, continuation, what is refused.
 */
#include "tests/unit/iscsi/fixture.h"

#include <stdio.h>

struct answer {
	char text[65536];
	size_t bytes;
	unsigned parts;
};

static void text_send(struct pdu_client *c, unsigned flags, uint32_t itt, uint32_t ttt,
		      const char *keys, size_t size)
{
	uint8_t bhs[BHS_BYTES];

	pdu_begin(bhs, OP_TEXT, flags);
	put_be32(bhs + BHS_ITT, itt);
	put_be32(bhs + BHS_TTT, ttt);
	put_be32(bhs + BHS_CMD_SN, c->cmd_sn++);
	pdu_send(c, bhs, keys, (uint32_t)size);
}

/* Sends one request and fetches its whole answer. */
static void text_ask(struct pdu_client *c, const char *keys, size_t size, struct answer *answer)
{
	uint32_t itt = c->itt++, ttt = ISCSI_NO_TAG;

	answer->bytes = 0;
	answer->parts = 0;
	for (;;) {
		struct pdu pdu;

		text_send(c, FLAG_FINAL, itt, ttt, ttt == ISCSI_NO_TAG ? keys : NULL,
			  ttt == ISCSI_NO_TAG ? size : 0);
		pdu = pdu_expect(c, OP_TEXT_RESPONSE);
		assert_int_equal(bhs_itt(pdu.bhs), itt);
		assert_true(pdu.data_bytes <= c->conn->params.max_send_bytes);
		assert_true(answer->bytes + pdu.data_bytes < sizeof answer->text);
		memcpy(answer->text + answer->bytes, pdu.data, pdu.data_bytes);
		answer->bytes += pdu.data_bytes;
		answer->parts++;
		ttt = bhs_ttt(pdu.bhs);
		if (pdu.bhs[BHS_FLAGS] & FLAG_FINAL)
			break;
		assert_int_equal(pdu.bhs[BHS_FLAGS], FLAG_CONTINUE);
		assert_int_not_equal(ttt, ISCSI_NO_TAG);
	}
	assert_int_equal(ttt, ISCSI_NO_TAG);
	answer->text[answer->bytes] = '\0';
}

/* All strings of the answer, joined by ";". */
static const char *joined(struct answer *answer)
{
	for (size_t i = 0; i + 1 < answer->bytes; i++) {
		if (answer->text[i] == '\0')
			answer->text[i] = ';';
	}
	return answer->text;
}

static void test_send_targets(void **state)
{
	static struct answer answer;
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	fixture_portal(f, "::1", 3262, 2, false);
	pdu_client_open(c, f->portal);
	assert_int_equal(pdu_login_discovery(c, NULL, 0), 0);
	text_ask(c, PDU_KEYS("SendTargets=All"), &answer);
	assert_string_equal(joined(&answer),
			    "TargetName=" TARGET_NAME ";TargetAddress=127.0.0.1:3260,1;"
			    "TargetAddress=[::1]:3262,2");
	text_ask(c, PDU_KEYS("SendTargets=" TARGET_NAME), &answer);
	assert_true(answer.bytes > 0);
	text_ask(c, PDU_KEYS("SendTargets=iqn.2026-11.x:none"), &answer);
	assert_int_equal(answer.bytes, 0);
	text_ask(c, PDU_KEYS("SendTargets="), &answer);
	assert_string_equal(joined(&answer), "SendTargets=Reject");
}

/* Where a group portal redirects, it alone is listed; when it is down, the members are. */
static void test_group_portal(void **state)
{
	static struct answer answer;
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	struct iscsi_portal *group = fixture_portal(f, "0.0.0.0", 3270, 1, true);
	struct iscsi_portal *second = fixture_portal(f, "127.0.0.1", 3262, 1, false);

	pdu_client_open(c, f->portal);
	assert_int_equal(pdu_login_discovery(c, NULL, 0), 0);
	text_ask(c, PDU_KEYS("SendTargets=All"), &answer);
	/* A wildcard address is shown as the one the initiator has reached. */
	assert_string_equal(joined(&answer),
			    "TargetName=" TARGET_NAME ";TargetAddress=127.0.0.1:3270,1");
	group->down = true;
	text_ask(c, PDU_KEYS("SendTargets=All"), &answer);
	assert_string_equal(joined(&answer),
			    "TargetName=" TARGET_NAME ";TargetAddress=127.0.0.1:3260,1;"
			    "TargetAddress=127.0.0.1:3262,1");
	second->down = true;
	text_ask(c, PDU_KEYS("SendTargets=All"), &answer);
	assert_string_equal(joined(&answer),
			    "TargetName=" TARGET_NAME ";TargetAddress=127.0.0.1:3260,1");
}

static void test_normal_session(void **state)
{
	static struct answer answer;
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	fixture_login(f, NULL, 0);
	text_ask(c, PDU_KEYS("SendTargets="), &answer);
	assert_string_equal(joined(&answer),
			    "TargetName=" TARGET_NAME ";TargetAddress=127.0.0.1:3260,1");
	text_ask(c, PDU_KEYS("SendTargets=All"), &answer);
	assert_string_equal(joined(&answer), "SendTargets=Reject");
	text_ask(c, PDU_KEYS("SendTargets=iqn.2026-11.x:other\0X-y=1\0MaxBurstLength=4096"),
		 &answer);
	assert_string_equal(joined(&answer),
			    "SendTargets=Reject;X-y=NotUnderstood;MaxBurstLength=Reject");
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
}

/* Twenty targets through MaxRecvDataSegmentLength=512 (prior bugs 7, 8). */
static void test_small_segments(void **state)
{
	static struct answer answer;
	struct scsi_target *targets[20];
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	size_t names = 0;

	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		char name[64];

		snprintf(name, sizeof name, TARGET_NAME "-%zu", i);
		targets[i] = fake_target_new(f->pool, name);
		assert_int_equal(iscsi_server_add_target(f->server, targets[i]), 0);
	}
	pdu_client_open(c, f->portal);
	assert_int_equal(pdu_login_discovery(c, PDU_KEYS("MaxRecvDataSegmentLength=512")), 0);
	text_ask(c, PDU_KEYS("SendTargets=All"), &answer);
	assert_int_equal(answer.parts, (answer.bytes + 511) / 512);
	assert_true(answer.parts > 2);
	for (size_t i = 0; i < answer.bytes; i += strlen(answer.text + i) + 1)
		names += strncmp(answer.text + i, "TargetName=", 11) == 0;
	assert_int_equal(names, 21);
	/* A new value is taken also now. */
	text_ask(c, PDU_KEYS("MaxRecvDataSegmentLength=65536"), &answer);
	text_ask(c, PDU_KEYS("SendTargets=All"), &answer);
	assert_int_equal(answer.parts, 1);
	f->server->target_count = 1;
	pdu_client_close(c);
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
		fake_target_free(targets[i]);
}

/* The initiator's text in parts, with C. */
static void test_request_in_parts(void **state)
{
	static const char keys[] = "SendTargets=All";
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	uint32_t ttt = ISCSI_NO_TAG;
	struct pdu pdu;

	pdu_client_open(c, f->portal);
	assert_int_equal(pdu_login_discovery(c, NULL, 0), 0);
	for (size_t at = 0; at < sizeof keys; at += 4) {
		size_t size = MIN_OF(sizeof keys - at, 4U);
		bool last = at + size == sizeof keys;

		text_send(c, last ? FLAG_FINAL : FLAG_CONTINUE, 9, ttt, keys + at, size);
		pdu = pdu_expect(c, OP_TEXT_RESPONSE);
		ttt = bhs_ttt(pdu.bhs);
		assert_int_equal(pdu.bhs[BHS_FLAGS], last ? FLAG_FINAL : 0);
		assert_int_equal(ttt == ISCSI_NO_TAG, last);
	}
	assert_memory_equal(pdu.data, "TargetName=", 11);
	/* F=0 without C: the answer must not have F either. */
	text_send(c, 0, 10, ISCSI_NO_TAG, keys, sizeof keys);
	pdu = pdu_expect(c, OP_TEXT_RESPONSE);
	assert_int_equal(pdu.bhs[BHS_FLAGS], 0);
	assert_true(pdu.data_bytes > 0);
	text_send(c, FLAG_FINAL, 10, bhs_ttt(pdu.bhs), NULL, 0);
	pdu = pdu_expect(c, OP_TEXT_RESPONSE);
	assert_int_equal(pdu.bhs[BHS_FLAGS], FLAG_FINAL);
	assert_int_equal(pdu.data_bytes, 0);
}

static void rejected(struct pdu_client *c, unsigned reason)
{
	struct pdu pdu = pdu_expect(c, OP_REJECT);

	assert_int_equal(pdu.bhs[BHS_RESPONSE], reason);
	assert_int_equal(bhs_itt(pdu.bhs), ISCSI_NO_TAG);
	assert_int_equal(pdu.data_bytes, BHS_BYTES);
}

static void test_refused(void **state)
{
	static char big[8193];
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	static const uint8_t cdb[16];
	uint8_t bhs[BHS_BYTES];

	pdu_client_open(c, f->portal);
	assert_int_equal(pdu_login_discovery(c, NULL, 0), 0);
	text_send(c, FLAG_FINAL, 1, 12345, PDU_KEYS("SendTargets=All")); /* unknown tag */
	rejected(c, REJECT_PROTOCOL_ERROR);
	text_send(c, FLAG_FINAL, 1, ISCSI_NO_TAG, "junk", 4);
	rejected(c, REJECT_PROTOCOL_ERROR);
	text_send(c, FLAG_FINAL | FLAG_CONTINUE, 1, ISCSI_NO_TAG, "A=b", 4);
	rejected(c, REJECT_PROTOCOL_ERROR);
	text_send(c, FLAG_FINAL, 1, ISCSI_NO_TAG, big, sizeof big);
	rejected(c, REJECT_PROTOCOL_ERROR);
	/* No SCSI in a discovery session. */
	pdu_command(c, bhs, FLAG_FINAL, cdb, 0);
	c->cmd_sn--; /* rejected, so its number does not count */
	pdu_send(c, bhs, NULL, 0);
	rejected(c, REJECT_PROTOCOL_ERROR);
	text_send(c, FLAG_FINAL, 1, ISCSI_NO_TAG, PDU_KEYS("SendTargets=All"));
	pdu_expect(c, OP_TEXT_RESPONSE);
	assert_int_equal(iscsi_portal_counters(f->portal)->rejects, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    FIXTURE_TEST(test_send_targets),	 FIXTURE_TEST(test_group_portal),
	    FIXTURE_TEST(test_normal_session),	 FIXTURE_TEST(test_small_segments),
	    FIXTURE_TEST(test_request_in_parts), FIXTURE_TEST(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
