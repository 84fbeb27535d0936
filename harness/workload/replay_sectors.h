/* SPDX-License-Identifier: MIT
 *
 * Verification of writes of any place and size, for replays: every sector of 512 bytes carries its
 * identity, as page.h's units do, and a map tells which generation each sector must have.
 *
 *   offset  0  CRC32C over bytes 4..511    24  volume id        44  zero (4)
 *           4  magic                       32  sector number    48  fill pattern
 *           8  run UUID (16)               40  generation (4)
 * All fields big-endian.  All sectors of one write have the generation of that write.
 *
 * Memory: 4 bytes a sector near one that was written; the rest of the map is the kernel's zero
 * page.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_REPLAY_SECTORS_H
#define SANLAB_HARNESS_WORKLOAD_REPLAY_SECTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SECTOR_BYTES = 512, SECTOR_FINDINGS_MAX = 8 };

#define SECTOR_NEVER   UINT32_C(0) /* not written in this run */
#define SECTOR_UNKNOWN UINT32_MAX  /* of two writes at once, failed, or trimmed: anything goes */

struct sector_area {
	uint8_t run[16];
	uint64_t volume;
};

struct sector_map {
	uint64_t sectors;
	uint32_t *generation;
	uint8_t *touched; /* one a MiB: something was written there */
	uint64_t known;	  /* sectors whose generation is known */
	bool never_is_zero;
};

struct sector_finding {
	int kind;	 /* enum mismatch_kind */
	uint64_t sector; /* the first of a run of its kind */
	uint32_t expected, found;
};

int sector_map_init(struct sector_map *map, uint64_t sectors, bool never_is_zero); /* -ENOMEM */
void sector_map_done(struct sector_map *map);
void sector_map_set(struct sector_map *map, uint64_t first, uint64_t count, uint32_t generation);
/* The next run of sectors with a known generation from *FIRST on, at most MOST long; 0: there is
 * none.  Sectors that are unknown may be among them. */
uint64_t sector_map_next(const struct sector_map *map, uint64_t *first, uint64_t most);
/* How many of the range have a known generation. */
uint64_t sector_map_known(const struct sector_map *map, uint64_t first, uint64_t count);

void sector_fill(const struct sector_area *area, void *buf, uint64_t first, uint64_t count,
		 uint32_t generation);
/* Compares BUF, read from FIRST on, with what MAP says.  Returns how many mismatches there are, of
 * which the first SECTOR_FINDINGS_MAX are told; *RET_CHECKED: sectors that could be compared. */
unsigned sector_check(const struct sector_area *area, const struct sector_map *map, const void *buf,
		      uint64_t first, uint64_t count, struct sector_finding *ret_findings,
		      uint64_t *ret_checked);

#endif
