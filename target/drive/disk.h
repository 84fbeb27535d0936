/* SPDX-License-Identifier: MIT
 *
 * The mechanism of a disk: where the arm and the platter are, and how long a command takes from
 * there.  Pure: (state, command, now) -> times.
 *
 *   access = seek (from the curve; a switch between heads of one cylinder) + rotation until the
 *            first sector comes by; transfer = difference of passes (disk_geometry.h)
 *
 * Read-ahead: after a read the head stays on its way and fills the buffer until the next command
 * takes it elsewhere or a segment is full.  A read whose bytes are in the buffer costs command
 * overhead and link time and leaves the arm alone; one that begins in the stream being filled goes
 * on with it without a seek.  That is what lets a reader with one outstanding request have the
 * sustained rate.  A full segment makes the head wait; it goes on when room appears and its place
 * comes by.
 *
 * Writes are on the medium when they end: the drive's write cache is off.  A writer with one
 * outstanding request therefore misses its revolution every time.
 *
 * Units: bytes, ns; instants are modelled ones.
 */
#ifndef SANLAB_TARGET_DRIVE_DISK_H
#define SANLAB_TARGET_DRIVE_DISK_H

#include <stdbool.h>

#include "target/drive/command.h"
#include "target/drive/seek_curve.h"

struct drive_model;

enum { DISK_SEGMENTS = 16 }; /* of the buffer; assumed */

struct disk_segment {
	uint64_t first, end; /* bytes held; empty when equal */
	uint64_t limit;	     /* read-ahead stops here until a read moves it */
	uint64_t used;	     /* for replacement: the least recently read goes */
};

struct disk_head {
	struct disk_place place;
	uint64_t stream_byte; /* how far the read-ahead has come; valid while streaming */
	bool streaming;
};

struct disk {
	const struct drive_model *model;
	struct disk_geometry geometry;
	uint64_t size_bytes;
	struct seek_curve read, write;
	uint64_t mean_access_ns; /* random read: mean seek + half a revolution */
	bool inwards;		 /* the elevator's direction */
	/* Where the head came to rest, or the read-ahead began. */
	struct disk_place place;
	uint64_t place_ns;
	uint64_t place_byte;
	struct disk_segment *stream; /* being filled; NULL: none */
	struct disk_segment segments[DISK_SEGMENTS];
	uint64_t segment_bytes; /* 0: no buffer */
	uint64_t uses;
	uint64_t link_free_ns;
};

/* -EINVAL: figures that no curve meets. */
int disk_init(struct disk *disk, const struct drive_model *model, uint64_t size_bytes);

/* Fills in the command's places. */
void disk_locate(const struct disk *disk, struct drive_command *command);
struct disk_head disk_head_at(const struct disk *disk, uint64_t now_ns);
/* What COMMAND would take if it were started at NOW. */
struct command_times disk_access(const struct disk *disk, const struct disk_head *head,
				 const struct drive_command *command, uint64_t now_ns);
/* Starts it: fills times and due_ns. */
void disk_start(struct disk *disk, struct drive_command *command, const struct drive_slow *slow,
		uint64_t now_ns);
/* A read that the buffer can answer at NOW: fills due_ns and returns true. */
bool disk_buffer_hit(struct disk *disk, struct drive_command *command, uint64_t now_ns);

#endif
