/* SPDX-License-Identifier: MIT
 *
 * <Type>_<date>_<time>.html: the report of one server in Jetstress' layout, one file a server.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "harness/report/format.h"
#include "harness/report/jetstress.h"
#include "harness/report/writers.h"
#include "sanlab_version.h"

static const char style[] =
    "body { font: 13px/1.45 Verdana, \"DejaVu Sans\", Arial, sans-serif; margin: 1.2em; "
    "color: #1a2029; background: #fff; }\n"
    "h1 { font-size: 1.4em; margin: 0; }\n"
    "p { margin: .3em 0 1em; color: #5a6573; }\n"
    "fieldset { border: 1px solid #b9c3cf; margin: 0 0 1.2em; overflow-x: auto; }\n"
    "legend { font-weight: bold; padding: 0 .4em; }\n"
    "table { border-collapse: collapse; margin-bottom: .4em; }\n"
    "td, th { border: 1px solid #dfe3e8; padding: .2em .55em; text-align: left; "
    "vertical-align: top; }\n"
    "th, .grid_row_header { background: #eef2f6; font-weight: bold; }\n"
    ".success { color: #11703c; font-weight: bold; }\n"
    ".failure { color: #b3201c; font-weight: bold; }\n"
    ".log { color: inherit; margin: 0; }\n";

static const char *const titles[EXCHANGE_TESTS] = {
    "Performance Test Result Report",
    "Stress Test Result Report",
    "Database Backup Test Result Report",
    "Soft-Recovery Test Result Report",
};

struct page {
	FILE *to;
	const struct exchange_view *view;
	const struct exchange_server_view *server;
};

__attribute__((format(printf, 3, 4))) static void put_row(const struct page *page,
							  const char *label, const char *format,
							  ...)
{
	char value[500];
	va_list ap;

	va_start(ap, format);
	vsnprintf(value, sizeof value, format, ap);
	va_end(ap);
	jetstress_row(page->to, label, value);
}

static void put_time(const struct page *page, const char *label, uint64_t at_ns)
{
	char text[48];

	jetstress_row(page->to, label,
		      jetstress_time(text, sizeof text, page->view->record->start_wall_ns + at_ns));
}

static void put_result(const struct page *page)
{
	bool passed = exchange_server_passed(page->view, page->server);

	jetstress_label(page->to, "Overall Test Result");
	fprintf(page->to, "<td class=\"%s\">%s</td>\n</tr>\n", passed ? "success" : "failure",
		passed ? "Pass" : "Fail");
}

static void put_summary(const struct page *page)
{
	const struct record *record = page->view->record;
	const char *version = record->version ? record->version : SANLAB_VERSION;
	const char *kernel = exchange_text(record->environment, "kernel");
	const char *description = exchange_text(page->view->json, "description");

	jetstress_begin(page->to, "Test Summary");
	put_result(page);
	put_row(page, "Machine Name", "%s", page->server->host);
	put_row(page, "Test Description", "%s%s%s", record->lab ? record->lab : "",
		*description ? ": " : "", description);
	put_time(page, "Test Start Time", 0);
	put_time(page, "Test End Time", record->end_ns);
	put_time(page, "Collection Start Time", record->window_start_ns);
	put_time(page, "Collection End Time", record->window_end_ns);
	put_row(page, "Jetstress Version", "sanlab %s", version);
	put_row(page, "ESE Version", "sanlab %s, engine %s", version,
		exchange_text(page->view->json, "engine"));
	put_row(page, "Operating System", "%s", *kernel ? kernel : "-");
	put_row(page, "Performance Log", "run.json");
	jetstress_end(page->to);
}

static void put_sizing(const struct page *page)
{
	uint64_t initial_bytes = 0, final_bytes = 0;

	for (unsigned i = 0; i < page->server->active_count; i++) {
		initial_bytes += page->server->databases[i].initial_bytes;
		final_bytes += page->server->databases[i].final_bytes;
	}
	/* Plain figures: scripts find the final size in the fourth row. */
	jetstress_begin(page->to, "Database Sizing and Throughput");
	put_row(page, "Achieved Transactional I/O per Second", "%.3f", page->server->achieved_iops);
	put_row(page, "Target Transactional I/O per Second", "%.10g", page->server->target_iops);
	put_row(page, "Initial Database Size (bytes)", "%" PRIu64, initial_bytes);
	put_row(page, "Final Database Size (bytes)", "%" PRIu64, final_bytes);
	put_row(page, "Database Files (Count)", "%u", page->server->active_count);
	jetstress_end(page->to);
}

static void put_percent(const struct page *page, const char *label, const json_t *mix,
			const char *key)
{
	double percent = exchange_number(mix, key);

	if (isfinite(percent))
		put_row(page, label, "%.10g%%", percent);
	else
		put_row(page, label, "-");
}

