/* SPDX-License-Identifier: MIT
 *
 * JetstressConfig.xml: what becomes of each element, and what hostile documents cannot do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "harness/lab/jetstress_import.h"
#include "harness/lab/jetstress_xml.h"
#include "tests/unit/lab/engine_lab.h"

static char *read_file(const char *name)
{
	char *path, *text = malloc(XML_BYTES_MAX);
	size_t size;
	FILE *from;

	assert_non_null(text);
	assert_true(asprintf(&path, "%s/tests/golden/%s", SOURCE_ROOT, name) > 0);
	from = fopen(path, "re");
	if (!from)
		fail_msg("cannot read %s", path);
	size = fread(text, 1, XML_BYTES_MAX - 1, from);
	text[size] = '\0';
	fclose(from);
	free(path);
	return text;
}

/* The notes, one a line. */
static char *notes_of(const struct jetstress_design *design)
{
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);

	for (unsigned i = 0; i < design->note_count; i++)
		fprintf(to, "%u: %s: %s\n", design->notes[i].line, design->notes[i].element,
			design->notes[i].why);
	fclose(to);
	return text;
}

static char *lab_of(struct jetstress_design *design)
{
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);

	assert_int_equal(jetstress_put_lab(design, "a/b/JetstressConfig.xml", to), 0);
	fclose(to);
	return text;
}

static struct jetstress_design *design_of(const char *xml)
{
	struct jetstress_design *design = calloc(1, sizeof *design);
	struct err err = {0};

	assert_non_null(design);
	if (jetstress_read("test.xml", xml, strlen(xml), design, &err) < 0)
		fail_msg("%s: %s", err.where, err.what);
	return design;
}

static struct jetstress_design *design_of_parts(const char *info, const char *profile,
						const char *params)
{
	struct jetstress_design *design;
	char *xml;

	assert_true(asprintf(&xml,
			     "<configuration>\n<TestDesignInfo>%s</TestDesignInfo>\n"
			     "<ExchangeProfile>%s</ExchangeProfile>\n"
			     "<JetSystemParams>%s</JetSystemParams>\n</configuration>",
			     info, profile, params) > 0);
	design = design_of(xml);
	free(xml);
	return design;
}

static void compare(const char *name, char *text)
{
	const char *update = getenv("UPDATE_GOLDEN");
	char *want, *path;

	if (update && *update) {
		FILE *to;

		assert_true(asprintf(&path, "%s/tests/golden/%s", SOURCE_ROOT, name) > 0);
		to = fopen(path, "we");
		assert_non_null(to);
		fputs(text, to);
		fclose(to);
		free(path);
	}
	want = read_file(name);
	assert_string_equal(text, want);
	free(want);
	free(text);
}

static void a_whole_configuration(void **state)
{
	char *xml = read_file("JetstressConfig.xml"), *lab;
	struct jetstress_design *design = design_of(xml);

	lab = lab_of(design);
	engine_lab_accepted(lab);
	compare("jetstress-import.yaml", lab);
	compare("jetstress-import.txt", notes_of(design));
	free(design);
	free(xml);
}

static void expect_line(const char *text, const char *line)
{
	const char *at = text;
	size_t length = strlen(line);

	while ((at = strstr(at, line)) != NULL) {
		if ((at == text || at[-1] == '\n') && at[length] == '\n')
			return;
		at++;
	}
	fail_msg("no line '%s' in:\n%s", line, text);
}

