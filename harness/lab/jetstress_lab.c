/* SPDX-License-Identifier: MIT
 *
 * A Jetstress configuration as a lab file: volumes and an array for its databases, one mailbox
 * server, the test.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "harness/lab/jetstress_import.h"

/* A new record has LongPadLength and this: key, header, what else belongs to it. */
enum { RECORD_OVERHEAD_BYTES = 129, RECORD_PAD_PRESET_BYTES = 2000 };
/* The log of a database with copies: twice a checkpoint depth of 100 MB. */
enum { LOG_MIB = 256, SPARE_MIB = 64, INITIAL_PRESET_MIB = 64 };
/* Mirrored pairs of a member, which has 48 drives at most. */
enum { PAIRS_MAX = 23 };
/* Databases beyond this do not fit into a test machine's memory. */
enum { CONTENT_MIB_MAX = 8192 };
#define STRESS_SECONDS (UINT64_C(6) * 3600)

struct place {
	char key[JETSTRESS_PATH_BYTES]; /* "D:", "C:\ExchangeVolumes\Vol1" */
};

/* The volume a path is on, as far as a path tells: its drive, or, under a drive with mount points,
 * the directory it is in. */
static void place_of(const char *path, struct place *ret_place)
{
	size_t length, parts = 0;

	snprintf(ret_place->key, sizeof ret_place->key, "%s", path);
	for (char *p = ret_place->key; *p; p++) {
		if (*p == '/')
			*p = '\\';
	}
	length = strlen(ret_place->key);
	while (length && ret_place->key[length - 1] == '\\')
		ret_place->key[--length] = '\0';
	for (const char *p = ret_place->key; *p; p++)
		parts += *p == '\\';
	if (parts && strrchr(ret_place->key, '\\') > ret_place->key)
		*strrchr(ret_place->key, '\\') = '\0';
}

static bool same_place(const char *a, const char *b)
{
	struct place first = {0}, second = {0};

	place_of(a, &first);
	place_of(b, &second);
	return strcasecmp(first.key, second.key) == 0;
}

struct plan {
	struct jetstress_design *design;
	FILE *to;
	unsigned databases;
	unsigned log_of[JETSTRESS_INSTANCES_MAX]; /* 0: with the database; else log volume N */
	unsigned logs;
	uint64_t initial_mib, database_mib, volume_mib, log_mib;
	bool content;
};

/* Which log volume instance I gets: that of an earlier instance in the same place, or a new one. */
static unsigned choose_log(struct plan *plan, unsigned i)
{
	const struct jetstress_instance *instances = plan->design->instances;

	if (!*instances[i].log || same_place(instances[i].log, instances[i].database))
		return 0;
	for (unsigned k = 0; k < i; k++) {
		if (plan->log_of[k] && same_place(instances[i].log, instances[k].log))
			return plan->log_of[k];
	}
	for (unsigned k = 0; k < plan->design->instance_count; k++) {
		if (k != i && same_place(instances[i].log, instances[k].database))
			jetstress_note(plan->design, instances[i].line, "EseInstance",
				       "its log lies with another database there; here on a volume "
				       "for logs");
	}
	return ++plan->logs;
}

static void plan_volumes(struct plan *plan)
{
	struct jetstress_design *design = plan->design;

	plan->databases = design->instance_count;
	if (!plan->databases) {
		plan->databases = 1;
		jetstress_note(design, 0, "ExchangeProfile/EseInstances",
			       "there are none: one database is taken");
	}
	for (unsigned i = 0; i < design->instance_count; i++) {
		for (unsigned k = 0; k < i; k++) {
			if (same_place(design->instances[i].database,
				       design->instances[k].database)) {
				jetstress_note(design, design->instances[i].line, "EseInstance",
					       "shares a volume with another database there; here "
					       "it has its own");
				break;
			}
		}
		plan->log_of[i] = choose_log(plan, i);
	}
}

static void plan_sizes(struct plan *plan)
{
	struct jetstress_design *design = plan->design;
	double total_mib =
	    (double)design->mailboxes * (double)design->quota_mb * design->capacity_percent / 100;

	if (!(total_mib >= 1) || total_mib / plan->databases > 16e6) {
		jetstress_note(design, 0, "ExchangeProfile",
			       "mailboxes times quota is no size: databases of %d MiB are taken",
			       INITIAL_PRESET_MIB);
		total_mib = (double)INITIAL_PRESET_MIB * plan->databases;
	}
	plan->initial_mib = (uint64_t)ceil(total_mib / plan->databases);
	plan->database_mib = (uint64_t)ceil((double)plan->initial_mib *
					    (1 + fmin(design->reserved_percent, 100) / 100));
	plan->log_mib = LOG_MIB;
	if (design->test == JETSTRESS_RECOVERY)
		plan->log_mib = MAX_OF(plan->log_mib, design->replay_files * 5 / 4 + LOG_MIB);
	plan->volume_mib =
	    plan->database_mib + plan->database_mib / 1000 + SPARE_MIB + plan->log_mib;
	plan->content = plan->database_mib * plan->databases <= CONTENT_MIB_MAX;
}

