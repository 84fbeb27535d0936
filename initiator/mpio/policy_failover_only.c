/* SPDX-License-Identifier: MIT
 *
 * Fail over only: one active path, the others stand by.  A full path is waited for: full is not
 * failed.
 *
 * `failback: auto`: the active path is of the best rank, and the preferred one whenever that is.
 * `failback: manual`: the active path stays active while it is usable at all, whatever returns;
 * only its loss moves I/O, then to the best that is left.
 */
#include "initiator/mpio/policy.h"

struct failover_only {
	unsigned preferred, active;
	bool manual, begun;
};

static void init(void *state, const struct mpio_config *config, const struct slice_map *slices)
{
	struct failover_only *fo = state;

	fo->preferred = (unsigned)config->preferred_path;
	fo->active = fo->preferred;
	fo->manual = config->failback == MPIO_FAILBACK_MANUAL;
}

/* Usable and of a rank no other usable path betters: the preferred one, else the active one, else
 * the next after that. */
static int best(const struct failover_only *fo, const struct mpio_path_view *paths, unsigned count)
{
	int found = -1;

	for (unsigned tried = 0; tried < count; tried++) {
		unsigned at = (fo->active + tried) % count;

		if (paths[at].usable &&
		    (found < 0 || paths[at].rank < paths[found].rank ||
		     (at == fo->preferred && paths[at].rank == paths[found].rank)))
			found = (int)at;
	}
	return found;
}

static int select_path(void *state, const struct mpio_path_view *paths, unsigned count,
		       const struct mpio_ask *ask)
{
	struct failover_only *fo = state;
	bool stays = fo->manual && fo->begun && fo->active < count && paths[fo->active].usable;
	int at = stays ? (int)fo->active : best(fo, paths, count);

	if (at < 0)
		return -1;
	fo->begun = true;
	fo->active = (unsigned)at;
	return paths[at].full ? -1 : at;
}

const struct mpio_policy mpio_policy_failover_only = {
    .name = "failover-only",
    .help = "one active path, the others stand by; back to preferred-path unless failback: manual",
    .state_bytes = sizeof(struct failover_only),
    .all_ranks = true,
    .init = init,
    .select = select_path,
};
