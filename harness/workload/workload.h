/* SPDX-License-Identifier: MIT
 *
 * Workloads: what the hosts do to their volumes.  Kinds: exchange (exchange.c), raw (raw.c).
 *
 * A workload submits `struct io` to the layers it is given (a stack, in the end an MPIO device) and
 * accounts each I/O to one of its streams.  Open-loop streams count latency from the intended
 * start (no coordinated omission) and the service time beside it.
 *
 * Life: open -> prepare (fill what must be there; callback) -> start -> warm_up (what must have
 * come about before anything is measured; callback) -> window begins -> window ends -> stop (no new
 * I/O; callback when the last one has ended) -> verify (read the written set back; callback) ->
 * describe -> free.  Stop may come at any time from prepare on; callbacks that wait then come no
 * more, but those of prepare and verify do, with -ECANCELED, or with what they had reached.
 * A callback may come from within the call.  Threading: the loop's thread.  Time and chance only
 * from the loop and from `seed`.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_WORKLOAD_H
#define SANLAB_HARNESS_WORKLOAD_WORKLOAD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "base/hist.h"
#include "base/io.h"
#include "base/loop.h"

/* One volume a host sees. */
struct workload_device {
	const char *host;   /* "mbx1" */
	const char *volume; /* "db1" */
	struct io_layer *layer;
	uint32_t block_bytes;
	bool known_zero; /* never-written ranges read as zeros (a fresh memory volume of ours) */
};

/* Counters of one kind of I/O on one device; `interval` restarts with every sample. */
struct stream_counters {
	uint64_t ios, bytes, errors;
	struct hist response; /* intended start -> end */
	struct hist service;  /* submitted -> end */
};

struct stream {
	const char *name; /* "db-read", "db-write", "log-write", "bdm-read", "log-read", ... */
	const char *host, *volume;
	bool write;
	double planned_per_s;	      /* 0: closed loop */
	struct stream_counters total; /* since workload_reset_counters */
	struct stream_counters interval;
	uint64_t in_flight;
	uint64_t last_end_ns, max_gap_ns; /* longest time without a success while I/O was due */
	uint64_t due_since_ns; /* I/O has been due since then without a success; 0: none is due */
	uint64_t backlog;      /* arrivals that waited because too many were outstanding */
	uint64_t due;	       /* arrivals since workload_reset_counters, those before it that
				* had waited included; see count_due */
};

enum mismatch_kind {
	MISMATCH_CORRUPT,	/* checksum wrong */
	MISMATCH_TORN,		/* generations mixed inside a page */
	MISMATCH_MISDIRECTED,	/* another page's or volume's identity */
	MISMATCH_STALE,		/* older generation: lost or stale write */
	MISMATCH_FOREIGN,	/* another run's page */
	MISMATCH_NEVER_WRITTEN, /* unwritten page is not zero, or written page reads as zeros */
	MISMATCH_KINDS,
};
extern const char *const mismatch_names[];

struct mismatch {
	enum mismatch_kind kind;
	const char *host, *volume;
	uint64_t offset_bytes;
	uint64_t at_ns;
	uint64_t expected_generation, found_generation;
};

struct workload_check {
	uint64_t pages_checked;	     /* during the run */
	uint64_t pages_read_back;    /* at the end */
	uint64_t pages_written;	     /* distinct pages with at least one acknowledged write */
	uint64_t pages_not_readable; /* read-back I/O errors */
	uint64_t mismatches[MISMATCH_KINDS];
};

/* What the plan was, for the achieved-IOPS verdict: transactional = database reads + writes. */
struct workload_plan {
	double transactional_iops; /* planned, all devices */
	double total_iops;	   /* with log, maintenance and replication streams */
	const char *summary;	   /* "exchange-2010: 5 databases, 5000 mailboxes x 0.200 IOPS" */
};

struct workload;

struct workload_env {
	struct loop *loop;
	uint64_t seed;
	const struct workload_device *devices;
	unsigned device_count;
	/* Each mismatch as it is found (also counted in workload_check). */
	void (*mismatch)(void *arg, const struct mismatch *mismatch);
	/* The workload has nothing more to do: the run goes on to its end.  From anywhere. */
	void (*ended)(void *arg);
	/* The workload cannot go on; WHY ends up in the record.  From anywhere. */
	void (*failed)(void *arg, const char *why);
	void *arg;
	uint64_t warmup_ns, window_ns; /* planned: before the measured window at least, and it */
};

typedef void (*workload_fn)(void *arg, int status);

