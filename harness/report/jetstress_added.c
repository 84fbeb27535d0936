/* SPDX-License-Identifier: MIT
 *
 * What a Jetstress report leaves out: which criterion decided, percentiles of every stream, how the
 * sessions were tuned, copies of other servers' databases, the checksum.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/report/format.h"
#include "harness/report/jetstress.h"
#include "harness/report/writers.h"

#define ADDED " (added by sanlab)"

static double to_ms(double ns)
{
	return ns / (double)NS_PER_MS;
}

static void put_criteria(const struct exchange_view *view,
			 const struct exchange_server_view *server, FILE *to)
{
	const struct record *record = view->record;
	static const char *const words[] = {"Pass", "Fail", "Not judged"};
	static const char *const classes[] = {"success", "failure", "skipped"};

	if (!record->verdict_count && !record->error)
		return;
	jetstress_begin(to, "Criteria" ADDED);
	if (record->error)
		jetstress_row(to, "the run ended early", record->error);
	for (unsigned i = 0; i < record->verdict_count; i++) {
		const struct record_verdict *verdict = &record->verdicts[i];

		if (!exchange_concerns(view, server, verdict))
			continue;
		jetstress_label(to, verdict->id);
		/* Not the markup of the overall result, which scripts search the page for. */
		fprintf(to, "<td><span class=\"%s\">%s</span></td>\n", classes[verdict->status],
			words[verdict->status]);
		jetstress_text_cell(to, verdict->text);
		fputs("</tr>\n", to);
	}
	jetstress_end(to);
}

static bool is_of(const struct record_stream *stream, const struct exchange_server_view *server)
{
	return stream->host && strcmp(stream->host, server->host) == 0;
}

static void put_percentiles(const struct exchange_view *view,
			    const struct exchange_server_view *server, FILE *to)
{
	static const double quantiles[] = {0.5, 0.9, 0.95, 0.99, 0.999};
	const struct record *record = view->record;

	jetstress_begin(to, "Latency Percentiles (msec)" ADDED);
	jetstress_columns(to, "Volume, stream|I/Os|I/O/sec|Average Bytes|Average|50 %|90 %|95 %|"
			      "99 %|99.9 %|Maximum of one I/O|Maximum of sample averages");
	for (unsigned i = 0; i < record->stream_count; i++) {
		const struct record_stream *stream = &record->streams[i];
		char label[200], count[32];

		if (!is_of(stream, server))
			continue;
		snprintf(label, sizeof label, "%s %s", stream->volume ? stream->volume : "",
			 stream->name ? stream->name : "");
		jetstress_label(to, label);
		snprintf(count, sizeof count, "%" PRIu64, stream->ios);
		jetstress_text_cell(to, count);
		jetstress_cell(to, exchange_rate(view, stream->ios));
		jetstress_cell(to, stream->ios ? (double)stream->bytes / (double)stream->ios : 0);
		jetstress_cell(to, to_ms(hist_mean_ns(&stream->response)));
		for (size_t q = 0; q < ARRAY_SIZE(quantiles); q++)
			jetstress_cell(
			    to, to_ms((double)hist_quantile_ns(&stream->response, quantiles[q])));
		jetstress_cell(to, to_ms((double)stream->response.max_ns));
		jetstress_cell(to,
			       to_ms((double)exchange_max_sample_ns(record, i, view->sample_ns)));
		fputs("</tr>\n", to);
	}
	jetstress_end(to);
}

static void put_engine(const struct exchange_server_view *server, FILE *to)
{
	jetstress_begin(to, "Databases" ADDED);
	jetstress_columns(to, "Instance|Role|Volume|Log volume|Transactions|Page splits|"
			      "Cached pages at the end|Log files|Growth (bytes)");
	for (unsigned i = 0; i < server->database_count; i++) {
		const struct exchange_database_view *db = &server->databases[i];
		const uint64_t counts[] = {db->transactions, db->splits, db->cached_pages,
					   db->log_files};
		char text[32];

		jetstress_label(to, db->name);
		jetstress_text_cell(to, db->passive ? "copy" : "active");
		jetstress_text_cell(to, db->volume);
		jetstress_text_cell(to, *db->log_volume ? db->log_volume : db->volume);
		for (size_t c = 0; c < ARRAY_SIZE(counts); c++) {
			snprintf(text, sizeof text, "%" PRIu64, counts[c]);
			jetstress_text_cell(to, text);
		}
		snprintf(text, sizeof text, "%" PRId64,
			 (int64_t)(db->final_bytes - db->initial_bytes));
		jetstress_text_cell(to, text);
		fputs("</tr>\n", to);
	}
	jetstress_end(to);
}

