/* SPDX-License-Identifier: MIT
 *
 * The record's samples and histograms as charts.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/report/chart.h"
#include "harness/report/html.h"

enum measure {
	MEASURE_RATE,
	MEASURE_MIB,
	MEASURE_P50,
	MEASURE_P99,
	MEASURE_MAX,
	MEASURE_SHARE,
};

/* What the time charts have in common. */
struct timeline {
	const struct view *view;
	unsigned per_point; /* samples merged into one point */
	unsigned point_count;
	double x_min, x_max;
	double *x; /* middle of the point, s */
	struct chart_mark *marks;
	unsigned mark_count;
};

static double to_s(uint64_t ns)
{
	return (double)ns / (double)NS_PER_S;
}

static bool is_kind(const struct record_marker *marker, const char *kind)
{
	return marker->kind && strcmp(marker->kind, kind) == 0;
}

static int mark_order(const void *a, const void *b)
{
	const struct chart_mark *left = a, *right = b;

	if (left->x < right->x)
		return -1;
	if (left->x > right->x)
		return 1;
	return left->number < right->number ? -1 : left->number > right->number;
}

static void timeline_marks(struct timeline *line)
{
	const struct record *record = line->view->record;

	for (unsigned i = 0; i < record->marker_count && line->mark_count < CHART_MARKS_MAX; i++) {
		const struct record_marker *marker = &record->markers[i];
		double x = to_s(marker->at_ns);

		if (x < line->x_min || x > line->x_max ||
		    !(is_kind(marker, "fault") || is_kind(marker, "path")))
			continue;
		line->marks[line->mark_count++] =
		    (struct chart_mark){.x = x,
					.number = i + 1,
					.fault = is_kind(marker, "fault"),
					.text = marker->text ? marker->text : marker->kind};
	}
	qsort(line->marks, line->mark_count, sizeof *line->marks, mark_order);
}

static int timeline_init(struct timeline *line, const struct view *view)
{
	const struct record *record = view->record;
	const struct record_sample *samples = record->samples;
	unsigned count = record->sample_count;

	memset(line, 0, sizeof *line);
	line->view = view;
	line->per_point = (count + CHART_POINTS_MAX - 1) / CHART_POINTS_MAX;
	line->point_count = count ? (count + line->per_point - 1) / line->per_point : 0;
	line->x = calloc(line->point_count + 1U, sizeof *line->x);
	line->marks = calloc(CHART_MARKS_MAX, sizeof *line->marks);
	if (!line->x || !line->marks)
		return -ENOMEM;
	if (!count)
		return 0;
	line->x_min = to_s(samples[0].at_ns) - to_s(samples[0].length_ns);
	line->x_max = to_s(samples[count - 1].at_ns);
	for (unsigned p = 0; p < line->point_count; p++) {
		unsigned first = p * line->per_point;
		unsigned last = MIN_OF(first + line->per_point, count) - 1;

		line->x[p] = (to_s(samples[first].at_ns) - to_s(samples[first].length_ns) +
			      to_s(samples[last].at_ns)) /
			     2;
	}
	timeline_marks(line);
	return 0;
}

static void timeline_done(struct timeline *line)
{
	free(line->x);
	free(line->marks);
}

/* One point of one kind of stream: all its streams over the samples merged into the point. */
struct sum {
	double ios, bytes, length_s, p50_weighted, p99, max;
};

static void sum_point(const struct timeline *line, unsigned point, unsigned kind, struct sum *sum)
{
	const struct record *record = line->view->record;
	unsigned first = point * line->per_point;
	unsigned end = MIN_OF(first + line->per_point, record->sample_count);

	memset(sum, 0, sizeof *sum);
	for (unsigned i = first; i < end; i++) {
		sum->length_s += to_s(record->samples[i].length_ns);
		for (unsigned s = 0; s < record->stream_count; s++) {
			const struct record_stream_sample *sample = &record->samples[i].streams[s];

			if (line->view->kind_of_stream[s] != kind)
				continue;
			sum->ios += sample->ios;
			sum->bytes += (double)sample->bytes;
			sum->p50_weighted += (double)sample->p50_ns * sample->ios;
			sum->p99 = fmax(sum->p99, (double)sample->p99_ns);
			sum->max = fmax(sum->max, (double)sample->max_ns);
		}
	}
}

