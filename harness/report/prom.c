/* SPDX-License-Identifier: MIT
 *
 * metrics.prom: text exposition for a textfile collector.  Base units, as Prometheus asks:
 * seconds and bytes.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/report/format.h"
#include "harness/report/view.h"
#include "harness/report/writers.h"
#include "sanlab_version.h"

static const double summary_quantiles[] = {0.5, 0.9, 0.95, 0.99, 0.999};

static void put_label(FILE *to, const char **separator, const char *name, const char *value)
{
	fprintf(to, "%s%s=\"", *separator, name);
	*separator = ",";
	for (; value && *value; value++) {
		if (*value == '\\' || *value == '"')
			fprintf(to, "\\%c", *value);
		else if (*value == '\n')
			fputs("\\n", to);
		else
			fputc(*value, to);
	}
	fputc('"', to);
}

static void put_value(FILE *to, double value)
{
	if (isnan(value))
		fputs(" NaN\n", to);
	else if (isinf(value))
		fputs(value > 0 ? " +Inf\n" : " -Inf\n", to);
	else
		fprintf(to, " %.15g\n", value);
}

static void put_family(FILE *to, const char *name, const char *type, const char *help)
{
	fprintf(to, "# HELP sanlab_%s %s\n# TYPE sanlab_%s %s\n", name, help, name, type);
}

static void put_plain(FILE *to, const char *name, const char *help, double value)
{
	put_family(to, name, "gauge", help);
	fprintf(to, "sanlab_%s", name);
	put_value(to, value);
}

/* The labels of a stream or path, "{a=...,b=..." without the closing brace. */
typedef void (*labels_fn)(FILE *to, const void *of);

static void stream_labels(FILE *to, const void *of)
{
	const struct record_stream *stream = of;
	const char *separator = "{";

	put_label(to, &separator, "host", stream->host);
	put_label(to, &separator, "volume", stream->volume);
	put_label(to, &separator, "stream", stream->name);
	put_label(to, &separator, "op", stream->write ? "write" : "read");
}

static void path_labels(FILE *to, const void *of)
{
	const struct record_path *path = of;
	const char *separator = "{";
	char index[16];

	snprintf(index, sizeof index, "%u", path->index);
	put_label(to, &separator, "host", path->host);
	put_label(to, &separator, "volume", path->volume);
	put_label(to, &separator, "portal", path->portal);
	put_label(to, &separator, "path", index);
}

/* A labelled counter of every stream or path, found by its offset. */
struct family {
	const char *name, *type, *help;
	size_t offset;
};

static const struct family stream_families[] = {
    {"stream_ios_total", "counter", "I/Os completed in the measured window",
     offsetof(struct record_stream, ios)},
    {"stream_bytes_total", "counter", "Bytes moved in the measured window",
     offsetof(struct record_stream, bytes)},
    {"stream_errors_total", "counter", "I/Os that failed", offsetof(struct record_stream, errors)},
};

static const struct family path_families[] = {
    {"path_ios_total", "counter", "I/Os completed on the path", offsetof(struct record_path, ios)},
    {"path_read_bytes_total", "counter", "Bytes read over the path",
     offsetof(struct record_path, read_bytes)},
    {"path_write_bytes_total", "counter", "Bytes written over the path",
     offsetof(struct record_path, write_bytes)},
    {"path_errors_total", "counter", "I/Os that failed on the path",
     offsetof(struct record_path, errors)},
    {"path_reissued_total", "counter", "I/Os re-issued on another path",
     offsetof(struct record_path, reissued)},
    {"path_losses_total", "counter", "Times the path was lost",
     offsetof(struct record_path, losses)},
    {"path_logins_total", "counter", "Logins", offsetof(struct record_path, logins)},
};

static uint64_t counter_at(const void *base, size_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)base + offset, sizeof value);
	return value;
}

static void put_counters(FILE *to, const struct record *record)
{
	for (size_t f = 0; f < ARRAY_SIZE(stream_families); f++) {
		const struct family *family = &stream_families[f];

		put_family(to, family->name, family->type, family->help);
		for (unsigned i = 0; i < record->stream_count; i++) {
			fprintf(to, "sanlab_%s", family->name);
			stream_labels(to, &record->streams[i]);
			fprintf(to, "} %" PRIu64 "\n",
				counter_at(&record->streams[i], family->offset));
		}
	}
	for (size_t f = 0; f < ARRAY_SIZE(path_families); f++) {
		const struct family *family = &path_families[f];

		put_family(to, family->name, family->type, family->help);
		for (unsigned i = 0; i < record->path_count; i++) {
			fprintf(to, "sanlab_%s", family->name);
			path_labels(to, &record->paths[i]);
			fprintf(to, "} %" PRIu64 "\n",
				counter_at(&record->paths[i], family->offset));
		}
	}
}

