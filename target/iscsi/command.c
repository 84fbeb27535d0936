/* SPDX-License-Identifier: MIT
 *
 * SCSI Command PDUs: checks, tasks, and every way a task can end.
 */
#include <stdlib.h>

#include "target/iscsi/conn.h"

enum { ASC_UNSOLICITED = 0x0c };

struct iscsi_command_slab {
	struct iscsi_command_slab *next;
	struct iscsi_command command[ISCSI_COMMANDS_PER_SLAB];
};

/* ---- memory ---- */

static bool slab_add(struct iscsi_server *server)
{
	/* Zeroed: scsi.h asks that of task memory before its first use. */
	struct iscsi_command_slab *slab = calloc(1, sizeof *slab);

	if (!slab)
		return false;
	slab->next = server->command_slabs;
	server->command_slabs = slab;
	for (unsigned i = ISCSI_COMMANDS_PER_SLAB; i-- > 0;)
		SLIST_INSERT_HEAD(&server->spare_commands, &slab->command[i], spare);
	return true;
}

void iscsi_command_clear_slabs(struct iscsi_server *server)
{
	while (server->command_slabs) {
		struct iscsi_command_slab *slab = server->command_slabs;

		server->command_slabs = slab->next;
		free(slab);
	}
	SLIST_INIT(&server->spare_commands);
}

struct iscsi_command *iscsi_command_new(struct iscsi_conn *conn, const uint8_t *bhs)
{
	struct iscsi_server *server = conn->server;
	struct iscsi_command *command;

	if (SLIST_EMPTY(&server->spare_commands) && !slab_add(server))
		return NULL;
	command = SLIST_FIRST(&server->spare_commands);
	SLIST_REMOVE_HEAD(&server->spare_commands, spare);
	memcpy(command->bhs, bhs, BHS_BYTES);
	command->session = conn->session;
	command->conn = conn;
	command->state = COMMAND_HELD;
	command->itt = bhs_itt(bhs);
	command->cmd_sn = bhs_cmd_sn(bhs);
	command->edtl_bytes = 0;
	command->immediate = bhs_immediate(bhs);
	command->is_read = command->is_write = false;
	command->hashed = command->occupies = command->cancelled = command->receiving = false;
	command->tmf_waiters = 0;
	command->drains = false;
	command->fail_asc = command->fail_ascq = command->fail_status = 0;
	command->answers_failure = false;
	command->buf = NULL;
	command->want_bytes = 0;
	command->unsolicited_open = false;
	command->unsolicited_bytes = command->unsolicited_sn = 0;
	command->r2t_offset = command->r2t_sn = 0;
	command->r2t_count = 0;
	command->promised_bytes = 0;
	conn->command_count++;
	return command;
}

void iscsi_command_finish(struct iscsi_command *command)
{
	struct iscsi_session *session = command->session;
	struct iscsi_conn *conn = command->conn;

	iscsi_conn_forget_command(conn, command);
	if (command->state == COMMAND_HELD) {
		/* Not in a list yet when it turned out to be a duplicate. */
		if (command->entry.tqe_prev)
			TAILQ_REMOVE(&session->held, command, entry);
	} else {
		scsi_task_release(&command->task);
		TAILQ_REMOVE(&session->commands, command, entry);
	}
	command->entry.tqe_prev = NULL;
	if (command->hashed)
		LIST_REMOVE(command, hash);
	if (command->occupies)
		iscsi_window_leave(&session->window);
	if (command->immediate && command->state != COMMAND_HELD)
		session->immediate_count--;
	conn->running_bytes -= command->promised_bytes;
	command->buf = buf_unref(command->buf);
	assert(conn->command_count > 0);
	conn->command_count--;
	SLIST_INSERT_HEAD(&session->server->spare_commands, command, spare);
	if (command->tmf_waiters)
		iscsi_tmf_task_ended(command);
	iscsi_conn_settle(conn);
}

/* ---- ends ---- */