/* What a lab takes; beyond it the nearest is taken, and said. */
static double within(struct jetstress_design *design, const char *element, double value, double min,
		     double max)
{
	double taken = fmin(fmax(value, min), max);

	if (taken < value || taken > value)
		jetstress_note(design, 0, element, "from %.10g to %.10g here: %.10g is taken", min,
			       max, taken);
	return taken;
}

static void decide_counts(struct jetstress_design *design)
{
	const struct {
		const char *element;
		uint64_t *value;
		double min, max;
	} bounds[] = {
	    {"ExchangeProfile/MailboxCount", &design->mailboxes, 1, 10e6},
	    {"ExchangeProfile/MailboxQuota", &design->quota_mb, 0, 1e6},
	    {"ExchangeProfile/DatabaseCopyCount", &design->copies, 1, 16},
	    {"ExchangeProfile/ThreadCount", &design->threads, 0, 10000},
	    {"ExchangeProfile/LongPadLength", &design->record_pad_bytes, 0,
	     8192 - RECORD_OVERHEAD_BYTES},
	    {"JetSystemParams/DBMThrottling", &design->dbm_throttle_ms, 0, 3600e3},
	    {"TestDesignInfo/Duration", &design->duration_s, 1, 30 * 86400},
	    {"TestDesignInfo/LogFilesToReplay", &design->replay_files, 1, 20000},
	    {"TestDesignInfo/MaximumLatencyErrors", &design->latency_errors, 0, 100000},
	};

	if (!design->mailboxes) {
		jetstress_note(design, 0, "ExchangeProfile/MailboxCount",
			       "not given: 1000 mailboxes are taken");
		design->mailboxes = 1000;
	}
	for (size_t i = 0; i < ARRAY_SIZE(bounds); i++)
		*bounds[i].value =
		    (uint64_t)within(design, bounds[i].element, (double)*bounds[i].value,
				     bounds[i].min, bounds[i].max);
	/* A run has a million samples at most. */
	design->interval_ms =
	    (uint64_t)within(design, "TestDesignInfo/LogInterval", (double)design->interval_ms,
			     fmax(1000, ceil((double)design->duration_s / 900)), 3600e3);
	if (design->mailbox_iops > 0)
		design->mailbox_iops =
		    within(design, "ExchangeProfile/MailboxIops",
			   design->mailbox_iops * design->throughput_percent / 100, 0.0001, 1000);
}

static void decide_thresholds(struct jetstress_design *design)
{
	struct jetstress_thresholds *sets[] = {&design->strict, &design->lenient};

	for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
		double *latencies[] = {&sets[i]->avg_db_read, &sets[i]->max_db_read,
				       &sets[i]->avg_log_write, &sets[i]->max_log_write};

		for (size_t k = 0; k < ARRAY_SIZE(latencies); k++)
			*latencies[k] = within(design, "TestDesignInfo/Thresholds", *latencies[k],
					       0.001, 3600e3);
	}
	design->margin_iops =
	    within(design, "ExchangeProfile/MarginIops", design->margin_iops, 0, 1);
	design->preload =
	    within(design, "TestDesignInfo/PreloadJetCache", design->preload, 0, 0.98);
}

static void decide_mix(struct jetstress_design *design)
{
	if (design->insert + design->remove + design->replace > 100) {
		jetstress_note(design, 0, "TestDesignInfo/OperationMix",
			       "the operations are more than 100 %%: Jetstress' mix is taken");
		design->insert = 40;
		design->remove = 20;
		design->replace = 5;
	}
	if (design->remove > design->insert)
		jetstress_note(design, 0, "TestDesignInfo/OperationMix",
			       "more deletes than inserts: the databases get empty");
}

static void decide(struct plan *plan)
{
	struct jetstress_design *design = plan->design;

	decide_counts(design);
	decide_thresholds(design);
	decide_mix(design);
	if (design->test == JETSTRESS_PERFORMANCE && design->duration_s > STRESS_SECONDS) {
		jetstress_note(design, 0, "TestDesignInfo/Duration",
			       "a performance test of more than 6 h is a stress test");
		design->test = JETSTRESS_STRESS;
	}
	if (design->suppress_tuning && !design->threads)
		jetstress_note(design, 0, "TestDesignInfo/SuppressTuning",
			       "without a ThreadCount the sessions are tuned all the same");
	plan_volumes(plan);
	plan_sizes(plan);
}

