/* SPDX-License-Identifier: MIT
 *
 * Faults that other targets had in task management, reinstatement and logout (see
 * test_prior_login.c).
 */
#include "tests/iscsi/real_fixture.h"

enum { PIECE = 8192, WRITE_BYTES = 65536 };

static const uint8_t read_slow[16] = {0x28, 0, 0, 0, 0, 0, 0, 0, 8};

static uint32_t slow_read_send(struct pdu_client *c)
{
	uint8_t bhs[BHS_BYTES];

	real_command(c, bhs, REAL_LUN_SLOW, FLAG_FINAL | FLAG_READ, read_slow, 10, 4096, NULL, 0);
	return bhs_itt(bhs);
}

/* A write of 64 KiB that has been asked for its data; the R2T. */
static struct pdu write_asked(struct pdu_client *c, unsigned lun, uint32_t *ret_itt,
			      uint32_t *ret_cmd_sn)
{
	uint8_t bhs[BHS_BYTES];

	real_command(c, bhs, lun, FLAG_FINAL | FLAG_WRITE,
		     (const uint8_t[]){0x2a, 0, 0, 0, 0, 0, 0, 0, 128, 0}, 10, WRITE_BYTES, NULL,
		     0);
	*ret_itt = bhs_itt(bhs);
	*ret_cmd_sn = bhs_cmd_sn(bhs);
	return pdu_expect(c, OP_R2T);
}

static void pieces_send(const struct real_fixture *f, struct pdu_client *c, uint32_t itt,
			uint32_t ttt, unsigned from, unsigned to)
{
	uint8_t bhs[BHS_BYTES];

	for (unsigned i = from; i < to; i++) {
		pdu_data_out(bhs, itt, ttt, i, i * PIECE, (i + 1) * PIECE == WRITE_BYTES);
		pdu_send(c, bhs, f->pattern + i * PIECE, PIECE);
	}
}

static void tmf_send(struct pdu_client *c, unsigned lun, unsigned function, uint32_t itt,
		     uint32_t ref_cmd_sn)
{
	uint8_t bhs[BHS_BYTES];

	pdu_tmf(c, bhs, function, itt, ref_cmd_sn);
	bhs[BHS_LUN + 1] = (uint8_t)lun;
	pdu_send(c, bhs, NULL, 0);
}

static uint8_t tmf_answer(struct pdu_client *c)
{
	return pdu_expect(c, OP_TASK_MANAGEMENT_RESPONSE).bhs[BHS_RESPONSE];
}

static const unsigned task_functions[] = {TMF_ABORT_TASK, TMF_ABORT_TASK_SET, TMF_CLEAR_TASK_SET,
					  TMF_LU_RESET, TMF_TARGET_WARM_RESET};

/* ---- 50 ---- */

static void bug_50_abort_of_a_write_that_waits_for_data(void **state)
{
	/* How much of the data has gone out before the function. */
	static const unsigned sent[] = {0, 1, 4, WRITE_BYTES / PIECE - 1};
	struct real_fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(sent) * ARRAY_SIZE(task_functions) * 2; i++) {
		unsigned before = sent[i % ARRAY_SIZE(sent)];
		unsigned function = task_functions[i / 2 / ARRAY_SIZE(sent)];
		bool half_a_piece = i / ARRAY_SIZE(sent) % 2;
		struct pdu_client *c = real_login(
		    f, 0, PDU_KEYS("InitialR2T=Yes\0ImmediateData=No\0MaxBurstLength=65536"));
		uint32_t itt, ttt, cmd_sn;
		uint8_t bhs[BHS_BYTES];

		ttt = bhs_ttt(write_asked(c, 0, &itt, &cmd_sn).bhs);
		pieces_send(f, c, itt, ttt, 0, before);
		if (half_a_piece) { /* the function comes on a connection that is within a PDU */
			pdu_data_out(bhs, itt, ttt, before, before * PIECE, false);
			pdu_send(c, bhs, f->pattern + before * PIECE, PIECE / 2);
			pdu_client_push(c);
		}
		tmf_send(c, 0, function, itt, cmd_sn);
		if (function != TMF_ABORT_TASK) { /* waits for the data, for a while */
			pdu_expect_nothing(c);
			if (half_a_piece)
				pieces_send(f, c, itt, ttt, before, WRITE_BYTES / PIECE);
			else
				real_target_pass(&f->target, ISCSI_DRAIN_NS);
		}
		assert_int_equal(tmf_answer(c), TMF_COMPLETE);
		assert_int_equal(c->conn->command_count, 0);
		/* Late data is drained, and nothing is said about the task any more. */
		pieces_send(f, c, itt, ttt, before, WRITE_BYTES / PIECE);
		pdu_expect_nothing(c);
		real_settle_attentions(f, c, 0);
		assert_int_equal(real_read(f, c, 0, 0, 1)[3], 0);
		real_write(f, c, 0, 200, 128, f->pattern);
		assert_memory_equal(real_read(f, c, 0, 200, 128), f->pattern, WRITE_BYTES);
		pdu_client_close(c);
	}
}

