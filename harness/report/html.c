/* SPDX-License-Identifier: MIT
 *
 * report.html: one file that opens offline, mails well and prints.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/text.h"
#include "harness/report/format.h"
#include "harness/report/html.h"
#include "harness/report/replay_report.h"
#include "harness/report/writers.h"
#include "sanlab_version.h"

static void put_head(const struct record *record, FILE *to)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta name=\"color-scheme\" content=\"light dark\">\n"
	      "<link rel=\"icon\" href=\"data:,\">\n<title>",
	      to);
	fprintf(to, "%s: ", view_result(record));
	escape_xml(to, record->lab ? record->lab : "run");
	fputs(" - sanlab</title>\n<style>\n", to);
	fputs(report_css, to);
	fputs("</style>\n</head>\n<body>\n", to);
}

static void put_fact(FILE *to, const char *name, const char *value)
{
	fprintf(to, "<div><dt>%s</dt><dd>", name);
	escape_xml(to, value);
	fputs("</dd></div>", to);
}

static void put_banner(const struct view *view, FILE *to)
{
	const struct record *record = view->record;
	char headline[700], utc[40], seed[24], window[96], length[32], start[32];

	view_headline(view, headline, sizeof headline);
	fputs("<header>\n<p class=\"brand\">sanlab run report</p>\n<h1>", to);
	escape_xml(to, record->lab ? record->lab : "run");
	fprintf(to, "</h1>\n<div class=\"banner %s\" role=\"status\"><strong>%s</strong><span>",
		record_passed(record) ? "pass" : "fail", view_result(record));
	escape_xml(to, headline);
	fputs("</span></div>\n", to);
	if (record->summary) {
		fputs("<p class=\"plan\">", to);
		escape_xml(to, record->summary);
		fputs("</p>\n", to);
	}
	if (view->window_s > 0)
		snprintf(window, sizeof window, "%s, from %s after the start",
			 text_duration(length, sizeof length, view->window_s * (double)NS_PER_S),
			 text_duration(start, sizeof start, (double)record->window_start_ns));
	else
		snprintf(window, sizeof window, "none");
	snprintf(seed, sizeof seed, "%" PRIu64, record->seed);
	fputs("<dl class=\"facts\">", to);
	put_fact(to, "Started",
		 record->start_wall_ns ? text_utc(utc, sizeof utc, record->start_wall_ns)
				       : "never");
	put_fact(to, "Measured window", window);
	put_fact(to, "Workload", record->workload ? record->workload : "none");
	put_fact(to, "Seed", seed);
	put_fact(to, "Version", record->version ? record->version : SANLAB_VERSION);
	fputs("</dl>\n</header>\n", to);
}

static void put_card(FILE *to, const char *name, const char *value, const char *note, bool bad)
{
	fprintf(to, "<div class=\"card%s\"><span>%s</span><b>", bad ? " bad" : "", name);
	escape_xml(to, value);
	fputs("</b><small>", to);
	escape_xml(to, note);
	fputs("</small></div>\n", to);
}

static void put_latency_card(const struct view *view, bool write, FILE *to)
{
	struct hist *hist = calloc(1, sizeof *hist);
	char mean[32], p99[32], note[64];

	if (!hist)
		return;
	view_latency(view, write, hist);
	snprintf(
	    note, sizeof note, "mean response; p99 %s",
	    format_latency(p99, sizeof p99, (double)hist_quantile_ns(hist, 0.99), hist->count));
	put_card(to, write ? "Write latency" : "Read latency",
		 format_latency(mean, sizeof mean, hist_mean_ns(hist), hist->count), note, false);
	free(hist);
}

static void put_iops_cards(const struct view *view, FILE *to)
{
	const struct record *record = view->record;
	char value[32], planned[32], share[32], note[96];

	if (record->planned_transactional_iops > 0) {
		snprintf(note, sizeof note, "%s of %s planned",
			 format_share(share, sizeof share,
				      record->achieved_transactional_iops /
					  record->planned_transactional_iops),
			 format_real(planned, sizeof planned, record->planned_transactional_iops));
		put_card(to, "Transactional IOPS",
			 format_real(value, sizeof value, record->achieved_transactional_iops),
			 note, false);
	}
	snprintf(note, sizeof note, "%s I/Os in all",
		 format_count(planned, sizeof planned, view->ios));
	put_card(to, "IOPS, all streams", format_real(value, sizeof value, record->total_iops),
		 note, false);
	text_rate(value, sizeof value, view_rate(view, (double)view->bytes));
	text_bytes(share, sizeof share, (double)view->bytes);
	snprintf(note, sizeof note, "%s moved", share);
	put_card(to, "Throughput", value, note, false);
}

static void put_cards(const struct view *view, FILE *to)
{
	const struct record *record = view->record;
	char value[32], note[96], count[32];

	fputs("<section class=\"cards\" aria-label=\"Key figures\">\n", to);
	put_iops_cards(view, to);
	put_latency_card(view, false, to);
	put_latency_card(view, true, to);
	put_card(to, "Longest I/O gap",
		 format_latency(value, sizeof value, (double)view->max_gap_ns, view->ios),
		 "while I/O was due", false);
	snprintf(note, sizeof note, "%s I/Os re-issued, %s failed",
		 format_count(count, sizeof count, view->reissued),
		 format_count(value, sizeof value, view->errors));
	put_card(to, "Path losses", format_count(count, sizeof count, view->losses), note,
		 view->errors > 0);
	snprintf(
	    note, sizeof note, "%s pages checked",
	    format_count(count, sizeof count, record->pages_checked + record->pages_read_back));
	put_card(to, "Data mismatches", format_count(value, sizeof value, record->mismatches_total),
		 note, record->mismatches_total > 0);
	fputs("</section>\n", to);
}

static void put_section(FILE *to, const char *id, const char *title)
{
	fprintf(to, "<section id=\"%s\">\n<h2>%s</h2>\n", id, title);
}

static void put_nav(const struct view *view, FILE *to)
{
	fputs("<nav aria-label=\"Sections\"><a href=\"#checks\">Checks</a>", to);
	if (view->record->exchange)
		fputs("<a href=\"#exchange\">Exchange</a>", to);
	if (view->record->replay)
		fputs("<a href=\"#replay\">Replay</a>", to);
	if (view->record->curve)
		fputs("<a href=\"#curve\">Curve</a>", to);
	fputs("<a href=\"#time\">Over time</a><a href=\"#latency\">Latency</a>"
	      "<a href=\"#paths\">Paths</a>",
	      to);
	if (view->record->failover_count)
		fputs("<a href=\"#failovers\">Failovers</a>", to);
	fputs("<a href=\"#volumes\">Volumes</a><a href=\"#data\">Data</a><a "
	      "href=\"#events\">Events</a><a href=\"#setup\">Set-up</a></nav>\n",
	      to);
}

/* What the load itself has to say. */
static int put_load(const struct view *view, FILE *to)
{
	int r = 0;

	if (view->record->exchange) {
		put_section(to, "exchange", "Exchange databases");
		r = html_exchange(view, to);
		fputs("</section>\n", to);
	}
	if (r == 0 && view->record->curve) {
		put_section(to, "curve", "Latency over throughput");
		r = html_curve(view, to);
		fputs("</section>\n", to);
	}
	return r;
}

