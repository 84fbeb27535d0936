/* SPDX-License-Identifier: MIT
 *
 * A run that never ran.  Numbers come from a seeded stream by integer arithmetic only, so that
 * golden files are the same on every machine.
 */
#include "tests/unit/report/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/rng.h"

enum { VOLUMES = 5, KINDS = 5, PORTALS = 4, SAMPLES = 35, WARMUP = 5, FAULT = 15, HEALED = 20 };

static const struct {
	const char *name;
	bool write;
	unsigned per_s_tenths, size_bytes, base_us;
} kinds[KINDS] = {
    {"db-read", false, 1493, 32768, 1400}, {"db-write", true, 829, 32768, 700},
    {"log-write", true, 521, 20608, 320},  {"bdm-read", false, 90, 262144, 4100},
    {"log-read", false, 5, 184320, 2600},
};

static const char *const volumes[VOLUMES] = {"db1", "db2", "db3", "db \"4\" <a&b>",
					     "gr\303\266\303\237e-5"};

static char *copy(const char *text)
{
	char *string = strdup(text);

	if (!string)
		abort();
	return string;
}

static void add_streams(struct record *record)
{
	for (unsigned v = 0; v < VOLUMES; v++) {
		for (unsigned k = 0; k < KINDS; k++) {
			struct record_stream *stream = record_add_stream(record);

			stream->name = copy(kinds[k].name);
			stream->host = copy("mbx1");
			stream->volume = copy(volumes[v]);
			stream->write = kinds[k].write;
			stream->planned_per_s = kinds[k].per_s_tenths / 10.0;
		}
	}
}

static void add_paths(struct record *record)
{
	for (unsigned v = 0; v < VOLUMES; v++) {
		for (unsigned p = 0; p < PORTALS; p++) {
			struct record_path *path = record_add_path(record);
			char portal[32];

			snprintf(portal, sizeof portal, "127.0.0.1:%u", 3261 + p);
			path->host = copy("mbx1");
			path->volume = copy(volumes[v]);
			path->portal = copy(portal);
			path->index = p;
			path->state = copy(v == 4 && p == 1 ? "down" : "up");
			path->logins = p == 1 ? 2 : 1;
			path->losses = p == 1;
			path->reissued = p == 1 ? 3 + v : 0;
			path->retries = p == 1 ? 1 : 0;
		}
	}
}

/* Skewed like a latency: most near the base, one in fifty far above. */
static uint64_t latency_ns(struct rng *rng, unsigned base_us, bool trouble)
{
	uint64_t ns = base_us * NS_PER_US;

	ns = ns * (60 + rng_below(rng, 80)) / 100;
	if (rng_below(rng, 50) == 0)
		ns *= 2 + rng_below(rng, 6);
	if (trouble && rng_below(rng, 40) == 0)
		ns += 300 * NS_PER_MS + rng_below(rng, 900) * NS_PER_MS;
	return ns;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return *left < *right ? -1 : *left > *right;
}

static void fill_stream(struct record *record, struct record_sample *sample, unsigned s,
			unsigned second, struct rng *rng)
{
	enum { MAX = 256 };
	unsigned kind = s % KINDS, ios = kinds[kind].per_s_tenths / 10;
	struct record_stream *stream = &record->streams[s];
	struct record_stream_sample *to = &sample->streams[s];
	uint64_t values[MAX], sum = 0;

	ios = ios * (90 + (unsigned)rng_below(rng, 21)) / 100 + (unsigned)rng_below(rng, 2);
	for (unsigned i = 0; i < ios; i++) {
		values[i] = latency_ns(rng, kinds[kind].base_us, second == FAULT);
		sum += values[i];
		if (sample->measured) {
			hist_record(&stream->response, values[i]);
			hist_record(&stream->service, values[i] * 9 / 10);
		}
	}
	if (ios) {
		qsort(values, ios, sizeof values[0], by_value);
		to->p50_ns = values[ios / 2];
		to->p99_ns = values[ios * 99 / 100];
		to->max_ns = values[ios - 1];
		to->mean_ns = sum / ios;
	}
	to->ios = ios;
	to->bytes = (uint64_t)ios * kinds[kind].size_bytes;
	if (sample->measured) {
		stream->ios += ios;
		stream->bytes += to->bytes;
		stream->max_gap_ns = MAX_OF(stream->max_gap_ns, to->max_ns);
	}
	for (unsigned i = 0; i < ios; i++) {
		unsigned portal = i % PORTALS;
		struct record_path *path;

		if (portal == 1 && second >= FAULT && second < HEALED)
			portal = (i / PORTALS) % 3 == 0 ? 0 : 1 + (i / PORTALS) % 3;
		sample->paths[s / KINDS * PORTALS + portal].ios++;
		path = &record->paths[s / KINDS * PORTALS + portal];
		if (!sample->measured)
			continue;
		path->ios++;
		*(stream->write ? &path->writes : &path->reads) += 1;
		*(stream->write ? &path->write_bytes : &path->read_bytes) += kinds[kind].size_bytes;
		hist_record(&path->latency, values[i] * 8 / 10);
	}
}