/* Its tag may be used again at once. */
static void bug_50_tag_of_an_aborted_write_used_again(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c =
	    real_login(f, 0, PDU_KEYS("InitialR2T=Yes\0ImmediateData=No\0MaxBurstLength=65536"));
	uint32_t itt, ttt, cmd_sn;

	for (unsigned i = 0; i < 300; i++) {
		ttt = bhs_ttt(write_asked(c, 0, &itt, &cmd_sn).bhs);
		tmf_send(c, 0, TMF_ABORT_TASK, itt, cmd_sn);
		assert_int_equal(tmf_answer(c), TMF_COMPLETE);
		pieces_send(f, c, itt, ttt, 0, 2);
		c->itt = itt;
	}
	pdu_expect_nothing(c);
	real_alive(f, c);
}

/* ---- 51 ---- */

static void bug_51_abort_of_a_task_that_has_been_answered(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, NULL, 0);

	for (unsigned i = 0; i < 200; i++) {
		uint8_t bhs[BHS_BYTES];
		bool unread = i % 2; /* the answer is still in the target's queue */

		real_command(c, bhs, 0, FLAG_FINAL | FLAG_READ, read_slow, 10, 4096, NULL, 0);
		if (unread)
			pdu_client_push(c);
		else
			assert_int_equal(real_finish(f, c, bhs_itt(bhs)).status, SCSI_GOOD);
		tmf_send(c, 0, TMF_ABORT_TASK, bhs_itt(bhs), bhs_cmd_sn(bhs));
		if (unread)
			assert_int_equal(real_finish(f, c, bhs_itt(bhs)).status, SCSI_GOOD);
		assert_in_range(tmf_answer(c), TMF_COMPLETE, TMF_NO_TASK);
	}
	real_alive(f, c);
}

/* ---- 53 ---- */

static void bug_53_resets_wait_for_tasks_in_the_drives(void **state)
{
	struct real_fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(task_functions); i++) {
		struct pdu_client *c = real_login(f, 0, NULL, 0),
				  *other = real_login(f, 1, NULL, 0);
		bool reset = task_functions[i] >= TMF_LU_RESET;
		uint32_t itt = 0, of_other;

		for (unsigned n = 0; n < 8; n++)
			itt = slow_read_send(c);
		of_other = slow_read_send(other);
		pdu_client_pump(other);
		tmf_send(c, REAL_LUN_SLOW, task_functions[i], itt, c->cmd_sn - 1);
		pdu_expect_nothing(c); /* not before the drives have let go */
		real_target_pass(&f->target, NS_PER_US);
		pdu_expect_nothing(c);
		real_target_pass(&f->target, NS_PER_S);
		if (task_functions[i] == TMF_ABORT_TASK) {
			/* The others are not affected. */
			for (unsigned n = 0; n < 7; n++)
				assert_int_equal(bhs_opcode(pdu_expect(c, OP_DATA_IN).bhs),
						 OP_DATA_IN);
		}
		assert_int_equal(tmf_answer(c), TMF_COMPLETE);
		pdu_expect_nothing(c);
		assert_int_equal(c->conn->command_count, 0);
		/* Another nexus' tasks go with a reset of the unit, unanswered, and with nothing
		 * less. */
		if (!reset && task_functions[i] != TMF_CLEAR_TASK_SET)
			assert_int_equal(real_finish(f, other, of_other).status, SCSI_GOOD);
		else
			pdu_expect_nothing(other);
		real_settle_attentions(f, c, 0);
		real_settle_attentions(f, other, 0);
		pdu_client_close(c);
		pdu_client_close(other);
	}
}

