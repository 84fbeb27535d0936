/* SPDX-License-Identifier: MIT
 *
 * The witness: what the target has seen of its initiators that matters when paths fail over: who
 * logged in where, how connections ended, what was aborted or reset, which answers were not GOOD
 * and who asked for access states.  It is how somebody
 * else's initiator is judged, which tells nothing itself.
 *
 * A list of the latest ISCSI_SIGHTS sights; one that repeats soon counts up instead.  Numbers are
 * given in order and never reused, so a reader asks for what is newer than what it has.
 *
 * Cost: nothing for an I/O that ends well but one count in its session.
 */
#ifndef SANLAB_TARGET_ISCSI_WITNESS_H
#define SANLAB_TARGET_ISCSI_WITNESS_H

#include "target/iscsi/iscsi.h"
#include "target/iscsi/params.h"

enum { ISCSI_SIGHTS = 512 };

enum iscsi_sight_kind {
	SIGHT_LOGIN,	       /* a normal session is there */
	SIGHT_REINSTATED,      /* ... in place of an older one of the same I_T nexus */
	SIGHT_LOGIN_REFUSED,   /* with the status class and detail */
	SIGHT_REDIRECTED,      /* sent to another portal */
	SIGHT_LOGOUT,	       /* asked for */
	SIGHT_ENDED,	       /* the connection of a session is gone: how */
	SIGHT_TASK_MANAGEMENT, /* which function */
	SIGHT_ATTENTION,       /* unit attention reported */
	SIGHT_CHECK,	       /* other sense data */
	SIGHT_STATUS,	       /* BUSY, TASK SET FULL, RESERVATION CONFLICT, TASK ABORTED */
	SIGHT_ALUA_ASKED,      /* REPORT TARGET PORT GROUPS */
	SIGHT_ALUA_SET,	       /* SET TARGET PORT GROUPS */
	SIGHT_KINDS,
};
extern const char *const iscsi_sight_names[];

struct iscsi_sight {
	uint64_t number; /* 1.. */
	enum iscsi_sight_kind kind;
	uint64_t first_ns, last_ns, count;
	char initiator[ISCSI_NAME_BYTES], target[ISCSI_NAME_BYTES];
	uint8_t isid[6];
	char portal[64];
	char text[96];
};

struct iscsi_conn;
struct iscsi_command;

int iscsi_witness_open(struct iscsi_server *server);
void iscsi_witness_close(struct iscsi_server *server);
void iscsi_witness_note(struct iscsi_conn *conn, enum iscsi_sight_kind kind, const char *format,
			...) __attribute__((format(printf, 3, 4)));
/* An answer that is not GOOD, or one to a command about access states. */
void iscsi_witness_answer(const struct iscsi_command *command);

/* The oldest sight that is newer than number AFTER; NULL: there is none. */
const struct iscsi_sight *iscsi_witness_next(const struct iscsi_server *server, uint64_t after);

/* What a session is, for lists. */
struct iscsi_session_info {
	const char *initiator, *target, *portal; /* target NULL: discovery */
	const uint8_t *isid;
	uint16_t tsih;
	unsigned connections;
	uint64_t since_ns, ios;
};
/* False: there are not so many. */
bool iscsi_server_session(const struct iscsi_server *server, size_t index,
			  struct iscsi_session_info *ret_info);

#endif
