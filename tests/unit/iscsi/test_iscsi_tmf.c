/* SPDX-License-Identifier: MIT
 *
 * Task management: every function, answered when its tasks have ended and not before.
 */
#include "tests/unit/iscsi/fixture.h"

static uint8_t pattern[65536];
static const uint8_t ready_cdb[16];

static void tmf_answered(struct pdu_client *c, const uint8_t *request, unsigned response)
{
	struct pdu pdu = pdu_expect(c, OP_TASK_MANAGEMENT_RESPONSE);

	assert_int_equal(bhs_itt(pdu.bhs), bhs_itt(request));
	assert_int_equal(pdu.bhs[BHS_RESPONSE], response);
}

static void read_start(struct pdu_client *c, uint8_t bhs[BHS_BYTES], unsigned lun)
{
	pdu_read10(c, bhs, 0, 8);
	bhs[BHS_LUN + 1] = (uint8_t)lun;
	pdu_send(c, bhs, NULL, 0);
}

/* A write that waits for data it asked for (prior bug 50). */
static void test_abort_waiting_write(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	uint8_t bhs[BHS_BYTES], tmf[BHS_BYTES], data_out[BHS_BYTES];
	struct pdu r2t, pdu;

	fixture_login(f, PDU_KEYS("InitialR2T=Yes\0ImmediateData=No"));
	pdu_write10(c, bhs, 0, 128, FLAG_FINAL);
	pdu_send(c, bhs, NULL, 0);
	r2t = pdu_expect(c, OP_R2T);
	pdu_tmf(c, tmf, TMF_ABORT_TASK, bhs_itt(bhs), get_be32(bhs + BHS_CMD_SN));
	pdu_send(c, tmf, NULL, 0);
	tmf_answered(c, tmf, TMF_COMPLETE);
	pdu_data_out(data_out, bhs_itt(bhs), bhs_ttt(r2t.bhs), 0, 0, true);
	pdu_send(c, data_out, pattern, sizeof pattern);
	pdu_expect_nothing(c);
	assert_int_equal(fake_executed(f->target), 0);
	pdu_write10(c, bhs, 0, 8, FLAG_FINAL);
	pdu_send(c, bhs, NULL, 0);
	r2t = pdu_expect(c, OP_R2T);
	pdu_data_out(data_out, bhs_itt(bhs), bhs_ttt(r2t.bhs), 0, 0, true);
	pdu_send(c, data_out, pattern, 4096);
	pdu = pdu_expect(c, OP_SCSI_RESPONSE);
	assert_int_equal(pdu.bhs[BHS_STATUS], SCSI_GOOD);
}

/* One that runs: the answer waits for the drive; no status for the aborted task. */
static void test_abort_running(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	uint8_t bhs[BHS_BYTES], first[BHS_BYTES], second[BHS_BYTES];

	fixture_login(f, NULL, 0);
	fake_hold(f->target, true);
	read_start(c, bhs, 0);
	pdu_tmf(c, first, TMF_ABORT_TASK, bhs_itt(bhs), get_be32(bhs + BHS_CMD_SN));
	pdu_send(c, first, NULL, 0);
	pdu_tmf(c, second, TMF_ABORT_TASK, bhs_itt(bhs), get_be32(bhs + BHS_CMD_SN));
	pdu_send(c, second, NULL, 0);
	pdu_expect_nothing(c);
	fake_hold(f->target, false);
	tmf_answered(c, first, TMF_COMPLETE);
	tmf_answered(c, second, TMF_COMPLETE);
	pdu_expect_nothing(c);
	/* Aborted again, or after its answer: there is no such task (prior bugs 51, 54). */
	pdu_send(c, first, NULL, 0);
	tmf_answered(c, first, TMF_NO_TASK);
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
	pdu_tmf(c, first, TMF_ABORT_TASK, c->itt - 1, c->cmd_sn - 1);
	pdu_send(c, first, NULL, 0);
	tmf_answered(c, first, TMF_NO_TASK);
	assert_int_equal(iscsi_portal_counters(f->portal)->commands, 1);
}

/* A task that has not come yet never runs: its number counts as received. */
static void test_abort_unseen(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	uint8_t late[BHS_BYTES], bhs[BHS_BYTES], tmf[BHS_BYTES];
	struct pdu pdu;

	fixture_login(f, NULL, 0);
	pdu_write10(c, late, 0, 1, FLAG_FINAL);
	pdu_command(c, bhs, FLAG_FINAL, ready_cdb, 0);
	pdu_send(c, bhs, NULL, 0); /* held: the one before is missing */
	pdu_expect_nothing(c);
	pdu_tmf(c, tmf, TMF_ABORT_TASK, bhs_itt(late), get_be32(late + BHS_CMD_SN));
	pdu_send(c, tmf, NULL, 0);
	pdu = pdu_expect(c, OP_SCSI_RESPONSE);
	assert_int_equal(bhs_itt(pdu.bhs), bhs_itt(bhs));
	tmf_answered(c, tmf, TMF_COMPLETE);
	pdu_send(c, late, pattern, 512);
	pdu_expect_nothing(c);
	assert_int_equal(fake_executed(f->target), 0);
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
}

