/* SPDX-License-Identifier: MIT
 *
 * Filling and verifying pages.  See page.h for the layout.
 */
#include "harness/workload/page.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "harness/workload/workload.h"

enum {
	AT_CRC = 0,
	AT_MAGIC = 4,
	AT_RUN = 8,
	AT_VOLUME = 24,
	AT_PAGE = 32,
	AT_GENERATION = 40,
	AT_UNIT = 48,
	AT_UNITS = 52,
	AT_ZERO = 56,
	FILL_WORDS = (PAGE_UNIT_BYTES - PAGE_HEADER_BYTES) / 8,
};

enum unit_class {
	UNIT_OURS,	  /* the right place of this run, some generation */
	UNIT_ZERO,	  /* all zero */
	UNIT_FOREIGN,	  /* intact, but of another run */
	UNIT_MISDIRECTED, /* intact, of this run, but of another place */
	UNIT_BAD,	  /* checksum wrong, or no identity at all */
	UNIT_CLASSES,
};

/* The finaliser of splitmix64: every input bit reaches every output bit. */
static uint64_t mix(uint64_t v)
{
	v = (v ^ (v >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	v = (v ^ (v >> 27)) * UINT64_C(0x94d049bb133111eb);
	return v ^ (v >> 31);
}

void page_run_uuid(uint64_t seed, uint64_t start_wall_ns, uint8_t ret_run[16])
{
	put_be64(ret_run, mix(seed + UINT64_C(0x9e3779b97f4a7c15)));
	put_be64(ret_run + 8, mix(mix(seed) + start_wall_ns));
	ret_run[6] = (uint8_t)((ret_run[6] & 0x0f) | 0x80); /* RFC 9562 version 8: our own rule */
	ret_run[8] = (uint8_t)((ret_run[8] & 0x3f) | 0x80);
}

void page_fill(const struct page_area *area, void *buf, uint64_t page, uint64_t generation)
{
	uint64_t seed =
	    mix(get_be64(area->run + 8) + mix(area->volume + mix(page + mix(generation))));

	for (uint32_t i = 0; i < area->units; i++) {
		uint8_t *unit = (uint8_t *)buf + (size_t)i * PAGE_UNIT_BYTES;
		uint64_t *words = (uint64_t *)(void *)(unit + PAGE_HEADER_BYTES);
		uint64_t word = seed + ((uint64_t)i << 32);

		put_be32(unit + AT_MAGIC, area->magic);
		memcpy(unit + AT_RUN, area->run, sizeof area->run);
		put_be64(unit + AT_VOLUME, area->volume);
		put_be64(unit + AT_PAGE, page);
		put_be64(unit + AT_GENERATION, generation);
		put_be32(unit + AT_UNIT, i);
		put_be32(unit + AT_UNITS, area->units);
		put_be64(unit + AT_ZERO, 0);
		/* A Weyl sequence with one shift: the compiler makes vector code of it. */
		for (unsigned w = 0; w < FILL_WORDS; w++) {
			words[w] = word ^ (word >> 29);
			word += UINT64_C(0x9e3779b97f4a7c15);
		}
		put_be32(unit + AT_CRC, crc32c(0, unit + AT_MAGIC, PAGE_UNIT_BYTES - AT_MAGIC));
	}
}

static bool is_zero(const uint8_t *unit)
{
	return get_be64(unit) == 0 && memcmp(unit, unit + 8, PAGE_UNIT_BYTES - 8) == 0;
}

static enum unit_class classify(const struct page_area *area, const uint8_t *unit, uint64_t page,
				uint32_t index, uint64_t *ret_generation)
{
	uint32_t magic = get_be32(unit + AT_MAGIC);

	*ret_generation = 0;
	if (magic == 0 && is_zero(unit))
		return UNIT_ZERO;
	if (magic != PAGE_MAGIC_DATABASE && magic != PAGE_MAGIC_LOG)
		return UNIT_BAD;
	if (get_be32(unit + AT_CRC) != crc32c(0, unit + AT_MAGIC, PAGE_UNIT_BYTES - AT_MAGIC))
		return UNIT_BAD;
	*ret_generation = get_be64(unit + AT_GENERATION);
	if (memcmp(unit + AT_RUN, area->run, sizeof area->run) != 0)
		return UNIT_FOREIGN;
	if (magic != area->magic || get_be64(unit + AT_VOLUME) != area->volume ||
	    get_be64(unit + AT_PAGE) != page || get_be32(unit + AT_UNIT) != index ||
	    get_be32(unit + AT_UNITS) != area->units)
		return UNIT_MISDIRECTED;
	return UNIT_OURS;
}

/* What the units of one page are, taken together. */
struct findings {
	uint32_t units;
	uint32_t of[UNIT_CLASSES];
	uint64_t generation_low, generation_high; /* of UNIT_OURS */
	uint64_t other_generation;		  /* of the first that is not ours */
};

static void look(const struct page_area *area, const uint8_t *buf, uint64_t page,
		 struct findings *found)
{
	*found = (struct findings){.units = area->units, .generation_low = UINT64_MAX};
	for (uint32_t i = 0; i < area->units; i++) {
		uint64_t generation;
		enum unit_class class =
		    classify(area, buf + (size_t)i * PAGE_UNIT_BYTES, page, i, &generation);

		found->of[class]++;
		if (class == UNIT_OURS) {
			found->generation_low = MIN_OF(found->generation_low, generation);
			found->generation_high = MAX_OF(found->generation_high, generation);
		} else if (!found->other_generation) {
			found->other_generation = generation;
		}
	}
}

/* No write of this run was ever tried here. */
static int verify_unwritten(const struct findings *found, bool must_be_zero)
{
	if (found->of[UNIT_MISDIRECTED])
		return MISMATCH_MISDIRECTED;
	if (found->of[UNIT_OURS])
		return MISMATCH_NEVER_WRITTEN;
	if (!must_be_zero || found->of[UNIT_ZERO] == found->units)
		return -1;
	return found->of[UNIT_FOREIGN] ? MISMATCH_FOREIGN : MISMATCH_NEVER_WRITTEN;
}

static int verify_written(const struct findings *found, const struct page_expect *expect)
{
	if (found->of[UNIT_OURS] == found->units) {
		if (found->generation_low != found->generation_high)
			return MISMATCH_TORN;
		if (found->generation_low < expect->low)
			return MISMATCH_STALE;
		/* Newer than anything sent: only another writer can have done that. */
		return found->generation_low > expect->high ? MISMATCH_FOREIGN : -1;
	}
	if (expect->low == 0 && found->of[UNIT_OURS] == 0)
		return verify_unwritten(found, expect->unwritten_is_zero);
	if (found->of[UNIT_MISDIRECTED])
		return MISMATCH_MISDIRECTED;
	if (found->of[UNIT_BAD])
		return MISMATCH_CORRUPT;
	if (found->of[UNIT_OURS])
		return MISMATCH_TORN;
	return found->of[UNIT_FOREIGN] ? MISMATCH_FOREIGN : MISMATCH_NEVER_WRITTEN;
}

int page_verify(const struct page_area *area, const void *buf, uint64_t page,
		const struct page_expect *expect, uint64_t *ret_found)
{
	struct findings found;
	int kind;

	assert(area->units >= 1 && area->units <= PAGE_UNITS_MAX);
	assert(expect->low <= expect->high);
	look(area, buf, page, &found);
	kind = expect->high ? verify_written(&found, expect)
			    : verify_unwritten(&found, expect->unwritten_is_zero);
	if (kind >= 0)
		*ret_found = found.of[UNIT_OURS] ? found.generation_low : found.other_generation;
	return kind;
}
