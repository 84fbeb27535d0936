/* SPDX-License-Identifier: MIT
 *
 * A modelled drive as a whole: its queue, its scheduler, its mechanism.  Pure: the shell
 * (drive_model.c) adds commands, asks when something happens next, and takes those that have ended.
 *
 * A command waits at the door while the drive holds queue_depth others, is decoded (overhead; the
 * mechanism goes on meanwhile), waits for the mechanism, and ends at its due instant.  UNMAP needs
 * no mechanism.  FLUSH ends one overhead after everything that had arrived before it has: with the
 * write cache off there is nothing else to do.
 *
 * All instants are modelled ones: a shell that comes late (a busy host) does not slow the drive;
 * the mechanism takes up its next command when it became free, of those that had arrived by then.
 *
 * Bounds: COMMAND_QUEUE_MAX in the drive, the shell's free list in all.
 */
#ifndef SANLAB_TARGET_DRIVE_DRIVE_CORE_H
#define SANLAB_TARGET_DRIVE_DRIVE_CORE_H

#include "target/drive/disk.h"
#include "target/drive/drive.h"
#include "target/drive/scheduler.h"
#include "target/drive/ssd.h"

#define DRIVE_CORE_NEVER UINT64_MAX

struct drive_core {
	const struct drive_model *model;
	const struct drive_scheduler *scheduler;
	struct drive_slow slow;
	unsigned depth;
	unsigned inside; /* queue and ending, without FLUSH */
	uint64_t next_order;
	struct command_list door;    /* in order of arrival */
	struct command_queue queue;  /* for the mechanism of a disk */
	struct command_list ending;  /* by due instant */
	struct command_list flushes; /* in order of arrival */
	uint64_t free_ns;	     /* when a disk's mechanism is, or was, done with its last */
	struct drive_counters *counters;
	union {
		struct disk disk;
		struct ssd ssd;
	};
};

/* COUNTERS: the modelled ones are kept there.  -EINVAL: figures the model cannot use. */
int drive_core_init(struct drive_core *core, const struct drive_model *model,
		    const struct drive_scheduler *scheduler, uint64_t size_bytes,
		    struct drive_counters *counters);
/* io, op, offset and length are set by the caller. */
void drive_core_add(struct drive_core *core, struct drive_command *command, uint64_t now_ns);
/* When drive_core_take has something to do, or DRIVE_CORE_NEVER. */
uint64_t drive_core_next_ns(const struct drive_core *core);
/* The next command that has ended by NOW, or NULL. */
struct drive_command *drive_core_take(struct drive_core *core, uint64_t now_ns);
/* Any command, ended or not; flushes last; NULL when none is left. */
struct drive_command *drive_core_drain(struct drive_core *core);

#endif
