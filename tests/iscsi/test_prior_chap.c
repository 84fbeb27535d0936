/* SPDX-License-Identifier: MIT
 *
 * Faults that other targets had with CHAP (see test_prior_login.c).
 */
#include "tests/iscsi/real_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "target/iscsi/binary.h"
#include "target/iscsi/secrets.h"

#define NAMES "InitiatorName=iqn.2026-11.test.sanlab:client\0TargetName=" REAL_TARGET_NAME

static struct chap_secrets *secrets;

static int setup(void **state)
{
	static const char text[] = "joe secret-of-joe-1234\narray secret-of-the-array";
	int r = real_setup(state);
	struct real_fixture *f = *state;

	if (r < 0 || chap_secrets_parse("secrets", text, sizeof text - 1, &secrets, NULL) < 0)
		return -1;
	iscsi_server_secure(f->target.server,
			    &(struct iscsi_security){.secrets = secrets, .mutual_user = "array"});
	return 0;
}

static int teardown(void **state)
{
	int r = real_teardown(state);

	secrets = chap_secrets_free(secrets);
	return r;
}

#define CHAP_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void open_client(struct real_fixture *f)
{
	struct pdu_client *c = &f->client[0];

	pdu_client_open(c, f->target.portal);
	c->tsih = 0;
	c->exp_stat_sn = c->exp_cmd_sn = c->max_cmd_sn = 0;
}

/* Up to the challenge for the algorithms of LIST. */
static void ask(struct real_fixture *f, const char *list, unsigned flags)
{
	struct pdu_client *c = &f->client[0];
	char text[256];

	open_client(f);
	pdu_login_step(c, 0x00, PDU_KEYS(NAMES "\0AuthMethod=CHAP"));
	assert_int_equal(c->login_status, 0);
	snprintf(text, sizeof text, "CHAP_A=%s", list);
	pdu_login_step(c, flags, text, strlen(text) + 1);
}

/* CHAP_N and the right CHAP_R, then EXTRA; its length. */
static size_t respond(struct pdu_client *c, char *text, size_t size, const char *extra)
{
	int algorithm = (int)strtol(pdu_login_value(c, "CHAP_A"), NULL, 10);
	uint8_t challenge[CHAP_CHALLENGE_MAX_BYTES], response[CHAP_DIGEST_MAX_BYTES];
	char hex[2 * CHAP_DIGEST_MAX_BYTES + 3];
	size_t bytes =
	    iscsi_binary_decode(pdu_login_value(c, "CHAP_C"), challenge, sizeof challenge);
	int n;

	assert_int_equal(chap_digest(algorithm,
				     (uint8_t)strtol(pdu_login_value(c, "CHAP_I"), NULL, 10),
				     chap_secrets_find(secrets, "joe"), challenge, bytes, response),
			 0);
	iscsi_binary_encode(response, chap_digest_bytes(algorithm), hex);
	n = snprintf(text, size, "CHAP_N=joe%cCHAP_R=%s%c%s", 0, hex, 0, extra);
	return extra[0] ? (size_t)n + 1 : (size_t)n;
}

static void assert_refused(struct real_fixture *f, unsigned status)
{
	struct pdu_client *c = &f->client[0];

	assert_int_equal(c->login_status, status);
	pdu_client_pump(c);
	assert_true(c->closed);
	assert_int_equal(f->target.server->session_count, 0);
}

/* ---- 10 ---- */

static void bug_10_list_of_algorithms(void **state)
{
	static const struct {
		const char *list, *taken;
	} cases[] = {
	    {"8,7,6,5", "8"}, {"7,6,5", "7"}, {"6,5", "6"},	{"5", "5"},
	    {"5,8", "5"},     {"1,2,5", "5"}, {"55,85,6", "6"}, {"0x5,256,7", "7"},
	};
	struct real_fixture *f = *state;
	struct pdu_client *c = &f->client[0];
	char text[512];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ask(f, cases[i].list, 0x00);
		assert_int_equal(c->login_status, 0);
		assert_string_equal(pdu_login_value(c, "CHAP_A"), cases[i].taken);
		pdu_login_step(c, 0x83, text, respond(c, text, sizeof text, ""));
		assert_int_equal(c->login_status, 0);
		real_settle_attentions(f, c, 0);
		pdu_client_close(c);
	}
	ask(f, "1,2,3", 0x00); /* none that we know */
	assert_int_equal(c->login_status >> 8, 2);
}

/* ---- 11 ---- */

static void bug_11_response_longer_than_the_digest(void **state)
{
	static const unsigned digits[] = {0, 1, 2, 30, 31, 34, 38, 40, 42, 64, 66, 68, 200, 240};
	struct real_fixture *f = *state;
	struct pdu_client *c = &f->client[0];

	for (size_t i = 0; i < ARRAY_SIZE(digits) * 8; i++) {
		static const char *const lists[] = {"5", "6", "7", "8"};
		static const unsigned right[] = {32, 40, 64, 64};
		char text[512];
		int n = snprintf(text, sizeof text, "CHAP_N=joe%cCHAP_R=%s", 0,
				 i / 4 % 2 ? "0b" : "0x");
		unsigned count = digits[i / 8];

		if (i / 4 % 2 == 0 && count == right[i % 4])
			continue;
		ask(f, lists[i % 4], 0x00);
		memset(text + n, 'A', count);
		text[n + (int)count] = '\0';
		pdu_login_step(c, 0x83, text, (size_t)n + count + 1);
		assert_refused(f, 0x0201);
	}
}

