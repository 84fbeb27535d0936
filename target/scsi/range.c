/* SPDX-License-Identifier: MIT
 *
 * Order between commands on the same blocks (SBC-3 4.19, 5.2): COMPARE AND WRITE, ORWRITE and
 * atomic writes have their range to themselves, everything else may run side by side.
 *
 * A command asks for its range when it begins to execute and gives it back when it ends.  Those
 * that have to wait are counted how many earlier commands stand in their way and become ready with
 * the last of them: first come, first served, so that no stream of reads starves a COMPARE AND
 * WRITE.  As long as no atomic command is about, a range costs two stores.
 */
#include "target/scsi/internal.h"

enum range_state { RANGE_NONE, RANGE_WAITING, RANGE_HELD };

static bool overlap(const struct scsi_task *a, const struct scsi_task *b)
{
	if ((a->command->flags | b->command->flags) & SCSI_CMD_WHOLE_LU)
		return true;
	/* No sum wraps: prepare has checked that the ranges end within the logical unit. */
	return a->lba < b->lba + b->blocks && b->lba < a->lba + a->blocks;
}

static bool conflict(const struct scsi_task *a, const struct scsi_task *b)
{
	return ((a->command->flags | b->command->flags) & SCSI_CMD_ATOMIC) && overlap(a, b);
}

bool scsi_range_enter(struct scsi_task *task)
{
	struct scsi_lu *lu = task->lu;
	struct scsi_task *other;

	task->range_ticket = lu->range_ticket++;
	task->range_state = RANGE_HELD;
	if (task->command->flags & SCSI_CMD_ATOMIC)
		lu->atomic_count++;
	else if (lu->atomic_count == 0)
		return true;
	task->range_waits = 0;
	for (other = TAILQ_FIRST(&lu->tasks); other; other = TAILQ_NEXT(other, entry)) {
		if (other != task && other->range_state != RANGE_NONE && conflict(task, other))
			task->range_waits++;
	}
	if (task->range_waits == 0)
		return true;
	task->range_state = RANGE_WAITING;
	TAILQ_INSERT_TAIL(&lu->range_waiting, task, range_entry);
	return false;
}

void scsi_range_leave(struct scsi_task *task)
{
	struct scsi_lu *lu = task->lu;
	struct scsi_task *other, *next;

	task->range_state = RANGE_NONE;
	if (task->command->flags & SCSI_CMD_ATOMIC)
		lu->atomic_count--;
	for (other = TAILQ_FIRST(&lu->range_waiting); other; other = next) {
		next = TAILQ_NEXT(other, range_entry);
		if (other->range_ticket < task->range_ticket || !conflict(task, other))
			continue;
		if (--other->range_waits > 0)
			continue;
		TAILQ_REMOVE(&lu->range_waiting, other, range_entry);
		TAILQ_INSERT_TAIL(&lu->range_ready, other, range_entry);
	}
}

/* A command may end, and make others ready, while it is being run here: they join this loop. */
void scsi_range_run(struct scsi_lu *lu)
{
	struct scsi_task *task;

	if (lu->range_running)
		return;
	lu->range_running = true;
	while ((task = TAILQ_FIRST(&lu->range_ready))) {
		TAILQ_REMOVE(&lu->range_ready, task, range_entry);
		task->range_state = RANGE_HELD;
		scsi_task_run(task);
	}
	lu->range_running = false;
}
