/* SPDX-License-Identifier: MIT
 *
 * The summary in ESRP's manner: one list of servers over all runs, and a sheet a chapter.
 */
#include "harness/report/esrp.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "harness/report/directory.h"
#include "harness/report/jetstress.h"
#include "harness/report/sheet.h"
#include "harness/report/writers.h"

struct esrp {
	const struct esrp_run *runs;
	struct exchange_view **views; /* one a run; NULL: no test of Jetstress' kind */
	unsigned count, tests;
	bool html;
	FILE *to;
	int status;
};

typedef void (*server_fn)(struct sheet *sheet, const struct exchange_view *view,
			  const struct exchange_server_view *server);

static void put(struct esrp *esrp, struct sheet *sheet, const char *nothing)
{
	int r = sheet_put(sheet, nothing, esrp->html, esrp->to);

	esrp->status = esrp->status ? esrp->status : r;
}

/* Begins a row with the server's name, the run's before it where there are several. */
static void put_name(const struct esrp *esrp, struct sheet *sheet, unsigned run,
		     const struct exchange_server_view *server)
{
	const char *name = esrp->runs[run].name;

	sheet_row(sheet);
	if (esrp->count > 1 && name)
		sheet_cell(sheet, "%s: %s", name, server->host);
	else
		sheet_cell(sheet, "%s", server->host);
}

/* A row for every server of every run of the kind TEST; EXCHANGE_TESTS: of all kinds. */
static void each_server(const struct esrp *esrp, enum exchange_test_kind test, struct sheet *sheet,
			server_fn fill)
{
	for (unsigned i = 0; i < esrp->count; i++) {
		const struct exchange_view *view = esrp->views[i];

		if (!view || (test != EXCHANGE_TESTS && view->test != test))
			continue;
		for (unsigned s = 0; s < view->server_count; s++) {
			put_name(esrp, sheet, i, &view->servers[s]);
			fill(sheet, view, &view->servers[s]);
		}
	}
}

static double sum_of(const struct exchange_view *view, const char *key)
{
	double sum = 0;

	for (unsigned s = 0; s < view->server_count; s++) {
		double value = exchange_number(view->servers[s].json, key);

		sum += isfinite(value) ? value : 0;
	}
	return sum;
}

/* What was simulated is told of the largest test: others may have left servers out. */
static const struct exchange_view *largest(const struct esrp *esrp)
{
	const struct exchange_view *best = NULL;

	for (unsigned i = 0; i < esrp->count; i++) {
		const struct exchange_view *view = esrp->views[i];

		if (view && (!best || view->server_count > best->server_count))
			best = view;
	}
	return best;
}

__attribute__((format(printf, 3, 4))) static void put_fact(struct sheet *sheet, const char *name,
							   const char *format, ...)
{
	char value[200];
	va_list ap;

	va_start(ap, format);
	vsnprintf(value, sizeof value, format, ap);
	va_end(ap);
	sheet_row(sheet);
	sheet_cell(sheet, "%s", name);
	sheet_cell(sheet, "%s", value);
}

static void put_mailboxes(struct sheet *sheet, const struct exchange_view *view, unsigned databases)
{
	double mailboxes = sum_of(view, "mailboxes"), target = sum_of(view, "target_iops");

	if (mailboxes <= 0)
		return;
	put_fact(sheet, "Mailboxes simulated", "%.0f", mailboxes);
	if (view->server_count)
		put_fact(sheet, "Mailboxes per server", "%.0f", mailboxes / view->server_count);
	if (databases)
		put_fact(sheet, "Mailboxes per database", "%.0f", mailboxes / databases);
	put_fact(sheet, "Simulated profile (IOPS per mailbox)", "%.4g", target / mailboxes);
}

static void put_configuration(struct esrp *esrp)
{
	const struct exchange_view *view = largest(esrp);
	unsigned databases = 0;
	double bytes = 0;
	struct sheet sheet;
	char text[40];

	sheet_begin(&sheet, "Simulated Exchange configuration", NULL);
	for (unsigned s = 0; s < view->server_count; s++) {
		const struct exchange_server_view *server = &view->servers[s];

		databases += server->active_count;
		for (unsigned i = 0; i < server->active_count; i++)
			bytes += (double)server->databases[i].initial_bytes;
	}
	put_mailboxes(&sheet, view, databases);
	put_fact(&sheet, "Servers", "%u", view->server_count);
	put_fact(&sheet, "Databases", "%u", databases);
	if (view->server_count) {
		put_fact(&sheet, "Databases per server", "%.3g",
			 (double)databases / view->server_count);
		put_fact(&sheet, "Copies per database", "%.0f",
			 fmax(1, exchange_number(view->servers[0].json, "copies")));
	}
	put_fact(&sheet, "Total database size", "%s", text_bytes(text, sizeof text, bytes));
	put(esrp, &sheet, "not told");
}

