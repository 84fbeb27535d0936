/* SPDX-License-Identifier: MIT
 *
 * Which keys the transactions touch: all alike (Jetstress), or skewed as real mailboxes are.
 *
 * Pure: (access, random stream) -> key.  O(1) a key, no tables.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_ACCESS_H
#define SANLAB_HARNESS_WORKLOAD_ESE_ACCESS_H

#include <stdint.h>

#include "base/rng.h"

enum ese_keys {
	ESE_KEYS_UNIFORM,
	ESE_KEYS_HOT,  /* hot_hits of the keys fall on hot_share of the leaves */
	ESE_KEYS_ZIPF, /* the leaf of rank r has weight 1 / r^theta; ranks are scattered */
};

struct ese_keys_config {
	enum ese_keys kind;
	double theta;		    /* ZIPF: 0 < theta < 1 */
	double hot_share, hot_hits; /* HOT: 0..1 */
};

struct ese_access {
	struct ese_keys_config config;
	uint64_t leaves;
	uint64_t multiplier;	       /* scatters ranks over the leaves: coprime to their number */
	double zeta, alpha, eta, half; /* ZIPF, after Gray et al. */
};

void ese_access_init(struct ese_access *access, const struct ese_keys_config *config,
		     uint64_t leaves, uint64_t seed);
/* A key below leaves << 32. */
uint64_t ese_access_key(const struct ese_access *access, struct rng *rng);

#endif
