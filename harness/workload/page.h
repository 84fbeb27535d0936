/* SPDX-License-Identifier: MIT
 *
 * The identity every page carries, so that whatever comes back can be told apart from what was
 * meant.  A page is made of units of 4 KiB (the largest part a SAN may write alone); each unit
 * names the run, the volume, the page, itself and the generation of the page, and has a CRC32C of
 * its own.  A database page has eight units, a log segment is a page of one.
 *
 *   offset  0  CRC32C over bytes 4..4095      24  volume id        48  unit number
 *           4  magic: database or log         32  page number      52  units of the page
 *           8  run UUID (16)                  40  generation       56  zero (8)
 *                                                                  64  fill pattern
 * All fields big-endian.  The fill depends on everything above, so no two pages or generations
 * are alike (an array that deduplicates finds nothing).
 *
 * Pure: no state, no time.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_PAGE_H
#define SANLAB_HARNESS_WORKLOAD_PAGE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	PAGE_UNIT_BYTES = 4096,
	PAGE_HEADER_BYTES = 64,
	PAGE_UNITS_MAX = 8,
};

#define PAGE_MAGIC_DATABASE UINT32_C(0x53444250) /* "SDBP" */
#define PAGE_MAGIC_LOG	    UINT32_C(0x534c4f47) /* "SLOG" */

/* What all pages of one kind on one volume have in common. */
struct page_area {
	uint32_t magic;
	uint32_t units; /* per page, at most PAGE_UNITS_MAX */
	uint8_t run[16];
	uint64_t volume;
};

/* What a page may hold.  Generations count from 1 in each run; 0 stands for "not written in this
 * run".  Acknowledged writes leave one possibility (low == high); a failed write leaves all from
 * the last acknowledged one (low) to the last tried (high). */
struct page_expect {
	uint64_t low, high;
	bool unwritten_is_zero; /* else an unwritten page may hold anything of earlier runs */
};

/* The UUID of a run: from its seed and its start, since pages of an earlier run with the same seed
 * may still be on the volumes.  On a virtual loop both are fixed. */
void page_run_uuid(uint64_t seed, uint64_t start_wall_ns, uint8_t ret_run[16]);

/* Writes all units of PAGE into BUF (8-byte aligned). */
void page_fill(const struct page_area *area, void *buf, uint64_t page, uint64_t generation);

/* -1 when BUF is what is expected, else the enum mismatch_kind; *ret_found is then the generation
 * found (0: none readable). */
int page_verify(const struct page_area *area, const void *buf, uint64_t page,
		const struct page_expect *expect, uint64_t *ret_found);

#endif
