/* SPDX-License-Identifier: MIT
 *
 * Task management (RFC 7143 11.5, 11.6).  A function is answered when every task it affects has
 * ended, not before; aborted tasks send no status.
 *
 * A function on a task set waits for the data that the session was asked for, too (RFC 7143
 * 4.2.3.3, 11.5.1); ABORT TASK does not.  Many initiators never send it, so this has a limit:
 * after ISCSI_DRAIN_NS the transfer tags are dropped, and what still comes for them is drained
 * quietly.  A target cold reset is answered, and then the sessions of the target are dropped.
 */
#include <errno.h>

#include "target/iscsi/conn.h"

static void tmf_answer(struct iscsi_conn *conn, const uint8_t *request, uint8_t response)
{
	struct iscsi_tx_item *item = iscsi_conn_item(conn);

	if (!item)
		return;
	item->bhs[BHS_OPCODE] = OP_TASK_MANAGEMENT_RESPONSE;
	item->bhs[BHS_FLAGS] = FLAG_FINAL;
	item->bhs[BHS_RESPONSE] = response;
	put_be32(item->bhs + BHS_ITT, bhs_itt(request));
	iscsi_conn_push(conn, item, true);
}

static void drain_over(void *arg)
{
	struct iscsi_tmf *tmf = arg;
	struct iscsi_session *session = tmf->session;
	uint16_t bit = (uint16_t)(1U << (tmf - session->tmf));
	struct iscsi_command *command = TAILQ_FIRST(&session->commands);

	while (command) {
		if (command->tmf_waiters & bit)
			command->drains = false;
		if (command->state == COMMAND_DRAIN && !command->drains) {
			iscsi_command_finish(command); /* may take others along */
			command = TAILQ_FIRST(&session->commands);
		} else {
			command = TAILQ_NEXT(command, entry);
		}
	}
}

static struct iscsi_tmf *tmf_begin(struct iscsi_conn *conn, const uint8_t *bhs)
{
	struct iscsi_session *session = conn->session;

	for (unsigned i = 0; i < ISCSI_TMF_SLOTS; i++) {
		struct iscsi_tmf *tmf = &session->tmf[i];

		if (tmf->busy)
			continue;
		*tmf = (struct iscsi_tmf){
		    .session = session, .conn = conn, .pending = 1, .busy = true};
		memcpy(tmf->bhs, bhs, BHS_BYTES);
		loop_timer_init(&tmf->drain, drain_over, tmf);
		session->tmf_busy++;
		return tmf;
	}
	return NULL;
}

/* One less to wait for; the last one answers. */
static void tmf_done(struct iscsi_tmf *tmf)
{
	struct iscsi_session *session = tmf->session;
	struct iscsi_conn *conn = tmf->conn;

	assert(tmf->pending > 0);
	if (--tmf->pending > 0)
		return;
	loop_timer_cancel(session->server->loop, &tmf->drain);
	tmf->busy = false;
	session->tmf_busy--;
	if (conn)
		tmf_answer(conn, tmf->bhs, tmf->failed ? TMF_REJECTED : TMF_COMPLETE);
	if (tmf->drops)
		iscsi_target_drop_sessions(session->server, session->target);
	if (!conn)
		loop_task_queue(session->server->loop, &session->server->reap);
}

static void reset_finished(void *arg)
{
	tmf_done(arg);
}

void iscsi_tmf_task_ended(struct iscsi_command *command)
{
	uint16_t waiters = command->tmf_waiters;

	command->tmf_waiters = 0;
	for (unsigned i = 0; i < ISCSI_TMF_SLOTS; i++) {
		if (waiters & 1U << i)
			tmf_done(&command->session->tmf[i]);
	}
}

void iscsi_tmf_forget(struct iscsi_conn *conn)
{
	for (unsigned i = 0; i < ISCSI_TMF_SLOTS; i++) {
		if (conn->session->tmf[i].conn == conn)
			conn->session->tmf[i].conn = NULL;
	}
}

static void wait_for(struct iscsi_tmf *tmf, struct iscsi_command *command)
{
	command->tmf_waiters |= (uint16_t)(1U << (tmf - tmf->session->tmf));
	tmf->pending++;
}

static bool same_lun(const uint8_t *a, const uint8_t *b)
{
	return memcmp(a + BHS_LUN, b + BHS_LUN, 8) == 0;
}