/* A held one is never run either. */
static void test_abort_held(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	uint8_t first[BHS_BYTES], bhs[BHS_BYTES], tmf[BHS_BYTES];
	struct pdu pdu;

	fixture_login(f, NULL, 0);
	pdu_command(c, first, FLAG_FINAL, ready_cdb, 0);
	pdu_write10(c, bhs, 0, 1, FLAG_FINAL);
	pdu_send(c, bhs, pattern, 512);
	pdu_tmf(c, tmf, TMF_ABORT_TASK, bhs_itt(bhs), get_be32(bhs + BHS_CMD_SN));
	pdu_send(c, tmf, NULL, 0);
	tmf_answered(c, tmf, TMF_COMPLETE);
	pdu_send(c, first, NULL, 0);
	pdu = pdu_expect(c, OP_SCSI_RESPONSE);
	assert_int_equal(bhs_itt(pdu.bhs), bhs_itt(first));
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
	assert_int_equal(fake_executed(f->target), 0);
}

static void test_task_sets(void **state)
{
	static const uint8_t functions[] = {TMF_ABORT_TASK_SET, TMF_CLEAR_TASK_SET, TMF_LU_RESET};
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	fixture_login(f, PDU_KEYS("InitialR2T=Yes\0ImmediateData=No"));
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		uint8_t bhs[BHS_BYTES], other[BHS_BYTES], tmf[BHS_BYTES], data_out[BHS_BYTES];
		struct pdu pdu, r2t;

		fake_hold(f->target, true);
		read_start(c, other, 1);
		for (int n = 0; n < 4; n++)
			read_start(c, bhs, 0);
		pdu_write10(c, bhs, 0, 8, FLAG_FINAL);
		pdu_send(c, bhs, NULL, 0);
		r2t = pdu_expect(c, OP_R2T);
		pdu_tmf(c, tmf, functions[i], 0, 0);
		pdu_send(c, tmf, NULL, 0);
		pdu_expect_nothing(c); /* answered only when all have ended */
		pdu_data_out(data_out, bhs_itt(bhs), bhs_ttt(r2t.bhs), 0, 0, true);
		pdu_send(c, data_out, pattern, 4096);
		pdu_expect_nothing(c);
		fake_hold(f->target, false);
		/* The other logical unit is not touched (prior bug 93). */
		pdu = pdu_expect(c, OP_DATA_IN);
		assert_int_equal(bhs_itt(pdu.bhs), bhs_itt(other));
		tmf_answered(c, tmf, TMF_COMPLETE);
		pdu_expect_nothing(c);
		assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
		assert_int_equal(c->max_cmd_sn - c->exp_cmd_sn + 1, ISCSI_WINDOW);
	}
	assert_int_equal(fake_resets(f->target), 1);
	assert_int_equal(fake_clears(f->target), 1);
}

static const uint8_t set_functions[] = {TMF_ABORT_TASK_SET, TMF_CLEAR_TASK_SET, TMF_LU_RESET,
					TMF_TARGET_WARM_RESET};

/* A write of 128 blocks with two R2Ts under way; sends FUNCTION, which must wait. */
static void function_waits(struct pdu_client *c, uint8_t function, uint8_t bhs[BHS_BYTES],
			   struct pdu r2t[2], uint8_t tmf[BHS_BYTES])
{
	pdu_write10(c, bhs, 0, 128, FLAG_FINAL);
	pdu_send(c, bhs, NULL, 0);
	r2t[0] = pdu_expect(c, OP_R2T);
	r2t[1] = pdu_expect(c, OP_R2T);
	pdu_tmf(c, tmf, function, 0, 0);
	pdu_send(c, tmf, NULL, 0);
	pdu_expect_nothing(c);
}

#define TWO_R2TS \
	PDU_KEYS("InitialR2T=Yes\0ImmediateData=No\0MaxBurstLength=32768\0MaxOutstandingR2T=2")

