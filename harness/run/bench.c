/* SPDX-License-Identifier: MIT
 *
 * The bench: connect, warm up, measure, drain, print.
 */
#include "harness/run/bench.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/text.h"
#include "harness/run/environment.h"
#include "harness/run/hosts.h"
#include "harness/run/spawn.h"
#include "harness/workload/raw.h"

enum { BLOCK_MIN_BYTES = 512, BLOCK_MAX_BYTES = 16 * 1024 * 1024, DEPTH_MAX = 1024 };

#define SETTLE_NS     (5 * NS_PER_S)
#define DRAIN_NS      (60 * NS_PER_S)
#define BENCH_IQN     HOST_IQN_PREFIX "bench"
#define RESULT_SCHEMA "sanlab/bench/1"

struct bench {
	const struct bench_options *options;
	struct loop *loop;
	struct cfg *cfg;
	struct mpio_config config;
	struct mpio *mpio;
	struct workload *workload;
	struct workload_device device;
	struct loop_timer timer;
	uint64_t begin_ns, end_ns;
	bool measuring, ready, drained;
	int status;
	char why[300];
	struct rusage before, after;
	struct hist latency; /* both directions */
	uint64_t ios, bytes, errors;
};

void bench_defaults(struct bench_options *ret_options)
{
	*ret_options = (struct bench_options){
	    .op = RAW_READ,
	    .pattern = RAW_RANDOM,
	    .block_bytes = 4 * KIB,
	    .queue_depth = 32,
	    .read_share = 0.7,
	    .time_ns = 5 * NS_PER_S,
	    .warmup_ns = 500 * NS_PER_MS,
	    .seed = 1,
	};
}

/* ---- connecting ---- */

static void device_ready(void *arg, int status, const char *why)
{
	struct bench *bench = arg;

	bench->ready = true;
	bench->status = status;
	snprintf(bench->why, sizeof bench->why, "%s", why && *why ? why : strerror(-status));
	loop_stop(bench->loop);
}

/* MPIO's own defaults, by way of an empty configuration. */
static int default_config(struct bench *bench)
{
	int r = cfg_parse("bench", "{}", 2, &bench->cfg);

	if (r == 0)
		cfg_decode(bench->cfg, &mpio_schema, &bench->config);
	bench->config.policy = bench->options->policy;
	bench->config.queue_depth = MAX_OF(bench->config.queue_depth, bench->options->queue_depth);
	return r;
}

static int connect_device(struct bench *bench, struct err *err)
{
	int r = default_config(bench);
	char url[512];

	if (r == 0)
		r = mpio_new(bench->loop, &bench->config, "bench", bench->options->seed,
			     &bench->mpio);
	if (r < 0)
		return err_set(err, r, "cannot make the device: %s", strerror(-r));
	for (size_t i = 0; i < bench->options->url_count; i++) {
		r = host_add_url_path(bench->loop, bench->mpio, &bench->config, BENCH_IQN,
				      bench->options->urls[i], (uint32_t)i + 1, err);
		if (r < 0)
			return r;
	}
	mpio_start(bench->mpio, SETTLE_NS, device_ready, bench);
	if (!bench->ready)
		r = loop_run(bench->loop);
	if (r == 0)
		r = bench->status;
	if (r < 0)
		err_set(err, r, "cannot log in to %s: %s",
			text_url(url, sizeof url, bench->options->urls[0]), bench->why);
	return r;
}

static int open_workload(struct bench *bench, struct err *err)
{
	const struct bench_options *options = bench->options;
	struct raw_config config = {
	    .op = options->op,
	    .pattern = options->pattern,
	    .block_bytes = options->block_bytes,
	    .queue_depth = options->queue_depth,
	    .read_share = options->read_share,
	};
	struct workload_env env = {
	    .loop = bench->loop,
	    .seed = options->seed,
	    .devices = &bench->device,
	    .device_count = 1,
	};

	bench->device = (struct workload_device){
	    .host = "bench",
	    .volume = "lun",
	    .layer = mpio_layer(bench->mpio),
	    .block_bytes = mpio_block_bytes(bench->mpio),
	};
	return raw_workload_ops.open(&env, &config, &bench->workload, err);
}

/* ---- measuring ---- */

static void time_due(void *arg)
{
	struct bench *bench = arg;

	if (bench->measuring) {
		loop_stop(bench->loop);
		return;
	}
	bench->measuring = true;
	workload_reset_counters(bench->workload);
	mpio_ledger_reset(bench->mpio);
	getrusage(RUSAGE_SELF, &bench->before);
	bench->begin_ns = loop_now_ns(bench->loop);
	loop_timer_set(bench->loop, &bench->timer, bench->begin_ns + bench->options->time_ns);
}

