/* SPDX-License-Identifier: MIT
 *
 * Where the parts of a database file lie, and the coding of its header.  See ese_file.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "harness/workload/ese/ese_file.h"

#define HEADER_MAGIC UINT32_C(0x45534548) /* "ESEH" */

enum {
	AT_CRC = 0,
	AT_MAGIC = 4,
	AT_VERSION = 8,
	AT_STATE = 12,
	AT_CREATION = 16,
	AT_DATABASE = 32,
	AT_FLAGS = 36,
	AT_SEED = 40,
	AT_SEQUENCE = 48,
	AT_PAGES = 56,
	AT_INITIAL = 64,
	AT_RECORD = 72,
	AT_FANOUT = 76,
	AT_CHILDREN = 80,
	AT_FULL = 88,
	AT_SIGNATURE = 96,
	AT_LGPOS = 104,
	AT_DBTIME = 112,
	AT_RULES_SEED = 120,
	VERSION = 1,
	FLAG_SPARSE = 1,
};

void ese_file_header_encode(const struct ese_file_header *header, void *buf)
{
	uint8_t *bytes = buf;

	memset(bytes, 0, ESE_FILE_HEADER_BYTES);
	put_be32(bytes + AT_MAGIC, HEADER_MAGIC);
	put_be32(bytes + AT_VERSION, VERSION);
	put_be32(bytes + AT_STATE, header->state);
	memcpy(bytes + AT_CREATION, header->identity.creation, sizeof header->identity.creation);
	put_be32(bytes + AT_DATABASE, header->identity.database);
	put_be32(bytes + AT_FLAGS, header->sparse ? FLAG_SPARSE : 0);
	put_be64(bytes + AT_SEED, header->identity.seed);
	put_be64(bytes + AT_SEQUENCE, header->sequence);
	put_be64(bytes + AT_PAGES, header->pages);
	put_be64(bytes + AT_INITIAL, header->rules.pages);
	put_be32(bytes + AT_RECORD, header->rules.record_bytes);
	put_be32(bytes + AT_FANOUT, header->rules.fanout);
	put_be32(bytes + AT_CHILDREN, header->rules.children_max);
	put_be64(bytes + AT_FULL, (uint64_t)(header->rules.full_leaves * 4294967296.0));
	put_be64(bytes + AT_SIGNATURE, header->log_signature);
	put_be64(bytes + AT_LGPOS, header->attach_lgpos);
	put_be64(bytes + AT_DBTIME, header->clean_dbtime);
	put_be64(bytes + AT_RULES_SEED, header->rules.seed);
	put_be32(bytes + AT_CRC, crc32c(0, bytes + AT_MAGIC, ESE_FILE_HEADER_BYTES - AT_MAGIC));
}

int ese_file_header_decode(const void *buf, struct ese_file_header *ret_header)
{
	const uint8_t *bytes = buf;

	if (get_be32(bytes + AT_MAGIC) != HEADER_MAGIC)
		return -ENOENT;
	if (get_be32(bytes + AT_CRC) !=
		crc32c(0, bytes + AT_MAGIC, ESE_FILE_HEADER_BYTES - AT_MAGIC) ||
	    get_be32(bytes + AT_VERSION) != VERSION || get_be32(bytes + AT_STATE) > ESE_FILE_CLEAN)
		return -EBADMSG;
	*ret_header = (struct ese_file_header){
	    .state = (enum ese_file_state)get_be32(bytes + AT_STATE),
	    .identity = {.database = get_be32(bytes + AT_DATABASE),
			 .seed = get_be64(bytes + AT_SEED)},
	    .sparse = get_be32(bytes + AT_FLAGS) & FLAG_SPARSE,
	    .sequence = get_be64(bytes + AT_SEQUENCE),
	    .pages = get_be64(bytes + AT_PAGES),
	    .rules = {.seed = get_be64(bytes + AT_RULES_SEED),
		      .pages = get_be64(bytes + AT_INITIAL),
		      .record_bytes = get_be32(bytes + AT_RECORD),
		      .fanout = get_be32(bytes + AT_FANOUT),
		      .children_max = get_be32(bytes + AT_CHILDREN),
		      .full_leaves = (double)get_be64(bytes + AT_FULL) / 4294967296.0},
	    .log_signature = get_be64(bytes + AT_SIGNATURE),
	    .attach_lgpos = get_be64(bytes + AT_LGPOS),
	    .clean_dbtime = get_be64(bytes + AT_DBTIME),
	};
	memcpy(ret_header->identity.creation, bytes + AT_CREATION,
	       sizeof ret_header->identity.creation);
	return 0;
}

