/* SPDX-License-Identifier: MIT
 *
 * Sessions: the table by identity, tasks by tag, held commands by number, and their end.
 */
#include "target/iscsi/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "target/iscsi/conn.h"

struct iscsi_session *iscsi_session_find(struct iscsi_server *server, const char *initiator_name,
					 const uint8_t isid[6], const struct scsi_target *target,
					 uint16_t group_tag)
{
	struct iscsi_session *session;

	for (session = TAILQ_FIRST(&server->sessions); session;
	     session = TAILQ_NEXT(session, entry)) {
		if (session->target == target && session->portal->config.group_tag == group_tag &&
		    memcmp(session->isid, isid, sizeof session->isid) == 0 &&
		    strcmp(session->initiator_name, initiator_name) == 0)
			return session;
	}
	return NULL;
}

struct iscsi_session *iscsi_session_find_tsih(struct iscsi_server *server, uint16_t tsih)
{
	struct iscsi_session *session;

	for (session = TAILQ_FIRST(&server->sessions); session;
	     session = TAILQ_NEXT(session, entry)) {
		if (session->tsih == tsih)
			return session;
	}
	return NULL;
}

static uint16_t tsih_new(struct iscsi_server *server)
{
	do {
		if (++server->next_tsih == 0)
			server->next_tsih = 1;
	} while (iscsi_session_find_tsih(server, server->next_tsih));
	return server->next_tsih;
}

/* Logical units that the access rules do not open to CONN, a bit each. */
static void find_hidden(const struct iscsi_conn *conn, const struct scsi_target *target,
			uint8_t hidden[SCSI_MAX_LUNS / 8])
{
	const struct iscsi_access *access = conn->server->security.access;
	struct access_peer peer = iscsi_conn_peer(conn);

	memset(hidden, 0, SCSI_MAX_LUNS / 8);
	for (unsigned lun = 0; access && lun < SCSI_MAX_LUNS; lun++) {
		if (iscsi_access_check_lun(access, target, lun, &peer) != ACCESS_ALLOWED)
			hidden[lun / 8] |= (uint8_t)(1U << lun % 8);
	}
}

static void hide_luns(const struct iscsi_conn *conn, struct iscsi_session *session)
{
	find_hidden(conn, session->target, session->hidden);
	for (unsigned lun = 0; lun < SCSI_MAX_LUNS; lun++) {
		if (session->hidden[lun / 8] >> lun % 8 & 1)
			scsi_nexus_hide(session->nexus, lun);
	}
}

bool iscsi_session_fits(const struct iscsi_session *session, const struct iscsi_conn *conn)
{
	uint8_t hidden[SCSI_MAX_LUNS / 8];

	find_hidden(conn, session->target, hidden);
	return strcmp(session->user, conn->user) == 0 &&
	       memcmp(session->hidden, hidden, sizeof hidden) == 0;
}

int iscsi_session_new(struct iscsi_conn *conn, struct iscsi_session **ret_session)
{
	struct iscsi_server *server = conn->server;
	const struct iscsi_login *login = conn->login;
	const struct iscsi_negotiation *negotiation = &login->negotiation;
	struct iscsi_session *session;

	if (server->session_count >= ISCSI_MAX_SESSIONS)
		return -ENOSPC;
	session = calloc(1, sizeof *session);
	if (!session)
		return -ENOMEM;
	session->server = server;
	session->portal = conn->portal;
	memcpy(session->initiator_name, negotiation->initiator_name,
	       sizeof session->initiator_name);
	memcpy(session->user, conn->user, sizeof session->user);
	memcpy(session->isid, login->isid, sizeof session->isid);
	session->params = negotiation->params;
	iscsi_window_init(&session->window, login->cmd_sn, ISCSI_WINDOW);
	TAILQ_INIT(&session->held);
	TAILQ_INIT(&session->commands);
	if (!negotiation->discovery) {
		session->target = iscsi_server_find_target(server, negotiation->target_name);
		session->nexus = scsi_nexus_new(
		    session->target, session->initiator_name, session->isid,
		    conn->portal->config.target_port_group, conn->portal->config.group_tag);
		if (!session->nexus) {
			free(session);
			return -ENOMEM;
		}
		hide_luns(conn, session);
	}
	session->tsih = tsih_new(server);
	session->since_ns = loop_now_ns(server->loop);
	TAILQ_INSERT_TAIL(&server->sessions, session, entry);
	server->session_count++;
	*ret_session = session;
	return 0;
}