static void drained(void *arg, int status)
{
	struct bench *bench = arg;

	bench->drained = true;
	loop_stop(bench->loop);
}

static int measure(struct bench *bench)
{
	struct workload *workload = bench->workload;
	int r;

	loop_timer_init(&bench->timer, time_due, bench);
	workload->ops->start(workload);
	loop_timer_set(bench->loop, &bench->timer,
		       loop_now_ns(bench->loop) + bench->options->warmup_ns);
	r = loop_run(bench->loop);
	loop_timer_cancel(bench->loop, &bench->timer);
	bench->end_ns = loop_now_ns(bench->loop);
	getrusage(RUSAGE_SELF, &bench->after);
	for (unsigned i = 0; i < workload->stream_count; i++) {
		const struct stream *stream = &workload->streams[i];

		hist_merge(&bench->latency, &stream->total.service);
		bench->ios += stream->total.ios;
		bench->bytes += stream->total.bytes;
	}
	workload->ops->stop(workload, drained, bench);
	if (!bench->drained && r == 0)
		r = loop_run_until(bench->loop, loop_now_ns(bench->loop) + DRAIN_NS);
	for (unsigned i = 0; i < workload->stream_count; i++)
		bench->errors += workload->streams[i].total.errors;
	return r;
}

/* ---- the result ---- */

static double seconds(const struct bench *bench)
{
	return (double)(bench->end_ns - bench->begin_ns) / (double)NS_PER_S;
}

static double cpu_ns(const struct bench *bench)
{
	const struct rusage *a = &bench->before, *b = &bench->after;

	return (double)(b->ru_utime.tv_sec - a->ru_utime.tv_sec + b->ru_stime.tv_sec -
			a->ru_stime.tv_sec) *
		   1e9 +
	       (double)(b->ru_utime.tv_usec - a->ru_utime.tv_usec + b->ru_stime.tv_usec -
			a->ru_stime.tv_usec) *
		   1e3;
}

static const struct {
	double quantile;
	const char *key, *text;
} quantiles[] = {
    {0.5, "p50_ns", "p50"},
    {0.9, "p90_ns", "p90"},
    {0.99, "p99_ns", "p99"},
    {0.999, "p999_ns", "p99.9"},
};

static json_t *paths_json(const struct bench *bench)
{
	json_t *paths = json_array();

	for (unsigned i = 0; i < mpio_path_count(bench->mpio); i++) {
		struct mpio_path_info info;
		char url[512];

		mpio_path_info(bench->mpio, i, &info);
		text_url(url, sizeof url, bench->options->urls[i]);
		json_array_append_new(paths, json_pack("{s:s, s:s, s:s, s:I, s:I}", "url", url,
						       "portal", info.portal, "state",
						       mpio_path_state_names[info.state], "ios",
						       (json_int_t)info.ledger->ios, "losses",
						       (json_int_t)info.ledger->losses));
	}
	return paths;
}