/* The data that was asked for is waited for, or as much of it as comes before F. */
static void test_data_awaited(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	fixture_login(f, TWO_R2TS);
	for (size_t i = 0; i < ARRAY_SIZE(set_functions); i++) {
		uint8_t bhs[BHS_BYTES], tmf[BHS_BYTES], data_out[BHS_BYTES];
		struct pdu r2t[2];

		function_waits(c, set_functions[i], bhs, r2t, tmf);
		pdu_data_out(data_out, bhs_itt(bhs), bhs_ttt(r2t[0].bhs), 0, 0, false);
		pdu_send(c, data_out, pattern, 16384);
		pdu_data_out(data_out, bhs_itt(bhs), bhs_ttt(r2t[0].bhs), 1, 16384, true);
		pdu_send(c, data_out, pattern, 16384);
		pdu_expect_nothing(c);
		pdu_data_out(data_out, bhs_itt(bhs), bhs_ttt(r2t[1].bhs), 0, 32768, true);
		pdu_send(c, data_out, pattern, 512); /* cut short */
		tmf_answered(c, tmf, TMF_COMPLETE);
		assert_int_equal(fake_executed(f->target), 0);
		assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
		assert_int_equal(c->max_cmd_sn - c->exp_cmd_sn + 1, ISCSI_WINDOW);
	}
}

/* Not for ever; what comes after that is drained. */
static void test_data_never_comes(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	fixture_login(f, TWO_R2TS);
	for (size_t i = 0; i < ARRAY_SIZE(set_functions); i++) {
		uint8_t bhs[BHS_BYTES], tmf[BHS_BYTES], again[BHS_BYTES], data_out[BHS_BYTES];
		struct pdu r2t[2];

		function_waits(c, set_functions[i], bhs, r2t, tmf);
		/* One more function waits for the same. */
		pdu_tmf(c, again, TMF_ABORT_TASK, bhs_itt(bhs), get_be32(bhs + BHS_CMD_SN));
		pdu_send(c, again, NULL, 0);
		loop_run_until(f->loop, loop_now_ns(f->loop) + ISCSI_DRAIN_NS - 1);
		pdu_expect_nothing(c);
		loop_run_until(f->loop, loop_now_ns(f->loop) + 1);
		tmf_answered(c, tmf, TMF_COMPLETE);
		tmf_answered(c, again, TMF_COMPLETE);
		pdu_data_out(data_out, bhs_itt(bhs), bhs_ttt(r2t[0].bhs), 0, 0, true);
		pdu_send(c, data_out, pattern, 32768);
		pdu_expect_nothing(c);
		assert_int_equal(f->client.conn->session->tmf_busy, 0);
		assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
	}
	assert_int_equal(fake_executed(f->target), 0);
}

/* The connection goes instead. */
static void test_data_cut_off(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	for (size_t i = 0; i < ARRAY_SIZE(set_functions); i++) {
		uint8_t bhs[BHS_BYTES], tmf[BHS_BYTES];
		struct pdu r2t[2];

		fixture_login(f, TWO_R2TS);
		function_waits(c, set_functions[i], bhs, r2t, tmf);
		pdu_client_done(c);
		assert_int_equal(f->server->session_count, 0);
		pdu_client_init(c, f->server);
	}
}

static void test_warm_reset(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	uint8_t tmf[BHS_BYTES];

	fixture_login(f, NULL, 0);
	pdu_tmf(c, tmf, TMF_TARGET_WARM_RESET, 0, 0);
	pdu_send(c, tmf, NULL, 0);
	tmf_answered(c, tmf, TMF_COMPLETE);
	assert_int_equal(fake_target_resets(f->target), FAKE_LUNS);
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
}

static void expect_drop(struct pdu_client *c, unsigned event)
{
	struct pdu pdu = pdu_expect(c, OP_ASYNC);

	assert_int_equal(pdu.bhs[BHS_ASYNC_EVENT], event);
	assert_int_equal(bhs_itt(pdu.bhs), ISCSI_NO_TAG);
	pdu_expect_nothing(c);
	assert_true(c->closed);
}

/* A cold reset is answered when the tasks have ended; then every session is dropped, with a word.
 */
static void test_cold_reset(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client, other, looker;
	uint8_t tmf[BHS_BYTES], bhs[BHS_BYTES];

	fixture_login(f, NULL, 0);
	pdu_client_init(&other, f->server);
	other.initiator_name = "iqn.2026-11.test.sanlab:other";
	pdu_client_open(&other, f->portal);
	assert_int_equal(pdu_login(&other, TARGET_NAME, NULL, 0), 0);
	pdu_client_init(&looker, f->server);
	pdu_client_open(&looker, f->portal);
	assert_int_equal(pdu_login_discovery(&looker, NULL, 0), 0);
	fake_hold(f->target, true);
	read_start(&other, bhs, 0);
	pdu_expect_nothing(&other);
	pdu_tmf(c, tmf, TMF_TARGET_COLD_RESET, 0, 0);
	pdu_send(c, tmf, NULL, 0);
	pdu_expect_nothing(c);
	fake_hold(f->target, false);
	assert_int_equal(fake_target_resets(f->target), FAKE_LUNS);
	tmf_answered(c, tmf, TMF_COMPLETE);
	expect_drop(c, ASYNC_DROP_SESSION);
	expect_drop(&other, ASYNC_DROP_SESSION);
	assert_false(looker.closed);
	pdu_client_done(&looker);
	pdu_client_done(&other);
	assert_int_equal(f->server->session_count, 0);
	c->tsih = 0;
	fixture_login(f, NULL, 0);
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
}

