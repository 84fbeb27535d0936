/* SPDX-License-Identifier: MIT
 *
 * What the files that judge a record share: verdicts.c and jetstress_verdicts.c (Jetstress'
 * criteria), expectations.c (the lab's).
 */
#ifndef SANLAB_HARNESS_RUN_VERDICT_H
#define SANLAB_HARNESS_RUN_VERDICT_H

#include "harness/run/run.h"

/* Averages that Jetstress limits. */
struct verdict_latency {
	const char *stream, *key; /* key of an expectation about the same */
	const char *what;
	double limit_ns;
};
enum { VERDICT_LATENCIES = 3 };
extern const struct verdict_latency verdict_latencies[VERDICT_LATENCIES];

/* Takes EVIDENCE. */
void verdict_add(struct record *record, enum verdict_status status, const char *id,
		 json_t *evidence, const char *format, ...) __attribute__((format(printf, 5, 6)));
/* A remedy for the last verdict, when it is a failure. */
void verdict_hint(struct record *record, const char *text);
enum verdict_status verdict_pass_if(bool good);
json_t *verdict_number(uint64_t value);

double verdict_share_achieved(const struct record *record);
json_t *verdict_iops_json(const struct record *record);
void verdict_iops_text(const struct record *record, char *out, size_t size);
uint64_t verdict_errors_of(const struct record *record);
json_t *verdict_errors_json(const struct record *record);
json_t *verdict_latency_json(const struct record_stream *stream, double limit_ns);

/* The lab has an expectation about KEY, which takes the place of Jetstress' limit. */
bool verdict_expected(const struct lab *lab, const char *key);
void verdict_latency(struct record *record, const struct record_stream *stream, const char *what,
		     double limit_ns);

/* jetstress_verdicts.c: of a test of the engine (record->exchange) */
void jetstress_judge(const struct lab *lab, struct record *record);

/* replay_verdicts.c: what became of a trace; nothing when none was replayed. */
void replay_judge(const struct lab *lab, struct record *record);
/* FIGURE of the lateness, "p99_ns" or "max_ns". */
void replay_expect(struct record *record, const struct expect_config *expect, const char *id,
		   const char *figure);

/* ... and of a recording of this run. */
void recorder_judge(struct record *record, const struct recorder_result *result);

/* expectations.c */
bool verdict_holds(int op, double value, double limit);
void expectations_judge(const struct lab *lab, struct record *record);

#endif
