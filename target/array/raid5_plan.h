/* SPDX-License-Identifier: MIT
 *
 * How a write to one parity stripe is done: pure planning, no I/O.
 *
 * A write covers bytes [lo, hi) of the stripe's data.  The hull is the range of columns (bytes
 * within a chunk) it touches; parity changes there only.  Three ways to the new parity, by cost
 * in chunk reads:
 *   reconstruct-write  read the data that is not overwritten, XOR all (none for a full stripe)
 *   read-modify-write  read the old data and the old parity, XOR the difference
 *   rebuild            as reconstruct-write when a drive cannot be read of which the write covers
 *                      only a part: read everything else, work out the old content first
 * Without a parity drive the data is simply written.
 */
#ifndef SANLAB_TARGET_ARRAY_RAID5_PLAN_H
#define SANLAB_TARGET_ARRAY_RAID5_PLAN_H

#include <stdbool.h>
#include <stdint.h>

enum raid5_method {
	RAID5_DATA_ONLY,
	RAID5_RECONSTRUCT_WRITE,
	RAID5_READ_MODIFY_WRITE,
	RAID5_REBUILD_WRITE,
};

struct raid5_span {
	uint64_t lo, hi; /* columns; empty when equal */
};

struct raid5_write {
	unsigned width;	 /* drives of the set */
	unsigned parity; /* its drive within the set */
	uint64_t chunk_bytes;
	uint64_t lo, hi; /* within the stripe's data */
};

struct raid5_plan {
	enum raid5_method method;
	struct raid5_span hull;
	uint64_t read_mask;  /* drives within the set */
	uint64_t write_mask; /* drives that get new data or parity */
	unsigned lost;	     /* the drive to be rebuilt (RAID5_REBUILD_WRITE) */
};

/* Columns of the DATA-th chunk that the write covers. */
struct raid5_span raid5_written(const struct raid5_write *write, unsigned data);
struct raid5_span raid5_hull(uint64_t chunk_bytes, uint64_t lo, uint64_t hi);

/* UNREADABLE: drives that cannot be read; OUT, a part of them: drives that cannot be written
 * either.  -EIO when more than one is unreadable. */
int raid5_plan_write(const struct raid5_write *write, uint64_t unreadable, uint64_t out,
		     struct raid5_plan *ret_plan);

#endif