static void test_other_answers(void **state)
{
	static const struct {
		uint8_t function, lun, response;
	} cases[] = {
	    {TMF_ABORT_TASK_SET, 9, TMF_NO_LUN},     {TMF_CLEAR_TASK_SET, 9, TMF_NO_LUN},
	    {TMF_LU_RESET, 9, TMF_NO_LUN},	     {TMF_CLEAR_ACA, 0, TMF_NOT_SUPPORTED},
	    {TMF_TASK_REASSIGN, 0, TMF_NO_REASSIGN}, {99, 0, TMF_NOT_SUPPORTED},
	    {TMF_ABORT_TASK_SET, 0, TMF_COMPLETE},
	};
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	fixture_login(f, NULL, 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t tmf[BHS_BYTES];

		pdu_tmf(c, tmf, cases[i].function, 0, 0);
		tmf[BHS_LUN + 1] = cases[i].lun;
		pdu_send(c, tmf, NULL, 0);
		tmf_answered(c, tmf, cases[i].response);
		assert_int_equal(f->client.conn->session->tmf_busy, 0);
	}
}

/* Another session's tasks: a reset takes them too, and its window opens again. */
static void test_reset_across_sessions(void **state)
{
	static const uint8_t functions[] = {TMF_LU_RESET, TMF_CLEAR_TASK_SET};
	struct fixture *f = *state;
	struct pdu_client *c = &f->client, other;

	fixture_login(f, NULL, 0);
	pdu_client_init(&other, f->server);
	other.initiator_name = "iqn.2026-11.test.sanlab:other";
	pdu_client_open(&other, f->portal);
	assert_int_equal(pdu_login(&other, TARGET_NAME, NULL, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		uint8_t bhs[BHS_BYTES], tmf[BHS_BYTES];

		fake_hold(f->target, true);
		read_start(&other, bhs, 0);
		pdu_expect_nothing(&other);
		pdu_tmf(c, tmf, functions[i], 0, 0);
		pdu_send(c, tmf, NULL, 0);
		pdu_expect_nothing(c);
		fake_hold(f->target, false);
		tmf_answered(c, tmf, TMF_COMPLETE);
		pdu_expect_nothing(&other);
		assert_int_equal(pdu_test_unit_ready(&other), SCSI_GOOD);
		assert_int_equal(other.max_cmd_sn - other.exp_cmd_sn + 1, ISCSI_WINDOW);
	}
	pdu_client_done(&other);
}

/* More at once than there is room for, and a connection that goes while they wait. */
static void test_many_and_gone(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	uint8_t bhs[BHS_BYTES], tmf[BHS_BYTES];

	fixture_login(f, NULL, 0);
	fake_hold(f->target, true);
	read_start(c, bhs, 0);
	for (int i = 0; i < ISCSI_TMF_SLOTS; i++) {
		pdu_tmf(c, tmf, TMF_ABORT_TASK_SET, 0, 0);
		pdu_send(c, tmf, NULL, 0);
	}
	pdu_expect_nothing(c);
	pdu_tmf(c, tmf, TMF_ABORT_TASK_SET, 0, 0);
	pdu_send(c, tmf, NULL, 0);
	tmf_answered(c, tmf, TMF_REJECTED);
	pdu_client_close(c);
	assert_int_equal(f->server->session_count, 1); /* its task is still with the drive */
	assert_int_equal(fake_nexuses(f->target), 1);
	fake_hold(f->target, false);
	loop_turn(f->loop, false);
	assert_int_equal(f->server->session_count, 0);
	assert_int_equal(f->server->conn_count, 0);
	assert_int_equal(fake_nexuses(f->target), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    FIXTURE_TEST(test_abort_waiting_write), FIXTURE_TEST(test_abort_running),
	    FIXTURE_TEST(test_abort_unseen),	    FIXTURE_TEST(test_abort_held),
	    FIXTURE_TEST(test_task_sets),	    FIXTURE_TEST(test_data_awaited),
	    FIXTURE_TEST(test_data_never_comes),    FIXTURE_TEST(test_data_cut_off),
	    FIXTURE_TEST(test_warm_reset),	    FIXTURE_TEST(test_cold_reset),
	    FIXTURE_TEST(test_other_answers),	    FIXTURE_TEST(test_reset_across_sessions),
	    FIXTURE_TEST(test_many_and_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
