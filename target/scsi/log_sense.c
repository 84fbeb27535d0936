/* SPDX-License-Identifier: MIT
 *
 * LOG SENSE (SPC-4 6.8): supported pages and subpages, logical block provisioning (SBC-3 6.4.4),
 * informational exceptions.
 */
#include "target/scsi/internal.h"

enum { LOG_MAX_BYTES = 256, LOG_ALL_SUBPAGES = 0xff };

struct log_page {
	uint8_t code, subpage;
	bool thin_only;
	/* Fills the log parameters from number FIRST on; returns their length. */
	unsigned (*build)(const struct scsi_lu *lu, uint16_t first, uint8_t *out);
};

static unsigned build_pages(const struct scsi_lu *lu, uint16_t first, uint8_t *out);
static unsigned build_subpages(const struct scsi_lu *lu, uint16_t first, uint8_t *out);
static unsigned build_provisioning(const struct scsi_lu *lu, uint16_t first, uint8_t *out);
static unsigned build_exceptions(const struct scsi_lu *lu, uint16_t first, uint8_t *out);

/* Ascending, as pages 00 list them. */
static const struct log_page log_pages[] = {
    {0x00, 0x00, false, build_pages},
    {0x00, LOG_ALL_SUBPAGES, false, build_subpages},
    {0x0c, 0x00, true, build_provisioning},
    {0x2f, 0x00, false, build_exceptions},
};

static bool page_present(const struct log_page *page, const struct scsi_lu *lu)
{
	return !page->thin_only || volume_is_thin(lu->volume);
}

static unsigned build_pages(const struct scsi_lu *lu, uint16_t first, uint8_t *out)
{
	unsigned bytes = 0;

	for (size_t i = 0; i < ARRAY_SIZE(log_pages); i++) {
		if (log_pages[i].subpage == 0 && page_present(&log_pages[i], lu))
			out[bytes++] = log_pages[i].code;
	}
	return bytes;
}

static unsigned build_subpages(const struct scsi_lu *lu, uint16_t first, uint8_t *out)
{
	unsigned bytes = 0;

	for (size_t i = 0; i < ARRAY_SIZE(log_pages); i++) {
		if (!page_present(&log_pages[i], lu))
			continue;
		out[bytes++] = log_pages[i].code;
		out[bytes++] = log_pages[i].subpage;
	}
	return bytes;
}

enum resource_scope { OF_LOGICAL_UNIT_ONLY = 1, SHARED = 2 };

static unsigned put_resource(uint8_t *out, uint16_t number, uint64_t bytes,
			     enum resource_scope scope)
{
	memset(out, 0, 12);
	put_be16(out, number);
	out[2] = 0x03; /* FORMAT AND LINKING: a binary list parameter */
	out[3] = 8;
	put_be32(out + 4, (uint32_t)MIN_OF(bytes / SCSI_THRESHOLD_SET_BYTES, (uint64_t)UINT32_MAX));
	out[8] = (uint8_t)scope;
	return 12;
}

static unsigned build_provisioning(const struct scsi_lu *lu, uint16_t first, uint8_t *out)
{
	uint64_t used_bytes, total_bytes;
	unsigned bytes = 0;

	volume_pool_space(lu->volume, &used_bytes, &total_bytes);
	if (first <= 1)
		bytes += put_resource(out, 1, total_bytes - used_bytes, SHARED);
	if (first <= 2)
		bytes += put_resource(out + bytes, 2, volume_allocated_bytes(lu->volume),
				      OF_LOGICAL_UNIT_ONLY);
	return bytes;
}

static unsigned build_exceptions(const struct scsi_lu *lu, uint16_t first, uint8_t *out)
{
	if (first > 0)
		return 0;
	memset(out, 0, 8);
	out[2] = 0x03;
	out[3] = 4;    /* no exception */
	out[6] = 0xff; /* there is no temperature to tell; 0 would be zero degrees */
	return 8;
}

static const struct log_page *page_find(const struct scsi_lu *lu, uint8_t code, uint8_t subpage)
{
	for (size_t i = 0; i < ARRAY_SIZE(log_pages); i++) {
		const struct log_page *page = &log_pages[i];

		if (page->code == code && page->subpage == subpage)
			return page_present(page, lu) ? page : NULL;
	}
	return NULL;
}

static void log_sense_execute(struct scsi_task *task)
{
	const uint8_t *cdb = task->cdb;
	const struct log_page *page = page_find(task->lu, cdb[2] & 0x3f, cdb[3]);
	uint16_t first = get_be16(cdb + 5);
	uint8_t data[LOG_MAX_BYTES] = {0};
	unsigned bytes;

	/* SP, PPC; cumulative values are all there are; lists have no parameters to begin at. */
	if ((cdb[1] & 0x03) || !page || (page->code == 0 && first != 0) ||
	    ((cdb[2] >> 6) != 1 && page->code != 0)) {
		scsi_task_fail(task, SENSE_INVALID_FIELD_IN_CDB);
		return;
	}
	bytes = page->build(task->lu, first, data + 4);
	if (bytes == 0) { /* beyond the last parameter */
		scsi_task_fail(task, SENSE_INVALID_FIELD_IN_CDB);
		return;
	}
	data[0] = page->code | 0x80; /* DS: not saved */
	if (page->subpage != 0) {
		data[0] |= 0x40; /* SPF */
		data[1] = page->subpage;
	}
	put_be16(data + 2, (uint16_t)bytes);
	scsi_task_reply(task, data, 4 + bytes, get_be16(cdb + 7));
}

const struct scsi_command scsi_log_commands[] = {
    {.opcode = 0x4d,
     .service_action = -1,
     .cdb_bytes = 10,
     .access = SCSI_ACCESS_FREE,
     .name = "LOG SENSE",
     .usage = {0x4d, 0x00, 0xff, 0xff, 0x00, 0xff, 0xff, 0xff, 0xff, 0x04},
     .execute = log_sense_execute},
    {0},
};
