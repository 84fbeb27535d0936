/* SPDX-License-Identifier: MIT
 *
 * A RAID set over memory drives for tests: faults between drive and store, direct sight of the
 * drives, requests that wait for their end on a virtual loop.
 */
#ifndef SANLAB_TESTS_ARRAY_RIG_H
#define SANLAB_TESTS_ARRAY_RIG_H

#include "base/io.h"
#include "base/loop.h"
#include "base/rng.h"
#include "target/array/raid_levels.h"

struct rig;

/* Answers some requests with an error in place of the store. */
struct fault {
	struct io_layer layer;
	struct rig *rig;
	struct io_layer *below;
	struct rng rng;
	double read_errors; /* share of reads that end with -EIO, before anything is moved */
	int write_errors;   /* so many of the next writes do */
	/* A place that cannot be read until it is written. */
	uint64_t bad_offset, bad_bytes;
	int bad_status;
	bool full;  /* writes end with -ENOSPC */
	bool tears; /* writes end with -EIO half-way, in a sector that is bad then */
	uint64_t reads, writes, flushes, fua_writes, unmaps; /* seen */
};

struct rig {
	struct loop *loop;
	const struct raid_ops *ops;
	struct io_layer *set;
	struct stripe_geometry geometry; /* of a level with redundancy */
	uint64_t chunk_bytes;
	struct nvram journal; /* of rig_open_journaled */
	uint64_t spared_mask; /* as a member would keep it */
	unsigned drive_count;
	struct drive *drives[RAID_DRIVES_MAX];
	struct fault faults[RAID_DRIVES_MAX];
	/* The FAIL_AT-th request to any drive ends with -EIO, and all later ones if LASTING. */
	uint64_t ios, fail_at;
	bool lasting;
	/* The target dies in the middle of a write, WRITES_LEFT after this: nothing reaches drives
	 * or journal from then on, until rig_reopen. */
	uint64_t writes_left;
	bool crash_armed, crashed;
	uint8_t *journal_then; /* as it was at that moment */
	uint64_t stale_then;
	uint64_t stale_told; /* mask of the drives the set reported; a member would keep it */
	bool stale_fails;    /* what the set reports cannot be kept */
	uint64_t filling;    /* those of them that are being rebuilt: they may be reported anew */
};

/* A drive with several channels serves out of order, which provokes every race there is. */
void rig_open(struct rig *rig, const char *level, unsigned drive_count, uint64_t drive_bytes,
	      uint64_t chunk_bytes, enum drive_timing timing, uint64_t seed);
/* The same with a journal, on drives without timing. */
void rig_open_journaled(struct rig *rig, const char *level, unsigned drive_count,
			uint64_t drive_bytes, uint64_t chunk_bytes);
void rig_close(struct rig *rig);
/* The set alone anew, on the same drives and journal. */
void rig_reopen(struct rig *rig);
/* Runs a unit to its end. */
void rig_unit(struct rig *rig, struct raid_unit *unit);
/* SLOT gets DRIVE or, NULL, distributed spare space: all is still to be rebuilt. */
void rig_replace(struct rig *rig, unsigned slot, struct drive *drive);
void rig_good(struct rig *rig, unsigned slot);
/* Rebuilds SLOT altogether, onto DRIVE or, NULL, onto distributed spare space. */
void rig_rebuild(struct rig *rig, unsigned slot, struct drive *drive);
/* What lies on a drive, past faults and failure. */
void rig_poke(struct rig *rig, unsigned drive, uint64_t offset, const void *data, size_t size);
void rig_peek(struct rig *rig, unsigned drive, uint64_t offset, void *out, size_t size);

/* Submits and waits; the io's status. */
int io_wait(struct loop *loop, struct io_layer *layer, enum io_op op, uint64_t offset, void *data,
	    uint64_t length);

#endif
