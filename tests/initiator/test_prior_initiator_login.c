/* SPDX-License-Identifier: MIT
 *
 * Bugs other initiators had in login: text keys, CHAP, digests, ISIDs, redirections, names.
 */
#include "rig.h"

#include <gcrypt.h>
#include <stdio.h>

enum { KEYS_MAX = 8192, CHALLENGE_MAX = 1024, AUTHENTICATION_FAILED = 0x0201 };

static const char user[] = "exchange", password[] = "a-secret-of-sixteen";

/* A target's side of a login with CHAP, and all the text that came. */
struct login {
	char text[KEYS_MAX]; /* of all requests, "KEY=VALUE\0" one after the other */
	size_t text_bytes;
	const char *auth_method; /* what the target chooses; NULL: as a peer without CHAP */
	const char *chap_a;	 /* ... and its algorithm */
	unsigned challenge_bytes;
	unsigned too_long; /* more digits of the challenge than there may be */
	uint8_t challenge[CHALLENGE_MAX];
	unsigned step;
	size_t response_chars;
	bool right, transit_early;
};

/* The value of KEY in the last SIZE bytes of text; NULL: not there. */
static const char *value_of(const char *text, size_t size, const char *key)
{
	size_t n = strlen(key);

	for (const char *at = text; at < text + size; at += strlen(at) + 1)
		if (strncmp(at, key, n) == 0 && at[n] == '=')
			return at + n + 1;
	return NULL;
}

static void answer_login(struct peer *peer, const struct peer_pdu *pdu, unsigned transit,
			 unsigned status, const char *keys, size_t size)
{
	uint8_t bhs[PEER_BHS_BYTES];

	peer_header(peer, pdu->bhs, PEER_LOGIN_RESPONSE, bhs);
	bhs[1] = (uint8_t)(transit ? 0x81 : 0); /* security stage, to the operational one */
	memcpy(bhs + 8, pdu->bhs + 8, 6);
	put_be16(bhs + 36, (uint16_t)status);
	peer_send(peer, bhs, keys, (uint32_t)size);
}

static void put_hex(char *to, const uint8_t *bytes, size_t size)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < size; i++) {
		to[2 * i] = digits[bytes[i] >> 4];
		to[2 * i + 1] = digits[bytes[i] & 0xf];
	}
}

static void send_challenge(struct login *login, struct peer *peer, const struct peer_pdu *pdu)
{
	char *keys = test_malloc(4 * CHALLENGE_MAX);
	int n = snprintf(keys, 64, "CHAP_A=%s%cCHAP_I=%u%cCHAP_C=0x", login->chap_a, 0, 77U, 0);

	put_hex(keys + n, login->challenge, login->challenge_bytes);
	n += (int)(2 * login->challenge_bytes);
	memset(keys + n, 'a', login->too_long);
	n += (int)login->too_long;
	keys[n++] = 0;
	answer_login(peer, pdu, 0, 0, keys, (size_t)n);
	test_free(keys);
}

/* MD5 of identifier, secret and challenge (RFC 1994 4.1), in hexadecimal. */
static void expected_response(const struct login *login, char hex[33])
{
	uint8_t text[1 + sizeof password + CHALLENGE_MAX], digest[16];
	size_t n = sizeof password - 1;

	text[0] = 77;
	memcpy(text + 1, password, n);
	memcpy(text + 1 + n, login->challenge, login->challenge_bytes);
	gcry_md_hash_buffer(GCRY_MD_MD5, digest, text, 1 + n + login->challenge_bytes);
	put_hex(hex, digest, sizeof digest);
	hex[2 * sizeof digest] = 0;
}

static void check_response(struct login *login, struct peer *peer, const struct peer_pdu *pdu,
			   const char *keys)
{
	const char *name = value_of(keys, pdu->size, "CHAP_N");
	const char *response = value_of(keys, pdu->size, "CHAP_R");
	char hex[33];

	assert_non_null(name);
	assert_non_null(response);
	expected_response(login, hex);
	login->response_chars = strlen(response);
	/* What another algorithm gives is never that. */
	login->right = strcmp(login->chap_a, "5") == 0 && strcmp(name, user) == 0 &&
		       strncasecmp(response, "0x", 2) == 0 && strcasecmp(response + 2, hex) == 0;
	answer_login(peer, pdu, login->right, login->right ? 0 : AUTHENTICATION_FAILED, NULL, 0);
}

