/* SPDX-License-Identifier: MIT
 *
 * Whether a reservation lets a command through.
 */
#include "target/scsi/reservation.h"

#include <assert.h>
#include <errno.h>

#include "target/scsi/internal.h"

int scsi_reservations_init(struct scsi_lu *lu)
{
	lu->reservations.pr = pr_state_new();
	return lu->reservations.pr ? 0 : -ENOMEM;
}

void scsi_reservations_done(struct scsi_lu *lu)
{
	for (unsigned i = 0; i < SCSI_MAX_PREEMPTS; i++)
		assert(!lu->reservations.preempts[i].task);
	lu->reservations.pr = pr_state_free(lu->reservations.pr);
}

void scsi_reservations_changed(struct scsi_lu *lu)
{
	lu->reserved = lu->reservations.reserved_by || lu->reservations.pr->type != PR_NONE;
}

struct pr_nexus scsi_pr_nexus(const struct scsi_nexus *nexus)
{
	return (struct pr_nexus){nexus->initiator_name, nexus->isid, nexus->relative_port,
				 nexus->reservation_hash};
}

/* START STOP UNIT that only starts, PREVENT ALLOW that only allows: harmless to the holder. */
static bool is_harmless(const uint8_t *cdb)
{
	if (cdb[0] == 0x1b)
		return (cdb[4] & 0xf0) == 0 && (cdb[4] & 0x01);
	return (cdb[4] & 0x03) == 0;
}

static bool conflicts_with_reserve(const struct scsi_task *task, enum scsi_access access)
{
	/* Who mixes the two kinds is told so, even the holder (SPC-2 5.5.1). */
	if (access == SCSI_ACCESS_PR)
		return true;
	if (task->nexus == task->lu->reservations.reserved_by)
		return false;
	return access != SCSI_ACCESS_BY_CDB || !is_harmless(task->cdb);
}

static bool conflicts_with_pr(const struct scsi_task *task, enum scsi_access access)
{
	const struct pr_state *pr = task->lu->reservations.pr;
	const struct pr_nexus nexus = scsi_pr_nexus(task->nexus);
	int index;

	if (access == SCSI_ACCESS_PR || access == SCSI_ACCESS_PERSISTENT)
		return false;
	if (access == SCSI_ACCESS_READ && pr_type_is_write_exclusive(pr->type))
		return false;
	if (access == SCSI_ACCESS_BY_CDB && is_harmless(task->cdb))
		return false;
	index = pr_find(pr, &nexus);
	if (index < 0)
		return true;
	return !pr_type_is_for_registrants(pr->type) && !pr_is_holder(pr, (unsigned)index);
}

bool scsi_reservation_conflicts(const struct scsi_task *task)
{
	enum scsi_access access = task->command->access;

	if (access == SCSI_ACCESS_FREE)
		return false;
	if (task->lu->reservations.reserved_by)
		return conflicts_with_reserve(task, access);
	return task->lu->reservations.pr->type != PR_NONE && conflicts_with_pr(task, access);
}

/* SAM-5 5.3.3: of the unit attentions only those of a reset go before RESERVATION CONFLICT. */
void scsi_reservation_refuse(struct scsi_task *task)
{
	uint32_t attention = SENSE_NONE;

	if (!(task->command->flags & SCSI_CMD_PAST_UA))
		attention = scsi_ua_take_reset(task->nexus, task->lun_index);
	if (attention != SENSE_NONE)
		scsi_sense_fail(task, attention);
	else
		task->status = SCSI_RESERVATION_CONFLICT;
}
