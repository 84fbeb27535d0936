/* SPDX-License-Identifier: MIT
 *
 * The configuration of the Exchange workload's engine: `workload: {type: exchange, engine: ese}`.
 *
 * Defaults are those of Jetstress 2013 as a public report (QNAP ES1640DC) shows them.  Sizes are
 * bytes, times ns, shares fractions.  Where 0 stands for "what follows", ese_configure() or the
 * server puts the value in: nothing below the schema sees it.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_CONFIG_H
#define SANLAB_HARNESS_WORKLOAD_ESE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "harness/workload/exchange_day.h"

enum { ESE_SESSIONS_MAX = 10000 }; /* of a host */

enum ese_test_kind { ESE_PERFORMANCE, ESE_STRESS, ESE_BACKUP, ESE_SOFT_RECOVERY };
enum ese_loop_kind { ESE_CLOSED, ESE_OPEN };
enum ese_content_kind { ESE_VERIFIED, ESE_NO_CONTENT };
enum ese_replication_kind { ESE_REPLICATE_FILE, ESE_REPLICATE_BLOCK, ESE_REPLICATE_NONE };
enum ese_source_kind { ESE_SOURCE_AUTO, ESE_SOURCE_NEW, ESE_SOURCE_OPEN };

/* Shares of the operations; what is left are reads. */
struct ese_mix_config {
	double insert, remove, replace;
};

struct ese_access_config {
	int kind;	  /* enum ese_keys */
	double hot_pages; /* hot: share of the leaves ... */
	double hot_share; /* ... that gets this share of the operations */
	double exponent;  /* zipf */
};

struct ese_tuning_config {
	uint64_t start;	     /* sessions of the first cycle; 0: two a database */
	uint64_t samples_ns; /* length of a sample */
	uint64_t transient, stable;
	uint64_t limit_ns; /* the whole of it */
};

/* Jetstress' criteria; a latency of 0: that of the test type. */
struct ese_thresholds_config {
	uint64_t avg_db_read_ns, max_db_read_ns, avg_log_write_ns, max_log_write_ns;
	uint64_t samples; /* above a maximum that are forgiven */
	double margin;	  /* of the target that may be missing */
	double stalls;	  /* page fault stalls a second */
};

struct ese_warm_up_config {
	double cache; /* share of it that must be full */
	uint64_t limit_ns;
};

struct ese_soft_recovery_config {
	uint64_t files; /* of log, per database */
};

/* Constants of the model, each as in ese_constants.h; those of the cache are here only. */
struct ese_constants_config {
	uint64_t record_bytes, fanout;
	double full_leaves, extra_dirty, read_run, write_run;
	uint64_t log_insert_bytes, log_delete_bytes, log_replace_bytes;
	uint64_t coalesce_bytes, write_gap_bytes, write_depth;
	double flush_start, flush_stop; /* of the cache: low and high mark of free pages */
	uint64_t correlated_ns, history_ns;
};

struct ese_placement_config {
	const char *database, *log; /* volumes of the same host; log NULL: behind the database */
	const char *copy_of;	    /* a database of another host; NULL: none, it is active */
};

struct ese_config {
	int engine;
	int test; /* enum ese_test_kind */
	int profile;
	uint64_t mailboxes;
	double iops_per_mailbox; /* 0: the profile's */
	uint64_t messages;	 /* a day, instead of it; 0: not given */
	struct exchange_day_config day;
	uint64_t copies;	/* 0: the profile's */
	int loop;		/* enum ese_loop_kind */
	const char *sessions;	/* a number or "auto" */
	uint64_t session_count; /* of it; 0: auto */
	uint64_t think_ns;
	struct ese_mix_config mix;
	double lazy_commits;
	uint64_t lazy_flush_ns;
	struct ese_access_config access;
	int source;		 /* enum ese_source_kind */
	uint64_t database_bytes; /* what a database may grow to; 0: what the log leaves */
	uint64_t initial_bytes;
	uint64_t log_files; /* in the ring; 0: follows from the checkpoint depth */
	bool log_fua;
	uint64_t cache_min_bytes, cache_max_bytes; /* per database of a server */
	uint64_t checkpoint_bytes;		   /* 0: 20 MB, 100 MB with copies */
	uint64_t
	    copy_checkpoint_bytes; /* of a passive copy; 0: 5 MB as Exchange 2010, later as above */
	bool bdm;
	uint64_t bdm_throttle_ns;
	uint64_t bdm_tick_ns;	   /* 0: none */
	double bdm_per_s;	   /* 0: by throttle */
	int content;		   /* enum ese_content_kind */
	int replication;	   /* enum ese_replication_kind */
	struct cfg_list placement; /* struct ese_placement_config */
	struct ese_tuning_config tuning;
	struct ese_warm_up_config warm_up;
	struct ese_thresholds_config thresholds;
	struct ese_soft_recovery_config recovery;
	uint64_t backup_depth; /* reads in flight, per database */
	struct ese_constants_config constants;
};

extern const struct cfg_schema ese_schema;
/* ese_test_schema.c */
extern const struct cfg_schema ese_tuning_schema, ese_warm_up_schema, ese_thresholds_schema,
    ese_soft_recovery_schema;

/* ese_constants_schema.c */
extern const struct cfg_schema ese_constants_schema;
void ese_supply_constants(const struct cfg *cfg, struct ese_constants_config *constants);

/* Checks what a schema alone cannot, and fills in what follows from other keys. */
void ese_configure(struct cfg *cfg, void *opaque);
/* Decodes the mapping TEXT, for tests and tools; free *ret_cfg after the configuration's last use.
 * -EINVAL: it holds errors. */
int ese_config_parse(const char *text, struct cfg **ret_cfg, struct ese_config *ret_config);

struct ese_constants;
void ese_config_constants(const struct ese_config *config, struct ese_constants *ret_constants);

/* Transactional IOPS of all databases together: the target. */
double ese_config_target_iops(const struct ese_config *config);

#endif
