/* SPDX-License-Identifier: MIT
 *
 * The part of the summary about a test of Jetstress' kind: servers, databases, tuning.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "harness/report/format.h"
#include "harness/report/jetstress.h"
#include "harness/report/summary.h"

enum { SERVERS_MAX = 16, DATABASES_MAX = 32, CYCLES_MAX = 12 };

static void put_server(const struct exchange_view *view, const struct exchange_server_view *server,
		       FILE *to)
{
	char iops[32], target[32], sessions[32], line[300], low[32], high[32], stalls[32];

	format_real(iops, sizeof iops, server->achieved_iops);
	format_real(target, sizeof target, server->target_iops);
	snprintf(sessions, sizeof sessions, "%.6g session%s", server->sessions,
		 server->sessions == 1 ? "" : "s");
	format_count(stalls, sizeof stalls,
		     (uint64_t)fmax(0, exchange_number(server->json, "stalls")));
	snprintf(
	    line, sizeof line,
	    "%.60s: %s, %s IOPS (target %s), %s, cache %s to %s, %s page fault stalls",
	    server->host, exchange_server_passed(view, server) ? "Pass" : "Fail", iops,
	    server->target_iops > 0 ? target : "none",
	    server->sessions > 0				       ? sessions
	    : strcmp(exchange_text(server->json, "loop"), "open") == 0 ? "open loop"
								       : "no sessions",
	    text_bytes(low, sizeof low, fmax(0, exchange_number(server->json, "cache_min_bytes"))),
	    text_bytes(high, sizeof high,
		       fmax(0, exchange_number(server->json, "cache_max_bytes"))),
	    stalls);
	fputs("  ", to);
	put_wrapped(to, line, 2, 4);
}

/* Mean and, behind it, the largest mean of a sample: "14.4 ms/21.0 ms". */
static void put_latency(const struct exchange_io_view *io, FILE *to)
{
	char mean[32], most[32], both[80];

	snprintf(both, sizeof both, "%s/%s",
		 format_latency(mean, sizeof mean, exchange_mean_ns(io, NULL), io->ios),
		 format_latency(most, sizeof most, (double)io->max_sample_ns, io->ios));
	fprintf(to, " %17s", io->ios ? both : "-");
}

static void put_databases(const struct exchange_view *view, FILE *to)
{
	unsigned left = DATABASES_MAX, more = 0;

	fprintf(to, "  %-20s %17s %17s  %9s %9s\n", "database", "read mean/max", "log write",
		"reads/s", "writes/s");
	for (unsigned s = 0; s < view->server_count; s++) {
		const struct exchange_server_view *server = &view->servers[s];

		for (unsigned i = 0; i < server->active_count; i++) {
			const struct exchange_database_view *db = &server->databases[i];
			char name[200], reads[32], writes[32];

			if (!left) {
				more++;
				continue;
			}
			left--;
			snprintf(name, sizeof name, "%.80s/%.80s", server->host, db->volume);
			fputs("  ", to);
			put_column(to, name, 20);
			put_latency(&db->io[EXCHANGE_DB_READ], to);
			put_latency(&db->io[EXCHANGE_LOG_WRITE], to);
			fprintf(to, "  %9s %9s\n",
				format_real(reads, sizeof reads,
					    exchange_rate(view, db->io[EXCHANGE_DB_READ].ios)),
				format_real(writes, sizeof writes,
					    exchange_rate(view, db->io[EXCHANGE_DB_WRITE].ios)));
		}
	}
	if (more)
		fprintf(to, "  ... and %u more in report.html\n", more);
}

