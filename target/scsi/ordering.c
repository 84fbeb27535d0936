/* SPDX-License-Identifier: MIT
 *
 * Task attributes (SAM-5 8.6): when a task of the set may begin.
 *
 *   HEAD OF QUEUE  at once
 *   ORDERED        when all older tasks, and all HEAD OF QUEUE tasks, have ended
 *   SIMPLE         when all older ORDERED tasks, and all HEAD OF QUEUE tasks, have ended
 *
 * A task is in the set, and holds others up, from the end of its prepare: also while its data is
 * still on the way.  Who has to wait becomes dormant when the transport executes it.  The set is
 * the logical unit's, shared by all nexuses (TST 000b), as CLEAR TASK SET has it.
 *
 * While no task of the set has such an attribute nobody looks at anybody else.
 */
#include "target/scsi/internal.h"

/* What the attributes of a task set come to. */
struct barrier {
	bool head_of_queue;
	uint64_t oldest, oldest_ordered; /* sequence numbers; UINT64_MAX: none */
};

static struct barrier barrier_of(const struct scsi_lu *lu)
{
	struct barrier barrier = {.oldest = UINT64_MAX, .oldest_ordered = UINT64_MAX};
	const struct scsi_task *task;

	for (task = TAILQ_FIRST(&lu->tasks); task; task = TAILQ_NEXT(task, entry)) {
		if (task->attribute == SCSI_HEAD_OF_QUEUE)
			barrier.head_of_queue = true;
		if (task->attribute == SCSI_ORDERED)
			barrier.oldest_ordered = MIN_OF(barrier.oldest_ordered, task->sequence);
		barrier.oldest = MIN_OF(barrier.oldest, task->sequence);
	}
	return barrier;
}

static bool may_begin(const struct scsi_task *task, const struct barrier *barrier)
{
	if (task->attribute == SCSI_HEAD_OF_QUEUE)
		return true;
	if (barrier->head_of_queue)
		return false;
	if (task->attribute == SCSI_ORDERED)
		return task->sequence == barrier->oldest;
	return task->sequence < barrier->oldest_ordered;
}

bool scsi_order_waits(const struct scsi_task *task)
{
	struct barrier barrier = barrier_of(task->lu);

	return !may_begin(task, &barrier);
}

static struct scsi_task *next_to_begin(const struct scsi_lu *lu)
{
	struct barrier barrier = barrier_of(lu);
	struct scsi_task *task;

	for (task = TAILQ_FIRST(&lu->tasks); task; task = TAILQ_NEXT(task, entry)) {
		if (task->phase == TASK_DORMANT && may_begin(task, &barrier))
			return task;
	}
	return NULL;
}

/* Whoever begins may end at once and let others begin: they join. */
void scsi_order_run(struct scsi_lu *lu)
{
	struct scsi_task *task;

	if (lu->order_running)
		return;
	lu->order_running = true;
	while (lu->dormant_count > 0 && (task = next_to_begin(lu))) {
		lu->dormant_count--;
		scsi_task_start(task);
	}
	lu->order_running = false;
}
