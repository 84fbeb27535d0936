/* SPDX-License-Identifier: MIT
 *
 * The lab's expectations: one verdict each, with the figure that comes closest to breaking it.
 * Pure.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "harness/run/verdict.h"

bool verdict_holds(int op, double value, double limit)
{
	switch (op) {
	case EXPECT_EQ:
		return value == limit;
	case EXPECT_LE:
		return value <= limit;
	case EXPECT_LT:
		return value < limit;
	case EXPECT_GE:
		return value >= limit;
	default:
		return value > limit;
	}
}

/* The value that is hardest for OP to hold. */
static bool is_worse(int op, double value, double than)
{
	return op == EXPECT_GE || op == EXPECT_GT ? value < than : value > than;
}

static bool is_meant(const struct expect_config *expect, const struct record_stream *stream)
{
	return !expect->stream || strcmp(expect->stream, stream->name) == 0;
}

static void expect_count(struct record *record, const struct expect_config *expect, const char *id,
			 uint64_t value, json_t *evidence, const char *what)
{
	verdict_add(
	    record, verdict_pass_if(verdict_holds(expect->op, (double)value, expect->value)), id,
	    evidence, "%llu %s (expected %s)", (unsigned long long)value, what, expect->text);
}

/* Of a load that is not ours, what the target has seen. */
static void expect_observed_gap(struct record *record, const struct expect_config *expect,
				const char *id)
{
	const json_t *device, *worst = NULL;
	double gap_ns, worst_ns = 0;
	char gap[32];
	size_t i;

	json_array_foreach(json_object_get(record->observed, "devices"), i, device)
	{
		gap_ns = (double)json_integer_value(json_object_get(device, "max_gap_ns"));
		if (!worst || is_worse(expect->op, gap_ns, worst_ns)) {
			worst = device;
			worst_ns = gap_ns;
		}
	}
	if (!worst) {
		verdict_add(record, VERDICT_FAIL, id, json_object(), "no initiator did any I/O");
		return;
	}
	text_duration(gap, sizeof gap, worst_ns);
	verdict_add(record, verdict_pass_if(verdict_holds(expect->op, worst_ns, expect->value)), id,
		    json_deep_copy(worst),
		    "longest time without I/O as the target saw it %s, %s on %s (expected %s)", gap,
		    json_string_value(json_object_get(worst, "initiator")),
		    json_string_value(json_object_get(worst, "target")), expect->text);
}

static void expect_gap(struct record *record, const struct expect_config *expect, const char *id)
{
	const struct record_stream *worst = NULL;
	char gap[32];

	if (record->observed) {
		expect_observed_gap(record, expect, id);
		return;
	}
	for (unsigned i = 0; i < record->stream_count; i++)
		if (is_meant(expect, &record->streams[i]) &&
		    (!worst || is_worse(expect->op, (double)record->streams[i].max_gap_ns,
					(double)worst->max_gap_ns)))
			worst = &record->streams[i];
	if (!worst) {
		verdict_add(record, expect->stream ? VERDICT_FAIL : VERDICT_SKIP, id, json_object(),
			    "no %s ran", expect->stream ? expect->stream : "stream");
		return;
	}
	text_duration(gap, sizeof gap, (double)worst->max_gap_ns);
	verdict_add(
	    record,
	    verdict_pass_if(verdict_holds(expect->op, (double)worst->max_gap_ns, expect->value)),
	    id,
	    json_pack("{s:s, s:s, s:s, s:o, s:o}", "host", worst->host, "volume", worst->volume,
		      "stream", worst->name, "max_gap_ns", verdict_number(worst->max_gap_ns),
		      "limit_ns", verdict_number((uint64_t)expect->value)),
	    "longest gap without a completion %s, %s of %s/%s (expected %s)", gap, worst->name,
	    worst->host, worst->volume, expect->text);
}

/* What a path carried of what its volume's steady paths did.  Paths that were lost have missed
 * part of the window by no fault of the policy: they are told, and left out of the comparison. */
struct steady_share {
	double share, even;
	unsigned lost;
};

static struct steady_share share_among_steady(const struct record *record,
					      const struct record_path *path)
{
	struct steady_share result = {0};
	uint64_t ios = 0;
	unsigned steady = 0;

	for (unsigned i = 0; i < record->path_count; i++) {
		const struct record_path *other = &record->paths[i];

		if (strcmp(other->host, path->host) != 0 ||
		    strcmp(other->volume, path->volume) != 0)
			continue;
		result.lost += other->losses > 0;
		steady += other->losses == 0;
		ios += other->losses == 0 ? other->ios : 0;
	}
	result.even = steady ? 1.0 / steady : 0;
	result.share = ios ? (double)path->ios / (double)ios : 0;
	return result;
}

