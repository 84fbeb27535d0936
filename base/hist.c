/* SPDX-License-Identifier: MIT
 *
 * Log-linear latency histogram.  The first 128 buckets count single nanoseconds; each further
 * group of 128 divides one power of two.
 */
#include "base/hist.h"

#include <math.h>
#include <string.h>

enum { SUB_BUCKETS = 1 << HIST_SUB_BITS };

static unsigned bucket_of(uint64_t value_ns)
{
	unsigned shift;

	if (value_ns < SUB_BUCKETS)
		return (unsigned)value_ns;
	if (value_ns >> HIST_MAX_BITS)
		return HIST_BUCKETS - 1;
	shift = 63U - (unsigned)__builtin_clzll(value_ns) - HIST_SUB_BITS;
	/* value >> shift is in [128, 256): its top bit makes up for one group. */
	return (shift << HIST_SUB_BITS) + (unsigned)(value_ns >> shift);
}

static uint64_t add_capped(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void hist_reset(struct hist *hist)
{
	memset(hist, 0, sizeof *hist);
}

void hist_record(struct hist *hist, uint64_t value_ns)
{
	uint32_t *bucket = &hist->bucket[bucket_of(value_ns)];

	if (*bucket != UINT32_MAX)
		++*bucket;
	if (hist->count == 0 || value_ns < hist->min_ns)
		hist->min_ns = value_ns;
	if (value_ns > hist->max_ns)
		hist->max_ns = value_ns;
	hist->count++;
	hist->sum_ns = add_capped(hist->sum_ns, value_ns);
}

void hist_merge(struct hist *into, const struct hist *from)
{
	if (from->count == 0)
		return;
	if (into->count == 0 || from->min_ns < into->min_ns)
		into->min_ns = from->min_ns;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
	into->count = add_capped(into->count, from->count);
	into->sum_ns = add_capped(into->sum_ns, from->sum_ns);
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		uint64_t sum = (uint64_t)into->bucket[i] + from->bucket[i];

		into->bucket[i] = sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
	}
}

double hist_mean_ns(const struct hist *hist)
{
	return hist->count ? (double)hist->sum_ns / (double)hist->count : 0;
}

uint64_t hist_quantile_ns(const struct hist *hist, double quantile)
{
	double want = ceil(quantile * (double)hist->count);
	uint64_t rank = want < 1 ? 1 : (uint64_t)want;
	uint64_t seen = 0;

	if (hist->count == 0)
		return 0;
	if (quantile <= 0)
		return hist->min_ns;
	if (rank >= hist->count)
		return hist->max_ns;
	/* The last bucket is open at the top: only the maximum is known of it. */
	for (unsigned i = 0; i < HIST_BUCKETS - 1; i++) {
		seen += hist->bucket[i];
		if (seen >= rank) {
			uint64_t high = hist_bucket_high_ns(i);

			return high < hist->max_ns ? high : hist->max_ns;
		}
	}
	return hist->max_ns;
}

uint64_t hist_bucket_low_ns(unsigned index)
{
	unsigned group = index >> HIST_SUB_BITS;

	if (group == 0)
		return index;
	return (uint64_t)(SUB_BUCKETS + (index & (SUB_BUCKETS - 1))) << (group - 1);
}

uint64_t hist_bucket_high_ns(unsigned index)
{
	unsigned group = index >> HIST_SUB_BITS;

	if (group == 0)
		return index;
	return hist_bucket_low_ns(index) + (UINT64_C(1) << (group - 1)) - 1;
}
