/* SPDX-License-Identifier: MIT
 *
 * Access rules: what they say, and where they are asked: login, SendTargets, logical units.
 */
#include "tests/unit/iscsi/fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "target/iscsi/binary.h"
#include "target/iscsi/secrets.h"

#define SECOND_NAME "iqn.2026-11.test.sanlab:unit:db2"

struct world {
	struct fixture *f;
	struct scsi_target *second;
	struct iscsi_access *access;
	struct chap_secrets *secrets;
};

static int setup(void **state)
{
	static struct world world;
	void *fixture;

	world = (struct world){.access = iscsi_access_new()};
	if (fixture_setup(&fixture) < 0)
		return -1;
	world.f = fixture;
	world.second = fake_target_new(world.f->pool, SECOND_NAME);
	assert_int_equal(iscsi_server_add_target(world.f->server, world.second), 0);
	*state = &world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;
	void *fixture = world->f;

	pdu_client_close(&world->f->client);
	iscsi_server_secure(world->f->server, &(struct iscsi_security){NULL});
	iscsi_access_free(world->access);
	chap_secrets_free(world->secrets);
	if (fixture_teardown(&fixture) < 0)
		return -1;
	fake_target_free(world->second);
	return 0;
}

static void secure(struct world *world, bool chap_discovery)
{
	iscsi_server_secure(world->f->server,
			    &(struct iscsi_security){.secrets = world->secrets,
						     .chap_discovery = chap_discovery,
						     .access = world->access});
}

/* A rule for LUN of TARGET; each criterion is one string or NULL. */
static void allow(struct world *world, const struct scsi_target *target, unsigned lun,
		  const char *const *initiator, const char *const *address, const char *const *user)
{
	struct access_list initiators = {initiator, *initiator ? 1 : 0};
	struct access_list addresses = {address, *address ? 1 : 0};
	struct access_list users = {user, *user ? 1 : 0};
	int rule = iscsi_access_add_rule(world->access, &initiators, &addresses, &users);

	assert_true(rule >= 0);
	assert_int_equal(iscsi_access_grant(world->access, (unsigned)rule, target, lun), 0);
}

static void login_begin(struct world *world, const char *name, const char *address)
{
	struct pdu_client *c = &world->f->client;

	c->exp_stat_sn = c->exp_cmd_sn = c->max_cmd_sn = 0;
	c->tsih = 0;
	c->initiator_name = name;
	pdu_client_open(c, world->f->portal);
	iscsi_conn_set_peer(c->conn, address);
}

static void test_patterns(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool match;
	} cases[] = {
	    {"", "", true},
	    {"", "a", false},
	    {"*", "", true},
	    {"*", "iqn.x:y", true},
	    {"iqn.*:host1", "iqn.2026-11.x:host1", true},
	    {"iqn.*:host1", "iqn.2026-11.x:host11", false},
	    {"IQN.x:HOST", "iqn.x:host", true},
	    {"a*b*c", "a1b2b3c", true},
	    {"a*b*c", "a1b2b3", false},
	    {"*a", "ba", true},
	    {"**", "x", true},
	    {"a?c", "abc", false},
	    {"*a*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(iscsi_pattern_match(cases[i].pattern, cases[i].text),
				 cases[i].match);
}

static void test_rules(void **state)
{
	static const char *const hosts[] = {"iqn.x:host1", "iqn.x:host2"};
	static const char *const nets[] = {"10.0.0.0/8", "::1"};
	static const char *const names[] = {"exchange", "sql"};
	static const char *const broken[] = {"10.0.0.0/99"};
	struct world *world = *state;
	const struct access_list host_list = {hosts, 2}, net_list = {nets, 2},
				 user_list = {names, 2}, none = {NULL, 0},
				 broken_list = {broken, 1};
	static const struct {
		const char *name, *address, *user;
		enum access_verdict verdict;
	} cases[] = {
	    {"iqn.x:host1", "10.1.2.3", "sql", ACCESS_ALLOWED},
	    {"iqn.x:host2", "::1", "exchange", ACCESS_ALLOWED},
	    {"iqn.x:host3", "10.1.2.3", "sql", ACCESS_WRONG_INITIATOR},
	    {"iqn.x:host1", "11.1.2.3", "sql", ACCESS_WRONG_INITIATOR},
	    {"iqn.x:host1", "10.1.2.3", "SQL", ACCESS_WRONG_USER},
	    {"iqn.x:host1", "10.1.2.3", NULL, ACCESS_WRONG_USER},
	};

	assert_int_equal(iscsi_access_add_rule(world->access, &none, &broken_list, &none), -EINVAL);
	assert_int_equal(iscsi_access_add_rule(world->access, &host_list, &net_list, &user_list),
			 0);
	assert_int_equal(iscsi_access_grant(world->access, 0, world->f->target, 1), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct access_peer peer = {
		    .initiator_name = cases[i].name, .user = cases[i].user, .user_matters = true};

		assert_int_equal(cidr_parse_address(cases[i].address, peer.address), 0);
		assert_int_equal(iscsi_access_check(world->access, world->f->target, &peer),
				 cases[i].verdict);
		assert_int_equal(iscsi_access_check_lun(world->access, world->f->target, 1, &peer),
				 cases[i].verdict);
		assert_int_equal(iscsi_access_check_lun(world->access, world->f->target, 0, &peer),
				 ACCESS_WRONG_INITIATOR);
		assert_int_equal(iscsi_access_check(NULL, world->f->target, &peer), ACCESS_ALLOWED);
	}
	for (unsigned i = 1; i < ACCESS_MAX_RULES; i++)
		assert_int_equal(iscsi_access_add_rule(world->access, &none, &none, &none), i);
	assert_int_equal(iscsi_access_add_rule(world->access, &none, &none, &none), -ENOSPC);
}

