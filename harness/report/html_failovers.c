/* SPDX-License-Identifier: MIT
 *
 * Failovers: for each fault a time axis of its own, with the longest response times above and one
 * bar a lost path below: undetected, re-issue, backlog, away, and when the fence came down.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "harness/report/format.h"
#include "harness/report/html.h"

enum {
	FIGURES_MAX = 12,
	ROWS_MAX = 16, /* of a figure */
	TABLE_MAX = 200,
	LEFT = 240,
	WIDTH = 720,
	STRIP = 84, /* height of the latency above */
	ROW = 22,
	TICKS = 6,
};

/* The failovers [first, end) of one fault, and the time that is shown. */
struct figure {
	const struct record *record;
	unsigned first, end;
	uint64_t zero_ns, from_ns, to_ns;
};

static const struct {
	enum record_instant from, to;
	const char *colour, *what;
} bars[] = {
    {RECORD_FAULT, RECORD_LOST, "lost", "not noticed"},
    {RECORD_LOST, RECORD_FIRST_SUCCESS, "reissue", "re-issued, nothing back yet"},
    {RECORD_FIRST_SUCCESS, RECORD_DRAINED, "backlog", "backlog"},
    {RECORD_DRAINED, RECORD_UP_AGAIN, "away", "path away"},
    {RECORD_UP_AGAIN, RECORD_FIRST_IO, "back", "back, unused"},
};

static uint64_t earliest(const struct record_failover *failover)
{
	return failover->at_ns[RECORD_FAULT] ? failover->at_ns[RECORD_FAULT]
					     : failover->at_ns[RECORD_LOST];
}

/* The last instant that a figure has to show: a path that stays away for long would press the
 * failover itself into a line. */
static uint64_t latest(const struct record_failover *failover)
{
	enum { WORTH = 4 };
	uint64_t from_ns = earliest(failover), at_ns = from_ns;

	for (unsigned k = RECORD_LOST; k <= RECORD_FENCED; k++)
		at_ns = MAX_OF(at_ns, failover->at_ns[k]);
	for (unsigned k = RECORD_UP_AGAIN; k <= RECORD_FIRST_IO; k++)
		if (failover->at_ns[k] < from_ns + WORTH * (at_ns - from_ns))
			at_ns = MAX_OF(at_ns, failover->at_ns[k]);
	return at_ns;
}

static bool same_fault(const struct record_failover *a, const struct record_failover *b)
{
	return a->at_ns[RECORD_FAULT] && a->at_ns[RECORD_FAULT] == b->at_ns[RECORD_FAULT];
}

static void find_figure(struct figure *figure)
{
	const struct record_failover *failovers = figure->record->failovers;
	uint64_t last_ns = latest(&failovers[figure->first]), room_ns;

	figure->zero_ns = earliest(&failovers[figure->first]);
	figure->end = figure->first + 1;
	while (figure->end < figure->record->failover_count &&
	       same_fault(&failovers[figure->first], &failovers[figure->end])) {
		uint64_t end_ns = latest(&failovers[figure->end++]);

		last_ns = MAX_OF(last_ns, end_ns);
	}
	room_ns = MAX_OF((last_ns - figure->zero_ns) / 12, 20 * NS_PER_MS);
	figure->from_ns = figure->zero_ns - MIN_OF(room_ns, figure->zero_ns);
	figure->to_ns = last_ns + room_ns;
}

static double x_of(const struct figure *figure, uint64_t at_ns)
{
	double part = (double)(at_ns - figure->from_ns) / (double)(figure->to_ns - figure->from_ns);

	return LEFT + WIDTH * fmin(fmax(part, 0), 1);
}

static void put_ticks(const struct figure *figure, unsigned height, FILE *to)
{
	double from_s = -(double)(figure->zero_ns - figure->from_ns) / 1e9;
	double to_s = (double)(figure->to_ns - figure->zero_ns) / 1e9;
	double step = pow(10, floor(log10((to_s - from_s) / TICKS)));

	while ((to_s - from_s) / step > TICKS)
		step *= (to_s - from_s) / step > 2.5 * TICKS ? 5 : 2;
	for (long i = lround(ceil(from_s / step)); (double)i * step <= to_s; i++) {
		double at = (double)i * step;
		double x = LEFT + WIDTH * (at - from_s) / (to_s - from_s);

		fprintf(
		    to,
		    "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%u\"/>"
		    "<text class=\"tick\" x=\"%.1f\" y=\"%u\" text-anchor=\"middle\">%.6g</text>\n",
		    x, x, height, x, height + 14, at);
	}
}