/* TMF waits for the data that commands of its logical unit, or of all, have been promised. */
static void wait_for_data(struct iscsi_tmf *tmf, bool all)
{
	struct loop *loop = tmf->session->server->loop;
	struct iscsi_command *command;

	for (command = TAILQ_FIRST(&tmf->session->commands); command;
	     command = TAILQ_NEXT(command, entry)) {
		if (command->r2t_count == 0 || !(all || same_lun(command->bhs, tmf->bhs)))
			continue;
		command->drains = true;
		wait_for(tmf, command);
		loop_timer_set(loop, &tmf->drain, loop_now_ns(loop) + ISCSI_DRAIN_NS);
	}
}

/* It has come to nothing. */
static void wait_for_nothing(struct iscsi_tmf *tmf)
{
	uint16_t bit = (uint16_t)(1U << (tmf - tmf->session->tmf));
	struct iscsi_command *command;

	for (command = TAILQ_FIRST(&tmf->session->commands); command;
	     command = TAILQ_NEXT(command, entry)) {
		if (!(command->tmf_waiters & bit))
			continue;
		command->tmf_waiters &= (uint16_t)~bit;
		command->drains = command->tmf_waiters != 0;
		tmf->pending--;
	}
}

/* Commands of the LUN that were sent before the function but have not had their turn. */
static void cancel_held(struct iscsi_session *session, const uint8_t *bhs)
{
	struct iscsi_command *command;

	for (command = TAILQ_FIRST(&session->held); command; command = TAILQ_NEXT(command, entry)) {
		if (bhs_opcode(command->bhs) == OP_SCSI_COMMAND && same_lun(command->bhs, bhs) &&
		    serial_less(command->cmd_sn, bhs_cmd_sn(bhs)))
			command->cancelled = true;
	}
}

static void abort_task_set(struct iscsi_tmf *tmf)
{
	struct iscsi_session *session = tmf->session;
	struct iscsi_command *command, *next;

	uint16_t bit = (uint16_t)(1U << (tmf - session->tmf));

	cancel_held(session, tmf->bhs);
	wait_for_data(tmf, false);
	for (command = TAILQ_FIRST(&session->commands); command; command = next) {
		next = TAILQ_NEXT(command, entry);
		if (!same_lun(command->bhs, tmf->bhs))
			continue;
		if (!(command->tmf_waiters & bit))
			wait_for(tmf, command);
		iscsi_command_abort(command);
	}
}

/* The task has not come yet: its number counts as received, and it will never run. */
static bool abort_unseen(struct iscsi_conn *conn, const uint8_t *bhs)
{
	struct iscsi_session *session = conn->session;
	uint32_t cmd_sn = get_be32(bhs + BHS_REF_CMD_SN);
	struct iscsi_command *command;

	if (iscsi_window_place(&session->window, cmd_sn) == WINDOW_OUTSIDE ||
	    !serial_less(cmd_sn, bhs_cmd_sn(bhs)))
		return false;
	command = iscsi_command_new(conn, bhs);
	if (!command)
		return false;
	command->cmd_sn = cmd_sn;
	command->cancelled = true;
	if (!iscsi_session_hold(session, command)) {
		iscsi_command_finish(command);
		return false;
	}
	iscsi_session_run_held(session);
	return true;
}

static void abort_task(struct iscsi_conn *conn, const uint8_t *bhs)
{
	struct iscsi_command *command =
	    iscsi_session_find_command(conn->session, get_be32(bhs + BHS_REFERENCED_TAG));
	struct iscsi_tmf *tmf;

	if (!command || !same_lun(command->bhs, bhs)) {
		tmf_answer(conn, bhs,
			   !command && abort_unseen(conn, bhs) ? TMF_COMPLETE : TMF_NO_TASK);
		return;
	}
	if (command->state == COMMAND_HELD) {
		command->cancelled = true;
		tmf_answer(conn, bhs, TMF_COMPLETE);
		return;
	}
	tmf = tmf_begin(conn, bhs);
	if (!tmf) {
		tmf_answer(conn, bhs, TMF_REJECTED);
		return;
	}
	wait_for(tmf, command);
	iscsi_command_abort(command);
	tmf_done(tmf);
}

typedef int reset_fn(struct scsi_nexus *nexus, const uint8_t lun[8], loop_fn finished, void *arg);

