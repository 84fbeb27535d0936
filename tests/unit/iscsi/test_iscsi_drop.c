/* SPDX-License-Identifier: MIT
 *
 * Portals that drain: the request to log out, the end of patience, and where logins go meanwhile.
 */
#include "tests/unit/iscsi/fixture.h"

#define NAMES "InitiatorName=iqn.2026-11.test.sanlab:client\0TargetName=" TARGET_NAME

static void expect_event(struct pdu_client *c, unsigned event, unsigned parameter1,
			 unsigned parameter3)
{
	struct pdu pdu = pdu_expect(c, OP_ASYNC);

	assert_int_equal(pdu.bhs[BHS_FLAGS], FLAG_FINAL);
	assert_int_equal(pdu.bhs[BHS_ASYNC_EVENT], event);
	assert_int_equal(bhs_itt(pdu.bhs), ISCSI_NO_TAG);
	assert_int_equal(pdu.data_bytes, 0);
	assert_int_equal(get_be16(pdu.bhs + BHS_ASYNC_PARAMETERS), parameter1);
	assert_int_equal(get_be16(pdu.bhs + BHS_ASYNC_PARAMETERS + 2), 0);
	assert_int_equal(get_be16(pdu.bhs + BHS_ASYNC_PARAMETERS + 4), parameter3);
}

static unsigned login_at(struct pdu_client *c, struct iscsi_portal *portal)
{
	c->exp_stat_sn = c->exp_cmd_sn = c->max_cmd_sn = 0;
	c->tsih = 0;
	pdu_client_open(c, portal);
	pdu_login_step(c, 0x87, PDU_KEYS(NAMES));
	return c->login_status;
}

/* One that follows the request, one that does not. */
static void test_drain(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client, stubborn;
	uint8_t bhs[BHS_BYTES];

	fixture_login(f, NULL, 0);
	pdu_client_init(&stubborn, f->server);
	stubborn.initiator_name = "iqn.2026-11.test.sanlab:stubborn";
	stubborn.cid = 7;
	pdu_client_open(&stubborn, f->portal);
	assert_int_equal(pdu_login(&stubborn, TARGET_NAME, NULL, 0), 0);
	assert_int_equal(iscsi_portal_drain(f->portal, 2500 * NS_PER_MS), 2);
	assert_true(iscsi_portal_is_draining(f->portal));
	expect_event(c, ASYNC_LOGOUT_REQUEST, 0, 3);
	expect_event(&stubborn, ASYNC_LOGOUT_REQUEST, 0, 3);
	assert_int_equal(pdu_test_unit_ready(&stubborn), SCSI_GOOD); /* all goes on until then */
	pdu_begin(bhs, OP_LOGOUT, FLAG_FINAL | LOGOUT_SESSION);
	put_be32(bhs + BHS_CMD_SN, c->cmd_sn++);
	pdu_send(c, bhs, NULL, 0);
	pdu_expect(c, OP_LOGOUT_RESPONSE);
	loop_run_until(f->loop, loop_now_ns(f->loop) + 2400 * NS_PER_MS);
	assert_int_equal(pdu_test_unit_ready(&stubborn), SCSI_GOOD);
	loop_run_until(f->loop, loop_now_ns(f->loop) + 200 * NS_PER_MS);
	expect_event(&stubborn, ASYNC_DROP_CONNECTION, 7, 0);
	pdu_expect_nothing(&stubborn);
	assert_true(stubborn.closed);
	assert_int_equal(f->server->session_count, 0);
	pdu_client_done(&stubborn);
}

/* Logins are sent to a portal that does not drain, or refused; up again, all is as before. */
static void test_logins(void **state)
{
	struct fixture *f = *state;
	struct iscsi_portal *second = fixture_portal(f, "127.0.0.1", 3262, 1, false);
	struct pdu_client *c = &f->client;

	iscsi_portal_drain(f->portal, 0);
	assert_int_equal(login_at(c, f->portal), 0x0101);
	assert_string_equal(pdu_login_value(c, "TargetAddress"), "127.0.0.1:3262");
	assert_int_equal(login_at(c, second), 0);
	pdu_client_close(c);
	iscsi_portal_drain(second, NS_PER_S);
	assert_int_equal(login_at(c, f->portal), 0x0301);
	assert_int_equal(login_at(c, second), 0x0301);
	iscsi_portal_set_down(f->portal, false, NULL);
	assert_false(iscsi_portal_is_draining(f->portal));
	assert_int_equal(login_at(c, f->portal), 0);
	pdu_client_close(c);
	assert_int_equal(login_at(c, second), 0x0101);
}

/* A login under way and a discovery session have nothing to log out of: closed at the end. */
static void test_unfinished(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client, looker;

	pdu_client_open(c, f->portal);
	pdu_login_step(c, 0x81, PDU_KEYS(NAMES));
	pdu_client_init(&looker, f->server);
	pdu_client_open(&looker, f->portal);
	assert_int_equal(pdu_login_discovery(&looker, NULL, 0), 0);
	assert_int_equal(iscsi_portal_drain(f->portal, NS_PER_S), 0);
	pdu_expect_nothing(&looker);
	loop_run_until(f->loop, loop_now_ns(f->loop) + NS_PER_S);
	pdu_client_pump(c);
	pdu_expect_nothing(&looker);
	assert_true(c->closed);
	assert_true(looker.closed);
	pdu_client_done(&looker);
	assert_int_equal(f->server->conn_count, 0);
}

/* Does SendTargets=All name ADDRESS? */
static bool is_listed(struct pdu_client *c, const char *address)
{
	static const char all[] = "SendTargets=All";
	uint8_t bhs[BHS_BYTES];
	struct pdu pdu;

	pdu_begin(bhs, OP_TEXT, FLAG_FINAL);
	put_be32(bhs + BHS_TTT, ISCSI_NO_TAG);
	put_be32(bhs + BHS_ITT, c->itt++);
	put_be32(bhs + BHS_CMD_SN, c->cmd_sn++);
	pdu_send(c, bhs, all, sizeof all);
	pdu = pdu_expect(c, OP_TEXT_RESPONSE);
	return memmem(pdu.data, pdu.data_bytes, address, strlen(address)) != NULL;
}

static void test_not_listed(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	struct iscsi_portal *second = fixture_portal(f, "127.0.0.1", 3262, 1, false);

	pdu_client_open(c, f->portal);
	assert_int_equal(pdu_login_discovery(c, NULL, 0), 0);
	assert_true(is_listed(c, "127.0.0.1:3262"));
	iscsi_portal_drain(second, NS_PER_S);
	assert_false(is_listed(c, "127.0.0.1:3262"));
	assert_true(is_listed(c, "127.0.0.1:3260"));
	iscsi_portal_set_down(second, false, NULL);
	assert_true(is_listed(c, "127.0.0.1:3262"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    FIXTURE_TEST(test_drain),
	    FIXTURE_TEST(test_logins),
	    FIXTURE_TEST(test_unfinished),
	    FIXTURE_TEST(test_not_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
