/* SPDX-License-Identifier: MIT
 *
 * CHAP: the exchange through real logins, and every way to cheat.
 */
#include "tests/unit/iscsi/fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "target/iscsi/binary.h"
#include "target/iscsi/secrets.h"

#define NAMES	  "InitiatorName=iqn.2026-11.test.sanlab:client\0TargetName=" TARGET_NAME
#define DISCOVERY "InitiatorName=iqn.2026-11.test.sanlab:client\0SessionType=Discovery"

static const char secrets_text[] = "# users of the lab\n"
				   "exchange  a secret with blanks\n"
				   "\n"
				   "\tsql\tsixteen-byte-key\r\n"
				   "array the-array-itself";

struct setting {
	struct fixture *f;
	struct chap_secrets *secrets;
	uint8_t next_random;
};

static struct setting setting;

/* Counts up: no two challenges are alike. */
static int count_up(void *arg, uint8_t *to, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = setting.next_random++;
	return 0;
}

static void secure(struct fixture *f, bool discovery, const char *mutual_user)
{
	setting.f = f;
	iscsi_server_secure(f->server, &(struct iscsi_security){.secrets = setting.secrets,
								.chap_discovery = discovery,
								.mutual_user = mutual_user});
	f->server->chap.random = count_up;
}

static int setup(void **state)
{
	assert_int_equal(chap_secrets_parse("secrets", secrets_text, sizeof secrets_text - 1,
					    &setting.secrets, NULL),
			 0);
	return fixture_setup(state);
}

static int teardown(void **state)
{
	int r = fixture_teardown(state);

	setting.secrets = chap_secrets_free(setting.secrets);
	return r;
}

/* ---- the exchange ---- */

struct keys {
	char text[8192];
	size_t size;
};

static void key(struct keys *keys, const char *name, const char *value)
{
	int n =
	    snprintf(keys->text + keys->size, sizeof keys->text - keys->size, "%s=%s", name, value);

	assert_true(n > 0 && (size_t)n + 1 < sizeof keys->text - keys->size);
	keys->size += (size_t)n + 1;
}

static void step(struct pdu_client *c, unsigned flags, struct keys *keys)
{
	pdu_login_step(c, flags, keys->text, keys->size);
	*keys = (struct keys){.size = 0};
}

/* Names and method, then the algorithm: the challenge is in login_text then. */
static void ask_challenge(struct fixture *f, const char *names, size_t size, const char *list)
{
	struct pdu_client *c = &f->client;
	struct keys keys = {.size = 0};

	c->exp_stat_sn = c->exp_cmd_sn = c->max_cmd_sn = 0;
	c->tsih = 0;
	pdu_client_open(c, f->portal);
	memcpy(keys.text, names, size);
	keys.size = size;
	key(&keys, "AuthMethod", "CHAP,None");
	step(c, 0x81, &keys);
	assert_int_equal(c->login_status, 0);
	assert_string_equal(pdu_login_value(c, "AuthMethod"), "CHAP");
	key(&keys, "CHAP_A", list);
	step(c, 0x81, &keys);
}

/* The right response of USER, at most SIZE bytes into TO; returns its length. */
static size_t respond(struct pdu_client *c, const char *user, uint8_t to[CHAP_DIGEST_MAX_BYTES])
{
	int algorithm = (int)strtol(pdu_login_value(c, "CHAP_A"), NULL, 10);
	uint8_t identifier = (uint8_t)strtoul(pdu_login_value(c, "CHAP_I"), NULL, 10);
	uint8_t challenge[CHAP_CHALLENGE_MAX_BYTES];
	size_t bytes =
	    iscsi_binary_decode(pdu_login_value(c, "CHAP_C"), challenge, sizeof challenge);

	assert_int_equal(chap_digest(algorithm, identifier,
				     chap_secrets_find(setting.secrets, user), challenge, bytes,
				     to),
			 0);
	return chap_digest_bytes(algorithm);
}

static void key_response(struct pdu_client *c, struct keys *keys, const char *name,
			 const char *user)
{
	uint8_t response[CHAP_DIGEST_MAX_BYTES];
	char text[2 * CHAP_DIGEST_MAX_BYTES + 3];

	iscsi_binary_encode(response, respond(c, user, response), text);
	key(keys, "CHAP_N", name);
	key(keys, "CHAP_R", text);
}

