/* SPDX-License-Identifier: MIT
 *
 * Records of dirty pages: layout, updates, recovery.
 */
#include "target/array/cache_record.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"

enum { FIRST_BYTES = 4096, HEADERS = 2, RECORDS_VERSION = 1 };

#define RECORDS_MAGIC UINT64_C(0x314548434143534c)

_Static_assert(sizeof(struct record_header) == 64, "two headers take two cache lines");

struct records_first {
	uint64_t magic;
	uint32_t version, frames, page_bytes;
	uint32_t crc; /* of the above */
};

/* One update on its way into a frame; the data follows. */
struct staging {
	uint64_t sequence; /* written last; 0: none */
	uint64_t page;
	uint64_t dirty[2];
	uint32_t frame, first, sectors;
	uint32_t crc; /* of the above and the data */
};

static size_t staging_bytes(uint32_t page_bytes)
{
	return round_up_u64(sizeof(struct staging) + page_bytes, FIRST_BYTES);
}

static size_t content_offset(uint32_t frames, uint32_t page_bytes)
{
	size_t sums = (size_t)page_bytes / CACHE_SECTOR_BYTES * sizeof(uint32_t);
	return FIRST_BYTES + staging_bytes(page_bytes) +
	       round_up_u64(frames * (HEADERS * sizeof(struct record_header) + sums), FIRST_BYTES);
}

size_t records_bytes(uint32_t frames, uint32_t page_bytes)
{
	return content_offset(frames, page_bytes) + (size_t)frames * page_bytes;
}

static bool geometry_fits(uint32_t frames, uint32_t page_bytes, size_t bytes)
{
	return frames > 0 && page_bytes >= CACHE_SECTOR_BYTES &&
	       page_bytes <= CACHE_BITS * CACHE_SECTOR_BYTES &&
	       page_bytes % CACHE_SECTOR_BYTES == 0 && frames <= bytes / page_bytes &&
	       records_bytes(frames, page_bytes) <= bytes;
}

int records_probe(const struct nvram *nvram, uint32_t *ret_frames, uint32_t *ret_page_bytes,
		  struct err *err)
{
	struct records_first first;
	memcpy(&first, nvram->memory, sizeof first);
	if (first.magic == 0)
		return -ENODATA;
	if (first.magic != RECORDS_MAGIC ||
	    first.crc != crc32c(0, &first, offsetof(struct records_first, crc)))
		return err_set(err, -EILSEQ, "the first page of the cache memory is damaged");
	if (first.version != RECORDS_VERSION)
		return err_set(err, -EILSEQ, "the cache memory has version %u, not %u",
			       first.version, RECORDS_VERSION);
	if (!geometry_fits(first.frames, first.page_bytes, nvram->bytes))
		return err_set(err, -EILSEQ,
			       "the cache memory was cut off: %zu bytes do not hold %u pages",
			       nvram->bytes, first.frames);
	*ret_frames = first.frames;
	*ret_page_bytes = first.page_bytes;
	return 0;
}

int records_format(struct nvram *nvram, uint32_t frames, uint32_t page_bytes)
{
	struct records_first first = {
	    .magic = RECORDS_MAGIC,
	    .version = RECORDS_VERSION,
	    .frames = frames,
	    .page_bytes = page_bytes,
	};
	size_t meta_bytes = content_offset(frames, page_bytes);

	first.crc = crc32c(0, &first, offsetof(struct records_first, crc));
	/* Fresh anonymous memory is zeros already, and stays untouched. */
	if (nvram->found || nvram->memory[0])
		memset(nvram->memory, 0, meta_bytes);
	nvram_order();
	memcpy(nvram->memory, &first, sizeof first);
	return nvram_sync(nvram, 0, meta_bytes);
}

void records_init(struct records *records, struct nvram *nvram, uint32_t frames,
		  uint32_t page_bytes)
{
	size_t headers_at = FIRST_BYTES + staging_bytes(page_bytes);
	*records = (struct records){
	    .nvram = nvram,
	    .frames = frames,
	    .page_bytes = page_bytes,
	    .page_sectors = page_bytes / CACHE_SECTOR_BYTES,
	    .headers_at = headers_at,
	    .sums_at = headers_at + (size_t)frames * HEADERS * sizeof(struct record_header),
	    .content_at = content_offset(frames, page_bytes),
	};
}

