/* SPDX-License-Identifier: MIT
 *
 * What a raw load does next: read or write, how much, where.  Pure.
 *
 * All offsets are multiples of the unit, the largest number of bytes that divides every size: so
 * that I/Os of different sizes cover whole units of each other.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_RAW_MIX_H
#define SANLAB_HARNESS_WORKLOAD_RAW_MIX_H

#include "base/rng.h"
#include "harness/workload/raw.h"

struct raw_mix {
	struct raw_size sizes[RAW_SIZES_MAX];
	unsigned count;
	double read_share, random_share;
	uint64_t unit_bytes, largest_bytes;
};

/* The place of one device. */
struct raw_place {
	uint64_t span_bytes; /* a whole number of units */
	uint64_t cursor_bytes;
};

void raw_mix_init(struct raw_mix *ret_mix, const struct raw_config *config);
bool raw_mix_reads(const struct raw_mix *mix, struct rng *rng);
uint64_t raw_mix_bytes(const struct raw_mix *mix, struct rng *rng);
/* Where LENGTH_BYTES go; sequential ones from the cursor on, which they move. */
uint64_t raw_mix_offset(const struct raw_mix *mix, struct rng *rng, struct raw_place *place,
			uint64_t length_bytes);

#endif
