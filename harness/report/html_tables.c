/* SPDX-License-Identifier: MIT
 *
 * The tables of report.html.  Every chart has its numbers in one of them.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "harness/report/format.h"
#include "harness/report/html.h"
#include "harness/report/writers.h"

enum { EVENTS_MAX = 2000 };

static void put_cell(FILE *to, const char *text)
{
	fputs("<td>", to);
	escape_xml(to, text);
	fputs("</td>", to);
}

static void put_number(FILE *to, const char *text)
{
	fputs("<td class=\"n\">", to);
	escape_xml(to, text);
	fputs("</td>", to);
}

static void put_count(FILE *to, uint64_t count)
{
	char text[32];

	put_number(to, format_count(text, sizeof text, count));
}

/* A counter that is better zero stands out when it is not: BAD for harm done, else a warning. */
static void put_trouble(FILE *to, uint64_t count, bool bad)
{
	char text[32];

	fprintf(to, "<td class=\"n%s\">%s</td>",
		!count ? ""
		: bad  ? " bad"
		       : " warn",
		format_count(text, sizeof text, count));
}

static void put_real(FILE *to, double value)
{
	char text[32];

	put_number(to, format_real(text, sizeof text, value));
}

static void put_latency(FILE *to, double ns, uint64_t count)
{
	char text[32];

	put_number(to, format_latency(text, sizeof text, ns, count));
}

static void put_quantiles(FILE *to, const struct hist *hist, const double *quantiles, size_t count)
{
	put_latency(to, hist_mean_ns(hist), hist->count);
	for (size_t i = 0; i < count; i++)
		put_latency(to, (double)hist_quantile_ns(hist, quantiles[i]), hist->count);
	put_latency(to, (double)hist->max_ns, hist->count);
}

/* The head of a table: names with '|' between; those after '>' are numbers. */
static void put_head(FILE *to, const char *names)
{
	fputs("<div class=\"scroll\"><table>\n<thead><tr>", to);
	while (*names) {
		size_t length = strcspn(names, "|");
		bool number = *names == '>';

		fprintf(to, "<th scope=\"col\"%s>%.*s</th>", number ? " class=\"n\"" : "",
			(int)(length - number), names + number);
		names += length + (names[length] == '|');
	}
	fputs("</tr></thead>\n", to);
}

static void put_end(FILE *to)
{
	fputs("</table></div>\n", to);
}

static void put_evidence(void *arg, const char *key, const char *value)
{
	FILE *to = arg;

	fputs("<li><code>", to);
	escape_xml(to, key);
	fputs("</code> ", to);
	escape_xml(to, value);
	fputs("</li>", to);
}

static void put_check(const struct record_verdict *verdict, FILE *to)
{
	const char *name = verdict_names[verdict->status];

	fprintf(to, "<tr><td><span class=\"badge %s\">%s</span></td><td>", name,
		verdict->status == VERDICT_PASS	  ? "PASS"
		: verdict->status == VERDICT_FAIL ? "FAIL"
						  : "SKIP");
	escape_xml(to, verdict->text);
	fputs(" <small>", to);
	escape_xml(to, verdict->id);
	fputs("</small>", to);
	if (verdict->hint) {
		fputs("<p class=\"hint\">", to);
		escape_xml(to, verdict->hint);
		fputs("</p>", to);
	}
	/* What passed keeps its evidence folded. */
	if (json_object_size(verdict->evidence) > 0) {
		fprintf(to, "<details class=\"evidence\"%s><summary>Evidence</summary><ul>",
			verdict->status == VERDICT_FAIL ? " open" : "");
		evidence_each(verdict->evidence, put_evidence, to);
		fputs("</ul></details>", to);
	}
	fputs("</td></tr>\n", to);
}

void html_checks(const struct view *view, FILE *to)
{
	static const enum verdict_status order[] = {VERDICT_FAIL, VERDICT_SKIP, VERDICT_PASS};
	const struct record *record = view->record;

	if (!record->verdict_count) {
		fputs("<p>Nothing was checked.</p>\n", to);
		return;
	}
	put_head(to, "Result|Check");
	fputs("<tbody>\n", to);
	/* What went wrong comes first. */
	for (size_t o = 0; o < ARRAY_SIZE(order); o++) {
		for (unsigned i = 0; i < record->verdict_count; i++) {
			if (record->verdicts[i].status == order[o])
				put_check(&record->verdicts[i], to);
		}
	}
	fputs("</tbody>", to);
	put_end(to);
}

