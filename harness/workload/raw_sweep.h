/* SPDX-License-Identifier: MIT
 *
 * A sweep: the measured window of a raw load divided into steps, each with a depth or rate of its
 * own, a time to settle and a time that is measured.
 *
 * An I/O counts for the step in whose measured time it ends.
 *
 * Threading: the loop's thread.  Ownership: plain, raw_sweep_close frees what it holds.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_RAW_SWEEP_H
#define SANLAB_HARNESS_WORKLOAD_RAW_SWEEP_H

#include "base/loop.h"
#include "harness/workload/raw.h"

struct raw_step_side {
	uint64_t ios, bytes, errors;
	struct hist response;
};

struct raw_step {
	double level;		       /* on each volume */
	uint64_t from_ns, to_ns;       /* measured, on the loop's clock; 0: it was not reached */
	uint64_t late;		       /* arrivals that were never sent */
	struct raw_step_side sides[2]; /* reads, writes */
};

struct raw_sweep {
	struct loop *loop;
	const char *by; /* "queue-depth", "rate" */
	struct raw_step *steps;
	unsigned count; /* 0: there is no sweep */
	uint64_t settle_ns, time_ns;
	bool begun;
	uint64_t begun_ns; /* the window */
	unsigned at;	   /* step; count: all are over */
	struct loop_timer timer;
	double *progress; /* the workload's */
	/* A step begins; LEVEL is its depth or rate. */
	void (*stepped)(void *arg, double level);
	/* One is left: arrivals of it that were never sent.  NULL: nothing arrives by itself. */
	uint64_t (*late)(void *arg);
	/* The last one is over. */
	void (*ended)(void *arg);
	void *arg;
};

/* -ENOMEM.  The caller sets the functions, arg and progress afterwards. */
int raw_sweep_open(struct raw_sweep *sweep, struct loop *loop, const struct raw_config *config);
void raw_sweep_close(struct raw_sweep *sweep); /* a zeroed one is fine */

static inline bool raw_sweep_is_on(const struct raw_sweep *sweep)
{
	return sweep->count > 0;
}
/* What a warm-up does: the first step's. */
double raw_sweep_first(const struct raw_sweep *sweep);
double raw_sweep_most(const struct raw_sweep *sweep);
void raw_sweep_begin(struct raw_sweep *sweep);
void raw_sweep_stop(struct raw_sweep *sweep);
/* The curve, for the reports: see record.h.  NULL: there is no sweep. */
json_t *raw_sweep_json(const struct raw_sweep *sweep);
/* An I/O has ended now. */
void raw_sweep_count(struct raw_sweep *sweep, bool write, uint64_t response_ns, uint64_t bytes,
		     int status);

#endif
