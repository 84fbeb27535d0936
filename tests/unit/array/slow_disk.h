/* SPDX-License-Identifier: MIT
 *
 * A disk for tests of what lies above it: requests end after a random time, in any order, and
 * take effect at some other moment before; it can fail, and it can lose at a crash what was not
 * flushed.  Overlapping writes under way are reported: nobody may send those.
 */
#ifndef SANLAB_TESTS_ARRAY_SLOW_DISK_H
#define SANLAB_TESTS_ARRAY_SLOW_DISK_H

#include "base/io.h"
#include "base/loop.h"
#include "base/rng.h"

enum { SLOW_DISK_MAX = 4096 };

struct slow_disk;

struct slow_io {
	struct slow_disk *disk;
	struct io *io;
	struct loop_timer effect, end;
	uint8_t *data; /* of a write, as it was when it was sent */
	uint64_t began;
	int status;
	bool used;
};

struct slow_disk {
	struct io_layer layer;
	struct loop *loop;
	struct rng rng;
	uint8_t *now, *stable; /* content; and what survives a crash for sure */
	uint64_t *written_at;  /* of each sector: number of its last write, 0: flushed */
	uint64_t clock;
	uint64_t latency_ns;	/* mean; 0: at once */
	double errors;		/* share of writes, reads, flushes that fail */
	bool dead;		/* all do */
	uint64_t dead_from;	/* those that reach beyond it do, and flushes; 0: none */
	bool changed_under_way; /* a write's memory changed while it was under way */
	bool overlap;		/* two writes to one sector were under way */
	unsigned in_flight;
	uint64_t reads, writes, flushes, unmaps, fua_writes, read_bytes, write_bytes;
	uint64_t last_offset, last_length; /* of the last write */
	struct slow_io ios[SLOW_DISK_MAX];
};

void slow_disk_open(struct slow_disk *disk, struct loop *loop, uint64_t size_bytes, uint64_t seed);
void slow_disk_close(struct slow_disk *disk);
/* Everything under way happens, or does not; what was not flushed is lost at random.  Ends all
 * requests with -ENODEV. */
void slow_disk_crash(struct slow_disk *disk, bool loses_unflushed);
/* Ends everything under way at once, and later requests too. */
void slow_disk_drain(struct slow_disk *disk);

#endif
