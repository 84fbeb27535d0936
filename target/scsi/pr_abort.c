/* SPDX-License-Identifier: MIT
 *
 * PREEMPT AND ABORT ends when the commands of the preempted nexuses have ended.
 *
 * A command that is waited for carries a bit for each slot that waits.  No circle can form: a
 * PREEMPT AND ABORT that was not yet executing when another hit its nexus is ended by it and never
 * executes, and one that was executing already does not wait for commands that came later.
 */
#include <assert.h>
#include <errno.h>

#include "target/scsi/internal.h"

_Static_assert(SCSI_MAX_PREEMPTS <= 8, "a bit each in scsi_task.preempt_waiters");

int scsi_preempt_begin(struct scsi_task *task, unsigned *ret_slot)
{
	struct preempt_wait *preempts = task->lu->reservations.preempts;

	for (unsigned i = 0; i < SCSI_MAX_PREEMPTS; i++) {
		if (preempts[i].task)
			continue;
		preempts[i] = (struct preempt_wait){.task = task, .remaining = 1};
		*ret_slot = i;
		return 0;
	}
	return -EBUSY;
}

void scsi_preempt_cancel(struct scsi_lu *lu, unsigned slot)
{
	lu->reservations.preempts[slot].task = NULL;
}

static bool is_preempted(const struct pr_state *state, const struct scsi_nexus *nexus)
{
	const struct pr_nexus wanted = scsi_pr_nexus(nexus);

	for (unsigned i = 0; i < state->count; i++) {
		const struct pr_registration *registration = &state->registrations[i];

		if (registration->preempted && pr_is_of(registration, &wanted))
			return true;
	}
	return false;
}

void scsi_preempt_mark(struct scsi_lu *lu, unsigned slot, const struct pr_state *state)
{
	struct preempt_wait *wait = &lu->reservations.preempts[slot];
	struct scsi_task *task;

	for (task = TAILQ_FIRST(&lu->tasks); task; task = TAILQ_NEXT(task, entry)) {
		if (task == wait->task || !is_preempted(state, task->nexus))
			continue;
		task->preempt_waiters |= (uint8_t)(1U << slot);
		wait->remaining++;
	}
}

/* Ending one command may change the task set in any way: the search begins anew each time. */
static struct scsi_task *next_to_abort(struct scsi_lu *lu, unsigned slot)
{
	struct scsi_task *task;

	for (task = TAILQ_FIRST(&lu->tasks); task; task = TAILQ_NEXT(task, entry)) {
		if ((task->preempt_waiters & 1U << slot) && !task->aborted)
			return task;
	}
	return NULL;
}

void scsi_preempt_abort(struct scsi_lu *lu, unsigned slot)
{
	struct scsi_task *task;

	while ((task = next_to_abort(lu, slot)))
		scsi_abort(task);
	scsi_preempt_progress(lu, (uint8_t)(1U << slot));
}

void scsi_preempt_progress(struct scsi_lu *lu, uint8_t waiters)
{
	for (unsigned i = 0; i < SCSI_MAX_PREEMPTS; i++) {
		struct preempt_wait *wait = &lu->reservations.preempts[i];
		struct scsi_task *task = wait->task;

		if (!(waiters & 1U << i))
			continue;
		assert(task && wait->remaining > 0);
		if (--wait->remaining > 0)
			continue;
		wait->task = NULL;
		scsi_task_end(task);
	}
}
