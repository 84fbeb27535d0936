/* SPDX-License-Identifier: MIT
 *
 * The lab file's schema: every room's part composed.
 */
#include "base/bytes.h"
#include "harness/lab/lab_impl.h"

const char *const stack_names[] = {[STACK_DIRECT] = "direct", NULL};

/* ---- hosts ---- */

#define THIS lun_config
static const struct cfg_field lun_fields[] = {
    {"name", CFG_STRING, AT(name), .required = true, .help = "a-z, 0-9 and '-'"},
    {"urls", CFG_STRINGS, AT(urls), .required = true, .urls = true,
     .help = "one path each: iscsi://[user%pass@]host[:port]/iqn/lun"},
};
#undef THIS
static const struct cfg_schema lun_schema = SCHEMA("lun", struct lun_config, lun_fields);

#define THIS host_config
static const struct cfg_field host_fields[] = {
    {"name", CFG_STRING, AT(name), .required = true, .help = "a-z, 0-9 and '-'"},
    {"stack", CFG_ENUM, AT(stack), .preset = "direct", .names = stack_names,
     .help = "what lies between the workload and MPIO"},
    {"mpio", CFG_STRUCT, AT(mpio), .sub = &mpio_schema, .help = "multipath settings"},
    {"chap-user", CFG_STRING, AT(chap_user),
     .help = "user of group.chap.secrets that the host logs in as"},
    {"volumes", CFG_STRINGS, AT(volumes),
     .help = "volumes of the lab's group; a volume has one host"},
    {"luns", CFG_LIST, AT(luns), .sub = &lun_schema,
     .help = "logical units of targets that exist already"},
};
#undef THIS
static const struct cfg_schema host_schema = SCHEMA("host", struct host_config, host_fields);

/* ---- run ---- */

#define THIS run_config
static const struct cfg_field run_fields[] = {
    {"warmup", CFG_DURATION, AT(warmup_ns), .preset = "5s", .max = 86400e9,
     .help = "load before the measured window"},
    {"duration", CFG_DURATION, AT(duration_ns), .preset = "30s", .min = 1e8, .max = 30 * 86400e9,
     .help = "length of the measured window"},
    {"interval", CFG_DURATION, AT(interval_ns), .min = 1e7, .max = 3600e9,
     .help = "length of one sample; default: 1s, of Jetstress' tests (engine: ese) 15s"},
    {"verify", CFG_BOOL, AT(verify), .preset = "true",
     .help = "read everything that was written back at the end"},
    {"drain-limit", CFG_DURATION, AT(drain_limit_ns), .preset = "30s", .min = 1e8, .max = 3600e9,
     .help = "how long the last I/Os may take"},
};
#undef THIS
static const struct cfg_schema run_schema = SCHEMA("run", struct run_config, run_fields);

/* ---- virtual time ---- */

const char *const virtual_network_names[] = {
    [VIRTUAL_LINKS] = "links", [VIRTUAL_NONE] = "none", NULL};

#define THIS virtual_config
static const struct cfg_field virtual_fields[] = {
    {"network", CFG_ENUM, AT(network), .preset = "links", .names = virtual_network_names,
     .help = "links: iSCSI and multipath over simulated links; none: the hosts' devices are the "
	     "volumes themselves, which is several times faster to compute"},
    {"delay", CFG_DURATION, AT(delay_ns), .preset = "25us", .min = 1e3, .max = 10e9,
     .help = "of a link, one way; with network: none an I/O takes at least twice as long"},
    {"jitter", CFG_DURATION, AT(jitter_ns), .preset = "0s", .max = 10e9,
     .help = "of a link, on top of delay: anything up to this"},
    {"rate", CFG_SIZE, AT(rate_bytes_per_s), .preset = "1250MB", .min = 1000, .max = 1e12,
     .help = "bytes a second of a link, each way; 1250MB is 10 Gbit/s"},
};
#undef THIS
static const struct cfg_schema virtual_schema =
    SCHEMA("virtual", struct virtual_config, virtual_fields);

/* ---- expectations ---- */