unsigned iscsi_session_connections(const struct iscsi_session *session)
{
	const struct iscsi_conn *conn;
	unsigned count = 0;

	for (conn = TAILQ_FIRST(&session->server->conns); conn; conn = TAILQ_NEXT(conn, entry))
		count += conn->session == session;
	return count;
}

static struct iscsi_conn *find_cid(const struct iscsi_conn_list *list,
				   const struct iscsi_session *session, uint16_t cid)
{
	struct iscsi_conn *conn;

	for (conn = TAILQ_FIRST(list); conn; conn = TAILQ_NEXT(conn, entry)) {
		if (conn->session == session && conn->cid == cid)
			return conn;
	}
	return NULL;
}

struct iscsi_conn *iscsi_session_find_cid(const struct iscsi_session *session, uint16_t cid)
{
	struct iscsi_conn *conn = find_cid(&session->server->conns, session, cid);

	return conn ? conn : find_cid(&session->server->dead, session, cid);
}

void iscsi_session_end(struct iscsi_session *session)
{
	struct iscsi_conn *conn, *next;

	session->ending = true;
	for (conn = TAILQ_FIRST(&session->server->conns); conn; conn = next) {
		next = TAILQ_NEXT(conn, entry);
		if (conn->session == session || (conn->ancestor && conn->waits_for == session)) {
			conn->end_why = "reinstated by a new login";
			iscsi_conn_kill(conn);
		}
	}
}

bool iscsi_session_settle(struct iscsi_session *session)
{
	struct iscsi_server *server = session->server;
	struct iscsi_conn *successor;

	if (session->conn_count > 0 || session->tmf_busy > 0 || !TAILQ_EMPTY(&session->commands))
		return false;
	successor = session->successor;
	TAILQ_REMOVE(&server->sessions, session, entry);
	server->session_count--;
	scsi_nexus_free(session->nexus);
	free(session);
	if (successor)
		iscsi_conn_login_finish(successor, NULL);
	return true;
}

/* ---- tasks ---- */

static struct iscsi_command_bucket *bucket_of(struct iscsi_session *session, uint32_t itt)
{
	/* Initiators count tags up, or count in the upper bits: multiply, take the top. */
	return &session->by_itt[itt * UINT32_C(2654435769) >> (32 - SESSION_HASH_BITS)];
}

struct iscsi_command *iscsi_session_find_command(struct iscsi_session *session, uint32_t itt)
{
	struct iscsi_command *command;

	for (command = LIST_FIRST(bucket_of(session, itt)); command;
	     command = LIST_NEXT(command, hash)) {
		if (command->itt == itt)
			return command;
	}
	return NULL;
}

void iscsi_session_hash(struct iscsi_session *session, struct iscsi_command *command)
{
	LIST_INSERT_HEAD(bucket_of(session, command->itt), command, hash);
	command->hashed = true;
}

bool iscsi_session_hold(struct iscsi_session *session, struct iscsi_command *command)
{
	struct iscsi_command *before;

	/* Mostly the newest comes last. */
	for (before = TAILQ_LAST(&session->held, iscsi_command_list); before;
	     before = TAILQ_PREV(before, iscsi_command_list, entry)) {
		if (before->cmd_sn == command->cmd_sn)
			return false;
		if (serial_less(before->cmd_sn, command->cmd_sn))
			break;
	}
	if (before)
		TAILQ_INSERT_AFTER(&session->held, before, command, entry);
	else
		TAILQ_INSERT_HEAD(&session->held, command, entry);
	return true;
}

struct iscsi_command *iscsi_session_next_held(struct iscsi_session *session)
{
	struct iscsi_command *first = TAILQ_FIRST(&session->held);

	if (!first || first->cmd_sn != session->window.exp_cmd_sn || first->receiving)
		return NULL;
	return first;
}

void iscsi_session_run_held(struct iscsi_session *session)
{
	struct iscsi_command *command;

	while (!session->ending && (command = iscsi_session_next_held(session))) {
		struct iscsi_conn *from = command->conn;
		uint8_t bhs[BHS_BYTES];
		struct buf *data;

		if (!command->cancelled && bhs_opcode(command->bhs) == OP_SCSI_COMMAND) {
			iscsi_command_release(command);
			continue;
		}
		iscsi_window_advance(&session->window, false);
		if (command->cancelled) {
			iscsi_command_finish(command);
			continue;
		}
		memcpy(bhs, command->bhs, BHS_BYTES);
		data = command->buf;
		command->buf = NULL;
		iscsi_command_finish(command);
		iscsi_control_run(from, bhs, data);
	}
}
