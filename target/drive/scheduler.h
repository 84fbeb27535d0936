/* SPDX-License-Identifier: MIT
 *
 * In which order a disk serves its queue; one row a kind in scheduler.c.
 *
 *   satf      shortest access time first: seek and rotation together, as drives with tagged
 *             queueing do
 *   elevator  the nearest cylinder in the direction the arm moves in; turns at the last request
 *   fifo      in order of arrival
 *
 * Whatever the order, a command that waited for four times as long as the queue would take in
 * random order (its length * mean random access) is served next: nothing starves.
 */
#ifndef SANLAB_TARGET_DRIVE_SCHEDULER_H
#define SANLAB_TARGET_DRIVE_SCHEDULER_H

#include "target/drive/command.h"

struct disk;

enum { SCHEDULER_AGE_FACTOR = 4 };

struct drive_scheduler {
	const char *name;
	/* The index of the command DISK serves next at NOW; at least one is ready by then. */
	unsigned (*pick)(struct disk *disk, const struct command_queue *queue, uint64_t now_ns);
};

/* As pick, but for a command that is overdue; *OVERDUE counts those. */
unsigned drive_scheduler_pick(const struct drive_scheduler *scheduler, struct disk *disk,
			      const struct command_queue *queue, uint64_t now_ns,
			      uint64_t *overdue);

#endif
