/* SPDX-License-Identifier: MIT
 *
 * Inside of the relay: relay.c (thread, messages, lines), relay_conn.c (connections).
 */
#ifndef SANLAB_HARNESS_RUN_RELAY_IMPL_H
#define SANLAB_HARNESS_RUN_RELAY_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/loop.h"
#include "harness/run/relay.h"
#include "harness/run/relay_flow.h"

enum relay_side { RELAY_CLIENT, RELAY_SERVER };

/* How one end of a connection has ended. */
enum relay_end { RELAY_OPEN, RELAY_FIN, RELAY_RST };

struct relay_conn {
	struct relay_port *port;
	struct loop_watch watch[2]; /* by side; fd -1: not there, or gone */
	enum relay_end ended[2];    /* what that side has sent last */
	bool told[2];		    /* ... and the other side has been told */
	bool dialled, connecting;   /* the portal */
	bool forgotten; /* half open at some time: the target's end does not know it any more */
	/* flow[RELAY_CLIENT] carries what the client has sent. */
	struct relay_flow flow[2];
	struct relay_digests digests;
	struct loop_timer timer;
	LIST_ENTRY(relay_conn) entry;
	SLIST_ENTRY(relay_conn) dead_entry;
	bool dead;
};

/* One loopback port of a line and where it leads. */
struct relay_port {
	struct relay_line *line;
	char portal[64], address[64];
	struct sockaddr_storage to;
	socklen_t to_bytes;
	struct loop_watch watch;
	bool listening; /* false while refused */
	LIST_HEAD(, relay_conn) conns;
};

struct relay_counters {
	atomic_uint_fast64_t connections, resets, refused, stalls, corrupted, bytes_lost;
};

struct relay_line {
	struct relay *relay;
	/* the owner's */
	struct relay_port *ports[RELAY_PORTS_MAX];
	unsigned port_count;
	/* the relay thread's */
	struct relay_port *known[RELAY_PORTS_MAX];
	unsigned known_count;
	unsigned refusing, half_open, holes, holding;
	unsigned narrow; /* black holes above a size */
	struct relay_weather weather;
	struct relay_counters counters;
};

struct relay {
	struct loop *loop;
	pthread_t thread;
	bool running;
	int pipe[2]; /* messages: [1] the owner's end */
	struct loop_watch watch;
	struct rng rng;
	struct loop_task bury;
	SLIST_HEAD(, relay_conn) dead;
	unsigned conn_count;
	/* the owner's */
	struct relay_line *lines[RELAY_LINES_MAX];
	unsigned line_count;
};

static inline bool relay_line_is_blocked(const struct relay_line *line)
{
	return line->half_open || line->holes || line->holding;
}

/* relay_conn.c; the relay's thread */
/* FD has been accepted on PORT: takes it. */
void relay_conn_accept(struct relay_port *port, int fd);
/* Both ends at once. */
void relay_conn_reset(struct relay_conn *conn);
/* What the line lets through may have changed. */
void relay_conn_pump(struct relay_conn *conn);
/* Frees connections that have ended; a task, so that nobody's memory goes away under his feet. */
void relay_conn_bury(void *arg); /* the relay */

#endif
