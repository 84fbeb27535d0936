/* SPDX-License-Identifier: MIT
 *
 * Automatic tuning of the sessions of one server, as Jetstress does it.  Pure: samples in, what to
 * do next out.
 *
 * A cycle runs with a fixed number of sessions.  Transient state: `transient` samples (30 of 1 s)
 * until the read latency of every database moves by less than `slope_ns` (5 ms) a sample.  Stable
 * state: `stable` samples (120), from which the cycle is judged:
 *   - a database's average read or log write latency is above its limit: fewer sessions,
 *     floor(sessions x target / actual IOPS);
 *   - else the target was missed: more, ceil(sessions x target / actual);
 *   - else tuning has succeeded.
 * What was tried bounds what is tried next: between the most sessions that were too few and the
 * fewest that were too many it looks in the middle; when they are neighbours, or when latency is
 * too high although the target is missed, nothing fits and tuning fails with that reason.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_TUNING_H
#define SANLAB_HARNESS_WORKLOAD_ESE_TUNING_H

#include <stdbool.h>
#include <stdint.h>

enum {
	ESE_TUNING_DATABASES_MAX = 256,
	ESE_TUNING_CYCLES_MAX = 64,
	ESE_TUNING_STEP_MAX = 4, /* a cycle has at most so many times the sessions of the last */
};

struct ese_tuning_setup {
	unsigned databases;
	unsigned start, sessions_max;
	double target_iops;
	double read_limit_ns, log_limit_ns; /* averages */
	unsigned transient, stable;	    /* samples */
	double slope_ns;		    /* a sample */
	uint64_t cycle_limit_ns;	    /* a cycle whose latency is still moving has failed */
	uint64_t limit_ns;		    /* and so has tuning as a whole */
};

/* What a database did in one sample. */
struct ese_tuning_sample {
	uint64_t reads, read_sum_ns, writes, log_writes, log_sum_ns, log_reads, log_read_sum_ns;
};

enum ese_tuning_verdict {
	ESE_TUNING_RUNNING,
	ESE_TUNING_ACCEPTED,
	ESE_TUNING_TOO_SLOW,	/* latency too high */
	ESE_TUNING_TOO_FEW,	/* I/Os */
	ESE_TUNING_UNSTABLE,	/* latency kept moving */
	ESE_TUNING_OUT_OF_TIME, /* the limit of the whole came first */
};
/* "accepted", "latency too high", "too few I/Os", "slope unstable", "out of time" */
extern const char *const ese_tuning_verdict_names[];

struct ese_tuning_cycle {
	unsigned sessions, next_sessions; /* next 0: there is none */
	enum ese_tuning_verdict verdict;
	uint64_t begin_ns, stable_ns, end_ns; /* stable_ns 0: it did not become stable */
	double iops, batch_per_s;	      /* of the stable state */
	/* One a database; averages of the stable state. */
	double *slope_ns, *read_ns, *log_write_ns, *log_read_ns;
};

enum ese_tuning_step {
	ESE_TUNING_GO_ON,
	ESE_TUNING_STABLE, /* the slope is small: the cycle's stable state begins */
	ESE_TUNING_NEXT,   /* the cycle is judged: set ese_tuning_sessions */
	ESE_TUNING_SUCCEEDED,
	ESE_TUNING_FAILED, /* ese_tuning_why */
};

struct ese_tuning;

int ese_tuning_new(const struct ese_tuning_setup *setup, uint64_t now_ns,
		   struct ese_tuning **ret_tuning);
struct ese_tuning *ese_tuning_free(struct ese_tuning *tuning); /* NULL is fine; returns NULL */

/* A sample that ends at NOW_NS: one entry a database, and the transactions that ended in it.
 * After success or failure nothing more is taken. */
enum ese_tuning_step ese_tuning_sample(struct ese_tuning *tuning, uint64_t now_ns,
				       const struct ese_tuning_sample *samples,
				       uint64_t transactions);

unsigned ese_tuning_sessions(const struct ese_tuning *tuning); /* to be used now */
unsigned ese_tuning_cycle_count(const struct ese_tuning *tuning);
const struct ese_tuning_cycle *ese_tuning_cycle(const struct ese_tuning *tuning, unsigned index);
/* "" unless it failed. */
const char *ese_tuning_why(const struct ese_tuning *tuning);
/* "tuning: 8 sessions, stable, sample 17 of 120" */
void ese_tuning_describe(const struct ese_tuning *tuning, char *out, unsigned size);

/* Slope of the least-squares line through the COUNT values at 0, 1, 2, ...; NAN ones are left out.
 * 0 with fewer than two. */
double ese_tuning_slope(const double *values, unsigned count);

#endif
