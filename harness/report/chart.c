/* SPDX-License-Identifier: MIT
 *
 * Inline SVG: grid, shapes, flags, legend, and the numbers for the page's script.
 *
 * The plot is an <svg> of its own inside the drawing, so that the script zooms by changing its
 * viewBox alone; strokes do not scale, and text stays outside.
 */
#include <math.h>
#include <string.h>

#include "harness/report/chart_axis.h"
#include "harness/report/format.h"

static const char *const unit_names[] = {"per-s", "mib", "ns", "percent"};
static const char *const axis_names[] = {"time", "nines", "rate"};

static void put_legend(const struct chart *chart, FILE *to)
{
	fputs("<ul class=\"legend\">", to);
	for (unsigned s = 0; s < chart->series_count; s++) {
		const struct chart_series *series = &chart->series[s];

		fprintf(to,
			"<li><button type=\"button\" class=\"key k%u%s\" aria-pressed=\"true\">",
			series->colour % CHART_COLOURS, series->dashed ? " dashed" : "");
		escape_xml(to, series->name);
		fputs("</button></li>", to);
	}
	fputs("</ul>\n", to);
}

static void put_grid(const struct chart_frame *frame, FILE *to)
{
	double bottom = CHART_TOP + frame->plot_height;

	fputs("<g class=\"yticks\">", to);
	for (unsigned i = 0; i < frame->y_count; i++) {
		double y = CHART_TOP + chart_py(frame, frame->y[i].at);

		fprintf(to, "<path d=\"M%d %.1fh%d\"/><text x=\"%d\" y=\"%.1f\">", CHART_LEFT, y,
			CHART_PLOT_WIDTH, CHART_LEFT - 7, y + 4);
		escape_xml(to, frame->y[i].label);
		fputs("</text>", to);
	}
	fputs("</g>\n<g class=\"xticks\">", to);
	for (unsigned i = 0; i < frame->x_count; i++) {
		double x = CHART_LEFT + chart_px(frame, frame->x[i].at);

		fprintf(to, "<path d=\"M%.1f %.1fv5\"/><text x=\"%.1f\" y=\"%.1f\">", x, bottom, x,
			bottom + 18);
		escape_xml(to, frame->x[i].label);
		fputs("</text>", to);
	}
	fprintf(to, "</g>\n<path class=\"base\" d=\"M%d %.1fh%d\"/>\n", CHART_LEFT, bottom,
		CHART_PLOT_WIDTH);
}

static void put_shade(const struct chart *chart, const struct chart_frame *frame, FILE *to)
{
	double below = chart_px(frame, fmin(chart->shade_below, frame->x_max));
	double above = chart_px(frame, fmax(chart->shade_above, frame->x_min));

	if (below > 0.05)
		fprintf(to,
			"<rect class=\"outside\" x=\"0\" y=\"0\" width=\"%.1f\" height=\"%.1f\"/>",
			below, frame->plot_height);
	if (above < CHART_PLOT_WIDTH - 0.05)
		fprintf(
		    to,
		    "<rect class=\"outside\" x=\"%.1f\" y=\"0\" width=\"%.1f\" height=\"%.1f\"/>",
		    above, CHART_PLOT_WIDTH - above, frame->plot_height);
}

static bool shown(const struct chart *chart, double y)
{
	return isfinite(y) && !(chart->log_scale && y <= 0);
}

static void put_line(const struct chart *chart, const struct chart_frame *frame, unsigned index,
		     FILE *to)
{
	const struct chart_series *series = &chart->series[index];
	bool pen_down = false;

	fprintf(to, "<path class=\"line c%u%s\" data-series=\"%u\" d=\"",
		series->colour % CHART_COLOURS, series->dashed ? " dashed" : "", index);
	for (unsigned i = 0; i < chart->point_count; i++) {
		bool next = i + 1 < chart->point_count && shown(chart, series->y[i + 1]);

		if (!shown(chart, series->y[i])) {
			pen_down = false;
			continue;
		}
		fprintf(to, "%c%.1f %.1f", pen_down ? 'L' : 'M', chart_px(frame, chart->x[i]),
			chart_py(frame, series->y[i]));
		/* A point without neighbours: no length, but a round end. */
		if (!pen_down && !next)
			fputs("h0", to);
		pen_down = true;
	}
	fputs("\"/>\n", to);
}

/* Up to and including series INDEX at point I. */
static double stack_height(const struct chart *chart, unsigned count, unsigned i)
{
	double sum = 0;

	for (unsigned s = 0; s < count; s++) {
		if (isfinite(chart->series[s].y[i]))
			sum += chart->series[s].y[i];
	}
	return sum;
}

/* Points are the middle of their samples; areas fill the first and last to the plot's edges. */
static double area_px(const struct chart *chart, const struct chart_frame *frame, unsigned i)
{
	if (i == 0)
		return 0;
	return i + 1 == chart->point_count ? CHART_PLOT_WIDTH : chart_px(frame, chart->x[i]);
}

static void put_area(const struct chart *chart, const struct chart_frame *frame, unsigned index,
		     FILE *to)
{
	const struct chart_series *series = &chart->series[index];
	unsigned count = chart->point_count;

	fprintf(to, "<path class=\"area a%u\" data-series=\"%u\" d=\"",
		series->colour % CHART_COLOURS, index);
	for (unsigned i = 0; i < count; i++)
		fprintf(to, "%c%.1f %.1f", i ? 'L' : 'M', area_px(chart, frame, i),
			chart_py(frame, stack_height(chart, index + 1, i)));
	for (unsigned i = count; i-- > 0;)
		fprintf(to, "L%.1f %.1f", area_px(chart, frame, i),
			chart_py(frame, stack_height(chart, index, i)));
	fputs(count ? "Z\"/>\n" : "\"/>\n", to);
}

