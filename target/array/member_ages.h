/* SPDX-License-Identifier: MIT
 *
 * How long requests of a member have been under way, by the balancer's rounds: latency is known of
 * requests that ended, and a member whose requests hang would look fast, or idle.
 *
 * A request is counted in the round in which it began; one that is still there when a later round
 * ends is at least as old as the end of its own.  No clock is read for it.
 *
 * Pure.  Bounds: AGE_ROUNDS rounds that left something behind; while all have, further ones are not
 * told from the last one.
 */
#ifndef SANLAB_TARGET_ARRAY_MEMBER_AGES_H
#define SANLAB_TARGET_ARRAY_MEMBER_AGES_H

#include <stdint.h>

enum { AGE_ROUNDS = 8 };

struct member_ages {
	uint8_t now; /* the round that requests begin in */
	struct {
		uint32_t in_flight;
		uint64_t ended_ns;
	} rounds[AGE_ROUNDS];
};

/* The round, to be given back when the request ends. */
static inline uint8_t ages_begin(struct member_ages *ages)
{
	ages->rounds[ages->now].in_flight++;
	return ages->now;
}

static inline void ages_end(struct member_ages *ages, uint8_t round)
{
	ages->rounds[round].in_flight--;
}

/* The round ends: the sum of the ages of what earlier ones left, and how many they are. */
static inline uint64_t ages_round(struct member_ages *ages, uint64_t now_ns, uint32_t *ret_count)
{
	uint64_t sum_ns = 0;
	unsigned next = ages->now;

	*ret_count = 0;
	ages->rounds[ages->now].ended_ns = now_ns;
	for (unsigned i = 0; i < AGE_ROUNDS; i++) {
		if (i == ages->now)
			continue;
		sum_ns += ages->rounds[i].in_flight * (now_ns - ages->rounds[i].ended_ns);
		*ret_count += ages->rounds[i].in_flight;
		if (ages->rounds[i].in_flight == 0)
			next = i;
	}
	ages->now = (uint8_t)next;
	return sum_ns;
}

#endif
