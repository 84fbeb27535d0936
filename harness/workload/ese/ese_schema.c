/* SPDX-License-Identifier: MIT
 *
 * The keys of `engine: ese` and what must hold between them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_config.h"
#include "harness/workload/exchange_profile.h"
#include "harness/workload/exchange_sizing.h"

/* Which of the ring's files hold what is not in the database yet: the checkpoint's depth, at most
 * 1.25 times it, and as much again for a writer that has to catch up. */
#define LOG_FILES_PER_DEPTH 2
#define LOG_FILES_MIN	    64
#define LOG_FILES_SPARE	    8

static const char *const test_names[] = {"performance", "stress", "database-backup",
					 "soft-recovery", NULL};
static const char *const loop_names[] = {"closed", "open", NULL};
static const char *const content_names[] = {"verified", "none", NULL};
static const char *const replication_names[] = {"file", "block", "none", NULL};
static const char *const source_names[] = {"auto", "new", "open", NULL};
static const char *const access_names[] = {"uniform", "hot", "zipf", NULL};

#define AT(member) offsetof(struct ese_mix_config, member)
static const struct cfg_field mix_fields[] = {
    {.key = "insert",
     .type = CFG_PERCENT,
     .offset = AT(insert),
     .preset = "40%",
     .max = 100,
     .help = "a new record"},
    {.key = "delete",
     .type = CFG_PERCENT,
     .offset = AT(remove),
     .preset = "20%",
     .max = 100,
     .help = "the record at a key"},
    {.key = "replace",
     .type = CFG_PERCENT,
     .offset = AT(replace),
     .preset = "5%",
     .max = 100,
     .help = "the record at a key, by one of the same size"},
};
#undef AT
static const struct cfg_schema mix_schema = {
    .name = "workload.mix",
    .size = sizeof(struct ese_mix_config),
    .fields = mix_fields,
    .field_count = ARRAY_SIZE(mix_fields),
};

#define AT(member) offsetof(struct ese_access_config, member)
static const struct cfg_field access_fields[] = {
    {.key = "kind",
     .type = CFG_ENUM,
     .offset = AT(kind),
     .preset = "uniform",
     .names = access_names,
     .help = "which keys: uniform as Jetstress, hot (a part gets most), zipf"},
    {.key = "hot-pages",
     .type = CFG_PERCENT,
     .offset = AT(hot_pages),
     .preset = "20%",
     .min = 0.0001,
     .max = 100,
     .help = "hot: this part of a database ..."},
    {.key = "hot-share",
     .type = CFG_PERCENT,
     .offset = AT(hot_share),
     .preset = "80%",
     .max = 100,
     .help = "... gets this share of the operations"},
    {.key = "exponent",
     .type = CFG_REAL,
     .offset = AT(exponent),
     .preset = "0.9",
     .min = 0.01,
     .max = 0.99,
     .help = "zipf: how steep"},
};
#undef AT
static const struct cfg_schema access_schema = {
    .name = "workload.access",
    .size = sizeof(struct ese_access_config),
    .fields = access_fields,
    .field_count = ARRAY_SIZE(access_fields),
};

#define AT(member) offsetof(struct ese_placement_config, member)
static const struct cfg_field placement_fields[] = {
    {.key = "database",
     .type = CFG_STRING,
     .offset = AT(database),
     .required = true,
     .help = "the volume of a database"},
    {.key = "log",
     .type = CFG_STRING,
     .offset = AT(log),
     .help = "the volume of its log: another, that may hold the logs of several databases; "
	     "behind the database unless given"},
    {.key = "copy-of",
     .type = CFG_STRING,
     .offset = AT(copy_of),
     .help = "the volume, on another host, of the database it is a passive copy of: its log is "
	     "shipped (replication) and replayed here"},
};
#undef AT
static const struct cfg_schema placement_schema = {
    .name = "workload.placement",
    .size = sizeof(struct ese_placement_config),
    .fields = placement_fields,
    .field_count = ARRAY_SIZE(placement_fields),
};

