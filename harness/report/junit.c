/* SPDX-License-Identifier: MIT
 *
 * junit.xml: one test case a verdict, as CI systems show it.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/bytes.h"
#include "base/text.h"
#include "harness/report/format.h"
#include "harness/report/view.h"
#include "harness/report/writers.h"
#include "sanlab_version.h"

static void put_attribute(FILE *to, const char *name, const char *value)
{
	fprintf(to, " %s=\"", name);
	escape_xml(to, value);
	fputc('"', to);
}

static void put_property(FILE *to, const char *name, const char *value)
{
	if (!value)
		return;
	fputs("   <property", to);
	put_attribute(to, "name", name);
	put_attribute(to, "value", value);
	fputs("/>\n", to);
}

static void put_properties(FILE *to, const struct record *record)
{
	char seed[24];

	snprintf(seed, sizeof seed, "%" PRIu64, record->seed);
	fputs("  <properties>\n", to);
	put_property(to, "lab", record->lab);
	put_property(to, "seed", seed);
	put_property(to, "workload", record->workload);
	put_property(to, "plan", record->summary);
	put_property(to, "version", record->version ? record->version : SANLAB_VERSION);
	put_property(to, "interrupted", record->interrupted ? "yes" : "no");
	fputs("  </properties>\n", to);
}

static void put_evidence_line(void *arg, const char *key, const char *value)
{
	FILE *to = arg;

	escape_xml(to, key);
	fputs(": ", to);
	escape_xml(to, value);
	fputc('\n', to);
}

static void put_outcome(FILE *to, const struct record_verdict *verdict)
{
	switch (verdict->status) {
	case VERDICT_PASS:
		fputs("   <system-out>", to);
		escape_xml(to, verdict->text);
		fputs("</system-out>\n", to);
		break;
	case VERDICT_SKIP:
		fputs("   <skipped", to);
		put_attribute(to, "message", verdict->text ? verdict->text : "");
		fputs("/>\n", to);
		break;
	case VERDICT_FAIL:
		fputs("   <failure type=\"expectation\"", to);
		put_attribute(to, "message", verdict->text ? verdict->text : "");
		fputc('>', to);
		escape_xml(to, verdict->text);
		fputc('\n', to);
		evidence_each(verdict->evidence, put_evidence_line, to);
		if (verdict->hint)
			put_evidence_line(to, "hint", verdict->hint);
		fputs("   </failure>\n", to);
		break;
	}
}

static void put_case_head(FILE *to, const struct record *record, const char *name)
{
	fputs("  <testcase classname=\"sanlab.", to);
	escape_xml(to, record->lab ? record->lab : "run");
	fputc('"', to);
	put_attribute(to, "name", name ? name : "");
	fputs(" time=\"0\">\n", to);
}

/* The totals, on the document and on its only suite. */
static void put_totals(FILE *to, const struct view *view)
{
	const struct record *record = view->record;

	fprintf(to, " tests=\"%u\" failures=\"%u\" errors=\"%u\" skipped=\"%u\" time=\"%.3f\"",
		record->verdict_count + (record->error ? 1U : 0U), view->verdicts[VERDICT_FAIL],
		record->error ? 1U : 0U, view->verdicts[VERDICT_SKIP],
		(double)record->end_ns / (double)NS_PER_S);
}

static int junit_write(const struct record *record, FILE *to)
{
	char utc[40];
	struct view *view;
	int r = view_new(record, &view);

	if (r < 0)
		return r;
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"sanlab\"", to);
	put_totals(to, view);
	fputs(">\n <testsuite", to);
	put_attribute(to, "name", record->lab ? record->lab : "run");
	put_totals(to, view);
	put_attribute(to, "timestamp", text_utc(utc, sizeof utc, record->start_wall_ns));
	fputs(">\n", to);
	put_properties(to, record);
	for (unsigned i = 0; i < record->verdict_count; i++) {
		put_case_head(to, record, record->verdicts[i].id);
		put_outcome(to, &record->verdicts[i]);
		fputs("  </testcase>\n", to);
	}
	if (record->error) {
		put_case_head(to, record, "run");
		fputs("   <error type=\"run\"", to);
		put_attribute(to, "message", record->error);
		fputs("/>\n  </testcase>\n", to);
	}
	fputs(" </testsuite>\n</testsuites>\n", to);
	view_free(view);
	return ferror(to) ? -EIO : 0;
}

const struct report_writer junit_writer = {
    .file = "junit.xml",
    .help = "one test case a check, for CI",
    .write = junit_write,
};
