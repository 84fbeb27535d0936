/* SPDX-License-Identifier: MIT
 *
 * A volume in memory that stands in for target/array: completion at once or when told, and errors
 * on demand.
 */
#ifndef SANLAB_TESTS_UNIT_SCSI_FAKE_VOLUME_H
#define SANLAB_TESTS_UNIT_SCSI_FAKE_VOLUME_H

#include "target/array/array.h"

struct volume {
	struct io_layer layer;
	const char *name;
	uint32_t block_bytes;
	uint32_t physical_block_bytes; /* 0: 4096 */
	bool thin, read_only, removable;
	uint64_t mapped_bytes; /* volume_map_status: mapped up to here */
	uint8_t naa[16];
	/* The space it says to have, and where it says to be: member SLICES[i] for the i-th
	 * SLICE_BYTES, the last one to the end (NULL: not mapped). */
	uint64_t pool_used_bytes, pool_total_bytes;
	unsigned thin_threshold_percent;
	uint64_t slice_bytes;
	uint64_t slice_changes;
	const struct member *slices[4];
	const char *state_dir; /* NULL: nothing persists */
	uint8_t *data;	       /* NULL: reads give zeroes, writes vanish (for huge sizes) */
	bool deferred;	       /* keep ios until fake_volume_release */
	int fail_status;       /* what the next ios end with, without touching data */
	struct io *held, **held_tail;
	unsigned held_count;
	unsigned reads, writes, flushes, unmaps;
	struct io last; /* a copy of the last io as submitted */
};

void fake_volume_init(struct volume *volume, const char *name, uint64_t size_bytes,
		      uint32_t block_bytes, bool thin, bool with_data);
void fake_volume_done(struct volume *volume);
/* Completes the oldest COUNT held ios. */
void fake_volume_release(struct volume *volume, unsigned count);

#endif
