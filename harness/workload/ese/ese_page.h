/* SPDX-License-Identifier: MIT
 *
 * The 32 KiB of a database page: a compact image made into bytes, bytes made into an image, and
 * whatever came back named that is not what was written.
 *
 *    0  CRC32C of the rest     28  flush number (1)      48  previous page (4)
 *    4  magic "ESEP"           29  level (1)             52  next page (4)
 *    8  creation UUID (16)     30  slots (2)             56  base range: first (4), count (4)
 *   24  database (4)           32  page number           64  zero (8)
 *                              40  dbtime                72  what the last bytes of the units
 *                                                            were before they were stamped (8)
 *   80  leaf: directory {offset 2, bytes 2, version 4}, records {key 8, payload}
 *       node: children beside the base range {key 8, page 8}; then fill; all fields big-endian
 *
 * The checksum begins with the identity of the place (creation, database, page number), so that a
 * page is good in one place only; what it claims to be itself tells where it came from.  The last
 * byte of each 4 KiB unit is the flush number: a page of which only some units were written shows
 * two of them.  Payload and fill follow from seed, key, version and flush number: no two versions
 * of a record are alike, no two flushes of a unit, and a page can be made again from its image.
 *
 * Pure: no state, no time.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_PAGE_H
#define SANLAB_HARNESS_WORKLOAD_ESE_PAGE_H

#include <stdbool.h>
#include <stdint.h>

struct ese_image;

enum {
	ESE_PAGE_BYTES = 32768,
	ESE_PAGE_UNIT_BYTES = 4096,
	ESE_PAGE_UNITS = ESE_PAGE_BYTES / ESE_PAGE_UNIT_BYTES,
	ESE_PAGE_HEADER_BYTES = 80,
	ESE_PAGE_FIRST = 2, /* pages 0 and 1 are the header of the file and its shadow */
};

/* Flush numbers: 1..253 in turn; the others stand for knowledge about a page, not for a write. */
enum {
	ESE_FLUSH_NEVER = 0,
	ESE_FLUSH_LAST = 253,
	ESE_FLUSH_BORN = 254,	 /* written when the database was created, and never since */
	ESE_FLUSH_UNKNOWN = 255, /* any will do: the map lost what it knew */
};

/* What all pages of one database have in common. */
struct ese_identity {
	uint8_t creation[16]; /* of the run that created it */
	uint32_t database;    /* which of that run's */
	uint64_t seed;	      /* of payload and fill */
};

/* What is known of a page before it is read. */
struct ese_page_expect {
	uint8_t flush;		/* the last one acknowledged, ESE_FLUSH_NEVER or _UNKNOWN */
	uint64_t newer_dbtime;	/* a page with a greater dbtime may have any flush number:
				 * before redo nobody knows; UINT64_MAX: none */
	bool unwritten_is_zero; /* else a page never flushed may hold anything of earlier days */
};

/* What was found; `flush` and `dbtime` are 0 where nothing could be read of them. */
struct ese_page_found {
	bool unwritten; /* all zeros, or not ours to judge: the page is as created */
	uint8_t flush;
	uint64_t dbtime;
	uint64_t page;
};

/* Makes the bytes of IMAGE as page PAGE in BUF (8-byte aligned, all of it is written). */
void ese_page_encode(const struct ese_identity *identity, uint64_t page, uint8_t flush,
		     const struct ese_image *image, void *buf);

/* -1 when BUF is what is expected, else the enum mismatch_kind.  BUF is not changed. */
int ese_page_check(const struct ese_identity *identity, const void *buf, uint64_t page,
		   const struct ese_page_expect *expect, struct ese_page_found *ret_found);

/* Fills IMAGE (initialised) from BUF, which ese_page_check has found good and not unwritten; undoes
 * the stamps of the units in BUF.  -EBADMSG: its directory is impossible; -ENOMEM. */
int ese_page_decode(void *buf, struct ese_image *image);

#endif