/* 0, or what RESET says: -ENXIO: no such logical unit. */
static int reset_lun(struct iscsi_tmf *tmf, reset_fn *reset, const uint8_t lun[8])
{
	int r;

	tmf->pending++;
	r = reset(tmf->session->nexus, lun, reset_finished, tmf);
	if (r < 0)
		tmf->pending--;
	return r;
}

/* LOGICAL UNIT RESET and CLEAR TASK SET. */
static void lu_function(struct iscsi_conn *conn, struct iscsi_tmf *tmf, reset_fn *reset)
{
	int r;

	wait_for_data(tmf, false);
	r = reset_lun(tmf, reset, tmf->bhs + BHS_LUN);
	if (r < 0) {
		wait_for_nothing(tmf);
		tmf_answer(conn, tmf->bhs, r == -ENXIO ? TMF_NO_LUN : TMF_REJECTED);
		tmf->conn = NULL;
		return;
	}
	cancel_held(tmf->session, tmf->bhs);
}

static void target_reset(struct iscsi_tmf *tmf)
{
	uint8_t lun[8] = {0};

	wait_for_data(tmf, true);
	for (unsigned i = 0; i < SCSI_MAX_LUNS; i++) {
		int r;

		lun[1] = (uint8_t)i;
		r = reset_lun(tmf, scsi_reset_target_lu, lun);
		if (r < 0 && r != -ENXIO)
			tmf->failed = true;
	}
}

/* Functions that wait for tasks; true when FUNCTION is one. */
static bool tmf_wait(struct iscsi_conn *conn, const uint8_t *bhs, unsigned function)
{
	struct iscsi_tmf *tmf;

	if (function != TMF_ABORT_TASK_SET && function != TMF_CLEAR_TASK_SET &&
	    function != TMF_LU_RESET && function != TMF_TARGET_WARM_RESET &&
	    function != TMF_TARGET_COLD_RESET)
		return false;
	if (function == TMF_ABORT_TASK_SET &&
	    !scsi_nexus_has(conn->session->nexus, bhs + BHS_LUN)) {
		tmf_answer(conn, bhs, TMF_NO_LUN);
		return true;
	}
	tmf = tmf_begin(conn, bhs);
	if (!tmf) {
		tmf_answer(conn, bhs, TMF_REJECTED);
		return true;
	}
	switch (function) {
	case TMF_ABORT_TASK_SET:
		abort_task_set(tmf);
		break;
	case TMF_CLEAR_TASK_SET:
		lu_function(conn, tmf, scsi_clear_task_set);
		break;
	case TMF_LU_RESET:
		lu_function(conn, tmf, scsi_reset_lu);
		break;
	default:
		tmf->drops = function == TMF_TARGET_COLD_RESET;
		target_reset(tmf);
		break;
	}
	tmf_done(tmf);
	return true;
}

static const char *function_name(unsigned function)
{
	static const char *const names[] = {
	    [TMF_ABORT_TASK] = "ABORT TASK",
	    [TMF_ABORT_TASK_SET] = "ABORT TASK SET",
	    [TMF_CLEAR_TASK_SET] = "CLEAR TASK SET",
	    [TMF_LU_RESET] = "LOGICAL UNIT RESET",
	    [TMF_TARGET_WARM_RESET] = "TARGET WARM RESET",
	    [TMF_TARGET_COLD_RESET] = "TARGET COLD RESET",
	    [TMF_TASK_REASSIGN] = "TASK REASSIGN",
	};
	const char *name = function < ARRAY_SIZE(names) ? names[function] : NULL;

	return name ? name : "a function that is unknown";
}

void iscsi_tmf_request(struct iscsi_conn *conn, const uint8_t *bhs)
{
	unsigned function = bhs[BHS_FLAGS] & 0x7f;

	iscsi_witness_note(conn, SIGHT_TASK_MANAGEMENT, "%s", function_name(function));
	if (tmf_wait(conn, bhs, function))
		return;
	if (function == TMF_ABORT_TASK)
		abort_task(conn, bhs);
	else if (function == TMF_TASK_REASSIGN)
		tmf_answer(conn, bhs, TMF_NO_REASSIGN);
	else
		tmf_answer(conn, bhs, TMF_NOT_SUPPORTED);
}
