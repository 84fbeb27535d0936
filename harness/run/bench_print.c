/* SPDX-License-Identifier: MIT
 *
 * The bench's answer, as text and as JSON.
 */
#include <jansson.h>

#include "base/bytes.h"
#include "base/text.h"
#include "harness/run/bench_impl.h"
#include "harness/run/environment.h"
#include "harness/workload/raw.h"

#define RESULT_SCHEMA "sanlab/bench/1"

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

	for (unsigned t = 0; t < bench->lane_count; t++) {
		const struct mpio *mpio = bench->lanes[t].mpio;

		for (unsigned i = 0; i < mpio_path_count(mpio); i++) {
			struct mpio_path_info info;
			char url[512];

			mpio_path_info(mpio, i, &info);
			text_url(url, sizeof url, bench->options->urls[i]);
			json_array_append_new(
			    paths, json_pack("{s:I, s:s, s:s, s:s, s:I, s:I}", "thread",
					     (json_int_t)t, "url", url, "portal", info.portal,
					     "state", mpio_path_state_names[info.state], "ios",
					     (json_int_t)info.ledger->ios, "losses",
					     (json_int_t)info.ledger->losses));
		}
	}
	return paths;
}

static json_t *latency_json(const struct hist *hist)
{
	json_t *latency = json_pack("{s:f, s:I, s:I}", "mean_ns", hist_mean_ns(hist), "min_ns",
				    (json_int_t)hist->min_ns, "max_ns", (json_int_t)hist->max_ns);

	for (size_t i = 0; i < ARRAY_SIZE(quantiles); i++)
		json_object_set_new(
		    latency, quantiles[i].key,
		    json_integer((json_int_t)hist_quantile_ns(hist, quantiles[i].quantile)));
	return latency;
}

void bench_print_json(const struct bench *bench, FILE *out)
{
	const struct bench_options *options = bench->options;
	json_t *root = json_pack(
	    "{s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:f, s:I, s:I, s:I, s:f, s:f, s:f, s:o, s:o, s:o}",
	    "schema", RESULT_SCHEMA, "op", raw_op_names[options->op], "pattern",
	    raw_pattern_names[options->pattern], "block_bytes", (json_int_t)options->block_bytes,
	    "queue_depth", (json_int_t)options->queue_depth, "threads",
	    (json_int_t)bench->lane_count, "policy", mpio_policy_names[options->policy], "seconds",
	    bench->seconds, "ios", (json_int_t)bench->ios, "bytes", (json_int_t)bench->bytes,
	    "errors", (json_int_t)bench->errors, "iops", bench->iops, "bytes_per_s",
	    bench->bytes_per_s, "cpu_ns_per_io", bench->cpu_ns_per_io, "latency",
	    latency_json(&bench->latency), "paths", paths_json(bench), "environment",
	    environment_json());

	json_dumpf(root, out, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
	fputc('\n', out);
	json_decref(root);
}

static void print_latency(const struct hist *hist, FILE *out)
{
	char text[32];

	fprintf(out, "latency  mean %s", text_duration(text, sizeof text, hist_mean_ns(hist)));
	for (size_t i = 0; i < ARRAY_SIZE(quantiles); i++)
		fprintf(out, "  %s %s", quantiles[i].text,
			text_duration(text, sizeof text,
				      (double)hist_quantile_ns(hist, quantiles[i].quantile)));
	fprintf(out, "  max %s\n", text_duration(text, sizeof text, (double)hist->max_ns));
}

/* What PATH has carried for all threads, the end of the run included. */
static uint64_t path_ios(const struct bench *bench, unsigned path)
{
	struct mpio_path_info info;
	uint64_t ios = 0;

	for (unsigned t = 0; t < bench->lane_count; t++) {
		mpio_path_info(bench->lanes[t].mpio, path, &info);
		ios += info.ledger->ios;
	}
	return ios;
}

static void print_paths(const struct bench *bench, FILE *out)
{
	unsigned count = mpio_path_count(bench->lanes[0].mpio);
	uint64_t all = 0;

	for (unsigned i = 0; i < count; i++)
		all += path_ios(bench, i);
	for (unsigned i = 0; i < count; i++) {
		struct mpio_path_info info;
		uint64_t ios = path_ios(bench, i);

		mpio_path_info(bench->lanes[0].mpio, i, &info);
		fprintf(out, "path %u  %s  %s  %llu I/Os  %.1f %%\n", i, info.portal,
			mpio_path_state_names[info.state], (unsigned long long)ios,
			all ? 100.0 * (double)ios / (double)all : 0.0);
	}
}

void bench_print_text(const struct bench *bench, FILE *out)
{
	const struct bench_options *options = bench->options;
	unsigned paths = mpio_path_count(bench->lanes[0].mpio);
	char block[32], rate[32], text[32];

	fprintf(out, "%s %s, %s, %llu in flight, %u path%s, ", raw_pattern_names[options->pattern],
		raw_op_names[options->op],
		text_bytes(block, sizeof block, (double)options->block_bytes),
		(unsigned long long)options->queue_depth, paths, paths == 1 ? "" : "s");
	if (bench->lane_count > 1)
		fprintf(out, "on each of %u threads, ", bench->lane_count);
	fprintf(out, "%.1f s\n%.0f IOPS  %s  %llu errors\n", bench->seconds, bench->iops,
		text_rate(rate, sizeof rate, bench->bytes_per_s),
		(unsigned long long)bench->errors);
	print_latency(&bench->latency, out);
	if (bench->ios)
		fprintf(out, "processor  %s an I/O\n",
			text_duration(text, sizeof text, bench->cpu_ns_per_io));
	print_paths(bench, out);
}
