/* SPDX-License-Identifier: MIT
 *
 * The link model: two lanes, each first in, first out, with serialisation at a rate, a delay and
 * seeded jitter.  Cut resets what uses the link; stall holds every arrival until it ends, as TCP
 * would deliver late what it had to repeat.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "harness/sim/sim_impl.h"

#define LINK_BUFFER_BYTES (256 * MIB)

static void lane_arm(struct sim_lane *lane)
{
	struct sim_message *head = TAILQ_FIRST(&lane->queue);
	struct loop *loop = lane->link->loop;

	if (!head || lane->link->stalled)
		loop_timer_cancel(loop, &lane->timer);
	else if (!loop_timer_pending(&lane->timer) || lane->timer.deadline_ns != head->arrive_ns)
		loop_timer_set(loop, &lane->timer, head->arrive_ns);
}

static void lane_due(void *arg)
{
	struct sim_lane *lane = arg;
	struct sim_link *link = sim_link_ref(lane->link);
	uint64_t now = loop_now_ns(link->loop);
	struct sim_message *message;

	while (!link->stalled && (message = TAILQ_FIRST(&lane->queue)) &&
	       message->arrive_ns <= now) {
		TAILQ_REMOVE(&lane->queue, message, entry);
		message->crossing = false;
		message->arrived(message);
	}
	lane_arm(lane);
	sim_link_unref(link);
}

int sim_link_new(struct loop *loop, const struct sim_link_config *config, struct sim_link **ret)
{
	struct sim_link *link = calloc(1, sizeof *link);

	if (!link)
		return -ENOMEM;
	link->pool = buf_pool_new(LINK_BUFFER_BYTES);
	if (!link->pool) {
		free(link);
		return -ENOMEM;
	}
	link->loop = loop;
	link->config = *config;
	link->refs = 1;
	rng_init(&link->rng, config->seed, rng_stream_of("link"));
	TAILQ_INIT(&link->sessions);
	for (unsigned i = 0; i < SIM_DIRECTIONS; i++) {
		link->lanes[i].link = link;
		TAILQ_INIT(&link->lanes[i].queue);
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
		assert(TAILQ_EMPTY(&link->lanes[i].queue));
		loop_timer_cancel(link->loop, &link->lanes[i].timer);
	}
	buf_pool_free(link->pool);
	free(link);
	return NULL;
}

/* Paths and sessions keep what they need of it. */
struct sim_link *sim_link_free(struct sim_link *link)
{
	return sim_link_unref(link);
}

void sim_link_send(struct sim_link *link, struct sim_message *message, enum sim_direction direction,
		   uint64_t bytes)
{
	struct sim_lane *lane = &link->lanes[direction];
	const struct sim_link_config *config = &link->config;
	uint64_t at = MAX_OF(loop_now_ns(link->loop), lane->busy_until_ns);

	assert(!message->crossing && !link->cut);
	if (config->rate_bytes_per_s > 0)
		at += bytes * NS_PER_S / config->rate_bytes_per_s;
	lane->busy_until_ns = at;
	at += config->delay_ns;
	if (config->jitter_ns > 0)
		at += rng_below(&link->rng, config->jitter_ns + 1);
	message->arrive_ns = at; /* or later: behind what was sent before */
	message->direction = direction;
	message->crossing = true;
	TAILQ_INSERT_TAIL(&lane->queue, message, entry);
	lane_arm(lane);
}

void sim_link_recall(struct sim_link *link, struct sim_message *message)
{
	struct sim_lane *lane = &link->lanes[message->direction];

	if (!message->crossing)
		return;
	TAILQ_REMOVE(&lane->queue, message, entry);
	message->crossing = false;
	lane_arm(lane);
}

void sim_link_cut(struct sim_link *link, bool cut)
{
	struct sim_session *session, *next;

	link->cut = cut;
	if (!cut)
		return;
	for (session = TAILQ_FIRST(&link->sessions); session; session = next) {
		next = TAILQ_NEXT(session, entry);
		sim_path_lose(session->path, "connection reset: the link was cut");
	}
	for (unsigned i = 0; i < SIM_DIRECTIONS; i++) {
		assert(TAILQ_EMPTY(&link->lanes[i].queue));
		link->lanes[i].busy_until_ns = 0;
	}
}

void sim_link_stall(struct sim_link *link, bool stall)
{
	link->stalled = stall;
	for (unsigned i = 0; i < SIM_DIRECTIONS; i++)
		lane_arm(&link->lanes[i]);
}
