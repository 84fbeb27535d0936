/* SPDX-License-Identifier: MIT
 *
 * The iSCSI server (RFC 7143): portals that listen, sessions of initiators, their connections.
 *
 * Inside, protocol and I/O are apart: conn_*.c, login.c, params.c, text.c, session.c and tmf.c are
 * pure ((state, bytes, now) -> (state, bytes to send)); socket.c and portal.c are the thin shell
 * around them, which reads many PDUs with one call and writes many answers with one vectored
 * write per loop turn.
 *
 * Threading: the loop's thread.  Ownership: the server owns portals, sessions and connections;
 * scsi targets are borrowed.
 */
#ifndef SANLAB_TARGET_ISCSI_ISCSI_H
#define SANLAB_TARGET_ISCSI_ISCSI_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/config.h"
#include "base/err.h"
#include "base/loop.h"
#include "target/scsi/scsi.h"

struct iscsi_server;
struct iscsi_portal;
struct iscsi_access;
struct chap_secrets;

struct iscsi_portal_config {
	struct cfg_portal address; /* port 0: any free one */
	/* Portal group tag, 1..  The portals of one group are one SCSI target port (RFC
	 * 7143 4.4.2), so this is its relative target port identifier too. */
	uint16_t group_tag;
	uint16_t target_port_group; /* the asymmetric access states it shares, 1.. */
	/* A group portal answers logins of normal sessions with "target moved temporarily" (0101)
	 * to the member portal that has the fewest connections, as EqualLogic groups do. */
	bool redirects;
	const char *owner; /* the member's name, or the group's: for status documents */
};

struct iscsi_portal_counters {
	uint64_t connections_now, connections_total, logins, login_failures, redirects;
	uint64_t commands, reads, writes, read_bytes, write_bytes;
	uint64_t pdus_in, pdus_out, rejects, protocol_errors;
	uint64_t resets; /* connections reset by iscsi_portal_reset */
};

struct iscsi_server *iscsi_server_new(struct loop *loop, struct buf_pool *pool);
/* Closes all.  Not NULL: some tasks do not end (a drive hangs), and what they use must stay. */
struct iscsi_server *iscsi_server_free(struct iscsi_server *server);

/* Every target is reachable through every portal (tag as the portal says). */
int iscsi_server_add_target(struct iscsi_server *server, struct scsi_target *target);

/* Who is let in; all borrowed for as long as the server lives. */
struct iscsi_security {
	const struct chap_secrets *secrets; /* not NULL: normal sessions need CHAP */
	bool chap_discovery;		    /* ... and discovery sessions do */
	const char *mutual_user;	    /* who we are when initiators ask; NULL: nobody */
	const struct iscsi_access *access;  /* NULL: everybody reaches everything */
};
void iscsi_server_secure(struct iscsi_server *server, const struct iscsi_security *security);

/* Listens.  A port in use: -EADDRINUSE, ERR names the port and the process that holds it where
 * /proc tells. */
int iscsi_server_listen(struct iscsi_server *server, const struct iscsi_portal_config *config,
			struct iscsi_portal **ret_portal, struct err *err);

size_t iscsi_server_portal_count(const struct iscsi_server *server);
struct iscsi_portal *iscsi_server_portal(struct iscsi_server *server, size_t index);
const struct iscsi_portal_config *iscsi_portal_config(const struct iscsi_portal *portal);
const struct iscsi_portal_counters *iscsi_portal_counters(const struct iscsi_portal *portal);
bool iscsi_portal_is_down(const struct iscsi_portal *portal);

/* Faults.  Reset: TCP RST on every connection (of INITIATOR only, when not NULL); returns how
 * many.  Down: resets, and refuses new connections until it is up again. */
unsigned iscsi_portal_reset(struct iscsi_portal *portal, const char *initiator);
int iscsi_portal_set_down(struct iscsi_portal *portal, bool down, struct err *err);
/* Asks every normal session on the portal to log out within LIMIT_NS, then drops what is left;
 * logins go elsewhere until iscsi_portal_set_down(portal, false).  Returns how many were asked. */
unsigned iscsi_portal_drain(struct iscsi_portal *portal, uint64_t limit_ns);
bool iscsi_portal_is_draining(const struct iscsi_portal *portal);
/* Silent, as when the controller behind the portal has died: nothing is accepted, answered or
 * reset. What sessions had sent before still runs, and nobody hears of it.  When the portal speaks
 * again, connections from before are reset, as nobody there knows them, and logins work. */
void iscsi_portal_set_silent(struct iscsi_portal *portal, bool silent);
bool iscsi_portal_is_silent(const struct iscsi_portal *portal);

#endif