static void set_failure(struct iscsi_command *command)
{
	struct scsi_task *task = &command->task;

	task->in_buf = buf_unref(task->in_buf);
	task->in_bytes = task->transfer_bytes = 0;
	task->sense_bytes = 0;
	task->status = command->fail_status;
	if (command->fail_status == 0)
		scsi_task_fault(task, command->fail_asc, command->fail_ascq);
}

static void task_done(struct scsi_task *task)
{
	struct iscsi_command *command = task->owner;

	if (command->answers_failure)
		set_failure(command);
	if (command->conn->state != CONN_DEAD && (!task->aborted || command->answers_failure)) {
		iscsi_respond(command);
		return;
	}
	iscsi_conn_wake(command->conn); /* it may have been paused for this task */
	if (command->drains && command->r2t_count > 0 && command->conn->state != CONN_DEAD)
		command->state = COMMAND_DRAIN;
	else
		iscsi_command_finish(command);
}

void iscsi_command_fail_now(struct iscsi_command *command)
{
	command->answers_failure = true;
	command->state = COMMAND_FAILING;
	command->r2t_count = 0;
	scsi_abort(&command->task);
}

void iscsi_command_fail(struct iscsi_command *command, uint8_t asc, uint8_t ascq)
{
	command->fail_asc = asc;
	command->fail_ascq = ascq;
	if (command->state == COMMAND_HELD || command->state == COMMAND_DRAIN)
		return; /* its turn has not come: see iscsi_command_release; or has passed */
	if (!command->unsolicited_open) {
		iscsi_command_fail_now(command);
		return;
	}
	command->state = COMMAND_FAILING;
}

void iscsi_command_abort(struct iscsi_command *command)
{
	switch (command->state) {
	case COMMAND_HELD:
	case COMMAND_ENDED:
		iscsi_command_finish(command);
		break;
	case COMMAND_READY:
	case COMMAND_COLLECT:
	case COMMAND_RUN:
	case COMMAND_FAILING:
		command->state = COMMAND_ABORTING;
		command->answers_failure = false;
		scsi_abort(&command->task);
		break;
	case COMMAND_ABORTING:
		break;
	case COMMAND_DRAIN:
		if (command->conn->state == CONN_DEAD)
			iscsi_command_finish(command);
		break;
	}
}

void iscsi_command_run(struct iscsi_command *command)
{
	struct scsi_task *task = &command->task;

	command->state = COMMAND_RUN;
	if (command->want_bytes > 0) {
		command->iov = (struct iovec){command->buf->data, command->want_bytes};
		task->out_iov = &command->iov;
		task->out_iov_count = 1;
	}
	task->out_got_bytes = command->want_bytes;
	/* Reads that wait for older tasks count for nothing: the data of those may be behind. */
	if (command->is_read && !scsi_must_wait(task)) {
		command->promised_bytes = MIN_OF(command->edtl_bytes, 4 * (uint32_t)MIB);
		command->conn->running_bytes += command->promised_bytes;
	}
	scsi_execute(task);
}

/* ---- beginnings ---- */

/* Reads the additional header segments; the CDB beyond 16 bytes goes to CDB.  False: malformed. */
static bool ahs_parse(const uint8_t *ahs, uint32_t ahs_bytes, uint8_t *cdb)
{
	while (ahs_bytes > 0) {
		uint32_t length, whole;

		if (ahs_bytes < 4)
			return false;
		length = get_be16(ahs); /* without the length and type fields and the padding */
		whole = (length + 3 + 3) & ~UINT32_C(3);
		if (length == 0 || whole > ahs_bytes)
			return false;
		if (ahs[2] == AHS_EXTENDED_CDB) {
			/* One reserved byte, then the CDB from its byte 16 on. */
			if (length - 1 > SCSI_MAX_CDB_BYTES - 16)
				return false;
			memcpy(cdb + 16, ahs + 4, length - 1);
		} else if (ahs[2] == AHS_BIDIRECTIONAL_LENGTH) {
			return false; /* of a command that is not bidirectional */
		}
		ahs += whole;
		ahs_bytes -= whole;
	}
	return true;
}

