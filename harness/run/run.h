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
#include "harness/workload/workload.h"
#include "initiator/mpio/mpio.h"

/* One volume as a host sees it. */
struct run_device {
	const char *host, *volume;
	struct mpio *mpio;
	bool known_zero;
};

/* How the fault timeline reaches the target: real runs speak to the control socket, the
 * simulation to its links.  0 or a negative errno. */
struct fault_ops {
	int (*apply)(void *arg, const struct fault_config *fault, bool begin, struct err *err);
	void *arg;
};

struct run_options {
	const char *out_dir; /* NULL: no files */
	bool quiet, progress;
};

struct run_engine;
int run_engine_new(struct loop *loop, const struct lab *lab, const struct run_device *devices,
		   unsigned device_count, const struct fault_ops *faults, struct event_log *events,
		   struct run_engine **ret_engine, struct err *err);
/* Starts; FINISHED is called when the record is complete (also after errors and run_engine_stop).*/
void run_engine_start(struct run_engine *engine, loop_fn finished, void *arg);
/* Orderly early end: drains and judges what is there (first SIGINT). */
void run_engine_stop(struct run_engine *engine, const char *why);
struct record *run_engine_record(struct run_engine *engine); /* stays the engine's */
struct run_engine *run_engine_free(struct run_engine *engine);

/* `sanlab run`: returns the exit code. */
int run_lab(const struct lab *lab, const char *lab_file, const char *const *sets, size_t set_count,
	    const struct run_options *options);

/* Judges RECORD: Jetstress' criteria of the workload, then the lab's expectations. */
void verdicts_judge(const struct lab *lab, struct record *record);

#endif