static void test_login(void **state)
{
	static const char *const anybody[] = {NULL}, *const host[] = {"iqn.x:host*"},
				 *const net[] = {"10.0.0.0/8"};
	static const struct {
		const char *name, *address, *target;
		unsigned status;
	} cases[] = {
	    {"iqn.x:HOST7", "10.1.1.1", TARGET_NAME, 0},
	    {"iqn.x:other", "10.1.1.1", TARGET_NAME, 0x0202},
	    {"iqn.x:host7", "192.0.2.1", TARGET_NAME, 0x0202},
	    {"iqn.x:host7", "", TARGET_NAME, 0x0202},	      /* an address nobody knows */
	    {"iqn.x:host7", "10.1.1.1", SECOND_NAME, 0x0202}, /* no rule speaks of it */
	    {"iqn.x:host7", "10.1.1.1", "iqn.x:none", 0x0203},
	};
	struct world *world = *state;
	struct pdu_client *c = &world->f->client;

	allow(world, world->f->target, 0, host, net, anybody);
	secure(world, false);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		login_begin(world, cases[i].name, cases[i].address);
		assert_int_equal(pdu_login(c, cases[i].target, NULL, 0), cases[i].status);
		if (cases[i].status == 0)
			assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
		pdu_client_close(c);
	}
}

/* One target, two logical units, one of them open: the other one is not there. */
static void test_hidden_lun(void **state)
{
	static const char *const anybody[] = {NULL};
	static const uint8_t cdb[16];
	struct world *world = *state;
	struct pdu_client *c = &world->f->client;
	uint8_t bhs[BHS_BYTES];
	struct pdu pdu;

	allow(world, world->f->target, 0, anybody, anybody, anybody);
	secure(world, false);
	login_begin(world, "iqn.x:host", "::1");
	assert_int_equal(pdu_login(c, TARGET_NAME, NULL, 0), 0);
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
	pdu_command(c, bhs, FLAG_FINAL, cdb, 0);
	bhs[BHS_LUN + 1] = 1;
	pdu_send(c, bhs, NULL, 0);
	pdu = pdu_expect(c, OP_SCSI_RESPONSE);
	assert_int_equal(pdu.bhs[BHS_STATUS], SCSI_CHECK_CONDITION);
	assert_int_equal(pdu.data[2 + 12], 0x25);
}

/* Does SendTargets=All tell of NAME? */
static bool discovers(struct pdu_client *c, const char *name)
{
	static const char all[] = "SendTargets=All";
	uint8_t bhs[BHS_BYTES];
	struct pdu pdu;

	pdu_begin(bhs, OP_TEXT, FLAG_FINAL);
	put_be32(bhs + BHS_ITT, c->itt++);
	put_be32(bhs + BHS_TTT, ISCSI_NO_TAG);
	put_be32(bhs + BHS_CMD_SN, c->cmd_sn++);
	pdu_send(c, bhs, all, sizeof all);
	pdu = pdu_expect(c, OP_TEXT_RESPONSE);
	return memmem(pdu.data, pdu.data_bytes, name, strlen(name)) != NULL;
}

static void test_discovery(void **state)
{
	static const char *const anybody[] = {NULL}, *const host[] = {"iqn.x:host1"},
				 *const user[] = {"sql"};
	struct world *world = *state;
	struct pdu_client *c = &world->f->client;

	allow(world, world->f->target, 0, host, anybody, anybody);
	allow(world, world->second, 0, anybody, anybody, user);
	assert_int_equal(chap_secrets_parse("s", "sql twelve-bytes", 16, &world->secrets, NULL), 0);
	secure(world, false);
	login_begin(world, "iqn.x:host1", "::1");
	assert_int_equal(pdu_login_discovery(c, NULL, 0), 0);
	assert_true(discovers(c, TARGET_NAME));
	/* Nobody has said which user it is: the login will ask. */
	assert_true(discovers(c, SECOND_NAME));
	pdu_client_close(c);
	login_begin(world, "iqn.x:host2", "::1");
	assert_int_equal(pdu_login_discovery(c, NULL, 0), 0);
	assert_false(discovers(c, TARGET_NAME));
}

