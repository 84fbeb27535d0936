/* SPDX-License-Identifier: MIT
 *
 * Least queue depth: the path with the fewest requests on their way, of all devices of the host
 * together, as Microsoft documents it: one I/O to each of two units on path 1 makes path 2 the next
 * one for either unit.
 */
#include "initiator/mpio/policy.h"

struct least_queue_depth {
	unsigned next;
};

static void init(void *state, const struct mpio_config *config, const struct slice_map *slices) {}

static bool better(const struct mpio_path_view *a, const struct mpio_path_view *b, const void *arg)
{
	return a->load->in_flight < b->load->in_flight;
}

static int select_path(void *state, const struct mpio_path_view *paths, unsigned count,
		       const struct mpio_ask *ask)
{
	struct least_queue_depth *queue = state;

	return mpio_best_path(paths, count, &queue->next, better, NULL);
}

const struct mpio_policy mpio_policy_least_queue_depth = {
    .name = "least-queue-depth",
    .help = "the path with the fewest requests in flight, counted over all volumes of the host",
    .state_bytes = sizeof(struct least_queue_depth),
    .init = init,
    .select = select_path,
};
