/* SPDX-License-Identifier: MIT
 *
 * Small SPC-4 commands that touch no medium: TEST UNIT READY, REQUEST SENSE, REPORT LUNS.
 */
#include "target/scsi/internal.h"

/* SCSI_CMD_MEDIUM has made the test already. */
static void ready_execute(struct scsi_task *task)
{
	scsi_task_end(task);
}

static void request_sense_execute(struct scsi_task *task)
{
	uint32_t code = SENSE_LU_NOT_SUPPORTED;
	uint8_t data[SCSI_SENSE_MAX_BYTES];
	struct sense_extra extra = {0};
	unsigned bytes;

	/* Reporting a unit attention here clears it, whatever the allocation length. */
	if (task->lu)
		code = scsi_ua_take(task->nexus, task->lun_index);
	if (task->lu && code == SENSE_NONE)
		code = scsi_alua_sense(task);
	if (task->lu && code == SENSE_NONE && scsi_lu_is_wiped(task->lu))
		code = scsi_wipe_sense(task->lu, &extra);
	bytes = scsi_sense_put(data, task->cdb[1] & 0x01, code, &extra);
	scsi_task_reply(task, data, bytes, task->cdb[4]);
}

enum select_report { SELECT_ADDRESSED, SELECT_WELL_KNOWN, SELECT_ALL };

static bool is_report_luns_lun(const uint8_t lun[8])
{
	static const uint8_t well_known[8] = {0xc1, 0x01};

	return scsi_lun_decode(lun) == 0 || memcmp(lun, well_known, sizeof well_known) == 0;
}

static enum scsi_prepared report_luns_prepare(struct scsi_task *task)
{
	if (!task->lu && !is_report_luns_lun(task->lun))
		return scsi_sense_fail(task, SENSE_LU_NOT_SUPPORTED);
	if (task->cdb[2] > SELECT_ALL)
		return scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
	return SCSI_READY;
}

static void report_luns_execute(struct scsi_task *task)
{
	uint8_t data[SCSI_REPLY_BYTES] = {0};
	uint32_t bytes = 8;

	for (unsigned i = 0; i < SCSI_MAX_LUNS && task->cdb[2] != SELECT_WELL_KNOWN; i++) {
		if (!scsi_nexus_lu(task->nexus, i))
			continue;
		scsi_lun_encode(i, data + bytes);
		bytes += 8;
	}
	put_be32(data, bytes - 8);
	scsi_ua_drop(task->nexus, SENSE_UA_LUNS_CHANGED);
	scsi_task_reply(task, data, bytes, get_be32(task->cdb + 6));
}

const struct scsi_command scsi_basic_commands[] = {
    {.opcode = 0x00,
     .service_action = -1,
     .cdb_bytes = 6,
     .flags = SCSI_CMD_MEDIUM,
     .access = SCSI_ACCESS_PERSISTENT,
     .name = "TEST UNIT READY",
     .usage = {0x00, 0x00, 0x00, 0x00, 0x00, 0x04},
     .execute = ready_execute},
    {.opcode = 0x03,
     .service_action = -1,
     .cdb_bytes = 6,
     .flags = SCSI_CMD_PAST_UA | SCSI_CMD_ANY_LUN | SCSI_CMD_PAST_WIPE,
     .access = SCSI_ACCESS_FREE,
     .name = "REQUEST SENSE",
     .usage = {0x03, 0x01, 0x00, 0x00, 0xff, 0x04},
     .execute = request_sense_execute},
    {.opcode = 0xa0,
     .service_action = -1,
     .cdb_bytes = 12,
     .flags = SCSI_CMD_PAST_UA | SCSI_CMD_ANY_LUN | SCSI_CMD_PAST_WIPE,
     .access = SCSI_ACCESS_FREE,
     .name = "REPORT LUNS",
     .usage = {0xa0, 0x00, 0xff, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00, 0x04},
     .prepare = report_luns_prepare,
     .execute = report_luns_execute},
    {0},
};
