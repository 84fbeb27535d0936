/* SPDX-License-Identifier: MIT
 *
 * REPORT SUPPORTED OPERATION CODES (SPC-4 6.35) and REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS
 * (6.36), both told from the command table.
 */
#include "target/scsi/internal.h"

enum {
	OPCODE_ROWS_MAX = 160,
	TIMEOUTS_BYTES = 12,
	OPCODE_ROW_BYTES = 8 + TIMEOUTS_BYTES,
	RECOMMENDED_TIMEOUT_S = 60,
};

enum reporting { REPORT_ALL, REPORT_OPCODE, REPORT_SERVICE_ACTION, REPORT_EITHER };
enum command_support { NOT_SUPPORTED = 1, SUPPORTED = 3 };

static bool wants_timeouts(const struct scsi_task *task)
{
	return task->cdb[2] & 0x80; /* RCTD */
}

/* No nominal time is known; after the recommended one the initiator may give up. */
static unsigned put_timeouts(uint8_t *out)
{
	memset(out, 0, TIMEOUTS_BYTES);
	put_be16(out, TIMEOUTS_BYTES - 2);
	put_be32(out + 8, RECOMMENDED_TIMEOUT_S);
	return TIMEOUTS_BYTES;
}

static unsigned put_row(const struct scsi_command *row, bool timeouts, uint8_t *out)
{
	memset(out, 0, 8);
	out[0] = row->opcode;
	if (row->service_action >= 0) {
		put_be16(out + 2, (uint16_t)row->service_action);
		out[5] = 0x01; /* SERVACTV */
	}
	put_be16(out + 6, row->cdb_bytes);
	if (!timeouts)
		return 8;
	out[5] |= 0x02; /* CTDP */
	return 8 + put_timeouts(out + 8);
}

static void report_all(struct scsi_task *task)
{
	uint8_t data[4 + OPCODE_ROWS_MAX * OPCODE_ROW_BYTES];
	const struct scsi_command *row;
	unsigned bytes = 4;

	for (unsigned i = 0; (row = scsi_commands_row(i)); i++) {
		if (scsi_command_present(row, task->lu) && bytes + OPCODE_ROW_BYTES <= sizeof data)
			bytes += put_row(row, wants_timeouts(task), data + bytes);
	}
	put_be32(data, bytes - 4);
	scsi_task_reply(task, data, bytes, get_be32(task->cdb + 6));
}

static void report_one(struct scsi_task *task, const struct scsi_command *command)
{
	uint8_t data[4 + SCSI_MAX_CDB_BYTES + TIMEOUTS_BYTES] = {0};
	unsigned bytes = 4;

	data[1] = NOT_SUPPORTED;
	if (command) {
		data[1] = SUPPORTED;
		put_be16(data + 2, command->cdb_bytes);
		memcpy(data + 4, command->usage, command->cdb_bytes);
		bytes += command->cdb_bytes;
		if (wants_timeouts(task)) {
			data[1] |= 0x80; /* CTDP */
			bytes += put_timeouts(data + bytes);
		}
	}
	scsi_task_reply(task, data, bytes, get_be32(task->cdb + 6));
}

/* The command, and whether its opcode has service actions; NULL: LU has not got it. */
static const struct scsi_command *find(const struct scsi_lu *lu, uint8_t opcode,
				       uint16_t service_action, bool *ret_has_actions)
{
	const struct scsi_command *row, *found = NULL;

	*ret_has_actions = false;
	for (unsigned i = 0; (row = scsi_commands_row(i)); i++) {
		if (row->opcode != opcode || !scsi_command_present(row, lu))
			continue;
		if (row->service_action >= 0)
			*ret_has_actions = true;
		if (row->service_action < 0 || row->service_action == service_action)
			found = row;
	}
	return found;
}

static void report_opcodes_execute(struct scsi_task *task)
{
	unsigned reporting = task->cdb[2] & 0x07;
	uint16_t service_action = get_be16(task->cdb + 4);
	const struct scsi_command *command;
	bool has_actions;

	if (reporting == REPORT_ALL) {
		report_all(task);
		return;
	}
	command = find(task->lu, task->cdb[3], service_action, &has_actions);
	if (reporting > REPORT_EITHER || (reporting == REPORT_OPCODE && has_actions) ||
	    (reporting == REPORT_SERVICE_ACTION && command && !has_actions)) {
		scsi_sense_fail_cdb(task, 2); /* REPORTING OPTIONS; the command itself is there */
		scsi_task_end(task);
		return;
	}
	if (reporting == REPORT_EITHER && !has_actions && service_action != 0)
		command = NULL;
	report_one(task, command);
}

static void report_functions_execute(struct scsi_task *task)
{
	uint8_t data[16] = {0};
	bool extended = task->cdb[2] & 0x80; /* REPD */

	/* ABORT TASK, ABORT TASK SET, CLEAR TASK SET, LOGICAL UNIT RESET, target resets.  There is
	 * no ACA to clear: NormACA is 0. */
	data[0] = 0x80 | 0x40 | 0x10 | 0x08 | 0x02;
	if (extended) {
		data[3] = sizeof data - 4; /* no timeouts are known (TMFTMOV 0) */
		scsi_task_reply(task, data, sizeof data, get_be32(task->cdb + 6));
	} else {
		scsi_task_reply(task, data, 4, get_be32(task->cdb + 6));
	}
}

static enum scsi_prepared report_functions_prepare(struct scsi_task *task)
{
	if (get_be32(task->cdb + 6) < 4) /* SPC-4 6.36.1 */
		return scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
	return SCSI_READY;
}

const struct scsi_command scsi_opcode_commands[] = {
    {.opcode = 0xa3,
     .service_action = 0x0c,
     .cdb_bytes = 12,
     .access = SCSI_ACCESS_READ,
     .name = "REPORT SUPPORTED OPERATION CODES",
     .usage = {0xa3, 0x0c, 0x87, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x04},
     .execute = report_opcodes_execute},
    {.opcode = 0xa3,
     .service_action = 0x0d,
     .cdb_bytes = 12,
     .access = SCSI_ACCESS_READ,
     .name = "REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS",
     .usage = {0xa3, 0x0d, 0x80, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00, 0x04},
     .prepare = report_functions_prepare,
     .execute = report_functions_execute},
    {0},
};
