/* SPDX-License-Identifier: MIT
 *
 * Order between accesses to the same blocks (SBC-3 4.19, 5.2): COMPARE AND WRITE, ORWRITE and
 * atomic writes have their range to themselves, everything else may run side by side.
 *
 * A command asks for its range when it begins to execute and gives it back when it ends.  Those
 * that have to wait are counted how many earlier ones stand in their way and become ready with
 * the last of them: first come, first served, so that no stream of reads starves a COMPARE AND
 * WRITE.  As long as no atomic command is about, nobody looks at anybody else.
 *
 * Who has a range does not ask for a second one: that could end in a circle.
 */
#include "target/scsi/internal.h"

enum range_state { RANGE_NONE, RANGE_WAITING, RANGE_HELD };

/* No sum wraps: ranges have been checked to end within the logical unit, or begin at 0. */
static bool conflict(const struct scsi_range *a, const struct scsi_range *b)
{
	return (a->atomic || b->atomic) && a->lba < b->lba + b->blocks &&
	       b->lba < a->lba + a->blocks;
}

bool scsi_range_enter(struct scsi_range *range)
{
	struct scsi_lu *lu = range->lu;
	const struct scsi_range *other;

	range->waits = 0;
	range->state = RANGE_HELD;
	if (range->atomic)
		lu->atomic_count++;
	if (lu->atomic_count > 0) {
		for (other = TAILQ_FIRST(&lu->ranges); other; other = TAILQ_NEXT(other, entry))
			range->waits += conflict(range, other);
		if (range->waits > 0)
			range->state = RANGE_WAITING;
	}
	TAILQ_INSERT_TAIL(&lu->ranges, range, entry);
	return range->state == RANGE_HELD;
}

void scsi_range_leave(struct scsi_range *range)
{
	struct scsi_lu *lu = range->lu;
	struct scsi_range *other = TAILQ_NEXT(range, entry); /* those that came later */

	TAILQ_REMOVE(&lu->ranges, range, entry);
	range->state = RANGE_NONE;
	if (lu->atomic_count == 0)
		return;
	if (range->atomic)
		lu->atomic_count--;
	for (; other; other = TAILQ_NEXT(other, entry)) {
		if (!conflict(range, other) || --other->waits > 0)
			continue;
		TAILQ_INSERT_TAIL(&lu->range_ready, other, queue_entry);
	}
}

/* A range may be given back, and make others ready, while it is being used here: they join. */
void scsi_range_run(struct scsi_lu *lu)
{
	struct scsi_range *range;

	if (lu->range_running)
		return;
	lu->range_running = true;
	while ((range = TAILQ_FIRST(&lu->range_ready))) {
		TAILQ_REMOVE(&lu->range_ready, range, queue_entry);
		range->state = RANGE_HELD;
		range->ready(range);
	}
	lu->range_running = false;
}
