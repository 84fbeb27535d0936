/* SPDX-License-Identifier: MIT
 *
 * Faults that other targets had in the text of logins and text requests (see test_prior_login.c).
 */
#include "tests/iscsi/real_fixture.h"

#include <stdio.h>
#include <stdlib.h>

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

/* ---- 6 ---- */

static void bug_06_declared_mrdsl_does_not_count_during_login(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = &f->client[0];
	char text[4096];
	size_t at = 0;
	struct pdu pdu;

	open_client(f, c, 0);
	pdu_login_step(c, 0x81, PDU_KEYS(NAMES));
	at += (size_t)snprintf(text, sizeof text, "MaxRecvDataSegmentLength=512") + 1;
	for (unsigned i = 0; i < 100; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "X-test.key%u=value", i) + 1;
	pdu_login_send(c, 0x87, text, at); /* more than 512 bytes, both ways */
	pdu = pdu_expect(c, OP_LOGIN_RESPONSE);
	assert_int_equal(get_be16(pdu.bhs + BHS_STATUS_CLASS), 0);
	assert_int_equal(pdu.bhs[BHS_FLAGS], 0x87);
	assert_true(pdu.data_bytes > 512);
	/* From now on it does. */
	assert_int_equal(c->conn->params.max_send_bytes, 512);
	real_settle_attentions(f, c, REAL_LUN_FAST);
	assert_true(
	    real_run(f, c, 0, FLAG_READ, CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 4, 0), 2048, NULL, 0)
		.data_pdus == 4);
}

/* ---- 7 and 8 ---- */

/* COUNT more targets, with names as long as they get. */
static void add_targets(struct real_fixture *f, unsigned count)
{
	struct exports *exports = &f->target.exports;

	exports->targets =
	    realloc(exports->targets, (exports->count + count) * sizeof(struct scsi_target *));
	assert_non_null(exports->targets);
	for (unsigned i = 0; i < count; i++) {
		char name[ISCSI_NAME_BYTES];
		struct scsi_target *made;

		memset(name, 'n', sizeof name);
		snprintf(name, sizeof name, "iqn.2026-11.test.sanlab:many:%03u", i);
		name[strlen(name)] = 'n';
		name[30 + i * 8 % 190] = '\0';
		made = scsi_target_new(exports->device, name);
		assert_non_null(made);
		exports->targets[exports->count++] = made;
		assert_int_equal(iscsi_server_add_target(f->target.server, made), 0);
	}
}

static void text_send(struct pdu_client *c, uint32_t ttt, const char *text, size_t size)
{
	uint8_t bhs[BHS_BYTES];

	pdu_begin(bhs, OP_TEXT | OP_IMMEDIATE, FLAG_FINAL);
	put_be32(bhs + BHS_ITT, 99);
	put_be32(bhs + BHS_TTT, ttt);
	put_be32(bhs + BHS_CMD_SN, c->cmd_sn);
	pdu_send(c, bhs, text, (uint32_t)size);
}

/* Collects the answer to TEXT in all its parts; how many there were. */
static unsigned text_collect(struct real_fixture *f, struct pdu_client *c, const char *text,
			     size_t size, size_t *ret_bytes)
{
	size_t at = 0;
	unsigned parts = 0;
	struct pdu pdu;

	text_send(c, ISCSI_NO_TAG, text, size);
	for (;;) {
		pdu = pdu_expect(c, OP_TEXT_RESPONSE);
		parts++;
		assert_int_equal(bhs_itt(pdu.bhs), 99);
		assert_true(pdu.data_bytes <= c->conn->params.max_send_bytes);
		assert_true(at + pdu.data_bytes <= REAL_MOST_BYTES);
		memcpy(f->back + at, pdu.data, pdu.data_bytes);
		at += pdu.data_bytes;
		if (pdu.bhs[BHS_FLAGS] & FLAG_FINAL)
			break;
		assert_int_equal(pdu.bhs[BHS_FLAGS], FLAG_CONTINUE);
		assert_int_not_equal(bhs_ttt(pdu.bhs), ISCSI_NO_TAG);
		assert_true(pdu.data_bytes > 0);
		text_send(c, bhs_ttt(pdu.bhs), NULL, 0);
	}
	assert_int_equal(pdu.bhs[BHS_FLAGS], FLAG_FINAL);
	assert_int_equal(bhs_ttt(pdu.bhs), ISCSI_NO_TAG); /* 8 */
	*ret_bytes = at;
	return parts;
}