/* The longest response of all streams that ended in the sample. */
static uint64_t longest_of(const struct record *record, const struct record_sample *sample)
{
	uint64_t longest_ns = 0;

	for (unsigned s = 0; s < record->stream_count; s++)
		longest_ns = MAX_OF(longest_ns, sample->streams[s].max_ns);
	return longest_ns;
}

static void put_strip(const struct figure *figure, FILE *to)
{
	const struct record *record = figure->record;
	const double low = 4, high = 10.5; /* 10 us to 30 s, as powers of ten of a nanosecond */
	char label[32];

	for (unsigned decade = 5; decade <= 10; decade++) {
		double y = STRIP * (1 - (decade - low) / (high - low));

		text_duration(label, sizeof label, pow(10, decade));
		fprintf(to,
			"<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
			"<text class=\"tick\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			LEFT, LEFT + WIDTH, y, y, LEFT - 6, y + 4, label);
	}
	fputs("<text class=\"tick\" x=\"0\" y=\"14\">longest response</text>\n", to);
	for (unsigned i = 0; i < record->sample_count; i++) {
		const struct record_sample *sample = &record->samples[i];
		uint64_t begin_ns = sample->at_ns - MIN_OF(sample->length_ns, sample->at_ns);
		uint64_t longest_ns = longest_of(record, sample);
		double part, x, end;

		if (!longest_ns || sample->at_ns < figure->from_ns || begin_ns > figure->to_ns)
			continue;
		part = fmin(fmax((log10((double)longest_ns) - low) / (high - low), 0.01), 1);
		x = x_of(figure, MAX_OF(begin_ns, figure->from_ns));
		end = x_of(figure, MIN_OF(sample->at_ns, figure->to_ns));
		fprintf(to,
			"<rect class=\"longest\" x=\"%.1f\" width=\"%.1f\" y=\"%.1f\" "
			"height=\"%.1f\"><title>%s</title></rect>\n",
			x, fmax(end - x, 0.5), STRIP * (1 - part), STRIP * part,
			text_duration(label, sizeof label, (double)longest_ns));
	}
}

static void put_bar(const struct figure *figure, const struct record_failover *failover, size_t bar,
		    double y, FILE *to)
{
	uint64_t from_ns = failover->at_ns[bars[bar].from], to_ns = failover->at_ns[bars[bar].to];
	char length[32];
	double x;

	/* What has not ended lasts until the end of the figure. */
	if (!from_ns || (to_ns && to_ns < from_ns))
		return;
	if (!to_ns && bars[bar].to == RECORD_UP_AGAIN)
		to_ns = figure->to_ns;
	if (!to_ns)
		return;
	x = x_of(figure, from_ns);
	fprintf(to,
		"<rect class=\"fo %s\" x=\"%.1f\" width=\"%.1f\" y=\"%.1f\" height=\"%d\">"
		"<title>%s: %s</title></rect>\n",
		bars[bar].colour, x, fmax(x_of(figure, to_ns) - x, 1), y, ROW - 8, bars[bar].what,
		text_duration(length, sizeof length, (double)(to_ns - from_ns)));
}

static void put_row(const struct figure *figure, const struct record_failover *failover, double y,
		    FILE *to)
{
	uint64_t fenced_ns = failover->at_ns[RECORD_FENCED];
	char name[120];

	snprintf(name, sizeof name, "%.16s/%.16s %.24s", failover->host ? failover->host : "",
		 failover->volume ? failover->volume : "",
		 failover->portal ? failover->portal : "");
	fprintf(to, "<text x=\"0\" y=\"%.1f\">", y + ROW - 11);
	escape_xml(to, name);
	fputs("</text>\n", to);
	for (size_t i = 0; i < ARRAY_SIZE(bars); i++)
		put_bar(figure, failover, i, y, to);
	if (fenced_ns) {
		double x = x_of(figure, fenced_ns);

		fprintf(to,
			"<path class=\"fo fenced\" d=\"M%.1f %.1fl5 %dl-10 0z\"><title>fence down: "
			"%s</title></path>\n",
			x, y + ROW - 14, 9, failover->proof ? failover->proof : "");
	}
}

static void put_figure(const struct figure *figure, FILE *to)
{
	const struct record_failover *first = &figure->record->failovers[figure->first];
	unsigned rows = MIN_OF(figure->end - figure->first, (unsigned)ROWS_MAX);
	unsigned height = STRIP + 12 + rows * ROW;
	char clock[32];

	fputs("<figure class=\"failover\"><figcaption>", to);
	escape_xml(to, first->fault ? first->fault : "no fault of the timeline");
	fprintf(to, " <small>at %s; the axis counts seconds from it",
		format_clock(clock, sizeof clock, figure->zero_ns));
	if (figure->end - figure->first > rows)
		fprintf(to, "; the first %u of %u paths", rows, figure->end - figure->first);
	fprintf(to,
		"</small></figcaption>\n<div class=\"scroll\"><svg viewBox=\"0 0 %d %u\" "
		"role=\"img\" aria-label=\"failover timeline\">\n",
		LEFT + WIDTH + 10, height + 20);
	put_ticks(figure, height, to);
	put_strip(figure, to);
	for (unsigned i = 0; i < rows; i++)
		put_row(figure, &figure->record->failovers[figure->first + i], STRIP + 10 + i * ROW,
			to);
	fputs("</svg></div></figure>\n", to);
}

static void put_legend(FILE *to)
{
	fputs("<p class=\"legend-note\">", to);
	for (size_t i = 0; i < ARRAY_SIZE(bars); i++)
		fprintf(to, "<span class=\"swatch fo %s\"></span> %s ", bars[i].colour,
			bars[i].what);
	fputs("<span class=\"swatch fo fenced\"></span> fence down: nothing of the old session can "
	      "arrive any more</p>\n",
	      to);
}

static void put_after(FILE *to, const struct record_failover *failover, enum record_instant instant)
{
	uint64_t from_ns = earliest(failover), at_ns = failover->at_ns[instant];
	char text[32] = "-";

	if (at_ns >= from_ns && at_ns)
		text_duration(text, sizeof text, (double)(at_ns - from_ns));
	fprintf(to, "<td class=\"n\">%s</td>", text);
}

static void put_text(FILE *to, const char *text)
{
	fputs("<td>", to);
	escape_xml(to, text ? text : "-");
	fputs("</td>", to);
}

static void put_table(const struct record *record, FILE *to)
{
	char clock[32];

	fputs("<div class=\"scroll\"><table><thead><tr><th class=\"n\">fault at</th><th>host</th>"
	      "<th>volume</th><th>portal</th><th class=\"n\">found after</th><th>by</th>"
	      "<th class=\"n\">re-issued</th><th class=\"n\">first re-issue</th>"
	      "<th class=\"n\">first success</th><th>through</th><th class=\"n\">drained</th>"
	      "<th class=\"n\">fence down</th><th>by</th><th class=\"n\">up again</th>"
	      "<th class=\"n\">first I/O</th></tr></thead><tbody>\n",
	      to);
	for (unsigned i = 0; i < record->failover_count && i < TABLE_MAX; i++) {
		const struct record_failover *failover = &record->failovers[i];

		fprintf(to, "<tr><td class=\"n\">%s</td>",
			format_clock(clock, sizeof clock, earliest(failover)));
		put_text(to, failover->host);
		put_text(to, failover->volume);
		put_text(to, failover->portal);
		put_after(to, failover, RECORD_LOST);
		put_text(to, failover->by);
		fprintf(to, "<td class=\"n\">%" PRIu64 "</td>", failover->reissued);
		put_after(to, failover, RECORD_FIRST_REISSUE);
		put_after(to, failover, RECORD_FIRST_SUCCESS);
		put_text(to, failover->other);
		put_after(to, failover, RECORD_DRAINED);
		put_after(to, failover, RECORD_FENCED);
		put_text(to, failover->proof);
		put_after(to, failover, RECORD_UP_AGAIN);
		put_after(to, failover, RECORD_FIRST_IO);
		fputs("</tr>\n", to);
	}
	fputs("</tbody></table></div>\n", to);
	if (record->failover_count > TABLE_MAX)
		fprintf(to, "<p>%u more are in run.json.</p>\n",
			record->failover_count - TABLE_MAX);
}

void html_failovers(const struct view *view, FILE *to)
{
	struct figure figure = {.record = view->record};

	put_legend(to);
	for (unsigned count = 0; count < FIGURES_MAX && figure.first < view->record->failover_count;
	     count++) {
		find_figure(&figure);
		put_figure(&figure, to);
		figure.first = figure.end;
	}
	put_table(view->record, to);
}