/* One way with each algorithm, alone and as the first of a list (prior bug 10). */
static void test_one_way(void **state)
{
	static const struct {
		const char *list, *taken;
	} lists[] = {{"5", "5"},       {"6", "6"},	{"7", "7"},	 {"8", "8"},
		     {"8,7,6,5", "8"}, {"99,6,5", "6"}, {"x,5y,7", "7"}, {",,5", "5"}};
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	secure(f, false, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		struct keys keys = {.size = 0};

		ask_challenge(f, PDU_KEYS(NAMES), lists[i].list);
		assert_string_equal(pdu_login_value(c, "CHAP_A"), lists[i].taken);
		key_response(c, &keys, "exchange", "exchange");
		step(c, 0x81, &keys);
		assert_int_equal(c->login_status, 0);
		assert_null(pdu_login_value(c, "CHAP_R"));
		assert_int_equal(c->conn->login->stage, STAGE_OPERATIONAL);
		key(&keys, "InitialR2T", "No");
		step(c, 0x87, &keys);
		assert_int_equal(c->login_status, 0);
		assert_string_equal(c->conn->user, "exchange");
		assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
		pdu_client_close(c);
	}
}

/* Base64 response, and straight from security into full feature phase. */
static void test_base64_to_full(void **state)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	struct keys keys = {.size = 0};
	uint8_t response[CHAP_DIGEST_MAX_BYTES + 1] = {0};
	char text[64] = "0b";
	size_t at = 2, bytes;

	secure(f, false, NULL);
	ask_challenge(f, PDU_KEYS(NAMES), "5");
	bytes = respond(c, "sql", response); /* 16 bytes: two characters of padding */
	for (size_t i = 0; i < bytes; i += 3) {
		uint32_t group = get_be24(response + i);

		for (int shift = 18; shift >= 0; shift -= 6)
			text[at++] = digits[group >> shift & 63];
	}
	memset(text + at - 2, '=', 2);
	key(&keys, "CHAP_N", "sql");
	key(&keys, "CHAP_R", text);
	step(c, 0x83, &keys);
	assert_int_equal(c->login_status, 0);
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
}

static void test_mutual(void **state)
{
	static const char *const ids[] = {"0", "255", "0xfe"};
	static const uint8_t id_values[] = {0, 255, 254};
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	secure(f, false, "array");
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		struct keys keys = {.size = 0};
		uint8_t challenge[CHAP_CHALLENGE_MAX_BYTES], right[CHAP_DIGEST_MAX_BYTES];
		size_t bytes = i == 0 ? 1 : i == 1 ? sizeof challenge : 32;
		char text[2 * sizeof challenge + 3], wanted[2 * CHAP_DIGEST_MAX_BYTES + 3];

		memset(challenge, 0xa5, sizeof challenge);
		ask_challenge(f, PDU_KEYS(NAMES), "7");
		key_response(c, &keys, "sql", "sql");
		key(&keys, "CHAP_I", ids[i]);
		iscsi_binary_encode(challenge, bytes, text);
		key(&keys, "CHAP_C", text);
		c->login_text_bytes = 0;
		step(c, 0x81, &keys);
		assert_int_equal(c->login_status, 0);
		assert_string_equal(pdu_login_value(c, "CHAP_N"), "array");
		assert_int_equal(chap_digest(CHAP_SHA256, id_values[i],
					     chap_secrets_find(setting.secrets, "array"), challenge,
					     bytes, right),
				 0);
		iscsi_binary_encode(right, 32, wanted);
		assert_string_equal(pdu_login_value(c, "CHAP_R"), wanted);
		pdu_client_close(c);
	}
}

/* ---- cheating ---- */

enum cheat {
	CHEAT_SECRET,
	CHEAT_USER,
	CHEAT_SHORT,
	CHEAT_LONG,
	CHEAT_GARBAGE,
	CHEAT_EMPTY,
	CHEAT_OUR_NAME,
	CHEAT_ID,
	CHEAT_ID_NEGATIVE,
	CHEAT_CHALLENGE_EMPTY,
	CHEAT_CHALLENGE_LONG,
	CHEAT_REFLECT,
	CHEAT_NO_NAME,
	CHEAT_ID_ALONE,
	CHEAT_TWICE,
	CHEAT_ALGORITHM_AGAIN,
};

