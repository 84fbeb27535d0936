/* SPDX-License-Identifier: MIT
 *
 * Historical service time, in the manner of Linux' dm-historical-service-time: each path has an
 * average of what one request has taken of its time lately, and the path with the least
 * (1 + requests in flight) x average is the next.
 *
 * Requests overlap; their times are told apart by counting each from the end of the one before, so
 * the average says how fast a path works requests off, not how long its queue is.  The average is
 * exponential in 10-bit fixed point; a request that took long weighs more, by 16.8 ms steps, so
 * that a slow path with few answers is seen as soon as a fast one with many.
 *
 * An average that nothing has renewed for a while (as many average times as there are paths) is
 * stale, and it may be too high or too low.  A stale path that is idle gets one request to find
 * out; a stale one that is busy gets no more than the others have.
 */
#include "base/bytes.h"
#include "initiator/mpio/device.h"

enum {
	FIXED_SHIFT = 10,
	FIXED_ONE = 1 << FIXED_SHIFT,
	BASE_WEIGHT = 972,
	BUCKET_SHIFT = 24, /* ns: 16.8 ms */
	BUCKETS = 64,
};

struct path_history {
	uint64_t average; /* ns << FIXED_SHIFT */
	uint64_t last_end_ns;
	uint64_t stale_ns;
};

struct historical_service_time {
	unsigned next;
	uint16_t weights[BUCKETS]; /* of the old average, by how long the new request took */
	struct path_history paths[MPIO_MAX_PATHS];
};

static void init(void *state, const struct mpio_config *config, const struct slice_map *slices)
{
	struct historical_service_time *history = state;
	uint32_t weight = BASE_WEIGHT;

	for (unsigned i = 0; i < BUCKETS; i++) {
		history->weights[i] = (uint16_t)weight;
		weight = weight * BASE_WEIGHT >> FIXED_SHIFT;
	}
}

/* What mpio_best_path compares by: views lie in one array, so a path's index is its place there. */
struct compared {
	const struct historical_service_time *history;
	const struct mpio_path_view *paths;
	uint64_t now_ns;
};

static bool better(const struct mpio_path_view *a, const struct mpio_path_view *b, const void *arg)
{
	const struct compared *in = arg;
	const struct path_history *ha = &in->history->paths[a - in->paths];
	const struct path_history *hb = &in->history->paths[b - in->paths];
	bool a_stale = in->now_ns >= ha->stale_ns, b_stale = in->now_ns >= hb->stale_ns;
	uint64_t a_ends, b_ends;

	if (a_stale != b_stale) {
		const struct mpio_path_view *stale = a_stale ? a : b, *fresh = a_stale ? b : a;

		if (stale->in_flight == 0 || stale->in_flight > fresh->in_flight)
			return (stale->in_flight == 0) == a_stale;
	}
	a_ends = (1 + (uint64_t)a->in_flight) * ha->average;
	b_ends = (1 + (uint64_t)b->in_flight) * hb->average;
	return a_ends < b_ends || (a_ends == b_ends && a->in_flight < b->in_flight);
}

static int select_path(void *state, const struct mpio_path_view *paths, unsigned count,
		       const struct mpio_ask *ask)
{
	struct historical_service_time *history = state;
	struct compared in = {history, paths, ask->now_ns};

	return mpio_best_path(paths, count, &history->next, better, &in);
}

static void answered(void *state, const struct mpio_path_view *paths, unsigned count, unsigned path,
		     uint64_t sent_ns, uint64_t now_ns)
{
	struct historical_service_time *history = state;
	struct path_history *h = &history->paths[path];
	uint64_t began_ns = MAX_OF(sent_ns, h->last_end_ns);
	uint64_t took_ns = now_ns > began_ns ? now_ns - began_ns : 0;
	uint64_t old = history->weights[MIN_OF(took_ns >> BUCKET_SHIFT, (uint64_t)BUCKETS - 1)];
	unsigned usable = 0;

	for (unsigned i = 0; i < count; i++)
		usable += paths[i].usable;
	h->average = (old * h->average >> FIXED_SHIFT) + (FIXED_ONE - old) * took_ns;
	h->last_end_ns = now_ns;
	h->stale_ns = now_ns + (usable * h->average >> FIXED_SHIFT);
}

const struct mpio_policy mpio_policy_historical_service_time = {
    .name = "historical-service-time",
    .help = "least (1 + requests in flight) x average service time, as dm-historical-service-time",
    .state_bytes = sizeof(struct historical_service_time),
    .init = init,
    .select = select_path,
    .answered = answered,
};
