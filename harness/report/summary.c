/* SPDX-License-Identifier: MIT
 *
 * The summary: 80 columns, the answer first, then what it rests on.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "harness/report/format.h"
#include "harness/report/replay_report.h"
#include "harness/report/summary.h"
#include "harness/report/view.h"
#include "harness/report/writers.h"

/* Lines a section may take; the rest is in report.html. */
enum { EVENTS_MAX = 40, PATHS_MAX = 8, PORTALS_MAX = 32, FAILOVERS_MAX = 12 };

struct page {
	FILE *to;
	bool colour;
	const struct view *view;
};

static const char *const result_colours[] = {"\033[32m", "\033[31m", "\033[33m"};
static const char *const result_words[] = {"PASS", "FAIL", "SKIP"};

static void put_result(const struct page *page, enum verdict_status status)
{
	if (page->colour)
		fprintf(page->to, "\033[1m%s%s\033[0m", result_colours[status],
			result_words[status]);
	else
		fputs(result_words[status], page->to);
}

static void put_title(const struct page *page, const char *title)
{
	fprintf(page->to, page->colour ? "\n\033[1m%s\033[0m\n" : "\n%s\n", title);
}

static void begin_section(const void *arg, const char *title)
{
	put_title(arg, title);
}

static void put_head(const struct page *page)
{
	const struct record *record = page->view->record;
	char headline[700], utc[40], window[32], warmup[32];
	bool passed = record_passed(record);

	view_headline(page->view, headline, sizeof headline);
	put_result(page, passed ? VERDICT_PASS : VERDICT_FAIL);
	fputs(": ", page->to);
	put_wrapped(page->to, headline, 6, 6);

	fputc('\n', page->to);
	put_wrapped(page->to, record->lab ? record->lab : "(no lab)", 0, 0);
	if (record->summary)
		put_wrapped(page->to, record->summary, 0, 2);
	if (record->start_wall_ns)
		text_utc(utc, sizeof utc, record->start_wall_ns);
	else
		snprintf(utc, sizeof utc, "never");
	fprintf(page->to, "started %s, seed %" PRIu64 "\n", utc, record->seed);
	if (page->view->window_s > 0)
		fprintf(
		    page->to, "measured %s, from %s after the start\n",
		    text_duration(window, sizeof window, page->view->window_s * (double)NS_PER_S),
		    text_duration(warmup, sizeof warmup, (double)record->window_start_ns));
	else
		fputs("nothing was measured\n", page->to);
}

static void put_checks(const struct page *page)
{
	const struct record *record = page->view->record;

	if (!record->verdict_count)
		return;
	put_title(page, "Checks");
	for (unsigned i = 0; i < record->verdict_count; i++) {
		const struct record_verdict *verdict = &record->verdicts[i];

		fputs("  ", page->to);
		put_result(page, verdict->status);
		fputs("  ", page->to);
		put_wrapped(page->to, verdict->text ? verdict->text : verdict->id, 8, 8);
		if (verdict->status == VERDICT_FAIL && verdict->hint) {
			fputs("        hint: ", page->to);
			put_wrapped(page->to, verdict->hint, 14, 14);
		}
	}
}

static void put_streams(const struct page *page)
{
	const struct view *view = page->view;

	if (!view->kind_count)
		return;
	put_title(page, "Streams (response time, from the intended start)");
	fprintf(page->to, "  %-17s %9s %10s %9s %9s %9s %9s\n", "kind (volumes)", "planned/s",
		"achieved/s", "mean", "p50", "p99", "max");
	for (unsigned k = 0; k < view->kind_count; k++) {
		const struct view_kind *kind = &view->kinds[k];
		const struct hist *hist = &kind->response;
		char name[80], text[6][32];

		snprintf(name, sizeof name, "%.60s (%u)", kind->name, kind->streams);
		fputs("  ", page->to);
		put_column(page->to, name, 17);
		if (kind->planned_per_s > 0)
			format_real(text[0], sizeof text[0], kind->planned_per_s);
		else
			snprintf(text[0], sizeof text[0], "-"); /* closed loop */
		format_real(text[1], sizeof text[1], view_rate(view, (double)kind->ios));
		format_latency(text[2], sizeof text[2], hist_mean_ns(hist), hist->count);
		format_latency(text[3], sizeof text[3], (double)hist_quantile_ns(hist, 0.5),
			       hist->count);
		format_latency(text[4], sizeof text[4], (double)hist_quantile_ns(hist, 0.99),
			       hist->count);
		format_latency(text[5], sizeof text[5], (double)hist->max_ns, hist->count);
		fprintf(page->to, " %9s %10s %9s %9s %9s %9s\n", text[0], text[1], text[2], text[3],
			text[4], text[5]);
	}
}