#define AT(member) offsetof(struct ese_config, member)
static const struct cfg_field fields[] = {
    {.key = "engine",
     .type = CFG_ENUM,
     .offset = AT(engine),
     .preset = "streams",
     .names = exchange_engine_names,
     .help = "ese: databases with cache, log and transactions; the I/O follows from them"},
    {.key = "test",
     .type = CFG_ENUM,
     .offset = AT(test),
     .preset = "performance",
     .names = test_names,
     .help = "Jetstress' types of test"},
    {.key = "profile",
     .type = CFG_ENUM,
     .offset = AT(profile),
     .preset = "exchange-2013",
     .names = exchange_profile_names,
     .help = "preset of IOPS per mailbox and copies"},
    {.key = "mailboxes",
     .type = CFG_UINT,
     .offset = AT(mailboxes),
     .required = true,
     .min = 1,
     .max = 10e6,
     .help = "all mailboxes; times the IOPS of one they are the target"},
    EXCHANGE_RATE_FIELDS(AT(iops_per_mailbox), AT(messages)),
    {.key = "day",
     .type = CFG_STRUCT,
     .offset = AT(day),
     .sub = &exchange_day_schema,
     .help = "the course of a day, of an open loop"},
    {.key = "copies",
     .type = CFG_UINT,
     .offset = AT(copies),
     .min = 1,
     .max = 16,
     .help = "copies of each database: a closed log file is read copies - 1 times; default: the "
	     "profile's"},
    {.key = "loop",
     .type = CFG_ENUM,
     .offset = AT(loop),
     .preset = "closed",
     .names = loop_names,
     .help = "closed: sessions that wait for their I/O and think; open: transactions come at the "
	     "rate of the target, whatever the storage does"},
    {.key = "sessions",
     .type = CFG_STRING,
     .offset = AT(sessions),
     .preset = "auto",
     .help = "closed: sessions of each host, shared by its databases; auto: found by tuning"},
    {.key = "think-time",
     .type = CFG_DURATION,
     .offset = AT(think_ns),
     .preset = "26.9ms",
     .max = 3600e9,
     .help = "closed: what a session waits after each transaction"},
    {.key = "mix", .type = CFG_STRUCT, .offset = AT(mix), .sub = &mix_schema},
    {.key = "lazy-commits",
     .type = CFG_PERCENT,
     .offset = AT(lazy_commits),
     .preset = "70%",
     .max = 100,
     .help = "transactions that do not wait until their log is on the volume"},
    {.key = "lazy-flush",
     .type = CFG_DURATION,
     .offset = AT(lazy_flush_ns),
     .preset = "2s",
     .min = 1e6,
     .max = 3600e9,
     .help = "the log of a lazy commit is written by then at the latest"},
    {.key = "access", .type = CFG_STRUCT, .offset = AT(access), .sub = &access_schema},
    {.key = "databases",
     .type = CFG_ENUM,
     .offset = AT(source),
     .preset = "auto",
     .names = source_names,
     .help = "new: made for this run; open: there from an earlier run, recovered if need be; "
	     "auto: opened where there is one, else made"},
    {.key = "database-size",
     .type = CFG_SIZE,
     .offset = AT(database_bytes),
     .min = 2.0 * 1024 * 1024,
     .max = 64e12,
     .help = "what a database may grow to; default: what the log leaves of its volume"},
    {.key = "initial-size",
     .type = CFG_SIZE,
     .offset = AT(initial_bytes),
     .preset = "64MiB",
     .min = 1024.0 * 1024,
     .max = 64e12,
     .help = "a database before the run; it takes no time on a volume that reads as zeros"},
    {.key = "log-files",
     .type = CFG_UINT,
     .offset = AT(log_files),
     .min = 4,
     .max = 1e6,
     .help = "1 MiB log files in the ring of a database; default: twice the checkpoint depth, 64 "
	     "at least"},
    {.key = "log-fua",
     .type = CFG_BOOL,
     .offset = AT(log_fua),
     .preset = "true",
     .help = "log writes carry FUA, as Exchange's write-through log does"},
    {.key = "cache-min",
     .type = CFG_SIZE,
     .offset = AT(cache_min_bytes),
     .preset = "32MiB",
     .min = 1024.0 * 1024,
     .max = 1e12,
     .help = "page cache of a host at the start, per database of it"},
    {.key = "cache-max",
     .type = CFG_SIZE,
     .offset = AT(cache_max_bytes),
     .preset = "256MiB",
     .min = 2.0 * 1024 * 1024,
     .max = 1e12,
     .help = "... and what it grows to"},
    {.key = "checkpoint-depth",
     .type = CFG_SIZE,
     .offset = AT(checkpoint_bytes),
     .min = 64.0 * 1024,
     .max = 64e9,
     .help = "log that recovery may have to replay: older dirty pages are written; default: "
	     "20 MB, with copies 100 MB"},
    {.key = "copy-checkpoint-depth",
     .type = CFG_SIZE,
     .offset = AT(copy_checkpoint_bytes),
     .min = 64.0 * 1024,
     .max = 64e9,
     .help = "the same of a passive copy; default: 5 MB with profile exchange-2010, else as above"},
    {.key = "bdm",
     .type = CFG_BOOL,
     .offset = AT(bdm),
     .preset = "true",
     .help = "background database maintenance: sequential reads of what is not in the cache"},
    {.key = "bdm-throttle",
     .type = CFG_DURATION,
     .offset = AT(bdm_throttle_ns),
     .preset = "100ms",
     .max = 3600e9,
     .help = "pause after each maintenance read"},
    {.key = "bdm-tick",
     .type = CFG_DURATION,
     .offset = AT(bdm_tick_ns),
     .max = 1e9,
     .help = "timer tick the pause ends on (15.625ms on Windows); 0: none"},
    {.key = "bdm-rate",
     .type = CFG_REAL,
     .offset = AT(bdm_per_s),
     .min = 0.01,
     .max = 10000,
     .help = "maintenance reads per second and database instead of a pause (Exchange 2010: 20, "
	     "2013: 4)"},
    {.key = "content",
     .type = CFG_ENUM,
     .offset = AT(content),
     .preset = "verified",
     .names = content_names,
     .help = "verified: every page and log segment is made and checked; none: I/O without "
	     "content, for large databases in virtual time"},
    {.key = "replication",
     .type = CFG_ENUM,
     .offset = AT(replication),
     .preset = "file",
     .names = replication_names,
     .help = "how logs get to the other copies: file (closed files are read), block (each log "
	     "write is sent, nothing is read), none"},
    {.key = "placement",
     .type = CFG_LIST,
     .offset = AT(placement),
     .sub = &placement_schema,
     .help = "databases whose log is on another volume, and passive copies; default: every volume "
	     "holds an active database and its log"},
    {.key = "tuning", .type = CFG_STRUCT, .offset = AT(tuning), .sub = &ese_tuning_schema},
    {.key = "warm-up", .type = CFG_STRUCT, .offset = AT(warm_up), .sub = &ese_warm_up_schema},
    {.key = "thresholds",
     .type = CFG_STRUCT,
     .offset = AT(thresholds),
     .sub = &ese_thresholds_schema},
    {.key = "recovery",
     .type = CFG_STRUCT,
     .offset = AT(recovery),
     .sub = &ese_soft_recovery_schema},
    {.key = "backup-depth",
     .type = CFG_UINT,
     .offset = AT(backup_depth),
     .preset = "2",
     .min = 1,
     .max = 16,
     .help = "test: database-backup: reads of 256 KiB in flight, per database"},
    {.key = "constants", .type = CFG_STRUCT, .offset = AT(constants), .sub = &ese_constants_schema},
};
#undef AT

