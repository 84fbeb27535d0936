/* SPDX-License-Identifier: MIT
 *
 * Data-out: what may come unasked, R2T for the rest, and each Data-Out PDU to its place.
 *
 * PDUs of a sequence come in order (DataPDUInOrder=Yes), numbered from 0.  Anything else costs a
 * Reject and the command (RFC 7143 11.17: a rejected Data-Out still gets a SCSI response); data
 * for commands that are no more is drained quietly.
 */
#include "target/iscsi/conn.h"

enum {
	ASC_DATA = 0x0c, /* iSCSI data errors, RFC 7143 11.4.7.2 */
	ASCQ_UNEXPECTED = 0x0c,
	ASCQ_INCORRECT_AMOUNT = 0x0d,
	ASC_CRC = 0x47,
	ASCQ_CRC = 0x05,
};

/* Most that may come without an R2T, immediate data included. */
static uint32_t unsolicited_limit(const struct iscsi_command *command)
{
	return MIN_OF(command->session->params.first_burst_bytes, command->edtl_bytes);
}

uint8_t iscsi_unsolicited_check(const struct iscsi_command *command, uint32_t data_bytes)
{
	const struct iscsi_params *params = &command->session->params;

	if (!command->is_write)
		return 0; /* a data segment is drained, F does not matter */
	if (data_bytes > 0 && !params->immediate_data)
		return ASCQ_UNEXPECTED;
	if (!bhs_final(command->bhs) && params->initial_r2t)
		return ASCQ_UNEXPECTED;
	if (data_bytes > command->edtl_bytes)
		return ASCQ_INCORRECT_AMOUNT;
	if (data_bytes > unsolicited_limit(command))
		return ASCQ_UNEXPECTED;
	return 0;
}

static bool r2t_send(struct iscsi_command *command)
{
	struct iscsi_conn *conn = command->conn;
	struct iscsi_r2t *r2t = &command->r2t[command->r2t_count];
	struct iscsi_tx_item *item = iscsi_conn_item(conn);

	if (!item)
		return false;
	*r2t = (struct iscsi_r2t){
	    .ttt = iscsi_conn_tag(conn),
	    .offset = command->r2t_offset,
	    .bytes = MIN_OF(command->want_bytes - command->r2t_offset,
			    command->session->params.max_burst_bytes),
	};
	command->r2t_count++;
	command->r2t_offset += r2t->bytes;
	item->bhs[BHS_OPCODE] = OP_R2T;
	item->bhs[BHS_FLAGS] = FLAG_FINAL;
	memcpy(item->bhs + BHS_LUN, command->bhs + BHS_LUN, 8);
	put_be32(item->bhs + BHS_ITT, command->itt);
	put_be32(item->bhs + BHS_TTT, r2t->ttt);
	put_be32(item->bhs + BHS_DATA_SN, command->r2t_sn++);
	put_be32(item->bhs + BHS_OFFSET, r2t->offset);
	put_be32(item->bhs + BHS_DESIRED_BYTES, r2t->bytes);
	iscsi_conn_push(conn, item, false);
	return true;
}

void iscsi_dataout_progress(struct iscsi_command *command)
{
	unsigned most = MIN_OF(command->session->params.max_outstanding_r2t, ISCSI_MAX_R2T);

	if (command->unsolicited_open)
		return;
	if (command->r2t_offset < command->unsolicited_bytes)
		command->r2t_offset = MIN_OF(command->unsolicited_bytes, command->want_bytes);
	while (command->r2t_count < most && command->r2t_offset < command->want_bytes) {
		if (!r2t_send(command))
			return;
	}
	if (command->r2t_count == 0 && command->r2t_offset == command->want_bytes)
		iscsi_command_run(command);
}

/* Where the data goes: OFFSET on, and what exceeds the command's want is dropped. */
static void data_place(struct iscsi_conn *conn, struct iscsi_command *command, uint32_t offset,
		       uint32_t data_bytes)
{
	if (command->state == COMMAND_FAILING || !command->buf || offset >= command->want_bytes)
		return;
	conn->rx.to = command->buf->data + offset;
	conn->rx.to_bytes = MIN_OF(data_bytes, command->want_bytes - offset);
}

/* A Data-Out that does not fit: Reject, and the command fails. */
static void mismatch(struct iscsi_conn *conn, struct iscsi_command *command, uint8_t reason,
		     uint8_t ascq)
{
	conn->portal->counters.protocol_errors++;
	conn->rx.action = RX_REJECT;
	conn->rx.reject_reason = reason;
	conn->rx.command = command;
	conn->rx.fail_ascq = ascq;
}

void iscsi_dataout_rejected(struct iscsi_conn *conn)
{
	struct iscsi_command *command = conn->rx.command;

	conn->rx.command = NULL;
	if (!command || !conn->rx.fail_ascq)
		return;
	command->unsolicited_open = false;
	iscsi_command_fail(command, ASC_DATA, conn->rx.fail_ascq);
}