/* How far the share of a path may be from even. */
static void expect_share(struct record *record, const struct expect_config *expect, const char *id)
{
	const struct record_path *worst = NULL;
	struct steady_share worst_share = {0};
	double worst_by = 0;
	char lost[64] = "";

	for (unsigned i = 0; i < record->path_count; i++) {
		struct steady_share now = share_among_steady(record, &record->paths[i]);
		double by = now.share > now.even ? now.share - now.even : now.even - now.share;

		if (record->paths[i].losses == 0 &&
		    (!worst || is_worse(expect->op, by, worst_by))) {
			worst = &record->paths[i];
			worst_share = now;
			worst_by = by;
		}
	}
	if (!worst) {
		verdict_add(record, VERDICT_SKIP, id, json_object(), "no path was up all the time");
		return;
	}
	if (worst_share.lost)
		snprintf(lost, sizeof lost, "; %u lost path%s left out", worst_share.lost,
			 worst_share.lost > 1 ? "s" : "");
	verdict_add(record, verdict_pass_if(verdict_holds(expect->op, worst_by, expect->value)), id,
		    json_pack("{s:s, s:s, s:i, s:s, s:o, s:f, s:f, s:i}", "host", worst->host,
			      "volume", worst->volume, "path", (int)worst->index, "portal",
			      worst->portal, "ios", verdict_number(worst->ios), "share",
			      worst_share.share, "even_share", worst_share.even, "lost_paths",
			      (int)worst_share.lost),
		    "path %u of %s/%s (%s) carried %.2f %%, even would be %.2f %% (expected %s%s)",
		    worst->index, worst->host, worst->volume, worst->portal,
		    worst_share.share * 100, worst_share.even * 100, expect->text, lost);
}

static void expect_iops(struct record *record, const struct expect_config *expect, const char *id)
{
	char text[160];

	if (record->planned_transactional_iops <= 0) {
		verdict_add(record, VERDICT_SKIP, id, json_object(),
			    "the workload has no planned transactional IOPS");
		return;
	}
	verdict_iops_text(record, text, sizeof text);
	verdict_add(record,
		    verdict_pass_if(
			verdict_holds(expect->op, verdict_share_achieved(record), expect->value)),
		    id, verdict_iops_json(record), "%s (expected %s)", text, expect->text);
}

static void expect_latency(struct record *record, const struct expect_config *expect,
			   const char *id, const char *stream_name, const char *what)
{
	const struct record_stream *worst = NULL;
	double worst_ns = 0;
	char mean[32];

	for (unsigned i = 0; i < record->stream_count; i++) {
		const struct record_stream *stream = &record->streams[i];
		double mean_ns = hist_mean_ns(&stream->response);

		if (strcmp(stream->name, stream_name) != 0 || stream->ios == 0 ||
		    (worst && !is_worse(expect->op, mean_ns, worst_ns)))
			continue;
		worst = stream;
		worst_ns = mean_ns;
	}
	if (!worst) {
		verdict_add(record, VERDICT_FAIL, id, json_object(),
			    "no %s ended in the measured window", what);
		return;
	}
	text_duration(mean, sizeof mean, worst_ns);
	verdict_add(record, verdict_pass_if(verdict_holds(expect->op, worst_ns, expect->value)), id,
		    verdict_latency_json(worst, expect->value),
		    "average %s latency at worst %s, %s/%s (expected %s)", what, mean, worst->host,
		    worst->volume, expect->text);
}

/* Percentiles of the response time. */
static const struct {
	const char *key;
	double quantile;
	const char *of_step; /* in record->curve */
} percentiles[] = {
    {"p50-latency", 0.5, "p50_ns"},	 {"p90-latency", 0.9, "p90_ns"},
    {"p95-latency", 0.95, "p95_ns"},	 {"p99-latency", 0.99, "p99_ns"},
    {"p99.9-latency", 0.999, "p999_ns"}, {"max-latency", 1, "max_ns"},
};

static uint64_t quantile_of(const struct record_stream *stream, double quantile)
{
	return quantile < 1 ? hist_quantile_ns(&stream->response, quantile)
			    : stream->response.max_ns;
}