static void put_limits(const struct exchange_view *view, FILE *to)
{
	char text[4][32], line[200];

	if (view->avg_db_read_ns <= 0)
		return;
	snprintf(
	    line, sizeof line,
	    "thresholds: read mean %s, largest sample %s; log write mean %s, largest sample %s",
	    text_duration(text[0], sizeof text[0], view->avg_db_read_ns),
	    text_duration(text[1], sizeof text[1], view->max_db_read_ns),
	    text_duration(text[2], sizeof text[2], view->avg_log_write_ns),
	    text_duration(text[3], sizeof text[3], view->max_log_write_ns));
	fputs("  ", to);
	put_wrapped(to, line, 2, 4);
}

static void put_tuning(const struct exchange_view *view, FILE *to)
{
	const json_t *tuning = json_object_get(view->json, "tuning");
	const json_t *cycles = json_object_get(tuning, "cycles"), *cycle;
	const char *why = exchange_text(tuning, "why");
	size_t index, count = json_array_size(cycles);
	char line[400], iops[32], target[32];

	if (!count)
		return;
	snprintf(line, sizeof line, "tuning %s%s%.300s", exchange_text(tuning, "result"),
		 *why ? ": " : "", why);
	fputs("  ", to);
	put_wrapped(to, line, 2, 4);
	json_array_foreach(cycles, index, cycle)
	{
		if (index == CYCLES_MAX)
			break;
		snprintf(line, sizeof line, "%.60s: %.6g sessions, %s IOPS (target %s): %.200s",
			 exchange_text(cycle, "host"), exchange_number(cycle, "sessions"),
			 format_real(iops, sizeof iops, exchange_number(cycle, "iops")),
			 format_real(target, sizeof target, exchange_number(cycle, "target_iops")),
			 exchange_text(cycle, "verdict"));
		fputs("    ", to);
		put_wrapped(to, line, 4, 6);
	}
	if (count > CYCLES_MAX)
		fprintf(to, "    ... and %zu more in report.html\n", count - CYCLES_MAX);
}

static void put_backup(const struct exchange_server_view *server, FILE *to)
{
	char one[32], all[32], line[200];
	double rate = 0;

	for (unsigned i = 0; i < server->active_count; i++)
		rate += server->databases[i].backup_bytes_per_s;
	snprintf(line, sizeof line, "%.60s: %s read per database, %s in total", server->host,
		 text_rate(one, sizeof one, server->active_count ? rate / server->active_count : 0),
		 text_rate(all, sizeof all, rate));
	fputs("  ", to);
	put_wrapped(to, line, 2, 4);
}

static void put_recovery(const struct exchange_server_view *server, FILE *to)
{
	double files = 0, seconds = 0;
	char line[200], count[32], each[32];

	for (unsigned i = 0; i < server->active_count; i++) {
		files += server->databases[i].recovery_files;
		seconds += server->databases[i].recovery_seconds;
	}
	snprintf(line, sizeof line, "%.60s: %s log files replayed, %s a file", server->host,
		 format_real(count, sizeof count, files),
		 files > 0 ? text_duration(each, sizeof each, seconds / files * (double)NS_PER_S)
			   : "-");
	fputs("  ", to);
	put_wrapped(to, line, 2, 4);
}

int summary_exchange(const struct record *record, summary_title_fn title, const void *arg, FILE *to)
{
	struct exchange_view *view;
	int r = exchange_view_new(record, &view);
	char text[80];

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	snprintf(text, sizeof text, "Exchange (%s)", jetstress_types[view->test]);
	title(arg, text);
	for (unsigned s = 0; s < view->server_count && s < SERVERS_MAX; s++) {
		put_server(view, &view->servers[s], to);
		if (view->test == EXCHANGE_BACKUP)
			put_backup(&view->servers[s], to);
		if (view->test == EXCHANGE_RECOVERY)
			put_recovery(&view->servers[s], to);
	}
	if (view->server_count > SERVERS_MAX)
		fprintf(to, "  ... and %u more in esrp.txt\n", view->server_count - SERVERS_MAX);
	put_databases(view, to);
	put_limits(view, to);
	put_tuning(view, to);
	exchange_view_free(view);
	return 0;
}