static unsigned names_in(const uint8_t *text, size_t bytes)
{
	unsigned count = 0;

	for (size_t at = 0; at < bytes; at += strlen((const char *)text + at) + 1)
		count += strncmp((const char *)text + at, "TargetName=iqn.", 15) == 0;
	return count;
}

static void bug_07_send_targets_beyond_a_small_mrdsl(void **state)
{
	static const unsigned mrdsl[] = {512, 513, 600, 1000, 4096, 8192, 65536};
	enum { TARGETS = 60 };
	struct real_fixture *f = *state;
	struct pdu_client *c = &f->client[0];

	add_targets(f, TARGETS);
	for (size_t i = 0; i < ARRAY_SIZE(mrdsl); i++) {
		char extra[64];
		size_t bytes;
		unsigned parts;

		snprintf(extra, sizeof extra, "MaxRecvDataSegmentLength=%u", mrdsl[i]);
		open_client(f, c, splits[i % ARRAY_SIZE(splits)]);
		assert_int_equal(pdu_login_discovery(c, extra, strlen(extra) + 1), 0);
		parts = text_collect(f, c, PDU_KEYS("SendTargets=All"), &bytes);
		assert_int_equal(names_in(f->back, bytes), TARGETS + 1);
		assert_int_equal(f->back[bytes - 1], 0);
		assert_int_equal(parts, (bytes + mrdsl[i] - 1) / mrdsl[i]);
		pdu_client_close(c);
	}
}

static void bug_08_final_text_response_has_no_tag(void **state)
{
	static const struct {
		const char *text;
		size_t size;
	} texts[] = {
	    {PDU_KEYS("SendTargets=")},
	    {PDU_KEYS("SendTargets=" REAL_TARGET_NAME)},
	    {PDU_KEYS("SendTargets=All")},
	    {PDU_KEYS("X-unknown=1")},
	    {PDU_KEYS("MaxRecvDataSegmentLength=4096")},
	    {NULL, 0},
	};
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, NULL, 0);
	size_t bytes;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_int_equal(text_collect(f, c, texts[i].text, texts[i].size, &bytes), 1);
	real_alive(f, c);
}

/* ---- 14, without CHAP ---- */

static void bug_14_repeated_key(void **state)
{
	static const char *const keys[] = {
	    "InitiatorName=iqn.2026-11.test.sanlab:client",
	    ("TargetName=" REAL_TARGET_NAME),
	    "SessionType=Normal",
	    "HeaderDigest=None",
	    "DataDigest=None",
	    "MaxConnections=1",
	    "InitialR2T=No",
	    "ImmediateData=Yes",
	    "MaxRecvDataSegmentLength=8192",
	    "MaxBurstLength=65536",
	    "FirstBurstLength=65536",
	    "DefaultTime2Wait=2",
	    "DefaultTime2Retain=0",
	    "MaxOutstandingR2T=1",
	    "DataPDUInOrder=Yes",
	    "DataSequenceInOrder=Yes",
	    "ErrorRecoveryLevel=0",
	};
	static const char names[] = NAMES "\0SessionType=Normal";
	struct real_fixture *f = *state;
	struct pdu_client *c = &f->client[0];

	/* In one text, in two texts of a stage, and (names) in two stages; the same value or not.
	 */
	for (size_t i = 0; i < ARRAY_SIZE(keys) * 2; i++) {
		const char *key = keys[i / 2];
		char text[512];
		size_t size = strlen(key) + 1;
		bool in_names = i / 2 < 3;

		memcpy(text, key, size);
		memcpy(text + size, key, size);
		open_client(f, c, 0);
		pdu_login_step(c, 0x81, names, sizeof names);
		assert_int_equal(c->login_status, 0);
		if (i % 2 && !in_names) {
			pdu_login_step(c, 0x04, text, size);
			assert_int_equal(c->login_status, 0);
			pdu_login_step(c, 0x87, text, size);
		} else {
			pdu_login_step(c, 0x87, text, in_names ? size : size * 2);
		}
		assert_int_equal(c->login_status, 0x0200);
		assert_closed(c);
	}
	assert_int_equal(f->target.server->session_count, 0);
}