static void expect_percentile(struct record *record, const struct expect_config *expect,
			      const char *id, double quantile)
{
	const struct record_stream *worst = NULL;
	uint64_t worst_ns = 0;
	json_t *evidence;
	char value[32];

	for (unsigned i = 0; i < record->stream_count; i++) {
		const struct record_stream *stream = &record->streams[i];
		uint64_t ns = quantile_of(stream, quantile);

		if (!is_meant(expect, stream) || stream->ios == 0 ||
		    (worst && !is_worse(expect->op, (double)ns, (double)worst_ns)))
			continue;
		worst = stream;
		worst_ns = ns;
	}
	if (!worst) {
		verdict_add(record, VERDICT_FAIL, id, json_object(),
			    "no %s ended in the measured window",
			    expect->stream ? expect->stream : "I/O");
		return;
	}
	evidence = verdict_latency_json(worst, expect->value);
	json_object_set_new(evidence, "value_ns", verdict_number(worst_ns));
	json_object_set_new(evidence, "quantile", json_real(quantile));
	text_duration(value, sizeof value, (double)worst_ns);
	verdict_add(record,
		    verdict_pass_if(verdict_holds(expect->op, (double)worst_ns, expect->value)), id,
		    evidence, "%s at worst %s, %s of %s/%s (expected %s)", expect->key, value,
		    worst->name, worst->host, worst->volume, expect->text);
	verdict_hint(record, "latency counts from when each I/O was due: what a stall held back is "
			     "part of it");
}

/* What SIDE of a sweep's step, the reads, the writes or all, says. */
static const json_t *side_of_step(const json_t *step, const char *stream)
{
	if (!stream)
		return step;
	return json_object_get(step, strcmp(stream, "write") == 0 ? "writes" : "reads");
}

static void expect_step(struct record *record, const struct expect_config *expect, const char *id,
			const char *key)
{
	const json_t *step, *found = NULL;
	char value[32];
	double ns;
	size_t i;

	json_array_foreach(json_object_get(record->curve, "steps"), i, step)
	{
		if (json_number_value(json_object_get(step, "level")) == expect->step)
			found = side_of_step(step, expect->stream);
	}
	if (!json_integer_value(json_object_get(found, "ios"))) {
		verdict_add(record, VERDICT_FAIL, id, json_object(),
			    "no I/O ended in a step %g of a sweep", expect->step);
		return;
	}
	ns = (double)json_integer_value(json_object_get(found, key));
	text_duration(value, sizeof value, ns);
	verdict_add(record, verdict_pass_if(verdict_holds(expect->op, ns, expect->value)), id,
		    json_deep_copy(found), "%s of step %g: %s (expected %s)", expect->key,
		    expect->step, value, expect->text);
}

/* ---- failover ---- */

/* The time that is asked for, at worst, and a loss where it should have come and did not. */
struct failover_worst {
	const struct record_failover *loss, *never;
	double ns;
	unsigned losses, values;
};

static struct failover_worst worst_failover(const struct record *record,
					    const struct expect_config *expect, bool failback)
{
	struct failover_worst worst = {.loss = NULL};

	for (unsigned i = 0; i < record->failover_count; i++) {
		const struct record_failover *loss = &record->failovers[i];
		/* What was lost again with another path before it succeeded is that loss's to tell.
		 */
		bool due = failback ? loss->fault_end_ns != 0
				    : loss->failed != 0 ||
					  (loss->reissued != 0 && !loss->at_ns[RECORD_DRAINED]);
		double ns = (double)(failback ? record_failback_time_ns(loss)
					      : record_failover_time_ns(loss));

		/* Nobody knows when it began. */
		if (!loss->at_ns[RECORD_FAULT])
			continue;
		worst.losses++;
		if (ns == 0) {
			worst.never = due && !worst.never ? loss : worst.never;
			continue;
		}
		worst.values++;
		if (worst.loss && !is_worse(expect->op, ns, worst.ns))
			continue;
		worst.loss = loss;
		worst.ns = ns;
	}
	return worst;
}

static json_t *failover_evidence(const struct record_failover *loss,
				 const struct failover_worst *worst, double limit_ns)
{
	json_t *evidence = json_pack("{s:i, s:o}", "losses", (int)worst->losses, "limit_ns",
				     verdict_number((uint64_t)limit_ns));

	if (!loss)
		return evidence;
	json_object_set_new(evidence, "host", json_string(loss->host));
	json_object_set_new(evidence, "volume", json_string(loss->volume));
	json_object_set_new(evidence, "path", json_integer((json_int_t)loss->path));
	json_object_set_new(evidence, "portal", json_string(loss->portal));
	json_object_set_new(evidence, "fault", json_string(loss->fault));
	json_object_set_new(evidence, "by", json_string(loss->by));
	json_object_set_new(evidence, "reissued", verdict_number(loss->reissued));
	json_object_set_new(evidence, "failed", verdict_number(loss->failed));
	for (unsigned i = 0; i < RECORD_INSTANTS; i++)
		if (loss->at_ns[i])
			json_object_set_new(evidence, record_instant_keys[i],
					    verdict_number(loss->at_ns[i]));
	if (loss->fault_end_ns)
		json_object_set_new(evidence, "fault_end_ns", verdict_number(loss->fault_end_ns));
	return evidence;
}

