/* SPDX-License-Identifier: MIT
 *
 * Random streams: xoshiro256** (Blackman and Vigna), its state expanded by splitmix64.
 */
#include "base/rng.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/random.h>

__extension__ typedef unsigned __int128 rng_u128;

static uint64_t rotl(uint64_t v, int by)
{
	return v << by | v >> (64 - by);
}

static uint64_t mix(uint64_t v)
{
	v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
	return v ^ v >> 31;
}

void rng_init(struct rng *rng, uint64_t seed, uint64_t stream)
{
	/* Mixed before they are combined: neighbouring seeds and streams must not collide. */
	uint64_t state = mix(seed + UINT64_C(0x9e3779b97f4a7c15)) ^
			 rotl(mix(stream + UINT64_C(0xd1b54a32d192ed03)), 32);

	for (size_t i = 0; i < 4; i++) {
		state += UINT64_C(0x9e3779b97f4a7c15);
		rng->s[i] = mix(state); /* four different inputs of a bijection: never all 0 */
	}
}

uint64_t rng_u64(struct rng *rng)
{
	uint64_t *s = rng->s;
	uint64_t result = rotl(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

uint64_t rng_below(struct rng *rng, uint64_t limit)
{
	rng_u128 product;

	assert(limit > 0);
	/* The high half of a 128-bit product is uniform once the few low halves that would be
	 * counted twice are rejected (Lemire). */
	product = (rng_u128)rng_u64(rng) * limit;
	if ((uint64_t)product < limit) {
		uint64_t reject_below = (0 - limit) % limit;

		while ((uint64_t)product < reject_below)
			product = (rng_u128)rng_u64(rng) * limit;
	}
	return (uint64_t)(product >> 64);
}

double rng_unit(struct rng *rng)
{
	return (double)(rng_u64(rng) >> 11) * 0x1p-53;
}

double rng_exponential(struct rng *rng, double mean)
{
	return -mean * log1p(-rng_unit(rng));
}

void rng_fill(struct rng *rng, void *buf, size_t size)
{
	uint8_t *to = buf;

	while (size > 0) {
		uint64_t v = rng_u64(rng);
		size_t part = size < sizeof v ? size : sizeof v;

		memcpy(to, &v, part);
		to += part;
		size -= part;
	}
}

int rng_system_bytes(void *buf, size_t size)
{
	uint8_t *to = buf;

	while (size > 0) {
		ssize_t n = getrandom(to, size, 0);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n < 0)
			continue;
		to += n;
		size -= (size_t)n;
	}
	return 0;
}

uint64_t rng_stream_of(const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
	return hash;
}
