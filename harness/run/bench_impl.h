/* SPDX-License-Identifier: MIT
 *
 * The bench from inside: one lane a thread, each with a loop, a device and a closed loop of its
 * own; nothing is shared while they run.
 */
#ifndef SANLAB_HARNESS_RUN_BENCH_IMPL_H
#define SANLAB_HARNESS_RUN_BENCH_IMPL_H

#include <pthread.h>
#include <sys/resource.h>

#include "base/err.h"
#include "base/hist.h"
#include "harness/run/bench.h"
#include "harness/workload/workload.h"
#include "initiator/mpio/mpio.h"

struct bench;

struct bench_lane {
	struct bench *bench;
	unsigned index;
	pthread_t thread; /* lane 0 runs on the caller's */
	struct loop *loop;
	struct cfg *cfg;
	struct mpio_config config;
	struct mpio *mpio;
	struct workload *workload;
	struct workload_device device;
	struct loop_timer timer;
	bool measuring, ready, drained;
	int ready_status;
	char why[300];

	/* results; read by others after the next meeting only */
	int connect_status, measure_status;
	struct err err;
	uint64_t begin_ns, end_ns;
	struct rusage before, after; /* of the thread */
	struct hist latency;	     /* both directions */
	uint64_t ios, bytes, errors;
};

struct bench {
	const struct bench_options *options;
	struct bench_lane *lanes;
	unsigned lane_count;
	pthread_mutex_t begin; /* held until every thread has been made */
	bool cancelled;	       /* ... or one could not be */
	/* Where all lanes meet: connected, measured, and told of. */
	pthread_barrier_t meet;

	/* of all lanes */
	struct hist latency;
	uint64_t ios, bytes, errors;
	double iops, bytes_per_s, cpu_ns_per_io, seconds;
};

void bench_print_json(const struct bench *bench, FILE *out);
void bench_print_text(const struct bench *bench, FILE *out);

#endif
