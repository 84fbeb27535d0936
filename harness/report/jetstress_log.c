/* SPDX-License-Identifier: MIT
 *
 * jetstress.log: what a test of Jetstress' kind said while it went on, in Jetstress' form of a
 * line.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "harness/report/jetstress.h"
#include "harness/report/writers.h"

const char *const jetstress_types[] = {"Performance", "Stress", "DatabaseBackup", "SoftRecovery",
				       NULL};

enum { LINE_MAX_BYTES = 1000 };

char *jetstress_time(char *out, size_t size, uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / NS_PER_S);
	struct tm tm;

	if (!gmtime_r(&seconds, &tm))
		snprintf(out, size, "-");
	else
		snprintf(out, size, "%d/%d/%d %d:%02d:%02d %s", tm.tm_mon + 1, tm.tm_mday,
			 tm.tm_year + 1900, tm.tm_hour % 12 ? tm.tm_hour % 12 : 12, tm.tm_min,
			 tm.tm_sec, tm.tm_hour < 12 ? "AM" : "PM");
	return out;
}

char *jetstress_megabytes(char *out, size_t size, double bytes)
{
	if (isfinite(bytes))
		snprintf(out, size, "%.1f MB", bytes / (double)MIB);
	else
		snprintf(out, size, "-");
	return out;
}

void jetstress_log_each(const struct exchange_view *view, const struct exchange_server_view *server,
			jetstress_line_fn line, void *arg)
{
	const json_t *log = json_object_get(view->json, "log");
	const json_t *entry;
	size_t index;

	json_array_foreach(log, index, entry)
	{
		const char *host = exchange_text(entry, "host");
		json_int_t wall_ns = json_integer_value(json_object_get(entry, "wall_ns"));
		char text[LINE_MAX_BYTES], when[48];
		bool named;

		if (server && *host && strcmp(host, server->host) != 0)
			continue;
		jetstress_time(when, sizeof when, wall_ns > 0 ? (uint64_t)wall_ns : 0);
		/* Whose line it is needs no word where there is only one. */
		named = !server && *host && view->server_count > 1;
		snprintf(text, sizeof text, "%s -- %s%s%s", when, named ? host : "",
			 named ? ": " : "", exchange_text(entry, "text"));
		line(arg, text);
	}
}

/* One entry is one line, whatever its text holds. */
static void put_line(void *arg, const char *line)
{
	FILE *to = arg;

	for (; *line; line++)
		fputc((unsigned char)*line < 0x20 ? ' ' : *line, to);
	fputc('\n', to);
}

static int log_name(const struct record *record, unsigned index, char name[REPORT_NAME_BYTES])
{
	if (index || !json_is_object(record->exchange))
		return -ENOENT;
	snprintf(name, REPORT_NAME_BYTES, "jetstress.log");
	return 0;
}

static int log_write(const struct record *record, unsigned index, FILE *to)
{
	struct exchange_view *view;
	int r = exchange_view_new(record, &view);

	if (r < 0)
		return r;
	jetstress_log_each(view, NULL, put_line, to);
	exchange_view_free(view);
	return ferror(to) ? -EIO : 0;
}

const struct report_writer jetstress_log_writer = {
    .file = "jetstress.log",
    .help = "what a Jetstress-like test said, in Jetstress' form of a line (times in UTC)",
    .name = log_name,
    .write_part = log_write,
};