static double measure_of(const struct sum *sum, enum measure measure)
{
	switch (measure) {
	case MEASURE_RATE:
		return sum->length_s > 0 ? sum->ios / sum->length_s : NAN;
	case MEASURE_MIB:
		return sum->length_s > 0 ? sum->bytes / sum->length_s / (double)MIB : NAN;
	case MEASURE_P50:
		return sum->ios > 0 ? sum->p50_weighted / sum->ios : NAN;
	case MEASURE_P99:
		return sum->ios > 0 ? sum->p99 : NAN;
	default:
		return sum->ios > 0 ? sum->max : NAN;
	}
}

/* COUNT series over POINTS points in one block; series[0].y owns it. */
static struct chart_series *series_new(unsigned count, unsigned points)
{
	struct chart_series *series = calloc(count + 1U, sizeof *series);
	double *y = calloc((size_t)count * points + 1, sizeof *y);

	if (!series || !y) {
		free(series);
		free(y);
		return NULL;
	}
	for (unsigned s = 0; s <= count; s++) {
		series[s].y = s < count ? y + (size_t)s * points : y;
		series[s].colour = s;
		series[s].dashed = s >= CHART_COLOURS;
	}
	return series;
}

static double *series_values(const struct chart_series *series)
{
	return (double *)(uintptr_t)series->y; /* ours: made by series_new */
}

static void series_free(struct chart_series *series)
{
	free(series_values(&series[0]));
	free(series);
}

static const struct {
	enum measure measure;
	enum chart_unit unit;
	bool log_scale;
	unsigned height;
	const char *title, *note;
} time_charts[] = {
    {MEASURE_RATE, CHART_PER_S, false, 250, "I/Os per second", "by kind of stream"},
    {MEASURE_MIB, CHART_MIB, false, 210, "Throughput", "MiB/s, by kind of stream"},
    {MEASURE_P50, CHART_NS, true, 210, "Response time, median",
     "log scale; volumes weighted by their I/Os"},
    {MEASURE_P99, CHART_NS, true, 210, "Response time, 99th percentile",
     "log scale; the slowest volume"},
    {MEASURE_MAX, CHART_NS, true, 210, "Response time, maximum",
     "log scale; the slowest single I/O"},
};

static void chart_on_timeline(struct chart *chart, const struct timeline *line)
{
	const struct record *record = line->view->record;

	chart->axis = CHART_TIME;
	chart->x_min = line->x_min;
	chart->x_max = line->x_max;
	chart->x = line->x;
	chart->point_count = line->point_count;
	chart->marks = line->marks;
	chart->mark_count = line->mark_count;
	chart->shade_below = to_s(record->window_start_ns);
	chart->shade_above =
	    line->view->window_s > 0 ? to_s(record->window_end_ns) : chart->shade_below;
}

static int time_chart(const struct timeline *line, size_t which, FILE *to)
{
	const struct view *view = line->view;
	struct chart_series *series = series_new(view->kind_count, line->point_count);
	struct chart chart = {
	    .title = time_charts[which].title,
	    .note = time_charts[which].note,
	    .unit = time_charts[which].unit,
	    .log_scale = time_charts[which].log_scale,
	    .height = time_charts[which].height,
	    .series = series,
	    .series_count = view->kind_count,
	};

	if (!series)
		return -ENOMEM;
	for (unsigned k = 0; k < view->kind_count; k++) {
		double *y = series_values(&series[k]);

		series[k].name = view->kinds[k].name;
		for (unsigned p = 0; p < line->point_count; p++) {
			struct sum sum;

			sum_point(line, p, k, &sum);
			y[p] = measure_of(&sum, time_charts[which].measure);
		}
	}
	chart_on_timeline(&chart, line);
	chart_write(&chart, to);
	series_free(series);
	return 0;
}

int html_time_charts(const struct view *view, FILE *to)
{
	struct timeline line;
	int r = timeline_init(&line, view);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(time_charts) && line.point_count; i++)
		r = time_chart(&line, i, to);
	if (r == 0 && !line.point_count)
		fputs("<p>No samples were taken.</p>\n", to);
	timeline_done(&line);
	return r;
}

