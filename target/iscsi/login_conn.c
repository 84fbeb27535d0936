/* SPDX-License-Identifier: MIT
 *
 * The login machine on a connection: admission, redirection, reinstatement, and the step into the
 * full feature phase.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "target/iscsi/conn.h"

/* A login that names a TSIH must mean a session that is there, and its own. */
static struct iscsi_session *named_session(const struct iscsi_conn *conn,
					   const struct iscsi_login *login)
{
	const struct iscsi_negotiation *negotiation = &login->negotiation;
	struct iscsi_session *session = iscsi_session_find_tsih(conn->server, login->tsih);

	if (!session || !session->target || session->ending || negotiation->discovery ||
	    iscsi_session_connections(session) == 0)
		return NULL;
	if (strcmp(session->initiator_name, negotiation->initiator_name) != 0 ||
	    memcmp(session->isid, login->isid, sizeof session->isid) != 0 ||
	    strcmp(scsi_target_name(session->target), negotiation->target_name) != 0 ||
	    session->portal->config.group_tag != conn->portal->config.group_tag)
		return NULL;
	return session;
}

static enum iscsi_login_status redirect(struct iscsi_conn *conn, char address[LOGIN_ADDRESS_BYTES])
{
	struct iscsi_server *server = conn->server;
	struct iscsi_portal *member = iscsi_server_pick_member(server, conn->portal);
	uint64_t now_ns = loop_now_ns(server->loop);

	if (!member)
		return LOGIN_SERVICE_UNAVAILABLE;
	if (now_ns >= member->promised_until_ns)
		member->promised = 0;
	member->promised++;
	member->promised_until_ns = now_ns + ISCSI_REDIRECT_NS;
	iscsi_portal_address(member, conn->local_host, address, LOGIN_ADDRESS_BYTES);
	conn->portal->counters.redirects++;
	return LOGIN_MOVED_TEMPORARILY;
}

struct access_peer iscsi_conn_peer(const struct iscsi_conn *conn)
{
	struct access_peer peer = {
	    .initiator_name = conn->initiator_name,
	    .user = conn->user[0] ? conn->user : NULL,
	    .user_matters = conn->user[0] || conn->login_env.auth_required,
	};

	memcpy(peer.address, conn->peer, sizeof peer.address);
	return peer;
}

/* What the rules say of a normal session; before authentication the user does not matter. */
static enum iscsi_login_status access_check(const struct iscsi_conn *conn,
					    const struct iscsi_login *login, bool user_matters)
{
	struct access_peer peer = iscsi_conn_peer(conn);

	peer.user_matters = user_matters;
	switch (iscsi_access_check(
	    conn->server->security.access,
	    iscsi_server_find_target(conn->server, login->negotiation.target_name), &peer)) {
	case ACCESS_ALLOWED:
		break;
	case ACCESS_WRONG_INITIATOR:
		return LOGIN_NOT_AUTHORISED;
	case ACCESS_WRONG_USER:
		return LOGIN_AUTHENTICATION_FAILED;
	}
	return LOGIN_SUCCESS;
}

static enum iscsi_login_status admit_normal(struct iscsi_conn *conn,
					    const struct iscsi_login *login,
					    char address[LOGIN_ADDRESS_BYTES])
{
	enum iscsi_login_status status;

	if (!iscsi_server_find_target(conn->server, login->negotiation.target_name))
		return LOGIN_NOT_FOUND;
	status = access_check(conn, login, false);
	if (status != LOGIN_SUCCESS)
		return status;
	if (conn->portal->config.redirects || conn->portal->draining)
		return redirect(conn, address);
	return LOGIN_SUCCESS;
}

static enum iscsi_login_status admit(void *arg, const struct iscsi_login *login,
				     char address[LOGIN_ADDRESS_BYTES])
{
	struct iscsi_conn *conn = arg;
	const struct iscsi_negotiation *negotiation = &login->negotiation;
	const struct iscsi_security *security = &conn->server->security;
	enum iscsi_login_status status = LOGIN_SUCCESS;

	memcpy(conn->initiator_name, negotiation->initiator_name, sizeof conn->initiator_name);
	conn->login_env.auth_required =
	    security->secrets && (!negotiation->discovery || security->chap_discovery);
	if (!negotiation->discovery)
		status = admit_normal(conn, login, address);
	if (status != LOGIN_SUCCESS)
		return status;
	if (login->tsih != 0)
		return named_session(conn, login) ? LOGIN_SUCCESS : LOGIN_NO_SUCH_SESSION;
	if (conn->server->session_count >= ISCSI_MAX_SESSIONS)
		return LOGIN_OUT_OF_RESOURCES;
	return LOGIN_SUCCESS;
}

