/* SPDX-License-Identifier: MIT
 *
 * Jetstress' criteria for a test of the database engine: record->exchange and the streams in,
 * verdicts out.  Pure.
 *
 * A performance or stress test passes when each server reaches its target (less a margin), each
 * database's average read and its log's average write latency is within its threshold, no more
 * than a few samples of either are above their maximum, page fault stalls stay below one a second,
 * and its prerequisites and its tuning were met.  Database writes have no threshold.  Any test
 * fails on pages that are bad or cannot be read; I/O errors and mismatches are judged with those of
 * other runs.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "harness/report/exchange_record.h"
#include "harness/run/verdict.h"

/* "Maximum" is the largest average of a sample of this length; shorter samples of the record are
 * put together. */
#define SAMPLE_NS (15 * NS_PER_S)

static double real_of(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static bool one_server(const struct record *record)
{
	return json_array_size(json_object_get(record->exchange, "servers")) == 1;
}

/* "achieved-iops", or "achieved-iops mbx1" among several. */
static const char *id_of(const struct record *record, const char *id, const json_t *server,
			 char *out, size_t size)
{
	if (one_server(record))
		snprintf(out, size, "%s", id);
	else
		snprintf(out, size, "%s %s", id, text_of(server, "host"));
	return out;
}

/* ---- rates and stalls, per server ---- */

static void judge_iops(struct record *record, const json_t *server, double margin)
{
	double target = real_of(server, "target_iops"), achieved = real_of(server, "achieved_iops");
	char id[128];

	if (!(target > 0))
		return;
	verdict_add(
	    record, verdict_pass_if(achieved >= target * (1 - margin)),
	    id_of(record, "achieved-iops", server, id, sizeof id),
	    json_pack("{s:s, s:f, s:f, s:f}", "host", text_of(server, "host"), "target_iops",
		      target, "achieved_iops", achieved, "limit_share", 1 - margin),
	    "%s achieved %.1f of %.1f target transactional IOPS, %.1f %% (limit %.0f %%)",
	    text_of(server, "host"), achieved, target, achieved / target * 100, (1 - margin) * 100);
	verdict_hint(record,
		     strcmp(text_of(server, "loop"), "open") == 0
			 ? "the storage or a path could not keep up; see the latency series "
			   "for when"
			 : "more sessions, or `sessions: auto`, if the latencies leave room");
}

static void judge_stalls(struct record *record, const json_t *server, double limit_per_s)
{
	double window_s =
	    (double)(record->window_end_ns - record->window_start_ns) / (double)NS_PER_S;
	double stalls = real_of(server, "stalls");
	double per_s = window_s > 0 ? stalls / window_s : 0;
	char id[128];

	verdict_add(record, verdict_pass_if(per_s <= limit_per_s),
		    id_of(record, "page-fault-stalls", server, id, sizeof id),
		    json_pack("{s:s, s:f, s:f, s:f, s:f}", "host", text_of(server, "host"),
			      "stalls", stalls, "stalls_per_s", per_s, "max_per_s",
			      real_of(server, "stalls_max_per_s"), "limit_per_s", limit_per_s),
		    "%s had %.2f database page fault stalls a second, %.2f in the worst sample "
		    "(limit %g on average)",
		    text_of(server, "host"), per_s, real_of(server, "stalls_max_per_s"),
		    limit_per_s);
	verdict_hint(record, "transactions waited for a free page of the cache: it turns over "
			     "faster than pages are written; `loop: open` holds the target's rate");
}

/* ---- latencies, per database ---- */

struct largest {
	double mean_ns; /* of the worst sample */
	uint64_t at_ns;
	unsigned above, samples;
};

static void count_sample(struct largest *largest, double sum_ns, uint64_t ios, uint64_t at_ns,
			 double limit_ns)
{
	double mean_ns = sum_ns / (double)ios;

	largest->samples++;
	largest->above += mean_ns > limit_ns;
	if (mean_ns > largest->mean_ns) {
		largest->mean_ns = mean_ns;
		largest->at_ns = at_ns;
	}
}

/* Means are weighted with the I/Os behind them. */
static void find_largest(const struct record *record, unsigned stream, double limit_ns,
			 struct largest *ret_largest)
{
	struct largest largest = {0};
	uint64_t ios = 0, length_ns = 0;
	double sum_ns = 0;

	for (unsigned i = 0; i < record->sample_count; i++) {
		const struct record_sample *sample = &record->samples[i];
		const struct record_stream_sample *of = &sample->streams[stream];

		if (!sample->measured)
			continue;
		sum_ns += (double)of->mean_ns * of->ios;
		ios += of->ios;
		length_ns += sample->length_ns;
		if (length_ns < SAMPLE_NS && i + 1 < record->sample_count)
			continue;
		if (ios)
			count_sample(&largest, sum_ns, ios, sample->at_ns, limit_ns);
		sum_ns = 0;
		ios = length_ns = 0;
	}
	*ret_largest = largest;
}

/* Several databases may have their logs on one volume: "log1 (db1)".  The streams of a database
 * stand together, its reads first. */
static char *label_of(const struct record *record, unsigned index, char *out, size_t size)
{
	const struct record_stream *stream = &record->streams[index];
	const char *database = stream->volume;

	for (unsigned s = 0; s <= index; s++)
		if (strcmp(record->streams[s].name, "db-read") == 0 &&
		    strcmp(record->streams[s].host, stream->host) == 0)
			database = record->streams[s].volume;
	if (strcmp(database, stream->volume) == 0)
		snprintf(out, size, "%s", stream->volume);
	else
		snprintf(out, size, "%s (%s)", stream->volume, database);
	return out;
}

static void judge_maximum(struct record *record, unsigned index, const struct record_stream *stream,
			  const char *what, double limit_ns, unsigned forgiven)
{
	char id[300], mean[32], limit[32];
	struct largest largest;

	find_largest(record, index, limit_ns, &largest);
	if (!largest.samples)
		return;
	snprintf(id, sizeof id, "%s-maximum %s/%s", stream->name, stream->host, stream->volume);
	text_duration(mean, sizeof mean, largest.mean_ns);
	text_duration(limit, sizeof limit, limit_ns);
	verdict_add(record, verdict_pass_if(largest.above <= forgiven), id,
		    json_pack("{s:s, s:s, s:s, s:f, s:o, s:i, s:i, s:i, s:f}", "host", stream->host,
			      "volume", stream->volume, "stream", stream->name, "largest_mean_ns",
			      largest.mean_ns, "at_ns", verdict_number(largest.at_ns), "above",
			      (int)largest.above, "samples", (int)largest.samples, "forgiven",
			      (int)forgiven, "limit_ns", limit_ns),
		    "largest sample average of %s latency of %s/%s %s, %u of %u samples above %s "
		    "(%u are forgiven)",
		    what, stream->host, stream->volume, mean, largest.above, largest.samples, limit,
		    forgiven);
}

static void judge_latencies(const struct lab *lab, struct record *record, const json_t *thresholds)
{
	static const struct {
		const char *stream, *expect, *what, *average, *maximum;
	} kinds[] = {
	    {"db-read", "db-read-latency", "database read", "avg_db_read_ns", "max_db_read_ns"},
	    {"log-write", "log-write-latency", "log write", "avg_log_write_ns", "max_log_write_ns"},
	};
	unsigned forgiven = (unsigned)real_of(thresholds, "max_latency_samples");

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		for (unsigned s = 0; s < record->stream_count; s++) {
			struct record_stream stream = record->streams[s];
			char label[200];

			if (strcmp(stream.name, kinds[k].stream) != 0)
				continue;
			stream.volume = label_of(record, s, label, sizeof label);
			if (!verdict_expected(lab, kinds[k].expect))
				verdict_latency(record, &stream, kinds[k].what,
						real_of(thresholds, kinds[k].average));
			judge_maximum(record, s, &stream, kinds[k].what,
				      real_of(thresholds, kinds[k].maximum), forgiven);
		}
}

/* ---- what came before the window ---- */

static void judge_warm_up(struct record *record)
{
	const json_t *warm_up = json_object_get(record->exchange, "warm_up");

	if (json_is_true(json_object_get(warm_up, "met")))
		return;
	verdict_add(record, VERDICT_FAIL, "prerequisites", json_deep_copy(warm_up),
		    "the cache has not filled: %s after %.0f s", text_of(warm_up, "why"),
		    real_of(warm_up, "seconds"));
	verdict_hint(record, "a smaller cache-max, or more time in workload.warm-up.limit");
}

/* "8, 4, 5", or "mbx1 8, 4, 5; mbx2 8, 4" of several servers. */
static void tuning_path(const struct record *record, const json_t *cycles, char *out, size_t size)
{
	const char *host = "";
	const json_t *cycle;
	size_t i, used = 0;

	*out = '\0';
	json_array_foreach(cycles, i, cycle)
	{
		bool next = strcmp(text_of(cycle, "host"), host) != 0;

		if (used >= size)
			return;
		host = text_of(cycle, "host");
		used += (size_t)snprintf(out + used, size - used, "%s%s%s%.0f",
					 i == 0 ? ""
					 : next ? "; "
						: ", ",
					 next && !one_server(record) ? host : "",
					 next && !one_server(record) ? " " : "",
					 real_of(cycle, "sessions"));
	}
}

static void judge_tuning(struct record *record)
{
	const json_t *tuning = json_object_get(record->exchange, "tuning");
	const char *result = text_of(tuning, "result");
	char path[300];

	if (strcmp(result, "not run") == 0 || !*result)
		return;
	tuning_path(record, json_object_get(tuning, "cycles"), path, sizeof path);
	if (strcmp(result, "succeeded") == 0) {
		verdict_add(record, VERDICT_PASS, "tuning", json_deep_copy(tuning),
			    "automatic tuning succeeded, sessions of its cycles: %s", path);
		return;
	}
	verdict_add(record, VERDICT_FAIL, "tuning", json_deep_copy(tuning),
		    "automatic tuning failed, sessions of its cycles: %s: %s", path,
		    text_of(tuning, "why"));
	verdict_hint(record, "`sessions: N` goes without tuning, `loop: open` without sessions");
}

/* ---- tests that end themselves ---- */

static uint64_t sum_of(const json_t *exchange, const char *part, const char *key,
		       unsigned *ret_with, unsigned *ret_databases)
{
	const json_t *server, *database;
	double sum = 0;
	size_t s, d;

	*ret_with = *ret_databases = 0;
	json_array_foreach(json_object_get(exchange, "servers"), s, server)
	{
		json_array_foreach(json_object_get(server, "databases"), d, database)
		{
			const json_t *object = json_object_get(database, part);

			if (strcmp(text_of(database, "role"), "passive") == 0)
				continue;
			++*ret_databases;
			*ret_with += object != NULL;
			sum += real_of(object, key);
		}
	}
	return (uint64_t)sum;
}

static void judge_backup(struct record *record)
{
	unsigned with, databases;
	uint64_t bytes = sum_of(record->exchange, "backup", "bytes", &with, &databases);
	uint64_t bad = sum_of(record->exchange, "backup", "bad", &with, &databases);
	uint64_t unread = sum_of(record->exchange, "backup", "not_readable", &with, &databases);
	uint64_t rate = sum_of(record->exchange, "backup", "bytes_per_s", &with, &databases);

	verdict_add(record, verdict_pass_if(with == databases && !bad && !unread), "backup",
		    json_pack("{s:i, s:i, s:o, s:o, s:o, s:o}", "databases", (int)databases, "read",
			      (int)with, "read_bytes", verdict_number(bytes), "bytes_per_s",
			      verdict_number(rate), "bad_pages", verdict_number(bad),
			      "not_readable", verdict_number(unread)),
		    "%u of %u databases were read, %.1f MB at %.1f MB/s in total; %llu pages bad, "
		    "%llu not readable",
		    with, databases, (double)bytes / (double)MIB, (double)rate / (double)MIB,
		    (unsigned long long)bad, (unsigned long long)unread);
}

static void judge_recovery(struct record *record)
{
	unsigned with, databases;
	double files = (double)sum_of(record->exchange, "recovery", "files", &with, &databases);
	double seconds = 0;
	const json_t *server, *database;
	size_t s, d;

	json_array_foreach(json_object_get(record->exchange, "servers"), s, server)
	{
		json_array_foreach(json_object_get(server, "databases"), d, database)
		{
			seconds += real_of(json_object_get(database, "recovery"), "seconds");
		}
	}
	verdict_add(record, verdict_pass_if(with == databases && files > 0), "soft-recovery",
		    json_pack("{s:i, s:i, s:f, s:f}", "databases", (int)databases, "recovered",
			      (int)with, "files", files, "seconds_per_file",
			      files > 0 ? seconds / files : 0.0),
		    "%u of %u databases recovered, %.0f log files at %.3f s each", with, databases,
		    files, files > 0 ? seconds / files : 0.0);
}

static void judge_checksum(struct record *record)
{
	const json_t *checksum = json_object_get(record->exchange, "checksum");
	double bad = real_of(checksum, "bad"), unread = real_of(checksum, "not_readable");

	if (!json_is_object(checksum))
		return;
	verdict_add(record, verdict_pass_if(!(bad > 0) && !(unread > 0)), "checksum",
		    json_deep_copy(checksum),
		    "%.0f pages of all databases were verified, %.0f bad, %.0f not readable",
		    real_of(checksum, "pages"), bad, unread);
}

static void judge_logs(struct record *record)
{
	const json_t *server, *database;
	double files = 0, segments = 0;
	char damaged[200] = "";
	unsigned checked = 0, bad = 0;
	size_t s, d;

	json_array_foreach(json_object_get(record->exchange, "servers"), s, server)
	{
		json_array_foreach(json_object_get(server, "databases"), d, database)
		{
			const json_t *log = json_object_get(database, "log_checksum");

			if (!log)
				continue;
			checked++;
			files += real_of(log, "files");
			segments += real_of(log, "segments");
			if (json_is_true(json_object_get(log, "good")))
				continue;
			if (!bad++)
				snprintf(damaged, sizeof damaged,
					 "; the first of them is that of %s/%s",
					 text_of(server, "host"), text_of(database, "volume"));
		}
	}
	if (checked)
		verdict_add(record, verdict_pass_if(!bad), "log-checksum",
			    json_pack("{s:i, s:i, s:f, s:f}", "logs", (int)checked, "damaged",
				      (int)bad, "files", files, "segments", segments),
			    "%.0f segments in %.0f log files of %u databases were verified, %u "
			    "logs are damaged%s",
			    segments, files, checked, bad, damaged);
}

/* ---- all of it ---- */

static void judge_load(const struct lab *lab, struct record *record)
{
	const json_t *thresholds = json_object_get(record->exchange, "thresholds"), *server;
	size_t i;

	judge_warm_up(record);
	judge_tuning(record);
	if (record->window_end_ns == record->window_start_ns)
		return;
	json_array_foreach(json_object_get(record->exchange, "servers"), i, server)
	{
		if (!verdict_expected(lab, "achieved-iops"))
			judge_iops(record, server, real_of(thresholds, "iops_margin"));
		judge_stalls(record, server, real_of(thresholds, "stalls_per_s"));
	}
	judge_latencies(lab, record, thresholds);
}

void jetstress_judge(const struct lab *lab, struct record *record)
{
	const char *test = exchange_test(record->exchange);

	if (strcmp(test, "database-backup") == 0)
		judge_backup(record);
	else if (strcmp(test, "soft-recovery") == 0)
		judge_recovery(record);
	else
		judge_load(lab, record);
	judge_checksum(record);
	judge_logs(record);
}