static void put_parameters(const struct page *page)
{
	const json_t *json = page->server->json, *mix = json_object_get(json, "mix");
	char minimum[40], maximum[40];

	jetstress_megabytes(minimum, sizeof minimum, exchange_number(json, "cache_min_bytes"));
	jetstress_megabytes(maximum, sizeof maximum, exchange_number(json, "cache_max_bytes"));
	jetstress_begin(page->to, "Jetstress System Parameters");
	put_row(page, "Thread Count", "%.10g", page->server->sessions);
	put_row(page, "Minimum Database Cache", "%s", minimum);
	put_row(page, "Maximum Database Cache", "%s", maximum);
	put_percent(page, "Insert Operations", mix, "insert");
	put_percent(page, "Delete Operations", mix, "delete");
	put_percent(page, "Replace Operations", mix, "replace");
	put_percent(page, "Read Operations", mix, "read");
	put_percent(page, "Lazy Commits", mix, "lazy");
	put_row(page, "Run Background Database Maintenance", "%s",
		json_is_true(json_object_get(json, "bdm")) ? "True" : "False");
	put_row(page, "Number of Copies per Database", "%.0f",
		fmax(1, exchange_number(json, "copies")));
	jetstress_end(page->to);
}

static void put_configuration(const struct page *page)
{
	jetstress_begin(page->to, "Database Configuration");
	for (unsigned i = 0; i < page->server->active_count; i++) {
		const struct exchange_database_view *db = &page->server->databases[i];
		const char *log = *db->log_path	    ? db->log_path
				  : *db->log_volume ? db->log_volume
						    : db->volume;

		put_row(page, db->name, "Log path: %s Database: %s", log,
			*db->file ? db->file : db->volume);
	}
	jetstress_end(page->to);
}

/* "MBytes Transferred/sec" is the fourth cell of the rows Avg and Sum: of one database, of the
 * server. */
static void put_backup_line(const struct page *page, const char *label, double bytes,
			    double seconds, double bytes_per_s)
{
	unsigned long elapsed = (unsigned long)llround(seconds);
	char text[48];

	jetstress_label(page->to, label);
	fprintf(page->to, "<td>%.2f</td>\n", bytes / (double)MIB);
	snprintf(text, sizeof text, "%02lu:%02lu:%02lu", elapsed / 3600, elapsed / 60 % 60,
		 elapsed % 60);
	jetstress_text_cell(page->to, text);
	fprintf(page->to, "<td>%.2f</td>\n</tr>\n", bytes_per_s / (double)MIB);
}

static void put_backup(const struct page *page)
{
	double bytes = 0, seconds = 0, rate = 0, longest = 0;
	unsigned count = page->server->active_count;

	jetstress_begin(page->to, "Database Backup Statistics - All");
	jetstress_columns(page->to, "Database Instance|Database Size (MBytes)|Elapsed Backup Time|"
				    "MBytes Transferred/sec");
	for (unsigned i = 0; i < count; i++) {
		const struct exchange_database_view *db = &page->server->databases[i];

		put_backup_line(page, db->name, db->backup_bytes, db->backup_seconds,
				db->backup_bytes_per_s);
		bytes += db->backup_bytes;
		seconds += db->backup_seconds;
		longest = fmax(longest, db->backup_seconds);
		rate += db->backup_bytes_per_s;
	}
	/* They are read at the same time. */
	put_backup_line(page, "Avg", count ? bytes / count : 0, count ? seconds / count : 0,
			count ? rate / count : 0);
	put_backup_line(page, "Sum", bytes, longest, rate);
	jetstress_end(page->to);
}

static void put_recovery_line(const struct page *page, const char *label, double seconds,
			      double files)
{
	jetstress_label(page->to, label);
	jetstress_cell(page->to, seconds);
	fprintf(page->to, "<td>%.10g</td>\n", files);
	jetstress_cell(page->to, files > 0 ? seconds / files : 0);
	fputs("</tr>\n", page->to);
}

/* Scripts divide the second cell of the last row by the third to get the time to play one log. */
static void put_recovery(const struct page *page)
{
	double seconds = 0, files = 0;
	unsigned count = page->server->active_count;

	jetstress_begin(page->to, "Soft-Recovery Statistics - All");
	jetstress_columns(page->to,
			  "Database Instance|Elapsed seconds|Log files replayed|Seconds per log");
	for (unsigned i = 0; i < count; i++) {
		const struct exchange_database_view *db = &page->server->databases[i];

		put_recovery_line(page, db->name, db->recovery_seconds, db->recovery_files);
		seconds += db->recovery_seconds;
		files += db->recovery_files;
	}
	put_recovery_line(page, "Avg", count ? seconds / count : 0, count ? files / count : 0);
	put_recovery_line(page, "Sum", seconds, files);
	jetstress_end(page->to);
}

