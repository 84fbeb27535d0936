/* SPDX-License-Identifier: MIT
 *
 * Verdicts on rebuilds and scrubs.
 */
#include "harness/run/array_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

static uint64_t number_of(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

/* The verdict's text, and what it is based on: one row a member. */
struct finding {
	bool good;
	uint64_t completed;
	char text[300];
	json_t *rows;
};

static void tell(struct finding *finding, const char *member, const char *what)
{
	size_t used = strlen(finding->text);

	finding->good = false;
	snprintf(finding->text + used, sizeof finding->text - used, "%smember %s %s",
		 used ? "; " : "", member, what);
}

static void look_at_rebuild(struct finding *finding, const json_t *member)
{
	const char *name = json_string_value(json_object_get(member, "member"));
	const char *state = json_string_value(json_object_get(member, "raid_state"));
	const json_t *rebuild = json_object_get(member, "rebuild");
	char what[100];

	if (!name || !state || !rebuild)
		return;
	finding->completed += number_of(rebuild, "completed");
	json_array_append_new(finding->rows, json_pack("{s:s, s:s, s:O}", "member", name,
						       "raid_state", state, "rebuild", rebuild));
	if (json_is_true(json_object_get(rebuild, "running"))) {
		snprintf(what, sizeof what, "is still at %.1f %%",
			 json_real_value(json_object_get(rebuild, "percent")));
		tell(finding, name, what);
	} else if (strcmp(state, "healthy") != 0) {
		snprintf(what, sizeof what, "is %s", state);
		tell(finding, name, what);
	} else if (number_of(rebuild, "lost_bytes")) {
		snprintf(what, sizeof what, "has lost %llu bytes",
			 (unsigned long long)number_of(rebuild, "lost_bytes"));
		tell(finding, name, what);
	}
}

static void look_at_scrub(struct finding *finding, const json_t *member, bool clean)
{
	const char *name = json_string_value(json_object_get(member, "member"));
	const json_t *scrub = json_object_get(member, "scrub");
	char what[160];

	if (!name || !scrub)
		return;
	finding->completed += number_of(scrub, "completed");
	json_array_append_new(finding->rows,
			      json_pack("{s:s, s:O}", "member", name, "scrub", scrub));
	if (json_is_true(json_object_get(scrub, "running")))
		tell(finding, name, "is still being scrubbed");
	else if (number_of(scrub, "units_lost") ||
		 (clean &&
		  (number_of(scrub, "units_repaired") || number_of(scrub, "units_inconsistent")))) {
		snprintf(what, sizeof what,
			 "had %llu repaired, %llu inconsistent, %llu lost stripes",
			 (unsigned long long)number_of(scrub, "units_repaired"),
			 (unsigned long long)number_of(scrub, "units_inconsistent"),
			 (unsigned long long)number_of(scrub, "units_lost"));
		tell(finding, name, what);
	}
}

static void judge(struct record *record, const struct expect_config *expect, bool rebuild)
{
	struct finding finding = {.good = true, .rows = json_array()};
	const char *what = rebuild ? "rebuild" : "scrub";
	struct record_verdict *verdict;
	char id[64], text[400];
	const json_t *member;
	size_t i;

	json_array_foreach(json_object_get(record->target, "members"), i, member)
	{
		if (rebuild)
			look_at_rebuild(&finding, member);
		else
			look_at_scrub(&finding, member, strcmp(expect->text, "clean") == 0);
	}
	if (finding.good && !finding.completed) {
		finding.good = false;
		snprintf(finding.text, sizeof finding.text, "there was none");
	}
	if (finding.good)
		snprintf(finding.text, sizeof finding.text, "%llu finished",
			 (unsigned long long)finding.completed);
	snprintf(text, sizeof text, "%ss: %s (expected %s)", what, finding.text, expect->text);
	snprintf(id, sizeof id, "expect %s", what);
	verdict = record_add_verdict(record);
	if (!verdict) {
		json_decref(finding.rows);
		return;
	}
	verdict->status = finding.good ? VERDICT_PASS : VERDICT_FAIL;
	verdict->id = strdup(id);
	verdict->text = strdup(text);
	verdict->evidence = json_pack("{s:o}", "members", finding.rows);
}

void array_check(const struct lab *lab, struct record *record)
{
	const struct expect_config *expect = lab->expect.items;

	for (size_t i = 0; i < lab->expect.count; i++) {
		bool rebuild = expect[i].key && strcmp(expect[i].key, "rebuild") == 0;

		if (rebuild || (expect[i].key && strcmp(expect[i].key, "scrub") == 0))
			judge(record, &expect[i], rebuild);
	}
}
