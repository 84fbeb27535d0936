/* SPDX-License-Identifier: MIT
 *
 * One connection over a link: what arrives at which end, and how ends come to know of each other.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "harness/sim/stream.h"
#include "target/iscsi/server.h"

/* The target's kernel gives up on what is not acknowledged (target/iscsi/socket.c says so). */
#define SOCKET_TIMEOUT_NS (30 * NS_PER_S)

static void stream_settle(struct sim_stream *stream)
{
	struct sim_link *link = stream->link;

	if (stream->ops || stream->socket || stream->holds > 0)
		return;
	sim_link_purge(link, stream);
	for (unsigned i = 0; i < SIM_DIRECTIONS; i++)
		loop_timer_cancel(link->loop, &stream->unacked[i].timer);
	TAILQ_REMOVE(&link->streams, stream, entry);
	free(stream);
	sim_link_unref(link);
}

static void stream_release(struct sim_stream *stream)
{
	stream->holds--;
	stream_settle(stream);
}

/* The initiator's end is over by itself. */
static void end_initiator(struct sim_stream *stream, enum sim_end how)
{
	const struct sim_stream_ops *ops = stream->ops;

	if (!ops)
		return;
	stream->ops = NULL;
	stream->closed_ns = loop_now_ns(stream->link->loop);
	if (stream->socket && how == SIM_END_CLOSED)
		sim_stream_control(stream, SIM_FIN, SIM_TO_TARGET);
	else if (stream->socket && how == SIM_END_TIMEOUT)
		sim_stream_control(stream, SIM_RESET, SIM_TO_TARGET);
	ops->ended(stream->arg, how);
}

/* ---- what is not acknowledged ---- */

static void unacked_due(struct sim_stream *stream, enum sim_direction direction)
{
	struct sim_unacked *unacked = &stream->unacked[direction];
	struct loop *loop = stream->link->loop;

	if (unacked->segments == 0)
		return;
	if (loop_now_ns(loop) < unacked->since_ns + unacked->timeout_ns) {
		loop_timer_set(loop, &unacked->timer, unacked->since_ns + unacked->timeout_ns);
		return;
	}
	stream->holds++;
	if (direction == SIM_TO_TARGET)
		end_initiator(stream, SIM_END_TIMEOUT);
	else if (stream->socket)
		sim_socket_reset(stream->socket);
	stream_release(stream);
}

static void to_target_due(void *arg)
{
	unacked_due(arg, SIM_TO_TARGET);
}

static void to_initiator_due(void *arg)
{
	unacked_due(arg, SIM_TO_INITIATOR);
}

static void count_sent(struct sim_stream *stream, const struct sim_segment *segment)
{
	struct sim_unacked *unacked = &stream->unacked[segment->direction];
	struct loop *loop = stream->link->loop;

	if (unacked->segments++ == 0)
		unacked->since_ns = loop_now_ns(loop);
	unacked->bytes += segment->bytes;
	if (!loop_timer_pending(&unacked->timer))
		loop_timer_set(loop, &unacked->timer, unacked->since_ns + unacked->timeout_ns);
}

static void count_arrived(struct sim_stream *stream, const struct sim_segment *segment)
{
	struct sim_unacked *unacked = &stream->unacked[segment->direction];

	unacked->segments--;
	unacked->bytes -= segment->bytes;
	unacked->since_ns = loop_now_ns(stream->link->loop);
}

/* ---- sending ---- */

struct sim_segment *sim_segment_new(struct sim_stream *stream, enum sim_kind kind,
				    enum sim_direction direction, uint32_t bytes)
{
	struct sim_segment *segment = malloc(sizeof *segment + bytes);

	if (!segment)
		abort(); /* a simulation without memory has nothing to tell */
	segment->stream = stream;
	segment->kind = kind;
	segment->direction = direction;
	segment->bytes = bytes;
	segment->taken = 0;
	return segment;
}

void sim_stream_send(struct sim_segment *segment)
{
	count_sent(segment->stream, segment);
	sim_link_send(segment->stream->link, segment);
}

void sim_stream_control(struct sim_stream *stream, enum sim_kind kind, enum sim_direction direction)
{
	/* TCP repeats everything but resets. */
	if (stream->link->cut || (kind == SIM_RESET && stream->link->lanes[direction].stalled))
		return;
	sim_stream_send(sim_segment_new(stream, kind, direction, 0));
}