static void put_counter(const struct page *page, const char *name, double average, double minimum,
			double maximum)
{
	jetstress_label(page->to, name);
	jetstress_cell(page->to, average);
	jetstress_cell(page->to, minimum);
	jetstress_cell(page->to, maximum);
	fputs("</tr>\n", page->to);
}

static void put_host(const struct page *page)
{
	static const char stalls_name[] = "Database Page Fault Stalls/sec";
	const json_t *json = page->server->json, *counter;
	double stalls = exchange_number(json, "stalls");
	bool told = false;
	size_t index;

	jetstress_begin(page->to, "Host System Performance");
	jetstress_columns(page->to, "Counter|Average|Minimum|Maximum");
	json_array_foreach(json_object_get(json, "host_counters"), index, counter)
	{
		const char *name = exchange_text(counter, "name");

		told = told || strcmp(name, stalls_name) == 0;
		put_counter(page, name, exchange_number(counter, "average"),
			    exchange_number(counter, "minimum"),
			    exchange_number(counter, "maximum"));
	}
	if (!told && isfinite(stalls))
		put_counter(page, stalls_name,
			    page->view->window_s > 0 ? stalls / page->view->window_s : 0, 0,
			    exchange_number(json, "stalls_max_per_s"));
	jetstress_end(page->to);
}

static void put_log_line(void *arg, const char *line)
{
	FILE *to = arg;

	escape_xml(to, line);
	fputs("<br>\n", to);
}

static void put_log(const struct page *page)
{
	fputs("<fieldset>\n<legend>Test Log</legend>\n<p class=\"log\">\n", page->to);
	jetstress_log_each(page->view, page->server, put_log_line, page->to);
	fputs("</p>\n</fieldset>\n", page->to);
}

static void put_page(const struct page *page)
{
	enum exchange_test_kind test = page->view->test;

	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>",
	      page->to);
	fprintf(page->to, "%s: ", titles[test]);
	escape_xml(page->to, page->server->host);
	fprintf(page->to, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<h1>%s</h1>\n", style,
		titles[test]);
	fputs("<p>Written by sanlab in the layout of a Jetstress report. Times are UTC; every mean "
	      "is weighted by the number of I/Os. Sections after the test log are "
	      "sanlab&#39;s.</p>\n",
	      page->to);
	/* What these two tests are about comes first in their reports. */
	if (test == EXCHANGE_BACKUP)
		put_backup(page);
	if (test == EXCHANGE_RECOVERY)
		put_recovery(page);
	put_summary(page);
	put_sizing(page);
	put_parameters(page);
	put_configuration(page);
	jetstress_io_sections(page->view, page->server, page->to);
	put_host(page);
	put_log(page);
	jetstress_added(page->view, page->server, page->to);
	fputs("</body>\n</html>\n", page->to);
}

/* The name tells the kind of test and when it began; with several servers, whose it is. */
static int html_name(const struct record *record, unsigned index, char name[REPORT_NAME_BYTES])
{
	time_t seconds = (time_t)(record->start_wall_ns / NS_PER_S);
	struct exchange_view *view;
	struct tm tm = {0};
	int r = exchange_view_new(record, &view);

	if (r < 0)
		return r;
	if (index < view->server_count) {
		gmtime_r(&seconds, &tm);
		snprintf(name, REPORT_NAME_BYTES, "%s_%d_%d_%d_%d_%d_%d%s%.64s.html",
			 jetstress_types[view->test], tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
			 tm.tm_hour, tm.tm_min, tm.tm_sec, view->server_count > 1 ? "_" : "",
			 view->server_count > 1 ? view->servers[index].host : "");
		report_safe_name(name);
	} else {
		r = -ENOENT;
	}
	exchange_view_free(view);
	return r;
}

static int html_write(const struct record *record, unsigned index, FILE *to)
{
	struct page page = {.to = to};
	struct exchange_view *view;
	int r = exchange_view_new(record, &view);

	if (r < 0)
		return r;
	if (index < view->server_count) {
		page.view = view;
		page.server = &view->servers[index];
		put_page(&page);
	}
	exchange_view_free(view);
	return ferror(to) ? -EIO : 0;
}

const struct report_writer jetstress_html_writer = {
    .file = "@(Performance|Stress|DatabaseBackup|SoftRecovery)_+([0-9])_+([0-9])_+([0-9])_*.html",
    .help = "a Jetstress-like test in the layout of a Jetstress report, one file a server",
    .name = html_name,
    .write_part = html_write,
};
