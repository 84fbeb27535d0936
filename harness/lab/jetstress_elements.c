/* SPDX-License-Identifier: MIT
 *
 * The elements of JetstressConfig.xml: what each means here, or why it means nothing.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "harness/lab/jetstress_import.h"
#include "harness/lab/jetstress_xml.h"

typedef void (*take_fn)(struct jetstress_design *design, const struct xml_element *element);

enum kind {
	GROUP,	/* only holds others */
	NUMBER, /* double, from 0 on */
	COUNT,	/* uint64_t */
	FLAG,	/* bool */
	OWN,	/* its own function, called at its end */
	FIXED,	/* has no key: anything but TEXT is noted with WHY */
	NONE,	/* has no meaning: noted with WHY */
};

struct meaning {
	const char *path;
	enum kind kind;
	size_t offset;
	take_fn take;
	const char *text, *why;
	bool repeats; /* may come more than once */
};

__attribute__((format(printf, 3, 4))) static void note(struct jetstress_design *design,
						       const struct xml_element *element,
						       const char *format, ...)
{
	char path[160], why[240];
	va_list ap;

	va_start(ap, format);
	vsnprintf(why, sizeof why, format, ap);
	va_end(ap);
	jetstress_note(design, element->line, xml_path(element, path, sizeof path), "%s", why);
}

/* A number from 0 on that is the whole text; false: it is none. */
static bool number_of(const char *text, double *ret_value)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !isfinite(value) || value < 0)
		return false;
	*ret_value = value;
	return true;
}

static void take_number(struct jetstress_design *design, const struct xml_element *element,
			double *ret_value)
{
	if (!*element->text)
		note(design, element, "empty");
	else if (!number_of(element->text, ret_value))
		note(design, element, "not a number from 0 on: %.60s", element->text);
}

static void take_count(struct jetstress_design *design, const struct xml_element *element,
		       uint64_t *ret_value)
{
	double value;

	if (!*element->text)
		note(design, element, "empty");
	else if (!number_of(element->text, &value) || value > 1e15 || floor(value) < value)
		note(design, element, "not a whole number: %.60s", element->text);
	else
		*ret_value = (uint64_t)value;
}

static bool is_true(const char *text)
{
	return strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0;
}

static void take_flag(struct jetstress_design *design, const struct xml_element *element,
		      bool *ret_value)
{
	if (is_true(element->text) || strcasecmp(element->text, "false") == 0 ||
	    strcmp(element->text, "0") == 0)
		*ret_value = is_true(element->text);
	else
		note(design, element, "neither true nor false: %.60s", element->text);
}

static void take_version(struct jetstress_design *design, const struct xml_element *element)
{
	snprintf(design->version, sizeof design->version, "%.60s", element->text);
}

static void take_description(struct jetstress_design *design, const struct xml_element *element)
{
	snprintf(design->description, sizeof design->description, "%.390s", element->text);
}

static void take_type(struct jetstress_design *design, const struct xml_element *element)
{
	static const char *const types[JETSTRESS_TESTS] = {"Performance", "Stress",
							   "DatabaseBackup", "SoftRecovery"};

	for (unsigned i = 0; i < JETSTRESS_TESTS; i++) {
		if (strcasecmp(element->text, types[i]) == 0) {
			design->test = i;
			return;
		}
	}
	note(design, element, "no type of test: %.60s; Performance is taken", element->text);
}

/* "P0Y0M1DT2H30M0S"; years and months of 365 and 30 days.  False: it is none. */
static bool iso_duration(const char *text, uint64_t *ret_seconds)
{
	static const char date_units[] = "YMWD", time_units[] = "HMS";
	static const double date_s[] = {365 * 86400.0, 30 * 86400.0, 7 * 86400.0, 86400.0},
			    time_s[] = {3600, 60, 1};
	bool time = false;
	double seconds = 0;

	if (*text++ != 'P' || !*text)
		return false;
	while (*text) {
		const char *units = time ? time_units : date_units, *unit;
		char *end;
		double value;

		if (*text == 'T' && !time) {
			time = true;
			text++;
			continue;
		}
		if (*text < '0' || *text > '9')
			return false;
		value = strtod(text, &end);
		unit = *end ? strchr(time ? time_units : date_units, *end) : NULL;
		if (!unit)
			return false;
		seconds += value * (time ? time_s : date_s)[unit - units];
		text = end + 1;
	}
	if (!(seconds >= 0 && seconds <= 1e9))
		return false;
	*ret_seconds = (uint64_t)llround(seconds);
	return true;
}