/* Values other than Jetstress' own end up in the lab. */
static void other_values(void **state)
{
	struct jetstress_design *design = design_of_parts(
	    "<Type>SoftRecovery</Type><Duration>PT90M30S</Duration>"
	    "<VerifyChecksum>0</VerifyChecksum><SuppressTuning>TRUE</SuppressTuning>"
	    "<RunDatabaseMaintenanceSoftRecovery>false</RunDatabaseMaintenanceSoftRecovery>"
	    "<LogInterval>5000</LogInterval><PreloadJetCache>0.5</PreloadJetCache>"
	    "<MaximumLatencyErrors>3</MaximumLatencyErrors>"
	    "<LogFilesToReplay>40</LogFilesToReplay>"
	    "<OperationMix InsertOps='25' DeleteOps='12.5' ReplaceOps='0' LazyCommits='50'/>"
	    "<Thresholds Name='Strict'>"
	    "<AverageDatabaseReadLatency>12.5</AverageDatabaseReadLatency>"
	    "<AverageLogWriteLatency>5</AverageLogWriteLatency></Thresholds>",
	    "<ThreadCount>7</ThreadCount><ThroughputPercentage>50</ThroughputPercentage>"
	    "<DatabaseSource>Open</DatabaseSource><CapacityPercentage>80</CapacityPercentage>"
	    "<MailboxCount>100</MailboxCount><MailboxQuota>10</MailboxQuota>"
	    "<MailboxIops>0.1</MailboxIops><MarginIops>0.1</MarginIops>"
	    "<LongPadLength>1000</LongPadLength><DatabaseSpaceReserved>50</DatabaseSpaceReserved>"
	    "<DatabaseCopyCount>3</DatabaseCopyCount><EseInstances>"
	    "<EseInstance><DatabasePaths><Path>C:\\Vol\\One\\db</Path></DatabasePaths>"
	    "<LogPath>C:/vol/one/log</LogPath></EseInstance>"
	    "<EseInstance><DatabasePaths><Path>C:\\Vol\\Two\\db</Path></DatabasePaths>"
	    "<LogPath>C:\\Vol\\One\\log2</LogPath></EseInstance></EseInstances>",
	    "");
	char *lab = lab_of(design), *notes = notes_of(design);

	engine_lab_accepted(lab);
	expect_line(lab, "  test: soft-recovery");
	expect_line(lab, "  duration: 5430s");
	expect_line(lab, "  interval: 5000ms");
	expect_line(lab, "  verify: false");
	expect_line(lab, "  sessions: 7");
	expect_line(lab, "  bdm: false");
	expect_line(lab, "  mix: {insert: 25%, delete: 12.5%, replace: 0%}");
	expect_line(lab, "  lazy-commits: 50%");
	expect_line(lab, "  mailboxes: 100");
	expect_line(lab, "  iops-per-mailbox: 0.05");
	expect_line(lab, "  copies: 3");
	expect_line(lab, "  databases: auto");
	expect_line(lab, "  initial-size: 400MiB");
	expect_line(lab, "  database-size: 600MiB");
	expect_line(lab, "  constants: {record: 1129}");
	/* The first log is with its database, whatever the slashes; the second with another's. */
	expect_line(lab, "    - {database: db2, log: log1}");
	assert_null(strstr(lab, "database: db1,"));
	assert_non_null(strstr(notes, "its log lies with another database there"));
	expect_line(lab, "  thresholds: {avg-db-read: 12.5ms, avg-log-write: 5ms, samples: 3, "
			 "iops-margin: 10%}");
	expect_line(lab, "  warm-up: {cache: 50%}");
	expect_line(lab, "  recovery: {files: 40}");
	expect_line(lab, "          store: memory");
	free(notes);
	free(lab);
	free(design);
}

/* Everything that means nothing, is wrong or unknown is noted with its line. */
static void notes_name_line_and_reason(void **state)
{
	static const char *const wanted[] = {
	    "2: TestDesignInfo/OutputPath: has no meaning here: ",
	    "3: TestDesignInfo/Duration: no ISO 8601 duration (such as PT2H): two hours",
	    "4: TestDesignInfo/Novel: nobody knows this element",
	    "4: TestDesignInfo/Novel/Inner: nobody knows this element",
	    "5: TestDesignInfo/VerifyChecksum: neither true nor false: perhaps",
	    "6: TestDesignInfo/BackupToDisk: no key for another value: ",
	    "7: TestDesignInfo/OperationMix: LazyCommits is missing",
	    "7: TestDesignInfo/OperationMix: no percentage: 140",
	    "7: TestDesignInfo/OperationMix: nobody knows the attribute Color",
	    "8: ExchangeProfile/MailboxCount: empty",
	    "8: ExchangeProfile/MailboxCount: there is one before: this one counts",
	    "8: ExchangeProfile/MailboxQuota: not a whole number: -5",
	    "8: ExchangeProfile/MailboxIops: not a number from 0 on: nan",
	    "9: ExchangeProfile/EseInstances/EseInstance: IopsBias 2: all databases get the same",
	    "9: ExchangeProfile/EseInstances/EseInstance/DatabasePaths/Path: an instance has one",
	    "10: ExchangeProfile: text that belongs nowhere: stray",
	};
	struct jetstress_design *design = design_of(
	    "<configuration><TestDesignInfo>\n<OutputPath>x</OutputPath>\n"
	    "<Duration>two hours</Duration>\n<Novel><Inner/></Novel>\n"
	    "<VerifyChecksum>perhaps</VerifyChecksum>\n<BackupToDisk>true</BackupToDisk>\n"
	    "<OperationMix InsertOps='140' DeleteOps='1' ReplaceOps='1' Color='red'/>"
	    "</TestDesignInfo>\n<ExchangeProfile><MailboxCount>5</MailboxCount><MailboxCount/>"
	    "<MailboxQuota>-5</MailboxQuota><MailboxIops>nan</MailboxIops>\n"
	    "<EseInstances><EseInstance IopsBias='2'><DatabasePaths><Path>a</Path><Path>b</Path>"
	    "</DatabasePaths></EseInstance></EseInstances></ExchangeProfile>\n"
	    "<ExchangeProfile>stray</ExchangeProfile></configuration>");
	char *notes = notes_of(design);

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		if (!strstr(notes, wanted[i]))
			fail_msg("no note '%s' in:\n%s", wanted[i], notes);
	}
	free(notes);
	free(design);
}