/* ---- places ---- */

static struct record_header *headers_of(const struct records *records, uint32_t frame)
{
	return (struct record_header *)(void *)(records->nvram->memory + records->headers_at) +
	       (size_t)frame * HEADERS;
}

static uint32_t *sums_of(const struct records *records, uint32_t frame)
{
	return (uint32_t *)(void *)(records->nvram->memory + records->sums_at) +
	       (size_t)frame * records->page_sectors;
}

static struct staging *staging_of(const struct records *records)
{
	return (struct staging *)(void *)(records->nvram->memory + FIRST_BYTES);
}

static uint32_t sector_sum(uint64_t page, const uint8_t *data)
{
	return crc32c((uint32_t)(page ^ page >> 32), data, CACHE_SECTOR_BYTES);
}

static uint32_t header_crc(const struct record_header *header)
{
	return crc32c(0, header, offsetof(struct record_header, crc));
}

static uint32_t staging_crc(const struct staging *staging)
{
	uint32_t crc = crc32c(0, staging, offsetof(struct staging, crc));
	return crc32c(crc, staging + 1, (size_t)staging->sectors * CACHE_SECTOR_BYTES);
}

static void step(struct records *records)
{
	nvram_order();
	if (records->stepped)
		records->stepped(records->arg);
}

/* ---- updates ---- */

void records_commit(struct records *records, uint32_t frame, uint64_t page, cache_bits dirty)
{
	if (records->hollow)
		return;
	struct record_header *headers = headers_of(records, frame);
	struct record_header *to = &headers[headers[0].sequence > headers[1].sequence];
	struct record_header made = {
	    .sequence = ++records->sequence,
	    .page = page,
	    .dirty = {(uint64_t)dirty, (uint64_t)(dirty >> 64)},
	};

	made.crc = header_crc(&made);
	to->sequence = 0;
	step(records);
	to->page = made.page;
	memcpy(to->dirty, made.dirty, sizeof to->dirty);
	to->crc = made.crc;
	step(records);
	to->sequence = made.sequence;
	step(records);
}

static void put_sums(struct records *records, uint32_t frame, uint64_t page, unsigned first,
		     unsigned sectors)
{
	const uint8_t *data = records_content(records, frame);
	uint32_t *sums = sums_of(records, frame);
	for (unsigned i = first; i < first + sectors; i++)
		sums[i] = sector_sum(page, data + (size_t)i * CACHE_SECTOR_BYTES);
}

/* What the staging area holds is put in place. */
static void unstage(struct records *records, struct staging *staging)
{
	cache_bits dirty = staging->dirty[0] | (cache_bits)staging->dirty[1] << 64;
	size_t bytes = (size_t)staging->sectors * CACHE_SECTOR_BYTES;

	memcpy(records_content(records, staging->frame) +
		   (size_t)staging->first * CACHE_SECTOR_BYTES,
	       staging + 1, bytes);
	step(records);
	put_sums(records, staging->frame, staging->page, staging->first, staging->sectors);
	step(records);
	records_commit(records, staging->frame, staging->page, dirty);
	staging->sequence = 0;
	step(records);
}

void records_write(struct records *records, uint32_t frame, uint64_t page, const struct io *io,
		   uint64_t skip, unsigned first, unsigned sectors, cache_bits committed,
		   cache_bits dirty)
{
	size_t bytes = (size_t)sectors * CACHE_SECTOR_BYTES;

	if (records->hollow)
		return;
	if (!(committed & bits_range(first, sectors))) {
		iov_to_mem(io->iov, io->iov_count, skip,
			   records_content(records, frame) + (size_t)first * CACHE_SECTOR_BYTES,
			   bytes);
		put_sums(records, frame, page, first, sectors);
		step(records);
		records_commit(records, frame, page, dirty);
		return;
	}
	struct staging *staging = staging_of(records);
	struct staging made = {
	    .sequence = records->sequence + 1,
	    .page = page,
	    .dirty = {(uint64_t)dirty, (uint64_t)(dirty >> 64)},
	    .frame = frame,
	    .first = first,
	    .sectors = sectors,
	};
	iov_to_mem(io->iov, io->iov_count, skip, staging + 1, bytes);
	made.crc = crc32c(crc32c(0, &made, offsetof(struct staging, crc)), staging + 1, bytes);
	memcpy((uint8_t *)staging + sizeof made.sequence, (uint8_t *)&made + sizeof made.sequence,
	       sizeof made - sizeof made.sequence);
	step(records);
	staging->sequence = made.sequence;
	step(records);
	unstage(records, staging);
}