static void expect_failover(struct record *record, const struct expect_config *expect,
			    const char *id, bool failback)
{
	struct failover_worst worst = worst_failover(record, expect, failback);
	const struct record_failover *shown = worst.never ? worst.never : worst.loss;
	const char *what = failback ? "failback" : "failover";
	json_t *evidence = failover_evidence(shown, &worst, expect->value);
	char value[32], where[300] = "";

	if (shown)
		snprintf(where, sizeof where, "path %u of %s/%s (%s), found by %s", shown->path,
			 shown->host, shown->volume, shown->portal, shown->by);
	text_duration(value, sizeof value, worst.ns);
	if (worst.never)
		verdict_add(record, VERDICT_FAIL, id, evidence, "no %s: %s (expected %s)", what,
			    where, expect->text);
	else if (worst.loss)
		verdict_add(record,
			    verdict_pass_if(verdict_holds(expect->op, worst.ns, expect->value)), id,
			    evidence, "longest of %u %s%s %s: %s (expected %s)", worst.values, what,
			    worst.values == 1 ? "" : "s", value, where, expect->text);
	else if (worst.losses && !failback)
		verdict_add(record, VERDICT_PASS, id, evidence,
			    "paths were lost with nothing on its way (expected %s)", expect->text);
	else
		verdict_add(record, VERDICT_FAIL, id, evidence,
			    "no path %s: there was no %s to time (expected %s)",
			    failback ? "came back from a fault" : "was lost to a fault", what,
			    expect->text);
}

/* Of somebody else's load the target sees when nothing was asked of it, not what came of the I/O.
 */
static bool is_seen_by_target(const char *key)
{
	return strcmp(key, "max-io-gap") == 0 || strcmp(key, "rebuild") == 0 ||
	       strcmp(key, "scrub") == 0;
}

static void judge_expectation(struct record *record, const struct expect_config *expect,
			      const char *id)
{
	if (strcmp(expect->key, "data-mismatches") == 0)
		expect_count(record, expect, id, record->mismatches_total, json_object(),
			     record->replay ? "sectors held wrong data" : "pages held wrong data");
	else if (strcmp(expect->key, "io-errors") == 0)
		expect_count(record, expect, id, verdict_errors_of(record),
			     verdict_errors_json(record), "I/Os failed");
	else if (strcmp(expect->key, "max-io-gap") == 0)
		expect_gap(record, expect, id);
	else if (strcmp(expect->key, "failover-time") == 0)
		expect_failover(record, expect, id, false);
	else if (strcmp(expect->key, "failback-time") == 0)
		expect_failover(record, expect, id, true);
	else if (strcmp(expect->key, "p99-lateness") == 0)
		replay_expect(record, expect, id, "p99_ns");
	else if (strcmp(expect->key, "max-lateness") == 0)
		replay_expect(record, expect, id, "max_ns");
	else if (strcmp(expect->key, "path-share") == 0)
		expect_share(record, expect, id);
	else if (strcmp(expect->key, "achieved-iops") == 0)
		expect_iops(record, expect, id);
	for (size_t i = 0; i < VERDICT_LATENCIES; i++)
		if (strcmp(expect->key, verdict_latencies[i].key) == 0)
			expect_latency(record, expect, id, verdict_latencies[i].stream,
				       verdict_latencies[i].what);
	for (size_t i = 0; i < ARRAY_SIZE(percentiles); i++)
		if (strcmp(expect->key, percentiles[i].key) != 0)
			continue;
		else if (expect->step > 0)
			expect_step(record, expect, id, percentiles[i].of_step);
		else
			expect_percentile(record, expect, id, percentiles[i].quantile);
}

void expectations_judge(const struct lab *lab, struct record *record)
{
	const struct expect_config *expect = lab->expect.items;

	for (size_t i = 0; i < lab->expect.count; i++) {
		unsigned before = 0;
		char id[120];

		if (!expect[i].key)
			continue;
		for (size_t k = 0; k < i; k++)
			before += expect[k].key && strcmp(expect[k].key, expect[i].key) == 0;
		if (before)
			snprintf(id, sizeof id, "expect %s %u", expect[i].key, before + 1);
		else
			snprintf(id, sizeof id, "expect %s", expect[i].key);
		if (record->observed && !is_seen_by_target(expect[i].key))
			verdict_add(record, VERDICT_SKIP, id, json_object(),
				    "only the initiator could tell (expected %s %s)", expect[i].key,
				    expect[i].text);
		else
			judge_expectation(record, &expect[i], id);
	}
}
