/* SPDX-License-Identifier: MIT
 *
 * The drives' schedulers.
 */
#include "target/drive/scheduler.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "target/drive/disk.h"
#include "target/drive/drive.h"

static unsigned pick_satf(struct disk *disk, const struct command_queue *queue, uint64_t now_ns)
{
	struct disk_head head = disk_head_at(disk, now_ns);
	uint64_t best_ns = UINT64_MAX;
	unsigned best = queue->count;

	for (unsigned i = 0; i < queue->count; i++) {
		const struct drive_command *command = queue->commands[i];
		if (command->ready_ns > now_ns)
			continue;
		struct command_times times = disk_access(disk, &head, command, now_ns);
		uint64_t access_ns = times.seek_ns + times.rotation_ns;
		if (access_ns < best_ns ||
		    (access_ns == best_ns && command->order < queue->commands[best]->order)) {
			best_ns = access_ns;
			best = i;
		}
	}
	return best;
}

static unsigned pick_fifo(struct disk *disk, const struct command_queue *queue, uint64_t now_ns)
{
	unsigned best = queue->count;

	for (unsigned i = 0; i < queue->count; i++)
		if (queue->commands[i]->ready_ns <= now_ns &&
		    (best == queue->count ||
		     queue->commands[i]->order < queue->commands[best]->order))
			best = i;
	return best;
}

/* The nearest ready command at the arm's cylinder or on in direction UP; queue->count: none. */
static unsigned nearest(const struct command_queue *queue, uint64_t cylinder, bool up,
			uint64_t now_ns)
{
	uint64_t best_distance = UINT64_MAX;
	unsigned best = queue->count;

	for (unsigned i = 0; i < queue->count; i++) {
		const struct drive_command *command = queue->commands[i];
		uint64_t at = command->from.cylinder;
		if (command->ready_ns > now_ns || (up ? at < cylinder : at > cylinder))
			continue;
		uint64_t distance = up ? at - cylinder : cylinder - at;
		/* On one cylinder by place, so that neighbours go in one sweep. */
		if (distance < best_distance ||
		    (distance == best_distance &&
		     command->offset_bytes < queue->commands[best]->offset_bytes)) {
			best_distance = distance;
			best = i;
		}
	}
	return best;
}

static unsigned pick_elevator(struct disk *disk, const struct command_queue *queue, uint64_t now_ns)
{
	uint64_t cylinder = disk_head_at(disk, now_ns).place.cylinder;
	unsigned best = nearest(queue, cylinder, disk->inwards, now_ns);

	if (best < queue->count)
		return best;
	disk->inwards = !disk->inwards;
	return nearest(queue, cylinder, disk->inwards, now_ns);
}

static const struct drive_scheduler schedulers[] = {
    {"satf", pick_satf},
    {"elevator", pick_elevator},
    {"fifo", pick_fifo},
};

/* In the order of the table. */
const char *const drive_scheduler_names[] = {"satf", "elevator", "fifo", NULL};

_Static_assert(ARRAY_SIZE(schedulers) + 1 == ARRAY_SIZE(drive_scheduler_names),
	       "one name a scheduler");

const struct drive_scheduler *drive_scheduler_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(schedulers); i++)
		if (strcmp(schedulers[i].name, name) == 0)
			return &schedulers[i];
	return NULL;
}

unsigned drive_scheduler_pick(const struct drive_scheduler *scheduler, struct disk *disk,
			      const struct command_queue *queue, uint64_t now_ns, uint64_t *overdue)
{
	uint64_t patience_ns = SCHEDULER_AGE_FACTOR * queue->count * disk->mean_access_ns;
	unsigned oldest = pick_fifo(disk, queue, now_ns);
	assert(oldest < queue->count);
	unsigned picked = scheduler->pick(disk, queue, now_ns);
	assert(picked < queue->count);

	if (picked != oldest && queue->commands[oldest]->ready_ns + patience_ns < now_ns) {
		++*overdue;
		return oldest;
	}
	return picked;
}
