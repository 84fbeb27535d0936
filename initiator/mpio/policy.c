/* SPDX-License-Identifier: MIT
 *
 * The table of path policies, in the order of mpio_policy_names.
 */
#include "initiator/mpio/policy.h"

#include <string.h>

#include "base/bytes.h"

static const struct mpio_policy *const policies[] = {
    &mpio_policy_round_robin,	     &mpio_policy_failover_only,
    &mpio_policy_round_robin_subset, &mpio_policy_least_queue_depth,
    &mpio_policy_weighted_paths,     &mpio_policy_least_blocks,
    &mpio_policy_service_time,	     &mpio_policy_historical_service_time,
    &mpio_policy_slice_aware,
};

const char *const mpio_policy_names[] = {
    "round-robin",	  "failover-only",
    "round-robin-subset", "least-queue-depth",
    "weighted-paths",	  "least-blocks",
    "service-time",	  "historical-service-time",
    "slice-aware",	  NULL,
};

_Static_assert(ARRAY_SIZE(policies) + 1 == ARRAY_SIZE(mpio_policy_names),
	       "a policy is a row in both tables");

const struct mpio_policy *mpio_policy_at(int index)
{
	if (index < 0 || (size_t)index >= ARRAY_SIZE(policies))
		return NULL;
	return policies[index];
}

size_t mpio_policy_state_bytes(void)
{
	size_t bytes = 0;

	for (size_t i = 0; i < ARRAY_SIZE(policies); i++)
		bytes = MAX_OF(bytes, policies[i]->state_bytes);
	return bytes;
}

const struct mpio_policy *mpio_policy_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++)
		if (strcmp(policies[i]->name, name) == 0)
			return policies[i];
	return NULL;
}