/* Logs in by CHAP as USER; returns the status. */
static uint16_t login_as(struct world *world, const char *target, const char *user)
{
	struct pdu_client *c = &world->f->client;
	uint8_t challenge[CHAP_DIGEST_MAX_BYTES], response[CHAP_DIGEST_MAX_BYTES];
	char keys[512], hex[2 * CHAP_DIGEST_MAX_BYTES + 3];
	size_t bytes;
	int n;

	login_begin(world, "iqn.x:host1", "::1");
	n = snprintf(keys, sizeof keys, "InitiatorName=iqn.x:host1%c%s%s%cAuthMethod=CHAP", 0,
		     target ? "TargetName=" : "SessionType=Discovery", target ? target : "", 0);
	pdu_login_step(c, 0x81, keys, (size_t)n + 1);
	if (c->login_status != 0)
		return c->login_status;
	pdu_login_step(c, 0x81, PDU_KEYS("CHAP_A=7"));
	bytes = iscsi_binary_decode(pdu_login_value(c, "CHAP_C"), challenge, sizeof challenge);
	chap_digest(CHAP_SHA256, (uint8_t)strtoul(pdu_login_value(c, "CHAP_I"), NULL, 10),
		    chap_secrets_find(world->secrets, user), challenge, bytes, response);
	iscsi_binary_encode(response, 32, hex);
	n = snprintf(keys, sizeof keys, "CHAP_N=%s%cCHAP_R=%s", user, 0, hex);
	pdu_login_step(c, 0x83, keys, (size_t)n + 1);
	return c->login_status;
}

static void test_users(void **state)
{
	static const char *const anybody[] = {NULL}, *const sql[] = {"sql"},
				 *const exchange[] = {"exchange"}, *const host[] = {"iqn.x:host2"};
	static const char text[] = "sql twelve-bytes\nexchange other-secret";
	struct world *world = *state;

	allow(world, world->f->target, 0, anybody, anybody, sql);
	allow(world, world->f->target, 1, anybody, anybody, exchange);
	allow(world, world->second, 0, host, anybody, sql);
	assert_int_equal(chap_secrets_parse("s", text, sizeof text - 1, &world->secrets, NULL), 0);
	secure(world, true);
	assert_int_equal(login_as(world, TARGET_NAME, "sql"), 0);
	assert_int_equal(pdu_test_unit_ready(&world->f->client), SCSI_GOOD);
	pdu_client_close(&world->f->client);
	/* The other user has LUN 1 alone. */
	assert_int_equal(login_as(world, TARGET_NAME, "exchange"), 0);
	assert_int_equal(pdu_test_unit_ready(&world->f->client), SCSI_CHECK_CONDITION);
	pdu_client_close(&world->f->client);
	/* A name that is not allowed is told so before any secret is asked for. */
	assert_int_equal(login_as(world, SECOND_NAME, "sql"), 0x0202);
	assert_int_equal(login_as(world, NULL, "exchange"), 0);
	assert_true(discovers(&world->f->client, TARGET_NAME));
	assert_false(discovers(&world->f->client, SECOND_NAME));
}

static void test_wrong_user(void **state)
{
	static const char *const anybody[] = {NULL}, *const sql[] = {"sql"};
	static const char text[] = "sql twelve-bytes\nexchange other-secret";
	struct world *world = *state;

	allow(world, world->f->target, 0, anybody, anybody, sql);
	assert_int_equal(chap_secrets_parse("s", text, sizeof text - 1, &world->secrets, NULL), 0);
	secure(world, true);
	assert_int_equal(login_as(world, TARGET_NAME, "exchange"), 0x0201);
	assert_true(world->f->client.closed);
	/* Seen by whom it is for. */
	assert_int_equal(login_as(world, NULL, "exchange"), 0);
	assert_false(discovers(&world->f->client, TARGET_NAME));
	pdu_client_close(&world->f->client);
	assert_int_equal(login_as(world, NULL, "sql"), 0);
	assert_true(discovers(&world->f->client, TARGET_NAME));
}

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_patterns), WORLD_TEST(test_rules),	 WORLD_TEST(test_login),
	    WORLD_TEST(test_hidden_lun),     WORLD_TEST(test_discovery), WORLD_TEST(test_users),
	    WORLD_TEST(test_wrong_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