struct sim_stream *sim_stream_connect(struct sim_link *link, uint64_t timeout_ns,
				      const struct sim_stream_ops *ops, void *arg)
{
	struct sim_stream *stream = calloc(1, sizeof *stream);

	if (!stream)
		return NULL;
	stream->link = sim_link_ref(link);
	stream->ops = ops;
	stream->arg = arg;
	stream->unacked[SIM_TO_TARGET].timeout_ns = timeout_ns;
	stream->unacked[SIM_TO_INITIATOR].timeout_ns = SOCKET_TIMEOUT_NS;
	loop_timer_init(&stream->unacked[SIM_TO_TARGET].timer, to_target_due, stream);
	loop_timer_init(&stream->unacked[SIM_TO_INITIATOR].timer, to_initiator_due, stream);
	TAILQ_INSERT_TAIL(&link->streams, stream, entry);
	sim_stream_control(stream, SIM_SYN, SIM_TO_TARGET);
	return stream;
}

void sim_stream_close(struct sim_stream *stream)
{
	stream->ops = NULL;
	stream->closed_ns = loop_now_ns(stream->link->loop);
	if (stream->socket)
		sim_stream_control(stream, SIM_RESET, SIM_TO_TARGET);
	stream_settle(stream);
}

void sim_stream_socket_closed(struct sim_stream *stream, bool reset)
{
	stream->socket = NULL;
	if (stream->ops)
		sim_stream_control(stream, reset ? SIM_RESET : SIM_FIN, SIM_TO_INITIATOR);
	stream_settle(stream);
}

/* ---- arrivals ---- */

static void connection_wanted(struct sim_stream *stream)
{
	struct iscsi_portal *portal = stream->link->portal;

	if (portal && portal->silent)
		return;
	if (portal && !portal->down)
		stream->socket = sim_socket_open(stream, portal);
	stream->greeted = stream->socket != NULL;
	sim_stream_control(stream, stream->socket ? SIM_SYN_ACK : SIM_RESET, SIM_TO_INITIATOR);
}

/* Lost on the way by a network that keeps nothing for that long, with nobody to send it again. */
static bool has_expired(const struct sim_stream *stream)
{
	uint64_t life_ns = stream->link->config.life_ns;

	return !stream->ops && life_ns > 0 &&
	       loop_now_ns(stream->link->loop) > stream->closed_ns + life_ns;
}

/* False: the segment was taken over. */
static bool at_target(struct sim_stream *stream, struct sim_segment *segment)
{
	if (has_expired(stream))
		return true;
	if (segment->kind == SIM_SYN) {
		connection_wanted(stream);
	} else if (!stream->socket) {
		if (segment->kind != SIM_RESET && stream->ops)
			sim_stream_control(stream, SIM_RESET, SIM_TO_INITIATOR);
	} else if (segment->kind == SIM_DATA) {
		sim_socket_received(stream->socket, segment);
		return false;
	} else {
		sim_socket_reset(stream->socket);
	}
	return true;
}

static void at_initiator(struct sim_stream *stream, const struct sim_segment *segment)
{
	if (!stream->ops) {
		/* Nobody there knows the connection. */
		if (segment->kind != SIM_RESET && stream->socket)
			sim_stream_control(stream, SIM_RESET, SIM_TO_TARGET);
		return;
	}
	switch (segment->kind) {
	case SIM_SYN_ACK:
		stream->ops->connected(stream->arg);
		break;
	case SIM_DATA:
		stream->ops->received(stream->arg, segment->data, segment->bytes);
		break;
	case SIM_FIN:
		end_initiator(stream, SIM_END_CLOSED);
		break;
	case SIM_RESET:
		end_initiator(stream, stream->greeted ? SIM_END_RESET : SIM_END_REFUSED);
		break;
	case SIM_SYN:
		break;
	}
}

void sim_stream_arrived(struct sim_segment *segment)
{
	struct sim_stream *stream = segment->stream;

	stream->holds++;
	count_arrived(stream, segment);
	if (segment->direction == SIM_TO_INITIATOR) {
		at_initiator(stream, segment);
		free(segment);
		if (stream->socket)
			sim_socket_acked(stream->socket);
	} else if (at_target(stream, segment)) {
		free(segment);
	}
	stream_release(stream);
}

void sim_stream_cut(struct sim_stream *stream)
{
	stream->holds++;
	sim_link_purge(stream->link, stream);
	for (unsigned i = 0; i < SIM_DIRECTIONS; i++) {
		stream->unacked[i].segments = 0;
		stream->unacked[i].bytes = 0;
	}
	if (stream->socket)
		sim_socket_reset(stream->socket);
	end_initiator(stream, SIM_END_RESET);
	stream_release(stream);
}