const struct cfg_schema ese_schema = {
    .name = "workload (engine ese)",
    .size = sizeof(struct ese_config),
    .fields = fields,
    .field_count = ARRAY_SIZE(fields),
    .sibling = &exchange_schema,
    .sibling_name = "engine: streams",
};

static void configure_sessions(struct cfg *cfg, struct ese_config *config)
{
	char *end;
	unsigned long count;

	if (!strcmp(config->sessions, "auto"))
		return;
	count = strtoul(config->sessions, &end, 10);
	if (config->sessions[0] < '0' || config->sessions[0] > '9' || *end || count < 1 ||
	    count > ESE_SESSIONS_MAX) {
		cfg_error_at(cfg, &config->sessions, "'sessions' must be auto or 1 to %d",
			     ESE_SESSIONS_MAX);
		return;
	}
	config->session_count = count;
}

static void check_pairs(struct cfg *cfg, struct ese_config *config)
{
	const struct ese_mix_config *mix = &config->mix;

	if (mix->insert + mix->remove + mix->replace > 1.000001)
		cfg_error_at(cfg, &mix->insert, "the operations of 'mix' are more than 100%%");
	if (config->cache_min_bytes > config->cache_max_bytes)
		cfg_error_at(cfg, &config->cache_min_bytes, "'cache-min' is above 'cache-max'");
	if (config->database_bytes && config->initial_bytes > config->database_bytes)
		cfg_error_at(cfg, &config->initial_bytes,
			     "'initial-size' is above 'database-size'");
	if (config->constants.flush_start > config->constants.flush_stop)
		cfg_error_at(cfg, &config->constants.flush_start,
			     "'flush-start' is above 'flush-stop'");
	if (config->loop == ESE_OPEN && config->session_count)
		cfg_error_at(cfg, &config->sessions,
			     "an open loop has no sessions: its rate is the target");
	if (config->log_files && config->log_files * MIB < config->checkpoint_bytes / 4 * 5 + MIB)
		cfg_error_at(cfg, &config->log_files,
			     "'log-files' must hold 1.25 times the checkpoint depth");
}