/* ---- 13 ---- */

static void bug_13_identifier_beyond_255(void **state)
{
	static const struct {
		const char *id;
		bool good;
	} cases[] = {
	    {"0", true},
	    {"255", true},
	    {"256", false},
	    {"65536", false},
	    {"-1", false},
	    {"4294967296", false},
	    {"4294967297", false},
	    {"", false},
	    {"1x", false},
	    {"0x100", false},
	    {"99999999999999999999", false},
	};
	struct real_fixture *f = *state;
	struct pdu_client *c = &f->client[0];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[512], extra[128];

		ask(f, "7", 0x00);
		snprintf(extra, sizeof extra, "CHAP_C=0x00112233445566778899aabbccddeeff");
		{
			size_t size = respond(c, text, sizeof text, extra);
			int n = snprintf(text + size, sizeof text - size, "CHAP_I=%s", cases[i].id);

			pdu_login_step(c, 0x83, text, size + (size_t)n + 1);
		}
		if (cases[i].good) {
			assert_int_equal(c->login_status, 0);
			assert_non_null(pdu_login_value(c, "CHAP_R"));
			pdu_client_close(c);
		} else {
			assert_int_equal(c->login_status >> 8, 2);
			assert_int_equal(f->target.server->session_count, 0);
			pdu_client_close(c);
		}
	}
}

/* ---- 14 ---- */

/* T with any request of the exchange never passes over it. */
static void bug_14_transition_before_the_exchange_is_over(void **state)
{
	static const unsigned flags[] = {0x81, 0x83};
	struct real_fixture *f = *state;
	struct pdu_client *c = &f->client[0];
	char text[512];

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		/* With the names, with the method, with CHAP_A: answered without T, or refused. */
		open_client(f);
		pdu_login_step(c, flags[i], PDU_KEYS(NAMES "\0AuthMethod=CHAP"));
		assert_int_equal(f->target.server->session_count, 0);
		if (c->login_status == 0)
			assert_int_equal(c->conn->login->stage, STAGE_SECURITY);
		ask(f, "7", flags[i]);
		assert_int_equal(c->login_status, 0); /* iPXE does this */
		assert_int_equal(c->conn->login->stage, STAGE_SECURITY);
		pdu_login_step(c, flags[i], text, respond(c, text, sizeof text, ""));
		assert_int_equal(c->login_status, 0);
		if (flags[i] == 0x81)
			pdu_login_step(c, 0x87, NULL, 0);
		assert_int_equal(c->login_status, 0);
		assert_int_equal(f->target.server->session_count, 1);
		pdu_client_close(c);
	}
}

static void bug_14_stages_that_pass_over_authentication(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = &f->client[0];

	open_client(f); /* begins with the operational stage */
	pdu_login_step(c, 0x87, PDU_KEYS(NAMES));
	assert_refused(f, 0x0201);
	open_client(f); /* with a method that is none */
	pdu_login_step(c, 0x81, PDU_KEYS(NAMES "\0AuthMethod=None"));
	assert_refused(f, 0x0201);
	open_client(f); /* without one */
	pdu_login_step(c, 0x83, PDU_KEYS(NAMES));
	assert_int_equal(f->target.server->session_count, 0);
	if (c->login_status == 0)
		assert_int_equal(c->conn->login->stage, STAGE_SECURITY);
	ask(f, "7", 0x00); /* in the middle of the exchange */
	pdu_login_step(c, 0x87, PDU_KEYS("HeaderDigest=None"));
	assert_refused(f, 0x0200);
}

static void bug_14_repeated_keys_of_the_exchange(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = &f->client[0];
	char text[512];
	size_t size;

	ask(f, "7,7", 0x00); /* an entry of a list may come twice */
	assert_int_equal(c->login_status, 0);
	pdu_login_step(c, 0x00, PDU_KEYS("CHAP_A=7"));
	assert_int_equal(c->login_status >> 8, 2);
	assert_int_equal(f->target.server->session_count, 0);
	ask(f, "7", 0x00);
	size = respond(c, text, sizeof text, "CHAP_N=joe");
	pdu_login_step(c, 0x83, text, size);
	assert_int_equal(c->login_status >> 8, 2);
	assert_int_equal(f->target.server->session_count, 0);
	ask(f, "7", 0x00); /* the names again, as some initiators do */
	size = respond(c, text, sizeof text, "InitiatorName=iqn.2026-11.test.sanlab:client");
	pdu_login_step(c, 0x83, text, size);
	assert_refused(f, 0x0200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CHAP_TEST(bug_10_list_of_algorithms),
	    CHAP_TEST(bug_11_response_longer_than_the_digest),
	    CHAP_TEST(bug_13_identifier_beyond_255),
	    CHAP_TEST(bug_14_transition_before_the_exchange_is_over),
	    CHAP_TEST(bug_14_stages_that_pass_over_authentication),
	    CHAP_TEST(bug_14_repeated_keys_of_the_exchange),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
