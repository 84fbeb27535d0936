/* SPDX-License-Identifier: MIT
 *
 * Connections that the target ends of its own will: asynchronous messages (RFC 7143 11.9), dropped
 * sessions, portals that drain, and portals that fall silent.
 *
 * A portal that drains asks each session to log out, and drops what is still there when the time is
 * up.  Meanwhile and afterwards logins of normal sessions are sent to another portal, until the
 * portal is told to be up again; discovery is served, and does not name it.
 */
#include "target/iscsi/conn.h"

/* Messages are for normal sessions in full feature phase; others are closed without. */
static bool can_be_told(const struct iscsi_conn *conn)
{
	return (conn->state == CONN_FULL || conn->state == CONN_LOGOUT) && conn->session->target;
}

static void async_send(struct iscsi_conn *conn, enum iscsi_async_event event, uint16_t parameter1,
		       uint16_t parameter2, uint16_t parameter3)
{
	struct iscsi_tx_item *item = can_be_told(conn) ? iscsi_conn_item(conn) : NULL;

	if (!item)
		return;
	item->bhs[BHS_OPCODE] = OP_ASYNC;
	item->bhs[BHS_FLAGS] = FLAG_FINAL;
	put_be32(item->bhs + BHS_ITT, ISCSI_NO_TAG);
	item->bhs[BHS_ASYNC_EVENT] = (uint8_t)event;
	put_be16(item->bhs + BHS_ASYNC_PARAMETERS, parameter1);
	put_be16(item->bhs + BHS_ASYNC_PARAMETERS + 2, parameter2);
	put_be16(item->bhs + BHS_ASYNC_PARAMETERS + 4, parameter3);
	iscsi_conn_push(conn, item, true);
}

/* Closes when what waits has been written; its tasks end with it. */
static void close_told(struct iscsi_conn *conn, enum iscsi_async_event event)
{
	conn->end_why = "asked to go by the target";
	/* Nothing is kept for a connection that has gone: it may come again at once. */
	async_send(conn, event, event == ASYNC_DROP_CONNECTION ? conn->cid : 0, 0, 0);
	if (conn->state == CONN_LOGIN) {
		conn->failed = true;
		loop_task_queue(conn->server->loop, &conn->server->reap);
	} else {
		iscsi_conn_flush(conn);
	}
}

void iscsi_target_drop_sessions(struct iscsi_server *server, const struct scsi_target *target)
{
	struct iscsi_session *session;
	struct iscsi_conn *conn;

	for (session = TAILQ_FIRST(&server->sessions); session;
	     session = TAILQ_NEXT(session, entry)) {
		if (session->target == target)
			session->ending = true; /* nobody joins any more */
	}
	for (conn = TAILQ_FIRST(&server->conns); conn; conn = TAILQ_NEXT(conn, entry)) {
		if (conn->session && conn->session->target == target)
			close_told(conn, ASYNC_DROP_SESSION);
	}
}

/* ---- portals that drain ---- */

void iscsi_portal_drain_over(void *arg)
{
	const struct iscsi_portal *portal = arg;
	struct iscsi_conn *conn;

	for (conn = TAILQ_FIRST(&portal->server->conns); conn; conn = TAILQ_NEXT(conn, entry)) {
		if (conn->portal == portal && conn->state != CONN_FLUSH)
			close_told(conn, ASYNC_DROP_CONNECTION);
	}
}

unsigned iscsi_portal_drain(struct iscsi_portal *portal, uint64_t limit_ns)
{
	uint64_t seconds = (limit_ns + NS_PER_S - 1) / NS_PER_S;
	struct loop *loop = portal->server->loop;
	struct iscsi_conn *conn;
	unsigned count = 0;

	portal->draining = true;
	for (conn = TAILQ_FIRST(&portal->server->conns); conn; conn = TAILQ_NEXT(conn, entry)) {
		if (conn->portal != portal || conn->state != CONN_FULL || !conn->session->target)
			continue;
		async_send(conn, ASYNC_LOGOUT_REQUEST, 0, 0, (uint16_t)MIN_OF(seconds, 65535));
		count++;
	}
	loop_timer_set(loop, &portal->drain, loop_now_ns(loop) + limit_ns);
	return count;
}

void iscsi_portal_drain_end(struct iscsi_portal *portal)
{
	portal->draining = false;
	loop_timer_cancel(portal->server->loop, &portal->drain);
}

bool iscsi_portal_is_draining(const struct iscsi_portal *portal)
{
	return portal->draining;
}

/* ---- silent portals ---- */

void iscsi_portal_set_silent(struct iscsi_portal *portal, bool silent)
{
	const struct iscsi_conn *conn;

	if (portal->silent == silent)
		return;
	portal->silent = silent;
	if (silent) {
		iscsi_portal_drain_end(portal);
		TAILQ_FOREACH (conn, &portal->server->conns, entry)
			if (conn->portal == portal && conn->shell->silence)
				conn->shell->silence(conn->shell_arg);
	} else {
		iscsi_portal_reset(portal, NULL);
	}
	iscsi_listener_silence(portal, silent);
}

bool iscsi_portal_is_silent(const struct iscsi_portal *portal)
{
	return portal->silent;
}
