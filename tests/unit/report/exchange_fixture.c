/* SPDX-License-Identifier: MIT
 *
 * Tests of Jetstress' kind that never ran.
 */
#include "tests/unit/report/exchange_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

enum { WINDOW_S = 1000, SAMPLE_S = 15, DATABASES = 4 };

/* In a thousand seconds: I/Os; mean bytes and mean latency in thousandths. */
struct figures {
	const char *name;
	bool write;
	uint64_t ios, bytes_milli, latency_us;
};

static const struct figures qnap[DATABASES][5] = {
    {{"db-read", false, 37194, 33346816, 14404},
     {"db-write", true, 20644, 36932486, 2363},
     {"log-write", true, 5325, 20625184, 1063},
     {"bdm-read", false, 8993, 261223158, 14404},
     {"log-read", false, 468, 179529908, 2539}},
    {{"db-read", false, 37150, 33388017, 14178},
     {"db-write", true, 20335, 36875070, 2401},
     {"log-write", true, 5254, 20607456, 1085},
     {"bdm-read", false, 8990, 261295253, 14178},
     {"log-read", false, 461, 179571373, 2883}},
    {{"db-read", false, 37402, 33347365, 14044},
     {"db-write", true, 20907, 36822408, 2423},
     {"log-write", true, 5319, 20732541, 1079},
     {"bdm-read", false, 8997, 261166269, 14044},
     {"log-read", false, 470, 181962563, 2720}},
    {{"db-read", false, 37562, 33315952, 13741},
     {"db-write", true, 20991, 36779894, 2363},
     {"log-write", true, 5350, 20513353, 1046},
     {"bdm-read", false, 9000, 261228101, 13741},
     {"log-read", false, 465, 180502970, 2757}},
};

static char *copy(const char *text)
{
	char *string = strdup(text);

	if (!string)
		abort();
	return string;
}

/* Latencies from half to one and a half times the mean, which they keep exactly. */
static void fill_latencies(struct hist *hist, const struct figures *figures)
{
	uint64_t mean_ns = figures->latency_us * NS_PER_US;

	for (uint64_t i = 0; i + 1 < figures->ios; i += 2) {
		uint64_t off_ns = mean_ns / 2 * (i % 97) / 97;

		hist_record(hist, mean_ns - off_ns);
		hist_record(hist, mean_ns + off_ns);
	}
	if (figures->ios % 2)
		hist_record(hist, mean_ns);
}

static void add_stream(struct record *record, const char *host, const char *volume,
		       const struct figures *figures)
{
	struct record_stream *stream = record_add_stream(record);

	if (!stream)
		abort();
	stream->name = copy(figures->name);
	stream->host = copy(host);
	stream->volume = copy(volume);
	stream->write = figures->write;
	stream->ios = figures->ios;
	stream->bytes = (figures->ios * figures->bytes_milli + 500) / 1000;
	fill_latencies(&stream->response, figures);
	hist_merge(&stream->service, &stream->response);
}

/* Every sample has the mean; the tenth, a quarter more. */
static void add_samples(struct record *record)
{
	for (unsigned i = 0; i < WINDOW_S / SAMPLE_S; i++) {
		struct record_sample *sample = record_add_sample(record);

		if (!sample)
			abort();
		sample->at_ns = record->window_start_ns + (i + 1) * SAMPLE_S * NS_PER_S;
		sample->length_ns = SAMPLE_S * NS_PER_S;
		sample->measured = true;
		for (unsigned s = 0; s < record->stream_count; s++) {
			const struct record_stream *stream = &record->streams[s];

			sample->streams[s].ios = (uint32_t)(stream->ios * SAMPLE_S / WINDOW_S);
			sample->streams[s].mean_ns =
			    (uint64_t)hist_mean_ns(&stream->response) * (i == 9 ? 5 : 4) / 4;
		}
	}
}

static void add_verdict(struct record *record, const char *id, enum verdict_status status,
			const char *text)
{
	struct record_verdict *verdict = record_add_verdict(record);

	if (!verdict)
		abort();
	verdict->id = copy(id);
	verdict->status = status;
	verdict->text = copy(text);
}

