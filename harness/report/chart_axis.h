/* SPDX-License-Identifier: MIT
 *
 * The geometry of a chart: where values are on the paper, and which get a label.
 */
#ifndef SANLAB_HARNESS_REPORT_CHART_AXIS_H
#define SANLAB_HARNESS_REPORT_CHART_AXIS_H

#include "harness/report/chart.h"

/* The drawing in user units; the page scales it. */
enum {
	CHART_WIDTH = 960,
	CHART_LEFT = 62,
	CHART_RIGHT = 30,
	CHART_TOP = 22,
	CHART_BOTTOM = 26,
	CHART_PLOT_WIDTH = CHART_WIDTH - CHART_LEFT - CHART_RIGHT,
	CHART_TICKS_MAX = 24,
};

struct chart_tick {
	double at;
	char label[32];
};

struct chart_frame {
	double x_min, x_max, y_min, y_max; /* what the plot's edges stand for */
	double plot_height;
	bool log_scale;
	struct chart_tick x[CHART_TICKS_MAX], y[CHART_TICKS_MAX];
	unsigned x_count, y_count;
};

void chart_frame_init(struct chart_frame *frame, const struct chart *chart);
/* Positions inside the plot, from its upper left corner. */
double chart_px(const struct chart_frame *frame, double x);
double chart_py(const struct chart_frame *frame, double y);

#endif
