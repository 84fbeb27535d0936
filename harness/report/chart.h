/* SPDX-License-Identifier: MIT
 *
 * Charts of the HTML report as inline SVG: lines or stacked areas over a shared x axis, with
 * legend, event flags and the data for the page's script beside them.  Equal input gives equal
 * bytes.  Without the script a chart is still whole; it only lacks hover, zoom and hiding.
 */
#ifndef SANLAB_HARNESS_REPORT_CHART_H
#define SANLAB_HARNESS_REPORT_CHART_H

#include <stdbool.h>
#include <stdio.h>

enum chart_unit {
	CHART_PER_S,   /* a rate of anything, per second */
	CHART_MIB,     /* MiB/s */
	CHART_NS,      /* a duration */
	CHART_PERCENT, /* 0 to 100 */
};

enum chart_axis {
	CHART_TIME,  /* x in seconds */
	CHART_NINES, /* x is -log10(1 - quantile): 0 is 0 %, 2 is 99 % */
	CHART_RATE,  /* x in I/Os a second */
};

enum { CHART_COLOURS = 8, CHART_POINTS_MAX = 600, CHART_MARKS_MAX = 200 };

struct chart_series {
	const char *name;
	unsigned colour; /* modulo CHART_COLOURS */
	bool dashed;
	const double *y; /* NaN: nothing to show there */
};

/* A vertical line with a numbered flag; marks are in order of x. */
struct chart_mark {
	double x;
	unsigned number; /* of the event list */
	bool fault;	 /* else a path event */
	const char *text;
};

struct chart {
	const char *title, *note; /* note may be NULL */
	enum chart_unit unit;
	enum chart_axis axis;
	bool stacked;	/* areas on top of each other */
	bool log_scale; /* of y; values <= 0 are left out */
	unsigned height;
	double x_min, x_max;
	double shade_below, shade_above; /* x outside is shaded: not measured */
	const double *x;
	unsigned point_count;
	const struct chart_series *series;
	unsigned series_count;
	const struct chart_mark *marks;
	unsigned mark_count;
};

void chart_write(const struct chart *chart, FILE *to);

#endif
