/* SPDX-License-Identifier: MIT
 *
 * RESERVE and RELEASE (6) and (10), SPC-2: the whole logical unit for one nexus, until it releases
 * it, ends, or the unit is reset.
 *
 * With persistent reservations around, CRH (SPC-4 5.13.3) applies: nexuses that have access by one
 * get GOOD and nothing changes, others conflict as soon as anybody is registered.
 */
#include "target/scsi/internal.h"

static void reserved_by(struct scsi_lu *lu, const struct scsi_nexus *nexus)
{
	lu->reservations.reserved_by = nexus;
	scsi_reservations_changed(lu);
}

void scsi_reserve_forget_lu(struct scsi_lu *lu)
{
	reserved_by(lu, NULL);
}

void scsi_reserve_forget_nexus(const struct scsi_nexus *nexus)
{
	for (unsigned i = 0; i < SCSI_MAX_LUNS; i++) {
		struct scsi_lu *lu = nexus->target->luns[i];

		if (lu && lu->reservations.reserved_by == nexus)
			reserved_by(lu, NULL);
	}
}

/* Third-party reservations, extents and LONGID are gone since SPC-2. */
static enum scsi_prepared reserve_prepare(struct scsi_task *task)
{
	const uint8_t *cdb = task->cdb;
	bool ten = cdb[0] >= 0x56;

	if (cdb[1] & (ten ? 0x13 : 0x11))
		return scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
	if (get_be16(cdb + (ten ? 7 : 3)) != 0) /* a list of extents */
		return scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
	return SCSI_READY;
}

/* True when persistent reservations decide; status is set then. */
static bool settled_by_pr(struct scsi_task *task)
{
	const struct pr_state *pr = task->lu->reservations.pr;
	const struct pr_nexus nexus = scsi_pr_nexus(task->nexus);
	int index = pr_find(pr, &nexus);

	if (pr->count == 0)
		return false;
	if (index < 0 ||
	    (!pr_type_is_for_registrants(pr->type) && !pr_is_holder(pr, (unsigned)index)))
		task->status = SCSI_RESERVATION_CONFLICT;
	return true;
}

static void reserve_execute(struct scsi_task *task)
{
	struct scsi_lu *lu = task->lu;

	if (!settled_by_pr(task)) {
		if (lu->reservations.reserved_by && lu->reservations.reserved_by != task->nexus)
			task->status = SCSI_RESERVATION_CONFLICT;
		else
			reserved_by(lu, task->nexus);
	}
	scsi_task_end(task);
}

/* Releasing what another has reserved is no error, and no release. */
static void release_execute(struct scsi_task *task)
{
	if (!settled_by_pr(task) && task->lu->reservations.reserved_by == task->nexus)
		reserved_by(task->lu, NULL);
	scsi_task_end(task);
}

#define ROW(op, bytes, title, exec, ...)                                           \
	{                                                                          \
		.opcode = (op), .service_action = -1, .cdb_bytes = (bytes),        \
		.access = SCSI_ACCESS_FREE, .name = (title), .usage = __VA_ARGS__, \
		.prepare = reserve_prepare, .execute = (exec)                      \
	}

const struct scsi_command scsi_reserve_commands[] = {
    ROW(0x16, 6, "RESERVE (6)", reserve_execute, {0x16, 0x00, 0x00, 0x00, 0x00, 0x04}),
    ROW(0x17, 6, "RELEASE (6)", release_execute, {0x17, 0x00, 0x00, 0x00, 0x00, 0x04}),
    ROW(0x56, 10, "RESERVE (10)", reserve_execute, {0x56, [9] = 0x04}),
    ROW(0x57, 10, "RELEASE (10)", release_execute, {0x57, [9] = 0x04}),
    {0},
};