static json_t *checked(json_t *value)
{
	if (!value)
		abort();
	return value;
}

static json_t *database(unsigned number, const char *volume, const char *log_volume,
			const char *role)
{
	char name[40], file[80], log[80];

	snprintf(name, sizeof name, "Instance900.%u", number);
	snprintf(file, sizeof file, "%s/Jetstress%03u001.edb", volume, number);
	snprintf(log, sizeof log, "%s/log", log_volume);
	return checked(json_pack(
	    "{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:i, s:i}", "name", name, "volume",
	    volume, "log_volume", log_volume, "file", file, "log_path", log, "role", role,
	    "initial_bytes", (json_int_t)524527075328, "final_bytes", (json_int_t)524720013312,
	    "transactions", 28430, "splits", 740, "cached_pages", 8192, "log_files", 105));
}

static json_t *server(const char *host, double target_iops)
{
	return checked(json_pack(
	    "{s:s, s:i, s:s, s:I, s:I, s:I, s:I, s:f, s:f, s:i, s:{s:i, s:i, s:i, s:i, s:i}, "
	    "s:b, s:i, s:i, s:f, s:[], s:[{s:s, s:f, s:f, s:f}]}",
	    "host", host, "sessions", 5, "loop", "closed", "cache_min_bytes",
	    (json_int_t)(128 * MIB), "cache_max_bytes", (json_int_t)(1 * GIB), "flush_start_bytes",
	    (json_int_t)10737418, "flush_stop_bytes", (json_int_t)21474836, "target_iops",
	    target_iops, "achieved_iops", 232.185, "mailboxes", 1000, "mix", "insert", 40, "delete",
	    20, "replace", 5, "read", 35, "lazy", 70, "bdm", 1, "copies", 2, "stalls", 0,
	    "stalls_max_per_s", 0.0, "databases", "host_counters", "name", "% Processor Time",
	    "average", 1.121, "minimum", 0.572, "maximum", 3.695));
}

static json_t *tuning(void)
{
	return checked(json_pack(
	    "{s:s, s:n, s:[{s:s, s:i, s:f, s:f, s:f, s:[I, I], s:[I], s:s},"
	    "{s:s, s:i, s:f, s:f, s:f, s:[I, I], s:[I], s:s}]}",
	    "result", "succeeded", "why", "cycles", "host", "mbx1", "sessions", 8, "iops", 270.0,
	    "target_iops", 168.0, "batch_per_s", 135.0, "read_ns", (json_int_t)20300000,
	    (json_int_t)20100000, "log_write_ns", (json_int_t)2000000, "verdict",
	    "latency too high", "host", "mbx1", "sessions", 5, "iops", 196.0, "target_iops", 168.0,
	    "batch_per_s", 96.0, "read_ns", (json_int_t)15900000, (json_int_t)15200000,
	    "log_write_ns", (json_int_t)1200000, "verdict", "accepted"));
}

static json_t *test_log(void)
{
	/* 2016-01-14, five seconds before noon. */
	json_int_t start = (json_int_t)(UINT64_C(1452772795) * NS_PER_S);

	return checked(
	    json_pack("[{s:I, s:s}, {s:I, s:s, s:s}, {s:I, s:s, s:s}]", "wall_ns", start, "text",
		      "Preparing for testing ...", "wall_ns", start + (json_int_t)(5 * NS_PER_S),
		      "text", "Database cache settings: (minimum: 128.0 MB, maximum: 1.0 GB)",
		      "host", "mbx1", "wall_ns", start + (json_int_t)(3605 * NS_PER_S), "text",
		      "Operation mix: Sessions 5, <Inserts> 40%", "host", "mbx <2>"));
}

static struct record *start_record(void)
{
	struct record *record = record_new();

