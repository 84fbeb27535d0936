/* SPDX-License-Identifier: MIT
 *
 * Scales with round numbers at their ticks.
 */
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/report/chart_axis.h"
#include "harness/report/format.h"

double chart_px(const struct chart_frame *frame, double x)
{
	return (x - frame->x_min) / (frame->x_max - frame->x_min) * CHART_PLOT_WIDTH;
}

double chart_py(const struct chart_frame *frame, double y)
{
	double part;

	if (frame->log_scale)
		part = log(y / frame->y_min) / log(frame->y_max / frame->y_min);
	else
		part = (y - frame->y_min) / (frame->y_max - frame->y_min);
	return (1 - part) * frame->plot_height;
}

/* Shortest text of a round duration: "500 us", "2 ms", "1 s". */
static void duration_label(char *out, size_t size, double ns)
{
	static const char *const unit[] = {"ns", "us", "ms", "s"};
	size_t i = 0;

	while (i + 1 < ARRAY_SIZE(unit) && ns >= 999.5) {
		ns /= 1000;
		i++;
	}
	snprintf(out, size, "%.3g %s", ns, unit[i]);
}

static void value_label(char *out, size_t size, enum chart_unit unit, double value)
{
	if (unit == CHART_NS)
		duration_label(out, size, value);
	else if (unit == CHART_PERCENT)
		snprintf(out, size, "%.3g %%", value);
	else if (value >= 1000)
		format_count(out, size, (uint64_t)llround(value));
	else
		snprintf(out, size, "%.3g", value);
}

static void add_tick(struct chart_tick *ticks, unsigned *count, double at, const char *label)
{
	if (*count >= CHART_TICKS_MAX)
		return;
	ticks[*count].at = at;
	snprintf(ticks[*count].label, sizeof ticks[*count].label, "%s", label);
	++*count;
}

/* The largest of 1, 2, 5 times a power of ten that is at most VALUE. */
static double round_below(double value)
{
	double power = pow(10, floor(log10(value) + 1e-9)), head = value / power;

	return (head >= 5 - 1e-9 ? 5 : head >= 2 - 1e-9 ? 2 : 1) * power;
}

static double round_above(double value)
{
	double below = round_below(value);

	if (below >= value * (1 - 1e-9))
		return below;
	return below / pow(10, floor(log10(below) + 1e-9)) > 1.5 &&
		       below / pow(10, floor(log10(below) + 1e-9)) < 3
		   ? below * 2.5
		   : below * 2;
}

struct range {
	double min, max; /* NaN while empty */
};

static void range_add(struct range *range, double value)
{
	range->min = fmin(range->min, value); /* fmin and fmax pass over NaN */
	range->max = fmax(range->max, value);
}

static struct range values_of(const struct chart *chart)
{
	struct range range = {NAN, NAN};

	for (unsigned i = 0; i < chart->point_count; i++) {
		double sum = 0;

		for (unsigned s = 0; s < chart->series_count; s++) {
			double y = chart->series[s].y[i];

			if (!isfinite(y) || (chart->log_scale && y <= 0))
				continue;
			sum += y;
			range_add(&range, chart->stacked ? sum : y);
		}
	}
	return range;
}

static void linear_scale(struct chart_frame *frame, const struct chart *chart, struct range range)
{
	double top = range.max > 0 ? range.max * 1.04 : 1, step;
	char label[32];

	if (chart->unit == CHART_PERCENT)
		top = 100;
	step = round_above(top / 5);
	frame->y_min = 0;
	frame->y_max = chart->unit == CHART_PERCENT ? 100 : ceil(top / step - 1e-9) * step;
	for (unsigned i = 0; i <= (unsigned)llround(frame->y_max / step); i++) {
		value_label(label, sizeof label, chart->unit, i * step);
		add_tick(frame->y, &frame->y_count, i * step, label);
	}
}

