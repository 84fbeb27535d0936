/* SPDX-License-Identifier: MIT
 *
 * Which PDU goes where: at its header (where is its data to be put, is its turn come), and at its
 * end.
 *
 * A numbered PDU that comes before its turn is held as a command object until the gap is filled: by
 * another connection of the session, or, on one, when an earlier PDU was rejected and is sent
 * again.
 */
#include "target/iscsi/conn.h"

static void reject_later(struct iscsi_conn *conn, uint8_t reason)
{
	conn->rx.action = RX_REJECT;
	conn->rx.reject_reason = reason;
}

static void control_begin(struct iscsi_conn *conn, const uint8_t *bhs)
{
	uint32_t data_bytes = bhs_data_bytes(bhs);
	enum iscsi_window_place place = WINDOW_NEXT;

	if (!bhs_immediate(bhs))
		place = iscsi_window_place(&conn->session->window, bhs_cmd_sn(bhs));
	if (place == WINDOW_OUTSIDE)
		return;
	if (data_bytes > 0) {
		conn->rx.data = buf_new(conn->server->pool, data_bytes);
		if (!conn->rx.data) {
			reject_later(conn, REJECT_OUT_OF_RESOURCES);
			return;
		}
		conn->rx.to = conn->rx.data->data;
		conn->rx.to_bytes = data_bytes;
	}
	conn->rx.action = RX_CONTROL;
}

/* Full feature phase. */
static void full_begin(struct iscsi_conn *conn, const uint8_t *bhs, const uint8_t *ahs,
		       uint32_t ahs_bytes)
{
	bool discovery = !conn->session->target;

	switch (bhs_opcode(bhs)) {
	case OP_SCSI_COMMAND:
		if (discovery)
			reject_later(conn, REJECT_PROTOCOL_ERROR);
		else
			iscsi_command_begin(conn, bhs, ahs, ahs_bytes);
		break;
	case OP_DATA_OUT:
		if (!discovery)
			iscsi_dataout_begin(conn, bhs);
		break;
	case OP_TASK_MANAGEMENT:
		if (discovery)
			reject_later(conn, REJECT_PROTOCOL_ERROR);
		else
			control_begin(conn, bhs);
		break;
	case OP_NOP_OUT:
	case OP_TEXT:
	case OP_LOGOUT:
		control_begin(conn, bhs);
		break;
	case OP_SNACK:
		reject_later(conn, REJECT_SNACK);
		break;
	case OP_LOGIN:
		conn->portal->counters.protocol_errors++;
		reject_later(conn, REJECT_PROTOCOL_ERROR);
		break;
	default:
		conn->portal->counters.protocol_errors++;
		reject_later(conn, REJECT_NOT_SUPPORTED);
		break;
	}
}

void iscsi_pdu_begin(struct iscsi_conn *conn, const uint8_t *ahs, uint32_t ahs_bytes)
{
	if (conn->state == CONN_LOGIN)
		iscsi_conn_login_begin(conn, conn->rx.bhs);
	else if (conn->state == CONN_FULL)
		full_begin(conn, conn->rx.bhs, ahs, ahs_bytes);
}

void iscsi_control_run(struct iscsi_conn *conn, const uint8_t *bhs, struct buf *data)
{
	switch (bhs_opcode(bhs)) {
	case OP_NOP_OUT:
		iscsi_nop_out(conn, bhs, data);
		break;
	case OP_TEXT:
		iscsi_text_request(conn, bhs, data);
		break;
	case OP_TASK_MANAGEMENT:
		iscsi_tmf_request(conn, bhs);
		break;
	default:
		iscsi_logout_request(conn, bhs);
		break;
	}
	buf_unref(data);
}

static void control_hold(struct iscsi_conn *conn, const uint8_t *bhs, struct buf *data)
{
	struct iscsi_command *command = iscsi_command_new(conn, bhs);

	if (!command) {
		iscsi_conn_reject(conn, bhs, REJECT_OUT_OF_RESOURCES);
		buf_unref(data);
		return;
	}
	command->buf = data;
	if (!iscsi_session_hold(conn->session, command))
		iscsi_command_finish(command);
}

static void control_end(struct iscsi_conn *conn, const uint8_t *bhs, bool good)
{
	struct iscsi_session *session = conn->session;
	enum iscsi_window_place place = WINDOW_NEXT;
	struct buf *data = conn->rx.data;

	conn->rx.data = NULL;
	if (!good) {
		iscsi_conn_reject(conn, bhs, REJECT_DATA_DIGEST);
		buf_unref(data);
		return;
	}
	/* Its place may have changed since its header came: other connections count too. */
	if (!bhs_immediate(bhs))
		place = iscsi_window_place(&session->window, bhs_cmd_sn(bhs));
	if (place == WINDOW_AHEAD)
		control_hold(conn, bhs, data);
	else if (place == WINDOW_OUTSIDE)
		buf_unref(data);
	if (place != WINDOW_NEXT)
		return;
	if (!bhs_immediate(bhs))
		iscsi_window_advance(&session->window, false);
	iscsi_control_run(conn, bhs, data);
	iscsi_session_run_held(session);
}

void iscsi_pdu_end(struct iscsi_conn *conn, bool good)
{
	uint8_t bhs[BHS_BYTES];

	memcpy(bhs, conn->rx.bhs, BHS_BYTES);
	switch (conn->rx.action) {
	case RX_DROP:
		break;
	case RX_REJECT:
		iscsi_conn_reject(conn, bhs, conn->rx.reject_reason);
		iscsi_dataout_rejected(conn);
		break;
	case RX_COMMAND:
		iscsi_command_end(conn, good);
		break;
	case RX_DATA_OUT:
		iscsi_dataout_end(conn, bhs, good);
		break;
	case RX_CONTROL:
		control_end(conn, bhs, good);
		break;
	case RX_LOGIN:
		iscsi_conn_login_end(conn, bhs);
		break;
	}
}
