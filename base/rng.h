/* SPDX-License-Identifier: MIT
 *
 * Seeded random streams (xoshiro256**, seeded by splitmix64).  Every consumer owns its stream:
 * the same seed and stream number give the same sequence whatever else runs.
 */
#ifndef SANLAB_BASE_RNG_H
#define SANLAB_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct rng {
	uint64_t s[4];
};

void rng_init(struct rng *rng, uint64_t seed, uint64_t stream);
uint64_t rng_u64(struct rng *rng);
uint64_t rng_below(struct rng *rng, uint64_t limit);	/* uniform in [0, limit), limit > 0 */
double rng_unit(struct rng *rng);			/* uniform in [0, 1) */
double rng_exponential(struct rng *rng, double mean);	/* Poisson arrivals' gaps */
void rng_fill(struct rng *rng, void *buf, size_t size); /* bytes */

/* Bytes that nobody can foretell, from the system: for challenges, never for loads.  0 or -errno.
 */
int rng_system_bytes(void *buf, size_t size);

/* A stable 64-bit hash of a string, to derive stream numbers from names. */
uint64_t rng_stream_of(const char *name);

#endif