static void take_duration(struct jetstress_design *design, const struct xml_element *element)
{
	if (!iso_duration(element->text, &design->duration_s))
		note(design, element, "no ISO 8601 duration (such as PT2H): %.60s; 2 h are taken",
		     element->text);
}

static void take_mix(struct jetstress_design *design, const struct xml_element *element)
{
	const struct {
		const char *name;
		double *value;
	} shares[] = {{"InsertOps", &design->insert},
		      {"DeleteOps", &design->remove},
		      {"ReplaceOps", &design->replace},
		      {"LazyCommits", &design->lazy}};

	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		const char *text = xml_attribute(element, shares[i].name);

		if (!text)
			note(design, element, "%s is missing: Jetstress' default is taken",
			     shares[i].name);
		else if (!number_of(text, shares[i].value) || *shares[i].value > 100)
			note(design, element, "no percentage: %.60s", text);
	}
	for (unsigned i = 0; i < element->attribute_count; i++) {
		const char *name = element->attributes[i].name;

		if (strcmp(name, "LockOps") == 0) {
			if (!is_true(element->attributes[i].value))
				note(design, element,
				     "%s: tuning changes sessions only, never the mix", name);
			continue;
		}
		for (size_t s = 0; s < ARRAY_SIZE(shares); s++) {
			if (strcmp(name, shares[s].name) == 0)
				name = NULL;
			if (!name)
				break;
		}
		if (name)
			note(design, element, "nobody knows the attribute %.60s", name);
	}
}

/* TestRunTypes="Stress" marks the set for stress tests; without it, it is the one for the rest. */
static void take_threshold(struct jetstress_design *design, const struct xml_element *element)
{
	const char *types = xml_attribute(element->parent, "TestRunTypes");
	struct jetstress_thresholds *set =
	    types && strstr(types, "Stress") ? &design->lenient : &design->strict;
	const struct {
		const char *name;
		double *value;
	} latencies[] = {{"AverageDatabaseReadLatency", &set->avg_db_read},
			 {"MaximumDatabaseReadLatency", &set->max_db_read},
			 {"AverageLogWriteLatency", &set->avg_log_write},
			 {"MaximumLogWriteLatency", &set->max_log_write}};

	for (size_t i = 0; i < ARRAY_SIZE(latencies); i++) {
		if (strcmp(element->name, latencies[i].name) == 0)
			take_number(design, element, latencies[i].value);
	}
}

static void take_source(struct jetstress_design *design, const struct xml_element *element)
{
	design->new_databases = strcasecmp(element->text, "Open") != 0;
	if (design->new_databases && strcasecmp(element->text, "New") != 0)
		note(design, element, "neither New nor Open: %.60s; New is taken", element->text);
}

/* At its begin: what it holds comes after. */
static void begin_instance(struct jetstress_design *design, const struct xml_element *element)
{
	const char *bias = xml_attribute(element, "IopsBias");
	double value;

	if (design->instance_count == JETSTRESS_INSTANCES_MAX) {
		note(design, element, "more instances than are taken");
		design->instances_lost++;
		return;
	}
	design->instances[design->instance_count++].line = element->line;
	if (bias && (!number_of(bias, &value) || fabs(value - 1) > 1e-9))
		note(design, element, "IopsBias %.40s: all databases get the same load", bias);
}

/* Elements come in the order of the document: it is the last one that has begun. */
static struct jetstress_instance *current_instance(struct jetstress_design *design)
{
	return design->instance_count && !design->instances_lost
		   ? &design->instances[design->instance_count - 1]
		   : NULL;
}

static void take_path(struct jetstress_design *design, const struct xml_element *element, char *out)
{
	if (strlen(element->text) >= JETSTRESS_PATH_BYTES)
		note(design, element, "longer than a path may be");
	else
		snprintf(out, JETSTRESS_PATH_BYTES, "%s", element->text);
}