static void cheat_keys(struct pdu_client *c, enum cheat cheat, struct keys *keys)
{
	uint8_t response[CHAP_DIGEST_MAX_BYTES + 2] = {0}, big[CHAP_CHALLENGE_MAX_BYTES + 1] = {1};
	char text[2 * sizeof big + 3];
	size_t bytes = respond(c,
			       cheat == CHEAT_SECRET	 ? "exchange"
			       : cheat == CHEAT_OUR_NAME ? "array"
							 : "sql",
			       response);

	bytes -= cheat == CHEAT_SHORT;
	bytes += cheat == CHEAT_LONG;
	iscsi_binary_encode(response, bytes, text);
	if (cheat != CHEAT_NO_NAME)
		key(keys, "CHAP_N",
		    cheat == CHEAT_USER	      ? "nobody"
		    : cheat == CHEAT_OUR_NAME ? "array"
					      : "sql");
	key(keys, "CHAP_R", cheat == CHEAT_GARBAGE ? "hello" : cheat == CHEAT_EMPTY ? "" : text);
	if (cheat == CHEAT_TWICE)
		key(keys, "CHAP_R", text);
	if (cheat == CHEAT_ALGORITHM_AGAIN)
		key(keys, "CHAP_A", "5");
	if (cheat < CHEAT_ID || cheat > CHEAT_ID_ALONE || cheat == CHEAT_NO_NAME)
		return;
	key(keys, "CHAP_I", cheat == CHEAT_ID ? "256" : cheat == CHEAT_ID_NEGATIVE ? "-1" : "7");
	if (cheat == CHEAT_ID_ALONE)
		return;
	iscsi_binary_encode(big, cheat == CHEAT_CHALLENGE_LONG ? sizeof big : 16, text);
	key(keys, "CHAP_C",
	    cheat == CHEAT_REFLECT	     ? pdu_login_value(c, "CHAP_C")
	    : cheat == CHEAT_CHALLENGE_EMPTY ? "0x"
					     : text);
}

/* Prior bugs 11 (longer than the digest), 13 (CHAP_I=256) and their kind. */
static void test_cheats(void **state)
{
	static const struct {
		enum cheat cheat;
		unsigned status;
	} cheats[] = {
	    {CHEAT_SECRET, 0x0201},	    {CHEAT_USER, 0x0201},
	    {CHEAT_SHORT, 0x0201},	    {CHEAT_LONG, 0x0201},
	    {CHEAT_GARBAGE, 0x0201},	    {CHEAT_EMPTY, 0x0201},
	    {CHEAT_OUR_NAME, 0x0201},	    {CHEAT_ID, 0x0201},
	    {CHEAT_ID_NEGATIVE, 0x0201},    {CHEAT_CHALLENGE_EMPTY, 0x0201},
	    {CHEAT_CHALLENGE_LONG, 0x0200}, {CHEAT_REFLECT, 0x0201},
	    {CHEAT_NO_NAME, 0x0200},	    {CHEAT_ID_ALONE, 0x0200},
	    {CHEAT_TWICE, 0x0200},	    {CHEAT_ALGORITHM_AGAIN, 0x0200},
	};
	static const char *const lists[] = {"5", "6", "7", "8"};
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	secure(f, false, "array");
	for (size_t i = 0; i < ARRAY_SIZE(cheats) * ARRAY_SIZE(lists); i++) {
		struct keys keys = {.size = 0};

		print_message("# cheat %u, CHAP_A=%s\n", cheats[i / 4].cheat, lists[i % 4]);
		ask_challenge(f, PDU_KEYS(NAMES), lists[i % 4]);
		cheat_keys(c, cheats[i / 4].cheat, &keys);
		c->login_text_bytes = 0;
		step(c, 0x83, &keys);
		assert_int_equal(c->login_status, cheats[i / 4].status);
		assert_null(pdu_login_value(c, "CHAP_R")); /* nothing of ours is given away */
		assert_true(c->closed);
	}
	assert_int_equal(f->server->session_count, 0);
}

static void test_no_algorithm(void **state)
{
	static const char *const lists[] = {"9", "0", "md5", "", "261"};
	struct fixture *f = *state;

	secure(f, false, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		ask_challenge(f, PDU_KEYS(NAMES), lists[i]);
		assert_int_equal(f->client.login_status, 0x0201);
	}
}

