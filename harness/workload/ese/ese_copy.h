/* SPDX-License-Identifier: MIT
 *
 * A passive copy of a database: the log of the active one is shipped to the copy's volume and done
 * again there.
 *
 * Modes (exchange.md 5).  File: each closed file is read from the active's log volume in 256 KiB
 * and written to the copy's.  Block: each write of the active's log is sent on as it ends, and
 * nothing is read; a copy that is not up to date is brought there by reading, as in file mode.
 * Replay reads the copy's log from its own volume, file by file (block: as it comes).
 *
 * What is not shipped yet is held in the active's ring.  A copy that lags so far that the ring is
 * full because of it is given up: it needs a new seed.
 *
 * Threading: the loop's thread.  The two databases are the caller's.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_COPY_H
#define SANLAB_HARNESS_WORKLOAD_ESE_COPY_H

#include "harness/workload/ese/ese_recover.h"

/* One of the two databases. */
struct ese_copy_end {
	struct ese_log *log;
	struct ese_log_area area;
	struct stream *log_read; /* may be NULL */
};

enum ese_copy_state { ESE_COPY_FOLLOWS, ESE_COPY_FAILED, ESE_COPY_STOPPED };

struct ese_copy_config {
	struct loop *loop;
	bool block;
	unsigned holder; /* of the active's ring: which copy this is */
	struct ese_copy_end source, target;
	const struct ese_redo_ops *ops; /* on the target */
	void *ops_arg;
	uint64_t replayed_lgpos; /* the target has everything before it */
	/* All may be NULL.  Redo need not begin before LGPOS after a crash of the copy, as far as
	 * it is up to replay. */
	void (*replayed)(void *arg, uint64_t lgpos);
	void (*failed)(void *arg, const char *why);
	void *arg;
};

struct ese_copy_counters {
	uint64_t reads, read_bytes; /* of the active's log */
	uint64_t blocks;	    /* writes that were sent without reading */
	uint64_t records, updates_done, updates_there, pages_wrong;
	uint64_t shipped_lgpos;			       /* the target's log ends here */
	uint64_t replayed_lgpos;		       /* done again up to here */
	uint64_t copy_queue_files, replay_queue_files; /* as Exchange counts them: whole files */
	uint64_t copy_queue_bytes;		       /* flushed by the active, not shipped */
};

struct ese_copy;

int ese_copy_new(const struct ese_copy_config *config, struct ese_copy **ret_copy);
struct ese_copy *ese_copy_free(struct ese_copy *copy); /* stopped; NULL is fine; returns NULL */
/* Takes up what the target does not have. */
void ese_copy_start(struct ese_copy *copy);
/* The active's log has got on: from its callbacks. */
void ese_copy_file_closed(struct ese_copy *copy, uint64_t generation);
void ese_copy_written(struct ese_copy *copy, uint64_t lgpos, const void *segments, uint32_t bytes);

typedef void (*ese_copy_fn)(void *arg, int status);
/* Switchover: ships and replays all that the active has flushed, which writes nothing more. */
void ese_copy_catch_up(struct ese_copy *copy, ese_copy_fn done, void *arg);
/* Failover: the active's log is gone (its ese_log is not touched any more); replays what has been
 * shipped.  ese_copy_counters tells what was not. */
void ese_copy_source_lost(struct ese_copy *copy, ese_copy_fn done, void *arg);
/* Ends: nothing is in flight when DONE is called. */
void ese_copy_stop(struct ese_copy *copy, ese_copy_fn done, void *arg);

enum ese_copy_state ese_copy_state(const struct ese_copy *copy);
const char *ese_copy_why(const struct ese_copy *copy); /* of ESE_COPY_FAILED */
void ese_copy_counters(const struct ese_copy *copy, struct ese_copy_counters *ret_counters);

#endif
