/* SPDX-License-Identifier: MIT
 *
 * One command in a modelled drive, and the lists it stands in.
 */
#ifndef SANLAB_TARGET_DRIVE_COMMAND_H
#define SANLAB_TARGET_DRIVE_COMMAND_H

#include <stddef.h> /* for sys/queue.h */
#include <stdint.h>
#include <sys/queue.h>

#include "base/io.h"
#include "target/drive/disk_geometry.h"

/* What the time of a command was made of; zeros where the mechanism had no part in it. */
struct command_times {
	uint64_t start_ns; /* the mechanism took it up */
	uint64_t seek_ns, rotation_ns, transfer_ns;
};

struct drive_command {
	TAILQ_ENTRY(drive_command) entry;
	struct io *io; /* the shell's */
	enum io_op op;
	uint64_t offset_bytes, length_bytes;
	uint64_t order;	     /* of arrival */
	uint64_t arrival_ns; /* at the drive's door, where it may have to wait for room */
	uint64_t ready_ns;   /* decoded: can be served */
	uint64_t due_ns;     /* its end, once known */
	struct disk_place from, behind;
	struct command_times times;
};

TAILQ_HEAD(command_list, drive_command);

enum { COMMAND_QUEUE_MAX = 128 }; /* commands a drive can hold at a time */

/* Those that wait for the mechanism, in no order: taking one out moves the last into its place. */
struct command_queue {
	struct drive_command *commands[COMMAND_QUEUE_MAX];
	unsigned count;
};

/* What a slow drive does to a service time. */
struct drive_slow {
	double factor; /* 1: nothing */
	uint64_t extra_ns;
};

static inline uint64_t drive_slowed_ns(const struct drive_slow *slow, uint64_t service_ns)
{
	if (slow->factor != 1)
		service_ns = (uint64_t)((double)service_ns * slow->factor);
	return service_ns + slow->extra_ns;
}

#endif
