/* SPDX-License-Identifier: MIT
 *
 * The sectors of one cache page as a set of bits.  Pure.
 */
#ifndef SANLAB_TARGET_ARRAY_CACHE_BITS_H
#define SANLAB_TARGET_ARRAY_CACHE_BITS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

enum { CACHE_SECTOR_BYTES = 512, CACHE_BITS = 128 };

__extension__ typedef unsigned __int128 cache_bits;

/* COUNT sectors (1 to 128 - FIRST) from FIRST on. */
static inline cache_bits bits_range(unsigned first, unsigned count)
{
	assert(count >= 1 && first + count <= CACHE_BITS);
	return (~(cache_bits)0 >> (CACHE_BITS - count)) << first;
}

static inline unsigned bits_count(cache_bits bits)
{
	return (unsigned)(__builtin_popcountll((uint64_t)bits) +
			  __builtin_popcountll((uint64_t)(bits >> 64)));
}

/* Of a set that is not empty. */
static inline unsigned bits_first(cache_bits bits)
{
	uint64_t low = (uint64_t)bits;
	return (unsigned)(low ? __builtin_ctzll(low)
			      : 64 + __builtin_ctzll((uint64_t)(bits >> 64)));
}

/* Takes the first run out of *BITS; false when it is empty. */
static inline bool bits_take_run(cache_bits *bits, unsigned *ret_first, unsigned *ret_count)
{
	if (!*bits)
		return false;
	unsigned first = bits_first(*bits);
	cache_bits gap = ~(*bits >> first);
	/* The shift brought in zeros, unless FIRST is 0 and all are set. */
	unsigned count = gap ? bits_first(gap) : CACHE_BITS;
	*bits &= ~bits_range(first, count);
	*ret_first = first;
	*ret_count = count;
	return true;
}

#endif
