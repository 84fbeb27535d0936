/* SPDX-License-Identifier: MIT
 *
 * Expectations: `- {max-io-gap: "<= 2s"}` becomes an operator and a number.
 */
#include <string.h>

#include "base/bytes.h"
#include "harness/lab/lab_impl.h"
#include "harness/workload/workload.h"

struct kind {
	const char *key;
	size_t offset;
	enum cfg_type type; /* of the number; CFG_STRING: one of the words */
	const char *example;
	const char *const *words;
};

static const char *const rebuild_words[] = {"finished", NULL};
static const char *const scrub_words[] = {"finished", "clean", NULL};

static const struct kind kinds[] = {
    {"data-mismatches", offsetof(struct expect_config, data_mismatches), CFG_UINT, "0"},
    {"io-errors", offsetof(struct expect_config, io_errors), CFG_UINT, "0"},
    {"max-io-gap", offsetof(struct expect_config, max_io_gap), CFG_DURATION, "\"<= 2s\""},
    {"failover-time", offsetof(struct expect_config, failover_time), CFG_DURATION, "\"<= 2s\""},
    {"failback-time", offsetof(struct expect_config, failback_time), CFG_DURATION, "\"<= 5s\""},
    {"p50-latency", offsetof(struct expect_config, p50_latency), CFG_DURATION, "\"< 5ms\""},
    {"p90-latency", offsetof(struct expect_config, p90_latency), CFG_DURATION, "\"< 20ms\""},
    {"p95-latency", offsetof(struct expect_config, p95_latency), CFG_DURATION, "\"< 20ms\""},
    {"p99-latency", offsetof(struct expect_config, p99_latency), CFG_DURATION, "\"< 50ms\""},
    {"p99.9-latency", offsetof(struct expect_config, p999_latency), CFG_DURATION, "\"< 1s\""},
    {"max-latency", offsetof(struct expect_config, max_latency), CFG_DURATION, "\"< 2s\""},
    {"p99-lateness", offsetof(struct expect_config, p99_lateness), CFG_DURATION, "\"<= 10ms\""},
    {"max-lateness", offsetof(struct expect_config, max_lateness), CFG_DURATION, "\"<= 1s\""},
    {"path-share", offsetof(struct expect_config, path_share), CFG_PERCENT, "within 1%"},
    {"achieved-iops", offsetof(struct expect_config, achieved_iops), CFG_PERCENT, "\">= 95%\""},
    {"db-read-latency", offsetof(struct expect_config, db_read_latency), CFG_DURATION,
     "\"< 20ms\""},
    {"db-write-latency", offsetof(struct expect_config, db_write_latency), CFG_DURATION,
     "\"< 20ms\""},
    {"log-write-latency", offsetof(struct expect_config, log_write_latency), CFG_DURATION,
     "\"< 10ms\""},
    {"rebuild", offsetof(struct expect_config, rebuild), CFG_STRING, "finished", rebuild_words},
    {"scrub", offsetof(struct expect_config, scrub), CFG_STRING, "clean", scrub_words},
};

static const struct {
	const char *text;
	enum expect_op op;
} operators[] = {
    /* Longer ones first: "<=" begins with "<". */
    {"<=", EXPECT_LE}, {">=", EXPECT_GE}, {"==", EXPECT_EQ},
    {"<", EXPECT_LT},  {">", EXPECT_GT},  {"=", EXPECT_EQ},
};

/* Cuts the operator off *TEXT; without one it is EXPECT_EQ and false is returned. */
static bool take_operator(const char **text, int *ret_op)
{
	*ret_op = EXPECT_EQ;
	for (size_t i = 0; i < ARRAY_SIZE(operators); i++) {
		size_t length = strlen(operators[i].text);
		if (strncmp(*text, operators[i].text, length) != 0)
			continue;
		*ret_op = (int)operators[i].op;
		*text += length + strspn(*text + length, " ");
		return true;
	}
	return false;
}

static void parse_word(struct lab *lab, struct expect_config *expect, const struct kind *kind,
		       const struct cfg_raw *raw)
{
	for (size_t i = 0; kind->words[i]; i++)
		if (!strcmp(kind->words[i], expect->text))
			return;
	cfg_error_raw(lab->cfg, raw, "'%s' is '%.60s'; write %s", kind->key, expect->text,
		      kind->example);
}