#define THIS expect_config
static const struct cfg_field expect_fields[] = {
    {"data-mismatches", CFG_UNION, AT(data_mismatches),
     .help = "pages that read back wrong, such as 0"},
    {"io-errors", CFG_UNION, AT(io_errors), .help = "I/Os that failed, such as 0"},
    {"max-io-gap", CFG_UNION, AT(max_io_gap),
     .help = "longest time without a completion while I/O was due, such as \"<= 2s\""},
    {"failover-time", CFG_UNION, AT(failover_time),
     .help = "longest time from a fault until I/O of the path it took succeeds on another, such as "
	     "\"<= 2s\""},
    {"failback-time", CFG_UNION, AT(failback_time),
     .help = "longest time from the end of a fault until the path it took carries I/O again, such "
	     "as \"<= 5s\""},
    {"p50-latency", CFG_UNION, AT(p50_latency), .help = "median response time, such as \"< 5ms\""},
    {"p90-latency", CFG_UNION, AT(p90_latency), .help = "90th percentile, such as \"< 20ms\""},
    {"p95-latency", CFG_UNION, AT(p95_latency), .help = "95th percentile, such as \"< 20ms\""},
    {"p99-latency", CFG_UNION, AT(p99_latency), .help = "99th percentile, such as \"< 50ms\""},
    {"p99.9-latency", CFG_UNION, AT(p999_latency), .help = "99.9th percentile, such as \"< 1s\""},
    {"max-latency", CFG_UNION, AT(max_latency), .help = "longest response time, such as \"< 2s\""},
    {"p99-lateness", CFG_UNION, AT(p99_lateness),
     .help = "of a replay: how late 99 % of the I/Os were sent at most, such as \"<= 10ms\""},
    {"max-lateness", CFG_UNION, AT(max_lateness),
     .help = "of a replay: how late any I/O was sent, such as \"<= 1s\""},
    {"stream", CFG_STRING, AT(stream),
     .help = "with max-io-gap and percentiles: of this kind of I/O (read, write, db-read, ...) "
	     "only"},
    {"step", CFG_REAL, AT(step), .max = 1e7,
     .help = "with percentiles: of the step of a raw sweep that has this depth or rate"},
    {"path-share", CFG_UNION, AT(path_share),
     .help = "how even a volume's paths share its I/Os (lost paths apart), such as within 1%"},
    {"achieved-iops", CFG_UNION, AT(achieved_iops),
     .help = "transactional I/Os of the planned ones, such as \">= 95%\""},
    {"db-read-latency", CFG_UNION, AT(db_read_latency), .help = "average, such as \"< 20ms\""},
    {"db-write-latency", CFG_UNION, AT(db_write_latency), .help = "average, such as \"< 20ms\""},
    {"log-write-latency", CFG_UNION, AT(log_write_latency), .help = "average, such as \"< 10ms\""},
    {"rebuild", CFG_UNION, AT(rebuild),
     .help = "`finished`: drives were rebuilt, and no member lacks redundancy at the end"},
    {"scrub", CFG_UNION, AT(scrub),
     .help = "`finished`: scrubs have ended and found nothing they could not repair; `clean`: "
	     "nothing at all"},
};
#undef THIS
static const struct cfg_schema expect_schema =
    SCHEMA("expectation", struct expect_config, expect_fields);

/* ---- the whole ---- */

#define THIS lab
static const struct cfg_field lab_fields[] = {
    {"name", CFG_STRING, AT(name), .required = true,
     .help = "a-z, 0-9 and '-'; part of every iSCSI name"},
    {"seed", CFG_UINT, AT(seed), .preset = "1",
     .help = "all chance follows from it: equal seeds give equal loads"},
    {"group", CFG_STRUCT, AT(group), .sub = &group_schema,
     .help = "what the target exports; left out: hosts use luns that exist already"},
    {"hosts", CFG_LIST, AT(hosts), .sub = &host_schema,
     .help = "who does the I/O; left out: the lab is for `sanlab target` only"},
    {"workload", CFG_UNION, AT(workload), .help = "what the hosts do, {type: NAME, ...}"},
    {"run", CFG_STRUCT, AT(run), .sub = &run_schema, .help = "how long and how it is sampled"},
    {"virtual", CFG_STRUCT, AT(virtual_run), .sub = &virtual_schema,
     .help = "what `sanlab run --virtual` simulates beside the array; real runs ignore it"},
    {"faults", CFG_LIST, AT(faults), .sub = &fault_schema,
     .help = "timeline of faults, one kind each"},
    {"expect", CFG_LIST, AT(expect), .sub = &expect_schema,
     .help = "each one key and one condition; each becomes a verdict"},
};
#undef THIS
const struct cfg_schema lab_schema = SCHEMA("the lab", struct lab, lab_fields);
