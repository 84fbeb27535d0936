/* SPDX-License-Identifier: MIT
 *
 * The table of path policies; each stands in a file of its own.
 */
#ifndef SANLAB_INITIATOR_MPIO_POLICY_H
#define SANLAB_INITIATOR_MPIO_POLICY_H

#include "initiator/mpio/mpio.h"

extern const struct mpio_policy mpio_policy_round_robin;
extern const struct mpio_policy mpio_policy_failover_only;

/* NULL when INDEX is not in mpio_policy_names. */
const struct mpio_policy *mpio_policy_at(int index);

#endif
