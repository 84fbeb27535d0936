/* SPDX-License-Identifier: MIT
 *
 * Seeding: a copy gets the pages of the active database while that one is at work.
 *
 * Runs of 256 KiB one after another: read from the active's volume, what its cache has newer put in
 * their place, written to the copy's volume.  Meanwhile the log is replayed there as well: what the
 * log changes in pages that are still to come is in them already when they come; what it changes
 * in a run that is on its way waits for that run (ese_seed_redo_ops).
 *
 * Threading: the loop's thread.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_SEED_H
#define SANLAB_HARNESS_WORKLOAD_ESE_SEED_H

#include "harness/workload/ese/ese_db.h"

struct ese_seed_config {
	struct loop *loop;
	struct ese_db *source, *target; /* attached; the target follows */
	struct stream *read, *write;	/* may be NULL */
	uint64_t bytes_per_s;		/* 0: as fast as it goes */
	void (*done)(void *arg, int status);
	void *arg;
};

struct ese_seed;

int ese_seed_new(const struct ese_seed_config *config, struct ese_seed **ret_seed);
struct ese_seed *ese_seed_free(struct ese_seed *seed); /* ended; NULL is fine; returns NULL */
void ese_seed_start(struct ese_seed *seed);
void ese_seed_stop(struct ese_seed *seed); /* done says -ECANCELED when nothing is in flight */
bool ese_seed_running(const struct ese_seed *seed);
uint64_t ese_seed_bytes(const struct ese_seed *seed);

/* ese_db_redo_ops for a target that is, or was, being seeded; ARG: the seed. */
extern const struct ese_redo_ops ese_seed_redo_ops;

#endif