/* What makes the PDU itself wrong; 0: nothing. */
static uint8_t command_check(const struct iscsi_conn *conn, const uint8_t *bhs)
{
	struct iscsi_session *session = conn->session;
	uint32_t itt = bhs_itt(bhs);

	if (itt == ISCSI_NO_TAG)
		return REJECT_INVALID_FIELD;
	if (iscsi_session_find_command(session, itt))
		return REJECT_TASK_IN_PROGRESS;
	if (bhs_immediate(bhs) && session->immediate_count >= ISCSI_MAX_IMMEDIATE)
		return REJECT_TOO_MANY_IMMEDIATE;
	if ((bhs[BHS_FLAGS] & FLAG_READ) && (bhs[BHS_FLAGS] & FLAG_WRITE))
		return REJECT_NOT_SUPPORTED; /* no bidirectional command is implemented */
	return 0;
}

/* Room for NEW_BYTES of data-out; what has been collected while held moves along. */
static bool buf_ensure(struct iscsi_command *command, uint32_t bytes)
{
	struct buf *buf;

	if (bytes == 0 || (command->buf && command->buf->size_bytes >= bytes))
		return true;
	buf = buf_new(command->session->server->pool, bytes);
	if (!buf)
		return false;
	if (command->buf)
		memcpy(buf->data, command->buf->data,
		       MIN_OF(command->unsolicited_bytes, command->want_bytes));
	buf_unref(command->buf);
	command->buf = buf;
	return true;
}

/* To the SCSI layer; sets the state. */
static void command_prepare(struct iscsi_command *command)
{
	struct iscsi_session *session = command->session;
	struct scsi_task *task = &command->task;
	uint32_t want_bytes;

	task->nexus = session->nexus;
	memcpy(task->lun, command->bhs + BHS_LUN, sizeof task->lun);
	memcpy(task->cdb, command->bhs + BHS_CDB, 16);
	task->edtl_bytes = command->edtl_bytes;
	task->attribute = command->bhs[BHS_FLAGS] & FLAG_ATTRIBUTE;
	task->done = task_done;
	task->owner = command;
	TAILQ_INSERT_TAIL(&session->commands, command, entry);
	if (command->immediate)
		session->immediate_count++;
	switch (scsi_prepare(task)) {
	case SCSI_ENDED:
		command->state = COMMAND_ENDED;
		return;
	case SCSI_READY:
		command->state = COMMAND_READY;
		command->want_bytes = 0;
		return;
	case SCSI_NEEDS_DATA:
		command->state = COMMAND_COLLECT;
		break;
	}
	want_bytes = command->is_write ? MIN_OF(task->out_bytes, command->edtl_bytes) : 0;
	if (!buf_ensure(command, want_bytes)) {
		command->fail_status = SCSI_BUSY;
		want_bytes = 0;
	}
	command->want_bytes = want_bytes;
}

/* The header and immediate data of a prepared command are complete. */
static void command_start(struct iscsi_command *command)
{
	switch (command->state) {
	case COMMAND_ENDED:
		iscsi_respond(command);
		break;
	case COMMAND_READY:
		iscsi_command_run(command);
		break;
	case COMMAND_COLLECT:
		if (command->fail_asc || command->fail_status)
			iscsi_command_fail(command, command->fail_asc, command->fail_ascq);
		else
			iscsi_dataout_progress(command);
		break;
	default:
		break;
	}
}

/* A command that comes before its turn keeps its unsolicited data until then. */
static bool command_hold(struct iscsi_command *command)
{
	struct iscsi_session *session = command->session;

	command->want_bytes = MIN_OF(command->edtl_bytes, session->params.first_burst_bytes);
	if (!iscsi_session_hold(session, command))
		return false;
	if (command->is_write && !buf_ensure(command, command->want_bytes)) {
		command->fail_status = SCSI_BUSY;
		command->want_bytes = 0;
	}
	return true;
}

