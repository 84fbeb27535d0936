/* SPDX-License-Identifier: MIT
 *
 * The run engine from inside: engine.c (phases), recording.c (what is written down), failover.c
 * (losses of paths), timeline.c (faults).
 */
#ifndef SANLAB_HARNESS_RUN_ENGINE_H
#define SANLAB_HARNESS_RUN_ENGINE_H

#include "harness/run/run.h"

enum run_phase {
	RUN_NEW,
	RUN_PREPARE,
	RUN_WARMUP,
	RUN_WINDOW,
	RUN_DRAIN,
	RUN_VERIFY,
	RUN_DONE,
};

enum {
	RUN_MISMATCH_DETAILS = 20, /* in the record */
	RUN_MISMATCH_EVENTS = 100,
};

struct run_path_sums {
	uint64_t ios, reads, writes, losses, errors, retries;
};

/* One path of one device; in the order of record->paths. */
struct run_path {
	unsigned device, path;
	struct run_path_sums before; /* what the ledger held when it was reset */
	uint64_t sampled_ios;	     /* ledger's I/Os at the last sample */
};

/* One occurrence of the lab's timeline. */
struct run_fault {
	struct run_engine *engine;
	const struct fault_event *event;
	struct loop_timer timer;
	bool active;
	uint64_t begun_ns, ended_ns; /* since the run began; UINT64_MAX: not yet */
};

struct run_device_link { /* for MPIO's events */
	struct run_engine *engine;
	unsigned device, first_path;
};

struct run_engine {
	struct loop *loop;
	const struct lab *lab;
	struct run_device *devices;
	struct run_device_link *links;
	struct workload_device *workload_devices;
	unsigned device_count;
	struct run_path *paths;
	unsigned path_count;
	struct fault_ops fault_ops;
	struct run_fault *faults;
	unsigned fault_count;
	struct event_log *events;
	struct record *record;
	struct workload *workload;

	enum run_phase phase;
	uint64_t start_ns, phase_start_ns, sample_start_ns;
	uint64_t interval_ns; /* length of a sample */
	struct loop_timer phase_timer, sample_timer, watchdog;
	struct loop_task ended; /* the workload has said that it is done, or cannot go on */
	bool warmup_passed;	/* run.warmup has */
	bool warm;		/* the workload is */
	double watched_progress, drain_progress;
	uint64_t watched_ns;
	bool stopping;	 /* the workload has been told to stop */
	bool drained;	 /* ... and has nothing in flight */
	bool orphan;	 /* run_engine_free came before that */
	json_t *details; /* the first mismatches */
	uint64_t mismatches;
	double last_iops, last_mean_ns;
	loop_fn finished;
	void *arg;
	void (*collect)(void *arg, struct record *record);
	void (*judge)(void *arg, struct record *record);
	void *judge_arg;
};

static inline unsigned run_path_count(const struct run_device *device)
{
	return device->mpio ? mpio_path_count(device->mpio) : 0;
}

static inline struct io_layer *run_layer(const struct run_device *device)
{
	return device->mpio ? mpio_layer(device->mpio) : device->layer;
}

static inline uint64_t run_at(const struct run_engine *engine)
{
	return loop_now_ns(engine->loop) - engine->start_ns;
}

/* recording.c */
extern const char *const run_phase_names[];
int recording_open(struct run_engine *engine);
void recording_start(struct run_engine *engine);
void recording_phase(struct run_engine *engine);
void recording_marker(struct run_engine *engine, const char *kind, const char *host,
		      const char *volume, const char *portal, const char *text);
/* One that is learnt of late: it takes its place among the others. */
void recording_marker_at(struct run_engine *engine, uint64_t at_ns, const char *kind,
			 const char *host, const char *volume, const char *portal,
			 const char *text);
/* ARG: the struct run_device_link; the struct run_engine. */
void recording_path_event(void *arg, const struct mpio_event *event);
void recording_mismatch(void *arg, const struct mismatch *mismatch);
void recording_sample(struct run_engine *engine);
void recording_window_begin(struct run_engine *engine);
void recording_window_end(struct run_engine *engine);
void recording_finish(struct run_engine *engine);
/* The first reason counts. */
void recording_error(struct run_engine *engine, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* failover.c; ARG: the struct run_device_link. */
void failover_track(void *arg, const struct mpio_track *track);
/* The run is over: when the faults behind the losses have ended. */
void failover_finish(struct run_engine *engine);

/* timeline.c */
int timeline_open(struct run_engine *engine);
void timeline_start(struct run_engine *engine); /* the window begins now */
void timeline_stop(struct run_engine *engine);	/* no new faults; those that last go on */
void timeline_close(struct run_engine *engine); /* cancels all timers */
/* What FAULT is, in a line; BEGIN false: its end. */
void timeline_describe(const struct fault_config *fault, bool begin, char *out, size_t size);

#endif