/* Authentication is over: is this user one that the target is for? */
static enum iscsi_login_status authorise(void *arg, const struct iscsi_login *login)
{
	struct iscsi_conn *conn = arg;
	const char *user = iscsi_login_user(login);

	snprintf(conn->user, sizeof conn->user, "%s", user ? user : "");
	return login->negotiation.discovery ? LOGIN_SUCCESS : access_check(conn, login, true);
}

void iscsi_conn_login_init(struct iscsi_conn *conn)
{
	struct iscsi_server *server = conn->server;

	conn->login_env = (struct iscsi_login_env){
	    .arg = conn,
	    .group_tag = conn->portal->config.group_tag,
	    .auth_required = server->security.secrets,
	    .chap = server->security.secrets ? &server->chap : NULL,
	    .admit = admit,
	    .authorise = authorise,
	};
	iscsi_login_init(conn->login, &conn->login_env);
}

static void answer_send(struct iscsi_conn *conn, const uint8_t *answer, const char *text,
			uint32_t text_bytes)
{
	struct iscsi_tx_item *item = iscsi_conn_item(conn);
	uint32_t cmd_sn = conn->login->cmd_sn;

	if (!item)
		return;
	memcpy(item->bhs, answer, BHS_BYTES);
	put_be32(item->bhs + BHS_EXP_CMD_SN, cmd_sn);
	put_be32(item->bhs + BHS_MAX_CMD_SN, cmd_sn + ISCSI_WINDOW - 1);
	if (text_bytes > 0) {
		item->buf = buf_new(conn->server->pool, text_bytes);
		if (item->buf) {
			memcpy(item->buf->data, text, text_bytes);
			item->data = item->buf->data;
			item->data_bytes = text_bytes;
		} else {
			conn->failed = true;
			loop_task_queue(conn->server->loop, &conn->server->reap);
		}
	}
	iscsi_conn_push(conn, item, true);
}

static void refused(struct iscsi_conn *conn, const uint8_t *answer, const char *text,
		    uint32_t text_bytes)
{
	unsigned status = get_be16(answer + BHS_STATUS_CLASS);

	iscsi_witness_note(conn, status >> 8 == 1 ? SIGHT_REDIRECTED : SIGHT_LOGIN_REFUSED,
			   "login status %04x", status);
	if (status >> 8 != 1) {
		conn->portal->counters.login_failures++;
		log_debug("login of %s refused, status %04x", conn->initiator_name, status);
	}
	answer_send(conn, answer, text, text_bytes);
	iscsi_conn_flush(conn);
}

void iscsi_conn_login_refuse(struct iscsi_conn *conn, enum iscsi_login_status status)
{
	uint8_t answer[BHS_BYTES];

	conn->login->tsih = 0;
	iscsi_login_refuse(conn->login, status, answer);
	refused(conn, answer, NULL, 0);
}

void iscsi_conn_login_begin(struct iscsi_conn *conn, const uint8_t *bhs)
{
	uint32_t data_bytes = bhs_data_bytes(bhs);

	if (bhs_opcode(bhs) != OP_LOGIN) {
		conn->portal->counters.protocol_errors++;
		if (conn->login->started)
			iscsi_conn_login_refuse(conn, LOGIN_INVALID_DURING_LOGIN);
		else
			iscsi_conn_kill(conn);
		return;
	}
	conn->rx.to = iscsi_login_room(conn->login, data_bytes);
	if (!conn->rx.to) {
		iscsi_conn_login_refuse(conn, LOGIN_INITIATOR_ERROR);
		return;
	}
	conn->rx.to_bytes = data_bytes;
	conn->rx.action = RX_LOGIN;
}

/* Waits until SESSION has gone (or, with ANCESTOR, until that connection of it has). */
static void wait_for(struct iscsi_conn *conn, struct iscsi_session *session,
		     struct iscsi_conn *ancestor)
{
	struct iscsi_conn *other = ancestor ? ancestor->heir : session->successor;

	if (other) /* an even newer login takes the place of one that still waits */
		iscsi_conn_kill(other);
	conn->login_waiting = true;
	conn->waits_for = session;
	conn->ancestor = ancestor;
	if (ancestor)
		ancestor->heir = conn;
	else
		session->successor = conn;
}