static bool on_login(struct peer *peer, const struct peer_pdu *pdu)
{
	struct login *login = peer->script_arg;
	unsigned stage = pdu->bhs[1] >> 2 & 3;
	char keys[KEYS_MAX + 1] = {0};

	if ((pdu->bhs[0] & 0x3f) != PEER_LOGIN)
		return false;
	assert_true(login->text_bytes + pdu->size <= sizeof login->text);
	memcpy(login->text + login->text_bytes, pdu->data, pdu->size);
	login->text_bytes += pdu->size;
	if (!login->auth_method || login->right)
		return false;
	if (stage != 0) { /* CHAP was not done */
		answer_login(peer, pdu, 0, AUTHENTICATION_FAILED, NULL, 0);
		return true;
	}
	memcpy(keys, pdu->data, pdu->size);
	switch (login->step++) {
	case 0:
		answer_login(peer, pdu, 0, 0, login->auth_method, strlen(login->auth_method) + 1);
		break;
	case 1:
		login->transit_early = pdu->bhs[1] & 0x80;
		send_challenge(login, peer, pdu);
		break;
	default:
		check_response(login, peer, pdu, keys);
		break;
	}
	return true;
}

static void open_login(struct rig *rig, struct login *login)
{
	*login = (struct login){.chap_a = "5", .challenge_bytes = 16};
	for (unsigned i = 0; i < CHALLENGE_MAX; i++)
		login->challenge[i] = (uint8_t)(i * 7 + 1);
	rig_open(rig);
	rig->peer.script = on_login;
	rig->peer.script_arg = login;
}

static void open_chap(struct rig *rig, struct login *login)
{
	open_login(rig, login);
	login->auth_method = "AuthMethod=CHAP";
	rig->config.user = user;
	rig->config.password = password;
}

/* A target that answers the first login PDU and then nothing. */
static bool first_only(struct peer *peer, const struct peer_pdu *pdu)
{
	return (pdu->bhs[0] & 0x3f) != PEER_LOGIN || (pdu->bhs[1] >> 2 & 3) == 1;
}

static void test_prior_03_login_that_never_completes(void **unused)
{
	struct rig rig;

	rig_open(&rig);
	rig.config.login_timeout_ns = 100 * NS_PER_MS;
	rig.peer.script = first_only;
	rig_make_path(&rig);
	rig_connect(&rig);
	rig_expect_down(&rig, 1, "timed out during login");
	rig_close(&rig);
}

static void test_prior_10_algorithm_of_the_list(void **unused)
{
	static struct login login;
	struct rig rig;

	open_chap(&rig, &login);
	rig_up(&rig);
	assert_non_null(strstr(value_of(login.text, login.text_bytes, "CHAP_A"), "5"));
	path_disconnect(rig.owner.path);
	/* A target that chooses what was not offered refuses the answer. */
	login.step = 0;
	login.right = false;
	login.chap_a = "8";
	rig_connect(&rig);
	rig_expect_down(&rig, 1, "CHAP authentication failed");
	assert_int_equal(rig.owner.ups, 1);
	rig_close(&rig);
}

static void test_prior_11_response_as_long_as_the_digest(void **unused)
{
	static const unsigned lengths[] = {1, 16, 20, 255, CHALLENGE_MAX};
	static struct login login;
	struct rig rig;

	for (unsigned i = 0; i < ARRAY_SIZE(lengths); i++) {
		open_chap(&rig, &login);
		login.challenge_bytes = lengths[i];
		rig_up(&rig);
		assert_int_equal(login.response_chars, 2 + 2 * 16);
		assert_true(login.right);
		rig_close(&rig);
	}
	/* Longer than any buffer for it. */
	open_chap(&rig, &login);
	login.too_long = 2000;
	rig_make_path(&rig);
	rig_connect(&rig);
	rig_expect_down(&rig, 1, "login");
	rig_close(&rig);
	/* Wrong credentials are told as such. */
	open_chap(&rig, &login);
	rig.config.password = "another-secret-of-20";
	rig_make_path(&rig);
	rig_connect(&rig);
	rig_expect_down(&rig, 1, "CHAP authentication failed");
	rig_close(&rig);
}

