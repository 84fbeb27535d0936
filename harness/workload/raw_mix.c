/* SPDX-License-Identifier: MIT
 *
 * Choosing the next I/O.
 */
#include "harness/workload/raw_mix.h"

#include <string.h>

#include "base/bytes.h"

void raw_mix_init(struct raw_mix *ret_mix, const struct raw_config *config)
{
	static const double reads[] = {[RAW_READ] = 1, [RAW_WRITE] = 0};
	static const double random[] = {[RAW_RANDOM] = 1, [RAW_SEQUENTIAL] = 0};
	struct raw_mix mix = {
	    .count = config->size_count,
	    .read_share = config->op == RAW_RW ? config->read_share : reads[config->op],
	    .random_share =
		config->pattern == RAW_MIXED ? config->random_share : random[config->pattern],
	};

	memcpy(mix.sizes, config->sizes, sizeof mix.sizes);
	if (!mix.count)
		mix.sizes[mix.count++] = (struct raw_size){config->block_bytes, 1};
	for (unsigned i = 0; i < mix.count; i++) {
		mix.unit_bytes = common_divisor(mix.sizes[i].bytes, mix.unit_bytes);
		mix.largest_bytes = MAX_OF(mix.largest_bytes, mix.sizes[i].bytes);
	}
	*ret_mix = mix;
}

bool raw_mix_reads(const struct raw_mix *mix, struct rng *rng)
{
	if (mix->read_share <= 0 || mix->read_share >= 1)
		return mix->read_share > 0;
	return rng_unit(rng) < mix->read_share;
}

uint64_t raw_mix_bytes(const struct raw_mix *mix, struct rng *rng)
{
	unsigned i = 0;
	double at;

	if (mix->count == 1)
		return mix->sizes[0].bytes;
	/* The last takes what rounding leaves. */
	for (at = rng_unit(rng); i + 1 < mix->count && at >= mix->sizes[i].share; i++)
		at -= mix->sizes[i].share;
	return mix->sizes[i].bytes;
}

uint64_t raw_mix_offset(const struct raw_mix *mix, struct rng *rng, struct raw_place *place,
			uint64_t length_bytes)
{
	uint64_t room = place->span_bytes - length_bytes, at;
	bool random =
	    mix->random_share >= 1 || (mix->random_share > 0 && rng_unit(rng) < mix->random_share);

	/* Random places of I/Os of one size do not overlap each other. */
	if (random && mix->count == 1)
		return rng_below(rng, place->span_bytes / length_bytes) * length_bytes;
	if (random)
		return rng_below(rng, room / mix->unit_bytes + 1) * mix->unit_bytes;
	at = place->cursor_bytes <= room ? place->cursor_bytes : 0;
	place->cursor_bytes = at + length_bytes;
	return at;
}
