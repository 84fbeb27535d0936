/* SPDX-License-Identifier: MIT
 *
 * The record of one run: plain data that harness/run fills and the report writers read.
 * Ownership: record_free frees all.  Times are ns on the run's monotonic clock, counted from
 * `start_ns` = 0 at the beginning of the run; the measured window is [window_start, window_end].
 */
#ifndef SANLAB_HARNESS_REPORT_RECORD_H
#define SANLAB_HARNESS_REPORT_RECORD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hist.h"

struct record_stream {
	char *name, *host, *volume;
	bool write;
	double planned_per_s;
	uint64_t ios, bytes, errors, max_gap_ns;
	struct hist response, service;
};

struct record_path {
	char *host, *volume, *portal, *state;
	unsigned index;
	uint64_t ios, reads, writes, read_bytes, write_bytes, errors, retries, reissued, losses,
	    logins;
	double share; /* of its volume's I/Os in the window */
	struct hist latency;
};

struct record_stream_sample {
	uint32_t ios, errors;
	uint64_t bytes, p50_ns, p99_ns, max_ns, mean_ns;
};

struct record_path_sample {
	uint32_t ios;
};

struct record_sample {
	uint64_t at_ns, length_ns;	      /* end of the sample, its length */
	bool measured;			      /* inside the window (not warm-up) */
	struct record_stream_sample *streams; /* stream_count */
	struct record_path_sample *paths;     /* path_count */
};

struct record_marker { /* faults, path states, phases */
	uint64_t at_ns;
	char *kind;		      /* "fault", "path", "phase" */
	char *host, *volume, *portal; /* may be NULL */
	char *text;
};

/* One loss of one path, from the fault that caused it to the return of the path.  Instants are on
 * the run's clock; 0: did not come (or, of the fault, none is known). */
enum record_instant {
	RECORD_FAULT,	      /* it began */
	RECORD_ALIVE,	      /* the last sign of life */
	RECORD_LOST,	      /* found out; its I/O went back into the queue */
	RECORD_FIRST_REISSUE, /* the first of it went out again, on another path */
	RECORD_FIRST_SUCCESS, /* ... and the first has succeeded */
	RECORD_DRAINED,	      /* the last of it has ended */
	RECORD_FENCED,	      /* what it may still have had on its way can do no harm any more */
	RECORD_UP_AGAIN,      /* logged in and identified again */
	RECORD_FIRST_IO,      /* the first I/O on it since */
	RECORD_INSTANTS,
};
extern const char *const record_instant_keys[]; /* "fault_ns", ... */

struct record_failover {
	char *host, *volume, *portal;
	char *fault;	       /* what caused it; NULL: nothing of the timeline did */
	char *by;	       /* what found it: "keep-alive", ... */
	char *other;	       /* the portal that answered first in its place; may be NULL */
	char *proof;	       /* what ended the fence; NULL: it has not ended, or there was none */
	unsigned path, loss;   /* its how-manieth, from 1 */
	uint64_t reissued;     /* I/Os taken back */
	uint64_t failed;       /* of these: ended without success */
	uint64_t fault_end_ns; /* 0: it had no end, or it is not known */
	uint64_t at_ns[RECORD_INSTANTS];
};

enum verdict_status { VERDICT_PASS, VERDICT_FAIL, VERDICT_SKIP };

struct record_verdict {
	char *id; /* "achieved-iops", "db-read-latency mbx1/db1", ... */
	enum verdict_status status;
	char *text; /* "average database read latency 1.2 ms (limit 20 ms)" */
	json_t *evidence;
	char *hint; /* may be NULL */
};

struct record {
	char *version; /* of the program that ran it; NULL: this one (set when loaded) */
	char *lab, *workload, *summary; /* summary: the plan's */
	uint64_t seed;
	uint64_t start_wall_ns, window_start_ns, window_end_ns, end_ns;
	json_t *environment; /* kernel, cpus, memory, versions */
	char *config_yaml;   /* effective configuration */
	bool interrupted;
	bool ended;  /* the workload had nothing more to do before the window was over; not kept */
	char *error; /* why the run ended early; NULL when it did not */

	double planned_transactional_iops, achieved_transactional_iops, total_iops;
	/* Counts behind them: what ended well in the window, and the arrivals that had been drawn
	 * for it, which chance puts above or below the plan's mean; 0: nothing counts them. */
	uint64_t achieved_transactional_ios, due_transactional_ios;
	uint64_t pages_checked, pages_read_back, pages_written, pages_not_readable;
	uint64_t mismatches_total;
	json_t *mismatches; /* by kind, and the first ones in detail */

	struct record_stream *streams;
	unsigned stream_count;
	struct record_path *paths;
	unsigned path_count;
	struct record_sample *samples;
	unsigned sample_count;
	struct record_marker *markers;
	unsigned marker_count;
	struct record_failover *failovers; /* in the order of the losses */
	unsigned failover_count;
	struct record_verdict *verdicts;
	unsigned verdict_count;
	json_t *observed; /* what a target has seen of a foreign load; NULL: the load was ours */
	json_t *target;	  /* the target's own status at the end; NULL without a group */
	/* What a raw load's sweep found, in the order of its steps; NULL: there was none.
	 * {"by": "queue-depth"|"rate", "steps": [{"level", "from_ns", "to_ns" (measured, since the
	 * window began), "late" (arrivals never sent), "ios", "bytes", "errors", "iops",
	 * "bytes_per_s", "mean_ns", "p50_ns", "p90_ns", "p95_ns", "p99_ns", "p999_ns", "max_ns"
	 * (only where ios is not 0), "reads": {the same}, "writes": {...}}]} */
	json_t *curve;
	json_t *replay;	  /* what became of a trace: workload/replay.h; NULL: none was replayed */
	json_t *exchange; /* a test of the database engine: exchange_record.h; NULL: none */
};

/* From the fault until the first of the I/O taken back has succeeded elsewhere; 0: no fault is
 * known, there was none to take back, or it did not come. */
uint64_t record_failover_time_ns(const struct record_failover *failover);
/* From the end of the fault until the path carried I/O again, or was up where it gets none; 0: did
 * not come. */
uint64_t record_failback_time_ns(const struct record_failover *failover);

struct record *record_new(void); /* NULL: out of memory */
struct record *record_free(struct record *record);
/* Appends a zeroed element and returns it (NULL: out of memory, or the table's bound is reached).
 * Streams and paths come before the first sample; earlier elements may move. */
struct record_stream *record_add_stream(struct record *record);
struct record_path *record_add_path(struct record *record);
struct record_sample *record_add_sample(struct record *record); /* arrays allocated */
struct record_marker *record_add_marker(struct record *record);
struct record_failover *record_add_failover(struct record *record);
struct record_verdict *record_add_verdict(struct record *record);
/* What the data check counts: "pages", or "sectors" of a replay. */
const char *record_check_unit(const struct record *record);
bool record_passed(const struct record *record); /* no failed verdict, no error */

#endif
