/* SPDX-License-Identifier: MIT
 *
 * INQUIRY: standard data (SPC-4 6.6.2); vital product data pages are in vpd.c.
 */
#include "target/scsi/internal.h"

enum { INQUIRY_BYTES = 96 };

static const uint16_t version_descriptors[] = {
    0x00a0, /* SAM-5, no version claimed */
    0x0960, /* iSCSI, no version claimed */
    0x0460, /* SPC-4, no version claimed */
    0x04c0, /* SBC-3, no version claimed */
};

/* ASCII fields are left-aligned, padded with spaces, graphic codes only (SPC-4 4.4.1). */
static void put_ascii(uint8_t *out, size_t size, const char *text)
{
	for (size_t i = 0; i < size; i++) {
		out[i] = *text ? (uint8_t)*text++ : ' ';
		if (out[i] < 0x20 || out[i] > 0x7e)
			out[i] = '_';
	}
}

static void standard_build(const struct scsi_task *task, uint8_t data[INQUIRY_BYTES])
{
	/* No device can be at a LUN the target does not have: qualifier 011b, type 1Fh. */
	data[0] = task->lu ? 0x00 : 0x7f;
	data[1] = task->lu && volume_is_removable(task->lu->volume) ? 0x80 : 0x00; /* RMB */
	data[2] = 6;								   /* SPC-4 */
	data[3] = 0x12; /* HISUP, response data format 2 */
	data[4] = INQUIRY_BYTES - 5;
	if (task->lu)
		data[5] = 0x30 | 0x08; /* TPGS: implicit and explicit; 3PC */
	data[6] = 0x10;		       /* MULTIP */
	data[7] = 0x02;		       /* CMDQUE */
	put_ascii(data + 8, 8, "SANLAB");
	put_ascii(data + 16, 16, task->lu ? volume_name(task->lu->volume) : "");
	put_ascii(data + 32, 4, "0001");
	for (size_t i = 0; i < ARRAY_SIZE(version_descriptors); i++)
		put_be16(data + 58 + 2 * i, version_descriptors[i]);
}

static void inquiry_execute(struct scsi_task *task)
{
	uint32_t allocation_bytes = get_be16(task->cdb + 3);
	uint8_t data[INQUIRY_BYTES] = {0};

	if (task->cdb[1] & 0x01) {
		scsi_vpd_execute(task, task->cdb[2], allocation_bytes);
		return;
	}
	if (task->cdb[1] != 0 || task->cdb[2] != 0) { /* CMDDT is obsolete; page without EVPD */
		scsi_task_fail(task, SENSE_INVALID_FIELD_IN_CDB);
		return;
	}
	standard_build(task, data);
	scsi_task_reply(task, data, sizeof data, allocation_bytes);
}

const struct scsi_command scsi_inquiry_commands[] = {
    {.opcode = 0x12,
     .service_action = -1,
     .cdb_bytes = 6,
     .flags = SCSI_CMD_PAST_UA | SCSI_CMD_ANY_LUN | SCSI_CMD_PAST_WIPE,
     .access = SCSI_ACCESS_FREE,
     .name = "INQUIRY",
     .usage = {0x12, 0x01, 0xff, 0xff, 0xff, 0x04},
     .execute = inquiry_execute},
    {0},
};