static void take_database(struct jetstress_design *design, const struct xml_element *element)
{
	struct jetstress_instance *instance = current_instance(design);

	if (!instance)
		return;
	if (*instance->database)
		note(design, element, "an instance has one database here");
	else
		take_path(design, element, instance->database);
}

static void take_log(struct jetstress_design *design, const struct xml_element *element)
{
	struct jetstress_instance *instance = current_instance(design);

	if (instance)
		take_path(design, element, instance->log);
}

#define D(member)    offsetof(struct jetstress_design, member)
#define T	     "TestDesignInfo/"
#define P	     "ExchangeProfile/"
#define I	     P "EseInstances/EseInstance"
#define J	     "JetSystemParams/"
#define UNDOCUMENTED "what it does in Jetstress is not documented"

static const struct meaning meanings[] = {
    {"", GROUP},
    {"JetstressVersionGenerated", OWN, .take = take_version},
    {"EseVersionGenerated", NONE, .why = "the database engine is sanlab's own"},
    {"TestDesignInfo", GROUP},
    {T "Type", OWN, .take = take_type},
    {T "MultiHostBreak", FIXED, .text = "false", .why = "the hosts of a lab run together"},
    {T "Description", OWN, .take = take_description},
    {T "Duration", OWN, .take = take_duration},
    {T "BinaryPerfLog", NONE, .why = "samples are in run.json"},
    {T "VerifyChecksum", FLAG, D(verify_checksum)},
    {T "RunDatabaseMaintenancePerformance", FLAG, D(bdm)},
    {T "RunDatabaseMaintenanceSoftRecovery", FLAG, D(bdm_in_recovery)},
    {T "ContinueOnErrors", NONE, .why = "a run goes on to its end, and one failed I/O fails it"},
    {T "SuppressTuning", FLAG, D(suppress_tuning)},
    {T "UseEseCounters", NONE, .why = "the engine counts its own I/O"},
    {T "PreloadJetCache", NUMBER, D(preload)},
    {T "BackupToDisk", FIXED, .text = "false", .why = "a backup test only reads"},
    {T "LogFilesToReplay", COUNT, D(replay_files)},
    {T "LogFilesToChecksum", NONE, .why = "recovery checks every log segment that it reads"},
    {T "LogInterval", COUNT, D(interval_ms)},
    {T "LogInterval2", NONE, .why = "workload.tuning.sample is the length of a sample in tuning"},
    {T "OperationMix", OWN, .take = take_mix},
    {T "RetrieveLVOnRead", FIXED, .text = "false", .why = "a record is read as a whole"},
    {T "RetrieveLVOnScan", FIXED, .text = "false", .why = "there are no scans"},
    {T "PrereadOnRead", FIXED, .text = "false", .why = "a read fetches the page it needs"},
    {T "PrereadOnScan", NONE, .why = "there are no scans"},
    {T "UpdateLV", NONE, .why = "a record has no long value apart"},
    {T "ScanPercentage", FIXED, .text = "0", .why = "there are no scans"},
    {T "RestoreBackupPath", FIXED, .text = "", .why = "databases are not restored from backups"},
    {T "OutputPath", NONE, .why = "sanlab run --out DIR says where results go"},
    {T "MaximumChecksumBuffers", NONE, .why = "the checksum reads 256 KiB at a time"},
    {T "MaximumChecksumThreads", NONE, .why = "the checksum needs no threads"},
    {T "MaximumLatencyErrors", COUNT, D(latency_errors)},
    {T "SluggishSessions", NONE, .why = UNDOCUMENTED "; a pause is workload.think-time"},
    {T "BatchRecords", NONE, .why = UNDOCUMENTED},
    {T "BatchUpdates", NONE, .why = UNDOCUMENTED},
    {T "Bulky1Percentage", NONE, .why = UNDOCUMENTED},
    {T "Thresholds", GROUP, .repeats = true},
    {T "Thresholds/AverageDatabaseReadLatency", OWN, .take = take_threshold, .repeats = true},
    {T "Thresholds/MaximumDatabaseReadLatency", OWN, .take = take_threshold, .repeats = true},
    {T "Thresholds/AverageLogWriteLatency", OWN, .take = take_threshold, .repeats = true},
    {T "Thresholds/MaximumLogWriteLatency", OWN, .take = take_threshold, .repeats = true},
    {"ExchangeProfile", GROUP},
    {P "ThreadCount", COUNT, D(threads)},
    {P "TransPerSec", FIXED, .text = "0", .why = "the target is mailboxes times their IOPS"},
    {P "ThroughputPercentage", NUMBER, D(throughput_percent)},
    {P "DatabaseSource", OWN, .take = take_source},
    {P "DatabaseSizing", FIXED, .text = "Profile", .why = "sizes follow from mailboxes and quota"},
    {P "CapacityPercentage", NUMBER, D(capacity_percent)},
    {P "MailboxCount", COUNT, D(mailboxes)},
    {P "MailboxQuota", COUNT, D(quota_mb)},
    {P "MailboxIops", NUMBER, D(mailbox_iops)},
    {P "MarginIops", NUMBER, D(margin_iops)},
    {P "LongPadLength", COUNT, D(record_pad_bytes)},
    {P "ShortPadLength", NONE, .why = "all records have one size, that of LongPadLength"},
    {P "DatabaseSpaceReserved", NUMBER, D(reserved_percent)},
    {P "DatabaseCopyCount", COUNT, D(copies)},
    {P "EseInstances", GROUP},
    {I, GROUP, .take = begin_instance, .repeats = true},
    {I "/DatabasePaths", GROUP, .repeats = true},
    {I "/DatabasePaths/Path", OWN, .take = take_database, .repeats = true},
    {I "/LogPath", OWN, .take = take_log, .repeats = true},
    {I "/DatabaseBackupPath", FIXED, .text = "", .why = "a backup test only reads",
     .repeats = true},
    {"JetSystemParams", GROUP},
    {J "DatabasePageSize", FIXED, .text = "32768", .why = "a page has 32 KiB"},
    {J "CircularLog", FIXED, .text = "1", .why = "log files are used in a ring"},
    {J "LogFileSize", FIXED, .text = "1024", .why = "a log file has 1 MiB"},
    {J "MaxVerPages", NONE, .why = "there is no version store; it costs no I/O"},
    {J "DBMThrottling", COUNT, D(dbm_throttle_ms)},
};
#undef D
#undef T
#undef P
#undef I
#undef J