/* One line of the path table, whether of one path or of all through a portal. */
struct path_line {
	const char *name, *state;
	uint64_t ios, bytes, losses, reissued;
	double share;
	const struct hist *latency;
};

static void put_path_line(const struct page *page, const struct path_line *line)
{
	char ios[32], share[32], rate[32], mean[32], p99[32];

	fputs("  ", page->to);
	put_column(page->to, line->name, 25);
	fprintf(
	    page->to, " %9s %6s %6s %7s %7s ", format_count(ios, sizeof ios, line->ios),
	    format_share(share, sizeof share, line->share),
	    format_mib(rate, sizeof rate, view_rate(page->view, (double)line->bytes)),
	    format_latency(mean, sizeof mean, hist_mean_ns(line->latency), line->latency->count),
	    format_latency(p99, sizeof p99, (double)hist_quantile_ns(line->latency, 0.99),
			   line->latency->count));
	fprintf(page->to, "%.12s", line->state);
	if (line->losses || line->reissued)
		fprintf(page->to,
			"\n      lost %" PRIu64 " time%s, %" PRIu64
			" I/O%s re-issued on another path",
			line->losses, line->losses == 1 ? "" : "s", line->reissued,
			line->reissued == 1 ? "" : "s");
	fputc('\n', page->to);
}

static void put_portals(const struct page *page)
{
	for (unsigned p = 0; p < page->view->portal_count && p < PORTALS_MAX; p++) {
		const struct view_portal *portal = &page->view->portals[p];
		char name[200];
		struct path_line line = {.name = name,
					 .state = portal->state,
					 .ios = portal->ios,
					 .bytes = portal->bytes,
					 .losses = portal->losses,
					 .reissued = portal->reissued,
					 .share = portal->share,
					 .latency = &portal->latency};

		snprintf(name, sizeof name, "%.80s %.80s (%u)", portal->host, portal->portal,
			 portal->paths);
		put_path_line(page, &line);
	}
	if (page->view->portal_count > PORTALS_MAX)
		fprintf(page->to, "  ... and %u more in report.html\n",
			page->view->portal_count - PORTALS_MAX);
}

static void put_single_paths(const struct page *page)
{
	const struct record *record = page->view->record;

	for (unsigned i = 0; i < record->path_count; i++) {
		const struct record_path *path = &record->paths[i];
		char name[280];
		struct path_line line = {.name = name,
					 .state = path->state ? path->state : "-",
					 .ios = path->ios,
					 .bytes = path->read_bytes + path->write_bytes,
					 .losses = path->losses,
					 .reissued = path->reissued,
					 .share = path->share,
					 .latency = &path->latency};

		snprintf(name, sizeof name, "%.80s/%.80s %.80s", path->host ? path->host : "",
			 path->volume ? path->volume : "", path->portal ? path->portal : "");
		put_path_line(page, &line);
	}
}

static void put_paths(const struct page *page)
{
	bool single = page->view->record->path_count <= PATHS_MAX;

	if (!page->view->record->path_count)
		return;
	put_title(page, "Paths");
	fprintf(page->to, "  %-25s %9s %6s %6s %7s %7s %s\n",
		single ? "host/volume portal" : "host portal (paths)", "I/Os", "share", "MiB/s",
		"mean", "p99", "state");
	if (single)
		put_single_paths(page);
	else
		put_portals(page);
}

/* From A to B, or "-" when one of them did not come. */
static const char *span(char *out, size_t size, const struct record_failover *failover,
			enum record_instant a, enum record_instant b)
{
	if (!failover->at_ns[a] || failover->at_ns[b] < failover->at_ns[a])
		snprintf(out, size, "-");
	else
		text_duration(out, size, (double)(failover->at_ns[b] - failover->at_ns[a]));
	return out;
}

