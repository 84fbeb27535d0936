/* SPDX-License-Identifier: MIT
 *
 * Least blocks: the path with the fewest bytes on their way, of all devices of the host together;
 * how many requests they are does not count.
 */
#include "initiator/mpio/policy.h"

struct least_blocks {
	unsigned next;
};

static void init(void *state, const struct mpio_config *config, const struct slice_map *slices) {}

static bool better(const struct mpio_path_view *a, const struct mpio_path_view *b, const void *arg)
{
	return a->load->in_flight_bytes < b->load->in_flight_bytes;
}

static int select_path(void *state, const struct mpio_path_view *paths, unsigned count,
		       const struct mpio_ask *ask)
{
	struct least_blocks *blocks = state;

	return mpio_best_path(paths, count, &blocks->next, better, NULL);
}

const struct mpio_policy mpio_policy_least_blocks = {
    .name = "least-blocks",
    .help = "the path with the fewest bytes in flight, counted over all volumes of the host",
    .state_bytes = sizeof(struct least_blocks),
    .init = init,
    .select = select_path,
};