/* More than all of it is a mistake in writing. */
static bool share_is_odd(const struct kind *kind, double share)
{
	return kind->type == CFG_PERCENT && share > 1;
}

static void parse_condition(struct lab *lab, struct expect_config *expect, const struct kind *kind,
			    const struct cfg_raw *raw)
{
	static const char within[] = "within ";
	const char *text = cfg_raw_scalar(raw);
	char why[300];
	uint64_t whole = 0;
	double real = 0;
	bool share = kind->offset == offsetof(struct expect_config, path_share);
	bool have_operator;

	if (!text || !*text) {
		cfg_error_raw(lab->cfg, raw, "'%s' needs a condition, such as %s", kind->key,
			      kind->example);
		return;
	}
	expect->key = kind->key;
	expect->text = text;
	if (kind->type == CFG_STRING) {
		parse_word(lab, expect, kind, raw);
		return;
	}
	if (share && !strncmp(text, within, sizeof within - 1)) {
		text += sizeof within - 1;
		expect->op = EXPECT_LE;
		have_operator = true;
	} else {
		have_operator = take_operator(&text, &expect->op) && !share;
	}
	/* A measured time or share never equals a figure: only counts may. */
	if ((!have_operator || expect->op == EXPECT_EQ) && kind->type != CFG_UINT) {
		cfg_error_raw(lab->cfg, raw, "'%s' is '%.60s'; write a condition, such as %s",
			      kind->key, expect->text, kind->example);
		return;
	}
	void *out = kind->type == CFG_PERCENT ? (void *)&real : (void *)&whole;
	if (cfg_parse_scalar(kind->type, text, out, why, sizeof why)) {
		cfg_error_raw(lab->cfg, raw, "'%s': %s", kind->key, why);
		cfg_hint(lab->cfg, "write a condition, such as %s", kind->example);
		return;
	}
	if (share_is_odd(kind, real)) {
		cfg_error_raw(lab->cfg, raw, "'%s' is '%.60s': more than all of it (100 %%)",
			      kind->key, expect->text);
		cfg_hint(lab->cfg, "write a condition, such as %s", kind->example);
		return;
	}
	expect->value = kind->type == CFG_PERCENT ? real : (double)whole;
}

static bool is_of_streams(const char *key)
{
	size_t length = strlen(key);

	return !strcmp(key, "max-io-gap") || !strcmp(key, "max-latency") ||
	       (key[0] == 'p' && length > 8 && !strcmp(key + length - 8, "-latency"));
}

static void check_expect(struct lab *lab, struct expect_config *expect)
{
	const struct kind *found = NULL;
	const struct cfg_raw *raw = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct cfg_raw *given =
		    (const struct cfg_raw *)(const void *)((const char *)expect + kinds[i].offset);
		if (!given->node)
			continue;
		if (found) {
			cfg_error_raw(lab->cfg, given, "a second key in one expectation: '%s'",
				      kinds[i].key);
			cfg_hint(lab->cfg, "give each its own entry");
			return;
		}
		found = &kinds[i];
		raw = given;
	}
	if (found)
		parse_condition(lab, expect, found, raw);
	if (found && expect->stream && !is_of_streams(found->key))
		cfg_error_at(lab->cfg, &expect->stream, "'%s' is not about single streams",
			     found->key);
	if (found && strstr(found->key, "-lateness") && lab->workload_ops &&
	    strcmp(lab->workload_ops->name, "replay") != 0)
		cfg_error_raw(lab->cfg, raw, "'%s' is about replays, the workload is %s",
			      found->key, lab->workload_ops->name);
	if (found && expect->step > 0 &&
	    (!is_of_streams(found->key) || !strcmp(found->key, "max-io-gap")))
		cfg_error_at(lab->cfg, &expect->step, "'%s' is not about single steps", found->key);
	if (found)
		return;
	if (cfg_valid(lab->cfg, &expect->data_mismatches))
		cfg_error_at(lab->cfg, &expect->data_mismatches, "an expectation without a key");
}

void lab_check_expect(struct lab *lab)
{
	struct expect_config *expect = lab->expect.items;
	for (size_t i = 0; i < lab->expect.count; i++)
		check_expect(lab, &expect[i]);
}