_Static_assert(ARRAY_SIZE(meanings) <= JETSTRESS_ELEMENTS_MAX, "room to remember each");

static void take(struct jetstress_design *design, const struct meaning *meaning,
		 const struct xml_element *element)
{
	void *field = (char *)design + meaning->offset;

	switch (meaning->kind) {
	case GROUP:
		if (*element->text)
			note(design, element, "text that belongs nowhere: %.60s", element->text);
		break;
	case NUMBER:
		take_number(design, element, field);
		break;
	case COUNT:
		take_count(design, element, field);
		break;
	case FLAG:
		take_flag(design, element, field);
		break;
	case OWN:
		meaning->take(design, element);
		break;
	case FIXED:
		if (strcasecmp(element->text, meaning->text) != 0)
			note(design, element, "no key for another value: %s", meaning->why);
		break;
	case NONE:
		note(design, element, "has no meaning here: %s", meaning->why);
		break;
	}
}

void jetstress_element(struct jetstress_design *design, const struct xml_element *element,
		       bool begins)
{
	const struct meaning *meaning = NULL;
	char path[200];

	xml_path(element, path, sizeof path);
	for (size_t i = 0; i < ARRAY_SIZE(meanings) && !meaning; i++) {
		if (strcmp(meanings[i].path, path) == 0)
			meaning = &meanings[i];
	}
	if (begins) {
		if (meaning && meaning->kind == GROUP && meaning->take)
			meaning->take(design, element);
		return;
	}
	if (!meaning) {
		note(design, element, "nobody knows this element");
		return;
	}
	if (design->seen[meaning - meanings] && !meaning->repeats)
		note(design, element, "there is one before: this one counts");
	design->seen[meaning - meanings] = true;
	take(design, meaning, element);
}