static void unsolicited_begin(struct iscsi_conn *conn, struct iscsi_command *command,
			      const uint8_t *bhs)
{
	uint32_t data_bytes = bhs_data_bytes(bhs);
	uint32_t offset = get_be32(bhs + BHS_OFFSET);
	uint32_t limit = unsolicited_limit(command);

	if (command->state == COMMAND_FAILING) {
		conn->rx.action = RX_DATA_OUT; /* drained up to its F bit */
		conn->rx.command = command;
		return;
	}
	if (!command->unsolicited_open) {
		mismatch(conn, command, REJECT_PROTOCOL_ERROR, ASCQ_UNEXPECTED);
		return;
	}
	if (get_be32(bhs + BHS_DATA_SN) != command->unsolicited_sn) {
		mismatch(conn, command, REJECT_PROTOCOL_ERROR, ASCQ_INCORRECT_AMOUNT);
		return;
	}
	if (offset != command->unsolicited_bytes) {
		mismatch(conn, command, REJECT_INVALID_FIELD, ASCQ_INCORRECT_AMOUNT);
		return;
	}
	conn->rx.action = RX_DATA_OUT;
	conn->rx.command = command;
	if (data_bytes > limit - MIN_OF(offset, limit))
		iscsi_command_fail(command, ASC_DATA,
				   limit == command->edtl_bytes ? ASCQ_INCORRECT_AMOUNT
								: ASCQ_UNEXPECTED);
	else
		data_place(conn, command, offset, data_bytes);
}

static struct iscsi_r2t *r2t_find(struct iscsi_command *command, uint32_t ttt)
{
	for (unsigned i = 0; i < command->r2t_count; i++) {
		if (command->r2t[i].ttt == ttt)
			return &command->r2t[i];
	}
	return NULL;
}

static void solicited_begin(struct iscsi_conn *conn, struct iscsi_command *command,
			    const uint8_t *bhs)
{
	uint32_t data_bytes = bhs_data_bytes(bhs);
	uint32_t offset = get_be32(bhs + BHS_OFFSET);
	struct iscsi_r2t *r2t = r2t_find(command, bhs_ttt(bhs));

	if (command->state == COMMAND_FAILING)
		return;
	if (!r2t) {
		mismatch(conn, command, REJECT_INVALID_FIELD, ASCQ_UNEXPECTED);
		return;
	}
	if (get_be32(bhs + BHS_DATA_SN) != r2t->data_sn) {
		mismatch(conn, command, REJECT_PROTOCOL_ERROR, ASCQ_INCORRECT_AMOUNT);
		return;
	}
	if (offset != r2t->offset + r2t->got_bytes || data_bytes > r2t->bytes - r2t->got_bytes) {
		mismatch(conn, command, REJECT_INVALID_FIELD, ASCQ_INCORRECT_AMOUNT);
		return;
	}
	if (bhs_final(bhs) && r2t->got_bytes + data_bytes < r2t->bytes) {
		mismatch(conn, command, REJECT_PROTOCOL_ERROR, ASCQ_INCORRECT_AMOUNT);
		return;
	}
	conn->rx.action = RX_DATA_OUT;
	conn->rx.command = command;
	conn->rx.r2t = r2t;
	data_place(conn, command, offset, data_bytes);
}

void iscsi_dataout_begin(struct iscsi_conn *conn, const uint8_t *bhs)
{
	struct iscsi_command *command = iscsi_session_find_command(conn->session, bhs_itt(bhs));

	if (!command || !command->is_write || command->conn != conn)
		return;
	switch (command->state) {
	case COMMAND_HELD:
	case COMMAND_COLLECT:
	case COMMAND_FAILING:
		break;
	case COMMAND_DRAIN:
		conn->rx.r2t = r2t_find(command, bhs_ttt(bhs));
		if (conn->rx.r2t) {
			conn->rx.action = RX_DATA_OUT;
			conn->rx.command = command;
		}
		return;
	default:
		return; /* drained quietly */
	}
	if (bhs_ttt(bhs) == ISCSI_NO_TAG)
		unsolicited_begin(conn, command, bhs);
	else
		solicited_begin(conn, command, bhs);
}

static void r2t_drop(struct iscsi_command *command, struct iscsi_r2t *r2t)
{
	unsigned index = (unsigned)(r2t - command->r2t);

	command->r2t_count--;
	memmove(r2t, r2t + 1, (command->r2t_count - index) * sizeof *r2t);
}

/* Data for a command that was aborted: the initiator should end the sequence as quickly as it can,
 * so F counts before it is complete (RFC 7143 11.5.1). */
static void drained(struct iscsi_command *command, struct iscsi_r2t *r2t, const uint8_t *bhs)
{
	uint32_t left = r2t->bytes - r2t->got_bytes;

	r2t->got_bytes += MIN_OF(bhs_data_bytes(bhs), left);
	if (bhs_final(bhs) || r2t->got_bytes == r2t->bytes)
		r2t_drop(command, r2t);
	if (command->r2t_count == 0)
		iscsi_command_finish(command);
}

void iscsi_dataout_end(struct iscsi_conn *conn, const uint8_t *bhs, bool good)
{
	struct iscsi_command *command = conn->rx.command;
	struct iscsi_r2t *r2t = conn->rx.r2t;

	conn->rx.command = NULL;
	conn->rx.r2t = NULL;
	if (!good)
		iscsi_conn_reject(conn, bhs, REJECT_DATA_DIGEST);
	if (!command)
		return;
	if (command->state == COMMAND_DRAIN) {
		if (r2t)
			drained(command, r2t, bhs);
		return;
	}
	if (!r2t && bhs_final(bhs))
		command->unsolicited_open = false;
	if (command->state == COMMAND_FAILING) {
		if (!command->unsolicited_open)
			iscsi_command_fail_now(command);
		return;
	}
	if (!good) {
		iscsi_command_fail(command, ASC_CRC, ASCQ_CRC);
		return;
	}
	if (r2t) {
		r2t->data_sn++;
		r2t->got_bytes += bhs_data_bytes(bhs);
		if (r2t->got_bytes == r2t->bytes)
			r2t_drop(command, r2t);
	} else {
		command->unsolicited_sn++;
		command->unsolicited_bytes += bhs_data_bytes(bhs);
	}
	if (command->state == COMMAND_COLLECT)
		iscsi_dataout_progress(command);
}
