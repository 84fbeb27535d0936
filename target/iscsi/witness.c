/* SPDX-License-Identifier: MIT
 *
 * The list of sights.
 */
#include "target/iscsi/witness.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "target/iscsi/conn.h"

enum { MERGE_AMONG = 16 };	/* the latest sights that one which repeats may count up */
#define MERGE_NS (2 * NS_PER_S) /* ... when they are no older */

const char *const iscsi_sight_names[] = {
    [SIGHT_LOGIN] = "login",
    [SIGHT_REINSTATED] = "reinstated",
    [SIGHT_LOGIN_REFUSED] = "login-refused",
    [SIGHT_REDIRECTED] = "redirected",
    [SIGHT_LOGOUT] = "logout",
    [SIGHT_ENDED] = "ended",
    [SIGHT_TASK_MANAGEMENT] = "task-management",
    [SIGHT_ATTENTION] = "unit-attention",
    [SIGHT_CHECK] = "check-condition",
    [SIGHT_STATUS] = "status",
    [SIGHT_ALUA_ASKED] = "alua-asked",
    [SIGHT_ALUA_SET] = "alua-set",
    NULL,
};

struct iscsi_witness {
	struct iscsi_sight sights[ISCSI_SIGHTS];
	uint64_t last; /* number of the newest; it stands at last % ISCSI_SIGHTS */
};

static struct iscsi_sight *sight_at(struct iscsi_witness *witness, uint64_t number)
{
	return &witness->sights[number % ISCSI_SIGHTS];
}

static bool repeats(const struct iscsi_sight *old, const struct iscsi_sight *new)
{
	return old->kind ==
		   new->kind &&new->first_ns - old->last_ns <=
		       MERGE_NS &&memcmp(old->isid, new->isid, sizeof old->isid) ==
		   0 &&
	       strcmp(old->text, new->text) == 0 && strcmp(old->portal, new->portal) == 0 &&
	       strcmp(old->initiator, new->initiator) == 0 && strcmp(old->target, new->target) == 0;
}

static void keep(struct iscsi_witness *witness, const struct iscsi_sight *sight)
{
	uint64_t oldest = witness->last - MIN_OF(witness->last, MERGE_AMONG);

	for (uint64_t number = witness->last; number > oldest; number--) {
		struct iscsi_sight *old = sight_at(witness, number);

		if (!repeats(old, sight))
			continue;
		old->count++;
		old->last_ns = sight->last_ns;
		return;
	}
	witness->last++;
	*sight_at(witness, witness->last) = *sight;
	sight_at(witness, witness->last)->number = witness->last;
}

void iscsi_witness_note(struct iscsi_conn *conn, enum iscsi_sight_kind kind, const char *format,
			...)
{
	struct iscsi_server *server = conn->server;
	uint64_t now_ns = loop_now_ns(server->loop);
	struct iscsi_sight sight = {
	    .kind = kind, .first_ns = now_ns, .last_ns = now_ns, .count = 1};
	va_list args;

	if (!server->witness || (conn->session && !conn->session->target))
		return; /* discovery is nobody's path */
	snprintf(sight.initiator, sizeof sight.initiator, "%s", conn->initiator_name);
	snprintf(sight.portal, sizeof sight.portal, "%s", conn->portal->config.address.text);
	if (conn->session) {
		snprintf(sight.target, sizeof sight.target, "%s",
			 scsi_target_name(conn->session->target));
		memcpy(sight.isid, conn->session->isid, sizeof sight.isid);
	} else if (conn->login) {
		memcpy(sight.isid, conn->login->isid, sizeof sight.isid);
	}
	va_start(args, format);
	vsnprintf(sight.text, sizeof sight.text, format, args);
	va_end(args);
	keep(server->witness, &sight);
}

/* ---- answers ---- */

