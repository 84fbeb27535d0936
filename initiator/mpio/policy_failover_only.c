/* SPDX-License-Identifier: MIT
 *
 * Fail over only: one active path, the others stand by.  The preferred path is active whenever it
 * is up (automatic failback); without it the first one up after the last active is, and stays so
 * while it is up.  A full path is waited for: full is not failed.
 */
#include "initiator/mpio/policy.h"

struct failover_only {
	unsigned preferred, active;
};

static void init(void *state, const struct mpio_config *config, const struct slice_map *slices)
{
	struct failover_only *fo = state;

	fo->preferred = (unsigned)config->preferred_path;
	fo->active = fo->preferred;
}

static int select_path(void *state, const struct mpio_path_view *paths, unsigned count,
		       const struct mpio_ask *ask)
{
	struct failover_only *fo = state;

	if (fo->preferred < count && paths[fo->preferred].usable)
		fo->active = fo->preferred;
	for (unsigned tried = 0; tried < count; tried++) {
		unsigned at = (fo->active + tried) % count;

		if (paths[at].usable) {
			fo->active = at;
			return paths[at].full ? -1 : (int)at;
		}
	}
	return -1;
}

const struct mpio_policy mpio_policy_failover_only = {
    .name = "failover-only",
    .help = "one active path, the others stand by; back to preferred-path when it returns",
    .state_bytes = sizeof(struct failover_only),
    .init = init,
    .select = select_path,
};