/* Impossible values give a lab all the same, and are said. */
static void impossible_values_are_put_right(void **state)
{
	struct jetstress_design *design = design_of_parts(
	    "<Duration>P9Y</Duration><LogInterval>0</LogInterval>"
	    "<OperationMix InsertOps='90' DeleteOps='90' ReplaceOps='0' LazyCommits='0'/>",
	    "<ThreadCount>999999</ThreadCount><MailboxCount>999999999</MailboxCount>"
	    "<MailboxQuota>999999999</MailboxQuota><MailboxIops>1e9</MailboxIops>"
	    "<DatabaseCopyCount>0</DatabaseCopyCount><LongPadLength>99999</LongPadLength>"
	    "<DatabaseSpaceReserved>1e9</DatabaseSpaceReserved><CapacityPercentage>1e9"
	    "</CapacityPercentage><MarginIops>7</MarginIops>",
	    "<DBMThrottling>99999999999</DBMThrottling>");
	char *lab = lab_of(design), *notes = notes_of(design);

	engine_lab_accepted(lab);
	assert_non_null(strstr(notes, "ExchangeProfile/MailboxCount: from 1 to 10000000 here"));
	assert_non_null(strstr(notes, "more than 100 %"));
	assert_non_null(strstr(notes, "is a stress test"));
	free(notes);
	free(lab);
	free(design);
	/* Nothing at all is a configuration, too. */
	design = design_of("<configuration/>");
	lab = lab_of(design);
	engine_lab_accepted(lab);
	free(lab);
	free(design);
}

static void expect_refused(const char *xml, size_t size, int status, const char *what)
{
	struct jetstress_design *design = calloc(1, sizeof *design);
	struct err err = {0};

	assert_non_null(design);
	assert_int_equal(jetstress_read("bad.xml", xml, size, design, &err), status);
	if (!strstr(err.what, what))
		fail_msg("'%s' is not in '%s'", what, err.what);
	assert_non_null(strstr(err.where, "bad.xml"));
	free(design);
}

static char *repeated(const char *begin, const char *part, unsigned count, const char *end)
{
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);

	fputs(begin, to);
	for (unsigned i = 0; i < count; i++)
		fputs(part, to);
	fputs(end, to);
	fclose(to);
	return text;
}

