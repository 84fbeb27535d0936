/* SPDX-License-Identifier: MIT
 *
 * Round robin with subset: turns within the primary set; the standby set only while every primary
 * is gone, and back as soon as one returns.
 *
 * The primary set is `primary-paths`, or without that the active/optimized paths.  Either way it is
 * in the ranks: paths outside a configured set rank behind all that are in it, and only the best
 * rank is usable here.
 */
#include "initiator/mpio/policy.h"

static void init(void *state, const struct mpio_config *config, const struct slice_map *slices)
{
	mpio_turns_init(state, config);
}

static int select_path(void *state, const struct mpio_path_view *paths, unsigned count,
		       const struct mpio_ask *ask)
{
	return mpio_turns_take(state, paths, count, ask->length_bytes);
}

const struct mpio_policy mpio_policy_round_robin_subset = {
    .name = "round-robin-subset",
    .help = "turns within primary-paths (or the optimized paths); the others when all are gone",
    .state_bytes = sizeof(struct mpio_turns),
    .primary_set = true,
    .init = init,
    .select = select_path,
};