static void put_failover(const struct page *page, const struct record_failover *failover)
{
	bool known = failover->at_ns[RECORD_FAULT];
	enum record_instant from = known ? RECORD_FAULT : RECORD_LOST;
	char name[280], clock[32], text[5][32];

	snprintf(name, sizeof name, "%.80s/%.80s %.80s", failover->host ? failover->host : "",
		 failover->volume ? failover->volume : "",
		 failover->portal ? failover->portal : "");
	fputs("  ", page->to);
	put_column(page->to, name, 25);
	fprintf(page->to, " %9s %8s %8s %8s %8s %5" PRIu64 "\n",
		format_clock(clock, sizeof clock, failover->at_ns[from]),
		span(text[0], sizeof text[0], failover, RECORD_FAULT, RECORD_LOST),
		span(text[1], sizeof text[1], failover, from, RECORD_FIRST_SUCCESS),
		span(text[2], sizeof text[2], failover, from, RECORD_DRAINED),
		span(text[3], sizeof text[3], failover, from, RECORD_FIRST_IO), failover->reissued);
	fprintf(page->to, "      found by %s; %s\n",
		failover->by ? failover->by : "nobody knows what",
		failover->fault ? failover->fault : "no fault of the timeline");
}

static void put_failovers(const struct page *page)
{
	const struct record *record = page->view->record;

	if (!record->failover_count)
		return;
	put_title(page, "Failovers (from the fault, or else from when it was found)");
	fprintf(page->to, "  %-25s %9s %8s %8s %8s %8s %5s\n", "host/volume portal", "at", "found",
		"went on", "drained", "back", "I/Os");
	for (unsigned i = 0; i < record->failover_count && i < FAILOVERS_MAX; i++)
		put_failover(page, &record->failovers[i]);
	if (record->failover_count > FAILOVERS_MAX)
		fprintf(page->to, "  ... and %u more in report.html\n",
			record->failover_count - FAILOVERS_MAX);
}

static void put_data_check(const struct page *page)
{
	const struct record *record = page->view->record;
	char checked[32], back[32], wrong[32], unread[32], line[240];

	if (!record->pages_checked && !record->pages_read_back && !record->mismatches_total)
		return;
	put_title(page, "Data check");
	snprintf(line, sizeof line,
		 "%s %s checked while running, %s read back at the end: %s mismatches, "
		 "%s not readable",
		 format_count(checked, sizeof checked, record->pages_checked),
		 record_check_unit(record),
		 format_count(back, sizeof back, record->pages_read_back),
		 format_count(wrong, sizeof wrong, record->mismatches_total),
		 format_count(unread, sizeof unread, record->pages_not_readable));
	fputs("  ", page->to);
	put_wrapped(page->to, line, 2, 2);
}

/* Adds WORD and what FOLLOWS it to LINE, unless TEXT says it already. */
static void add_unless_said(char *line, size_t size, const char *word, const char *follows,
			    const char *text)
{
	size_t used = strlen(line);

	if (word && !strstr(text, word))
		snprintf(line + used, size - used, "%s%s", word, follows);
}

static void put_event(const struct page *page, const struct record_marker *marker)
{
	const char *text = marker->text ? marker->text : "";
	char clock[32], line[800] = "";
	size_t used;

	add_unless_said(line, sizeof line, marker->kind, " ", text);
	add_unless_said(line, sizeof line, marker->host, " ", text);
	add_unless_said(line, sizeof line, marker->volume, " ", text);
	add_unless_said(line, sizeof line, marker->portal, " ", text);
	used = strlen(line);
	snprintf(line + used, sizeof line - used, "%s", text);
	format_clock(clock, sizeof clock, marker->at_ns);
	fprintf(page->to, "  %12s  ", clock);
	put_wrapped(page->to, line, 16, 16);
}

static void put_events(const struct page *page)
{
	const struct record *record = page->view->record;

	if (!record->marker_count)
		return;
	put_title(page, "What happened (since the start)");
	for (unsigned i = 0; i < record->marker_count && i < EVENTS_MAX; i++)
		put_event(page, &record->markers[i]);
	if (record->marker_count > EVENTS_MAX)
		fprintf(page->to, "  ... and %u more in report.html\n",
			record->marker_count - EVENTS_MAX);
}

int report_summary(const struct record *record, FILE *to, bool colour)
{
	struct page page = {.to = to, .colour = colour};
	struct view *view;
	int r = view_new(record, &view);

	if (r < 0)
		return r;
	page.view = view;
	put_head(&page);
	put_checks(&page);
	r = summary_exchange(record, begin_section, &page, to);
	summary_curve(record, begin_section, &page, to);
	put_streams(&page);
	if (r == 0)
		r = replay_report(record, false, to);
	put_paths(&page);
	put_failovers(&page);
	put_data_check(&page);
	put_events(&page);
	view_free(view);
	return r < 0 ? r : ferror(to) ? -EIO : 0;
}

static int summary_write(const struct record *record, FILE *to)
{
	return report_summary(record, to, false);
}

const struct report_writer summary_writer = {
    .file = "summary.txt",
    .help = "the summary as the terminal shows it",
    .write = summary_write,
};
