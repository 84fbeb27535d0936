/* SPDX-License-Identifier: MIT
 *
 * Where the keys fall.
 *
 * Zipf: the method of Gray et al., "Quickly generating billion-record synthetic databases"
 * (SIGMOD 1994), with the harmonic sum by its first terms and the integral of the rest: exact
 * enough from 100 terms on, and no pass over millions of leaves.
 */
#include <math.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_access.h"
#include "harness/workload/ese/ese_image.h"

enum { SUM_TERMS = 10000 };

static double harmonic(uint64_t n, double theta)
{
	uint64_t terms = MIN_OF(n, SUM_TERMS);
	double sum = 0;

	for (uint64_t i = 1; i <= terms; i++)
		sum += pow((double)i, -theta);
	if (n > terms) /* Euler-Maclaurin's first two terms */
		sum += (pow((double)n, 1 - theta) - pow((double)terms, 1 - theta)) / (1 - theta) +
		       (pow((double)n, -theta) - pow((double)terms, -theta)) / 2;
	return sum;
}

void ese_access_init(struct ese_access *access, const struct ese_keys_config *config,
		     uint64_t leaves, uint64_t seed)
{
	double theta = config->theta;

	*access = (struct ese_access){.config = *config, .leaves = leaves};
	/* Hot leaves lie scattered, so that they do not share parents more than others do. */
	access->multiplier = leaves > 1 ? seed % leaves | 1 : 1;
	while (common_divisor(access->multiplier, leaves) != 1)
		access->multiplier += 2;
	if (config->kind != ESE_KEYS_ZIPF)
		return;
	access->zeta = harmonic(leaves, theta);
	access->alpha = 1 / (1 - theta);
	access->half = 1 + pow(0.5, theta);
	access->eta =
	    (1 - pow(2 / (double)leaves, 1 - theta)) / (1 - (1 + pow(0.5, theta)) / access->zeta);
}

static uint64_t zipf_rank(const struct ese_access *access, struct rng *rng)
{
	double u = rng_unit(rng), uz = u * access->zeta;
	uint64_t rank;

	if (uz < 1 || access->leaves == 1)
		return 0;
	if (uz < access->half || access->leaves == 2)
		return 1;
	rank = (uint64_t)((double)access->leaves *
			  pow(access->eta * u - access->eta + 1, access->alpha));
	return MIN_OF(rank, access->leaves - 1);
}

static uint64_t hot_rank(const struct ese_access *access, struct rng *rng)
{
	uint64_t hot = (uint64_t)((double)access->leaves * access->config.hot_share);

	hot = MAX_OF(MIN_OF(hot, access->leaves), 1);
	if (hot == access->leaves || rng_unit(rng) < access->config.hot_hits)
		return rng_below(rng, hot);
	return hot + rng_below(rng, access->leaves - hot);
}

uint64_t ese_access_key(const struct ese_access *access, struct rng *rng)
{
	uint64_t rank, leaf;

	switch (access->config.kind) {
	case ESE_KEYS_HOT:
		rank = hot_rank(access, rng);
		break;
	case ESE_KEYS_ZIPF:
		rank = zipf_rank(access, rng);
		break;
	default:
		return rng_below(rng, access->leaves << ESE_LEAF_SHIFT);
	}
	leaf = rank * access->multiplier % access->leaves; /* both below 2^31 */
	return leaf << ESE_LEAF_SHIFT | (rng_u64(rng) >> (64 - ESE_LEAF_SHIFT));
}
