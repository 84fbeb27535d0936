/* SPDX-License-Identifier: MIT
 *
 * Inside the room: the server, its portals, and the limits that bound everything.
 */
#ifndef SANLAB_TARGET_ISCSI_SERVER_H
#define SANLAB_TARGET_ISCSI_SERVER_H

#include <sys/queue.h>

#include "target/iscsi/access.h"
#include "target/iscsi/chap.h"
#include "target/iscsi/iscsi.h"
#include "target/iscsi/pdu.h"

enum {
	ISCSI_MAX_PORTALS = 64,
	ISCSI_MAX_TARGETS = 4096,
	ISCSI_MAX_CONNECTIONS = 4096, /* of the server, those at their login or ending included */
	ISCSI_MAX_SESSIONS = 1024,
	ISCSI_WINDOW = 256,	  /* numbered commands a session may have open */
	ISCSI_MAX_IMMEDIATE = 16, /* immediate SCSI commands beside them */
	ISCSI_TMF_SLOTS = 16,	  /* task management functions under way, a session */
	ISCSI_PAUSE_ITEMS = 512,  /* output PDUs waiting: stop reading */
	ISCSI_COMMANDS_PER_SLAB = 64,
};
#define ISCSI_PAUSE_BYTES (16 * MIB) /* data-in queued or being read, a connection */
#define ISCSI_LOGIN_NS	  (15 * NS_PER_S)
#define ISCSI_FLUSH_NS	  (5 * NS_PER_S) /* for the last answers, and the peer's close */
/* Silence before a NOP-In, and again until the end.  Clients that answer only from within their own
 * calls (libiscsi) may well be busy elsewhere for a minute. */
#define ISCSI_PING_NS (45 * NS_PER_S)
/* How long a task management function waits for data that was asked for; then its transfer tags
 * are dropped.  Initiators that never send it (open-iscsi does not) give up long after that. */
#define ISCSI_DRAIN_NS	      (2 * NS_PER_S)
#define ISCSI_REDIRECT_NS     (2 * NS_PER_S) /* a redirected login arrives within */
#define ISCSI_SENDTARGETS_MAX (4 * MIB)

struct iscsi_conn;
struct iscsi_session;
struct iscsi_command;
struct iscsi_listener;
struct iscsi_witness;

TAILQ_HEAD(iscsi_conn_list, iscsi_conn);
TAILQ_HEAD(iscsi_session_list, iscsi_session);
SLIST_HEAD(iscsi_command_stack, iscsi_command);

struct iscsi_portal {
	struct iscsi_server *server;
	struct iscsi_portal_config config;
	struct iscsi_portal_counters counters;
	char owner[64];
	bool down;
	bool draining;
	bool silent;
	struct loop_timer drain; /* what is left when it fires is dropped */
	/* Logins redirected to here that have not arrived yet count as connections, or a burst of
	 * logins would all be sent to the same portal. */
	unsigned promised;
	uint64_t promised_until_ns;
	struct iscsi_listener *listener; /* NULL while nothing listens */
};

struct iscsi_command_slab;

struct iscsi_server {
	struct loop *loop;
	struct buf_pool *pool;
	struct scsi_target *targets[ISCSI_MAX_TARGETS];
	size_t target_count;
	struct iscsi_portal *portals[ISCSI_MAX_PORTALS];
	size_t portal_count;
	struct iscsi_conn_list conns; /* alive */
	struct iscsi_conn_list dead;  /* closed, tasks still ending */
	unsigned conn_count;	      /* both */
	struct iscsi_session_list sessions;
	unsigned session_count;
	uint16_t next_tsih;
	struct iscsi_command_stack spare_commands;
	struct iscsi_command_slab *command_slabs;
	struct loop_task reap;
	struct iscsi_security security;
	struct chap_env chap; /* counts when there are secrets */
	struct iscsi_witness *witness;
};

/* A portal that does not listen (yet): what iscsi_server_listen begins with, and all that tests
 * of the pure part need. */
int iscsi_server_add_portal(struct iscsi_server *server, const struct iscsi_portal_config *config,
			    struct iscsi_portal **ret_portal);
struct scsi_target *iscsi_server_find_target(const struct iscsi_server *server, const char *name);
/* The member portal with the fewest connections; NULL: none is up. */
struct iscsi_portal *iscsi_server_pick_member(struct iscsi_server *server,
					      const struct iscsi_portal *from);
/* "127.0.0.1:3261" as an initiator that reached us at LOCAL_HOST can use it: a portal that listens
 * on every address is shown with that one. */
void iscsi_portal_address(const struct iscsi_portal *portal, const char *local_host, char *out,
			  size_t size);
/* Frees connections and sessions whose last task has ended. */
void iscsi_server_reap(struct iscsi_server *server);

/* drop.c: the end of a target cold reset, and of the time that a draining portal gives. */
void iscsi_target_drop_sessions(struct iscsi_server *server, const struct scsi_target *target);
void iscsi_portal_drain_over(void *arg);
void iscsi_portal_drain_end(struct iscsi_portal *portal);

/* portal.c */
int iscsi_listener_open(struct iscsi_portal *portal, struct err *err);
void iscsi_listener_close(struct iscsi_portal *portal);
void iscsi_listener_silence(struct iscsi_portal *portal, bool silent);

/* port_holder.c: "process 1234 (tgtd)" for who listens on PORT; false: /proc does not tell. */
bool iscsi_port_holder(uint16_t port, char *out, size_t size);

/* socket.c: takes over FD. */
int iscsi_socket_open(struct iscsi_portal *portal, int fd);
/* Everything that arrives at FD is thrown away unseen, as by a machine that has died: nothing is
 * acknowledged, connected or reset. */
void iscsi_socket_deafen(int fd, bool deaf);

#endif
