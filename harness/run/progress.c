/* SPDX-License-Identifier: MIT
 *
 * Drawing the progress line.
 */
#include "harness/run/progress.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/text.h"

#define DRAW_NS (250 * NS_PER_MS)

void progress_text(const struct run_progress *progress, char *out, size_t size)
{
	char elapsed[32], length[32], mean[32] = "-", step[80], bad[64] = "";

	snprintf(elapsed, sizeof elapsed, "%llu s",
		 (unsigned long long)(progress->phase_ns / NS_PER_S));
	text_duration(length, sizeof length, (double)progress->phase_length_ns);
	if (progress->iops > 0)
		text_duration(mean, sizeof mean, progress->mean_ns);
	if (strcmp(progress->phase, "prepare") == 0 || strcmp(progress->phase, "verify") == 0)
		snprintf(step, sizeof step, "%.0f %%", progress->done * 100);
	else if (progress->phase_length_ns)
		snprintf(step, sizeof step, "%s of %s", elapsed, length);
	else
		snprintf(step, sizeof step, "%s", elapsed);
	if (progress->errors || progress->mismatches)
		snprintf(bad, sizeof bad, "  %llu errors  %llu mismatches",
			 (unsigned long long)progress->errors,
			 (unsigned long long)progress->mismatches);
	snprintf(out, size, "%-8s %-16s %7.0f IOPS  %9s  %u/%u paths up%s%s%s", progress->phase,
		 step, progress->iops, mean, progress->paths_up, progress->paths, bad,
		 progress->waits_for ? "  " : "", progress->waits_for ? progress->waits_for : "");
}

static unsigned width_of(FILE *to)
{
	struct winsize window;

	if (ioctl(fileno(to), TIOCGWINSZ, &window) == 0 && window.ws_col > 1)
		return window.ws_col - 1U;
	return 79;
}

void progress_draw(struct progress_line *line)
{
	struct run_progress progress;
	char text[200];

	run_engine_progress(line->engine, &progress);
	progress_text(&progress, text, sizeof text);
	fprintf(line->to, "\r%.*s\033[K", (int)width_of(line->to), text);
	fflush(line->to);
	line->drawn = true;
}

static void draw(void *arg)
{
	struct progress_line *line = arg;

	progress_draw(line);
	loop_timer_set(line->loop, &line->timer, loop_now_ns(line->loop) + DRAW_NS);
}

void progress_start(struct progress_line *line, struct loop *loop, const struct run_engine *engine,
		    FILE *to)
{
	*line = (struct progress_line){.to = to, .loop = loop, .engine = engine};
	loop_timer_init(&line->timer, draw, line);
	if (to)
		loop_timer_set(loop, &line->timer, loop_now_ns(loop) + DRAW_NS);
}

void progress_stop(struct progress_line *line)
{
	if (!line->to)
		return;
	loop_timer_cancel(line->loop, &line->timer);
	if (line->drawn) {
		fputs("\r\033[K", line->to);
		fflush(line->to);
	}
	line->to = NULL;
}