static int no_random(void *arg, uint8_t *to, size_t bytes)
{
	return -EIO;
}

/* Not the initiator's fault. */
static void test_no_randomness(void **state)
{
	struct fixture *f = *state;

	secure(f, false, NULL);
	f->server->chap.random = no_random;
	ask_challenge(f, PDU_KEYS(NAMES), "5");
	assert_int_equal(f->client.login_status, 0x0300);
}

/* A challenge sent to one connection comes back on another. */
static void test_reflected_elsewhere(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client, other;
	struct keys keys = {.size = 0};
	char theirs[256];

	secure(f, false, "array");
	pdu_client_init(&other, f->server);
	pdu_client_open(&other, f->portal);
	pdu_login_step(&other, 0x81, PDU_KEYS(NAMES "\0AuthMethod=CHAP"));
	pdu_login_step(&other, 0x81, PDU_KEYS("CHAP_A=5"));
	snprintf(theirs, sizeof theirs, "%s", pdu_login_value(&other, "CHAP_C"));
	ask_challenge(f, PDU_KEYS(NAMES), "5");
	key_response(c, &keys, "sql", "sql");
	key(&keys, "CHAP_I", "1");
	key(&keys, "CHAP_C", theirs);
	step(c, 0x81, &keys);
	assert_int_equal(c->login_status, 0x0201);
	pdu_client_done(&other);
}

/* A response that was right once is not when the challenge is another. */
static void test_replay(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	struct keys first = {.size = 0}, again;

	secure(f, false, NULL);
	ask_challenge(f, PDU_KEYS(NAMES), "5");
	key_response(c, &first, "sql", "sql");
	again = first;
	step(c, 0x81, &first);
	assert_int_equal(c->login_status, 0);
	pdu_client_close(c);
	ask_challenge(f, PDU_KEYS(NAMES), "5");
	step(c, 0x81, &again);
	assert_int_equal(c->login_status, 0x0201);
}

/* Mutual is asked for, but the target has no name: it cannot prove itself. */
static void test_mutual_unconfigured(void **state)
{
	struct fixture *f = *state;
	struct keys keys = {.size = 0};

	secure(f, false, NULL);
	ask_challenge(f, PDU_KEYS(NAMES), "5");
	key_response(&f->client, &keys, "sql", "sql");
	key(&keys, "CHAP_I", "1");
	key(&keys, "CHAP_C", "0x00112233");
	step(&f->client, 0x81, &keys);
	assert_int_equal(f->client.login_status, 0x0201);
}

/* T with every PDU of the exchange (prior bug 14): answered without T until it is over. */
static void test_transit_bit(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	struct keys keys = {.size = 0};
	struct pdu pdu;

	secure(f, false, NULL);
	pdu_client_open(c, f->portal);
	pdu_login_send(c, 0x83, PDU_KEYS(NAMES "\0AuthMethod=CHAP"));
	pdu = pdu_expect(c, OP_LOGIN_RESPONSE);
	assert_int_equal(pdu.bhs[BHS_FLAGS], 0);
	pdu_login_send(c, 0x83, NULL, 0); /* nothing said: nothing gained */
	pdu = pdu_expect(c, OP_LOGIN_RESPONSE);
	assert_int_equal(pdu.bhs[BHS_FLAGS], 0);
	pdu_login_step(c, 0x83, PDU_KEYS("CHAP_A=8"));
	assert_int_equal(c->login_status, 0);
	assert_int_equal(c->tsih, 0);
	assert_int_equal(f->server->session_count, 0);
	key_response(c, &keys, "sql", "sql");
	step(c, 0x83, &keys);
	assert_int_equal(c->login_status, 0);
	assert_int_equal(f->server->session_count, 1);
}

