/* SPDX-License-Identifier: MIT
 *
 * The curve of a sweep: curve.csv, the terminal's table, the page's chart and table.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/report/chart.h"
#include "harness/report/format.h"
#include "harness/report/html.h"
#include "harness/report/summary.h"
#include "harness/report/writers.h"

/* What becomes a column, in the order of the csv file. */
static const char *const latencies[] = {"mean_ns", "p50_ns",  "p90_ns", "p95_ns",
					"p99_ns",  "p999_ns", "max_ns"};

static const json_t *steps_of(const struct record *record)
{
	return json_object_get(record->curve, "steps");
}

/* Of what a step has so much: in flight, or due a second, on each volume. */
static const char *level_name(const struct record *record)
{
	const char *by = json_string_value(json_object_get(record->curve, "by"));

	return by && strcmp(by, "rate") == 0 ? "rate" : "depth";
}

static uint64_t count_of(const json_t *step, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(step, key));
}

static double real_of(const json_t *step, const char *key)
{
	return json_number_value(json_object_get(step, key));
}

/* ---- curve.csv ---- */

static void put_csv_side(const json_t *side, FILE *to)
{
	fprintf(to, ",%" PRIu64 ",%" PRIu64 ",%.3f,%.0f", count_of(side, "ios"),
		count_of(side, "errors"), real_of(side, "iops"), real_of(side, "bytes_per_s"));
	for (size_t i = 0; i < ARRAY_SIZE(latencies); i++) {
		fputc(',', to);
		if (count_of(side, "ios"))
			fprintf(to, "%" PRIu64, count_of(side, latencies[i]));
	}
}

static int curve_write(const struct record *record, unsigned index, FILE *to)
{
	static const char *const sides[] = {"", "read_", "write_"};
	static const char *const counts[] = {"ios", "errors", "iops", "bytes_per_s"};
	const json_t *step;
	size_t i;

	fprintf(to, "%s,from_s,to_s,late", level_name(record));
	for (size_t s = 0; s < ARRAY_SIZE(sides); s++) {
		for (size_t k = 0; k < ARRAY_SIZE(counts); k++)
			fprintf(to, ",%s%s", sides[s], counts[k]);
		for (size_t k = 0; k < ARRAY_SIZE(latencies); k++)
			fprintf(to, ",%s%s", sides[s], latencies[k]);
	}
	fputc('\n', to);
	json_array_foreach(steps_of(record), i, step)
	{
		fprintf(to, "%.0f,%.3f,%.3f,%" PRIu64, real_of(step, "level"),
			(double)count_of(step, "from_ns") / (double)NS_PER_S,
			(double)count_of(step, "to_ns") / (double)NS_PER_S, count_of(step, "late"));
		put_csv_side(step, to);
		put_csv_side(json_object_get(step, "reads"), to);
		put_csv_side(json_object_get(step, "writes"), to);
		fputc('\n', to);
	}
	return ferror(to) ? -EIO : 0;
}

static int curve_name(const struct record *record, unsigned index, char name[REPORT_NAME_BYTES])
{
	if (!record->curve || index)
		return -ENOENT;
	snprintf(name, REPORT_NAME_BYTES, "curve.csv");
	return 0;
}

const struct report_writer curve_writer = {
    .file = "curve.csv",
    .help = "of a sweep: throughput and latency step by step",
    .name = curve_name,
    .write_part = curve_write,
};

/* ---- the terminal ---- */

void summary_curve(const struct record *record, summary_title_fn title, const void *arg, FILE *to)
{
	const json_t *step;
	size_t i;

	if (!record->curve)
		return;
	title(arg, "Latency over throughput (each step measured by itself)");
	fprintf(to, "  %8s %9s %9s %9s %9s %9s %9s %7s\n", level_name(record), "I/Os/s", "MiB/s",
		"mean", "p50", "p95", "p99", "errors");
	json_array_foreach(steps_of(record), i, step)
	{
		uint64_t ios = count_of(step, "ios");
		char text[7][32];

		format_real(text[0], sizeof text[0], real_of(step, "iops"));
		format_mib(text[1], sizeof text[1], real_of(step, "bytes_per_s"));
		format_latency(text[2], sizeof text[2], real_of(step, "mean_ns"), ios);
		format_latency(text[3], sizeof text[3], real_of(step, "p50_ns"), ios);
		format_latency(text[4], sizeof text[4], real_of(step, "p95_ns"), ios);
		format_latency(text[5], sizeof text[5], real_of(step, "p99_ns"), ios);
		format_count(text[6], sizeof text[6], count_of(step, "errors"));
		fprintf(to, "  %8.0f %9s %9s %9s %9s %9s %9s %7s%s\n", real_of(step, "level"),
			text[0], text[1], text[2], text[3], text[4], text[5], text[6],
			count_of(step, "late") ? " *" : "");
	}
	json_array_foreach(steps_of(record), i, step)
	{
		if (!count_of(step, "late"))
			continue;
		fputs("  * more was due than could be sent\n", to);
		break;
	}
}

