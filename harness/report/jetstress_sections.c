/* SPDX-License-Identifier: MIT
 *
 * Markup of a Jetstress report, and its tables of I/O.
 *
 * Scripts that people have read these pages by line, by position and by class: a label in
 * `<td class="grid_row_header">` with its value alone on the next line; one `<fieldset>` a section
 * in a fixed order; tables of instances with one head row, then one row an instance and nothing
 * else.  Numbers have three decimals and no marks between thousands.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/report/format.h"
#include "harness/report/jetstress.h"

#define INSTANCES "MSExchange Database ==> Instances"

void jetstress_begin(FILE *to, const char *legend)
{
	fputs("<fieldset>\n<legend>", to);
	escape_xml(to, legend);
	fputs("</legend>\n<table>\n", to);
}

void jetstress_end(FILE *to)
{
	fputs("</table>\n</fieldset>\n", to);
}

void jetstress_label(FILE *to, const char *label)
{
	fputs("<tr>\n<td class=\"grid_row_header\">", to);
	escape_xml(to, label);
	fputs("</td>\n", to);
}

void jetstress_text_cell(FILE *to, const char *text)
{
	fputs("<td>", to);
	escape_xml(to, text);
	fputs("</td>\n", to);
}

void jetstress_cell(FILE *to, double value)
{
	fprintf(to, "<td>%.3f</td>\n", isfinite(value) ? value : 0.0);
}

void jetstress_row(FILE *to, const char *label, const char *value)
{
	jetstress_label(to, label);
	jetstress_text_cell(to, value);
	fputs("</tr>\n", to);
}

void jetstress_columns(FILE *to, const char *names)
{
	fputs("<tr>\n", to);
	while (*names) {
		char name[80];
		size_t length = strcspn(names, "|");

		snprintf(name, sizeof name, "%.*s", (int)length, names);
		fputs("<th class=\"grid_column_header\">", to);
		escape_xml(to, name);
		fputs("</th>\n", to);
		names += length + (names[length] == '|');
	}
	fputs("</tr>\n", to);
}

static double to_ms(double ns)
{
	return ns / (double)NS_PER_MS;
}

/* Six columns: latency, rate and mean size of reads and of writes.  MORE: reads that count with
 * them, may be NULL. */
static void put_six(const struct exchange_view *view, const struct exchange_io_view *reads,
		    const struct exchange_io_view *more, const struct exchange_io_view *writes,
		    FILE *to)
{
	jetstress_cell(to, to_ms(exchange_mean_ns(reads, more)));
	jetstress_cell(to, to_ms(exchange_mean_ns(writes, NULL)));
	jetstress_cell(to, exchange_rate(view, reads->ios + (more ? more->ios : 0)));
	jetstress_cell(to, exchange_rate(view, writes->ios));
	jetstress_cell(to, exchange_mean_bytes(reads, more));
	jetstress_cell(to, exchange_mean_bytes(writes, NULL));
}

static const char twelve_columns[] =
    INSTANCES "|I/O Database Reads Average Latency (msec)"
	      "|I/O Database Writes Average Latency (msec)"
	      "|I/O Database Reads/sec|I/O Database Writes/sec"
	      "|I/O Database Reads Average Bytes|I/O Database Writes Average Bytes"
	      "|I/O Log Reads Average Latency (msec)|I/O Log Writes Average Latency (msec)"
	      "|I/O Log Reads/sec|I/O Log Writes/sec"
	      "|I/O Log Reads Average Bytes|I/O Log Writes Average Bytes";

/* The transactional table leaves maintenance and replication out; its log reads are zeros. */
static void put_transactional(const struct exchange_view *view,
			      const struct exchange_server_view *server, FILE *to)
{
	static const struct exchange_io_view none;

	jetstress_begin(to, "Transactional I/O Performance");
	jetstress_columns(to, twelve_columns);
	for (unsigned i = 0; i < server->active_count; i++) {
		const struct exchange_database_view *db = &server->databases[i];

		jetstress_label(to, db->name);
		put_six(view, &db->io[EXCHANGE_DB_READ], NULL, &db->io[EXCHANGE_DB_WRITE], to);
		put_six(view, &none, NULL, &db->io[EXCHANGE_LOG_WRITE], to);
		fputs("</tr>\n", to);
	}
	jetstress_end(to);
}

/* Two columns of one kind of read. */
static void put_reads(const struct exchange_view *view, const struct exchange_server_view *server,
		      enum exchange_stream_kind kind, const char *legend, const char *columns,
		      FILE *to)
{
	jetstress_begin(to, legend);
	jetstress_columns(to, columns);
	for (unsigned i = 0; i < server->active_count; i++) {
		const struct exchange_io_view *io = &server->databases[i].io[kind];

		jetstress_label(to, server->databases[i].name);
		jetstress_cell(to, exchange_rate(view, io->ios));
		jetstress_cell(to, exchange_mean_bytes(io, NULL));
		fputs("</tr>\n", to);
	}
	jetstress_end(to);
}

/* I/O errors, counted per volume; only when there were some. */
static void put_errors(const struct exchange_view *view, const struct exchange_server_view *server,
		       FILE *to)
{
	const struct record *record = view->record;
	bool any = false;

	for (unsigned i = 0; i < record->stream_count; i++) {
		const struct record_stream *stream = &record->streams[i];
		char name[200], text[32];

		if (!stream->errors || !stream->host || strcmp(stream->host, server->host) != 0)
			continue;
		if (!any) {
			fputs("</table>\n<table>\n", to);
			jetstress_columns(to, "Volume|I/O Errors");
		}
		any = true;
		snprintf(name, sizeof name, "%s %s", stream->volume ? stream->volume : "",
			 stream->name ? stream->name : "");
		snprintf(text, sizeof text, "%llu", (unsigned long long)stream->errors);
		jetstress_row(to, name, text);
	}
}

static void put_total(const struct exchange_view *view, const struct exchange_server_view *server,
		      FILE *to)
{
	jetstress_begin(to, "Total I/O Performance");
	jetstress_columns(to, twelve_columns);
	for (unsigned i = 0; i < server->active_count; i++) {
		const struct exchange_database_view *db = &server->databases[i];

		jetstress_label(to, db->name);
		put_six(view, &db->io[EXCHANGE_DB_READ], &db->io[EXCHANGE_BDM_READ],
			&db->io[EXCHANGE_DB_WRITE], to);
		put_six(view, &db->io[EXCHANGE_LOG_READ], NULL, &db->io[EXCHANGE_LOG_WRITE], to);
		fputs("</tr>\n", to);
	}
	put_errors(view, server, to);
	jetstress_end(to);
}

void jetstress_io_sections(const struct exchange_view *view,
			   const struct exchange_server_view *server, FILE *to)
{
	put_transactional(view, server, to);
	put_reads(view, server, EXCHANGE_BDM_READ,
		  "Background Database Maintenance I/O Performance",
		  INSTANCES "|Database Maintenance IO Reads/sec"
			    "|Database Maintenance IO Reads Average Bytes",
		  to);
	put_reads(view, server, EXCHANGE_LOG_READ, "Log Replication I/O Performance",
		  INSTANCES "|I/O Log Reads/sec|I/O Log Reads Average Bytes", to);
	put_total(view, server, to);
}
