/* SPDX-License-Identifier: MIT
 *
 * The table of path policies; each stands in a file of its own, and what they share here.
 */
#ifndef SANLAB_INITIATOR_MPIO_POLICY_H
#define SANLAB_INITIATOR_MPIO_POLICY_H

#include "initiator/mpio/mpio.h"

extern const struct mpio_policy mpio_policy_round_robin;
extern const struct mpio_policy mpio_policy_failover_only;
extern const struct mpio_policy mpio_policy_round_robin_subset;
extern const struct mpio_policy mpio_policy_least_queue_depth;
extern const struct mpio_policy mpio_policy_weighted_paths;
extern const struct mpio_policy mpio_policy_least_blocks;
extern const struct mpio_policy mpio_policy_service_time;
extern const struct mpio_policy mpio_policy_historical_service_time;
extern const struct mpio_policy mpio_policy_slice_aware;

/* NULL when INDEX is not in mpio_policy_names. */
const struct mpio_policy *mpio_policy_at(int index);

/* Is A the better one?  Neither of two equals is. */
typedef bool mpio_better_fn(const struct mpio_path_view *a, const struct mpio_path_view *b,
			    const void *arg);

/* The best of the paths that can take a request, -1 without one.  Equals take turns: the search
 * begins at *NEXT, which moves behind the path found.  Inlined, so that BETTER is, too. */
static inline int mpio_best_path(const struct mpio_path_view *paths, unsigned count, unsigned *next,
				 mpio_better_fn *better, const void *arg)
{
	unsigned at = *next < count ? *next : 0;
	int best = -1;

	for (unsigned tried = 0; tried < count; tried++) {
		if (paths[at].usable && !paths[at].full &&
		    (best < 0 || better(&paths[at], &paths[best], arg)))
			best = (int)at;
		at = at + 1 < count ? at + 1 : 0;
	}
	if (best >= 0)
		*next = (unsigned)best + 1;
	return best;
}

/* Round-robin's turns, shared with the policies that take turns in a set. */
struct mpio_turns {
	unsigned current;
	uint64_t ios, bytes;	       /* of a turn; 0: no limit of that kind */
	uint64_t ios_left, bytes_left; /* of the current one */
};
void mpio_turns_init(struct mpio_turns *turns, const struct mpio_config *config);
int mpio_turns_take(struct mpio_turns *turns, const struct mpio_path_view *paths, unsigned count,
		    uint64_t bytes);

/* The policy an override of CONFIG sets for units of this make, or NULL. */
const struct mpio_policy *mpio_policy_of_make(const struct mpio_config *config, const char *vendor,
					      const char *product);
size_t mpio_policy_state_bytes(void); /* of the largest */

#endif
