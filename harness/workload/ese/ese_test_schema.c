/* SPDX-License-Identifier: MIT
 *
 * The keys of `engine: ese` that say how a test is done and what it must meet.
 */
#include "base/bytes.h"
#include "harness/workload/ese/ese_checksum.h"
#include "harness/workload/ese/ese_config.h"

#define AT(member) offsetof(struct ese_tuning_config, member)
static const struct cfg_field tuning_fields[] = {
    {.key = "start",
     .type = CFG_UINT,
     .offset = AT(start),
     .max = ESE_SESSIONS_MAX,
     .help = "sessions of the first cycle; default: two for each database"},
    {.key = "sample",
     .type = CFG_DURATION,
     .offset = AT(samples_ns),
     .preset = "1s",
     .min = 1e6,
     .max = 60e9,
     .help = "how long a sample of latency is"},
    {.key = "transient",
     .type = CFG_UINT,
     .offset = AT(transient),
     .preset = "30",
     .min = 3,
     .max = 10000,
     .help = "samples until latency may be judged as stable"},
    {.key = "stable",
     .type = CFG_UINT,
     .offset = AT(stable),
     .preset = "120",
     .min = 3,
     .max = 10000,
     .help = "samples from which a cycle is judged"},
    {.key = "limit",
     .type = CFG_DURATION,
     .offset = AT(limit_ns),
     .preset = "1h",
     .min = 1e9,
     .help = "tuning that has not succeeded by then has failed"},
};
#undef AT
const struct cfg_schema ese_tuning_schema = {
    .name = "workload.tuning",
    .size = sizeof(struct ese_tuning_config),
    .fields = tuning_fields,
    .field_count = ARRAY_SIZE(tuning_fields),
};

#define AT(member) offsetof(struct ese_thresholds_config, member)
static const struct cfg_field threshold_fields[] = {
    {.key = "avg-db-read",
     .type = CFG_DURATION,
     .offset = AT(avg_db_read_ns),
     .min = 1e3,
     .max = 3600e9,
     .help = "average latency of database reads; default: 20ms"},
    {.key = "max-db-read",
     .type = CFG_DURATION,
     .offset = AT(max_db_read_ns),
     .min = 1e3,
     .max = 3600e9,
     .help = "the same of each sample; default: 100ms, of stress tests 200ms"},
    {.key = "avg-log-write",
     .type = CFG_DURATION,
     .offset = AT(avg_log_write_ns),
     .min = 1e3,
     .max = 3600e9,
     .help = "average latency of log writes; default: 10ms"},
    {.key = "max-log-write",
     .type = CFG_DURATION,
     .offset = AT(max_log_write_ns),
     .min = 1e3,
     .max = 3600e9,
     .help = "the same of each sample; default: 100ms, of stress tests 200ms"},
    {.key = "samples",
     .type = CFG_UINT,
     .offset = AT(samples),
     .preset = "6",
     .max = 100000,
     .help = "samples above a maximum that are forgiven, per database"},
    {.key = "iops-margin",
     .type = CFG_PERCENT,
     .offset = AT(margin),
     .preset = "5%",
     .max = 100,
     .help = "what may be missing of the target"},
    {.key = "stalls",
     .type = CFG_REAL,
     .offset = AT(stalls),
     .preset = "1",
     .max = 1e9,
     .help = "average page fault stalls a second, per host"},
};
#undef AT
const struct cfg_schema ese_thresholds_schema = {
    .name = "workload.thresholds",
    .size = sizeof(struct ese_thresholds_config),
    .fields = threshold_fields,
    .field_count = ARRAY_SIZE(threshold_fields),
};

#define AT(member) offsetof(struct ese_warm_up_config, member)
static const struct cfg_field warm_up_fields[] = {
    {.key = "cache",
     .type = CFG_PERCENT,
     .offset = AT(cache),
     .preset = "90%",
     .max = 98,
     .help = "how full the page cache (or, if smaller, how much of the databases in it) must be "
	     "before tuning and measuring begin"},
    {.key = "limit",
     .type = CFG_DURATION,
     .offset = AT(limit_ns),
     .preset = "2h",
     .min = 1e9,
     .max = 30 * 86400e9,
     .help = "a cache that has not filled by then fails the test"},
};
#undef AT
const struct cfg_schema ese_warm_up_schema = {
    .name = "workload.warm-up",
    .size = sizeof(struct ese_warm_up_config),
    .fields = warm_up_fields,
    .field_count = ARRAY_SIZE(warm_up_fields),
};

#define AT(member) offsetof(struct ese_soft_recovery_config, member)
static const struct cfg_field recovery_fields[] = {
    {.key = "files",
     .type = CFG_UINT,
     .offset = AT(files),
     .preset = "500",
     .min = 1,
     .max = 500000,
     .help = "test: soft-recovery: log files of 1 MiB that each database has to replay"},
};
#undef AT
const struct cfg_schema ese_soft_recovery_schema = {
    .name = "workload.recovery",
    .size = sizeof(struct ese_soft_recovery_config),
    .fields = recovery_fields,
    .field_count = ARRAY_SIZE(recovery_fields),
};
