/* SPDX-License-Identifier: MIT
 *
 * Commands of a path on its session: sent as PDUs within the target's window, their data, and the
 * answers.
 */
#include <assert.h>
#include <string.h>

#include "harness/sim/sim_impl.h"
#include "target/scsi/scsi.h"

struct sim_command *sim_command_new(struct sim_path *path)
{
	struct sim_command *command = TAILQ_FIRST(&path->free);

	if (!command)
		return NULL;
	TAILQ_REMOVE(&path->free, command, entry);
	TAILQ_INSERT_TAIL(&path->active, command, entry);
	command->busy = true;
	memset(command->cdb, 0, sizeof command->cdb);
	command->pio = NULL;
	command->raw = NULL;
	command->in_bytes = command->out_bytes = 0;
	command->iov = NULL;
	command->iov_count = 0;
	command->waiting = false;
	command->submit_ns = loop_now_ns(path->path.loop);
	return command;
}

void sim_command_free(struct sim_path *path, struct sim_command *command)
{
	path->waiting -= command->waiting;
	command->busy = false;
	TAILQ_REMOVE(&path->active, command, entry);
	TAILQ_INSERT_TAIL(&path->free, command, entry);
}

static void put_on_wire(struct sim_path *path, struct sim_command *command)
{
	struct sim_conn *conn = &path->conn;
	uint8_t bhs[BHS_BYTES];
	uint32_t immediate = 0;
	unsigned flags = FLAG_FINAL | SCSI_SIMPLE;

	if (command->in_bytes > 0)
		flags |= FLAG_READ;
	if (command->out_bytes > 0)
		flags |= FLAG_WRITE;
	if (conn->immediate_data)
		immediate = MIN_OF(command->out_bytes,
				   MIN_OF(conn->first_burst_bytes, conn->max_send_bytes));
	sim_bhs_begin(bhs, OP_SCSI_COMMAND, flags);
	memcpy(bhs + BHS_LUN, path->lun, sizeof path->lun);
	put_be32(bhs + BHS_ITT, command->index);
	put_be32(bhs + BHS_EDTL, command->in_bytes + command->out_bytes);
	command->cmd_sn = conn->cmd_sn++;
	put_be32(bhs + BHS_CMD_SN, command->cmd_sn);
	memcpy(bhs + BHS_CDB, command->cdb, sizeof command->cdb);
	sim_conn_send(conn, bhs, command->iov, command->iov_count, 0, immediate);
}

void sim_command_send(struct sim_path *path, struct sim_command *command)
{
	if (path->waiting == 0 && sim_conn_window_open(&path->conn)) {
		put_on_wire(path, command);
		return;
	}
	command->waiting = true;
	path->waiting++;
}

static void send_waiting(struct sim_path *path)
{
	struct sim_command *command;

	for (command = TAILQ_FIRST(&path->active);
	     command && path->waiting > 0 && sim_conn_window_open(&path->conn);
	     command = TAILQ_NEXT(command, entry)) {
		if (!command->waiting)
			continue;
		command->waiting = false;
		path->waiting--;
		put_on_wire(path, command);
	}
}

/* Answers at once, whatever the window. */
void sim_ping(struct sim_path *path)
{
	uint8_t bhs[BHS_BYTES];

	sim_bhs_begin(bhs, OP_NOP_OUT | OP_IMMEDIATE, FLAG_FINAL);
	put_be32(bhs + BHS_ITT, SIM_TAG_PING);
	put_be32(bhs + BHS_TTT, ISCSI_NO_TAG);
	put_be32(bhs + BHS_CMD_SN, path->conn.cmd_sn);
	sim_conn_send(&path->conn, bhs, NULL, 0, 0, 0);
}

static void pong(struct sim_path *path, const uint8_t *ping)
{
	uint8_t bhs[BHS_BYTES];

	if (bhs_ttt(ping) == ISCSI_NO_TAG)
		return;
	sim_bhs_begin(bhs, OP_NOP_OUT | OP_IMMEDIATE, FLAG_FINAL);
	memcpy(bhs + BHS_LUN, ping + BHS_LUN, 8);
	put_be32(bhs + BHS_ITT, ISCSI_NO_TAG);
	put_be32(bhs + BHS_TTT, bhs_ttt(ping));
	put_be32(bhs + BHS_CMD_SN, path->conn.cmd_sn);
	sim_conn_send(&path->conn, bhs, NULL, 0, 0, 0);
}

/* ---- answers ---- */

/* Loses the path and returns NULL when BHS is about no command of ours. */
static struct sim_command *command_of(struct sim_path *path, const uint8_t *bhs)
{
	uint32_t tag = bhs_itt(bhs);
	uint32_t count = path->path.config.max_in_flight + SIM_OTHER_COMMANDS;

