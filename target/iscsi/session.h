/* SPDX-License-Identifier: MIT
 *
 * A session: the I_T nexus, its command window, its tasks by tag, and the connections that carry
 * it (up to ISCSI_MAX_SESSION_CONNECTIONS, as negotiated by the first).
 *
 * Commands are numbered over all connections and run in that order; each is answered on its own.
 * A connection that is lost takes its own tasks with it and leaves the others alone.
 *
 * Life: made when a login completes; ends when its last connection is gone, its last task has
 * ended and no task management function is under way.  A login with the same identity ends the
 * old session first and waits as its successor (RFC 7143 6.3.5).  A login with the session's TSIH
 * joins it; when it names a CID that is there, that connection goes first and the login waits as
 * its heir (6.3.4).
 */
#ifndef SANLAB_TARGET_ISCSI_SESSION_H
#define SANLAB_TARGET_ISCSI_SESSION_H

#include "target/iscsi/params.h"
#include "target/iscsi/server.h"
#include "target/iscsi/window.h"

enum { SESSION_HASH_BITS = 8, SESSION_HASH_SIZE = 1 << SESSION_HASH_BITS };

LIST_HEAD(iscsi_command_bucket, iscsi_command);
TAILQ_HEAD(iscsi_command_list, iscsi_command);

/* One task management function that waits for tasks to end. */
struct iscsi_tmf {
	struct iscsi_session *session;
	struct iscsi_conn *conn; /* where the answer goes; NULL: connection gone */
	uint8_t bhs[BHS_BYTES];	 /* the request */
	unsigned pending;
	struct loop_timer drain; /* see ISCSI_DRAIN_NS */
	bool busy;
	bool failed;
	bool drops; /* a cold reset: all sessions of the target go when it is done */
};

struct iscsi_session {
	struct iscsi_server *server;
	struct iscsi_portal *portal;
	TAILQ_ENTRY(iscsi_session) entry;
	struct scsi_target *target; /* NULL: discovery */
	struct scsi_nexus *nexus;
	char initiator_name[ISCSI_NAME_BYTES];
	char user[CHAP_USER_BYTES];	   /* as the first connection has proved; empty: nobody */
	uint8_t hidden[SCSI_MAX_LUNS / 8]; /* logical units that are not for it */
	uint8_t isid[6];
	uint16_t tsih;
	struct iscsi_params params;
	struct iscsi_window window;
	unsigned immediate_count;
	unsigned conn_count;
	struct iscsi_command_list held;	    /* came before their turn, by CmdSN */
	struct iscsi_command_list commands; /* all SCSI tasks that are not held */
	struct iscsi_command_bucket by_itt[SESSION_HASH_SIZE];
	struct iscsi_tmf tmf[ISCSI_TMF_SLOTS];
	unsigned tmf_busy;
	bool ending;
	struct iscsi_conn *successor;
	struct iscsi_conn *logout; /* answers when all tasks of the session have ended */
	uint64_t since_ns;
	uint64_t ios; /* READs and WRITEs that ended well */
};

/* Looks for the session a normal login reinstates. */
struct iscsi_session *iscsi_session_find(struct iscsi_server *server, const char *initiator_name,
					 const uint8_t isid[6], const struct scsi_target *target,
					 uint16_t group_tag);
struct iscsi_session *iscsi_session_find_tsih(struct iscsi_server *server, uint16_t tsih);
/* Connections that carry it now; dead ones whose tasks are still ending do not. */
unsigned iscsi_session_connections(const struct iscsi_session *session);
/* The connection CID, also one that is dead but still has tasks; NULL: none. */
struct iscsi_conn *iscsi_session_find_cid(const struct iscsi_session *session, uint16_t cid);
/* May CONN, whose login is complete, carry it?  It must be the same user with the same rights. */
bool iscsi_session_fits(const struct iscsi_session *session, const struct iscsi_conn *conn);
/* Makes the session of CONN, whose login is complete.  -ENOMEM, -ENOSPC: too many sessions. */
int iscsi_session_new(struct iscsi_conn *conn, struct iscsi_session **ret_session);
/* Closes all its connections; it goes away when its tasks have ended. */
void iscsi_session_end(struct iscsi_session *session);
/* A connection has gone, or a task management function has ended: frees the session when it was
 * the last thing; true then.  A waiting login goes on. */
bool iscsi_session_settle(struct iscsi_session *session);

struct iscsi_command *iscsi_session_find_command(struct iscsi_session *session, uint32_t itt);
void iscsi_session_hash(struct iscsi_session *session, struct iscsi_command *command);
/* Puts a held command in its place; false: that CmdSN is held already. */
bool iscsi_session_hold(struct iscsi_session *session, struct iscsi_command *command);
/* The next held command whose turn has come and whose PDU is complete, or NULL. */
struct iscsi_command *iscsi_session_next_held(struct iscsi_session *session);
/* Runs what was held for an earlier CmdSN, whichever connection it came by. */
void iscsi_session_run_held(struct iscsi_session *session);

#endif
