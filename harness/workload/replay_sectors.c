/* SPDX-License-Identifier: MIT
 *
 * Filling and checking sectors.
 */
#include "harness/workload/replay_sectors.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "harness/workload/workload.h"

enum {
	AT_CRC = 0,
	AT_MAGIC = 4,
	AT_RUN = 8,
	AT_VOLUME = 24,
	AT_SECTOR = 32,
	AT_GENERATION = 40,
	AT_ZERO = 44,
	AT_FILL = 48,
	FILL_WORDS = (SECTOR_BYTES - AT_FILL) / 8,
	CHUNK_SECTORS = 2048, /* 1 MiB */
};

#define SECTOR_MAGIC UINT32_C(0x53534543) /* "SSEC" */

/* ---- the map ---- */

static void *map_zeros(uint64_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static uint64_t chunks_of(const struct sector_map *map)
{
	return map->sectors / CHUNK_SECTORS + 1;
}

int sector_map_init(struct sector_map *map, uint64_t sectors, bool never_is_zero)
{
	*map = (struct sector_map){.sectors = sectors, .never_is_zero = never_is_zero};
	map->generation = map_zeros((sectors + 1) * sizeof *map->generation);
	map->touched = map_zeros(chunks_of(map));
	if (map->generation && map->touched)
		return 0;
	sector_map_done(map);
	return -ENOMEM;
}

void sector_map_done(struct sector_map *map)
{
	if (map->generation)
		munmap(map->generation, (map->sectors + 1) * sizeof *map->generation);
	if (map->touched)
		munmap(map->touched, chunks_of(map));
	*map = (struct sector_map){0};
}

static bool is_known(uint32_t generation)
{
	return generation != SECTOR_NEVER && generation != SECTOR_UNKNOWN;
}

void sector_map_set(struct sector_map *map, uint64_t first, uint64_t count, uint32_t generation)
{
	for (uint64_t i = first; i < first + count; i++) {
		map->known += is_known(generation);
		map->known -= is_known(map->generation[i]);
		map->generation[i] = generation;
	}
	if (count)
		for (uint64_t i = first / CHUNK_SECTORS; i <= (first + count - 1) / CHUNK_SECTORS;
		     i++)
			map->touched[i] = 1;
}

uint64_t sector_map_next(const struct sector_map *map, uint64_t *first, uint64_t most)
{
	uint64_t at = *first, count = 0;

	while (at < map->sectors && !is_known(map->generation[at])) {
		bool untouched = !map->touched[at / CHUNK_SECTORS];

		at = untouched ? (at / CHUNK_SECTORS + 1) * CHUNK_SECTORS : at + 1;
	}
	if (at >= map->sectors)
		return 0;
	*first = at;
	while (count < most && at < map->sectors && map->generation[at] != SECTOR_NEVER) {
		at++;
		count++;
	}
	return count;
}

uint64_t sector_map_known(const struct sector_map *map, uint64_t first, uint64_t count)
{
	uint64_t known = 0;

	for (uint64_t i = first; i < first + count; i++)
		known += is_known(map->generation[i]);
	return known;
}

/* ---- bytes ---- */

static uint64_t mix(uint64_t v)
{
	v = (v ^ (v >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	v = (v ^ (v >> 27)) * UINT64_C(0x94d049bb133111eb);
	return v ^ (v >> 31);
}

void sector_fill(const struct sector_area *area, void *buf, uint64_t first, uint64_t count,
		 uint32_t generation)
{
	uint64_t seed = mix(get_be64(area->run + 8) + mix(area->volume + mix(generation)));

	for (uint64_t i = 0; i < count; i++) {
		uint8_t *sector = (uint8_t *)buf + i * SECTOR_BYTES;
		uint64_t *words = (uint64_t *)(void *)(sector + AT_FILL);
		uint64_t word = seed + mix(first + i);

		put_be32(sector + AT_MAGIC, SECTOR_MAGIC);
		memcpy(sector + AT_RUN, area->run, sizeof area->run);
		put_be64(sector + AT_VOLUME, area->volume);
		put_be64(sector + AT_SECTOR, first + i);
		put_be32(sector + AT_GENERATION, generation);
		put_be32(sector + AT_ZERO, 0);
		for (unsigned w = 0; w < FILL_WORDS; w++) {
			words[w] = word ^ (word >> 29);
			word += UINT64_C(0x9e3779b97f4a7c15);
		}
		put_be32(sector + AT_CRC, crc32c(0, sector + AT_MAGIC, SECTOR_BYTES - AT_MAGIC));
	}
}

static bool is_zero(const uint8_t *sector)
{
	return get_be64(sector) == 0 && memcmp(sector, sector + 8, SECTOR_BYTES - 8) == 0;
}

enum look { LOOK_OURS, LOOK_ZERO, LOOK_FOREIGN, LOOK_MISDIRECTED, LOOK_BAD };

static enum look look(const struct sector_area *area, const uint8_t *sector, uint64_t number,
		      uint32_t *ret_generation)
{
	*ret_generation = 0;
	if (get_be32(sector + AT_MAGIC) != SECTOR_MAGIC)
		return is_zero(sector) ? LOOK_ZERO : LOOK_BAD;
	if (get_be32(sector + AT_CRC) != crc32c(0, sector + AT_MAGIC, SECTOR_BYTES - AT_MAGIC))
		return LOOK_BAD;
	*ret_generation = get_be32(sector + AT_GENERATION);
	if (memcmp(sector + AT_RUN, area->run, sizeof area->run) != 0)
		return LOOK_FOREIGN;
	return get_be64(sector + AT_VOLUME) == area->volume &&
		       get_be64(sector + AT_SECTOR) == number
		   ? LOOK_OURS
		   : LOOK_MISDIRECTED;
}

/* -1: as it should be. */
static int judge_one(const struct sector_area *area, const struct sector_map *map,
		     const uint8_t *sector, uint64_t number, uint32_t *ret_found)
{
	static const int kinds[] = {
	    [LOOK_OURS] = MISMATCH_STALE,      [LOOK_ZERO] = MISMATCH_NEVER_WRITTEN,
	    [LOOK_FOREIGN] = MISMATCH_FOREIGN, [LOOK_MISDIRECTED] = MISMATCH_MISDIRECTED,
	    [LOOK_BAD] = MISMATCH_CORRUPT,
	};
	uint32_t expected = map->generation[number];
	enum look seen;

	*ret_found = 0;
	if (expected == SECTOR_UNKNOWN)
		return -1;
	seen = look(area, sector, number, ret_found);
	if (expected != SECTOR_NEVER)
		return seen == LOOK_OURS && *ret_found == expected ? -1 : kinds[seen];
	/* Never written: ours it can only be by a mistake. */
	if (seen == LOOK_MISDIRECTED)
		return MISMATCH_MISDIRECTED;
	return seen == LOOK_ZERO || !map->never_is_zero ? -1 : MISMATCH_NEVER_WRITTEN;
}

/* Of one write some sectors are there, others are older: it is torn, not lost. */
static bool is_torn(const struct sector_area *area, const struct sector_map *map,
		    const uint8_t *buf, uint64_t first, uint64_t count, uint32_t expected)
{
	for (uint64_t i = 0; i < count; i++) {
		uint32_t found;

		if (map->generation[first + i] == expected &&
		    look(area, buf + i * SECTOR_BYTES, first + i, &found) == LOOK_OURS &&
		    found == expected)
			return true;
	}
	return false;
}

unsigned sector_check(const struct sector_area *area, const struct sector_map *map, const void *buf,
		      uint64_t first, uint64_t count, struct sector_finding *ret_findings,
		      uint64_t *ret_checked)
{
	const uint8_t *bytes = buf;
	uint64_t checked = 0;
	unsigned findings = 0;
	int last = -1;

	for (uint64_t i = 0; i < count; i++) {
		uint32_t expected = map->generation[first + i], found;
		int kind = judge_one(area, map, bytes + i * SECTOR_BYTES, first + i, &found);

		checked += is_known(expected) || (expected == SECTOR_NEVER && map->never_is_zero);
		if (kind >= 0 && kind != last) {
			if (findings < SECTOR_FINDINGS_MAX)
				ret_findings[findings] =
				    (struct sector_finding){kind, first + i, expected, found};
			findings++;
		}
		last = kind;
	}
	for (unsigned i = 0; i < MIN_OF(findings, (unsigned)SECTOR_FINDINGS_MAX); i++)
		if (ret_findings[i].kind == MISMATCH_STALE &&
		    is_torn(area, map, bytes, first, count, ret_findings[i].expected))
			ret_findings[i].kind = MISMATCH_TORN;
	*ret_checked = checked;
	return findings;
}