void html_kinds(const struct view *view, FILE *to)
{
	static const double quantiles[] = {0.5, 0.9, 0.95, 0.99, 0.999};

	if (!view->kind_count)
		return;
	put_head(to,
		 "Kind|>I/Os|>planned /s|>achieved /s|>MiB/s|>mean|>p50|>p90|>p95|>p99|>p99.9|>max|"
		 ">service mean|>errors");
	fputs("<tbody>\n", to);
	for (unsigned k = 0; k < view->kind_count; k++) {
		const struct view_kind *kind = &view->kinds[k];

		fprintf(to, "<tr><td class=\"name\"><i class=\"dot k%u\"></i>", k % 8);
		escape_xml(to, kind->name);
		fputs("</td>", to);
		put_count(to, kind->ios);
		put_real(to, kind->planned_per_s > 0 ? kind->planned_per_s : NAN);
		put_real(to, view_rate(view, (double)kind->ios));
		put_real(to, view_rate(view, (double)kind->bytes) / (double)MIB);
		put_quantiles(to, &kind->response, quantiles, ARRAY_SIZE(quantiles));
		put_latency(to, hist_mean_ns(&kind->service), kind->service.count);
		put_trouble(to, kind->errors, true);
		fputs("</tr>\n", to);
	}
	fputs("</tbody>", to);
	put_end(to);
}

/* Rows come in groups of one host and volume; a group begins with its name. */
struct group {
	const char *host, *volume;
	bool open;
};

static bool differs(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") != 0;
}

static void group_row(struct group *group, const char *host, const char *volume, unsigned columns,
		      FILE *to)
{
	if (group->open && !differs(group->host, host) && !differs(group->volume, volume))
		return;
	fprintf(to, "%s<tbody>\n<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"%u\">",
		group->open ? "</tbody>\n" : "", columns);
	escape_xml(to, host);
	fputs(" / ", to);
	escape_xml(to, volume);
	fputs("</th></tr>\n", to);
	*group = (struct group){.host = host, .volume = volume, .open = true};
}

static void put_path(const struct view *view, const struct record_path *path, FILE *to)
{
	static const double quantiles[] = {0.99};
	char share[32];

	fprintf(to, "<tr><td class=\"n\">%u</td>", path->index);
	put_cell(to, path->portal);
	fprintf(to, "<td><span class=\"state%s\">", differs(path->state, "up") ? " bad" : "");
	escape_xml(to, path->state);
	fputs("</span></td>", to);
	put_count(to, path->ios);
	put_number(to, format_share(share, sizeof share, path->share));
	put_count(to, path->reads);
	put_count(to, path->writes);
	put_real(to, view_rate(view, (double)path->read_bytes + (double)path->write_bytes) /
			 (double)MIB);
	put_quantiles(to, &path->latency, quantiles, ARRAY_SIZE(quantiles));
	put_trouble(to, path->errors, true);
	put_trouble(to, path->retries, false);
	put_trouble(to, path->losses, false);
	put_trouble(to, path->reissued, false);
	put_count(to, path->logins);
	fputs("</tr>\n", to);
}

static void put_portals(const struct view *view, FILE *to)
{
	static const double quantiles[] = {0.5, 0.99};
	char low[32], high[32];

	put_head(to, "Host|Portal|State|>paths|>I/Os|>share|>of its volume|>MiB/s|>mean|>p50|>p99|"
		     ">max|>lost|>re-issued");
	fputs("<tbody>\n", to);
	for (unsigned p = 0; p < view->portal_count; p++) {
		const struct view_portal *portal = &view->portals[p];
		char share[32], range[72];

		fprintf(to, "<tr><td class=\"name\"><i class=\"dot k%u\"></i>", p < 7 ? p : 7);
		escape_xml(to, portal->host);
		fputs("</td>", to);
		put_cell(to, portal->portal);
		fprintf(to, "<td><span class=\"state%s\">",
			portal->paths_up < portal->paths ? " bad" : "");
		escape_xml(to, portal->state);
		fputs("</span></td>", to);
		put_count(to, portal->paths);
		put_count(to, portal->ios);
		put_number(to, format_share(share, sizeof share, portal->share));
		snprintf(range, sizeof range, "%s \xe2\x80\x93 %s",
			 format_share(low, sizeof low, portal->share_min),
			 format_share(high, sizeof high, portal->share_max));
		put_number(to, range);
		put_real(to, view_rate(view, (double)portal->bytes) / (double)MIB);
		put_quantiles(to, &portal->latency, quantiles, ARRAY_SIZE(quantiles));
		put_trouble(to, portal->losses, false);
		put_trouble(to, portal->reissued, false);
		fputs("</tr>\n", to);
	}
	fputs("</tbody>", to);
	put_end(to);
}

void html_paths(const struct view *view, FILE *to)
{
	const struct record *record = view->record;
	struct group group = {0};

	if (!record->path_count) {
		fputs("<p>No paths were recorded.</p>\n", to);
		return;
	}
	put_portals(view, to);
	fprintf(to, "<details%s><summary>Every path</summary>\n",
		record->path_count <= 8 ? " open" : "");
	put_head(to, ">Path|Portal|State|>I/Os|>share|>reads|>writes|>MiB/s|>mean|>p99|>max|"
		     ">errors|>retries|>lost|>re-issued|>logins");
	for (unsigned i = 0; i < record->path_count; i++) {
		group_row(&group, record->paths[i].host, record->paths[i].volume, 16, to);
		put_path(view, &record->paths[i], to);
	}
	fputs("</tbody>", to);
	put_end(to);
	fputs("</details>\n", to);
}

