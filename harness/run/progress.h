/* SPDX-License-Identifier: MIT
 *
 * The live line on a terminal: what the run is doing, drawn over itself.
 */
#ifndef SANLAB_HARNESS_RUN_PROGRESS_H
#define SANLAB_HARNESS_RUN_PROGRESS_H

#include <stdio.h>

#include "harness/run/run.h"

struct progress_line {
	FILE *to; /* NULL: draws nothing */
	struct loop *loop;
	const struct run_engine *engine;
	struct loop_timer timer;
	bool drawn;
};

/* Draws once, now: for loops whose time is not that of who looks on. */
void progress_draw(struct progress_line *line);
/* Draws four times a second from now on. */
void progress_start(struct progress_line *line, struct loop *loop, const struct run_engine *engine,
		    FILE *to);
/* Clears the line.  Harmless when never started. */
void progress_stop(struct progress_line *line);
/* One line of text without the control sequences. */
void progress_text(const struct run_progress *progress, char *out, size_t size);

#endif
