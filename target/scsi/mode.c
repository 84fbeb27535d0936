/* SPDX-License-Identifier: MIT
 *
 * The mode pages, and MODE SENSE (6) and (10), SPC-4 6.11, 7.5; MODE SELECT is in mode_select.c.
 */
#include "target/scsi/mode.h"

#include <assert.h>

enum { MODE_MAX_BYTES = 256, MODE_ALL_PAGES = 0x3f, MODE_ALL_SUBPAGES = 0xff };

static const struct mode_values default_values = {.write_cache = true};

void scsi_mode_reset(struct scsi_lu *lu)
{
	lu->mode = default_values;
}

/* The values a page shows; for PC_CHANGEABLE all that can change are set. */
static struct mode_values values_of(const struct scsi_lu *lu, enum page_control control)
{
	switch (control) {
	case PC_CURRENT:
		return lu->mode;
	case PC_CHANGEABLE:
		return (struct mode_values){true, true, true};
	default:
		return default_values;
	}
}

/* ---- pages ---- */

/* Defects are the array's business: whatever can be done about them has been (AWRE, ARRE). */
static void build_error_recovery(const struct scsi_lu *lu, enum page_control control, uint8_t *body)
{
	if (control != PC_CHANGEABLE)
		body[0] = 0xc0;
}

static void build_caching(const struct scsi_lu *lu, enum page_control control, uint8_t *body)
{
	if (values_of(lu, control).write_cache)
		body[0] = 0x04; /* WCE */
}

static void apply_caching(const uint8_t *body, struct mode_values *values)
{
	values->write_cache = body[0] & 0x04;
}

static void build_control(const struct scsi_lu *lu, enum page_control control, uint8_t *body)
{
	struct mode_values values = values_of(lu, control);

	if (values.descriptor_sense)
		body[0] = 0x04; /* D_SENSE */
	if (values.software_write_protect)
		body[2] = 0x08; /* SWP */
	if (control == PC_CHANGEABLE)
		return;
	body[0] |= 0x02;		/* GLTSD: log parameters are not saved by themselves */
	body[1] = 0x10;			/* unrestricted reordering */
	put_be16(body + 6, UINT16_MAX); /* no bound on BUSY */
}

static void apply_control(const uint8_t *body, struct mode_values *values)
{
	values->descriptor_sense = body[0] & 0x04;
	values->software_write_protect = body[2] & 0x08;
}

static void build_control_extension(const struct scsi_lu *lu, enum page_control control,
				    uint8_t *body)
{
	if (control == PC_CHANGEABLE)
		return;
	body[0] = 0x01; /* IALUAE: implicit access state changes happen */
	body[2] = SCSI_SENSE_MAX_BYTES;
}

/* Informational exceptions: none are reported (MRIE 0). */
static void build_exceptions(const struct scsi_lu *lu, enum page_control control, uint8_t *body) {}

static bool has_threshold(const struct scsi_lu *lu)
{
	return volume_is_thin(lu->volume) && volume_thin_threshold_percent(lu->volume) > 0;
}

/* One descriptor: the soft threshold of the pool's available resources (SBC-3 6.5.9). */
static void build_provisioning(const struct scsi_lu *lu, enum page_control control, uint8_t *body)
{
	uint64_t used_bytes, total_bytes;

	if (control == PC_CHANGEABLE)
		return;
	volume_pool_space(lu->volume, &used_bytes, &total_bytes);
	body[12] = 0x80; /* ENABLED, soft, armed while resources decrease */
	body[13] = 0x01; /* available LBA mapping resources */
	put_be32(body + 16, (uint32_t)(total_bytes / SCSI_THRESHOLD_SET_BYTES *
				       (100 - volume_thin_threshold_percent(lu->volume)) / 100));
}

/* Ascending, as MODE SENSE returns them. */
static const struct mode_page mode_pages[] = {
    {0x01, 0x00, 12, NULL, build_error_recovery, NULL},
    {0x08, 0x00, 20, NULL, build_caching, apply_caching},
    {0x0a, 0x00, 12, NULL, build_control, apply_control},
    {0x0a, 0x01, 32, NULL, build_control_extension, NULL},
    {0x1c, 0x00, 12, NULL, build_exceptions, NULL},
    {0x1c, 0x02, 24, has_threshold, build_provisioning, NULL},
};

const struct mode_page *scsi_mode_page_find(const struct scsi_lu *lu, uint8_t code, uint8_t subpage)
{
	for (size_t i = 0; i < ARRAY_SIZE(mode_pages); i++) {
		const struct mode_page *page = &mode_pages[i];

		if (page->code == code && page->subpage == subpage)
			return !page->present || page->present(lu) ? page : NULL;
	}
	return NULL;
}