static void print_json(const struct bench *bench, FILE *out)
{
	const struct bench_options *options = bench->options;
	json_t *latency = json_pack("{s:f, s:I, s:I}", "mean_ns", hist_mean_ns(&bench->latency),
				    "min_ns", (json_int_t)bench->latency.min_ns, "max_ns",
				    (json_int_t)bench->latency.max_ns);
	json_t *root;

	for (size_t i = 0; i < ARRAY_SIZE(quantiles); i++)
		json_object_set_new(latency, quantiles[i].key,
				    json_integer((json_int_t)hist_quantile_ns(
					&bench->latency, quantiles[i].quantile)));
	root = json_pack(
	    "{s:s, s:s, s:s, s:I, s:I, s:s, s:f, s:I, s:I, s:I, s:f, s:f, s:f, s:o, s:o, s:o}",
	    "schema", RESULT_SCHEMA, "op", raw_op_names[options->op], "pattern",
	    raw_pattern_names[options->pattern], "block_bytes", (json_int_t)options->block_bytes,
	    "queue_depth", (json_int_t)options->queue_depth, "policy",
	    mpio_policy_names[options->policy], "seconds", seconds(bench), "ios",
	    (json_int_t)bench->ios, "bytes", (json_int_t)bench->bytes, "errors",
	    (json_int_t)bench->errors, "iops", (double)bench->ios / seconds(bench), "bytes_per_s",
	    (double)bench->bytes / seconds(bench), "cpu_ns_per_io",
	    bench->ios ? cpu_ns(bench) / (double)bench->ios : 0.0, "latency", latency, "paths",
	    paths_json(bench), "environment", environment_json());
	json_dumpf(root, out, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
	fputc('\n', out);
	json_decref(root);
}

static void print_text(const struct bench *bench, FILE *out)
{
	const struct bench_options *options = bench->options;
	char block[32], rate[32], text[32];
	uint64_t all_ios = 0;
	struct mpio_path_info info;

	fprintf(out, "%s %s, %s, %llu in flight, %u path%s, %.1f s\n",
		raw_pattern_names[options->pattern], raw_op_names[options->op],
		text_bytes(block, sizeof block, (double)options->block_bytes),
		(unsigned long long)options->queue_depth, mpio_path_count(bench->mpio),
		mpio_path_count(bench->mpio) == 1 ? "" : "s", seconds(bench));
	fprintf(out, "%.0f IOPS  %s  %llu errors\n", (double)bench->ios / seconds(bench),
		text_rate(rate, sizeof rate, (double)bench->bytes / seconds(bench)),
		(unsigned long long)bench->errors);
	fprintf(out, "latency  mean %s",
		text_duration(text, sizeof text, hist_mean_ns(&bench->latency)));
	for (size_t i = 0; i < ARRAY_SIZE(quantiles); i++)
		fprintf(out, "  %s %s", quantiles[i].text,
			text_duration(
			    text, sizeof text,
			    (double)hist_quantile_ns(&bench->latency, quantiles[i].quantile)));
	fprintf(out, "  max %s\n", text_duration(text, sizeof text, (double)bench->latency.max_ns));
	if (bench->ios)
		fprintf(out, "processor  %s an I/O\n",
			text_duration(text, sizeof text, cpu_ns(bench) / (double)bench->ios));
	for (unsigned i = 0; i < mpio_path_count(bench->mpio); i++) {
		mpio_path_info(bench->mpio, i, &info);
		all_ios += info.ledger->ios;
	}
	for (unsigned i = 0; i < mpio_path_count(bench->mpio); i++) {
		mpio_path_info(bench->mpio, i, &info);
		fprintf(out, "path %u  %s  %s  %llu I/Os  %.1f %%\n", i, info.portal,
			mpio_path_state_names[info.state], (unsigned long long)info.ledger->ios,
			all_ios ? 100.0 * (double)info.ledger->ios / (double)all_ios : 0.0);
	}
}

static void tear_down(struct bench *bench)
{
	/* What is still in flight ends with the device; the workload must live until then. */
	mpio_free(bench->mpio);
	if (bench->workload)
		bench->workload->ops->free(bench->workload);
	cfg_free(bench->cfg);
	loop_free(bench->loop);
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
	if (!options->time_ns)
		return err_set(err, -EINVAL, "no time to measure in");
	return 0;
}

/* A benchmark of fewer paths than were asked for is no answer to the question. */
static bool paths_complete(const struct bench *bench)
{
	bool complete = true;

	for (unsigned i = 0; i < mpio_path_count(bench->mpio); i++) {
		struct mpio_path_info info;

		mpio_path_info(bench->mpio, i, &info);
		if (info.state == MPIO_PATH_UP)
			continue;
		log_warn("path %u (%s) is %s", i, info.portal, mpio_path_state_names[info.state]);
		complete = false;
	}
	return complete;
}

int bench_run(const struct bench_options *options, FILE *out)
{
	struct bench bench = {.options = options};
	struct err err = {0};
	int code = EXIT_ENVIRONMENT;
	int r = check_options(options, &err);

	if (r == 0)
		r = loop_new_real(&bench.loop);
	if (r == 0)
		r = connect_device(&bench, &err);
	if (r == 0)
		r = open_workload(&bench, &err);
	if (r == 0)
		r = measure(&bench);
	if (r < 0) {
		err_set(&err, r, "the bench failed: %s", strerror(-r));
		err_print(&err);
		if (r == -EINVAL)
			code = EXIT_USAGE;
	} else {
		if (options->json)
			print_json(&bench, out);
		else
			print_text(&bench, out);
		code = paths_complete(&bench) && bench.ios && !bench.errors ? EXIT_PASS
									    : EXIT_EXPECTATION;
	}
	tear_down(&bench);
	return code;
}