/* One line of a comment, whatever TEXT holds. */
static void put_comment(FILE *to, const char *label, const char *text)
{
	if (!*text)
		return;
	fprintf(to, "# %s", label);
	for (; *text; text++)
		fputc((unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text, to);
	fputc('\n', to);
}

static void put_head(const struct plan *plan, const char *name)
{
	put_comment(plan->to, "From ", strrchr(name, '/') ? strrchr(name, '/') + 1 : name);
	put_comment(plan->to, "of Jetstress ", plan->design->version);
	put_comment(plan->to, "Description: ", plan->design->description);
	fputs("#\n#   sanlab run --virtual THIS.yaml --out DIR    hours of load in minutes\n"
	      "#   sanlab run THIS.yaml --out DIR              in real time\n"
	      "#\n# The array is a stand-in.  For one that exists leave `group` out and give the "
	      "host, instead of\n# `volumes`, its logical units: luns: [{name: db1, urls: "
	      "[\"iscsi://HOST/IQN/LUN\"]}, ...]\n\nname: jetstress\n",
	      plan->to);
}

/* RAID 10 of drives so that all volumes fit, with a tenth to spare. */
static void put_array(const struct plan *plan)
{
	double need =
	    1.1 * (double)MIB *
	    ((double)plan->volume_mib * plan->databases + (double)plan->log_mib * plan->databases);
	bool large = need > 20e12;
	double drive = large ? 4e12 : 1.2e12;
	double pairs = fmin(PAIRS_MAX, fmax(12, ceil(need / (0.9 * drive))));
	char size[40] = "";

	if (pairs * 0.9 * drive < need)
		snprintf(size, sizeof size, ", size: %.0fTB", ceil(need / (0.9 * pairs) / 1e12));
	fprintf(plan->to,
		"group:\n  style: lun\n  portal: 127.0.0.1:3260\n  pools:\n    - name: default\n"
		"      members:\n        - name: array\n"
		"          drives: {model: %s, count: %.0f, spares: 1%s}\n          raid: raid10\n"
		"          cache: {size: 4GiB, mode: write-back}\n"
		"          portals: [127.0.0.1:3261, 127.0.0.1:3262]\n",
		large ? "nlsas-7k2-4000" : "sas-10k-1200", 2 * pairs + 1, size);
	fputs(plan->content
		  ? "          store: memory\n"
		  : "          store: discard           # the databases would fill any memory\n",
	      plan->to);
	fputs("          timing: modelled\n", plan->to);
}

static unsigned logs_on(const struct plan *plan, unsigned volume)
{
	unsigned count = 0;

	for (unsigned i = 0; i < plan->databases; i++)
		count += plan->log_of[i] == volume;
	return count;
}

static void put_volumes(const struct plan *plan)
{
	fputs("  volumes:\n", plan->to);
	for (unsigned i = 0; i < plan->databases; i++) {
		const char *path = plan->design->instances[i].database;

		fprintf(plan->to,
			"    - {name: db%u, pool: default, size: %" PRIu64 "MiB, thin: false}%s",
			i + 1, plan->volume_mib, *path ? " " : "\n");
		put_comment(plan->to, "", path);
	}
	for (unsigned v = 1; v <= plan->logs; v++)
		fprintf(plan->to,
			"    - {name: log%u, pool: default, size: %" PRIu64 "MiB, thin: false}\n",
			v, SPARE_MIB + plan->log_mib * logs_on(plan, v));
	fputs("hosts:\n  - name: mbx1\n    volumes: [", plan->to);
	for (unsigned i = 0; i < plan->databases; i++)
		fprintf(plan->to, "%sdb%u", i ? ", " : "", i + 1);
	for (unsigned v = 1; v <= plan->logs; v++)
		fprintf(plan->to, ", log%u", v);
	fputs("]\n", plan->to);
}

static void put_placement(const struct plan *plan)
{
	if (!plan->logs)
		return;
	fputs("  placement:\n", plan->to);
	for (unsigned i = 0; i < plan->databases; i++) {
		if (plan->log_of[i])
			fprintf(plan->to, "    - {database: db%u, log: log%u}\n", i + 1,
				plan->log_of[i]);
	}
}

static void put_load(const struct plan *plan)
{
	const struct jetstress_design *design = plan->design;
	fprintf(plan->to, "  mailboxes: %" PRIu64 "\n", design->mailboxes);
	if (design->mailbox_iops > 0)
		fprintf(plan->to, "  iops-per-mailbox: %.6g\n", design->mailbox_iops);
	fprintf(plan->to, "  copies: %" PRIu64 "\n", design->copies);
	if (design->threads && design->suppress_tuning)
		fprintf(plan->to, "  sessions: %" PRIu64 "\n", design->threads);
	else
		fputs("  sessions: auto\n", plan->to);
	if (design->threads && !design->suppress_tuning)
		fprintf(plan->to, "  tuning: {start: %" PRIu64 "}\n", design->threads);
	fprintf(plan->to, "  mix: {insert: %.6g%%, delete: %.6g%%, replace: %.6g%%}\n",
		design->insert, design->remove, design->replace);
	fprintf(plan->to, "  lazy-commits: %.6g%%\n", design->lazy);
}

static bool differs(double a, double b)
{
	return fabs(a - b) > 1e-9;
}

/* What the test takes by itself needs no word. */
static void put_thresholds(const struct plan *plan)
{
	const struct jetstress_design *design = plan->design;
	bool stress = design->test == JETSTRESS_STRESS;
	const struct jetstress_thresholds *set = stress ? &design->lenient : &design->strict;
	double most = stress ? 200 : 100;
	const struct {
		const char *key, *unit;
		double value, preset;
	} limits[] = {
	    {"avg-db-read", "ms", set->avg_db_read, 20},
	    {"max-db-read", "ms", set->max_db_read, most},
	    {"avg-log-write", "ms", set->avg_log_write, 10},
	    {"max-log-write", "ms", set->max_log_write, most},
	    {"samples", "", (double)design->latency_errors, 6},
	    {"iops-margin", "%", design->margin_iops * 100, 5},
	};
	const char *comma = "  thresholds: {";

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		if (!differs(limits[i].value, limits[i].preset))
			continue;
		fprintf(plan->to, "%s%s: %.10g%s", comma, limits[i].key, limits[i].value,
			limits[i].unit);
		comma = ", ";
	}
	if (*comma == ',')
		fputs("}\n", plan->to);
	if (differs(design->preload, 0.9))
		fprintf(plan->to, "  warm-up: {cache: %.6g%%}\n", design->preload * 100);
	if (design->test == JETSTRESS_RECOVERY)
		fprintf(plan->to, "  recovery: {files: %" PRIu64 "}\n", design->replay_files);
}

