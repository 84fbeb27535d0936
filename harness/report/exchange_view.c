/* SPDX-License-Identifier: MIT
 *
 * Servers and databases out of record->exchange, joined with the record's streams.
 */
#include "harness/report/exchange_view.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

enum { SERVERS_MAX = 1024, DATABASES_MAX = 1024 };
/* As Jetstress, and as the verdicts have it. */
#define SAMPLE_PRESET_NS (15 * NS_PER_S)

const char *const exchange_stream_names[] = {"db-read",	  "db-write", "log-read",
					     "log-write", "bdm-read", NULL};

static const char *const test_names[EXCHANGE_TESTS] = {"performance", "stress", "database-backup",
						       "soft-recovery"};

double exchange_number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : NAN;
}

const char *exchange_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static double number_or_zero(const json_t *object, const char *key)
{
	double value = exchange_number(object, key);

	return isfinite(value) ? value : 0;
}

static uint64_t count_of(const json_t *object, const char *key)
{
	double value = number_or_zero(object, key);

	return value <= 0 ? 0 : value >= 9e18 ? INT64_MAX : (uint64_t)llround(value);
}

static bool same(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

uint64_t exchange_max_sample_ns(const struct record *record, unsigned stream, uint64_t sample_ns)
{
	uint64_t length_ns = 0, ios = 0;
	double sum_ns = 0, largest_ns = 0;

	for (unsigned i = 0; i < record->sample_count; i++) {
		const struct record_sample *sample = &record->samples[i];

		if (!sample->measured)
			continue;
		length_ns += sample->length_ns;
		ios += sample->streams[stream].ios;
		sum_ns +=
		    (double)sample->streams[stream].ios * (double)sample->streams[stream].mean_ns;
		if (length_ns < sample_ns && i + 1 < record->sample_count)
			continue;
		if (ios)
			largest_ns = fmax(largest_ns, sum_ns / (double)ios);
		length_ns = ios = 0;
		sum_ns = 0;
	}
	return (uint64_t)llround(largest_ns);
}

/* The index of the NTH stream of that name; -1: there is none. */
static int find_stream(const struct record *record, const char *name, const char *host,
		       const char *volume, unsigned nth)
{
	for (unsigned i = 0; i < record->stream_count; i++) {
		const struct record_stream *stream = &record->streams[i];

		if (same(stream->name, name) && same(stream->host, host) &&
		    same(stream->volume, volume) && nth-- == 0)
			return (int)i;
	}
	return -1;
}

/* How many databases before INDEX have their log on the same volume: streams of a shared volume
 * come in the order of the databases. */
static unsigned place_on_log_volume(const json_t *databases, size_t index)
{
	const char *volume = exchange_text(json_array_get(databases, index), "log_volume");
	unsigned place = 0;

	for (size_t i = 0; i < index; i++)
		place += same(exchange_text(json_array_get(databases, i), "log_volume"), volume);
	return place;
}

static void fill_io(const struct exchange_view *view, int stream, struct exchange_io_view *io)
{
	const struct record_stream *from;

	if (stream < 0)
		return;
	from = &view->record->streams[stream];
	io->stream = from;
	io->ios = from->ios;
	io->bytes = from->bytes;
	io->errors = from->errors;
	/* The histogram counts what ended well; failures have no latency. */
	io->latency_sum_ns = hist_mean_ns(&from->response) * (double)from->ios;
	io->max_sample_ns = exchange_max_sample_ns(view->record, (unsigned)stream, view->sample_ns);
}

static void fill_database(const struct exchange_view *view, const char *host,
			  const json_t *databases, size_t index, struct exchange_database_view *db)
{
	const json_t *json = json_array_get(databases, index);
	const json_t *recovery = json_object_get(json, "recovery");
	const json_t *backup = json_object_get(json, "backup");

	db->name = exchange_text(json, "name");
	db->volume = exchange_text(json, "volume");
	db->log_volume = exchange_text(json, "log_volume");
	db->file = exchange_text(json, "file");
	db->log_path = exchange_text(json, "log_path");
	db->passive = same(exchange_text(json, "role"), "passive");
	db->initial_bytes = count_of(json, "initial_bytes");
	db->final_bytes = count_of(json, "final_bytes");
	db->transactions = count_of(json, "transactions");
	db->splits = count_of(json, "splits");
	db->cached_pages = count_of(json, "cached_pages");
	db->log_files = count_of(json, "log_files");
	db->backup_bytes = number_or_zero(backup, "bytes");
	db->backup_seconds = number_or_zero(backup, "seconds");
	db->backup_bytes_per_s = number_or_zero(backup, "bytes_per_s");
	db->recovery_files = number_or_zero(recovery, "files");
	db->recovery_seconds = number_or_zero(recovery, "seconds");
	for (unsigned k = 0; k < EXCHANGE_STREAM_KINDS; k++) {
		const char *name = exchange_stream_names[k];
		bool log = k == EXCHANGE_LOG_READ || k == EXCHANGE_LOG_WRITE;
		int stream = find_stream(view->record, name, host, db->volume, 0);

		if (stream < 0 && log && *db->log_volume)
			stream = find_stream(view->record, name, host, db->log_volume,
					     place_on_log_volume(databases, index));
		fill_io(view, stream, &db->io[k]);
	}
}

/* A copy that has not been the active one in the window either. */
static bool only_copy(const struct exchange_view *view, const char *host, const json_t *json)
{
	static const enum exchange_stream_kind kinds[] = {EXCHANGE_DB_READ, EXCHANGE_DB_WRITE};

	if (!same(exchange_text(json, "role"), "passive"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		int stream = find_stream(view->record, exchange_stream_names[kinds[i]], host,
					 exchange_text(json, "volume"), 0);

		if (stream >= 0 && view->record->streams[stream].ios)
			return false;
	}
	return true;
}

/* Those that were only copies of another server's come last. */
static int fill_databases(const struct exchange_view *view, const json_t *databases,
			  struct exchange_server_view *server)
{
	size_t count = MIN_OF(json_array_size(databases), (size_t)DATABASES_MAX);

	server->databases = calloc(count + 1, sizeof *server->databases);
	if (!server->databases)
		return -ENOMEM;
	for (int passive = 0; passive <= 1; passive++) {
		for (size_t i = 0; i < count; i++) {
			const json_t *json = json_array_get(databases, i);

			if (only_copy(view, server->host, json) != passive)
				continue;
			fill_database(view, server->host, databases, i,
				      &server->databases[server->database_count++]);
			server->active_count += !passive;
		}
	}
	return 0;
}

static int fill_server(const struct exchange_view *view, const json_t *json,
		       struct exchange_server_view *server)
{
	int r;

	server->json = json;
	server->host = exchange_text(json, "host");
	server->sessions = number_or_zero(json, "sessions");
	server->target_iops = number_or_zero(json, "target_iops");
	r = fill_databases(view, json_object_get(json, "databases"), server);
	if (r < 0)
		return r;
	server->achieved_iops =
	    exchange_rate(view, exchange_total(server, EXCHANGE_DB_READ).ios +
				    exchange_total(server, EXCHANGE_DB_WRITE).ios);
	return 0;
}

static enum exchange_test_kind test_of(const json_t *json)
{
	const char *name = exchange_test(json);

	for (unsigned i = 0; i < EXCHANGE_TESTS; i++) {
		if (same(name, test_names[i]))
			return i;
	}
	return EXCHANGE_PERFORMANCE;
}

static void fill_head(struct exchange_view *view)
{
	const json_t *thresholds = json_object_get(view->json, "thresholds");
	const struct record *record = view->record;

	view->test = test_of(view->json);
	if (record->window_end_ns > record->window_start_ns)
		view->window_s =
		    (double)(record->window_end_ns - record->window_start_ns) / (double)NS_PER_S;
	view->sample_ns = count_of(view->json, "sample_ns");
	if (!view->sample_ns)
		view->sample_ns = SAMPLE_PRESET_NS;
	view->avg_db_read_ns = number_or_zero(thresholds, "avg_db_read_ns");
	view->max_db_read_ns = number_or_zero(thresholds, "max_db_read_ns");
	view->avg_log_write_ns = number_or_zero(thresholds, "avg_log_write_ns");
	view->max_log_write_ns = number_or_zero(thresholds, "max_log_write_ns");
}

int exchange_view_new(const struct record *record, struct exchange_view **ret_view)
{
	const json_t *servers = json_object_get(record->exchange, "servers");
	size_t count = MIN_OF(json_array_size(servers), (size_t)SERVERS_MAX);
	struct exchange_view *view;

	if (!json_is_object(record->exchange))
		return -ENOENT;
	view = calloc(1, sizeof *view);
	if (!view)
		return -ENOMEM;
	view->record = record;
	view->json = record->exchange;
	fill_head(view);
	view->servers = calloc(count + 1, sizeof *view->servers);
	for (size_t i = 0; view->servers && i < count; i++) {
		struct exchange_server_view *server = &view->servers[view->server_count++];

		if (fill_server(view, json_array_get(servers, i), server) < 0)
			count = 0;
	}
	if (!view->servers || view->server_count > count) {
		exchange_view_free(view);
		return -ENOMEM;
	}
	*ret_view = view;
	return 0;
}

struct exchange_view *exchange_view_free(struct exchange_view *view)
{
	if (!view)
		return NULL;
	for (unsigned i = 0; i < view->server_count; i++)
		free(view->servers[i].databases);
	free(view->servers);
	free(view);
	return NULL;
}

double exchange_mean_ns(const struct exchange_io_view *a, const struct exchange_io_view *b)
{
	double ios = (double)a->ios + (b ? (double)b->ios : 0);

	return ios > 0 ? (a->latency_sum_ns + (b ? b->latency_sum_ns : 0)) / ios : 0;
}

double exchange_mean_bytes(const struct exchange_io_view *a, const struct exchange_io_view *b)
{
	double ios = (double)a->ios + (b ? (double)b->ios : 0);

	return ios > 0 ? ((double)a->bytes + (b ? (double)b->bytes : 0)) / ios : 0;
}

double exchange_rate(const struct exchange_view *view, uint64_t count)
{
	return view->window_s > 0 ? (double)count / view->window_s : 0;
}

struct exchange_io_view exchange_total(const struct exchange_server_view *server,
				       enum exchange_stream_kind kind)
{
	struct exchange_io_view total = {0};

	for (unsigned i = 0; i < server->active_count; i++) {
		const struct exchange_io_view *io = &server->databases[i].io[kind];

		total.ios += io->ios;
		total.bytes += io->bytes;
		total.errors += io->errors;
		total.latency_sum_ns += io->latency_sum_ns;
		total.max_sample_ns = MAX_OF(total.max_sample_ns, io->max_sample_ns);
	}
	return total;
}

/* Does "db-read-latency mbx1/db1" name HOST? */
static bool names_host(const char *id, const char *host)
{
	size_t length = strlen(host);
	const char *at = id;

	while (length && (at = strstr(at, host)) != NULL) {
		bool begins = at == id || at[-1] == ' ';
		bool ends = at[length] == '\0' || at[length] == '/' || at[length] == ' ';

		if (begins && ends)
			return true;
		at++;
	}
	return false;
}

bool exchange_concerns(const struct exchange_view *view, const struct exchange_server_view *server,
		       const struct record_verdict *verdict)
{
	const char *id = verdict->id ? verdict->id : "";

	if (names_host(id, server->host))
		return true;
	for (unsigned s = 0; s < view->server_count; s++) {
		if (&view->servers[s] != server && names_host(id, view->servers[s].host))
			return false;
	}
	return true;
}

bool exchange_server_passed(const struct exchange_view *view,
			    const struct exchange_server_view *server)
{
	const struct record *record = view->record;

	if (record->error)
		return false;
	for (unsigned i = 0; i < record->verdict_count; i++) {
		if (record->verdicts[i].status == VERDICT_FAIL &&
		    exchange_concerns(view, server, &record->verdicts[i]))
			return false;
	}
	return true;
}
