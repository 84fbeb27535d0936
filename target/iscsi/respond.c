/* SPDX-License-Identifier: MIT
 *
 * The answer to a SCSI command: Data-In by reference, status (inside the last Data-In when it is
 * GOOD), residual count, sense.
 */
#include "target/iscsi/conn.h"

static enum iscsi_tally tally_of(const struct iscsi_command *command)
{
	if (command->task.status != SCSI_GOOD)
		return TALLY_COMMAND;
	switch (command->task.cdb[0]) {
	case 0x08: /* READ(6), (10), (12), (16) */
	case 0x28:
	case 0xa8:
	case 0x88:
		return TALLY_READ;
	case 0x0a: /* WRITE(6), (10), (12), (16) */
	case 0x2a:
	case 0xaa:
	case 0x8a:
		return TALLY_WRITE;
	default:
		return TALLY_COMMAND;
	}
}

/* The residual always counts against what the initiator expected (RFC 7143 11.4.5). */
static void residual_put(const struct iscsi_command *command, uint8_t *bhs)
{
	const struct scsi_task *task = &command->task;
	uint32_t transfer_bytes = task->status == SCSI_GOOD ? task->transfer_bytes : task->in_bytes;

	if (transfer_bytes > command->edtl_bytes) {
		bhs[BHS_FLAGS] |= FLAG_OVERFLOW;
		put_be32(bhs + BHS_RESIDUAL, transfer_bytes - command->edtl_bytes);
	} else if (transfer_bytes < command->edtl_bytes) {
		bhs[BHS_FLAGS] |= FLAG_UNDERFLOW;
		put_be32(bhs + BHS_RESIDUAL, command->edtl_bytes - transfer_bytes);
	}
}

static void tally_put(const struct iscsi_command *command, uint32_t in_bytes,
		      struct iscsi_tx_item *item)
{
	item->tally = tally_of(command);
	command->session->ios += item->tally != TALLY_COMMAND;
	if (item->tally == TALLY_READ)
		item->tally_bytes = in_bytes;
	else if (item->tally == TALLY_WRITE)
		item->tally_bytes = command->want_bytes;
}

static void data_in_push(struct iscsi_command *command, uint32_t in_bytes, bool with_status)
{
	struct iscsi_conn *conn = command->conn;
	struct iscsi_tx_item *item = iscsi_conn_item(conn);

	if (!item)
		return;
	item->bhs[BHS_OPCODE] = OP_DATA_IN;
	memcpy(item->bhs + BHS_LUN, command->bhs + BHS_LUN, 8);
	put_be32(item->bhs + BHS_ITT, command->itt);
	put_be32(item->bhs + BHS_TTT, ISCSI_NO_TAG);
	item->data_in = true;
	item->buf = buf_ref(command->task.in_buf);
	if (command->task.in_lent)
		item->lent = (const struct io_lent *)item->buf->data;
	else
		item->data = item->buf->data;
	item->data_bytes = in_bytes;
	if (with_status) {
		item->with_status = true;
		item->bhs[BHS_FLAGS] = FLAG_STATUS;
		item->bhs[BHS_STATUS] = command->task.status;
		residual_put(command, item->bhs);
		tally_put(command, in_bytes, item);
	}
	iscsi_conn_push(conn, item, with_status);
}

static void response_push(struct iscsi_command *command, uint32_t in_bytes)
{
	struct iscsi_conn *conn = command->conn;
	const struct scsi_task *task = &command->task;
	struct iscsi_tx_item *item = iscsi_conn_item(conn);

	if (!item)
		return;
	item->bhs[BHS_OPCODE] = OP_SCSI_RESPONSE;
	item->bhs[BHS_FLAGS] = FLAG_FINAL;
	item->bhs[BHS_STATUS] = task->status;
	put_be32(item->bhs + BHS_ITT, command->itt);
	put_be32(item->bhs + BHS_DATA_SN,
		 in_bytes > 0 ? iscsi_tx_data_in_pdus(&conn->tx, in_bytes) : command->r2t_sn);
	residual_put(command, item->bhs);
	if (task->sense_bytes > 0) {
		put_be16(item->small, task->sense_bytes);
		memcpy(item->small + 2, task->sense, task->sense_bytes);
		item->data = item->small;
		item->data_bytes = 2 + task->sense_bytes;
	}
	tally_put(command, in_bytes, item);
	iscsi_conn_push(conn, item, true);
}

void iscsi_respond(struct iscsi_command *command)
{
	const struct scsi_task *task = &command->task;
	uint32_t in_bytes = 0;
	bool with_status;

	if (task->status != SCSI_GOOD || task->cdb[0] == 0xa3 || task->cdb[0] == 0xa4)
		iscsi_witness_answer(command);
	if (command->is_read && task->in_buf)
		in_bytes = MIN_OF(task->in_bytes, command->edtl_bytes);
	with_status = in_bytes > 0 && task->status == SCSI_GOOD && task->sense_bytes == 0;
	if (in_bytes > 0)
		data_in_push(command, in_bytes, with_status);
	if (!with_status)
		response_push(command, in_bytes);
	iscsi_command_finish(command);
}
