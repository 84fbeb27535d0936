/* SPDX-License-Identifier: MIT
 *
 * SANITIZE, SBC-3 5.22 and 4.11: overwrite, block erase, cryptographic erase, exit failure mode.
 * The operation itself is in wipe.c.
 *
 * The data of a cryptographic erase is as gone as that of a block erase.
 */
#include "target/scsi/wipe.h"

enum sanitize_action {
	SANITIZE_OVERWRITE = 0x01,
	SANITIZE_BLOCK_ERASE = 0x02,
	SANITIZE_CRYPTO_ERASE = 0x03,
	SANITIZE_EXIT_FAILURE_MODE = 0x1f,
};

enum { LIST_HEADER_BYTES = 4, BIT_IMMED = 0x80, BIT_ZNR = 0x40, BIT_AUSE = 0x20 };

static enum sanitize_action action_of(const struct scsi_task *task)
{
	return task->cdb[1] & 0x1f;
}

static enum scsi_prepared sanitize_prepare(struct scsi_task *task)
{
	static const uint8_t reserved[5];
	uint32_t list_bytes = get_be16(task->cdb + 7);
	bool list_ok = list_bytes == 0;

	if (!scsi_wipe_ready(task))
		return SCSI_ENDED;
	if (action_of(task) == SANITIZE_OVERWRITE)
		list_ok = list_bytes > LIST_HEADER_BYTES &&
			  list_bytes <= LIST_HEADER_BYTES + task->lu->block_bytes;
	if (!list_ok || (task->cdb[1] & BIT_ZNR) ||
	    memcmp(task->cdb + 2, reserved, sizeof reserved) != 0)
		return scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
	task->out_bytes = list_bytes;
	task->transfer_bytes = list_bytes;
	return list_bytes > 0 ? SCSI_NEEDS_DATA : SCSI_READY;
}

/* Takes the parameter list of an overwrite; false: the task has ended. */
static bool overwrite_plan(struct scsi_task *task, struct wipe_plan *plan)
{
	uint8_t header[LIST_HEADER_BYTES];
	uint32_t pattern_bytes;

	if (task->out_got_bytes < task->out_bytes) {
		scsi_task_fail(task, SENSE_PARAMETER_LIST_LENGTH);
		return false;
	}
	iov_to_mem(task->out_iov, task->out_iov_count, 0, header, sizeof header);
	pattern_bytes = get_be16(header + 2);
	plan->invert = header[0] & 0x80;
	plan->passes = header[0] & 0x1f;
	if (plan->passes == 0 || pattern_bytes == 0 ||
	    pattern_bytes > task->out_bytes - LIST_HEADER_BYTES) {
		scsi_task_fail(task, SENSE_INVALID_FIELD_IN_LIST);
		return false;
	}
	plan->pattern = scsi_wipe_pattern(task, LIST_HEADER_BYTES, pattern_bytes);
	return plan->pattern;
}

static void sanitize_execute(struct scsi_task *task)
{
	bool unrestricted = task->cdb[1] & BIT_AUSE; /* EXIT FAILURE MODE may follow a failure */
	struct wipe_plan plan = {
	    .passes = 1,
	    .running = LU_SANITIZING,
	    .failed = LU_SANITIZE_FAILED | (unrestricted ? 0U : LU_SANITIZE_RESTRICTED),
	    .failed_code = SENSE_SANITIZE_FAILED,
	};

	if (action_of(task) == SANITIZE_OVERWRITE && !overwrite_plan(task, &plan))
		return;
	task->lu->conditions &= ~(unsigned)(LU_SANITIZE_FAILED | LU_SANITIZE_RESTRICTED);
	scsi_wipe_begin(task, &plan, task->cdb[1] & BIT_IMMED);
}

static void exit_failure_execute(struct scsi_task *task)
{
	if (task->lu->conditions & LU_SANITIZE_RESTRICTED) {
		scsi_task_fail(task, SENSE_SANITIZE_FAILED);
		return;
	}
	task->lu->conditions &= ~(unsigned)LU_SANITIZE_FAILED;
	scsi_task_end(task);
}

#define SANITIZE_ROW(action, more, title)                                                         \
	{                                                                                         \
		.opcode = 0x48, .service_action = (action), .cdb_bytes = 10,                      \
		.flags = SCSI_CMD_WRITES | SCSI_CMD_RANGE | SCSI_CMD_WHOLE_LU | SCSI_CMD_ATOMIC | \
			 (more),                                                                  \
		.name = (title),                                                                  \
		.usage = {0x48, 0xa0 | (action), 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x04}, \
		.prepare = sanitize_prepare, .execute = sanitize_execute,                         \
		.abort = scsi_wipe_abort,                                                         \
	}

const struct scsi_command scsi_sanitize_commands[] = {
    SANITIZE_ROW(SANITIZE_OVERWRITE, 0, "SANITIZE, OVERWRITE"),
    /* Block erase leaves the blocks deallocated, as only a thin volume can tell. */
    SANITIZE_ROW(SANITIZE_BLOCK_ERASE, SCSI_CMD_THIN, "SANITIZE, BLOCK ERASE"),
    SANITIZE_ROW(SANITIZE_CRYPTO_ERASE, 0, "SANITIZE, CRYPTOGRAPHIC ERASE"),
    {.opcode = 0x48,
     .service_action = SANITIZE_EXIT_FAILURE_MODE,
     .cdb_bytes = 10,
     .name = "SANITIZE, EXIT FAILURE MODE",
     .usage = {0x48, 0x1f, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x04},
     .prepare = sanitize_prepare,
     .execute = exit_failure_execute},
    {0},
};