unsigned scsi_mode_page_build(const struct mode_page *page, const struct scsi_lu *lu,
			      enum page_control control, uint8_t *out)
{
	unsigned header = scsi_mode_page_header_bytes(page);

	assert(page->bytes <= MODE_PAGE_MAX_BYTES);
	memset(out, 0, page->bytes);
	out[0] = page->code;
	if (page->subpage == 0) {
		out[1] = page->bytes - 2;
	} else {
		out[0] |= 0x40; /* SPF */
		out[1] = page->subpage;
		put_be16(out + 2, (uint16_t)(page->bytes - 4));
	}
	page->build(lu, control, out + header);
	return page->bytes;
}

/* ---- MODE SENSE ---- */

static bool page_selected(const struct mode_page *page, const uint8_t *cdb)
{
	uint8_t code = cdb[2] & 0x3f, subpage = cdb[3];

	if (code != MODE_ALL_PAGES && code != page->code)
		return false;
	return subpage == MODE_ALL_SUBPAGES || subpage == page->subpage;
}

/* Returns the bytes of all selected pages; 0: there is no such page. */
static unsigned put_pages(const struct scsi_lu *lu, const uint8_t *cdb, uint8_t *out)
{
	unsigned bytes = 0;

	if ((cdb[2] & 0x3f) == MODE_ALL_PAGES && cdb[3] != 0 && cdb[3] != MODE_ALL_SUBPAGES)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(mode_pages); i++) {
		const struct mode_page *page = &mode_pages[i];

		if (page_selected(page, cdb) && (!page->present || page->present(lu)))
			bytes += scsi_mode_page_build(page, lu, cdb[2] >> 6, out + bytes);
	}
	return bytes;
}

/* The block descriptor, short or long (LONGLBA); returns its length. */
static unsigned put_block_descriptor(const struct scsi_lu *lu, bool long_lba, uint8_t *out)
{
	uint64_t blocks = scsi_lu_blocks(lu);

	if (long_lba) {
		put_be64(out, blocks);
		put_be32(out + 12, lu->block_bytes);
		return 16;
	}
	put_be32(out, (uint32_t)MIN_OF(blocks, UINT64_C(0xffffffff)));
	put_be24(out + 5, lu->block_bytes);
	return 8;
}

static void mode_sense_execute(struct scsi_task *task)
{
	const uint8_t *cdb = task->cdb;
	bool ten = cdb[0] == 0x5a;
	bool long_lba = ten && (cdb[1] & 0x10);
	unsigned header = ten ? 8 : 4;
	unsigned descriptor = 0, pages;
	uint8_t data[MODE_MAX_BYTES] = {0};
	uint8_t device_specific = 0x10; /* DPOFUA */

	if (scsi_lu_is_write_protected(task->lu))
		device_specific |= 0x80; /* WP */
	if (cdb[2] >> 6 == PC_SAVED) {
		scsi_task_fail(task, SENSE_SAVING_NOT_SUPPORTED);
		return;
	}
	if (!(cdb[1] & 0x08)) /* DBD */
		descriptor = put_block_descriptor(task->lu, long_lba, data + header);
	pages = put_pages(task->lu, cdb, data + header + descriptor);
	if (pages == 0) {
		scsi_task_fail(task, SENSE_INVALID_FIELD_IN_CDB);
		return;
	}
	if (ten) {
		put_be16(data, (uint16_t)(header + descriptor + pages - 2));
		data[3] = device_specific;
		data[4] = long_lba && descriptor ? 0x01 : 0x00;
		put_be16(data + 6, (uint16_t)descriptor);
	} else {
		data[0] = (uint8_t)(header + descriptor + pages - 1);
		data[2] = device_specific;
		data[3] = (uint8_t)descriptor;
	}
	scsi_task_reply(task, data, header + descriptor + pages, ten ? get_be16(cdb + 7) : cdb[4]);
}

const struct scsi_command scsi_mode_commands[] = {
    {.opcode = 0x1a,
     .service_action = -1,
     .cdb_bytes = 6,
     .access = SCSI_ACCESS_READ,
     .name = "MODE SENSE (6)",
     .usage = {0x1a, 0x08, 0xff, 0xff, 0xff, 0x04},
     .execute = mode_sense_execute},
    {.opcode = 0x5a,
     .service_action = -1,
     .cdb_bytes = 10,
     .access = SCSI_ACCESS_READ,
     .name = "MODE SENSE (10)",
     .usage = {0x5a, 0x18, 0xff, 0xff, 0x00, 0x00, 0x00, 0xff, 0xff, 0x04},
     .execute = mode_sense_execute},
    {0},
};