static const char *status_name(uint8_t status)
{
	switch ((enum scsi_status)status) {
	case SCSI_BUSY:
		return "BUSY";
	case SCSI_RESERVATION_CONFLICT:
		return "RESERVATION CONFLICT";
	case SCSI_TASK_SET_FULL:
		return "TASK SET FULL";
	case SCSI_TASK_ABORTED:
		return "TASK ABORTED";
	case SCSI_GOOD:
	case SCSI_CHECK_CONDITION:
		break; /* not asked for */
	}
	return "another status";
}

static void note_sense(struct iscsi_conn *conn, const struct scsi_task *task)
{
	enum { KEY_ILLEGAL_REQUEST = 5, KEY_UNIT_ATTENTION = 6 };
	bool descriptors = (task->sense[0] & 0x7f) >= 0x72;
	unsigned key = task->sense[descriptors ? 1 : 2] & 0x0f;
	unsigned asc = task->sense[descriptors ? 2 : 12], ascq = task->sense[descriptors ? 3 : 13];

	/* Initiators try what a unit may not know; only a unit that is not there says something
	 * about a path. */
	if (key == KEY_ILLEGAL_REQUEST && asc != 0x25)
		return;
	iscsi_witness_note(conn, key == KEY_UNIT_ATTENTION ? SIGHT_ATTENTION : SIGHT_CHECK,
			   "%x/%02x/%02x", key, asc, ascq);
}

void iscsi_witness_answer(const struct iscsi_command *command)
{
	enum { MAINTENANCE_IN = 0xa3, MAINTENANCE_OUT = 0xa4, TARGET_PORT_GROUPS = 0x0a };
	const struct scsi_task *task = &command->task;
	struct iscsi_conn *conn = command->conn;

	if (task->status == SCSI_CHECK_CONDITION)
		note_sense(conn, task);
	else if (task->status != SCSI_GOOD)
		iscsi_witness_note(conn, SIGHT_STATUS, "%s", status_name(task->status));
	else if ((task->cdb[1] & 0x1f) != TARGET_PORT_GROUPS)
		return;
	else if (task->cdb[0] == MAINTENANCE_IN)
		iscsi_witness_note(conn, SIGHT_ALUA_ASKED, "REPORT TARGET PORT GROUPS");
	else if (task->cdb[0] == MAINTENANCE_OUT)
		iscsi_witness_note(conn, SIGHT_ALUA_SET, "SET TARGET PORT GROUPS");
}

/* ---- life and questions ---- */

int iscsi_witness_open(struct iscsi_server *server)
{
	server->witness = calloc(1, sizeof *server->witness);
	return server->witness ? 0 : -ENOMEM;
}

void iscsi_witness_close(struct iscsi_server *server)
{
	free(server->witness);
	server->witness = NULL;
}

const struct iscsi_sight *iscsi_witness_next(const struct iscsi_server *server, uint64_t after)
{
	struct iscsi_witness *witness = server->witness;
	uint64_t number;

	if (!witness || after >= witness->last)
		return NULL;
	number = after + 1;
	if (witness->last > ISCSI_SIGHTS)
		number = MAX_OF(number, witness->last - ISCSI_SIGHTS + 1);
	return sight_at(witness, number);
}

bool iscsi_server_session(const struct iscsi_server *server, size_t index,
			  struct iscsi_session_info *ret_info)
{
	const struct iscsi_session *session = TAILQ_FIRST(&server->sessions);

	while (session && index-- > 0)
		session = TAILQ_NEXT(session, entry);
	if (!session)
		return false;
	*ret_info = (struct iscsi_session_info){
	    .initiator = session->initiator_name,
	    .target = session->target ? scsi_target_name(session->target) : NULL,
	    .portal = session->portal->config.address.text,
	    .isid = session->isid,
	    .tsih = session->tsih,
	    .connections = iscsi_session_connections(session),
	    .since_ns = session->since_ns,
	    .ios = session->ios,
	};
	return true;
}