/* ---- the page ---- */

static int put_chart(const struct record *record, FILE *to)
{
	static const struct {
		const char *name, *key;
	} lines[] = {{"mean", "mean_ns"}, {"p50", "p50_ns"}, {"p95", "p95_ns"}, {"p99", "p99_ns"}};
	size_t count = json_array_size(steps_of(record));
	double *x = calloc((ARRAY_SIZE(lines) + 1) * (count + 1), sizeof *x);
	struct chart_series series[ARRAY_SIZE(lines)];
	struct chart chart = {
	    .title = "Response time over throughput",
	    .note = "log scale; I/Os a second of all volumes, step by step",
	    .unit = CHART_NS,
	    .axis = CHART_RATE,
	    .log_scale = true,
	    .height = 320,
	    .x = x,
	    .point_count = (unsigned)count,
	    .series = series,
	    .series_count = ARRAY_SIZE(lines),
	};

	if (!x)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		x[i] = real_of(json_array_get(steps_of(record), i), "iops");
		chart.x_max = fmax(chart.x_max, x[i] * 1.05);
	}
	for (size_t s = 0; s < ARRAY_SIZE(lines); s++) {
		double *y = x + (s + 1) * (count + 1);

		series[s] =
		    (struct chart_series){.name = lines[s].name, .colour = (unsigned)s, .y = y};
		for (size_t i = 0; i < count; i++) {
			const json_t *step = json_array_get(steps_of(record), i);

			y[i] = count_of(step, "ios") ? fmax(1, real_of(step, lines[s].key)) : NAN;
		}
	}
	if (count)
		chart_write(&chart, to);
	free(x);
	return 0;
}

static void put_cell(FILE *to, const char *text)
{
	fprintf(to, "<td class=\"n\">%s</td>", text);
}

static void put_row(const json_t *step, FILE *to)
{
	uint64_t ios = count_of(step, "ios");
	char text[32];

	snprintf(text, sizeof text, "%.0f", real_of(step, "level"));
	fputs("<tr>", to);
	put_cell(to, text);
	put_cell(to, format_real(text, sizeof text, real_of(step, "iops")));
	put_cell(to, format_mib(text, sizeof text, real_of(step, "bytes_per_s")));
	for (size_t i = 0; i < ARRAY_SIZE(latencies); i++)
		put_cell(to, format_latency(text, sizeof text, real_of(step, latencies[i]), ios));
	put_cell(to, format_count(text, sizeof text, count_of(step, "errors")));
	put_cell(to, format_count(text, sizeof text, count_of(step, "late")));
	fputs("</tr>\n", to);
}

int html_curve(const struct view *view, FILE *to)
{
	static const char *const names[] = {"I/Os/s", "MiB/s", "mean", "p50",	 "p90",	      "p95",
					    "p99",    "p99.9", "max",  "errors", "never sent"};
	const struct record *record = view->record;
	int r = put_chart(record, to);
	const json_t *step;
	size_t i;

	fprintf(to,
		"<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\" class=\"n\">%s</th>",
		level_name(record));
	for (i = 0; i < ARRAY_SIZE(names); i++)
		fprintf(to, "<th scope=\"col\" class=\"n\">%s</th>", names[i]);
	fputs("</tr></thead>\n<tbody>\n", to);
	json_array_foreach(steps_of(record), i, step)
	{
		put_row(step, to);
	}
	fputs("</tbody></table></div>\n", to);
	return r;
}
