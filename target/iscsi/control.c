/* SPDX-License-Identifier: MIT
 *
 * NOP-Out and NOP-In, keep-alive, logout.
 *
 * Keep-alive: a connection that has been silent for ISCSI_PING_NS is sent a NOP-In with a tag; when
 * nothing at all has come by the next tick it is dead.  Any byte received counts as life, so a
 * busy path is never failed for a late answer.
 */
#include "target/iscsi/conn.h"

void iscsi_nop_out(struct iscsi_conn *conn, const uint8_t *bhs, struct buf *data)
{
	uint32_t data_bytes = bhs_data_bytes(bhs);
	struct iscsi_tx_item *item;

	if (bhs_itt(bhs) == ISCSI_NO_TAG) {
		if (bhs_ttt(bhs) == conn->ping_ttt)
			conn->ping_ttt = ISCSI_NO_TAG;
		return;
	}
	item = iscsi_conn_item(conn);
	if (!item)
		return;
	item->bhs[BHS_OPCODE] = OP_NOP_IN;
	item->bhs[BHS_FLAGS] = FLAG_FINAL;
	memcpy(item->bhs + BHS_LUN, bhs + BHS_LUN, 8);
	put_be32(item->bhs + BHS_ITT, bhs_itt(bhs));
	put_be32(item->bhs + BHS_TTT, ISCSI_NO_TAG);
	if (data) {
		item->buf = buf_ref(data);
		item->data = data->data;
		item->data_bytes = MIN_OF(data_bytes, conn->params.max_send_bytes);
	}
	iscsi_conn_push(conn, item, true);
}

static void ping(struct iscsi_conn *conn)
{
	struct iscsi_tx_item *item = iscsi_conn_item(conn);

	if (!item)
		return;
	conn->ping_ttt = iscsi_conn_tag(conn);
	item->bhs[BHS_OPCODE] = OP_NOP_IN;
	item->bhs[BHS_FLAGS] = FLAG_FINAL;
	put_be32(item->bhs + BHS_ITT, ISCSI_NO_TAG);
	put_be32(item->bhs + BHS_TTT, conn->ping_ttt);
	iscsi_conn_push(conn, item, false);
}

void iscsi_keepalive_tick(struct iscsi_conn *conn)
{
	bool silent = conn->rx_bytes == conn->rx_bytes_at_tick;

	/* While we do not read, silence says nothing; output that nobody takes is TCP's to time. */
	if (silent && !iscsi_conn_paused(conn)) {
		if (conn->ping_ttt != ISCSI_NO_TAG) {
			iscsi_conn_kill(conn);
			return;
		}
		ping(conn);
	}
	conn->rx_bytes_at_tick = conn->rx_bytes;
	loop_timer_set(conn->server->loop, &conn->timer,
		       loop_now_ns(conn->server->loop) + ISCSI_PING_NS);
}

static void logout_answer(struct iscsi_conn *conn, const uint8_t *bhs, uint8_t response)
{
	struct iscsi_tx_item *item = iscsi_conn_item(conn);

	if (!item)
		return;
	item->bhs[BHS_OPCODE] = OP_LOGOUT_RESPONSE;
	item->bhs[BHS_FLAGS] = FLAG_FINAL;
	item->bhs[BHS_RESPONSE] = response;
	put_be32(item->bhs + BHS_ITT, bhs_itt(bhs));
	iscsi_conn_push(conn, item, true);
}

/* Commands that wait for data will never get it; those that run may finish and are answered. */
static void abort_waiting(struct iscsi_conn *conn)
{
	struct iscsi_session *session = conn->session;
	struct iscsi_command *command, *next;

	for (command = TAILQ_FIRST(&session->held); command; command = next) {
		next = TAILQ_NEXT(command, entry);
		if (command->conn == conn)
			iscsi_command_abort(command);
	}
	for (command = TAILQ_FIRST(&session->commands); command; command = next) {
		next = TAILQ_NEXT(command, entry);
		if (command->conn == conn && command->state != COMMAND_RUN)
			iscsi_command_abort(command);
	}
}

void iscsi_logout_request(struct iscsi_conn *conn, const uint8_t *bhs)
{
	unsigned reason = bhs[BHS_FLAGS] & 0x7f;
	uint16_t cid = get_be16(bhs + BHS_CID);

	if (reason == LOGOUT_RECOVERY) {
		logout_answer(conn, bhs, LOGOUT_NO_RECOVERY);
		return;
	}
	if (reason > LOGOUT_RECOVERY) {
		iscsi_conn_reject(conn, bhs, REJECT_INVALID_FIELD);
		return;
	}
	if (reason == LOGOUT_CONNECTION && cid != conn->cid) {
		logout_answer(conn, bhs, LOGOUT_NO_CID);
		return;
	}
	memcpy(conn->logout_bhs, bhs, BHS_BYTES);
	conn->state = CONN_LOGOUT;
	if (conn->command_count == 0) {
		iscsi_logout_finish(conn);
		return;
	}
	abort_waiting(conn); /* the last one to go finishes the logout */
}

void iscsi_logout_finish(struct iscsi_conn *conn)
{
	logout_answer(conn, conn->logout_bhs, LOGOUT_CLOSED);
	iscsi_conn_flush(conn);
}