/* ---- 16 ---- */

static void bug_16_digests_in_a_discovery_session(void **state)
{
	static const struct {
		const char *offer, *chosen;
	} cases[] = {
	    {"None", "None"},
	    {"CRC32C", "CRC32C"},
	    {"None,CRC32C", "None"},
	    {"CRC32C,None", "CRC32C"},
	    {"X-crc64,CRC32C,None", "CRC32C"},
	    {"X-crc64,None,CRC32C", "None"},
	};
	struct real_fixture *f = *state;
	struct pdu_client *c = &f->client[0];

	for (size_t i = 0; i < ARRAY_SIZE(cases) * ARRAY_SIZE(cases); i++) {
		size_t header = i / ARRAY_SIZE(cases), data = i % ARRAY_SIZE(cases);
		char extra[128];
		size_t size, bytes;

		size =
		    (size_t)snprintf(extra, sizeof extra, "HeaderDigest=%s", cases[header].offer) +
		    1;
		size += (size_t)snprintf(extra + size, sizeof extra - size, "DataDigest=%s",
					 cases[data].offer) +
			1;
		open_client(f, c, splits[i % ARRAY_SIZE(splits)]);
		assert_int_equal(pdu_login_discovery(c, extra, size), 0);
		assert_string_equal(pdu_login_value(c, "HeaderDigest"), cases[header].chosen);
		assert_string_equal(pdu_login_value(c, "DataDigest"), cases[data].chosen);
		/* The client adds and checks them from its next PDU on. */
		c->header_digest = cases[header].chosen[0] == 'C';
		c->data_digest = cases[data].chosen[0] == 'C';
		text_collect(f, c, PDU_KEYS("SendTargets=All"), &bytes);
		assert_int_equal(names_in(f->back, bytes), 1);
		pdu_client_close(c);
	}
}

/* ---- 17 ---- */

static void bug_17_chap_offered_without_credentials(void **state)
{
	static const char *const offers[] = {"CHAP,None", "None,CHAP", "None", "KRB5,CHAP,None",
					     "SRP,SPKM1,SPKM2,KRB5,CHAP,None"};
	struct real_fixture *f = *state;
	struct pdu_client *c = &f->client[0];

	for (size_t i = 0; i < ARRAY_SIZE(offers) * 2; i++) {
		char text[512];
		int n = snprintf(text, sizeof text, "InitiatorName=%s%c%s%cAuthMethod=%s",
				 c->initiator_name, 0,
				 i % 2 ? "SessionType=Discovery" : "TargetName=" REAL_TARGET_NAME,
				 0, offers[i / 2]);

		open_client(f, c, 0);
		pdu_login_step(c, 0x81, text, (size_t)n + 1);
		assert_int_equal(c->login_status, 0);
		assert_string_equal(pdu_login_value(c, "AuthMethod"), "None");
		pdu_login_step(c, 0x87, NULL, 0);
		assert_int_equal(c->login_status, 0);
		pdu_client_close(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    REAL_TEST(bug_06_declared_mrdsl_does_not_count_during_login),
	    REAL_TEST(bug_07_send_targets_beyond_a_small_mrdsl),
	    REAL_TEST(bug_08_final_text_response_has_no_tag),
	    REAL_TEST(bug_14_repeated_key),
	    REAL_TEST(bug_16_digests_in_a_discovery_session),
	    REAL_TEST(bug_17_chap_offered_without_credentials),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
