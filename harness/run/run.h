/* SPDX-License-Identifier: MIT
 *
 * One run: devices up, prepare, warm-up, measured window, drain, read-back, verdicts, record.
 *
 * run_lab does all of it for `sanlab run`: it starts the target (a process of its own, so that it
 * can be killed, and its CPU time told apart), opens the paths and drives the loop.  run_engine is
 * the part without processes and sockets: harness/sim uses it on a virtual loop with its own
 * devices; both give the same verdicts.
 */
#ifndef SANLAB_HARNESS_RUN_RUN_H
#define SANLAB_HARNESS_RUN_RUN_H

#include "base/err.h"
#include "base/loop.h"
#include "harness/lab/lab.h"
#include "harness/report/record.h"
#include "harness/report/report.h"
#include "harness/trace/recorder.h"
#include "harness/workload/workload.h"
#include "initiator/mpio/mpio.h"

/* One volume as a host sees it.  Its MPIO device is ready (mpio_start has called back): only then
 * is its size known.  The engine takes its events (mpio_on_event) until run_engine_free. */
struct run_device {
	const char *host, *volume;
	struct mpio *mpio; /* NULL: no paths, I/O goes to `layer` (only in simulations) */
	struct io_layer *layer;
	uint32_t block_bytes; /* of `layer` */
	bool known_zero;
	struct recorder *recorder; /* writes down what the workload asks of it; NULL: nobody does */
};

/* How the fault timeline reaches the target: real runs speak to the control socket, the
 * simulation to its links.  0 or a negative errno. */
struct fault_ops {
	int (*apply)(void *arg, const struct fault_config *fault, bool begin, struct err *err);
	void *arg;
};

struct run_options {
	const char *record;  /* a recording of the I/O; NULL: none */
	const char *out_dir; /* NULL: no files */
	const char *control; /* the target's control socket; NULL: only we know it */
	bool quiet, progress;
};

struct run_engine;
/* Opens the workload; nothing is sent yet.  -EINVAL: the workload does not fit the devices. */
int run_engine_new(struct loop *loop, const struct lab *lab, const struct run_device *devices,
		   unsigned device_count, const struct fault_ops *faults, struct event_log *events,
		   struct run_engine **ret_engine, struct err *err);
/* At the end, while the target, if any, still runs: COLLECT adds to the record what verdicts rest
 * on (NULL: nothing), JUDGE the last verdicts. */
void run_engine_on_judge(struct run_engine *engine,
			 void (*collect)(void *arg, struct record *record),
			 void (*judge)(void *arg, struct record *record), void *arg);
/* Starts; FINISHED is called when the record is complete (also after errors and run_engine_stop).*/
void run_engine_start(struct run_engine *engine, loop_fn finished, void *arg);
/* Orderly early end: drains and judges what is there (first SIGINT). */
void run_engine_stop(struct run_engine *engine, const char *why);
/* The window need not last longer: it ends as if its time had come. */
void run_engine_end(struct run_engine *engine);
/* Something outside happened that belongs into the story of the run. */
void run_engine_note(struct run_engine *engine, const char *text);
/* Something outside failed: the run ends early and the record says why. */
void run_engine_fail(struct run_engine *engine, const char *why);
struct record *run_engine_record(struct run_engine *engine);	  /* stays the engine's */
struct record *run_engine_take_record(struct run_engine *engine); /* becomes the caller's */
/* Before mpio_free.  When I/O is still open (the drain limit was hit), what it needs stays until
 * mpio_free has ended it. */
struct run_engine *run_engine_free(struct run_engine *engine);

/* Where the run is, for a progress line. */
struct run_progress {
	const char *phase;
	uint64_t elapsed_ns, phase_ns; /* since the start; since the phase began */
	uint64_t phase_length_ns;      /* 0: not known before */
	double done;		       /* 0..1 of prefill or read-back */
	double iops, mean_ns;	       /* of the last whole sample */
	unsigned paths_up, paths;
	uint64_t errors, mismatches;
	const char *waits_for; /* what the warm-up waits for; NULL: nothing but time */
};
void run_engine_progress(const struct run_engine *engine, struct run_progress *ret_progress);

/* What a path has carried since it was made, prefill and read-back included. */
struct run_path_total {
	const char *portal;
	uint64_t reads, writes, losses, errors, retries;
};
bool run_engine_path_total(const struct run_engine *engine, unsigned index,
			   struct run_path_total *ret_total);

/* `sanlab run`: returns the exit code. */
int run_lab(const struct lab *lab, const char *lab_file, const char *const *sets, size_t set_count,
	    const struct run_options *options);

/* Judges RECORD: Jetstress' criteria of the workload, then the lab's expectations.  An expectation
 * about the same quantity takes the place of Jetstress' limit; mismatches are never allowed. */
void verdicts_judge(const struct lab *lab, struct record *record);

#endif