	if (tag < count && path->commands[tag].busy && !path->commands[tag].waiting)
		return &path->commands[tag];
	sim_path_lose(path, PATH_DETECT_PROTOCOL, "protocol error: an answer to no command");
	return NULL;
}

static void on_data_in(void *arg, const uint8_t *bhs, uint32_t at, const uint8_t *data,
		       uint32_t bytes)
{
	struct sim_path *path = arg;
	const struct sim_command *command = command_of(path, bhs);
	uint64_t offset = (uint64_t)get_be32(bhs + BHS_OFFSET) + at;

	if (!command)
		return;
	if (offset + bytes > command->in_bytes) {
		sim_path_lose(path, PATH_DETECT_PROTOCOL, "protocol error: more data than asked");
		return;
	}
	iov_from_mem(command->iov, command->iov_count, offset, data, bytes);
}

static void ready_to_transfer(struct sim_path *path, const uint8_t *r2t)
{
	const struct sim_command *command = command_of(path, r2t);
	uint32_t at = get_be32(r2t + BHS_OFFSET), left = get_be32(r2t + BHS_DESIRED_BYTES);
	uint32_t number = 0;

	if (!command)
		return;
	if ((uint64_t)at + left > command->out_bytes || left == 0) {
		sim_path_lose(path, PATH_DETECT_PROTOCOL, "protocol error: a wrong R2T");
		return;
	}
	while (left > 0) {
		uint32_t bytes = MIN_OF(left, path->conn.max_send_bytes);
		uint8_t bhs[BHS_BYTES];

		sim_bhs_begin(bhs, OP_DATA_OUT, bytes == left ? FLAG_FINAL : 0);
		memcpy(bhs + BHS_LUN, path->lun, sizeof path->lun);
		put_be32(bhs + BHS_ITT, command->index);
		put_be32(bhs + BHS_TTT, bhs_ttt(r2t));
		put_be32(bhs + BHS_DATA_SN, number++);
		put_be32(bhs + BHS_OFFSET, at);
		sim_conn_send(&path->conn, bhs, command->iov, command->iov_count, at, bytes);
		at += bytes;
		left -= bytes;
	}
}

static void command_ended(struct sim_path *path, const uint8_t *bhs, const uint8_t *data,
			  uint32_t bytes)
{
	struct sim_command *command = command_of(path, bhs);
	uint8_t sense[SIM_SENSE_BYTES] = {0};
	struct sim_answer answer = {.status = bhs[BHS_STATUS], .sense = sense};

	if (!command)
		return;
	if (bhs_opcode(bhs) == OP_SCSI_RESPONSE) {
		if (bhs[BHS_RESPONSE] != 0) {
			sim_path_lose(path, PATH_DETECT_PROTOCOL, "target failure");
			return;
		}
		if (bytes > 2)
			memcpy(sense, data + 2, MIN_OF(bytes - 2, sizeof sense));
	}
	if (bhs[BHS_FLAGS] & FLAG_UNDERFLOW)
		answer.missing_bytes = get_be32(bhs + BHS_RESIDUAL);
	sim_path_answered(path, command, &answer);
}

static void on_pdu(void *arg, const uint8_t *bhs, const uint8_t *data, uint32_t bytes)
{
	struct sim_path *path = arg;

	switch (bhs_opcode(bhs)) {
	case OP_SCSI_RESPONSE:
		command_ended(path, bhs, data, bytes);
		break;
	case OP_DATA_IN:
		if (bhs[BHS_FLAGS] & FLAG_STATUS)
			command_ended(path, bhs, NULL, 0);
		break;
	case OP_R2T:
		ready_to_transfer(path, bhs);
		break;
	case OP_NOP_IN:
		pong(path, bhs);
		break;
	case OP_TASK_MANAGEMENT_RESPONSE:
		sim_function_answered(path, bhs);
		break;
	case OP_ASYNC:
		if (bhs[BHS_ASYNC_EVENT] != ASYNC_SCSI)
			sim_path_lose(path, PATH_DETECT_ASKED, "the target asked to log out");
		break;
	default:
		sim_path_lose(path, PATH_DETECT_PROTOCOL, "protocol error: %s",
			      bhs_opcode(bhs) == OP_REJECT ? "a PDU was rejected"
							   : "an unexpected PDU");
		break;
	}
	if (path->conn.state == SIM_CONN_FULL)
		send_waiting(path);
}

static void on_up(void *arg)
{
	sim_probe_start(arg);
}

static void on_heard(void *arg)
{
	sim_path_heard(arg);
}

static void on_lost(void *arg, enum path_detect by, const char *why)
{
	sim_path_lose(arg, by, "%s", why);
}

const struct sim_conn_ops sim_session_ops = {on_up, on_heard, on_data_in, on_pdu, on_lost};
