/* SPDX-License-Identifier: MIT
 *
 * The condition of the medium: START STOP UNIT, PREVENT ALLOW MEDIUM REMOVAL (SBC-3 5.24, SPC-3
 * 6.13), write protection, and the check that every command on the medium goes through.
 *
 * Stopping and ejecting belong to the logical unit, preventing removal to the I_T nexus.
 */
#include "target/scsi/internal.h"

bool scsi_lu_is_write_protected(const struct scsi_lu *lu)
{
	return (lu->conditions & LU_READ_ONLY) || lu->mode.software_write_protect;
}

bool scsi_medium_check(struct scsi_task *task)
{
	const struct scsi_lu *lu = task->lu;
	unsigned flags = task->command->flags;

	/* MAINTENANCE IN only reports: commands, task management, port groups. */
	if (scsi_lu_is_wiped(lu) && !(flags & SCSI_CMD_PAST_WIPE) && task->cdb[0] != 0xa3) {
		struct sense_extra extra = {0};
		uint32_t code = scsi_wipe_sense(lu, &extra);

		scsi_sense_fail_extra(task, code, &extra);
		return false;
	}
	if ((flags & SCSI_CMD_MEDIUM) && (lu->conditions & ~(unsigned)LU_READ_ONLY)) {
		uint32_t code = SENSE_SANITIZE_FAILED;

		if (lu->conditions & LU_EJECTED)
			code = SENSE_NO_MEDIUM;
		else if (lu->conditions & LU_STOPPED)
			code = SENSE_START_REQUIRED;
		else if (!(lu->conditions & LU_SANITIZE_FAILED))
			code = SENSE_FORMAT_CORRUPTED;
		scsi_sense_fail(task, code);
		return false;
	}
	if ((flags & SCSI_CMD_WRITES) && scsi_lu_is_write_protected(lu)) {
		scsi_sense_fail(task, lu->conditions & LU_READ_ONLY
					  ? SENSE_WRITE_PROTECTED
					  : SENSE_SOFTWARE_WRITE_PROTECTED);
		return false;
	}
	return true;
}

/* ---- PREVENT ALLOW MEDIUM REMOVAL ---- */

static void prevent_set(struct scsi_nexus *nexus, unsigned lun, bool prevent)
{
	uint8_t bit = (uint8_t)(1U << lun % 8);

	if (prevent)
		nexus->prevents[lun / 8] |= bit;
	else
		nexus->prevents[lun / 8] &= (uint8_t)~bit;
}

static bool nexus_prevents(const struct scsi_nexus *nexus, const struct scsi_lu *lu)
{
	for (unsigned lun = 0; lun < SCSI_MAX_LUNS; lun++) {
		if (nexus->target->luns[lun] == lu && (nexus->prevents[lun / 8] >> lun % 8 & 1))
			return true;
	}
	return false;
}

/* The next nexus of any target of the device; NULL begins, NULL ends. */
static struct scsi_nexus *next_nexus(const struct scsi_device *device, struct scsi_nexus *nexus)
{
	struct scsi_target *target =
	    nexus ? TAILQ_NEXT(nexus->target, entry) : TAILQ_FIRST(&device->targets);

	if (nexus && TAILQ_NEXT(nexus, entry))
		return TAILQ_NEXT(nexus, entry);
	while (target && TAILQ_EMPTY(&target->nexuses))
		target = TAILQ_NEXT(target, entry);
	return target ? TAILQ_FIRST(&target->nexuses) : NULL;
}

static bool removal_prevented(const struct scsi_lu *lu)
{
	struct scsi_nexus *nexus = NULL;

	while ((nexus = next_nexus(lu->device, nexus))) {
		if (nexus_prevents(nexus, lu))
			return true;
	}
	return false;
}

void scsi_medium_reset(struct scsi_lu *lu)
{
	struct scsi_nexus *nexus = NULL;

	while ((nexus = next_nexus(lu->device, nexus))) {
		for (unsigned lun = 0; lun < SCSI_MAX_LUNS; lun++) {
			if (nexus->target->luns[lun] == lu)
				prevent_set(nexus, lun, false);
		}
	}
}

