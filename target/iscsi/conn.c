/* SPDX-License-Identifier: MIT
 *
 * Life of a connection, and the receive machine: header, data segment, padding and digest.
 */
#include "target/iscsi/conn.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/crc32c.h"

static void timer_fired(void *arg)
{
	struct iscsi_conn *conn = arg;
	struct loop *loop = conn->server->loop;

	/* Nobody is there to notice that time passes. */
	if (conn->portal->silent)
		loop_timer_set(loop, &conn->timer, loop_now_ns(loop) + ISCSI_PING_NS);
	else if (conn->state == CONN_FULL || conn->state == CONN_LOGOUT)
		iscsi_keepalive_tick(conn);
	else
		iscsi_conn_kill(conn);
}

bool iscsi_conn_make_room(struct iscsi_server *server)
{
	struct iscsi_conn *conn;

	/* Oldest first.  Those that wait for an old session have logged in in all but name; those
	 * that have been refused are only given time to read so. */
	for (conn = TAILQ_FIRST(&server->conns); conn; conn = TAILQ_NEXT(conn, entry)) {
		if ((conn->state == CONN_LOGIN && !conn->login_waiting) ||
		    (conn->state == CONN_FLUSH && !conn->session)) {
			iscsi_conn_kill(conn);
			iscsi_conn_free(conn);
			return true;
		}
	}
	return false;
}

struct iscsi_conn *iscsi_conn_new(struct iscsi_portal *portal, const char *local_host,
				  const struct iscsi_shell_ops *shell, void *shell_arg)
{
	struct iscsi_server *server = portal->server;
	struct iscsi_conn *conn;

	if (server->conn_count >= ISCSI_MAX_CONNECTIONS && !iscsi_conn_make_room(server))
		return NULL;
	conn = calloc(1, sizeof *conn);
	if (!conn)
		return NULL;
	conn->rx.ring = malloc(RX_RING_BYTES);
	conn->login = malloc(sizeof *conn->login);
	if (!conn->rx.ring || !conn->login) {
		free(conn->rx.ring);
		free(conn->login);
		free(conn);
		return NULL;
	}
	conn->server = server;
	conn->portal = portal;
	conn->state = CONN_LOGIN;
	conn->shell = shell;
	conn->shell_arg = shell_arg;
	snprintf(conn->local_host, sizeof conn->local_host, "%s", local_host);
	iscsi_conn_login_init(conn);
	conn->text.ttt = conn->ping_ttt = ISCSI_NO_TAG;
	iscsi_tx_init(&conn->tx, &conn->params, &portal->counters);
	loop_timer_init(&conn->timer, timer_fired, conn);
	loop_timer_set(server->loop, &conn->timer, loop_now_ns(server->loop) + ISCSI_LOGIN_NS);
	TAILQ_INSERT_TAIL(&server->conns, conn, entry);
	server->conn_count++;
	portal->counters.connections_now++;
	portal->counters.connections_total++;
	if (portal->promised > 0)
		portal->promised--;
	return conn;
}

void iscsi_conn_set_peer(struct iscsi_conn *conn, const char *host)
{
	if (cidr_parse_address(host, conn->peer) < 0)
		memset(conn->peer, 0, sizeof conn->peer); /* no rule names it */
}

void iscsi_conn_free(struct iscsi_conn *conn)
{
	assert(conn->state == CONN_DEAD && conn->command_count == 0);
	TAILQ_REMOVE(&conn->server->dead, conn, entry);
	conn->server->conn_count--;
	iscsi_tx_done(&conn->tx);
	free(conn->rx.ring);
	free(conn);
}

/* The number of a task that was aborted before it came stays taken when the connection that
 * aborted it goes; false: nobody is left to keep it. */
static bool hand_over(struct iscsi_command *command)
{
	struct iscsi_conn *conn = command->conn, *other;

	for (other = TAILQ_FIRST(&conn->server->conns); other; other = TAILQ_NEXT(other, entry)) {
		if (other->session != conn->session || other->state != CONN_FULL)
			continue;
		conn->command_count--;
		other->command_count++;
		command->conn = other;
		return true;
	}
	return false;
}

/* Ends what the session still has of this connection. */
static void leave_session(struct iscsi_conn *conn)
{
	struct iscsi_session *session = conn->session;
	struct iscsi_command *command, *next;

	iscsi_tmf_forget(conn);
	for (command = TAILQ_FIRST(&session->held); command; command = next) {
		next = TAILQ_NEXT(command, entry);
		if (command->conn == conn && !(command->cancelled && hand_over(command)))
			iscsi_command_abort(command);
	}
	for (command = TAILQ_FIRST(&session->commands); command; command = next) {
		next = TAILQ_NEXT(command, entry);
		if (command->conn == conn)
			iscsi_command_abort(command);
	}
}

