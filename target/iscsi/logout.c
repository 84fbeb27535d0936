/* SPDX-License-Identifier: MIT
 *
 * Logout (RFC 7143 11.14, 11.15) of a session or of one connection, which need not be the one that
 * asks.
 *
 * What leaves takes no more requests.  Commands that wait for data are aborted, those that run may
 * finish and are answered; then the logout is answered and the connections close.
 */
#include "target/iscsi/conn.h"

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

static bool is_alive_in(const struct iscsi_conn *conn, const struct iscsi_session *session)
{
	return conn->session == session && (conn->state == CONN_FULL || conn->state == CONN_LOGOUT);
}

/* ---- one connection ---- */

static void connection_finish(struct iscsi_conn *conn)
{
	struct iscsi_conn *via = conn->logout_via;

	conn->logout_via = NULL;
	if (via)
		logout_answer(via, conn->logout_bhs, LOGOUT_CLOSED);
	conn->end_why = "logged out";
	iscsi_conn_flush(conn);
}

static void connection_logout(struct iscsi_conn *conn, struct iscsi_conn *via, const uint8_t *bhs)
{
	memcpy(conn->logout_bhs, bhs, BHS_BYTES);
	conn->logout_via = via;
	conn->state = CONN_LOGOUT;
	if (conn->command_count == 0)
		connection_finish(conn);
	else
		abort_waiting(conn); /* the last one to go finishes the logout */
}

/* ---- the session ---- */

static bool session_is_quiet(const struct iscsi_session *session)
{
	return TAILQ_EMPTY(&session->held) && TAILQ_EMPTY(&session->commands);
}

static void session_finish(struct iscsi_session *session)
{
	struct iscsi_conn *asked = session->logout, *conn;

	session->logout = NULL;
	logout_answer(asked, asked->logout_bhs, LOGOUT_CLOSED);
	for (conn = TAILQ_FIRST(&session->server->conns); conn; conn = TAILQ_NEXT(conn, entry)) {
		if (is_alive_in(conn, session)) {
			conn->end_why = "logged out";
			iscsi_conn_flush(conn);
		}
	}
}

static void session_logout(struct iscsi_conn *asked, const uint8_t *bhs)
{
	struct iscsi_session *session = asked->session;
	struct iscsi_conn *conn;

	memcpy(asked->logout_bhs, bhs, BHS_BYTES);
	session->ending = true; /* nobody joins any more */
	for (conn = TAILQ_FIRST(&session->server->conns); conn; conn = TAILQ_NEXT(conn, entry)) {
		if (is_alive_in(conn, session)) {
			conn->state = CONN_LOGOUT;
			conn->logout_via = NULL;
		}
	}
	for (conn = TAILQ_FIRST(&session->server->conns); conn; conn = TAILQ_NEXT(conn, entry)) {
		if (is_alive_in(conn, session))
			abort_waiting(conn);
	}
	session->logout = asked;
	if (session_is_quiet(session))
		session_finish(session);
}

void iscsi_logout_settle(struct iscsi_conn *conn)
{
	struct iscsi_session *session = conn->session;

	if (session && session->logout) {
		if (session_is_quiet(session))
			session_finish(session);
	} else if (conn->state == CONN_LOGOUT && !(session && session->ending)) {
		connection_finish(conn);
	}
}

void iscsi_logout_lost(struct iscsi_conn *conn)
{
	struct iscsi_session *session = conn->session;
	struct iscsi_conn *via = conn->logout_via, *other;
	bool orphans = session && session->logout == conn;

	if (!session)
		return;
	conn->logout_via = NULL;
	if (via && via != conn)
		logout_answer(via, conn->logout_bhs, LOGOUT_CLOSED);
	if (orphans)
		session->logout = NULL;
	for (other = TAILQ_FIRST(&session->server->conns); other;
	     other = TAILQ_NEXT(other, entry)) {
		if (other->session != session || other == conn)
			continue;
		if (other->logout_via == conn)
			other->logout_via = NULL;
		if (orphans) {
			other->failed = true;
			loop_task_queue(session->server->loop, &session->server->reap);
		}
	}
}

void iscsi_logout_request(struct iscsi_conn *conn, const uint8_t *bhs)
{
	unsigned reason = bhs[BHS_FLAGS] & 0x7f;
	struct iscsi_conn *leaving;

	iscsi_witness_note(conn, SIGHT_LOGOUT, "reason %u", reason);
	switch (reason) {
	case LOGOUT_SESSION:
		session_logout(conn, bhs);
		break;
	case LOGOUT_CONNECTION:
		leaving = iscsi_session_find_cid(conn->session, get_be16(bhs + BHS_CID));
		if (leaving && leaving->state == CONN_FULL)
			connection_logout(leaving, conn, bhs);
		else
			logout_answer(conn, bhs, LOGOUT_NO_CID);
		break;
	case LOGOUT_RECOVERY:
		logout_answer(conn, bhs, LOGOUT_NO_RECOVERY);
		break;
	default:
		iscsi_conn_reject(conn, bhs, REJECT_INVALID_FIELD);
		break;
	}
}
