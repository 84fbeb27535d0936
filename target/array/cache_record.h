/* SPDX-License-Identifier: MIT
 *
 * The dirty pages of a cache in battery-backed memory: what each page frame holds for the set, in a
 * form that a killed process leaves readable at any instruction.
 *
 *   first 4 KiB   what this memory is: version, page size, frames, CRC32C
 *   staging       one update in full: header and data, CRC32C
 *   per frame     two headers of 64 bytes (the newer counts: sequence number, CRC32C),
 *		   a CRC32C a sector
 *   content       the frames
 *
 * Sectors that are not dirty are written in place and count once a header names them.  An update
 * of dirty ones goes to the staging area first, so that they are never half new: recovery finishes
 * it.  A header being written has sequence number 0 until it is complete, so one that does not fit
 * its checksum was damaged, not cut short.  A sector's checksum includes the page's number.
 *
 * Threading: one thread.  Ownership: the memory stays the caller's.
 */
#ifndef SANLAB_TARGET_ARRAY_CACHE_RECORD_H
#define SANLAB_TARGET_ARRAY_CACHE_RECORD_H

#include "base/err.h"
#include "base/io.h"
#include "target/array/cache_bits.h"
#include "target/drive/nvram.h"

struct record_header {
	uint64_t sequence; /* written last; 0: none, or being written */
	uint64_t page;
	uint64_t dirty[2];
	uint32_t crc; /* of the above */
	uint8_t unused[28];
};

struct records {
	struct nvram *nvram;
	uint32_t frames, page_bytes, page_sectors;
	size_t headers_at, sums_at, content_at;
	uint64_t sequence;
	bool hollow; /* of a set that keeps nothing: content and records are neither */
	/* Told at each point where a killed process could stop; for tests, NULL otherwise. */
	void (*stepped)(void *arg);
	void *arg;
};

struct recovered {
	uint32_t frame;
	uint64_t sequence;
	uint64_t page;
	cache_bits dirty;
};

struct record_losses {
	uint64_t torn, lost_records, lost_bytes;
};

size_t records_bytes(uint32_t frames, uint32_t page_bytes);
/* What NVRAM holds: its geometry, -ENODATA: nothing, -EILSEQ: it cannot be read, with ERR. */
int records_probe(const struct nvram *nvram, uint32_t *ret_frames, uint32_t *ret_page_bytes,
		  struct err *err);
/* Makes it empty, of that geometry. */
int records_format(struct nvram *nvram, uint32_t frames, uint32_t page_bytes);
void records_init(struct records *records, struct nvram *nvram, uint32_t frames,
		  uint32_t page_bytes);
/* Finishes what was cut short, then tells FOUND of each frame that holds dirty sectors; those that
 * do not fit their checksums are left out and counted. */
void records_recover(struct records *records, void (*found)(void *arg, const struct recovered *),
		     void *arg, struct record_losses *ret_losses);

static inline uint8_t *records_content(const struct records *records, uint32_t frame)
{
	return records->nvram->memory + records->content_at + (size_t)frame * records->page_bytes;
}

/* Writes SECTORS sectors from SKIP bytes into IO's data to FRAME, sector FIRST on.  COMMITTED is
 * what the frame's record names so far; it names DIRTY, which includes the range, afterwards. */
void records_write(struct records *records, uint32_t frame, uint64_t page, const struct io *io,
		   uint64_t skip, unsigned first, unsigned sectors, cache_bits committed,
		   cache_bits dirty);
/* The frame's record names DIRTY from now on: fewer than before. */
void records_commit(struct records *records, uint32_t frame, uint64_t page, cache_bits dirty);
/* Durable against a crash of the host. */
int records_sync_frame(struct records *records, uint32_t frame, unsigned first, unsigned sectors);
int records_sync(struct records *records);

#endif
