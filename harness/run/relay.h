/* SPDX-License-Identifier: MIT
 *
 * A TCP relay in this process that misbehaves on demand: the faults of a path that no kernel module
 * and no privilege is needed for, against any target.
 *
 * A line is one path: path_config.dial leads the path's connections (also those after a login
 * redirection) through it.  Each connection is accepted on a loopback port of ours and continued to
 * the portal that was dialled.  What a line does to its connections:
 *
 *  - RESET: both ends are reset, at once and once.
 *  - REFUSE: the same, and new connections are refused.
 *  - HALF_OPEN: the peer has died without a word.  New connections are accepted and what is sent is
 *    acknowledged; nothing is answered, nothing reaches the target.  When it ends the peer is back
 *    without its memory: every connection of that time is reset.
 *  - BLACK_HOLE: nothing gets through, either way, also no end of a connection; with above_bytes
 *    only packets of that size or smaller do, what lies behind a larger one waits.  When it ends,
 *    TCP sends again what the ends still keep: what had been sent on a connection that was reset
 *    meanwhile is lost.
 *  - HOLD: as a black hole, but the network loses nothing: it delivers late, also what was sent on
 *    connections that were reset meanwhile.
 *  - SLOW: delay and jitter each way, loss (see relay_flow.h); they add up.
 *  - CORRUPT: the next `count` PDUs of the target arrive with a bit of the header flipped (only
 *    where header digests are in use: the point is that they are noticed).
 *
 * The target sees every relayed connection come from this host.
 *
 * Threading: the relay is a thread with a loop of its own; faults reach it as messages.  The
 * functions below belong to the owner's thread.
 */
#ifndef SANLAB_HARNESS_RUN_RELAY_H
#define SANLAB_HARNESS_RUN_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum relay_fault_kind {
	RELAY_RESET,
	RELAY_REFUSE,
	RELAY_HALF_OPEN,
	RELAY_BLACK_HOLE,
	RELAY_HOLD,
	RELAY_SLOW,
	RELAY_CORRUPT,
	RELAY_FAULT_KINDS,
};

struct relay_fault {
	enum relay_fault_kind kind;
	uint64_t above_bytes;	      /* BLACK_HOLE; 0: everything */
	uint64_t delay_ns, jitter_ns; /* SLOW, each way */
	double loss;		      /* SLOW: share of the segments */
	uint32_t count;		      /* CORRUPT */
};

/* What a line has done so far. */
struct relay_stats {
	uint64_t connections, resets, refused, stalls, corrupted;
	uint64_t bytes_lost; /* had been sent and did not get through */
};

struct relay;
struct relay_line;
enum { RELAY_LINES_MAX = 1024, RELAY_PORTS_MAX = 8, RELAY_CONNECTIONS_MAX = 512 };

int relay_new(uint64_t seed, struct relay **ret_relay, struct err *err);
struct relay *relay_free(struct relay *relay); /* ends the thread and every connection */
int relay_add_line(struct relay *relay, struct relay_line **ret_line);
/* For path_config.dial, ARG a struct relay_line: the loopback address that leads to PORTAL; PORTAL
 * itself when there is none to be had. */
const char *relay_dial(void *arg, const char *portal);
/* Faults of one line may overlap; each that begins ends with the same FAULT, but RESET and CORRUPT,
 * which only begin. */
int relay_set(struct relay_line *line, const struct relay_fault *fault, bool begin);
void relay_line_stats(const struct relay_line *line, struct relay_stats *ret_stats);

#endif