void iscsi_conn_kill(struct iscsi_conn *conn)
{
	if (conn->state == CONN_DEAD)
		return;
	if (conn->session)
		iscsi_witness_note(conn, SIGHT_ENDED, "%s",
				   conn->end_why ? conn->end_why : "dropped by the target");
	conn->state = CONN_DEAD;
	conn->portal->counters.connections_now--;
	loop_timer_cancel(conn->server->loop, &conn->timer);
	conn->shell->closed(conn->shell_arg);
	iscsi_tx_clear(&conn->tx);
	iscsi_text_clear(conn);
	conn->rx.data = buf_unref(conn->rx.data);
	free(conn->login);
	conn->login = NULL;
	if (conn->waits_for && conn->waits_for->successor == conn)
		conn->waits_for->successor = NULL;
	if (conn->ancestor)
		conn->ancestor->heir = NULL;
	conn->waits_for = NULL;
	conn->ancestor = NULL;
	iscsi_logout_lost(conn);
	TAILQ_REMOVE(&conn->server->conns, conn, entry);
	TAILQ_INSERT_TAIL(&conn->server->dead, conn, entry);
	if (conn->session)
		leave_session(conn);
	loop_task_queue(conn->server->loop, &conn->server->reap);
}

void iscsi_conn_wake(struct iscsi_conn *conn)
{
	if (conn->state != CONN_DEAD)
		conn->shell->wake(conn->shell_arg);
}

void iscsi_conn_flush(struct iscsi_conn *conn)
{
	if (conn->state == CONN_DEAD)
		return;
	conn->state = CONN_FLUSH;
	loop_timer_set(conn->server->loop, &conn->timer,
		       loop_now_ns(conn->server->loop) + ISCSI_FLUSH_NS);
	iscsi_conn_wake(conn);
}

uint32_t iscsi_conn_tag(struct iscsi_conn *conn)
{
	uint32_t tag = conn->next_ttt++;

	return tag == ISCSI_NO_TAG ? conn->next_ttt++ : tag;
}

struct iscsi_tx_item *iscsi_conn_item(struct iscsi_conn *conn)
{
	struct iscsi_tx_item *item = NULL;

	if (conn->state == CONN_FLUSH || conn->state == CONN_DEAD || conn->failed)
		return NULL;
	item = iscsi_tx_new(&conn->tx);
	if (!item) {
		conn->failed = true;
		loop_task_queue(conn->server->loop, &conn->server->reap);
	}
	return item;
}

void iscsi_conn_push(struct iscsi_conn *conn, struct iscsi_tx_item *item, bool advance)
{
	iscsi_tx_push(&conn->tx, item, advance);
	iscsi_conn_wake(conn);
}

void iscsi_conn_reject(struct iscsi_conn *conn, const uint8_t *bhs, uint8_t reason)
{
	struct iscsi_tx_item *item = iscsi_conn_item(conn);

	conn->portal->counters.rejects++;
	if (!item)
		return;
	item->bhs[BHS_OPCODE] = OP_REJECT;
	item->bhs[BHS_FLAGS] = FLAG_FINAL;
	item->bhs[BHS_RESPONSE] = reason;
	put_be32(item->bhs + BHS_ITT, ISCSI_NO_TAG);
	memcpy(item->small, bhs, BHS_BYTES);
	item->data = item->small;
	item->data_bytes = BHS_BYTES;
	iscsi_conn_push(conn, item, true);
}

void iscsi_conn_settle(struct iscsi_conn *conn)
{
	if (conn->command_count > 0)
		return;
	iscsi_logout_settle(conn);
	if (conn->state == CONN_DEAD)
		loop_task_queue(conn->server->loop, &conn->server->reap);
}

void iscsi_conn_forget_command(struct iscsi_conn *conn, const struct iscsi_command *command)
{
	if (conn->rx.command != command)
		return;
	conn->rx.command = NULL;
	conn->rx.r2t = NULL;
	conn->rx.to = NULL;
	conn->rx.to_bytes = 0;
}

/* ---- receiving ---- */

bool iscsi_conn_paused(const struct iscsi_conn *conn)
{
	if (conn->failed)
		return true;
	if (conn->state == CONN_LOGIN)
		return conn->login_waiting;
	if (conn->state != CONN_FULL)
		return true;
	return conn->tx.items >= ISCSI_PAUSE_ITEMS ||
	       conn->tx.queued_bytes + conn->running_bytes >= ISCSI_PAUSE_BYTES;
}

bool iscsi_conn_has_input(const struct iscsi_conn *conn)
{
	return conn->rx.start < conn->rx.end;
}

unsigned iscsi_conn_rx_iov(struct iscsi_conn *conn, struct iovec iov[2])
{
	struct iscsi_rx *rx = &conn->rx;
	unsigned n = 0;
	size_t room;

	rx->direct_bytes = 0;
	if (iscsi_conn_paused(conn))
		return 0;
	if (rx->start == rx->end) {
		rx->start = rx->end = 0;
		if (rx->state == RX_DATA && rx->to_bytes > 0) {
			rx->direct_bytes = MIN_OF(rx->to_bytes, rx->data_left);
			iov[n++] = (struct iovec){rx->to, rx->direct_bytes};
		}
	} else if (RX_RING_BYTES - rx->end < RX_RING_BYTES / 4) {
		/* What is left is part of a header, a few bytes. */
		memmove(rx->ring, rx->ring + rx->start, rx->end - rx->start);
		rx->end -= rx->start;
		rx->start = 0;
	}
	room = RX_RING_BYTES - rx->end;
	if (n > 0)
		room = RX_BESIDE_BYTES;
	if (room > 0)
		iov[n++] = (struct iovec){rx->ring + rx->end, room};
	return n;
}