/* Everything that would go around the exchange. */
static void test_no_way_around(void **state)
{
	static const struct {
		unsigned flags;
		const char *keys;
		size_t size;
		unsigned status;
	} ways[] = {
	    {0x87, PDU_KEYS(NAMES), 0x0201},			 /* operational at once */
	    {0x81, PDU_KEYS(NAMES "\0AuthMethod=None"), 0x0201}, /* None alone */
	    {0x81, PDU_KEYS(NAMES "\0AuthMethod=KRB5,SRP"), 0x0201},
	    {0x81, PDU_KEYS(NAMES "\0AuthMethod=CHAP\0CHAP_A=5"), 0x0200}, /* too soon */
	    {0x81, PDU_KEYS(NAMES "\0CHAP_N=sql\0CHAP_R=0x00"), 0x0200},
	};
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	secure(f, false, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		c->exp_stat_sn = c->exp_cmd_sn = c->max_cmd_sn = 0;
		pdu_client_open(c, f->portal);
		pdu_login_step(c, ways[i].flags, ways[i].keys, ways[i].size);
		assert_int_equal(c->login_status, ways[i].status);
		assert_true(c->closed);
	}
	/* From the middle of the exchange into the operational stage. */
	ask_challenge(f, PDU_KEYS(NAMES), "5");
	pdu_login_step(c, 0x87, PDU_KEYS("InitialR2T=No"));
	assert_int_equal(c->login_status, 0x0200);
	/* Once more after it has come to an end. */
	struct keys keys = {.size = 0};

	ask_challenge(f, PDU_KEYS(NAMES), "5");
	key_response(c, &keys, "sql", "sql");
	step(c, 0x00, &keys);
	assert_int_equal(c->login_status, 0);
	pdu_login_step(c, 0x81, PDU_KEYS("CHAP_A=5"));
	assert_int_equal(c->login_status, 0x0200);
}

/* Discovery has a switch of its own. */
static void test_discovery(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	struct keys keys = {.size = 0};

	secure(f, false, NULL);
	pdu_client_open(c, f->portal);
	assert_int_equal(pdu_login_discovery(c, NULL, 0), 0);
	pdu_client_close(c);
	/* CHAP offered beside None by somebody who has no credentials (prior bug 17). */
	c->tsih = 0;
	c->exp_stat_sn = c->exp_cmd_sn = c->max_cmd_sn = 0;
	pdu_client_open(c, f->portal);
	pdu_login_step(c, 0x81, PDU_KEYS(DISCOVERY "\0AuthMethod=CHAP,None"));
	assert_string_equal(pdu_login_value(c, "AuthMethod"), "None");
	pdu_client_close(c);
	/* CHAP alone is had where nothing demands it. */
	c->exp_stat_sn = c->exp_cmd_sn = c->max_cmd_sn = 0;
	pdu_client_open(c, f->portal);
	pdu_login_step(c, 0x81, PDU_KEYS(DISCOVERY "\0AuthMethod=CHAP"));
	assert_string_equal(pdu_login_value(c, "AuthMethod"), "CHAP");
	pdu_client_close(c);

	secure(f, true, NULL);
	c->exp_stat_sn = c->exp_cmd_sn = c->max_cmd_sn = 0;
	pdu_client_open(c, f->portal);
	assert_int_equal(pdu_login_discovery(c, NULL, 0), 0x0201);
	ask_challenge(f, PDU_KEYS(DISCOVERY), "8,5");
	key_response(c, &keys, "sql", "sql");
	step(c, 0x83, &keys);
	assert_int_equal(c->login_status, 0);
}

/* The numbers of the system's source: different every time. */
static void test_fresh_challenges(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	char seen[8][80];

	iscsi_server_secure(f->server, &(struct iscsi_security){.secrets = setting.secrets});
	for (size_t i = 0; i < ARRAY_SIZE(seen); i++) {
		ask_challenge(f, PDU_KEYS(NAMES), "7");
		snprintf(seen[i], sizeof seen[i], "%s", pdu_login_value(c, "CHAP_C"));
		assert_int_equal(strlen(seen[i]), 2 + 64);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(seen[i], seen[j]);
		pdu_client_close(c);
	}
}

#define CHAP_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {

	    CHAP_TEST(test_one_way),
	    CHAP_TEST(test_base64_to_full),
	    CHAP_TEST(test_mutual),
	    CHAP_TEST(test_cheats),
	    CHAP_TEST(test_no_algorithm),
	    CHAP_TEST(test_no_randomness),
	    CHAP_TEST(test_reflected_elsewhere),
	    CHAP_TEST(test_replay),
	    CHAP_TEST(test_mutual_unconfigured),
	    CHAP_TEST(test_transit_bit),
	    CHAP_TEST(test_no_way_around),
	    CHAP_TEST(test_discovery),
	    CHAP_TEST(test_fresh_challenges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