static void put_workload(const struct plan *plan)
{
	static const char *const tests[JETSTRESS_TESTS] = {"performance", "stress",
							   "database-backup", "soft-recovery"};
	const struct jetstress_design *design = plan->design;
	bool bdm = design->test == JETSTRESS_RECOVERY ? design->bdm_in_recovery : design->bdm;

	fprintf(plan->to, "workload:\n  type: exchange\n  engine: ese\n  test: %s\n",
		tests[design->test]);
	put_load(plan);
	fprintf(plan->to, "  databases: %s\n", design->new_databases ? "new" : "auto");
	fprintf(plan->to, "  initial-size: %" PRIu64 "MiB\n  database-size: %" PRIu64 "MiB\n",
		plan->initial_mib, plan->database_mib);
	fprintf(plan->to, "  bdm: %s\n", bdm ? "true" : "false");
	if (bdm)
		fprintf(plan->to, "  bdm-throttle: %" PRIu64 "ms\n", design->dbm_throttle_ms);
	if (!plan->content)
		fputs("  content: none\n", plan->to);
	if (design->record_pad_bytes != RECORD_PAD_PRESET_BYTES)
		fprintf(plan->to, "  constants: {record: %" PRIu64 "}\n",
			design->record_pad_bytes + RECORD_OVERHEAD_BYTES);
	put_thresholds(plan);
	put_placement(plan);
}

static void put_run(const struct plan *plan)
{
	const struct jetstress_design *design = plan->design;

	if (design->duration_s % 3600 == 0)
		fprintf(plan->to, "run:\n  duration: %" PRIu64 "h\n", design->duration_s / 3600);
	else
		fprintf(plan->to, "run:\n  duration: %" PRIu64 "s\n", design->duration_s);
	fprintf(plan->to, "  interval: %" PRIu64 "ms\n", design->interval_ms);
	fprintf(plan->to, "  verify: %s\n", design->verify_checksum ? "true" : "false");
	fputs("virtual:\n  network: none\n", plan->to);
}

int jetstress_put_lab(struct jetstress_design *design, const char *name, FILE *to)
{
	struct plan plan = {.design = design, .to = to};

	decide(&plan);
	put_head(&plan, name);
	put_array(&plan);
	put_volumes(&plan);
	put_workload(&plan);
	put_run(&plan);
	return ferror(to) ? -EIO : 0;
}