static void add_samples(struct record *record)
{
	struct rng rng;

	rng_init(&rng, 42, 1);
	for (unsigned i = 0; i < SAMPLES; i++) {
		struct record_sample *sample = record_add_sample(record);

		sample->at_ns = 2 * NS_PER_S + (i + 1) * NS_PER_S;
		sample->length_ns = NS_PER_S;
		sample->measured = i >= WARMUP;
		for (unsigned s = 0; s < record->stream_count; s++)
			fill_stream(record, sample, s, i, &rng);
	}
	for (unsigned i = 0; i < record->path_count; i++) {
		uint64_t total = 0;

		for (unsigned p = 0; p < PORTALS; p++)
			total += record->paths[i / PORTALS * PORTALS + p].ios;
		record->paths[i].share = (double)record->paths[i].ios / (double)total;
	}
}

static void add_marker(struct record *record, uint64_t at_ns, const char *kind, const char *volume,
		       const char *portal, const char *text)
{
	struct record_marker *marker = record_add_marker(record);

	marker->at_ns = at_ns;
	marker->kind = copy(kind);
	if (volume) {
		marker->host = copy("mbx1");
		marker->volume = copy(volume);
	}
	if (portal)
		marker->portal = copy(portal);
	marker->text = copy(text);
}

static void add_path_marker(struct record *record, uint64_t at_ns, unsigned volume,
			    const char *what)
{
	char text[160];

	snprintf(text, sizeof text, "path 1 of mbx1/%s (127.0.0.1:3262) %s", volumes[volume], what);
	add_marker(record, at_ns, "path", volumes[volume], "127.0.0.1:3262", text);
}

static void add_markers(struct record *record)
{
	uint64_t fault = (2 + FAULT) * NS_PER_S, healed = (2 + HEALED) * NS_PER_S;

	add_marker(record, 0, "phase", NULL, NULL, "prepare");
	add_marker(record, 2 * NS_PER_S, "phase", NULL, NULL, "warmup");
	add_marker(record, 7 * NS_PER_S, "phase", NULL, NULL, "window");
	add_marker(record, fault, "fault", NULL, "127.0.0.1:3262",
		   "portal-down begins: 127.0.0.1:3262");
	for (unsigned v = 0; v < VOLUMES; v++)
		add_path_marker(record, fault + (1 + v) * NS_PER_MS, v,
				"down: connection reset by peer");
	add_marker(record, healed, "fault", NULL, "127.0.0.1:3262", "portal-down ends");
	for (unsigned v = 0; v < VOLUMES - 1; v++)
		add_path_marker(record, healed + 800 * NS_PER_MS + v * NS_PER_MS, v, "up");
	add_marker(record, 37 * NS_PER_S, "phase", NULL, NULL, "verify");
}

static void add_failovers(struct record *record)
{
	uint64_t fault = (2 + FAULT) * NS_PER_S, healed = (2 + HEALED) * NS_PER_S;

	for (unsigned v = 0; v < VOLUMES; v++) {
		struct record_failover *failover = record_add_failover(record);
		uint64_t lost = fault + (1 + v) * NS_PER_MS;

		failover->host = copy("mbx1");
		failover->volume = copy(volumes[v]);
		failover->portal = copy("127.0.0.1:3262");
		failover->fault = copy("portal-down begins: 127.0.0.1:3262");
		failover->by = copy("reset");
		failover->path = 1;
		failover->loss = 1;
		failover->reissued = 7 + v;
		failover->at_ns[RECORD_FAULT] = fault;
		failover->at_ns[RECORD_ALIVE] = fault - 2 * NS_PER_MS;
		failover->at_ns[RECORD_LOST] = lost;
		failover->at_ns[RECORD_FIRST_REISSUE] = lost + 50 * NS_PER_US;
		failover->at_ns[RECORD_FIRST_SUCCESS] = lost + 300 * NS_PER_US;
		failover->at_ns[RECORD_DRAINED] = lost + 4 * NS_PER_MS;
		failover->other = copy("127.0.0.1:3261");
		if (v + 1 == VOLUMES)
			continue; /* never fenced, never back */
		failover->at_ns[RECORD_FENCED] = lost + 9 * NS_PER_MS;
		failover->proof = copy("login through another path");
		failover->at_ns[RECORD_UP_AGAIN] = healed + 800 * NS_PER_MS + v * NS_PER_MS;
		failover->at_ns[RECORD_FIRST_IO] = healed + 801 * NS_PER_MS + v * NS_PER_MS;
	}
}