static void test_prior_14_no_key_twice_no_early_transit(void **unused)
{
	static struct login login;
	struct rig rig;

	open_chap(&rig, &login);
	rig_up(&rig);
	assert_false(login.transit_early);
	for (const char *a = login.text; a < login.text + login.text_bytes; a += strlen(a) + 1) {
		size_t n = strcspn(a, "=");
		char key[64];

		assert_true(n < sizeof key);
		memcpy(key, a, n);
		key[n] = 0;
		if (value_of(a + strlen(a) + 1,
			     login.text_bytes - (size_t)(a + strlen(a) + 1 - login.text), key))
			fail_msg("%s was sent twice", key);
	}
	rig_close(&rig);
}

#define OPERATIONAL                                                                  \
	"DataDigest=None\0InitialR2T=No\0ImmediateData=Yes\0MaxBurstLength=262144\0" \
	"FirstBurstLength=262144\0MaxRecvDataSegmentLength=262144\0"

static void test_prior_16_header_digest_from_the_next_pdu(void **unused)
{
	static uint8_t out[8 * PEER_BLOCK_BYTES], in[8 * PEER_BLOCK_BYTES];
	static struct login login;
	struct owner_io oio = {0};
	struct rig rig;

	for (unsigned digest = 0; digest < 2; digest++) {
		open_login(&rig, &login);
		rig.config.header_digest = true;
		rig.peer.login_keys = digest ? "HeaderDigest=CRC32C\0" OPERATIONAL
					     : "HeaderDigest=None\0" OPERATIONAL;
		rig_up(&rig);
		/* Offered in this order: the first that is acceptable counts. */
		assert_string_equal(value_of(login.text, login.text_bytes, "HeaderDigest"),
				    "CRC32C,None");
		assert_int_equal(rig.peer.header_digest, digest);
		rig_fill(out, sizeof out, digest);
		owner_submit(&rig.owner, &oio, IO_WRITE, 3, 8, out);
		rig_expect(&rig, &rig.owner.ok, 1);
		owner_submit(&rig.owner, &oio, IO_READ, 3, 8, in);
		rig_expect(&rig, &rig.owner.ok, 2);
		assert_memory_equal(in, out, sizeof out);
		rig_close(&rig);
	}
}

static void test_prior_17_no_chap_without_credentials(void **unused)
{
	static struct login login;
	const char *offered;
	struct rig rig;

	open_login(&rig, &login);
	rig_up(&rig);
	offered = value_of(login.text, login.text_bytes, "AuthMethod");
	assert_true(!offered || strcmp(offered, "None") == 0);
	rig_close(&rig);
	/* With credentials, and a target that wants none. */
	open_login(&rig, &login);
	rig.config.user = user;
	rig.config.password = password;
	rig_up(&rig);
	offered = value_of(login.text, login.text_bytes, "AuthMethod");
	assert_non_null(offered);
	assert_non_null(strstr(offered, "CHAP"));
	rig_close(&rig);
	/* Without, and a target that insists. */
	open_login(&rig, &login);
	login.auth_method = "AuthMethod=CHAP";
	rig_make_path(&rig);
	rig_connect(&rig);
	rig_expect_down(&rig, 1, "CHAP authentication failed");
	rig_close(&rig);
}

static void test_prior_19_isids_differ_where_qualifiers_do(void **unused)
{
	static const uint8_t first[6] = {0x80, 0x00, 0x10, 0x20, 0x30, 0x40};
	struct rig rig;

	for (unsigned byte = 0; byte < 4; byte++) {
		uint8_t isid[6];

		memcpy(isid, first, sizeof isid);
		isid[2 + byte] ^= 0x01;
		rig_open(&rig);
		rig.config.isid_qualifier = get_be32(isid + 2);
		rig_up(&rig);
		assert_memory_equal(rig.peer.isids[0], isid, sizeof isid);
		/* The same at the next login: the old session is reinstated (57). */
		peer_drop(&rig.peer, true);
		rig_expect(&rig, &rig.owner.downs, 1);
		rig_up(&rig);
		assert_memory_equal(rig.peer.isids[1], isid, sizeof isid);
		rig_close(&rig);
	}
}

static void test_prior_20_bad_initiator_names_are_refused(void **unused)
{
	static const char *const bad[] = {"", "foo bar", "iqn.2026-11.test.sanlab:a\tb"};
	char name[225];
	struct rig rig;

	rig_open(&rig);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		rig.config.initiator_name = bad[i];
		assert_int_equal(owner_open(&rig.owner, rig.loop, &rig.config), -EINVAL);
	}
	memset(name, 'a', sizeof name);
	memcpy(name, "iqn.2026-11.test.", 17);
	name[224] = 0;
	rig.config.initiator_name = name;
	assert_int_equal(owner_open(&rig.owner, rig.loop, &rig.config), -EINVAL);
	name[223] = 0; /* the longest there is */
	rig_up(&rig);
	rig_close(&rig);
}

