/* SPDX-License-Identifier: MIT
 *
 * Weighted paths: the usable path of the lowest weight takes all I/O, the next lowest when it
 * fails. Paths of one weight take turns.  A full path is waited for: full is not failed.
 */
#include "base/bytes.h"
#include "initiator/mpio/policy.h"

struct weighted_paths {
	unsigned next;
};

static void init(void *state, const struct mpio_config *config, const struct slice_map *slices) {}

static bool better(const struct mpio_path_view *a, const struct mpio_path_view *b, const void *arg)
{
	return a->weight < b->weight;
}

static int select_path(void *state, const struct mpio_path_view *paths, unsigned count,
		       const struct mpio_ask *ask)
{
	struct weighted_paths *weighted = state;
	int best = mpio_best_path(paths, count, &weighted->next, better, NULL);

	for (unsigned i = 0; best >= 0 && i < count; i++)
		if (paths[i].usable && paths[i].weight < paths[best].weight)
			return -1; /* full */
	return best;
}

const struct mpio_policy mpio_policy_weighted_paths = {
    .name = "weighted-paths",
    .help = "the path of the lowest of `weights` takes all I/O, equal weights take turns",
    .state_bytes = sizeof(struct weighted_paths),
    .init = init,
    .select = select_path,
};