static void put_marks(const struct chart *chart, const struct chart_frame *frame, bool fault,
		      FILE *to)
{
	for (unsigned i = 0; i < chart->mark_count; i++) {
		if (chart->marks[i].fault == fault)
			fprintf(to, "<path class=\"mark %s\" d=\"M%.1f 0v%.0f\"/>",
				fault ? "fault" : "path", chart_px(frame, chart->marks[i].x),
				frame->plot_height);
	}
}

static void put_plot(const struct chart *chart, const struct chart_frame *frame, FILE *to)
{
	fprintf(to,
		"<svg class=\"plot\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%.0f\" "
		"viewBox=\"0 0 %d %.0f\" preserveAspectRatio=\"none\">\n",
		CHART_LEFT, CHART_TOP, CHART_PLOT_WIDTH, frame->plot_height, CHART_PLOT_WIDTH,
		frame->plot_height);
	if (chart->axis == CHART_TIME)
		put_shade(chart, frame, to);
	for (unsigned s = 0; s < chart->series_count; s++) {
		if (chart->stacked)
			put_area(chart, frame, s, to);
		else
			put_line(chart, frame, s, to);
	}
	put_marks(chart, frame, false, to);
	put_marks(chart, frame, true, to); /* on top: they are the causes */
	fputs("\n</svg>\n", to);
}

/* Flags nearer to each other than they are wide share one: "3-5". */
static void put_flags(const struct chart *chart, const struct chart_frame *frame, FILE *to)
{
	enum { SINGLE_WIDTH = 20, SHARED_WIDTH = 38 };

	fputs("<g class=\"flags\">\n", to);
	for (unsigned i = 0; i < chart->mark_count;) {
		const struct chart_mark *first = &chart->marks[i];
		double x = chart_px(frame, first->x);
		bool fault = false;
		unsigned last = i;
		int width;

		while (last + 1 < chart->mark_count &&
		       chart_px(frame, chart->marks[last + 1].x) - x < SHARED_WIDTH)
			last++;
		/* One alone needs less room than the search above kept free. */
		if (last == i + 1 && chart_px(frame, chart->marks[last].x) - x > SINGLE_WIDTH + 2)
			last = i;
		width = last > i ? SHARED_WIDTH : SINGLE_WIDTH;
		for (unsigned k = i; k <= last; k++)
			fault |= chart->marks[k].fault;
		fprintf(to, "<g class=\"flag %s\" data-x=\"%.1f\" transform=\"translate(%.1f 3)\">",
			fault ? "fault" : "path", x, CHART_LEFT + x);
		fputs("<title>", to);
		for (unsigned k = i; k <= last; k++) {
			fprintf(to, "%s%u: ", k > i ? "\n" : "", chart->marks[k].number);
			escape_xml(to, chart->marks[k].text);
		}
		fprintf(to, "</title><rect x=\"%.1f\" width=\"%d\" height=\"15\" rx=\"4\"/>",
			-width / 2.0, width);
		if (last > i)
			fprintf(to, "<text y=\"11.5\">%u\xe2\x80\x93%u</text></g>\n", first->number,
				chart->marks[last].number);
		else
			fprintf(to, "<text y=\"11.5\">%u</text></g>\n", first->number);
		i = last + 1;
	}
	fputs("</g>\n", to);
}

static void put_numbers(const double *values, unsigned count, FILE *to)
{
	fputc('[', to);
	for (unsigned i = 0; i < count; i++) {
		if (i)
			fputc(',', to);
		if (isfinite(values[i]))
			fprintf(to, "%.6g", values[i]);
		else
			fputs("null", to);
	}
	fputc(']', to);
}

/* Numbers only: names are in the legend, so nothing here needs escaping. */
static void put_data(const struct chart *chart, FILE *to)
{
	fputs("<script type=\"application/json\">{\"x\":", to);
	put_numbers(chart->x, chart->point_count, to);
	fputs(",\"y\":[", to);
	for (unsigned s = 0; s < chart->series_count; s++) {
		if (s)
			fputc(',', to);
		put_numbers(chart->series[s].y, chart->point_count, to);
	}
	fputs("]}</script>\n", to);
}

void chart_write(const struct chart *chart, FILE *to)
{
	struct chart_frame frame;

	chart_frame_init(&frame, chart);
	fprintf(to,
		"<figure class=\"chart\" data-unit=\"%s\" data-axis=\"%s\" data-x0=\"%.6g\" "
		"data-x1=\"%.6g\">\n<figcaption><b>",
		unit_names[chart->unit], axis_names[chart->axis], frame.x_min, frame.x_max);
	escape_xml(to, chart->title);
	fputs("</b>", to);
	if (chart->note) {
		fputs(" <span>", to);
		escape_xml(to, chart->note);
		fputs("</span>", to);
	}
	fputs("</figcaption>\n", to);
	put_legend(chart, to);
	fprintf(to, "<div class=\"scroll\"><svg viewBox=\"0 0 %d %u\" role=\"img\" aria-label=\"",
		CHART_WIDTH, chart->height);
	escape_xml(to, chart->title);
	fputs("\">\n", to);
	put_grid(&frame, to);
	put_plot(chart, &frame, to);
	put_flags(chart, &frame, to);
	fputs("</svg></div>\n", to);
	put_data(chart, to);
	fputs("</figure>\n", to);
}