static const struct ese_placement_config *placed(const struct ese_config *config,
						 const char *database)
{
	const struct ese_placement_config *places = config->placement.items;

	for (size_t i = 0; i < config->placement.count; i++)
		if (places[i].database && !strcmp(places[i].database, database))
			return &places[i];
	return NULL;
}

static void check_copy(struct cfg *cfg, const struct ese_config *config,
		       const struct ese_placement_config *place)
{
	const struct ese_placement_config *of = placed(config, place->copy_of);

	if (of && of->copy_of)
		cfg_error_at(cfg, &place->copy_of,
			     "volume %s holds a copy itself: name the active database",
			     place->copy_of);
	if (config->test == ESE_BACKUP || config->test == ESE_SOFT_RECOVERY)
		cfg_error_at(cfg, &place->copy_of,
			     "copies are for tests 'performance' and 'stress'");
	if (config->replication == ESE_REPLICATE_NONE)
		cfg_error_at(cfg, &place->copy_of,
			     "a copy needs its log: set replication to file or block");
}

static void check_placement(struct cfg *cfg, const struct ese_config *config)
{
	const struct ese_placement_config *places = config->placement.items;

	for (size_t i = 0; i < config->placement.count; i++)
		if (places[i].copy_of)
			check_copy(cfg, config, &places[i]);

	for (size_t i = 0; i < config->placement.count; i++)
		for (size_t k = 0; k < config->placement.count; k++)
			if (places[i].database && places[k].log &&
			    !strcmp(places[i].database, places[k].log))
				cfg_error_at(cfg, &places[i].database,
					     "volume %s cannot hold a database and the log of %s",
					     places[i].database,
					     i == k ? "it" : places[k].database);
			else if (k < i && places[i].database && places[k].database &&
				 !strcmp(places[i].database, places[k].database))
				cfg_error_at(cfg, &places[i].database,
					     "database %s is placed twice", places[i].database);
}

/* What is 0 after decoding stands for something that follows. */
static void supply(struct ese_config *config)
{
	const struct exchange_profile *profile = exchange_profile_of(config->profile);

	config->iops_per_mailbox =
	    exchange_mailbox_iops(config->profile, config->iops_per_mailbox, config->messages,
				  exchange_client_factor(&config->day));
	if (!config->copies)
		config->copies = profile->copies;
	if (!config->checkpoint_bytes)
		config->checkpoint_bytes = config->copies > 1 ? 100 * 1000000 : 20 * 1000000;
	if (!config->copy_checkpoint_bytes)
		config->copy_checkpoint_bytes =
		    strcmp(profile->name, "exchange-2010") == 0
			? MIN_OF(config->checkpoint_bytes, UINT64_C(5000000))
			: config->checkpoint_bytes;
}

/* A recovery test's log must fit, with room for what is written until the load has ended. */
static void supply_log_files(struct cfg *cfg, struct ese_config *config)
{
	uint64_t files =
	    MAX_OF(config->checkpoint_bytes * LOG_FILES_PER_DEPTH / MIB, (uint64_t)LOG_FILES_MIN);
	uint64_t replayed = config->test == ESE_SOFT_RECOVERY ? config->recovery.files : 0;

	replayed += replayed ? replayed / 8 + LOG_FILES_SPARE : 0;
	if (!config->log_files)
		config->log_files = MAX_OF(files, replayed);
	else if (config->log_files < replayed)
		cfg_error_at(cfg, &config->log_files,
			     "'log-files' must be at least %llu for the %llu that are replayed",
			     (unsigned long long)replayed,
			     (unsigned long long)config->recovery.files);
}

void ese_configure(struct cfg *cfg, void *opaque)
{
	struct ese_config *config = opaque;

	configure_sessions(cfg, config);
	exchange_rate_check(cfg, &config->messages, config->iops_per_mailbox);
	exchange_day_check(cfg, &config->day, config->loop == ESE_OPEN);
	supply(config);
	ese_supply_constants(cfg, &config->constants);
	check_pairs(cfg, config);
	check_placement(cfg, config);
	supply_log_files(cfg, config);
}

double ese_config_target_iops(const struct ese_config *config)
{
	return (double)config->mailboxes * config->iops_per_mailbox;
}

int ese_config_parse(const char *text, struct cfg **ret_cfg, struct ese_config *ret_config)
{
	struct cfg *cfg = NULL;
	int r = cfg_parse("workload", text, strlen(text), &cfg);

	if (r < 0)
		return r;
	cfg_decode(cfg, &ese_schema, ret_config);
	ese_configure(cfg, ret_config);
	*ret_cfg = cfg;
	return cfg_error_count(cfg) ? -EINVAL : 0;
}