static void put_stream(const struct view *view, unsigned index, FILE *to)
{
	static const double quantiles[] = {0.5, 0.9, 0.95, 0.99};
	const struct record_stream *stream = &view->record->streams[index];
	double achieved = view_rate(view, (double)stream->ios);
	char share[32], size[32];
	bool planned = stream->planned_per_s > 0;

	fprintf(to, "<tr><td class=\"name\"><i class=\"dot k%u\"></i>",
		view->kind_of_stream[index] % 8);
	escape_xml(to, stream->name);
	fputs("</td>", to);
	put_real(to, planned ? stream->planned_per_s : NAN);
	put_real(to, achieved);
	put_number(to, format_share(share, sizeof share,
				    planned ? achieved / stream->planned_per_s : NAN));
	put_real(to, view_rate(view, (double)stream->bytes) / (double)MIB);
	put_number(to, stream->ios ? text_bytes(size, sizeof size,
						(double)stream->bytes / (double)stream->ios)
				   : "-");
	put_quantiles(to, &stream->response, quantiles, ARRAY_SIZE(quantiles));
	put_latency(to, hist_mean_ns(&stream->service), stream->service.count);
	put_latency(to, (double)stream->max_gap_ns, stream->max_gap_ns);
	put_trouble(to, stream->errors, true);
	fputs("</tr>\n", to);
}

void html_volumes(const struct view *view, FILE *to)
{
	const struct record *record = view->record;
	struct group group = {0};

	if (!record->stream_count) {
		fputs("<p>No streams were recorded.</p>\n", to);
		return;
	}
	put_head(
	    to,
	    "Stream|>planned /s|>achieved /s|>of plan|>MiB/s|>average size|>mean|>p50|>p90|>p95|"
	    ">p99|>max|>service mean|>longest gap|>errors");
	for (unsigned i = 0; i < record->stream_count; i++) {
		group_row(&group, record->streams[i].host, record->streams[i].volume, 15, to);
		put_stream(view, i, to);
	}
	fputs("</tbody>", to);
	put_end(to);
}

static void put_event(const struct record_marker *marker, unsigned number, FILE *to)
{
	char clock[32];
	bool fault = marker->kind && strcmp(marker->kind, "fault") == 0;
	bool path = marker->kind && strcmp(marker->kind, "path") == 0;

	fprintf(to, "<tr><td class=\"n\"><span class=\"%s\">%u</span></td>",
		fault  ? "number fault"
		: path ? "number path"
		       : "number",
		number);
	put_number(to, format_clock(clock, sizeof clock, marker->at_ns));
	put_cell(to, marker->kind);
	put_cell(to, marker->host);
	put_cell(to, marker->volume);
	put_cell(to, marker->portal);
	put_cell(to, marker->text);
	fputs("</tr>\n", to);
}

void html_events(const struct view *view, FILE *to)
{
	const struct record *record = view->record;

	if (!record->marker_count) {
		fputs("<p>Nothing out of the ordinary.</p>\n", to);
		return;
	}
	put_head(to, ">No|>Time|Kind|Host|Volume|Portal|What");
	fputs("<tbody>\n", to);
	for (unsigned i = 0; i < record->marker_count && i < EVENTS_MAX; i++)
		put_event(&record->markers[i], i + 1, to);
	fputs("</tbody>", to);
	put_end(to);
	if (record->marker_count > EVENTS_MAX)
		fprintf(to, "<p>%u more are in run.json.</p>\n", record->marker_count - EVENTS_MAX);
}

static void put_json(const json_t *value, FILE *to)
{
	char *text = json_dumps(value, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));

	fputs("<pre>", to);
	escape_xml(to, text);
	fputs("</pre>\n", to);
	free(text);
}

void html_data_check(const struct view *view, FILE *to)
{
	const struct record *record = view->record;

	put_head(to, record->replay
			 ? ">sectors written|>checked while running|>read back at the end|"
			   ">not readable|>mismatches"
			 : ">pages written|>checked while running|>read back at the end|"
			   ">not readable|>mismatches");
	fputs("<tbody>\n<tr>", to);
	put_count(to, record->pages_written);
	put_count(to, record->pages_checked);
	put_count(to, record->pages_read_back);
	put_trouble(to, record->pages_not_readable, true);
	put_trouble(to, record->mismatches_total, true);
	fputs("</tr>\n</tbody>", to);
	put_end(to);
	if (record->mismatches_total && record->mismatches)
		put_json(record->mismatches, to);
}

void html_documents(const struct view *view, FILE *to)
{
	const struct record *record = view->record;

	if (record->environment) {
		fputs("<ul class=\"facts\">", to);
		evidence_each(record->environment, put_evidence, to);
		fputs("</ul>\n", to);
	}
	if (record->config_yaml) {
		fputs("<details><summary>Effective configuration</summary>\n<pre>", to);
		escape_xml(to, record->config_yaml);
		fputs("</pre></details>\n", to);
	}
	if (record->target) {
		fputs("<details><summary>The target's own counters</summary>\n", to);
		put_json(record->target, to);
		fputs("</details>\n", to);
	}
}