static void fill_run(struct sheet *sheet, const struct exchange_view *view,
		     const struct exchange_server_view *server)
{
	char start[48], length[40];

	sheet_cell(sheet, "%s", jetstress_types[view->test]);
	sheet_cell(sheet, "%s", jetstress_time(start, sizeof start, view->record->start_wall_ns));
	sheet_cell(sheet, "%s",
		   text_duration(length, sizeof length, view->window_s * (double)NS_PER_S));
	sheet_cell(sheet, "%s", exchange_server_passed(view, server) ? "Pass" : "Fail");
}

static void fill_stress(struct sheet *sheet, const struct exchange_view *view,
			const struct exchange_server_view *server)
{
	const json_t *checksum = json_object_get(view->json, "checksum");
	double pages = exchange_number(checksum, "pages");
	uint64_t errors = 0;
	char length[40];

	for (unsigned k = 0; k < EXCHANGE_STREAM_KINDS; k++)
		errors += exchange_total(server, k).errors;
	sheet_cell(sheet, "%s",
		   text_duration(length, sizeof length, view->window_s * (double)NS_PER_S));
	sheet_cell(sheet, "%" PRIu64, errors);
	sheet_cell(sheet, "%" PRIu64, view->record->mismatches_total);
	if (isfinite(pages)) {
		sheet_cell(sheet, "%.0f", pages);
		sheet_cell(sheet, "%.0f", fmax(0, exchange_number(checksum, "bad")));
	} else {
		sheet_cell(sheet, "not run");
		sheet_cell(sheet, "-");
	}
	sheet_cell(sheet, "%s", exchange_server_passed(view, server) ? "Pass" : "Fail");
}

static void fill_io(struct sheet *sheet, const struct exchange_view *view, double target_iops,
		    const struct exchange_io_view io[EXCHANGE_STREAM_KINDS])
{
	const struct exchange_io_view *read = &io[EXCHANGE_DB_READ],
				      *write = &io[EXCHANGE_DB_WRITE],
				      *log = &io[EXCHANGE_LOG_WRITE];

	sheet_cell(sheet, "%.3f", exchange_rate(view, read->ios + write->ios));
	sheet_cell(sheet, "%.3f", target_iops);
	sheet_cell(sheet, "%.3f", exchange_rate(view, read->ios));
	sheet_cell(sheet, "%.3f", exchange_rate(view, write->ios));
	sheet_cell(sheet, "%.3f", exchange_mean_ns(read, NULL) / (double)NS_PER_MS);
	sheet_cell(sheet, "%.3f", exchange_mean_ns(write, NULL) / (double)NS_PER_MS);
	sheet_cell(sheet, "%.3f", exchange_rate(view, log->ios));
	sheet_cell(sheet, "%.3f", exchange_mean_ns(log, NULL) / (double)NS_PER_MS);
}

static void fill_performance(struct sheet *sheet, const struct exchange_view *view,
			     const struct exchange_server_view *server)
{
	struct exchange_io_view io[EXCHANGE_STREAM_KINDS];

	for (unsigned k = 0; k < EXCHANGE_STREAM_KINDS; k++)
		io[k] = exchange_total(server, k);
	fill_io(sheet, view, server->target_iops, io);
}

/* Rates add up, latencies are weighted; only servers of one run have run at the same time. */
static void put_all_servers(struct sheet *sheet, const struct esrp *esrp, unsigned run)
{
	const struct exchange_view *view = esrp->views[run];
	struct exchange_io_view io[EXCHANGE_STREAM_KINDS] = {0};

	for (unsigned s = 0; s < view->server_count; s++) {
		for (unsigned k = 0; k < EXCHANGE_STREAM_KINDS; k++) {
			struct exchange_io_view one = exchange_total(&view->servers[s], k);

			io[k].ios += one.ios;
			io[k].latency_sum_ns += one.latency_sum_ns;
		}
	}
	sheet_row(sheet);
	if (esrp->count > 1 && esrp->runs[run].name)
		sheet_cell(sheet, "%s: all servers", esrp->runs[run].name);
	else
		sheet_cell(sheet, "all servers");
	fill_io(sheet, view, sum_of(view, "target_iops"), io);
}