static void put_copies(const struct exchange_view *view, FILE *to)
{
	static const char *const counts[] = {
	    "copy_queue_files",	   "replay_queue_files", "updates_replayed", "activations",
	    "activations_refused", "lost_log_files",	 "reseeds"};
	const json_t *copies = json_object_get(view->json, "copies"), *copy;
	size_t index;

	if (!json_array_size(copies))
		return;
	jetstress_begin(to, "Database Copies" ADDED);
	jetstress_columns(to, "Active|Copy|State|Copy queue (log files)|Replay queue (log files)|"
			      "Updates replayed|Activations|Refused|Log files lost|Seeds|"
			      "Activation (msec)|Seed (seconds)|Seeded (bytes)");
	json_array_foreach(copies, index, copy)
	{
		char text[32];

		jetstress_label(to, exchange_text(copy, "active"));
		jetstress_text_cell(to, exchange_text(copy, "passive"));
		jetstress_text_cell(to, exchange_text(copy, "state"));
		for (size_t c = 0; c < ARRAY_SIZE(counts); c++) {
			snprintf(text, sizeof text, "%.0f",
				 fmax(0, exchange_number(copy, counts[c])));
			jetstress_text_cell(to, text);
		}
		jetstress_cell(to, to_ms(exchange_number(copy, "activation_ns")));
		jetstress_cell(to, to_ms(exchange_number(copy, "seed_ns")) / 1000);
		snprintf(text, sizeof text, "%.0f", fmax(0, exchange_number(copy, "seed_bytes")));
		jetstress_text_cell(to, text);
		fputs("</tr>\n", to);
	}
	jetstress_end(to);
}

/* "15.4 15.2" of a list of ns. */
static void list_ms(char *out, size_t size, const json_t *list)
{
	const json_t *value;
	size_t index, used = 0;

	out[0] = '\0';
	json_array_foreach(list, index, value)
	{
		if (used + 16 >= size)
			break;
		used += (size_t)snprintf(out + used, size - used, "%s%.1f", index ? " " : "",
					 to_ms(json_number_value(value)));
	}
}

static bool was_tuned(const json_t *cycles, const struct exchange_server_view *server)
{
	const json_t *cycle;
	size_t index;

	json_array_foreach(cycles, index, cycle)
	{
		if (strcmp(exchange_text(cycle, "host"), server->host) == 0)
			return true;
	}
	return false;
}

static void put_tuning(const struct exchange_view *view, const struct exchange_server_view *server,
		       FILE *to)
{
	const json_t *tuning = json_object_get(view->json, "tuning");
	const json_t *cycles = json_object_get(tuning, "cycles"), *cycle;
	size_t index;

	if (!was_tuned(cycles, server))
		return;
	jetstress_begin(to, "Automatic Tuning" ADDED);
	jetstress_columns(to, "Server|Sessions|IOPS|Target IOPS|Batch transactions/sec|"
			      "Database read latency (msec)|Log write latency (msec)|Verdict");
	json_array_foreach(cycles, index, cycle)
	{
		const char *host = exchange_text(cycle, "host");
		char reads[200], writes[200];

		if (strcmp(host, server->host) != 0)
			continue;
		list_ms(reads, sizeof reads, json_object_get(cycle, "read_ns"));
		list_ms(writes, sizeof writes, json_object_get(cycle, "log_write_ns"));
		jetstress_label(to, host);
		jetstress_cell(to, exchange_number(cycle, "sessions"));
		jetstress_cell(to, exchange_number(cycle, "iops"));
		jetstress_cell(to, exchange_number(cycle, "target_iops"));
		jetstress_cell(to, exchange_number(cycle, "batch_per_s"));
		jetstress_text_cell(to, reads);
		jetstress_text_cell(to, writes);
		jetstress_text_cell(to, exchange_text(cycle, "verdict"));
		fputs("</tr>\n", to);
	}
	fputs("</table>\n<table>\n", to);
	jetstress_row(to, "Result", exchange_text(tuning, "result"));
	if (*exchange_text(tuning, "why"))
		jetstress_row(to, "Why", exchange_text(tuning, "why"));
	jetstress_end(to);
}

static void put_checksum(const struct exchange_view *view, FILE *to)
{
	const json_t *checksum = json_object_get(view->json, "checksum");
	double pages = exchange_number(checksum, "pages");
	char text[200];

	if (!isfinite(pages))
		return;
	jetstress_begin(to, "Database Checksum" ADDED);
	snprintf(text, sizeof text, "%.0f", pages);
	jetstress_row(to, "Pages read", text);
	snprintf(text, sizeof text, "%.0f", fmax(0, exchange_number(checksum, "bad")));
	jetstress_row(to, "Bad pages", text);
	snprintf(text, sizeof text, "%.1f", fmax(0, exchange_number(checksum, "seconds")));
	jetstress_row(to, "Seconds", text);
	snprintf(text, sizeof text, "%.2f",
		 fmax(0, exchange_number(checksum, "bytes_per_s")) / (double)MIB);
	jetstress_row(to, "MBytes/sec", text);
	jetstress_end(to);
}

void jetstress_added(const struct exchange_view *view, const struct exchange_server_view *server,
		     FILE *to)
{
	put_criteria(view, server, to);
	put_percentiles(view, server, to);
	put_engine(server, to);
	put_copies(view, to);
	put_tuning(view, server, to);
	put_checksum(view, to);
}
