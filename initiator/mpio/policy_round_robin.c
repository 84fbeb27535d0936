/* SPDX-License-Identifier: MIT
 *
 * Round robin: every path in turn, `rr-ios` I/Os each.  A path that is down or full is passed
 * over and the next one gets a whole turn.
 */
#include "base/bytes.h"
#include "initiator/mpio/policy.h"

struct round_robin {
	unsigned current;
	uint64_t left; /* I/Os of the current turn still to come */
	uint64_t rr_ios;
};

static void init(void *state, const struct mpio_config *config, const struct slice_map *slices)
{
	struct round_robin *rr = state;

	rr->rr_ios = MAX_OF(config->rr_ios, UINT64_C(1));
	rr->left = rr->rr_ios;
}

static int select_path(void *state, const struct mpio_path_view *paths, unsigned count,
		       const struct mpio_ask *ask)
{
	struct round_robin *rr = state;
	unsigned at = rr->current;

	for (unsigned tried = 0; tried < count; tried++) {
		unsigned next = at + 1 < count ? at + 1 : 0;

		if (paths[at].usable && !paths[at].full) {
			if (tried)
				rr->left = rr->rr_ios;
			rr->current = at;
			if (--rr->left == 0) {
				rr->current = next;
				rr->left = rr->rr_ios;
			}
			return (int)at;
		}
		at = next;
	}
	return -1;
}

const struct mpio_policy mpio_policy_round_robin = {
    .name = "round-robin",
    .help = "every path that is up in turn, rr-ios I/Os each",
    .state_bytes = sizeof(struct round_robin),
    .init = init,
    .select = select_path,
};