static enum scsi_prepared prevent_prepare(struct scsi_task *task)
{
	if (task->cdb[4] & 0x02) /* the medium changer's bit, obsolete */
		return scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
	return SCSI_READY;
}

static void prevent_execute(struct scsi_task *task)
{
	prevent_set(task->nexus, task->lun_index, task->cdb[4] & 0x01);
	scsi_task_end(task);
}

/* ---- START STOP UNIT ---- */

enum start_stop_bit { BIT_START = 0x01, BIT_LOEJ = 0x02, BIT_NO_FLUSH = 0x04 };

static uint8_t power_condition(const struct scsi_task *task)
{
	return task->cdb[4] >> 4;
}

static enum scsi_prepared start_stop_prepare(struct scsi_task *task)
{
	bool moves = power_condition(task) == 0 && (task->cdb[4] & BIT_LOEJ);

	if (!moves)
		return SCSI_READY;
	if (!volume_is_removable(task->lu->volume))
		return scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
	if (removal_prevented(task->lu))
		return scsi_sense_fail(task, SENSE_REMOVAL_PREVENTED);
	return SCSI_READY;
}

static void medium_load(struct scsi_task *task)
{
	struct scsi_lu *lu = task->lu;

	lu->conditions &= ~(unsigned)LU_STOPPED;
	if (!(task->cdb[4] & BIT_LOEJ) || !(lu->conditions & LU_EJECTED))
		return;
	lu->conditions &= ~(unsigned)LU_EJECTED;
	scsi_ua_broadcast(lu, task->nexus, SENSE_UA_MEDIUM_CHANGED);
}

static void stop_done(struct io *io)
{
	struct scsi_task *task = io->owner;

	scsi_sense_from_io(task, IO_FLUSH, io->status);
	if (task->status == SCSI_GOOD && !task->aborted)
		task->lu->conditions |= task->cdb[4] & BIT_LOEJ ? LU_EJECTED : LU_STOPPED;
	scsi_task_end(task);
}

/* IMMED only permits an early status.  The power conditions of a disk (active, idle, standby) are
 * accepted: an array keeps its own counsel about its drives. */
static void start_stop_execute(struct scsi_task *task)
{
	uint8_t bits = task->cdb[4];
	bool stop = power_condition(task) == 0 && !(bits & BIT_START);

	/* A removable medium without its motor is as good as with it: only ejecting counts. */
	if (stop && !(bits & BIT_LOEJ) && volume_is_removable(task->lu->volume))
		stop = false;
	if (!stop) {
		if (power_condition(task) == 0)
			medium_load(task);
		scsi_task_end(task);
		return;
	}
	task->io.flags = 0;
	task->io.iov = NULL;
	task->io.iov_count = 0;
	task->io.status = 0;
	task->io.owner = task;
	if (bits & BIT_NO_FLUSH)
		stop_done(&task->io);
	else
		scsi_task_submit(task, IO_FLUSH, 0,
				 scsi_lu_blocks(task->lu) * task->lu->block_bytes, stop_done);
}

const struct scsi_command scsi_medium_commands[] = {
    {.opcode = 0x1b,
     .service_action = -1,
     .cdb_bytes = 6,
     .access = SCSI_ACCESS_BY_CDB,
     .name = "START STOP UNIT",
     .usage = {0x1b, 0x01, 0x00, 0x0f, 0xf7, 0x04},
     .prepare = start_stop_prepare,
     .execute = start_stop_execute},
    {.opcode = 0x1e,
     .service_action = -1,
     .cdb_bytes = 6,
     .flags = SCSI_CMD_REMOVABLE,
     .access = SCSI_ACCESS_BY_CDB,
     .name = "PREVENT ALLOW MEDIUM REMOVAL",
     .usage = {0x1e, 0x00, 0x00, 0x00, 0x03, 0x04},
     .prepare = prevent_prepare,
     .execute = prevent_execute},
    {0},
};
