/* SPDX-License-Identifier: MIT
 *
 * Slice aware: a request goes to the member that has the block (the target tells a slice map by
 * REPORT REFERRALS), there to the path with the fewest requests in flight on the whole host.  A
 * path of another member takes it, at the price of a hop inside the array, only when none of the
 * owner's is usable and not full.  Without a slice map it is least queue depth.
 */
#include "initiator/mpio/policy.h"
#include "initiator/mpio/slices.h"

struct slice_aware {
	unsigned next;
	const struct slice_map *slices;
};

static void init(void *state, const struct mpio_config *config, const struct slice_map *slices)
{
	struct slice_aware *aware = state;

	aware->slices = slices;
}

static bool better(const struct mpio_path_view *a, const struct mpio_path_view *b, const void *arg)
{
	const struct slice_owners *owners = arg;

	if (owners) {
		bool a_owns = slice_owned_by(owners, a->member);

		if (a_owns != slice_owned_by(owners, b->member))
			return a_owns;
	}
	return a->load->in_flight < b->load->in_flight;
}

static int select_path(void *state, const struct mpio_path_view *paths, unsigned count,
		       const struct mpio_ask *ask)
{
	struct slice_aware *aware = state;
	const struct slice_owners *owners = slice_map_find(aware->slices, ask->offset_bytes);

	return mpio_best_path(paths, count, &aware->next, better, owners);
}

const struct mpio_policy mpio_policy_slice_aware = {
    .name = "slice-aware",
    .help = "the member that has the block, there the path with the fewest requests in flight",
    .state_bytes = sizeof(struct slice_aware),
    .needs_slices = true,
    .init = init,
    .select = select_path,
};