	if (!record)
		abort();
	record->version = copy("1.2.3");
	record->lab = copy("QNAP <1>");
	record->workload = copy("exchange");
	record->start_wall_ns = UINT64_C(1452772795) * NS_PER_S;
	record->window_start_ns = 300 * NS_PER_S;
	record->window_end_ns = (300 + WINDOW_S) * NS_PER_S;
	record->end_ns = (306 + WINDOW_S) * NS_PER_S;
	record->environment = checked(json_pack("{s:s}", "kernel", "Linux 6.1 & co"));
	record->exchange = checked(
	    json_pack("{s:s, s:s, s:s, s:{s:i, s:i, s:i, s:i}, s:[]}", "engine", "ese", "test",
		      "performance", "description", "four \"databases\"", "thresholds",
		      "avg_db_read_ns", 20000000, "max_db_read_ns", 100000000, "avg_log_write_ns",
		      10000000, "max_log_write_ns", 100000000, "servers"));
	json_object_set_new(record->exchange, "tuning", tuning());
	json_object_set_new(record->exchange, "log", test_log());
	return record;
}

static void add_qnap_server(struct record *record)
{
	json_t *mbx1 = server("mbx1", 168), *databases = json_object_get(mbx1, "databases");

	json_array_append_new(json_object_get(record->exchange, "servers"), mbx1);
	for (unsigned d = 0; d < DATABASES; d++) {
		char volume[16];

		snprintf(volume, sizeof volume, "db%u", d + 1);
		for (unsigned k = 0; k < ARRAY_SIZE(qnap[d]); k++)
			add_stream(record, "mbx1", volume, &qnap[d][k]);
		json_array_append_new(databases, database(d + 1, volume, volume, "active"));
	}
	add_verdict(record, "db-read-latency mbx1/db1", VERDICT_PASS,
		    "average database read latency of db1 14.4 ms (limit 20 ms)");
}

struct record *exchange_qnap(void)
{
	struct record *record = start_record();

	add_qnap_server(record);
	add_samples(record);
	return record;
}

struct record *exchange_two_servers(void)
{
	static const char *const volumes[] = {"a", "b", "c"};
	struct record *record = start_record();
	json_t *mbx2 = server("mbx <2>", 0), *databases = json_object_get(mbx2, "databases");

	add_qnap_server(record);
	json_array_append_new(json_object_get(record->exchange, "servers"), mbx2);
	json_array_append_new(databases, database(1, "c", "c", "passive"));
	for (unsigned d = 0; d < 2; d++) {
		add_stream(record, "mbx <2>", volumes[d], &qnap[d][0]);
		add_stream(record, "mbx <2>", volumes[d], &qnap[d][1]);
		json_array_append_new(databases, database(d + 2, volumes[d], "logs", "active"));
	}
	for (unsigned d = 0; d < 2; d++)
		add_stream(record, "mbx <2>", "logs", &qnap[d][2]);
	record->streams[record->stream_count - 1].errors = 3;
	add_samples(record);
	add_verdict(record, "io-errors mbx <2>", VERDICT_FAIL, "3 I/O errors on <logs>");
	return record;
}

struct record *exchange_of(const char *test)
{
	struct record *record = exchange_qnap();
	json_t *one = json_array_get(json_object_get(record->exchange, "servers"), 0), *db;
	size_t index;

	json_object_set_new(record->exchange, "test", checked(json_string(test)));
	json_array_foreach(json_object_get(one, "databases"), index, db)
	{
		double seconds = 4000 + 500 * (double)index;

		json_object_set_new(
		    db, "backup",
		    checked(json_pack("{s:I, s:f, s:f}", "bytes", (json_int_t)524720013312,
				      "seconds", seconds, "bytes_per_s", 524720013312 / seconds)));
		json_object_set_new(
		    db, "recovery",
		    checked(json_pack("{s:i, s:f, s:f}", "files", 500 + (int)index, "seconds",
				      (500 + (double)index) * 1.25, "seconds_per_file", 1.25)));
	}
	json_object_set_new(
	    record->exchange, "checksum",
	    checked(json_pack("{s:I, s:i, s:f, s:f}", "pages", (json_int_t)64052736, "bad", 0,
			      "seconds", 5123.5, "bytes_per_s", 409654272.0)));
	return record;
}