static void hostile_documents_are_refused(void **state)
{
	static const char entities[] =
	    "<!DOCTYPE c [<!ENTITY a 'ha'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;'>]>"
	    "<configuration>&b;</configuration>";
	static const char outside[] = "<!DOCTYPE c [<!ENTITY x SYSTEM 'file:///etc/hostname'>]>"
				      "<configuration>&x;</configuration>";
	char *text;

	expect_refused(entities, strlen(entities), -EINVAL, "document type");
	expect_refused(outside, strlen(outside), -EINVAL, "document type");
	expect_refused("<lab/>", 6, -EINVAL, "not configuration");
	expect_refused("", 0, -EINVAL, "not an XML document");
	expect_refused("\0\0\0", 3, -EINVAL, "not an XML document");
	text = repeated("<configuration>", "<a>", 50, "");
	expect_refused(text, strlen(text), -E2BIG, "nested deeper");
	free(text);
	text = repeated("<configuration>", "<a/>", XML_ELEMENTS_MAX, "</configuration>");
	expect_refused(text, strlen(text), -E2BIG, "too many elements");
	free(text);
	text = repeated("<configuration><a>", "0123456789", 1000, "</a></configuration>");
	expect_refused(text, strlen(text), -E2BIG, "longer than");
	free(text);
	text = repeated("<configuration a='", "0123456789", 1000, "'/>");
	expect_refused(text, strlen(text), -E2BIG, "attributes");
	free(text);
	text = repeated("<configuration>", " ", XML_BYTES_MAX, "</configuration>");
	expect_refused(text, strlen(text), -E2BIG, "larger than");
	free(text);
	/* Notes have a bound, too. */
	text = repeated("<configuration>", "<a/>", 2000, "</configuration>");
	{
		struct jetstress_design *design = design_of(text);

		assert_int_equal(design->note_count, JETSTRESS_NOTES_MAX);
		assert_int_equal(design->notes_lost, 1500);
		free(design);
	}
	free(text);
}

/* Instances beyond the limit must not write into others. */
static void too_many_instances_are_noted(void **state)
{
	char *text = repeated("<configuration><ExchangeProfile><EseInstances>",
			      "<EseInstance><DatabasePaths><Path>X:\\D</Path></DatabasePaths>"
			      "<LogPath>Y:\\L</LogPath></EseInstance>\n",
			      JETSTRESS_INSTANCES_MAX + 3,
			      "</EseInstances></ExchangeProfile></configuration>");
	struct jetstress_design *design = design_of(text);
	char *lab = lab_of(design), *notes = notes_of(design);

	assert_int_equal(design->instance_count, JETSTRESS_INSTANCES_MAX);
	assert_int_equal(design->instances_lost, 3);
	assert_non_null(strstr(notes, "more instances than are taken"));
	assert_non_null(strstr(notes, "shares a volume with another database there"));
	engine_lab_accepted(lab);
	free(notes);
	free(lab);
	free(design);
	free(text);
}

/* Every cut of a document is refused; flipped bytes do no harm, and what is still a configuration
 * gives a lab that is accepted. */
static void broken_documents_do_no_harm(void **state)
{
	static const char flips[] = "0123456789012345678901234567890123456789.-TPa</'=&\xff";
	char *xml = read_file("JetstressConfig.xml"), *copy;
	struct jetstress_design *design = calloc(1, sizeof *design);
	size_t size = strlen(xml);
	unsigned accepted = 0;
	struct rng rng;

	assert_non_null(design);
	while (size && xml[size - 1] == '\n')
		size--;
	for (size_t cut = 0; cut < size; cut += 7) {
		struct err err = {0};

		copy = malloc(cut + 1);
		assert_non_null(copy);
		memcpy(copy, xml, cut);
		assert_int_equal(jetstress_read("cut.xml", copy, cut, design, &err), -EINVAL);
		free(copy);
	}
	rng_init(&rng, 20160118, 1);
	for (unsigned round = 0; round < 600; round++) {
		struct err err = {0};
		char *lab;

		copy = malloc(size);
		assert_non_null(copy);
		memcpy(copy, xml, size);
		for (unsigned i = 0; i < 3; i++) {
			uint32_t at = (uint32_t)rng_below(&rng, (uint32_t)size);

			/* Every other round values alone, so that it stays a document. */
			while (round % 2 && (copy[at] < '0' || copy[at] > '9'))
				at = (at + 1) % (uint32_t)size;
			copy[at] = flips[rng_below(&rng, round % 2 ? 44 : sizeof flips - 1)];
		}
		if (jetstress_read("flipped.xml", copy, size, design, &err) == 0) {
			accepted++;
			lab = lab_of(design);
			engine_lab_accepted(lab);
			free(lab);
		}
		free(copy);
	}
	assert_true(accepted > 50);
	free(design);
	free(xml);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_whole_configuration),
	    cmocka_unit_test(other_values),
	    cmocka_unit_test(notes_name_line_and_reason),
	    cmocka_unit_test(impossible_values_are_put_right),
	    cmocka_unit_test(hostile_documents_are_refused),
	    cmocka_unit_test(too_many_instances_are_noted),
	    cmocka_unit_test(broken_documents_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
