/* SPDX-License-Identifier: MIT
 *
 * The delay line of a relayed connection.
 */
#include "harness/run/relay_flow.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"

int relay_flow_init(struct relay_flow *flow)
{
	*flow = (struct relay_flow){
	    .ring = malloc(RELAY_FLOW_BYTES),
	    .marks = calloc(RELAY_FLOW_MARKS, sizeof *flow->marks),
	};
	if (flow->ring && flow->marks)
		return 0;
	relay_flow_done(flow);
	return -ENOMEM;
}

void relay_flow_done(struct relay_flow *flow)
{
	free(flow->ring);
	free(flow->marks);
	flow->ring = NULL;
	flow->marks = NULL;
}

uint64_t relay_flow_held(const struct relay_flow *flow)
{
	return flow->tail - flow->head;
}

size_t relay_flow_room(const struct relay_flow *flow, uint8_t **ret_to)
{
	uint64_t at = flow->tail % RELAY_FLOW_BYTES;

	*ret_to = flow->ring + at;
	return (size_t)MIN_OF(RELAY_FLOW_BYTES - relay_flow_held(flow), RELAY_FLOW_BYTES - at);
}

/* How much later than the others a stretch of SIZE bytes comes by losses. */
static uint64_t lost_time_ns(struct relay_flow *flow, size_t size,
			     const struct relay_weather *weather, struct rng *rng)
{
	size_t segments = (size + RELAY_SEGMENT_BYTES - 1) / RELAY_SEGMENT_BYTES;
	uint64_t worst_ns = 0, round_trip_ns = MAX_OF(2 * weather->delay_ns, NS_PER_MS);

	if (weather->loss <= 0)
		return 0;
	for (size_t i = 0; i < segments; i++) {
		bool quick = segments - 1 - i >= RELAY_FAST_RETRANSMIT;
		uint64_t timeout_ns = RELAY_TIMEOUT_MS * NS_PER_MS + round_trip_ns, late_ns = 0;

		for (unsigned n = 0; n < RELAY_TIMEOUT_DOUBLINGS; n++) {
			if (rng_unit(rng) >= weather->loss)
				break;
			late_ns += quick && n == 0 ? round_trip_ns : timeout_ns;
			timeout_ns *= quick && n == 0 ? 1 : 2;
			flow->stalls++;
		}
		worst_ns = MAX_OF(worst_ns, late_ns);
	}
	return worst_ns;
}

static struct relay_mark *last_mark(const struct relay_flow *flow)
{
	return &flow->marks[(flow->mark_at + flow->mark_count - 1) % RELAY_FLOW_MARKS];
}

static void add_mark(struct relay_flow *flow, uint64_t due_ns)
{
	if (flow->mark_count &&
	    (last_mark(flow)->due_ns == due_ns || flow->mark_count == RELAY_FLOW_MARKS)) {
		last_mark(flow)->due_ns = due_ns;
	} else {
		flow->mark_count++;
		last_mark(flow)->due_ns = due_ns;
	}
	last_mark(flow)->end = flow->tail;
}

/* A PDU with its header's last byte at AT (counted from the first byte) has been seen. */
static void meet_pdu(struct relay_flow *flow, uint64_t at, const struct relay_pdu_seen *seen,
		     struct relay_weather *weather)
{
	uint64_t start = at + 1 - RELAY_BHS_BYTES;

	if (weather->above_bytes && !flow->stuck &&
	    seen->wire_bytes + RELAY_SEGMENT_OVERHEAD > weather->above_bytes) {
		flow->stuck = true;
		/* What of the header has left already left in a packet of its own. */
		flow->stuck_at = MAX_OF(start, flow->head);
	}
	if (weather->corrupt) {
		weather->corrupt--;
		flow->corrupted++;
		flow->ring[at % RELAY_FLOW_BYTES] ^= 0x10;
	}
}

static void watch_pdus(struct relay_flow *flow, size_t size, struct relay_weather *weather,
		       struct relay_digests *digests)
{
	const uint8_t *bytes = flow->ring + flow->tail % RELAY_FLOW_BYTES;
	struct relay_pdu_seen seen;

	for (size_t at = 0; at < size;) {
		at += relay_pdu_step(&flow->pdu, digests, bytes + at, size - at, &seen);
		if (seen.header)
			meet_pdu(flow, flow->tail + at - 1, &seen, weather);
	}
}

void relay_flow_took(struct relay_flow *flow, size_t size, uint64_t now_ns,
		     struct relay_weather *weather, struct relay_digests *digests, struct rng *rng)
{
	uint64_t due_ns = now_ns + weather->delay_ns;

	assert(size && size <= RELAY_FLOW_BYTES - relay_flow_held(flow));
	watch_pdus(flow, size, weather, digests);
	if (weather->jitter_ns)
		due_ns += rng_below(rng, weather->jitter_ns + 1);
	due_ns += lost_time_ns(flow, size, weather, rng);
	flow->last_due_ns = MAX_OF(flow->last_due_ns, due_ns);
	flow->tail += size;
	add_mark(flow, flow->last_due_ns);
}

size_t relay_flow_ready(const struct relay_flow *flow, uint64_t now_ns, const uint8_t **ret_from,
			uint64_t *ret_due_ns)
{
	uint64_t end = flow->head, at = flow->head % RELAY_FLOW_BYTES;

	*ret_due_ns = 0;
	*ret_from = flow->ring + at;
	for (unsigned i = 0; i < flow->mark_count; i++) {
		const struct relay_mark *mark =
		    &flow->marks[(flow->mark_at + i) % RELAY_FLOW_MARKS];

		if (mark->due_ns > now_ns) {
			*ret_due_ns = mark->due_ns;
			break;
		}
		end = mark->end;
	}
	if (flow->stuck && end >= flow->stuck_at) {
		end = flow->stuck_at;
		*ret_due_ns = 0;
	}
	return (size_t)MIN_OF(end - flow->head, RELAY_FLOW_BYTES - at);
}

void relay_flow_sent(struct relay_flow *flow, size_t size)
{
	flow->head += size;
	assert(flow->head <= flow->tail);
	while (flow->mark_count && flow->marks[flow->mark_at].end <= flow->head) {
		flow->mark_at = (flow->mark_at + 1) % RELAY_FLOW_MARKS;
		flow->mark_count--;
	}
}

void relay_flow_drop(struct relay_flow *flow)
{
	flow->head = flow->tail;
	flow->mark_count = 0;
	flow->stuck = false;
}

void relay_flow_unstick(struct relay_flow *flow)
{
	flow->stuck = false;
}