static void put_performance(struct esrp *esrp)
{
	struct sheet sheet;

	sheet_begin(&sheet, "Storage performance",
		    "Server|>IOPS|>Target|>DB reads/s|>DB writes/s|>DB read ms|>DB write ms|"
		    ">Log writes/s|>Log write ms");
	for (unsigned i = 0; i < esrp->count; i++) {
		const struct exchange_view *view = esrp->views[i];

		if (!view || view->test != EXCHANGE_PERFORMANCE)
			continue;
		for (unsigned s = 0; s < view->server_count; s++) {
			put_name(esrp, &sheet, i, &view->servers[s]);
			fill_performance(&sheet, view, &view->servers[s]);
		}
		if (view->server_count > 1)
			put_all_servers(&sheet, esrp, i);
	}
	put(esrp, &sheet, "not tested");
}

static void fill_backup(struct sheet *sheet, const struct exchange_view *view,
			const struct exchange_server_view *server)
{
	double sum = 0;

	for (unsigned i = 0; i < server->active_count; i++)
		sum += server->databases[i].backup_bytes_per_s;
	sheet_cell(sheet, "%.2f",
		   server->active_count ? sum / (double)MIB / server->active_count : 0);
	sheet_cell(sheet, "%.2f", sum / (double)MIB);
}

static void fill_recovery(struct sheet *sheet, const struct exchange_view *view,
			  const struct exchange_server_view *server)
{
	double seconds = 0, files = 0;

	for (unsigned i = 0; i < server->active_count; i++) {
		files += server->databases[i].recovery_files;
		seconds += server->databases[i].recovery_seconds;
	}
	sheet_cell(sheet, "%.0f", files);
	sheet_cell(sheet, "%.3f", files > 0 ? seconds / files : 0);
}

/* What papers leave out although it is what makes their figures comparable. */
static void fill_normal(struct sheet *sheet, const struct exchange_view *view,
			const struct exchange_server_view *server)
{
	double mailboxes = exchange_number(server->json, "mailboxes");
	struct hist *reads = calloc(1, sizeof *reads);

	for (unsigned i = 0; reads && i < server->active_count; i++) {
		const struct record_stream *stream =
		    server->databases[i].io[EXCHANGE_DB_READ].stream;

		if (stream)
			hist_merge(reads, &stream->response);
	}
	sheet_cell(sheet, "%s", jetstress_types[view->test]);
	if (mailboxes > 0)
		sheet_cell(sheet, "%.4f", server->achieved_iops / mailboxes);
	else
		sheet_cell(sheet, "-");
	for (size_t q = 0; q < 4; q++) {
		static const double quantiles[] = {0.5, 0.95, 0.99, 0.999};

		sheet_cell(sheet, "%.3f",
			   reads ? (double)hist_quantile_ns(reads, quantiles[q]) / (double)NS_PER_MS
				 : 0);
	}
	free(reads);
}

static void put_chapters(struct esrp *esrp)
{
	struct sheet sheet;

	put_configuration(esrp);

	sheet_begin(&sheet, "Tests", "Server|Test|Start (UTC)|Measured|Result");
	each_server(esrp, EXCHANGE_TESTS, &sheet, fill_run);
	put(esrp, &sheet, "none");

	sheet_begin(&sheet, "Reliability (stress test)",
		    "Server|>Length|>I/O errors|>Bad pages met|>Pages checked after it|"
		    ">Bad among them|Result");
	each_server(esrp, EXCHANGE_STRESS, &sheet, fill_stress);
	put(esrp, &sheet, "not tested");

	put_performance(esrp);

	sheet_begin(&sheet, "Database read-only performance (backup)",
		    "Server|>MB read/s per database|>MB read/s in total");
	each_server(esrp, EXCHANGE_BACKUP, &sheet, fill_backup);
	put(esrp, &sheet, "not tested");

	sheet_begin(&sheet, "Log recovery and replay (soft recovery)",
		    "Server|>Log files replayed|>Average seconds to play one log file");
	each_server(esrp, EXCHANGE_RECOVERY, &sheet, fill_recovery);
	put(esrp, &sheet, "not tested");

	sheet_begin(&sheet, "Comparable figures (added by sanlab)",
		    "Server|Test|>IOPS per mailbox|>DB read p50 ms|>p95 ms|>p99 ms|>p99.9 ms");
	each_server(esrp, EXCHANGE_TESTS, &sheet, fill_normal);
	put(esrp, &sheet, "none");
}

