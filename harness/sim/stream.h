/* SPDX-License-Identifier: MIT
 *
 * Links and streams from inside.  A stream is one TCP connection: segments in two lanes, each
 * first in, first out, and two ends that close on their own.  Private to harness/sim.
 *
 * Memory: sent data is copied into segments, as into a socket, so nothing of one end refers to
 * memory of the other.  A stream lives while an end is open; when both are closed what is still on
 * its way can have no effect any more and goes with it.
 */
#ifndef SANLAB_HARNESS_SIM_STREAM_H
#define SANLAB_HARNESS_SIM_STREAM_H

#include <sys/queue.h>
#include <sys/uio.h>

#include "base/rng.h"
#include "harness/sim/sim.h"

enum {
	SIM_CONTROL_BYTES = 48,		   /* what a segment without data costs on the wire */
	SIM_SEGMENT_BYTES = 64 * 1024,	   /* most data of one from the target */
	SIM_SEND_BUFFER_BYTES = 2 << 20,   /* then the target's end takes no more */
	SIM_RETRANSMIT_NS = 200 * 1000000, /* Linux' least retransmission timeout */
};

enum sim_kind { SIM_SYN, SIM_SYN_ACK, SIM_DATA, SIM_FIN, SIM_RESET };

struct sim_segment {
	struct sim_stream *stream;
	enum sim_kind kind;
	enum sim_direction direction;
	uint64_t arrive_ns;
	STAILQ_ENTRY(sim_segment) entry;
	uint32_t bytes, taken;
	uint8_t data[];
};
STAILQ_HEAD(sim_segment_list, sim_segment);

struct sim_lane {
	struct sim_link *link;
	struct sim_segment_list queue;
	uint64_t busy_until_ns;	 /* the sender's port */
	struct loop_timer timer; /* the head's arrival */
	bool stalled;
	unsigned drops; /* segments still to be lost */
};

struct sim_link {
	struct loop *loop;
	struct sim_link_config config;
	struct iscsi_portal *portal;
	struct rng rng;
	struct sim_lane lanes[SIM_DIRECTIONS];
	TAILQ_HEAD(sim_stream_list, sim_stream) streams;
	bool cut;
	unsigned refs;
};

enum sim_end { SIM_END_CLOSED /* in order */, SIM_END_RESET, SIM_END_REFUSED, SIM_END_TIMEOUT };

/* The initiator's end.  After `ended` the stream is gone for it. */
struct sim_stream_ops {
	void (*connected)(void *arg);
	void (*received)(void *arg, const uint8_t *data, uint32_t bytes);
	void (*ended)(void *arg, enum sim_end how);
};

struct sim_unacked {
	uint32_t segments; /* on their way */
	uint64_t bytes;
	uint64_t since_ns; /* the last progress */
	uint64_t timeout_ns;
	struct loop_timer timer;
};

struct sim_stream {
	struct sim_link *link;
	TAILQ_ENTRY(sim_stream) entry;
	const struct sim_stream_ops *ops; /* NULL: the initiator's end is closed */
	void *arg;
	struct sim_socket *socket; /* the target's end; NULL: not open yet, or closed */
	struct sim_unacked unacked[SIM_DIRECTIONS];
	uint64_t closed_ns; /* when the initiator's end was */
	unsigned holds;	    /* callers on the stack */
	bool greeted;	    /* the target's end has been open */
};

/* ---- link.c ---- */
struct sim_link *sim_link_ref(struct sim_link *link);
struct sim_link *sim_link_unref(struct sim_link *link);
void sim_link_send(struct sim_link *link, struct sim_segment *segment);
/* Everything of STREAM that is on its way. */
void sim_link_purge(struct sim_link *link, const struct sim_stream *stream);

/* ---- stream.c ---- */
/* Sends the first segment; `connected` or `ended` follows, never from within.  NULL: no memory. */
struct sim_stream *sim_stream_connect(struct sim_link *link, uint64_t timeout_ns,
				      const struct sim_stream_ops *ops, void *arg);
struct sim_segment *sim_segment_new(struct sim_stream *stream, enum sim_kind kind,
				    enum sim_direction direction, uint32_t bytes);
void sim_stream_send(struct sim_segment *segment);
void sim_stream_control(struct sim_stream *stream, enum sim_kind kind,
			enum sim_direction direction);
/* The initiator's end closes, with a reset. */
void sim_stream_close(struct sim_stream *stream);
void sim_stream_arrived(struct sim_segment *segment);
void sim_stream_cut(struct sim_stream *stream);
/* The target's end has closed. */
void sim_stream_socket_closed(struct sim_stream *stream, bool reset);

/* ---- socket.c: the shell of a connection of the server ---- */
/* NULL: the portal takes no connection. */
struct sim_socket *sim_socket_open(struct sim_stream *stream, struct iscsi_portal *portal);
/* Takes SEGMENT over. */
void sim_socket_received(struct sim_socket *socket, struct sim_segment *segment);
void sim_socket_reset(struct sim_socket *socket); /* the peer's reset, or a timeout */
void sim_socket_acked(struct sim_socket *socket); /* the send buffer has room again */

#endif