/* One more connection, or one in place of another (RFC 7143 6.3.4). */
static void join(struct iscsi_conn *conn, struct iscsi_session *session)
{
	struct iscsi_conn *old = iscsi_session_find_cid(session, conn->login->cid);

	if (!iscsi_session_fits(session, conn)) {
		iscsi_conn_login_refuse(conn, LOGIN_CANNOT_INCLUDE);
	} else if (old) {
		wait_for(conn, session, old);
		iscsi_conn_kill(old);
		loop_task_queue(conn->server->loop, &conn->server->reap);
	} else if (iscsi_session_connections(session) >= session->params.max_connections) {
		iscsi_conn_login_refuse(conn, LOGIN_TOO_MANY_CONNECTIONS);
	} else {
		iscsi_conn_login_finish(conn, session);
	}
}

/* The initiator has said all it has to: now for the session. */
static void login_commit(struct iscsi_conn *conn)
{
	struct iscsi_login *login = conn->login;
	struct iscsi_session *old = NULL;

	if (login->tsih != 0) {
		old = named_session(conn, login);
		if (old)
			join(conn, old);
		else
			iscsi_conn_login_refuse(conn, LOGIN_NO_SUCH_SESSION);
		return;
	}
	if (!login->negotiation.discovery)
		old = iscsi_session_find(
		    conn->server, login->negotiation.initiator_name, login->isid,
		    iscsi_server_find_target(conn->server, login->negotiation.target_name),
		    conn->portal->config.group_tag);
	if (!old) {
		iscsi_conn_login_finish(conn, NULL);
		return;
	}
	wait_for(conn, old, NULL);
	iscsi_session_end(old);
}

void iscsi_conn_login_end(struct iscsi_conn *conn, const uint8_t *bhs)
{
	uint8_t answer[BHS_BYTES];
	const char *text;
	uint32_t text_bytes;

	if (!conn->login)
		return;
	switch (iscsi_login_request(conn->login, bhs, answer, &text, &text_bytes)) {
	case LOGIN_CONTINUE:
		answer_send(conn, answer, text, text_bytes);
		break;
	case LOGIN_REFUSED:
		refused(conn, answer, text, text_bytes);
		break;
	case LOGIN_COMPLETE:
		memcpy(conn->login_answer, answer, BHS_BYTES);
		conn->login_text = text;
		conn->login_text_bytes = text_bytes;
		login_commit(conn);
		break;
	}
}

/* What the first connection has settled counts for all; digests and lengths are each one's own. */
static void take_session_params(struct iscsi_conn *conn, const struct iscsi_params *settled)
{
	struct iscsi_params own = conn->params;

	conn->params = *settled;
	conn->params.header_digest = own.header_digest;
	conn->params.data_digest = own.data_digest;
	conn->params.max_send_bytes = own.max_send_bytes;
	conn->params.max_recv_bytes = own.max_recv_bytes;
}

void iscsi_conn_login_finish(struct iscsi_conn *conn, struct iscsi_session *joined)
{
	struct iscsi_session *session = joined;
	bool reinstates = conn->login_waiting && !joined;

	conn->login_waiting = false;
	conn->waits_for = NULL;
	conn->params = conn->login->negotiation.params;
	conn->cid = conn->login->cid;
	if (!session && iscsi_session_new(conn, &session) < 0) {
		iscsi_conn_login_refuse(conn, LOGIN_OUT_OF_RESOURCES);
		return;
	}
	if (joined)
		take_session_params(conn, &session->params);
	conn->session = session;
	session->conn_count++;
	put_be16(conn->login_answer + BHS_TSIH, session->tsih);
	conn->tx.window = &session->window;
	answer_send(conn, conn->login_answer, conn->login_text, conn->login_text_bytes);
	iscsi_tx_set_digests(&conn->tx, conn->params.header_digest, conn->params.data_digest);
	conn->rx.header_digest = conn->params.header_digest;
	conn->rx.data_digest = conn->params.data_digest;
	conn->state = CONN_FULL;
	free(conn->login);
	conn->login = NULL;
	conn->portal->counters.logins++;
	iscsi_witness_note(conn, reinstates ? SIGHT_REINSTATED : SIGHT_LOGIN, "TSIH %04x CID %u",
			   session->tsih, conn->cid);
	loop_timer_set(conn->server->loop, &conn->timer,
		       loop_now_ns(conn->server->loop) + ISCSI_PING_NS);
	iscsi_conn_wake(conn);
}
