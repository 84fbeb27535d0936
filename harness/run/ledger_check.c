/* SPDX-License-Identifier: MIT
 *
 * Compares the initiator's ledger with the target's counters.
 */
#include "harness/run/ledger_check.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

struct portal_sums {
	uint64_t reads, writes;
	bool disturbed; /* lost or retried: an I/O may have been served twice */
};

static struct portal_sums sums_of(const struct run_engine *engine, const char *portal)
{
	struct portal_sums sums = {0};
	struct run_path_total total;

	for (unsigned i = 0; run_engine_path_total(engine, i, &total); i++) {
		if (strcmp(total.portal, portal) != 0)
			continue;
		sums.reads += total.reads;
		sums.writes += total.writes;
		sums.disturbed |= total.losses || total.errors || total.retries;
	}
	return sums;
}

static uint64_t count_of(const json_t *portal, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(portal, key));
}

static json_t *compare(const char *name, const json_t *portal, const struct portal_sums *sums)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I}", "portal", name, "ledger_reads",
			 (json_int_t)sums->reads, "ledger_writes", (json_int_t)sums->writes,
			 "target_reads", (json_int_t)count_of(portal, "reads"), "target_writes",
			 (json_int_t)count_of(portal, "writes"));
}

void ledger_check(const struct run_engine *engine, struct record *record)
{
	const json_t *portals = json_object_get(record->target, "portals");
	struct record_verdict *verdict;
	json_t *portal, *rows = json_array();
	uint64_t ios = 0, differing = 0;
	bool disturbed = false;
	char text[200];
	size_t i;

	json_array_foreach(portals, i, portal)
	{
		const char *name = json_string_value(json_object_get(portal, "portal"));
		struct portal_sums sums = sums_of(engine, name ? name : "");

		disturbed |= sums.disturbed;
		ios += sums.reads + sums.writes;
		differing += sums.reads != count_of(portal, "reads") ||
			     sums.writes != count_of(portal, "writes");
		if (name)
			json_array_append_new(rows, compare(name, portal, &sums));
	}
	verdict = record_add_verdict(record);
	if (!verdict) {
		json_decref(rows);
		return;
	}
	if (disturbed) {
		verdict->status = VERDICT_SKIP;
		snprintf(text, sizeof text,
			 "ledger and target's counters: not compared, I/Os were "
			 "sent again on other paths");
	} else {
		verdict->status = differing ? VERDICT_FAIL : VERDICT_PASS;
		snprintf(text, sizeof text,
			 "the initiator's ledger of %llu I/Os %s the target's counters on %llu of "
			 "%zu portals",
			 (unsigned long long)ios, differing ? "differs from" : "agrees with",
			 (unsigned long long)(differing ? differing : json_array_size(portals)),
			 json_array_size(portals));
	}
	verdict->id = strdup("target-ledger");
	verdict->text = strdup(text);
	verdict->evidence = json_pack("{s:o}", "portals", rows);
}