bool ese_file_same_rules(const struct ese_rules_config *a, const struct ese_rules_config *b)
{
	double full = a->full_leaves - b->full_leaves;

	return a->seed == b->seed && a->pages == b->pages && a->record_bytes == b->record_bytes &&
	       a->fanout == b->fanout && a->children_max == b->children_max && full < 1e-9 &&
	       full > -1e-9;
}

/* ---- layout ---- */

static uint64_t log_bytes(uint32_t files)
{
	return files ? ESE_CHECKPOINT_AREA_BYTES + (uint64_t)files * ESE_LOG_RING_ALIGN_BYTES +
			   ESE_LOG_RING_ALIGN_BYTES
		     : 0;
}

static void place_log(uint64_t base_bytes, uint32_t files, struct ese_layout *layout)
{
	if (!files)
		return;
	layout->checkpoint_offset_bytes = round_up_u64(base_bytes, ESE_CHECKPOINT_AREA_BYTES);
	layout->ring_offset_bytes = round_up_u64(
	    layout->checkpoint_offset_bytes + ESE_CHECKPOINT_AREA_BYTES, ESE_LOG_RING_ALIGN_BYTES);
	layout->log_files = files;
	layout->end_bytes = layout->ring_offset_bytes + (uint64_t)files * ESE_LOG_RING_ALIGN_BYTES;
}

static struct ese_layout layout_of(uint64_t pages, uint64_t initial_pages, uint32_t log_files)
{
	struct ese_layout layout = {
	    .pages = pages,
	    .initial_pages = initial_pages,
	    .map_offset_bytes = pages * ESE_PAGE_BYTES,
	};

	layout.end_bytes = layout.map_offset_bytes + ese_flush_map_bytes(pages);
	place_log(layout.end_bytes, log_files, &layout);
	return layout;
}

int ese_layout_database(uint64_t volume_bytes, uint64_t database_bytes, uint64_t initial_pages,
			uint32_t log_files, struct ese_layout *ret_layout, struct err *err)
{
	uint64_t behind = log_bytes(log_files), pages = database_bytes / ESE_PAGE_BYTES;
	struct ese_layout layout;

	if (database_bytes == 0) {
		/* One byte of map a page, and a little more for its headers. */
		pages = volume_bytes > behind ? (volume_bytes - behind) / (ESE_PAGE_BYTES + 2) : 0;
		pages = MIN_OF(pages, UINT32_MAX);
	}
	if (pages > UINT32_MAX)
		return err_set(err, -EFBIG,
			       "a database of %" PRIu64 " bytes has more than 2^32 pages",
			       database_bytes);
	if (pages < initial_pages || pages <= ESE_PAGE_FIRST)
		return err_set(err, -ENOSPC,
			       "a new database has %" PRIu64
			       " pages of 32 KiB, but there is room for %" PRIu64 " only",
			       initial_pages, pages);
	layout = layout_of(pages, initial_pages, log_files);
	if (layout.end_bytes > volume_bytes)
		return err_set(err, -ENOSPC,
			       "database, flush map and %u MiB of log take %" PRIu64
			       " bytes, the volume has %" PRIu64,
			       log_files, layout.end_bytes, volume_bytes);
	*ret_layout = layout;
	return 0;
}

int ese_layout_log(uint64_t volume_bytes, uint64_t base_bytes, uint32_t log_files,
		   struct ese_layout *ret_layout, struct err *err)
{
	struct ese_layout layout = {0};

	place_log(base_bytes, log_files, &layout);
	if (layout.end_bytes > volume_bytes)
		return err_set(err, -ENOSPC,
			       "%u MiB of log end at byte %" PRIu64 ", the volume has %" PRIu64,
			       log_files, layout.end_bytes, volume_bytes);
	*ret_layout = layout;
	return 0;
}