/* A target whose redirection leads nowhere: no session, and a reason to read. */
static void test_prior_22_redirect_to_garbage(void **unused)
{
	char longest[100];
	const char *const garbage[] = {"",
				       "x",
				       ":",
				       "[::1",
				       "300.1.1.1:3260",
				       "127.0.0.1:99999999",
				       "127.0.0.1:0",
				       "127.0.0.1:3260x",
				       longest};
	struct rig rig;

	memset(longest, '7', sizeof longest - 1);
	longest[sizeof longest - 1] = 0;
	rig_open(&rig);
	rig_make_path(&rig);
	for (unsigned i = 0; i < ARRAY_SIZE(garbage); i++) {
		rig.peer.redirect_to = garbage[i];
		rig_connect(&rig);
		rig_expect_down(&rig, i + 1, *garbage[i] ? "login redirected to" : "login refused");
	}
	rig.peer.redirect_to = NULL;
	rig_up(&rig);
	rig_close(&rig);
}

static void test_prior_24_redirect_then_authentication(void **unused)
{
	static struct login login;
	struct peer group;
	struct rig rig;

	open_chap(&rig, &login); /* the portal that the group address redirects to */
	peer_open(&group, rig.loop);
	group.redirect_to = rig.peer.portal;
	rig.config.portal = group.portal;
	rig_up(&rig);
	assert_true(login.right);
	assert_string_equal(rig.owner.path->redirected_to, rig.peer.portal);
	path_disconnect(rig.owner.path);
	/* A failure there is told as what it is. */
	login.step = 0;
	login.right = false;
	login.challenge_bytes = 0;
	login.too_long = 32; /* the answer to that is not what this target expects */
	rig_connect(&rig);
	rig_expect_down(&rig, 1, "CHAP authentication failed");
	peer_close(&group);
	rig_close(&rig);
}

static void test_prior_24_redirect_loop_ends(void **unused)
{
	struct peer other;
	struct rig rig;

	rig_open(&rig);
	peer_open(&other, rig.loop);
	rig.peer.redirect_to = other.portal;
	other.redirect_to = rig.peer.portal;
	rig_make_path(&rig);
	rig_connect(&rig);
	rig_expect_down(&rig, 1, "redirected more than");
	assert_in_range(rig.peer.connections + other.connections, 3, 9);
	peer_close(&other);
	rig_close(&rig);
}

static void test_prior_72_lun_300_is_flat(void **unused)
{
	static const unsigned luns[] = {0, 1, 255, 256, 300, 16383};
	static uint8_t data[PEER_BLOCK_BYTES];
	struct owner_io oio = {0};
	struct rig rig;

	for (unsigned i = 0; i < ARRAY_SIZE(luns); i++) {
		rig_open(&rig);
		rig.config.lun = luns[i];
		rig_up(&rig);
		owner_submit(&rig.owner, &oio, IO_READ, 0, 1, data);
		rig_expect(&rig, &rig.owner.ok, 1);
		assert_int_equal(get_be16(rig.peer.last_lun),
				 luns[i] < 256 ? luns[i] : 0x4000 | luns[i]);
		assert_int_equal(get_be32(rig.peer.last_lun + 2), 0);
		rig_close(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_prior_03_login_that_never_completes),
	    cmocka_unit_test(test_prior_10_algorithm_of_the_list),
	    cmocka_unit_test(test_prior_11_response_as_long_as_the_digest),
	    cmocka_unit_test(test_prior_14_no_key_twice_no_early_transit),
	    cmocka_unit_test(test_prior_16_header_digest_from_the_next_pdu),
	    cmocka_unit_test(test_prior_17_no_chap_without_credentials),
	    cmocka_unit_test(test_prior_19_isids_differ_where_qualifiers_do),
	    cmocka_unit_test(test_prior_20_bad_initiator_names_are_refused),
	    cmocka_unit_test(test_prior_22_redirect_to_garbage),
	    cmocka_unit_test(test_prior_24_redirect_then_authentication),
	    cmocka_unit_test(test_prior_24_redirect_loop_ends),
	    cmocka_unit_test(test_prior_72_lun_300_is_flat),
	};

	gcry_check_version(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
