/* SPDX-License-Identifier: MIT
 *
 * Content of records, pages and log padding: what no array can compress or share, and what costs a
 * processor little more than to store it.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_FILL_H
#define SANLAB_HARNESS_WORKLOAD_ESE_FILL_H

#include <stdint.h>
#include <string.h>

/* A Weyl sequence from WORD on (mixed by the caller): sequences of two words differ in each of
 * theirs.  No step waits for more than an addition, and the compiler makes vector code of it. */
static inline void ese_fill(uint8_t *to, size_t bytes, uint64_t word)
{
	const uint64_t step = UINT64_C(0x9e3779b97f4a7c15);
	size_t words = bytes / 8;
	uint64_t last = word + words * step;

	for (size_t i = 0; i < words; i++, word += step) {
		uint64_t v = word; /* its own address: WORD can be kept in a vector */

		memcpy(to + i * 8, &v, 8);
	}
	memcpy(to + words * 8, &last, bytes % 8);
}

#endif