/* What a lab's timeline does to the workload itself. */
struct workload_fault {
	enum { WORKLOAD_COPY_ACTIVATE, WORKLOAD_COPY_RESEED } kind;
	const char *volume, *to; /* of the active database; of the copy, NULL: the only one */
	bool failover;		 /* the active one is gone; else in order */
	unsigned lost_files_max; /* failover: more log files lost, and it is not activated */
	uint64_t bytes_per_s;	 /* reseed; 0: no limit */
};

struct workload_ops {
	const char *name;   /* `workload: {type: NAME}` */
	const char *engine; /* `engine: NAME` among those of one type; NULL: there is but one */
	const char *help;
	const struct cfg_schema *schema;
	/* Checks what the schema alone cannot, and fills in what follows from other keys.  NULL:
	 * nothing. */
	void (*configure)(struct cfg *cfg, void *config);
	/* Checks a decoded configuration against the devices' sizes etc. happen in open. */
	int (*open)(const struct workload_env *env, const void *config,
		    struct workload **ret_workload, struct err *err);
	void (*prepare)(struct workload *workload, workload_fn done, void *arg);
	void (*start)(struct workload *workload);
	void (*stop)(struct workload *workload, workload_fn drained, void *arg);
	void (*verify)(struct workload *workload, workload_fn done, void *arg);
	void (*free)(struct workload *workload);
	/* The window ends at NOW_NS: adds what is due by then and could not be issued yet to each
	 * stream's `due`.  NULL: closed loop, nothing is ever due. */
	void (*count_due)(struct workload *workload, uint64_t now_ns);
	/* What open would say of a volume of SIZE_BYTES in blocks of BLOCK_BYTES, before there is
	 * one; NULL: anything will do. */
	int (*check)(const void *config, const char *volume, uint64_t size_bytes,
		     uint32_t block_bytes, struct err *err);
	/* NULL, or whether CONFIG names only volumes that there are: NAMES are HOST/VOLUME. */
	int (*check_names)(const void *config, const char *const *names, size_t count,
			   struct err *err);
	/* What can be told of a fault before the run; beside `fault`. */
	int (*check_fault)(const void *config, const struct workload_fault *fault, struct err *err);
	/* NULL, or called once after start: the run stays in its warm-up until DONE was called (and
	 * run.warmup has passed).  The workload bounds how long that takes.  A negative status ends
	 * the run; a reason given to env.failed before is the better one. */
	void (*warm_up)(struct workload *workload, workload_fn done, void *arg);
	/* NULL, or told that the measured window begins (streams are zeroed beside) and ends. */
	void (*window)(struct workload *workload, bool begins);
	/* What the reports say beside streams and checks, asked for at the end (a new reference);
	 * NULL: nothing. */
	json_t *(*describe)(struct workload *workload);
	/* Carries out a fault; NULL: there are none for it. */
	int (*fault)(struct workload *workload, const struct workload_fault *fault,
		     struct err *err);
};

struct workload {
	const struct workload_ops *ops;
	struct stream *streams;
	unsigned stream_count;
	struct workload_plan plan;
	struct workload_check check;
	double progress; /* 0..1 of prepare or verify, of stop (it may take as long as it moves),
			    and of the window when it ends itself */
	/* The window lasts until env.ended (or until nothing gets on any more), not run.duration.
	 */
	bool ends_itself;
	uint64_t sample_ns;    /* length of a sample where the lab asks for none; 0: any */
	const char *waits_for; /* in the warm-up, for the progress line; NULL: nothing special */
};

/* The first of a type is the one without `engine`. */
const struct workload_ops *workload_find(const char *name);
/* NULL: the type has no such engine. */
const struct workload_ops *workload_find_engine(const char *name, const char *engine);
/* All of them, in order: NULL beyond the end. */
const struct workload_ops *workload_at(size_t index);
extern const char *const workload_names[];
/* Zeroes totals (the measured window begins); intervals as well. */
void workload_reset_counters(struct workload *workload);
/* Counts the I/O that is open at NOW_NS into max_gap_ns (the measured window ends). */
void workload_close_gaps(struct workload *workload, uint64_t now_ns);
/* Arrivals that are due by NOW_NS are counted although nobody could issue them. */
void workload_count_due(struct workload *workload, uint64_t now_ns);
/* Begins a new sample: zeroes the intervals. */
void workload_reset_intervals(struct workload *workload);
/* Accounts one I/O that begins (submitted now, intended then); used by the kinds. */
void stream_begin(struct stream *stream, uint64_t intended_ns);
/* Accounts one ended I/O; used by the kinds. */
void stream_account(struct stream *stream, uint64_t intended_ns, uint64_t submitted_ns,
		    uint64_t end_ns, uint64_t bytes, int status);

#endif