/* A cold reset also ends every session of the target, when all tasks have ended. */
static void bug_53_cold_reset_waits_and_drops_all_sessions(void **state)
{
	struct real_fixture *f = *state;

	for (unsigned round = 0; round < 8; round++) {
		struct pdu_client *c =
		    real_login(f, 0, PDU_KEYS("InitialR2T=Yes\0ImmediateData=No"));
		struct pdu_client *other = real_login(f, 1, NULL, 0);
		uint32_t itt, cmd_sn;
		struct pdu pdu;

		write_asked(c, 0, &itt, &cmd_sn);
		for (unsigned n = 0; n < round % 4; n++) {
			slow_read_send(c);
			slow_read_send(other);
		}
		pdu_client_pump(other);
		tmf_send(c, 0, TMF_TARGET_COLD_RESET, 0, 0);
		if (round % 4 > 0)
			pdu_expect_nothing(c);
		real_target_pass(&f->target, NS_PER_S);
		while (pdu_receive(c, &pdu)) /* an answer, a word of farewell, and no status */
			assert_int_not_equal(bhs_opcode(pdu.bhs), OP_SCSI_RESPONSE);
		while (pdu_receive(other, &pdu))
			assert_int_not_equal(bhs_opcode(pdu.bhs), OP_SCSI_RESPONSE);
		real_target_pass(&f->target, 20 * NS_PER_S);
		pdu_client_pump(c);
		pdu_client_pump(other);
		assert_true(c->closed);
		assert_true(other->closed);
		assert_int_equal(f->target.server->session_count, 0);
	}
	real_alive(f, real_login(f, 0, NULL, 0));
}

/* ---- 54 ---- */

static void bug_54_abort_storm(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, NULL, 0);
	uint32_t itt = slow_read_send(c);

	for (unsigned i = 0; i < 1000; i++) {
		/* Tags there never were, or on another unit than the task's. */
		if (i % 4 == 0)
			tmf_send(c, REAL_LUN_FAST, TMF_ABORT_TASK, itt, c->cmd_sn - 1);
		else
			tmf_send(c, REAL_LUN_SLOW, TMF_ABORT_TASK, 0x40000000 + i,
				 c->cmd_sn - 1 - i % 3);
		assert_int_equal(tmf_answer(c), TMF_NO_TASK);
		if (i % 100 == 0)
			real_target_pass(&f->target, NS_PER_US);
	}
	assert_int_equal(real_finish(f, c, itt).status, SCSI_GOOD); /* once */
	for (unsigned i = 0; i < 100; i++) {
		tmf_send(c, REAL_LUN_SLOW, TMF_ABORT_TASK, itt, c->cmd_sn - 1);
		assert_int_equal(tmf_answer(c), TMF_NO_TASK);
	}
	pdu_expect_nothing(c);
	real_alive(f, c);
}

/* More functions that wait than there are places for. */
static void bug_54_many_functions_wait_at_once(void **state)
{
	enum { COUNT = 64 };
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, NULL, 0);
	unsigned complete = 0;

	for (unsigned i = 0; i < COUNT; i++)
		slow_read_send(c);
	for (unsigned i = 0; i < COUNT; i++)
		tmf_send(c, REAL_LUN_SLOW, task_functions[1 + i % 4], 0, 0);
	pdu_client_pump(c);
	real_target_pass(&f->target, NS_PER_S);
	for (unsigned i = 0; i < COUNT; i++) {
		uint8_t response = tmf_answer(c);

		assert_true(response == TMF_COMPLETE || response == TMF_REJECTED);
		complete += response == TMF_COMPLETE;
	}
	assert_true(complete > 0);
	pdu_expect_nothing(c);
	real_settle_attentions(f, c, 0);
}

/* ---- 57 ---- */

/* What is under way when the session is taken over. */
static void load_begin(struct real_fixture *f, struct pdu_client *c, unsigned kind)
{
	uint32_t itt, cmd_sn, ttt;

	for (unsigned i = 0; i < 8; i++) {
		if (kind & 1)
			slow_read_send(c);
		if (kind & 2) {
			ttt = bhs_ttt(write_asked(c, i % 2, &itt, &cmd_sn).bhs);
			pieces_send(f, c, itt, ttt, 0, i % 3);
		}
		if (kind & 4)
			real_command(c, (uint8_t[BHS_BYTES]){0}, 0, FLAG_FINAL | FLAG_READ,
				     read_slow, 10, 4096, NULL, 0);
	}
	if (kind & 8)
		tmf_send(c, REAL_LUN_SLOW, TMF_LU_RESET, 0, 0);
	if (!(kind & 1)) /* else its answers would be mixed with the R2Ts */
		pdu_client_push(c);
	pdu_client_push(c);
}

