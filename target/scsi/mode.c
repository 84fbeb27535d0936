/* SPDX-License-Identifier: MIT
 *
 * MODE SENSE (6) and (10): caching (08h) and control (0Ah) pages, SPC-4 6.11, 7.5.
 */
#include "target/scsi/internal.h"

enum { MODE_MAX_BYTES = 128, MODE_ALL_PAGES = 0x3f, MODE_ALL_SUBPAGES = 0xff };

enum page_control { PC_CURRENT, PC_CHANGEABLE, PC_DEFAULT, PC_SAVED };

struct mode_page {
	uint8_t code;
	uint8_t bytes;	  /* with its 2-byte header */
	uint8_t body[20]; /* current and default values, without the header */
};

/* Ascending.  Nothing is changeable: there is no MODE SELECT. */
static const struct mode_page mode_pages[] = {
    /* WCE: without FUA a write is stable only after SYNCHRONIZE CACHE. */
    {0x08, 20, {0x04}},
    /* Fixed-format sense (D_SENSE 0); unrestricted reordering; no busy timeout. */
    {0x0a, 12, {0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff}},
};

static bool page_selected(const struct mode_page *page, const uint8_t *cdb)
{
	uint8_t wanted = cdb[2] & 0x3f;

	if (cdb[3] != 0 && !(wanted == MODE_ALL_PAGES && cdb[3] == MODE_ALL_SUBPAGES))
		return false;
	return wanted == MODE_ALL_PAGES || wanted == page->code;
}

/* Returns the bytes of all selected pages; 0: there is no such page. */
static unsigned put_pages(const uint8_t *cdb, uint8_t *out)
{
	enum page_control control = cdb[2] >> 6;
	unsigned bytes = 0;

	for (size_t i = 0; i < ARRAY_SIZE(mode_pages); i++) {
		const struct mode_page *page = &mode_pages[i];

		if (!page_selected(page, cdb))
			continue;
		out[bytes] = page->code;
		out[bytes + 1] = page->bytes - 2;
		if (control != PC_CHANGEABLE)
			memcpy(out + bytes + 2, page->body, page->bytes - 2U);
		bytes += page->bytes;
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
	const uint8_t device_specific = 0x10; /* DPOFUA */

	if (cdb[2] >> 6 == PC_SAVED) {
		scsi_task_fail(task, SENSE_SAVING_NOT_SUPPORTED);
		return;
	}
	if (!(cdb[1] & 0x08)) /* DBD */
		descriptor = put_block_descriptor(task->lu, long_lba, data + header);
	pages = put_pages(cdb, data + header + descriptor);
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
     .name = "MODE SENSE (6)",
     .usage = {0x1a, 0x08, 0xff, 0xff, 0xff, 0x04},
     .execute = mode_sense_execute},
    {.opcode = 0x5a,
     .service_action = -1,
     .cdb_bytes = 10,
     .name = "MODE SENSE (10)",
     .usage = {0x5a, 0x18, 0xff, 0xff, 0x00, 0x00, 0x00, 0xff, 0xff, 0x04},
     .execute = mode_sense_execute},
    {0},
};
