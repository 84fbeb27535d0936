/* SPDX-License-Identifier: MIT
 *
 * One direction of one relayed connection: what has come in, and when it may go on.
 *
 * Bytes wait in a ring, marks say from when on each stretch of them may leave.  Order is kept: a
 * stretch that is late holds up all behind it, as in TCP.  Loss is what TCP makes of it: a segment
 * that is lost comes a round trip later when enough others follow it (fast retransmit), else after
 * the retransmission timeout, which doubles while the copy is lost as well.
 *
 * Pure: bytes and time in, bytes and time out.
 */
#ifndef SANLAB_HARNESS_RUN_RELAY_FLOW_H
#define SANLAB_HARNESS_RUN_RELAY_FLOW_H

#include "base/rng.h"
#include "harness/run/relay_pdu.h"

enum {
	RELAY_FLOW_BYTES = 1 << 20,
	RELAY_FLOW_MARKS = 2048,
	RELAY_SEGMENT_BYTES = 1448,  /* of an Ethernet frame of 1500, with timestamps */
	RELAY_SEGMENT_OVERHEAD = 52, /* IPv4 and TCP headers with timestamps */
	RELAY_FAST_RETRANSMIT = 3,   /* segments that must follow */
	RELAY_TIMEOUT_MS = 200,	     /* Linux' smallest retransmission timeout */
	RELAY_TIMEOUT_DOUBLINGS = 6,
};

/* What the network is like; zero is a good one. */
struct relay_weather {
	uint64_t delay_ns, jitter_ns; /* each way; jitter: uniform from nothing to that */
	double loss;		      /* of the segments */
	uint64_t above_bytes;	      /* packets larger than that vanish, 0: none do */
	uint32_t corrupt;	      /* headers that still have to be damaged */
};

struct relay_mark {
	uint64_t end; /* of its stretch, counted from the connection's first byte */
	uint64_t due_ns;
};

struct relay_flow {
	uint8_t *ring;
	struct relay_mark *marks;
	uint64_t head, tail; /* first byte held, end of what has come */
	unsigned mark_at, mark_count;
	uint64_t last_due_ns;
	struct relay_pdu pdu;
	bool stuck; /* from stuck_at on nothing gets through while the weather lasts */
	uint64_t stuck_at;
	uint64_t stalls, corrupted; /* counters */
};

int relay_flow_init(struct relay_flow *flow);
void relay_flow_done(struct relay_flow *flow); /* also a zeroed one */
uint64_t relay_flow_held(const struct relay_flow *flow);
/* Where the next bytes go: contiguous room, 0 when full. */
size_t relay_flow_room(const struct relay_flow *flow, uint8_t **ret_to);
/* SIZE bytes have come there.  WEATHER's `corrupt` counts down. */
void relay_flow_took(struct relay_flow *flow, size_t size, uint64_t now_ns,
		     struct relay_weather *weather, struct relay_digests *digests, struct rng *rng);
/* What may go on now: contiguous bytes, 0 when none; *ret_due_ns: when there will be more, 0: not
 * by itself. */
size_t relay_flow_ready(const struct relay_flow *flow, uint64_t now_ns, const uint8_t **ret_from,
			uint64_t *ret_due_ns);
void relay_flow_sent(struct relay_flow *flow, size_t size);
void relay_flow_drop(struct relay_flow *flow); /* what is held is lost */
void relay_flow_unstick(struct relay_flow *flow);

#endif
