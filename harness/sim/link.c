/* SPDX-License-Identifier: MIT
 *
 * The link model: two lanes, each first in, first out, with serialisation at a rate, a delay,
 * seeded jitter and loss.  Cut resets what uses the link; stall holds every arrival until it ends,
 * as TCP would deliver late what it had to repeat.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "harness/sim/stream.h"

static void lane_arm(struct sim_lane *lane)
{
	const struct sim_segment *head = STAILQ_FIRST(&lane->queue);
	struct loop *loop = lane->link->loop;

	if (!head || lane->stalled)
		loop_timer_cancel(loop, &lane->timer);
	else if (!loop_timer_pending(&lane->timer) || lane->timer.deadline_ns != head->arrive_ns)
		loop_timer_set(loop, &lane->timer, head->arrive_ns);
}

static void lane_due(void *arg)
{
	struct sim_lane *lane = arg;
	struct sim_link *link = sim_link_ref(lane->link);
	uint64_t now = loop_now_ns(link->loop);
	struct sim_segment *segment;

	while (!lane->stalled && (segment = STAILQ_FIRST(&lane->queue)) &&
	       segment->arrive_ns <= now) {
		STAILQ_REMOVE_HEAD(&lane->queue, entry);
		sim_stream_arrived(segment);
	}
	lane_arm(lane);
	sim_link_unref(link);
}

int sim_link_new(struct loop *loop, const struct sim_link_config *config,
		 struct iscsi_portal *portal, struct sim_link **ret)
{
	struct sim_link *link = calloc(1, sizeof *link);

	if (!link)
		return -ENOMEM;
	link->loop = loop;
	link->config = *config;
	link->portal = portal;
	link->refs = 1;
	rng_init(&link->rng, config->seed, rng_stream_of("link"));
	TAILQ_INIT(&link->streams);
	for (unsigned i = 0; i < SIM_DIRECTIONS; i++) {
		link->lanes[i].link = link;
		STAILQ_INIT(&link->lanes[i].queue);
		loop_timer_init(&link->lanes[i].timer, lane_due, &link->lanes[i]);
	}
	*ret = link;
	return 0;
}

struct sim_link *sim_link_ref(struct sim_link *link)
{
	link->refs++;
	return link;
}

struct sim_link *sim_link_unref(struct sim_link *link)
{
	if (!link || --link->refs > 0)
		return NULL;
	for (unsigned i = 0; i < SIM_DIRECTIONS; i++) {
		assert(STAILQ_EMPTY(&link->lanes[i].queue));
		loop_timer_cancel(link->loop, &link->lanes[i].timer);
	}
	free(link);
	return NULL;
}

/* Paths and streams keep what they need of it. */
struct sim_link *sim_link_free(struct sim_link *link)
{
	if (link)
		link->portal = NULL;
	return sim_link_unref(link);
}

void sim_link_lead_to(struct sim_link *link, struct iscsi_portal *portal)
{
	link->portal = portal;
}

static bool loses(struct sim_link *link, struct sim_lane *lane)
{
	if (lane->drops > 0) {
		lane->drops--;
		return true;
	}
	return link->config.loss > 0 && rng_unit(&link->rng) < link->config.loss;
}

void sim_link_send(struct sim_link *link, struct sim_segment *segment)
{
	struct sim_lane *lane = &link->lanes[segment->direction];
	const struct sim_link_config *config = &link->config;
	uint64_t at = MAX_OF(loop_now_ns(link->loop), lane->busy_until_ns);
	uint64_t bytes = segment->bytes > 0 ? segment->bytes : SIM_CONTROL_BYTES;

	assert(!link->cut);
	if (config->rate_bytes_per_s > 0)
		at += bytes * NS_PER_S / config->rate_bytes_per_s;
	lane->busy_until_ns = at;
	at += config->delay_ns;
	if (config->jitter_ns > 0)
		at += rng_below(&link->rng, config->jitter_ns + 1);
	if (loses(link, lane))
		at += SIM_RETRANSMIT_NS;
	segment->arrive_ns = at; /* or later: behind what was sent before */
	STAILQ_INSERT_TAIL(&lane->queue, segment, entry);
	lane_arm(lane);
}

void sim_link_purge(struct sim_link *link, const struct sim_stream *stream)
{
	for (unsigned i = 0; i < SIM_DIRECTIONS; i++) {
		struct sim_segment_list all = STAILQ_HEAD_INITIALIZER(all);
		struct sim_lane *lane = &link->lanes[i];
		struct sim_segment *segment;

		STAILQ_CONCAT(&all, &lane->queue);
		while ((segment = STAILQ_FIRST(&all))) {
			STAILQ_REMOVE_HEAD(&all, entry);
			if (segment->stream != stream)
				STAILQ_INSERT_TAIL(&lane->queue, segment, entry);
			else
				free(segment);
		}
		lane_arm(lane);
	}
}

void sim_link_cut(struct sim_link *link, bool cut)
{
	struct sim_stream *stream, *next;

	link->cut = cut;
	if (!cut)
		return;
	sim_link_ref(link);
	for (stream = TAILQ_FIRST(&link->streams); stream; stream = next) {
		next = TAILQ_NEXT(stream, entry); /* no end closes another stream's */
		sim_stream_cut(stream);
	}
	for (unsigned i = 0; i < SIM_DIRECTIONS; i++)
		link->lanes[i].busy_until_ns = 0;
	sim_link_unref(link);
}

void sim_link_stall_lane(struct sim_link *link, enum sim_direction direction, bool stall)
{
	link->lanes[direction].stalled = stall;
	lane_arm(&link->lanes[direction]);
}

void sim_link_stall(struct sim_link *link, bool stall)
{
	for (unsigned i = 0; i < SIM_DIRECTIONS; i++)
		sim_link_stall_lane(link, (enum sim_direction)i, stall);
}

void sim_link_drop(struct sim_link *link, enum sim_direction direction)
{
	link->lanes[direction].drops = 1;
}

void sim_link_set_delay(struct sim_link *link, uint64_t delay_ns, uint64_t jitter_ns)
{
	link->config.delay_ns = delay_ns;
	link->config.jitter_ns = jitter_ns;
}
