/* SPDX-License-Identifier: MIT
 *
 * The bench: each lane connects, all begin together, warm up, measure, drain; then the answer.
 */
#include "harness/run/bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/text.h"
#include "harness/run/bench_impl.h"
#include "harness/run/hosts.h"
#include "harness/run/spawn.h"
#include "harness/workload/raw.h"

enum {
	BLOCK_MIN_BYTES = 512,
	BLOCK_MAX_BYTES = 16 * 1024 * 1024,
	DEPTH_MAX = 1024,
	THREADS_MAX = 64,
};

#define SETTLE_NS (5 * NS_PER_S)
#define DRAIN_NS  (60 * NS_PER_S)
#define BENCH_IQN HOST_IQN_PREFIX "bench"

void bench_defaults(struct bench_options *ret_options)
{
	*ret_options = (struct bench_options){
	    .op = RAW_READ,
	    .pattern = RAW_RANDOM,
	    .block_bytes = 4 * KIB,
	    .queue_depth = 32,
	    .threads = 1,
	    .read_share = 0.7,
	    .time_ns = 5 * NS_PER_S,
	    .warmup_ns = 500 * NS_PER_MS,
	    .seed = 1,
	};
}

/* ---- connecting ---- */

static void device_ready(void *arg, int status, const char *why)
{
	struct bench_lane *lane = arg;

	lane->ready = true;
	lane->ready_status = status;
	snprintf(lane->why, sizeof lane->why, "%s", why && *why ? why : strerror(-status));
	loop_stop(lane->loop);
}

/* MPIO's own defaults, by way of an empty configuration. */
static int default_config(struct bench_lane *lane)
{
	const struct bench_options *options = lane->bench->options;
	int r = cfg_parse("bench", "{}", 2, &lane->cfg);

	if (r < 0)
		return r;
	cfg_decode(lane->cfg, &mpio_schema, &lane->config);
	lane->config.policy = options->policy;
	lane->config.queue_depth = MAX_OF(lane->config.queue_depth, options->queue_depth);
	return 0;
}

static int connect_device(struct bench_lane *lane, struct err *err)
{
	const struct bench_options *options = lane->bench->options;
	int r = default_config(lane);
	char url[512];

	if (r == 0)
		r = mpio_new(lane->loop, &lane->config, "bench", options->seed + lane->index,
			     &lane->mpio);
	if (r < 0)
		return err_set(err, r, "cannot make the device: %s", strerror(-r));
	for (size_t i = 0; i < options->url_count; i++) {
		r = host_add_url_path(
		    lane->loop, lane->mpio, &lane->config, BENCH_IQN, options->urls[i],
		    (uint32_t)(lane->index * options->url_count + i) + 1, NULL, err);
		if (r < 0)
			return r;
	}
	mpio_start(lane->mpio, SETTLE_NS, device_ready, lane);
	if (!lane->ready)
		r = loop_run(lane->loop);
	if (r == 0)
		r = lane->ready_status;
	if (r < 0)
		err_set(err, r, "cannot log in to %s: %s",
			text_url(url, sizeof url, options->urls[0]), lane->why);
	return r;
}

static int open_workload(struct bench_lane *lane, struct err *err)
{
	const struct bench_options *options = lane->bench->options;
	struct raw_config config = {
	    .op = options->op,
	    .pattern = options->pattern,
	    .block_bytes = options->block_bytes,
	    .queue_depth = options->queue_depth,
	    .read_share = options->read_share,
	};
	struct workload_env env = {
	    .loop = lane->loop,
	    .seed = options->seed + lane->index,
	    .devices = &lane->device,
	    .device_count = 1,
	};

	lane->device = (struct workload_device){
	    .host = "bench",
	    .volume = "lun",
	    .layer = mpio_layer(lane->mpio),
	    .block_bytes = mpio_block_bytes(lane->mpio),
	};
	return raw_workload_ops.open(&env, &config, &lane->workload, err);
}

/* ---- measuring ---- */

static void time_due(void *arg)
{
	struct bench_lane *lane = arg;

	if (lane->measuring) {
		loop_stop(lane->loop);
		return;
	}
	lane->measuring = true;
	workload_reset_counters(lane->workload);
	mpio_ledger_reset(lane->mpio);
	getrusage(RUSAGE_THREAD, &lane->before);
	lane->begin_ns = loop_now_ns(lane->loop);
	loop_timer_set(lane->loop, &lane->timer, lane->begin_ns + lane->bench->options->time_ns);
}

static void drained(void *arg, int status)
{
	struct bench_lane *lane = arg;

	lane->drained = true;
	loop_stop(lane->loop);
}