/* A data segment that must not even be read. */
static void header_too_long(struct iscsi_conn *conn, const uint8_t *bhs)
{
	conn->portal->counters.protocol_errors++;
	if (conn->state != CONN_FULL) {
		iscsi_conn_kill(conn);
		return;
	}
	iscsi_conn_reject(conn, bhs, REJECT_PROTOCOL_ERROR);
	iscsi_conn_flush(conn);
}

static bool take_header(struct iscsi_conn *conn)
{
	struct iscsi_rx *rx = &conn->rx;
	const uint8_t *bhs = rx->ring + rx->start;
	uint32_t limit =
	    conn->state == CONN_LOGIN ? ISCSI_DEFAULT_MRDSL : conn->params.max_recv_bytes;
	uint32_t header_bytes;

	if (rx->end - rx->start < BHS_BYTES)
		return false;
	if (bhs_data_bytes(bhs) > limit) {
		header_too_long(conn, bhs);
		return false;
	}
	header_bytes = BHS_BYTES + bhs_ahs_bytes(bhs);
	if (rx->end - rx->start < header_bytes + (rx->header_digest ? DIGEST_BYTES : 0))
		return false;
	if (rx->header_digest && crc32c(0, bhs, header_bytes) != get_digest(bhs + header_bytes)) {
		/* Lengths cannot be trusted any more; recovery level 0 drops the connection. */
		conn->portal->counters.protocol_errors++;
		conn->end_why = "header digest error";
		iscsi_conn_kill(conn);
		return false;
	}
	rx->start += header_bytes + (rx->header_digest ? DIGEST_BYTES : 0);
	memcpy(rx->bhs, bhs, BHS_BYTES);
	rx->data_left = bhs_data_bytes(bhs);
	rx->to = NULL;
	rx->to_bytes = 0;
	rx->crc = 0;
	rx->action = RX_DROP;
	rx->fail_ascq = 0;
	rx->command = NULL;
	rx->r2t = NULL;
	rx->state = RX_DATA;
	conn->portal->counters.pdus_in++;
	iscsi_pdu_begin(conn, bhs + BHS_BYTES, header_bytes - BHS_BYTES);
	return true;
}

/* BYTES of the data segment are where they belong. */
static void data_took(struct iscsi_rx *rx, uint32_t bytes)
{
	uint32_t kept = MIN_OF(bytes, rx->to_bytes);

	if (kept > 0)
		rx->to += kept;
	rx->to_bytes -= kept;
	rx->data_left -= bytes;
}

static bool take_data(struct iscsi_conn *conn)
{
	struct iscsi_rx *rx = &conn->rx;
	const uint8_t *from = rx->ring + rx->start;
	uint32_t bytes = (uint32_t)MIN_OF(rx->end - rx->start, rx->data_left);
	uint32_t kept = MIN_OF(bytes, rx->to_bytes);

	if (kept > 0)
		memcpy(rx->to, from, kept);
	if (rx->data_digest && bytes > 0)
		rx->crc = crc32c(rx->crc, from, bytes);
	data_took(rx, bytes);
	rx->start += bytes;
	if (rx->data_left > 0)
		return false;
	rx->state = RX_TAIL;
	return true;
}

static bool take_tail(struct iscsi_conn *conn)
{
	struct iscsi_rx *rx = &conn->rx;
	const uint8_t *tail = rx->ring + rx->start;
	uint32_t data_bytes = bhs_data_bytes(rx->bhs);
	uint32_t pad = pdu_pad_bytes(data_bytes);
	bool digest = rx->data_digest && data_bytes > 0;
	bool good = true;

	if (rx->end - rx->start < pad + (digest ? DIGEST_BYTES : 0))
		return false;
	if (digest)
		good = crc32c(rx->crc, tail, pad) == get_digest(tail + pad);
	rx->start += pad + (digest ? DIGEST_BYTES : 0);
	rx->state = RX_HEADER;
	iscsi_pdu_end(conn, good);
	return true;
}

static bool take_some(struct iscsi_conn *conn)
{
	switch (conn->rx.state) {
	case RX_HEADER:
		return take_header(conn);
	case RX_DATA:
		return take_data(conn);
	case RX_TAIL:
		return take_tail(conn);
	}
	return false;
}

void iscsi_conn_received(struct iscsi_conn *conn, size_t bytes)
{
	struct iscsi_rx *rx = &conn->rx;
	uint32_t direct = (uint32_t)MIN_OF(bytes, rx->direct_bytes);

	conn->rx_bytes += bytes;
	if (direct > 0) {
		if (rx->data_digest)
			rx->crc = crc32c(rx->crc, rx->to, direct);
		data_took(rx, direct);
		rx->direct_bytes = 0;
	}
	rx->end += bytes - direct;
	while (!iscsi_conn_paused(conn) && take_some(conn))
		continue;
}
