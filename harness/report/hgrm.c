/* SPDX-License-Identifier: MIT
 *
 * latency-KIND.hgrm: the response times of one kind of stream as HdrHistogram's percentile
 * distribution text, in milliseconds, for the plotters that read it.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/report/writers.h"

enum { TICKS_PER_HALF_DISTANCE = 5, PERCENTILE_LINES_MAX = 1000 };

static double to_ms(double ns)
{
	return ns / (double)NS_PER_MS;
}

static uint64_t count_at_or_below(const struct hist *hist, uint64_t value_ns)
{
	uint64_t count = 0;

	if (value_ns >= hist->max_ns)
		return hist->count;
	for (unsigned i = 0; i < HIST_BUCKETS && hist_bucket_low_ns(i) <= value_ns; i++)
		count += hist->bucket[i];
	return count;
}

static double deviation_ns(const struct hist *hist)
{
	double mean = hist_mean_ns(hist), squares = 0;

	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		double middle =
		    ((double)hist_bucket_low_ns(i) + (double)hist_bucket_high_ns(i)) / 2;

		if (hist->bucket[i])
			squares += (double)hist->bucket[i] * (middle - mean) * (middle - mean);
	}
	return hist->count ? sqrt(squares / (double)hist->count) : 0;
}

/* Five steps to every halving of the distance to 100 %, as HdrHistogram does. */
static void put_percentiles(const struct hist *hist, FILE *to)
{
	double quantile = 0;

	for (unsigned line = 0; hist->count && line < PERCENTILE_LINES_MAX; line++) {
		uint64_t value = hist_quantile_ns(hist, quantile);
		uint64_t count = count_at_or_below(hist, value);
		double half;

		if (count >= hist->count)
			break;
		fprintf(to, "%12.6f %14.12f %10" PRIu64 " %14.2f\n", to_ms((double)value), quantile,
			count, 1 / (1 - quantile));
		half = exp2(floor(log2(1 / (1 - quantile))) + 1);
		quantile += 1 / (half * TICKS_PER_HALF_DISTANCE);
	}
	if (hist->count)
		fprintf(to, "%12.6f %14.12f %10" PRIu64 "\n", to_ms((double)hist->max_ns), 1.0,
			hist->count);
}

static bool kind_seen(const struct record *record, unsigned index)
{
	for (unsigned i = 0; i < index; i++) {
		const char *name = record->streams[i].name;

		if (name && strcmp(name, record->streams[index].name) == 0)
			return true;
	}
	return false;
}

/* The name of the INDEX-th kind of stream; NULL: there are not as many. */
static const char *kind_of(const struct record *record, unsigned index)
{
	for (unsigned i = 0; i < record->stream_count; i++) {
		if (record->streams[i].name && !kind_seen(record, i) && index-- == 0)
			return record->streams[i].name;
	}
	return NULL;
}

static int hgrm_name(const struct record *record, unsigned index, char name[REPORT_NAME_BYTES])
{
	const char *kind = kind_of(record, index);

	if (!kind)
		return -ENOENT;
	snprintf(name, REPORT_NAME_BYTES, "latency-%.64s.hgrm", kind);
	report_safe_name(name);
	return 0;
}

static int hgrm_write(const struct record *record, unsigned index, FILE *to)
{
	const char *kind = kind_of(record, index);
	struct hist *hist = calloc(1, sizeof *hist);

	if (!hist)
		return -ENOMEM;
	for (unsigned i = 0; i < record->stream_count; i++) {
		const struct record_stream *stream = &record->streams[i];

		if (stream->name && kind && strcmp(stream->name, kind) == 0)
			hist_merge(hist, &stream->response);
	}
	fprintf(to, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount",
		"1/(1-Percentile)");
	put_percentiles(hist, to);
	fprintf(to, "#[Mean    = %12.6f, StdDeviation   = %12.6f]\n", to_ms(hist_mean_ns(hist)),
		to_ms(deviation_ns(hist)));
	fprintf(to, "#[Max     = %12.6f, Total count    = %12" PRIu64 "]\n",
		to_ms((double)hist->max_ns), hist->count);
	fprintf(to, "#[Buckets = %12d, SubBuckets     = %12d]\n", HIST_MAX_BITS - HIST_SUB_BITS + 1,
		1 << HIST_SUB_BITS);
	free(hist);
	return ferror(to) ? -EIO : 0;
}

const struct report_writer hgrm_writer = {
    .file = "latency-*.hgrm",
    .help = "response time percentiles a kind of stream, HdrHistogram text in ms",
    .name = hgrm_name,
    .write_part = hgrm_write,
};