static int measure(struct bench_lane *lane)
{
	struct workload *workload = lane->workload;
	int r;

	loop_timer_init(&lane->timer, time_due, lane);
	workload->ops->start(workload);
	loop_timer_set(lane->loop, &lane->timer,
		       loop_now_ns(lane->loop) + lane->bench->options->warmup_ns);
	r = loop_run(lane->loop);
	loop_timer_cancel(lane->loop, &lane->timer);
	lane->end_ns = loop_now_ns(lane->loop);
	getrusage(RUSAGE_THREAD, &lane->after);
	for (unsigned i = 0; i < workload->stream_count; i++) {
		const struct stream *stream = &workload->streams[i];

		hist_merge(&lane->latency, &stream->total.service);
		lane->ios += stream->total.ios;
		lane->bytes += stream->total.bytes;
	}
	workload->ops->stop(workload, drained, lane);
	if (!lane->drained && r == 0)
		r = loop_run_until(lane->loop, loop_now_ns(lane->loop) + DRAIN_NS);
	for (unsigned i = 0; i < workload->stream_count; i++)
		lane->errors += workload->streams[i].total.errors;
	return r;
}

/* ---- lanes ---- */

static const struct bench_lane *failed_lane(const struct bench *bench)
{
	for (unsigned i = 0; i < bench->lane_count; i++)
		if (bench->lanes[i].connect_status < 0 || bench->lanes[i].measure_status < 0)
			return &bench->lanes[i];
	return NULL;
}

static void run_lane(struct bench_lane *lane)
{
	struct bench *bench = lane->bench;
	int r = loop_new_real(&lane->loop);

	if (r == 0)
		r = connect_device(lane, &lane->err);
	if (r == 0)
		r = open_workload(lane, &lane->err);
	lane->connect_status = r;
	pthread_barrier_wait(&bench->meet);
	if (!failed_lane(bench)) {
		pthread_barrier_wait(&bench->meet); /* all have looked */
		lane->measure_status = measure(lane);
	}
	pthread_barrier_wait(&bench->meet);
}

/* On the lane's own thread: a session belongs to it for life. */
static void close_lane(struct bench_lane *lane)
{
	/* What is still in flight ends with the device; the workload must live until then. */
	mpio_free(lane->mpio);
	if (lane->workload)
		lane->workload->ops->free(lane->workload);
	cfg_free(lane->cfg);
	loop_free(lane->loop);
}

static void *thread_main(void *arg)
{
	struct bench_lane *lane = arg;
	bool cancelled;

	pthread_mutex_lock(&lane->bench->begin);
	cancelled = lane->bench->cancelled;
	pthread_mutex_unlock(&lane->bench->begin);
	if (cancelled)
		return NULL;
	run_lane(lane);
	pthread_barrier_wait(&lane->bench->meet); /* the answer has been printed */
	close_lane(lane);
	return NULL;
}

/* ---- the result ---- */

static double cpu_ns(const struct bench_lane *lane)
{
	const struct rusage *a = &lane->before, *b = &lane->after;

	return (double)(b->ru_utime.tv_sec - a->ru_utime.tv_sec + b->ru_stime.tv_sec -
			a->ru_stime.tv_sec) *
		   1e9 +
	       (double)(b->ru_utime.tv_usec - a->ru_utime.tv_usec + b->ru_stime.tv_usec -
			a->ru_stime.tv_usec) *
		   1e3;
}

static void add_up(struct bench *bench)
{
	double all_cpu_ns = 0;

	for (unsigned i = 0; i < bench->lane_count; i++) {
		const struct bench_lane *lane = &bench->lanes[i];
		double seconds = (double)(lane->end_ns - lane->begin_ns) / (double)NS_PER_S;

		hist_merge(&bench->latency, &lane->latency);
		bench->ios += lane->ios;
		bench->bytes += lane->bytes;
		bench->errors += lane->errors;
		bench->iops += (double)lane->ios / seconds;
		bench->bytes_per_s += (double)lane->bytes / seconds;
		bench->seconds = MAX_OF(bench->seconds, seconds);
		all_cpu_ns += cpu_ns(lane);
	}
	bench->cpu_ns_per_io = bench->ios ? all_cpu_ns / (double)bench->ios : 0;
}

/* A benchmark of fewer paths than were asked for is no answer to the question. */
static bool paths_complete(const struct bench_lane *lane)
{
	bool complete = true;

	for (unsigned i = 0; i < mpio_path_count(lane->mpio); i++) {
		struct mpio_path_info info;

		mpio_path_info(lane->mpio, i, &info);
		if (info.state == MPIO_PATH_UP)
			continue;
		log_warn("path %u (%s) is %s", i, info.portal, mpio_path_state_names[info.state]);
		complete = false;
	}
	return complete;
}

