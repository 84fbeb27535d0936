/* SPDX-License-Identifier: MIT
 *
 * The Exchange section of report.html: each database's latency beside its thresholds, the servers,
 * how the sessions were tuned.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "harness/report/exchange_view.h"
#include "harness/report/format.h"
#include "harness/report/html.h"
#include "harness/report/jetstress.h"

static void put_text(FILE *to, const char *text)
{
	fputs("<td>", to);
	escape_xml(to, text);
	fputs("</td>", to);
}

static void put_figure(FILE *to, const char *class, const char *text)
{
	fprintf(to, "<td class=\"n%s\">", class);
	escape_xml(to, text);
	fputs("</td>", to);
}

static void put_count(FILE *to, uint64_t count)
{
	char text[32];

	put_figure(to, "", format_count(text, sizeof text, count));
}

static void put_real(FILE *to, double value)
{
	char text[32];

	put_figure(to, "", format_real(text, sizeof text, value));
}

static void put_bytes(FILE *to, double bytes)
{
	char text[32];

	put_figure(to, "", isfinite(bytes) ? text_bytes(text, sizeof text, bytes) : "-");
}

/* "14.4 ms of 20 ms"; CLASS when it is above. */
static void put_against(FILE *to, double ns, double limit_ns, uint64_t count, const char *class)
{
	char text[80], value[32], limit[32];

	format_latency(value, sizeof value, ns, count);
	if (limit_ns > 0)
		snprintf(text, sizeof text, "%s of %s", value,
			 text_duration(limit, sizeof limit, limit_ns));
	else
		snprintf(text, sizeof text, "%s", value);
	put_figure(to, limit_ns > 0 && count && ns > limit_ns ? class : "", text);
}

static void put_columns(FILE *to, const char *names)
{
	fputs("<div class=\"scroll\"><table>\n<thead><tr>", to);
	while (*names) {
		size_t length = strcspn(names, "|");
		bool figures = *names == '>';

		fprintf(to, "<th scope=\"col\"%s>%.*s</th>", figures ? " class=\"n\"" : "",
			(int)(length - figures), names + figures);
		names += length + (names[length] == '|');
	}
	fputs("</tr></thead>\n<tbody>\n", to);
}

static void put_end(FILE *to)
{
	fputs("</tbody></table></div>\n", to);
}

static void put_database(const struct exchange_view *view, const struct exchange_database_view *db,
			 FILE *to)
{
	const struct exchange_io_view *read = &db->io[EXCHANGE_DB_READ];
	const struct exchange_io_view *write = &db->io[EXCHANGE_DB_WRITE];
	const struct exchange_io_view *log = &db->io[EXCHANGE_LOG_WRITE];

	fputs("<tr>", to);
	put_text(to, db->name);
	put_text(to, db->volume);
	put_text(to, db->passive ? "copy" : "active");
	put_against(to, exchange_mean_ns(read, NULL), view->avg_db_read_ns, read->ios, " bad");
	put_against(to, (double)read->max_sample_ns, view->max_db_read_ns, read->ios, " warn");
	put_against(to, exchange_mean_ns(write, NULL), 0, write->ios, "");
	put_against(to, exchange_mean_ns(log, NULL), view->avg_log_write_ns, log->ios, " bad");
	put_against(to, (double)log->max_sample_ns, view->max_log_write_ns, log->ios, " warn");
	put_real(to, exchange_rate(view, read->ios));
	put_real(to, exchange_rate(view, write->ios));
	put_real(to, exchange_rate(view, log->ios));
	put_count(to, db->transactions);
	put_count(to, db->splits);
	put_bytes(to, (double)db->final_bytes);
	fputs("</tr>\n", to);
}

static void put_databases(const struct exchange_view *view, FILE *to)
{
	put_columns(to, "Database|Volume|Role|>average read|>largest read sample|>average write|"
			">average log write|>largest log write sample|>reads/s|>writes/s|"
			">log writes/s|>transactions|>page splits|>size at the end");
	for (unsigned s = 0; s < view->server_count; s++) {
		const struct exchange_server_view *server = &view->servers[s];

		fputs("<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"14\">", to);
		escape_xml(to, server->host);
		fputs("</th></tr>\n", to);
		for (unsigned i = 0; i < server->database_count; i++)
			put_database(view, &server->databases[i], to);
	}
	put_end(to);
}

