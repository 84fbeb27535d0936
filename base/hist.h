/* SPDX-License-Identifier: MIT
 *
 * Latency histogram: log-linear buckets, 128 a power of two (relative error below 0.8 %), values
 * in nanoseconds from 0 to 2^42 (73 minutes; larger ones count in the last bucket, max is exact).
 * Mergeable by addition; the raw buckets are exported so that readers can merge runs.
 */
#ifndef SANLAB_BASE_HIST_H
#define SANLAB_BASE_HIST_H

#include <stdint.h>

enum {
	HIST_SUB_BITS = 7,
	HIST_MAX_BITS = 42,
	HIST_BUCKETS = (HIST_MAX_BITS - HIST_SUB_BITS + 1) << HIST_SUB_BITS,
};

struct hist {
	uint64_t count;
	uint64_t sum_ns;
	uint64_t min_ns; /* 0 when empty */
	uint64_t max_ns;
	uint32_t bucket[HIST_BUCKETS];
};

void hist_reset(struct hist *hist);
void hist_record(struct hist *hist, uint64_t value_ns);
void hist_merge(struct hist *into, const struct hist *from);
double hist_mean_ns(const struct hist *hist);			     /* 0 when empty */
uint64_t hist_quantile_ns(const struct hist *hist, double quantile); /* quantile in [0, 1] */
uint64_t hist_bucket_low_ns(unsigned index);  /* smallest value of the bucket */
uint64_t hist_bucket_high_ns(unsigned index); /* largest value of the bucket */

#endif
