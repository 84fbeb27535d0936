/* SPDX-License-Identifier: MIT
 *
 * NOP-Out and NOP-In, keep-alive.
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
			conn->end_why = "no answer to a keep-alive";
			iscsi_conn_kill(conn);
			return;
		}
		ping(conn);
	}
	conn->rx_bytes_at_tick = conn->rx_bytes;
	loop_timer_set(conn->server->loop, &conn->timer,
		       loop_now_ns(conn->server->loop) + ISCSI_PING_NS);
}