void iscsi_command_begin(struct iscsi_conn *conn, const uint8_t *bhs, const uint8_t *ahs,
			 uint32_t ahs_bytes)
{
	struct iscsi_rx *rx = &conn->rx;
	uint32_t data_bytes = bhs_data_bytes(bhs);
	enum iscsi_window_place place = WINDOW_NEXT;
	struct iscsi_command *command;

	if (!bhs_immediate(bhs))
		place = iscsi_window_place(&conn->session->window, bhs_cmd_sn(bhs));
	if (place == WINDOW_OUTSIDE)
		return;
	rx->action = RX_REJECT;
	rx->reject_reason = command_check(conn, bhs);
	if (rx->reject_reason)
		return;
	rx->reject_reason = REJECT_OUT_OF_RESOURCES;
	command = iscsi_command_new(conn, bhs);
	if (!command)
		return;
	memset(command->task.cdb, 0, sizeof command->task.cdb);
	if (!ahs_parse(ahs, ahs_bytes, command->task.cdb)) {
		rx->reject_reason = REJECT_INVALID_FIELD;
		iscsi_command_finish(command);
		return;
	}
	command->is_read = bhs[BHS_FLAGS] & FLAG_READ;
	command->is_write = bhs[BHS_FLAGS] & FLAG_WRITE;
	command->edtl_bytes = get_be32(bhs + BHS_EDTL);
	command->fail_ascq = iscsi_unsolicited_check(command, data_bytes);
	if (command->fail_ascq)
		command->fail_asc = ASC_UNSOLICITED;
	iscsi_session_hash(conn->session, command);
	rx->action = RX_COMMAND;
	if (place == WINDOW_AHEAD) {
		if (!command_hold(command)) {
			rx->action = RX_DROP;
			iscsi_command_finish(command);
			return;
		}
		command->receiving = true;
	} else {
		command_prepare(command);
	}
	rx->command = command;
	if (command->is_write && command->buf && !command->fail_asc) {
		rx->to = command->buf->data;
		rx->to_bytes = MIN_OF(data_bytes, command->want_bytes);
	}
}

void iscsi_command_end(struct iscsi_conn *conn, bool good)
{
	struct iscsi_command *command = conn->rx.command;
	const uint8_t *bhs = conn->rx.bhs;

	conn->rx.command = NULL;
	if (!good) {
		/* As if it had not come: its CmdSN is not taken (RFC 7143 11.17). */
		iscsi_conn_reject(conn, bhs, REJECT_DATA_DIGEST);
		if (command)
			iscsi_command_abort(command);
		return;
	}
	if (command) {
		command->unsolicited_bytes = bhs_data_bytes(bhs);
		command->unsolicited_open = command->is_write && !bhs_final(bhs);
		command->receiving = false;
		if (command->state == COMMAND_HELD) {
			/* Another connection may have filled the gap meanwhile. */
			iscsi_session_run_held(conn->session);
			return;
		}
	}
	if (!bhs_immediate(bhs)) {
		if (iscsi_window_place(&conn->session->window, bhs_cmd_sn(bhs)) != WINDOW_NEXT) {
			/* The same number came by another connection, and was faster. */
			if (command)
				iscsi_command_abort(command);
			return;
		}
		/* COMMAND is gone when a reset took it between header and end. */
		iscsi_window_advance(&conn->session->window, command != NULL);
		if (command)
			command->occupies = true;
	}
	if (command)
		command_start(command);
	iscsi_session_run_held(conn->session);
}

void iscsi_command_release(struct iscsi_command *command)
{
	struct iscsi_session *session = command->session;

	TAILQ_REMOVE(&session->held, command, entry);
	command->entry.tqe_prev = NULL;
	iscsi_window_advance(&session->window, true);
	command->occupies = true;
	command_prepare(command);
	command_start(command);
}