static void put_servers(const struct exchange_view *view, FILE *to)
{
	put_columns(to, "Server|Result|>IOPS|>target|>sessions|>cache from|>to|>copies|"
			">page fault stalls");
	for (unsigned s = 0; s < view->server_count; s++) {
		const struct exchange_server_view *server = &view->servers[s];
		bool passed = exchange_server_passed(view, server);

		fputs("<tr>", to);
		put_text(to, server->host);
		fprintf(to, "<td><span class=\"badge %s\">%s</span></td>", passed ? "pass" : "fail",
			passed ? "PASS" : "FAIL");
		put_real(to, server->achieved_iops);
		put_real(to, server->target_iops > 0 ? server->target_iops : NAN);
		put_real(to, server->sessions);
		put_bytes(to, exchange_number(server->json, "cache_min_bytes"));
		put_bytes(to, exchange_number(server->json, "cache_max_bytes"));
		put_real(to, exchange_number(server->json, "copies"));
		put_real(to, exchange_number(server->json, "stalls"));
		fputs("</tr>\n", to);
	}
	put_end(to);
}

/* "15.4 ms, 15.2 ms" */
static void put_latencies(FILE *to, const json_t *list)
{
	const json_t *value;
	char text[32];
	size_t index;

	fputs("<td>", to);
	json_array_foreach(list, index, value)
	{
		fprintf(to, "%s%s", index ? ", " : "",
			text_duration(text, sizeof text, json_number_value(value)));
	}
	fputs("</td>", to);
}

static void put_tuning(const struct exchange_view *view, FILE *to)
{
	const json_t *tuning = json_object_get(view->json, "tuning");
	const json_t *cycles = json_object_get(tuning, "cycles"), *cycle;
	const char *why = exchange_text(tuning, "why");
	size_t index;

	if (!json_array_size(cycles))
		return;
	fputs("<h3>Tuning of the sessions: ", to);
	escape_xml(to, exchange_text(tuning, "result"));
	fputs("</h3>\n", to);
	if (*why) {
		fputs("<p class=\"hint\">", to);
		escape_xml(to, why);
		fputs("</p>\n", to);
	}
	put_columns(to, "Server|>sessions|>IOPS|>target|>transactions/s|database reads|log writes|"
			"Verdict");
	json_array_foreach(cycles, index, cycle)
	{
		fputs("<tr>", to);
		put_text(to, exchange_text(cycle, "host"));
		put_real(to, exchange_number(cycle, "sessions"));
		put_real(to, exchange_number(cycle, "iops"));
		put_real(to, exchange_number(cycle, "target_iops"));
		put_real(to, exchange_number(cycle, "batch_per_s"));
		put_latencies(to, json_object_get(cycle, "read_ns"));
		put_latencies(to, json_object_get(cycle, "log_write_ns"));
		put_text(to, exchange_text(cycle, "verdict"));
		fputs("</tr>\n", to);
	}
	put_end(to);
}

static void put_backups(const struct exchange_view *view, FILE *to)
{
	char rate[32];

	put_columns(to, "Server|Database|>read|>seconds|>rate|>log files replayed|>seconds a file");
	for (unsigned s = 0; s < view->server_count; s++) {
		const struct exchange_server_view *server = &view->servers[s];

		for (unsigned i = 0; i < server->active_count; i++) {
			const struct exchange_database_view *db = &server->databases[i];
			double files = db->recovery_files;
			bool backup = view->test == EXCHANGE_BACKUP;

			fputs("<tr>", to);
			put_text(to, server->host);
			put_text(to, db->name);
			put_bytes(to, backup ? db->backup_bytes : NAN);
			put_real(to, backup ? db->backup_seconds : db->recovery_seconds);
			put_figure(to, "",
				   backup ? text_rate(rate, sizeof rate, db->backup_bytes_per_s)
					  : "-");
			put_real(to, backup ? NAN : files);
			put_real(to, !backup && files > 0 ? db->recovery_seconds / files : NAN);
			fputs("</tr>\n", to);
		}
	}
	put_end(to);
}

int html_exchange(const struct view *view, FILE *to)
{
	struct exchange_view *test;
	int r = exchange_view_new(view->record, &test);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	fprintf(to,
		"<p class=\"legend-note\">Test: %s. Beside each latency its threshold; the "
		"largest sample is the largest mean of a sample. The same in Jetstress&#39; "
		"layout: %s_*.html; over all servers: esrp.html.</p>\n",
		jetstress_types[test->test], jetstress_types[test->test]);
	put_servers(test, to);
	if (test->test == EXCHANGE_BACKUP || test->test == EXCHANGE_RECOVERY)
		put_backups(test, to);
	put_databases(test, to);
	put_tuning(test, to);
	exchange_view_free(test);
	return 0;
}