/* Response times of every kind against the quantile, each as far as its count resolves. */
int html_latency_chart(const struct view *view, FILE *to)
{
	enum { POINTS_PER_NINE = 20, NINES_MAX = 7, POINTS = POINTS_PER_NINE * NINES_MAX + 1 };
	struct chart_series *series = series_new(view->kind_count, POINTS);
	double x[POINTS], nines_max = 2;
	struct chart chart = {
	    .title = "Response time percentiles",
	    .note = "log scale; measured window, all volumes; each step to the right is ten times "
		    "rarer",
	    .unit = CHART_NS,
	    .axis = CHART_NINES,
	    .log_scale = true,
	    .height = 320,
	    .x = x,
	    .series = series,
	    .series_count = view->kind_count,
	};

	if (!series)
		return -ENOMEM;
	for (unsigned i = 0; i < POINTS; i++)
		x[i] = (double)i / POINTS_PER_NINE;
	for (unsigned k = 0; k < view->kind_count; k++) {
		const struct hist *hist = &view->kinds[k].response;
		double resolved = hist->count ? log10((double)hist->count) : -1;
		double *y = series_values(&series[k]);

		series[k].name = view->kinds[k].name;
		nines_max = fmax(nines_max, fmin(ceil(resolved), NINES_MAX));
		for (unsigned i = 0; i < POINTS; i++)
			y[i] = x[i] <= resolved
				   ? fmax(1, (double)hist_quantile_ns(hist, 1 - pow(10, -x[i])))
				   : NAN;
	}
	chart.x_max = nines_max;
	chart.point_count = (unsigned)nines_max * POINTS_PER_NINE + 1;
	chart_write(&chart, to);
	series_free(series);
	return 0;
}

/* The part of a point's I/Os that went through the portals that end up in series INDEX. */
static double portal_ios(const struct timeline *line, unsigned point, unsigned index,
			 unsigned series_count)
{
	const struct record *record = line->view->record;
	unsigned first = point * line->per_point;
	unsigned end = MIN_OF(first + line->per_point, record->sample_count);
	double ios = 0;

	for (unsigned i = first; i < end; i++) {
		for (unsigned p = 0; p < record->path_count; p++) {
			unsigned portal = line->view->portal_of_path[p];

			if (MIN_OF(portal, series_count - 1) == index)
				ios += record->samples[i].paths[p].ios;
		}
	}
	return ios;
}

static void fill_shares(const struct timeline *line, struct chart_series *series, unsigned count)
{
	for (unsigned p = 0; p < line->point_count; p++) {
		double total = 0;

		for (unsigned s = 0; s < count; s++) {
			double ios = portal_ios(line, p, s, count);

			series_values(&series[s])[p] = ios;
			total += ios;
		}
		for (unsigned s = 0; s < count; s++) {
			double *y = &series_values(&series[s])[p];

			*y = total > 0 ? *y / total * 100 : NAN;
		}
	}
}

static int share_chart(const struct timeline *line, FILE *to)
{
	const struct view *view = line->view;
	unsigned count = MIN_OF(view->portal_count, (unsigned)CHART_COLOURS);
	struct chart_series *series = series_new(count, line->point_count);
	char names[CHART_COLOURS][128];
	struct chart chart = {
	    .title = "Path shares",
	    .note = "part of all I/Os, by host and portal",
	    .unit = CHART_PERCENT,
	    .stacked = true,
	    .height = 250,
	    .series = series,
	    .series_count = count,
	};

	if (!series)
		return -ENOMEM;
	for (unsigned s = 0; s < count; s++) {
		const struct view_portal *portal = &view->portals[s];

		if (s + 1 == count && view->portal_count > count)
			snprintf(names[s], sizeof names[s], "%u others",
				 view->portal_count - count + 1);
		else
			snprintf(names[s], sizeof names[s], "%.60s %.60s", portal->host,
				 portal->portal);
		series[s].name = names[s];
	}
	fill_shares(line, series, count);
	chart_on_timeline(&chart, line);
	chart_write(&chart, to);
	series_free(series);
	return 0;
}

int html_share_chart(const struct view *view, FILE *to)
{
	struct timeline line;
	int r = timeline_init(&line, view);

	if (r == 0 && line.point_count && view->portal_count)
		r = share_chart(&line, to);
	timeline_done(&line);
	return r;
}