int records_sync_frame(struct records *records, uint32_t frame, unsigned first, unsigned sectors)
{
	struct nvram *nvram = records->nvram;
	size_t content = (size_t)(records_content(records, frame) - nvram->memory);
	size_t header = (size_t)((uint8_t *)headers_of(records, frame) - nvram->memory);
	size_t sums = (size_t)((uint8_t *)sums_of(records, frame) - nvram->memory);

	int rc = nvram_sync(nvram, content + (size_t)first * CACHE_SECTOR_BYTES,
			    (size_t)sectors * CACHE_SECTOR_BYTES);
	if (rc == 0)
		rc = nvram_sync(nvram, sums, records->page_sectors * sizeof(uint32_t));
	if (rc == 0)
		rc = nvram_sync(nvram, header, HEADERS * sizeof(struct record_header));
	return rc;
}

int records_sync(struct records *records)
{
	return nvram_sync(records->nvram, 0, records_bytes(records->frames, records->page_bytes));
}

/* ---- recovery ---- */

static void finish_staging(struct records *records, struct record_losses *losses)
{
	struct staging *staging = staging_of(records);
	if (staging->sequence == 0)
		return;
	/* Its fields are checked before its checksum is worked out over so much. */
	bool fits = staging->frame < records->frames && staging->sectors >= 1 &&
		    staging->sectors <= records->page_sectors &&
		    staging->first <= records->page_sectors - staging->sectors;
	if (fits && staging_crc(staging) == staging->crc)
		unstage(records, staging);
	else
		losses->lost_records++;
	staging->sequence = 0;
}

/* Headers that do not fit their checksums, and where the numbers of the others have come to. */
static void drop_damaged(struct records *records, struct record_losses *losses)
{
	for (uint32_t frame = 0; frame < records->frames; frame++)
		for (unsigned i = 0; i < HEADERS; i++) {
			struct record_header *header = &headers_of(records, frame)[i];
			if (header->sequence && header->crc != header_crc(header)) {
				losses->lost_records++;
				memset(header, 0, sizeof *header);
			}
			losses->torn += !header->sequence && header->crc;
			records->sequence = MAX_OF(records->sequence, header->sequence);
		}
}

/* The newer of a frame's headers; NULL: none. */
static const struct record_header *newest(const struct records *records, uint32_t frame)
{
	const struct record_header *headers = headers_of(records, frame);
	const struct record_header *best = &headers[headers[1].sequence > headers[0].sequence];
	return best->sequence ? best : NULL;
}

static cache_bits sound_sectors(const struct records *records, uint32_t frame, uint64_t page,
				cache_bits dirty, struct record_losses *losses)
{
	const uint8_t *data = records_content(records, frame);
	const uint32_t *sums = sums_of(records, frame);
	for (unsigned i = 0; i < CACHE_BITS; i++) {
		cache_bits bit = (cache_bits)1 << i;
		if (!(dirty & bit))
			continue;
		if (i < records->page_sectors &&
		    sums[i] == sector_sum(page, data + (size_t)i * CACHE_SECTOR_BYTES))
			continue;
		dirty &= ~bit;
		losses->lost_bytes += CACHE_SECTOR_BYTES;
	}
	return dirty;
}

void records_recover(struct records *records, void (*found)(void *arg, const struct recovered *),
		     void *arg, struct record_losses *ret_losses)
{
	struct record_losses losses = {0};

	drop_damaged(records, &losses);
	finish_staging(records, &losses);
	for (uint32_t frame = 0; frame < records->frames; frame++) {
		const struct record_header *header = newest(records, frame);
		if (!header)
			continue;
		struct recovered one = {
		    .frame = frame,
		    .sequence = header->sequence,
		    .page = header->page,
		    .dirty = header->dirty[0] | (cache_bits)header->dirty[1] << 64,
		};
		one.dirty = sound_sectors(records, frame, one.page, one.dirty, &losses);
		if (one.dirty)
			found(arg, &one);
	}
	*ret_losses = losses;
}