static void bug_57_session_reinstatement_with_writes_in_flight(void **state)
{
	static const unsigned kinds[] = {0, 1, 2, 4, 8, 1 | 8, 2 | 8, 4 | 1, 4 | 8};
	struct real_fixture *f = *state;
	struct pdu_client *old = &f->client[0], *new = &f->client[1];

	memcpy(new->isid, old->isid, sizeof old->isid);
	for (size_t i = 0; i < ARRAY_SIZE(kinds) * 4; i++) {
		old = real_login_only(
		    f, 0, PDU_KEYS("InitialR2T=Yes\0ImmediateData=No\0MaxBurstLength=65536"));
		for (unsigned lun = 0; lun < REAL_LUN_COUNT; lun++)
			real_settle_attentions(f, old, lun);
		load_begin(f, old, kinds[i / 4]);
		pdu_client_open(new, f->target.portal);
		new->tsih = 0;
		new->exp_stat_sn = new->exp_cmd_sn = new->max_cmd_sn = 0;
		pdu_login_step(new, 0x81,
			       PDU_KEYS("InitiatorName=iqn.2026-11.test.sanlab:client\0"
					"TargetName=" REAL_TARGET_NAME));
		assert_false(old->closed); /* not before the login is complete */
		pdu_login_send(new, 0x87, NULL, 0);
		pdu_client_push(new);
		assert_true(old->closed);
		if (i % 4 == 3) { /* the new one goes away as well while it waits */
			pdu_client_close(new);
			real_target_pass(&f->target, NS_PER_S);
			assert_int_equal(f->target.server->session_count, 0);
			continue;
		}
		real_target_pass(&f->target, NS_PER_S);
		assert_int_equal(pdu_expect(new, OP_LOGIN_RESPONSE).bhs[BHS_STATUS_CLASS], 0);
		assert_int_equal(f->target.server->session_count, 1);
		assert_int_equal(f->target.server->conn_count, 1);
		assert_int_equal(real_attention(f, new, 0) >> 8, 0x0629);
		real_settle_attentions(f, new, 0);
		real_write(f, new, 0, 0, 8, f->pattern);
		pdu_client_close(new);
	}
}

/* ---- 58 ---- */

static void bug_58_logout_during_io(void **state)
{
	enum { WRITES = 32, ROUNDS = 24 };
	struct real_fixture *f = *state;

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct pdu_client *c =
		    real_login(f, 0,
			       PDU_KEYS("InitialR2T=No\0ImmediateData=Yes\0FirstBurstLength=4096\0"
					"MaxBurstLength=4096"));
		uint8_t bhs[BHS_BYTES];
		struct pdu pdu = {0};
		bool answered = false;

		for (unsigned i = 0; i < WRITES; i++) /* some complete, some wait for data */
			real_command(c, bhs, round % 3 ? REAL_LUN_SLOW : REAL_LUN_FAST,
				     FLAG_FINAL | FLAG_WRITE,
				     (const uint8_t[]){0x2a, 0, 0, 0, 0, 0, 0, 0, 8, 0}, 10, 4096,
				     f->pattern, i % (round % 4 + 1) ? 4096 : 512);
		pdu_begin(bhs, OP_LOGOUT | (round % 2 ? OP_IMMEDIATE : 0),
			  FLAG_FINAL | (round / 2 % 2 ? LOGOUT_CONNECTION : LOGOUT_SESSION));
		put_be32(bhs + BHS_ITT, 0x1060);
		put_be32(bhs + BHS_CMD_SN, c->cmd_sn);
		pdu_send(c, bhs, NULL, 0);
		for (unsigned turn = 0; turn < 100 && !answered; turn++) {
			while (!answered && pdu_receive(c, &pdu))
				answered = bhs_opcode(pdu.bhs) == OP_LOGOUT_RESPONSE;
			real_target_pass(&f->target, NS_PER_MS * 10);
		}
		assert_true(answered);
		assert_int_equal(pdu.bhs[BHS_RESPONSE], LOGOUT_CLOSED);
		pdu_expect_nothing(c);
		assert_true(c->closed);
		real_target_pass(&f->target, NS_PER_S);
		assert_int_equal(f->target.server->session_count, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    REAL_TEST(bug_50_abort_of_a_write_that_waits_for_data),
	    REAL_TEST(bug_50_tag_of_an_aborted_write_used_again),
	    REAL_TEST(bug_51_abort_of_a_task_that_has_been_answered),
	    REAL_TEST(bug_53_resets_wait_for_tasks_in_the_drives),
	    REAL_TEST(bug_53_cold_reset_waits_and_drops_all_sessions),
	    REAL_TEST(bug_54_abort_storm),
	    REAL_TEST(bug_54_many_functions_wait_at_once),
	    REAL_TEST(bug_57_session_reinstatement_with_writes_in_flight),
	    REAL_TEST(bug_58_logout_during_io),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