static void add_verdict(struct record *record, const char *id, enum verdict_status status,
			const char *text, json_t *evidence, const char *hint)
{
	struct record_verdict *verdict = record_add_verdict(record);

	verdict->id = copy(id);
	verdict->status = status;
	verdict->text = copy(text);
	verdict->evidence = evidence;
	verdict->hint = hint ? copy(hint) : NULL;
}

static void add_verdicts(struct record *record)
{
	add_verdict(record, "achieved-iops", VERDICT_PASS,
		    "achieved 1,152 of 1,161 planned transactional IOPS (at least 95 %)",
		    json_pack("{s:f, s:f, s:f}", "achieved_iops", 1152.25, "planned_iops", 1161.0,
			      "share", 0.9925),
		    NULL);
	add_verdict(
	    record, "db-read-latency mbx1/db1", VERDICT_PASS,
	    "average database read latency 1.43 ms (limit 20 ms)",
	    json_pack("{s:i, s:i, s:i}", "mean_ns", 1430000, "limit_ns", 20000000, "count", 4411),
	    NULL);
	add_verdict(record, "log-write-latency mbx1/db \"4\" <a&b>", VERDICT_FAIL,
		    "average log write latency of db \"4\" <a&b> is 12.4 ms (limit 10 ms)",
		    json_pack("{s:i, s:i, s:[{s:s, s:i}]}", "mean_ns", 12400000, "limit_ns",
			      10000000, "slowest", "portal", "127.0.0.1:3262", "max_ns",
			      1187000000),
		    "look at the path to 127.0.0.1:3262 & its events");
	add_verdict(record, "max-io-gap", VERDICT_PASS,
		    "longest gap without a completion 1.19 s (limit 2 s)",
		    json_pack("{s:i, s:i}", "max_gap_ns", 1187000000, "limit_ns", 2000000000),
		    NULL);
	add_verdict(record, "data-mismatches", VERDICT_PASS, "0 mismatches in 48,102 pages",
		    json_pack("{s:i, s:i}", "pages", 48102, "mismatches", 0), NULL);
	add_verdict(record, "target-agrees", VERDICT_SKIP,
		    "the target's counters were not asked for", NULL, NULL);
}

static void add_documents(struct record *record)
{
	record->environment = json_pack("{s:s, s:i, s:I, s:{s:s, s:s}}", "kernel", "6.1.0-test",
					"cpus", 2, "memory_bytes", (json_int_t)(8 * GIB),
					"versions", "libiscsi", "1.19.0", "jansson", "2.14");
	record->config_yaml = copy(
	    "name: quickstart\nseed: 42\ngroup:\n  portal: 127.0.0.1:3260\nhosts:\n  - name: mbx1\n"
	    "    note: \"<quotes> & 'apostrophes'\"\n");
	record->mismatches =
	    json_pack("{s:{s:i, s:i}, s:[]}", "by_kind", "torn", 0, "stale", 0, "first");
	record->target = json_pack("{s:s, s:[{s:s, s:i}]}", "schema", "sanlab/target/1", "portals",
				   "portal", "127.0.0.1:3261", "reads", 12345);
}

struct record *fixture_full(void)
{
	struct record *record = record_new();

	if (!record)
		abort();
	record->lab = copy("quick <start> & \"go\"");
	record->workload = copy("exchange");
	record->summary = copy("exchange-2010: 5 databases, 5000 mailboxes x 0.232 IOPS");
	record->seed = UINT64_C(18446744073709551615);
	record->start_wall_ns = UINT64_C(1796032800000000000);
	record->window_start_ns = 7 * NS_PER_S;
	record->window_end_ns = 37 * NS_PER_S;
	record->end_ns = 39 * NS_PER_S + 250 * NS_PER_MS;
	record->planned_transactional_iops = 1161;
	record->achieved_transactional_iops = 1152.25;
	record->total_iops = 1462.7;
	record->pages_checked = 31102;
	record->pages_read_back = 17000;
	record->pages_written = 17000;
	add_streams(record);
	add_paths(record);
	add_samples(record);
	add_markers(record);
	add_failovers(record);
	add_verdicts(record);
	add_documents(record);
	return record;
}

struct record *fixture_empty(void)
{
	struct record *record = record_new();

	if (!record)
		abort();
	record->error = copy("cannot listen on 127.0.0.1:3260: address already in use");
	return record;
}