static const char disclaimer[] =
    "A self-test in the form of an ESRP paper, neither reviewed nor certified by anyone. The "
    "figures say what this storage did under this simulated load; they do not replace a test "
    "before deployment.";

static const char page_head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<title>Exchange storage summary</title>\n<style>\n"
    "body { font: 14px/1.5 system-ui, \"DejaVu Sans\", Arial, sans-serif; margin: 1.5em auto; "
    "max-width: 1100px; padding: 0 1em; color: #1a2029; background: #fff; }\n"
    "h2 { font-size: 1.1em; margin: 1.4em 0 .4em; }\n"
    "table { border-collapse: collapse; }\n"
    "td, th { border: 1px solid #dfe3e8; padding: .25em .6em; text-align: left; }\n"
    "th { background: #eef2f6; }\n"
    ".n { text-align: right; font-variant-numeric: tabular-nums; }\n"
    "p { color: #5a6573; }\n"
    "</style>\n</head>\n<body>\n<h1>Exchange storage summary</h1>\n";

static void put_document(struct esrp *esrp)
{
	if (esrp->html)
		fprintf(esrp->to, "%s<p>%s</p>\n", page_head, disclaimer);
	else
		fputs("Exchange storage summary in the manner of an ESRP paper\n", esrp->to);
	put_chapters(esrp);
	if (esrp->tests < esrp->count)
		fprintf(esrp->to,
			esrp->html ? "<p>%u of %u runs were no tests of Jetstress&#39; kind and "
				     "are left out.</p>\n"
				   : "\n%u of %u runs were no tests of Jetstress' kind and are "
				     "left out.\n",
			esrp->count - esrp->tests, esrp->count);
	if (esrp->html)
		fputs("</body>\n</html>\n", esrp->to);
}

int esrp_write(const struct esrp_run *runs, unsigned count, bool html, FILE *to)
{
	struct esrp esrp = {.runs = runs, .count = count, .html = html, .to = to};

	esrp.views = calloc(count + 1U, sizeof(struct exchange_view *));
	if (!esrp.views)
		return -ENOMEM;
	for (unsigned i = 0; i < count && esrp.status == 0; i++) {
		int r = exchange_view_new(runs[i].record, &esrp.views[i]);

		esrp.tests += r == 0;
		if (r < 0 && r != -ENOENT)
			esrp.status = r;
	}
	if (esrp.status == 0 && !esrp.tests)
		esrp.status = -ENOENT;
	if (esrp.status == 0)
		put_document(&esrp);
	for (unsigned i = 0; i < count; i++)
		exchange_view_free(esrp.views[i]);
	free(esrp.views);
	return esrp.status ? esrp.status : ferror(to) ? -EIO : 0;
}

struct esrp_file {
	const struct esrp_run *runs;
	unsigned count;
	bool html;
};

static int esrp_fill(const void *arg, FILE *to)
{
	const struct esrp_file *file = arg;

	return esrp_write(file->runs, file->count, file->html, to);
}

int esrp_write_files(const struct esrp_run *runs, unsigned count, const char *dir, struct err *err)
{
	struct esrp_file page = {runs, count, true}, text = {runs, count, false};
	int r = directory_make(dir, err);

	if (r == 0)
		r = report_write_file(dir, "esrp.html", esrp_fill, &page, err);
	return r < 0 ? r : report_write_file(dir, "esrp.txt", esrp_fill, &text, err);
}

/* The summary of one run, index 0 as a page and 1 as text. */
static int esrp_name(const struct record *record, unsigned index, char name[REPORT_NAME_BYTES])
{
	if (index > 1 || !json_is_object(record->exchange))
		return -ENOENT;
	snprintf(name, REPORT_NAME_BYTES, "esrp.%s", index ? "txt" : "html");
	return 0;
}

static int esrp_part(const struct record *record, unsigned index, FILE *to)
{
	struct esrp_run run = {.record = record};

	return esrp_write(&run, 1, index == 0, to);
}

const struct report_writer esrp_writer = {
    .file = "esrp.@(html|txt)",
    .help = "the servers of a Jetstress-like test together, in the manner of an ESRP paper",
    .name = esrp_name,
    .write_part = esrp_part,
};