static void log_scale(struct chart_frame *frame, const struct chart *chart, struct range range)
{
	double low = isfinite(range.min) ? range.min : 1e5, decades;
	double high = isfinite(range.max) ? range.max : 1e7;
	char label[32];
	bool fine;

	frame->y_min = round_below(low);
	frame->y_max = round_above(high * 1.05);
	if (frame->y_max < frame->y_min * 4.9)
		frame->y_max = frame->y_min * 10;
	decades = log10(frame->y_max / frame->y_min);
	fine = decades <= 2.5;
	for (int exponent = (int)floor(log10(frame->y_min) + 1e-9);
	     exponent <= (int)ceil(log10(frame->y_max)); exponent++) {
		static const double heads[] = {1, 2, 5};

		for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
			double at = heads[i] * pow(10, exponent);

			if ((i && !fine) || at < frame->y_min * 0.999 || at > frame->y_max * 1.001)
				continue;
			value_label(label, sizeof label, chart->unit, at);
			add_tick(frame->y, &frame->y_count, at, label);
		}
	}
}

static void time_label(char *out, size_t size, double s, double step)
{
	uint64_t whole = (uint64_t)llround(fmax(s, 0));
	unsigned hours = (unsigned)(whole / 3600), minutes = (unsigned)(whole / 60 % 60);

	if (step < 1)
		snprintf(out, size, "%.3g s", s);
	else if (step < 60 && whole < 600)
		snprintf(out, size, "%u s", (unsigned)whole);
	else if (hours)
		snprintf(out, size, "%u:%02u:%02u", hours, minutes, (unsigned)(whole % 60));
	else
		snprintf(out, size, "%u:%02u", minutes, (unsigned)(whole % 60));
}

/* Steps people count time in; report.js has the same list. */
static void time_ticks(struct chart_frame *frame)
{
	static const double steps[] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05,  0.1,   0.2,   0.5,
				       1,     2,     5,	    10,	  15,	30,    60,    120,   300,
				       600,   900,   1800,  3600, 7200, 14400, 21600, 43200, 86400};
	double span = frame->x_max - frame->x_min, step = steps[0];
	char label[32];

	for (size_t i = 0; i < ARRAY_SIZE(steps) && span / step > 10; i++)
		step = steps[i];
	while (span / step > 10)
		step *= 2;
	for (long long k = llround(ceil(frame->x_min / step - 1e-9));
	     (double)k * step <= frame->x_max + 1e-9; k++) {
		time_label(label, sizeof label, (double)k * step, step);
		add_tick(frame->x, &frame->x_count, (double)k * step, label);
	}
}

static void nines_ticks(struct chart_frame *frame)
{
	static const char *const labels[] = {"0 %",	"90 %",	    "99 %",	 "99.9 %",
					     "99.99 %", "99.999 %", "99.9999 %", "99.99999 %"};

	add_tick(frame->x, &frame->x_count, 0, labels[0]);
	add_tick(frame->x, &frame->x_count, -log10(0.5), "50 %");
	for (size_t i = 1; i < ARRAY_SIZE(labels) && (double)i <= frame->x_max + 1e-9; i++)
		add_tick(frame->x, &frame->x_count, (double)i, labels[i]);
}

static void rate_ticks(struct chart_frame *frame)
{
	double step = round_above((frame->x_max - frame->x_min) / 8);
	char label[32];

	for (long long k = llround(ceil(frame->x_min / step - 1e-9));
	     (double)k * step <= frame->x_max * 1.0001; k++) {
		value_label(label, sizeof label, CHART_PER_S, (double)k * step);
		add_tick(frame->x, &frame->x_count, (double)k * step, label);
	}
}

void chart_frame_init(struct chart_frame *frame, const struct chart *chart)
{
	memset(frame, 0, sizeof *frame);
	frame->x_min = chart->x_min;
	frame->x_max = chart->x_max > chart->x_min ? chart->x_max : chart->x_min + 1;
	frame->plot_height = (double)chart->height - CHART_TOP - CHART_BOTTOM;
	frame->log_scale = chart->log_scale;
	if (chart->log_scale)
		log_scale(frame, chart, values_of(chart));
	else
		linear_scale(frame, chart, values_of(chart));
	if (chart->axis == CHART_TIME)
		time_ticks(frame);
	else if (chart->axis == CHART_RATE)
		rate_ticks(frame);
	else
		nines_ticks(frame);
}