static int put_sections(const struct view *view, FILE *to)
{
	int r;

	put_section(to, "checks", "Checks");
	html_checks(view, to);
	fputs("</section>\n", to);

	r = put_load(view, to);
	put_section(to, "time", "Over time");
	fputs("<p class=\"legend-note\">Seconds since the start. Shaded: outside the measured "
	      "window. Numbered flags: <span class=\"number fault\">n</span> fault, <span "
	      "class=\"number path\">n</span> path event, as listed under Events.<span "
	      "class=\"script-only\"> Drag across a chart to zoom, double-click to see all "
	      "again.</span></p>\n",
	      to);
	if (r == 0)
		r = html_time_charts(view, to);
	fputs("</section>\n", to);

	put_section(to, "latency", "Latency");
	if (r == 0 && view->kind_count)
		r = html_latency_chart(view, to);
	html_kinds(view, to);
	fputs("</section>\n", to);

	if (view->record->replay) {
		fputs("<section id=\"replay\">\n", to);
		if (r == 0)
			r = replay_report(view->record, true, to);
		fputs("</section>\n", to);
	}

	put_section(to, "paths", "Paths");
	if (r == 0)
		r = html_share_chart(view, to);
	html_paths(view, to);
	fputs("</section>\n", to);

	if (view->record->failover_count) {
		put_section(to, "failovers", "Failovers");
		html_failovers(view, to);
		fputs("</section>\n", to);
	}

	put_section(to, "volumes", "Volumes: planned and achieved");
	html_volumes(view, to);
	fputs("</section>\n", to);

	put_section(to, "data", "Data check");
	html_data_check(view, to);
	fputs("</section>\n", to);

	put_section(to, "events", "Events");
	html_events(view, to);
	fputs("</section>\n", to);

	put_section(to, "setup", "Set-up");
	html_documents(view, to);
	fputs("</section>\n", to);
	return r;
}

static int html_write(const struct record *record, FILE *to)
{
	struct view *view;
	int r = view_new(record, &view);

	if (r < 0)
		return r;
	put_head(record, to);
	put_banner(view, to);
	put_nav(view, to);
	fputs("<main>\n", to);
	put_cards(view, to);
	r = put_sections(view, to);
	fputs("</main>\n<footer>Latency is response time, counted from the intended start of each "
	      "I/O, unless it says service time. MiB = 1,048,576 bytes.</footer>\n<script>\n",
	      to);
	fputs(report_js, to);
	fputs("</script>\n</body>\n</html>\n", to);
	view_free(view);
	return r < 0 ? r : ferror(to) ? -EIO : 0;
}

const struct report_writer html_writer = {
    .file = "report.html",
    .help = "charts and tables in one file, opens offline",
    .write = html_write,
};
