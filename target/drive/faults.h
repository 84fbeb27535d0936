/* SPDX-License-Identifier: MIT
 *
 * Faults of a drive, each of which can be undone (besides failing it: drive_set_failed).
 *
 *  - slow           each command takes FACTOR times as long, and EXTRA_NS more
 *  - latent errors  reads of bad sectors end with -EIO until the sectors are written (or unmapped);
 *                   ranges are planted, or found at a seeded rate: such a read finds one sector of
 *                   its range bad, which then stays bad
 *  - corruption     bits of the stored content flip, below the checksums; without checksums nobody
 *                   notices.  Undone where the sector was not written meanwhile
 *  - error after N  N more commands are served, then every one ends with the given status
 *  - timeouts       a seeded share of the commands hangs for a time and ends with -ETIMEDOUT; the
 *                   command is then not carried out
 *
 * Faults are part of the running drive, not of its store: after a restart only corrupted content is
 * left.  A drive without faults pays nothing for them.
 *
 * Bounds: FAULT_RANGES_MAX bad ranges, FAULT_FLIPS_MAX flipped bits, FAULT_HELD_MAX commands that
 * hang; beyond them -ENOSPC, or the command is served as if nothing were wrong, and counted.
 * Threading: the loop's thread.  Units: bytes, ns.
 */
#ifndef SANLAB_TARGET_DRIVE_FAULTS_H
#define SANLAB_TARGET_DRIVE_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

struct drive;

enum { FAULT_RANGES_MAX = 1024, FAULT_FLIPS_MAX = 1024, FAULT_HELD_MAX = 4096 };

/* FACTOR 1 and EXTRA 0 undo it.  The factor acts on modelled service times only; the extra time
 * also on a drive with `timing: none`.  -EINVAL: a factor below 1 or above 1000. */
int drive_set_slow(struct drive *drive, double factor, uint64_t extra_ns);

/* Makes the sectors that [offset, offset + length) touches unreadable, or readable again. */
int drive_add_media_error(struct drive *drive, uint64_t offset_bytes, uint64_t length_bytes);
int drive_clear_media_errors(struct drive *drive, uint64_t offset_bytes, uint64_t length_bytes);
/* SHARE of the reads (0 to 1) finds a new bad sector; 0 undoes it and leaves those found. */
int drive_set_media_error_rate(struct drive *drive, double share, uint64_t seed);

/* Flips one bit in each of COUNT random sectors of the range (each sector of it when COUNT is at
 * least their number).  -ENOSPC when the table has no room for all of them. */
int drive_corrupt(struct drive *drive, uint64_t offset_bytes, uint64_t length_bytes, unsigned count,
		  uint64_t seed);
/* Flips back what is left of it. */
int drive_undo_corruption(struct drive *drive);

/* STATUS is a negative errno, or 0: undone. */
int drive_set_error_after(struct drive *drive, uint64_t commands, int status);
/* SHARE 0 undoes it; what hangs goes on hanging until its time. */
int drive_set_timeouts(struct drive *drive, double share, uint64_t hang_ns, uint64_t seed);

/* Undoes all of the above. */
int drive_clear_faults(struct drive *drive);

/* For status. */
struct drive_fault_state {
	double slow_factor; /* 1: not slow */
	uint64_t slow_extra_ns;
	unsigned bad_ranges;
	uint64_t bad_bytes;
	double media_error_rate;
	unsigned flipped_bits; /* planted and not yet overwritten */
	bool erring;	       /* an error-after is set */
	uint64_t good_commands_left;
	double timeout_rate;
	unsigned held; /* commands that hang just now */
};
struct drive_fault_state drive_fault_state(const struct drive *drive);
/* Ranges that cannot be read: the INDEX-th, false beyond the last. */
bool drive_bad_range(const struct drive *drive, unsigned index, uint64_t *ret_offset_bytes,
		     uint64_t *ret_length_bytes);

#endif
