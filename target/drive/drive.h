/* SPDX-License-Identifier: MIT
 *
 * One drive of a member: a stack of layers, store at the bottom, service-time model and faults
 * above it.  The drive is itself an io_layer; its owner (a RAID set) submits to `drive->layer`.
 *
 * Threading: the loop's thread.  Units: bytes, ns.
 */
#ifndef SANLAB_TARGET_DRIVE_DRIVE_H
#define SANLAB_TARGET_DRIVE_DRIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/io.h"
#include "base/loop.h"
#include "base/rng.h"

/* Kinds of stores, one file each: store_memory.c (sparse), store_file.c (sparse file). */
struct store_ops {
	const char *name; /* as in the lab file */
	/* Opens or makes the store of one drive.  PLACE is the directory of a file store and NAME
	 * the drive's name in it ("m1-drive03"); both unused by memory. */
	int (*open)(struct loop *loop, const char *place, const char *name, uint64_t size_bytes,
		    struct io_layer **ret_layer, struct err *err);
	/* The next range at or behind FROM that was written; false: none.  NULL where nothing
	 * outlives the process. */
	bool (*next_written)(struct io_layer *layer, uint64_t from, uint64_t *ret_lo,
			     uint64_t *ret_hi);
	/* Which drive it is: 16 bytes that no other has.  NULL as above. */
	int (*identity)(struct io_layer *layer, uint8_t *ret_uuid);
	bool forgets; /* keeps nothing: checksums make no sense */
};
extern const struct store_ops store_memory_ops;
extern const struct store_ops store_file_ops;
extern const struct store_ops store_discard_ops;
const struct store_ops *store_find(const char *name); /* NULL: no such store */
/* Is there already a file of that drive?  The owner of a set of drives must know, because opening
 * a drive whose file was lost would make an empty one. */
bool store_file_exists(const char *place, const char *name);

/* What a manual says of a disk's seeks; settling included. */
struct seek_figures {
	uint64_t track_ns;   /* to the next cylinder */
	uint64_t average_ns; /* over all seek lengths n of [1, max], weighted by max + 1 - n */
	uint64_t full_ns;    /* over all cylinders */
};

/* The catalogue: candidate drives of the papers (shared reference/drives.yaml gives sources).
 * Drives have no write cache: arrays turn it off, as it would lose what they acknowledged. */
struct drive_model {
	const char *name; /* "sas-15k-600" */
	uint64_t size_bytes;
	uint64_t overhead_ns;  /* controller and command */
	unsigned queue_depth;  /* commands the drive takes; more wait before it; 0: 32 */
	const char *scheduler; /* of its queue; NULL: satf */
	unsigned rpm;	       /* 0: no moving parts */
	/* disks */
	unsigned heads;
	struct seek_figures seek_read, seek_write;
	/* Sustained: with the head and cylinder switches a long transfer makes. */
	uint64_t outer_bytes_per_s, inner_bytes_per_s;
	uint64_t buffer_bytes;	   /* read-ahead */
	uint64_t link_bytes_per_s; /* of what comes from the buffer */
	/* drives without moving parts */
	unsigned channels; /* work side by side */
	uint64_t read_latency_ns, write_latency_ns;
	uint64_t transfer_bytes_per_s; /* of one channel */
};
const struct drive_model *drive_model_find(const char *name);
extern const char *const drive_model_names[]; /* NULL-terminated, for schemas */

/* The order in which a drive serves its queue (scheduler.c). */
struct drive_scheduler;
const struct drive_scheduler *drive_scheduler_find(const char *name);
extern const char *const drive_scheduler_names[]; /* "satf", "elevator", "fifo", NULL */

enum drive_timing { DRIVE_TIMING_NONE, DRIVE_TIMING_MODELLED };
extern const char *const drive_timing_names[]; /* "none", "modelled", NULL */

struct drive_config {
	const char *name; /* "m1-drive03" */
	const struct drive_model *model;
	uint64_t size_bytes; /* 0: the model's */
	enum drive_timing timing;
	const struct store_ops *store;
	const char *store_place;
	uint64_t seed;
	bool checksums; /* a CRC32C a sector, verified on every read (integrity.h) */
	const struct drive_scheduler *scheduler; /* NULL: the model's */
};

/* uint64_t only: status names them by a table. */
struct drive_counters {
	uint64_t reads, writes, read_bytes, write_bytes, flushes, unmaps;
	uint64_t errors;	  /* ended with any error; of these: */
	uint64_t media_errors;	  /* -EIO: a sector that cannot be read */
	uint64_t checksum_errors; /* -EILSEQ: content that does not fit its checksum */
	uint64_t timeouts;	  /* -ETIMEDOUT */
	uint64_t gone_errors;	  /* -ENODEV: while the drive was failed */
	uint64_t fault_refusals;  /* faults without room in their tables */
	uint64_t queue_peak;	  /* most requests ever in flight */
	/* with `timing: modelled` only: */
	uint64_t busy_ns; /* time the mechanism (or a channel, divided by their number) worked */
	uint64_t served;  /* commands it worked for: busy / served is the mean service time */
	uint64_t response_ns; /* from arrival to end, summed over `completed` */
	uint64_t completed;
	uint64_t buffer_hits; /* reads from the drive's own read-ahead buffer */
	uint64_t overdue;     /* served out of turn because of their age */
	uint64_t late_max_ns; /* most that a completion left after its modelled instant */
};

struct drive_faults;

struct drive {
	struct io_layer layer; /* submit here */
	char name[48];
	bool failed; /* every io ends with -ENODEV */
	struct drive_counters counters;
	unsigned in_flight; /* ios accepted and not yet completed: the queue a mirror compares */
	/* Told, when not NULL, after the drive failed or returned.  The owner's. */
	void (*changed)(void *arg, struct drive *drive);
	void *changed_arg;
	/* private below */
	struct io_layer *model;	     /* NULL without timing */
	struct io_layer *store;	     /* checksums, where they are on, then the store proper */
	struct io_layer *bare_store; /* below the checksums */
	struct drive_faults *faults; /* NULL until the first one */
};

int drive_open(struct loop *loop, const struct drive_config *config, struct drive **ret_drive,
	       struct err *err);
struct drive *drive_close(struct drive *drive);
/* Fails the drive or brings it back (its content is then stale: the RAID set decides).  Slow
 * drives, medium errors, corruption and timeouts: faults.h. */
void drive_set_failed(struct drive *drive, bool failed);
/* The drive's store was given another file at PLACE (store_file_insert). */
int drive_store_replaced(struct drive *drive, const char *place, struct err *err);
/* Ends the model's delays for good and serves what it holds at once: afterwards nothing is in
 * flight.  Called before closing, so that no request is left behind half-way. */
void drive_drain(struct drive *drive);

/* The service-time layer alone (drive_model.c): holds each request until its modelled instant, then
 * hands it to BELOW.  SCHEDULER NULL: the model's. */
int drive_model_open(struct loop *loop, const struct drive_model *model,
		     const struct drive_scheduler *scheduler, struct io_layer *below,
		     struct io_layer **ret_layer);

#endif