static void put_rates(FILE *to, const struct view *view)
{
	const struct record *record = view->record;

	put_family(to, "stream_planned_per_second", "gauge", "Planned rate");
	for (unsigned i = 0; i < record->stream_count; i++) {
		fputs("sanlab_stream_planned_per_second", to);
		stream_labels(to, &record->streams[i]);
		fputc('}', to);
		put_value(to, record->streams[i].planned_per_s);
	}
	put_family(to, "stream_achieved_per_second", "gauge", "Achieved rate");
	for (unsigned i = 0; i < record->stream_count; i++) {
		fputs("sanlab_stream_achieved_per_second", to);
		stream_labels(to, &record->streams[i]);
		fputc('}', to);
		put_value(to, view_rate(view, (double)record->streams[i].ios));
	}
	put_family(to, "path_share", "gauge", "Part of its volume's I/Os the path carried");
	for (unsigned i = 0; i < record->path_count; i++) {
		fputs("sanlab_path_share", to);
		path_labels(to, &record->paths[i]);
		fputc('}', to);
		put_value(to, record->paths[i].share);
	}
}

static void put_summary(FILE *to, const char *name, const struct hist *hist, labels_fn labels,
			const void *of)
{
	for (size_t q = 0; q <= ARRAY_SIZE(summary_quantiles) + 1; q++) {
		bool is_sum = q == ARRAY_SIZE(summary_quantiles);
		bool is_count = q > ARRAY_SIZE(summary_quantiles);

		fprintf(to, "sanlab_%s%s", name, is_sum ? "_sum" : is_count ? "_count" : "");
		labels(to, of);
		if (is_sum || is_count) {
			fputc('}', to);
			put_value(to, is_count ? (double)hist->count
					       : (double)hist->sum_ns / (double)NS_PER_S);
			continue;
		}
		fprintf(to, ",quantile=\"%g\"}", summary_quantiles[q]);
		put_value(to, hist->count ? (double)hist_quantile_ns(hist, summary_quantiles[q]) /
						(double)NS_PER_S
					  : NAN);
	}
}

static void put_latencies(FILE *to, const struct record *record)
{
	put_family(to, "stream_response_seconds", "summary",
		   "Time from the intended start to the end");
	for (unsigned i = 0; i < record->stream_count; i++)
		put_summary(to, "stream_response_seconds", &record->streams[i].response,
			    stream_labels, &record->streams[i]);
	put_family(to, "stream_service_seconds", "summary", "Time from the submission to the end");
	for (unsigned i = 0; i < record->stream_count; i++)
		put_summary(to, "stream_service_seconds", &record->streams[i].service,
			    stream_labels, &record->streams[i]);
	put_family(to, "path_latency_seconds", "summary", "Time of one I/O on the path");
	for (unsigned i = 0; i < record->path_count; i++)
		put_summary(to, "path_latency_seconds", &record->paths[i].latency, path_labels,
			    &record->paths[i]);
}

static void put_run(FILE *to, const struct view *view)
{
	const struct record *record = view->record;
	const char *separator = "{";
	char seed[24];

	snprintf(seed, sizeof seed, "%" PRIu64, record->seed);
	put_family(to, "run_info", "gauge", "What ran");
	fputs("sanlab_run_info", to);
	put_label(to, &separator, "lab", record->lab);
	put_label(to, &separator, "workload", record->workload);
	put_label(to, &separator, "seed", seed);
	put_label(to, &separator, "version", record->version ? record->version : SANLAB_VERSION);
	fputs("} 1\n", to);
	put_plain(to, "run_passed", "1 when every check passed", record_passed(record));
	put_plain(to, "run_interrupted", "1 when the run was stopped early", record->interrupted);
	put_plain(to, "run_start_time_seconds", "Start, since 1970",
		  (double)record->start_wall_ns / (double)NS_PER_S);
	put_plain(to, "run_window_seconds", "Length of the measured window", view->window_s);
	put_plain(to, "planned_transactional_iops", "Planned database reads and writes per second",
		  record->planned_transactional_iops);
	put_plain(to, "achieved_transactional_iops",
		  "Achieved database reads and writes per second",
		  record->achieved_transactional_iops);
	put_plain(to, "achieved_iops", "All I/Os per second", record->total_iops);
	put_plain(to, "max_io_gap_seconds", "Longest time without a completion while I/O was due",
		  (double)view->max_gap_ns / (double)NS_PER_S);
	put_plain(to, "pages_checked", "Pages verified while reading",
		  (double)record->pages_checked);
	put_plain(to, "pages_read_back", "Pages read back at the end",
		  (double)record->pages_read_back);
	put_plain(to, "pages_not_readable", "Pages that could not be read back",
		  (double)record->pages_not_readable);
	put_plain(to, "data_mismatches", "Pages whose contents were wrong",
		  (double)record->mismatches_total);
}

static void put_verdicts(FILE *to, const struct record *record)
{
	put_family(to, "check", "gauge", "One check of the run; the status is a label");
	for (unsigned i = 0; i < record->verdict_count; i++) {
		const char *separator = "{";

		fputs("sanlab_check", to);
		put_label(to, &separator, "id", record->verdicts[i].id);
		put_label(to, &separator, "status", verdict_names[record->verdicts[i].status]);
		fputs("} 1\n", to);
	}
}

static int prom_write(const struct record *record, FILE *to)
{
	struct view *view;
	int r = view_new(record, &view);

	if (r < 0)
		return r;
	put_run(to, view);
	put_verdicts(to, record);
	put_counters(to, record);
	put_rates(to, view);
	put_latencies(to, record);
	view_free(view);
	return ferror(to) ? -EIO : 0;
}

const struct report_writer prom_writer = {
    .file = "metrics.prom",
    .help = "Prometheus text exposition",
    .write = prom_write,
};