static int answer(struct bench *bench, FILE *out)
{
	const struct bench_lane *failed = failed_lane(bench);
	bool complete = true;

	if (failed) {
		struct err err = failed->err;
		int r =
		    failed->connect_status < 0 ? failed->connect_status : failed->measure_status;

		err_set(&err, r, "the bench failed: %s", strerror(-r)); /* unless it says more */
		err_print(&err);
		return r == -EINVAL ? EXIT_USAGE : EXIT_ENVIRONMENT;
	}
	add_up(bench);
	if (bench->options->json)
		bench_print_json(bench, out);
	else
		bench_print_text(bench, out);
	for (unsigned i = 0; i < bench->lane_count; i++)
		complete = paths_complete(&bench->lanes[i]) && complete;
	return complete && bench->ios && !bench->errors ? EXIT_PASS : EXIT_EXPECTATION;
}

static int check_options(const struct bench_options *options, struct err *err)
{
	if (!options->url_count)
		return err_set(err, -EINVAL, "no url: nothing to log in to");
	if (options->block_bytes < BLOCK_MIN_BYTES || options->block_bytes > BLOCK_MAX_BYTES ||
	    options->block_bytes % BLOCK_MIN_BYTES != 0)
		return err_set(err, -EINVAL,
			       "block size %llu is not a multiple of 512 bytes up to 16 MiB",
			       (unsigned long long)options->block_bytes);
	if (options->queue_depth < 1 || options->queue_depth > DEPTH_MAX)
		return err_set(err, -EINVAL, "queue depth %llu is not from 1 to %u",
			       (unsigned long long)options->queue_depth, DEPTH_MAX);
	if (options->threads < 1 || options->threads > THREADS_MAX)
		return err_set(err, -EINVAL, "%llu threads are not from 1 to %u",
			       (unsigned long long)options->threads, THREADS_MAX);
	if (!options->time_ns)
		return err_set(err, -EINVAL, "no time to measure in");
	return 0;
}

/* Lane 0 is the caller's; returns how many other threads there are, or a negative errno when not
 * all could be made: then none of them does anything. */
static int start_threads(struct bench *bench)
{
	unsigned made = 1;
	int r = 0;

	pthread_mutex_lock(&bench->begin);
	for (; r == 0 && made < bench->lane_count; made += r == 0)
		r = -pthread_create(&bench->lanes[made].thread, NULL, thread_main,
				    &bench->lanes[made]);
	bench->cancelled = r < 0;
	pthread_mutex_unlock(&bench->begin);
	for (unsigned i = 1; r < 0 && i < made; i++)
		pthread_join(bench->lanes[i].thread, NULL);
	return r;
}

static int run_lanes(struct bench *bench, FILE *out, struct err *err)
{
	int r = start_threads(bench);
	int code;

	if (r < 0) {
		err_set(err, r, "cannot make %u threads: %s", bench->lane_count, strerror(-r));
		err_print(err);
		return EXIT_ENVIRONMENT;
	}
	run_lane(&bench->lanes[0]);
	code = answer(bench, out);
	pthread_barrier_wait(&bench->meet);
	close_lane(&bench->lanes[0]);
	for (unsigned i = 1; i < bench->lane_count; i++)
		pthread_join(bench->lanes[i].thread, NULL);
	return code;
}

int bench_run(const struct bench_options *options, FILE *out)
{
	struct bench bench = {.options = options, .begin = PTHREAD_MUTEX_INITIALIZER};
	struct err err = {0};
	int code;

	if (check_options(options, &err) < 0) {
		err_print(&err);
		return EXIT_USAGE;
	}
	bench.lane_count = (unsigned)options->threads;
	bench.lanes = calloc(bench.lane_count, sizeof *bench.lanes);
	if (!bench.lanes || pthread_barrier_init(&bench.meet, NULL, bench.lane_count) != 0) {
		err_set(&err, -ENOMEM, "no memory for %u threads", bench.lane_count);
		err_print(&err);
		free(bench.lanes);
		return EXIT_ENVIRONMENT;
	}
	for (unsigned i = 0; i < bench.lane_count; i++) {
		bench.lanes[i].bench = &bench;
		bench.lanes[i].index = i;
	}
	code = run_lanes(&bench, out, &err);
	pthread_barrier_destroy(&bench.meet);
	free(bench.lanes);
	return code;
}
