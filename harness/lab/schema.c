/* SPDX-License-Identifier: MIT
 *
 * The lab file's schema: every room's part composed.
 */
#include "base/bytes.h"
#include "harness/lab/lab_impl.h"

const char *const stack_names[] = {[STACK_DIRECT] = "direct", NULL};

const char *const fault_kind_names[] = {
    [FAULT_PATH_RESET] = "path-reset",
    [FAULT_PATH_DOWN] = "path-down",
    [FAULT_PORTAL_DOWN] = "portal-down",
    [FAULT_ALL_PATHS_DOWN] = "all-paths-down",
    [FAULT_DRIVE_FAIL] = "drive-fail",
    [FAULT_DRIVE_SLOW] = "drive-slow",
    [FAULT_DRIVE_LATENT] = "drive-latent",
    [FAULT_MEMBER_OFFLINE] = "member-offline",
    [FAULT_CONTROLLER_FAILOVER] = "controller-failover",
    [FAULT_LINK_DOWN] = "link-down",
    [FAULT_BATTERY_LOST] = "battery-lost",
    [FAULT_SCRUB] = "scrub",
    [FAULT_KINDS] = NULL,
};

#define SCHEMA(label, type, table)                            \
	{                                                     \
		label, sizeof(type), table, ARRAY_SIZE(table) \
	}
#define AT(member) offsetof(struct THIS, member)

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
    {"interval", CFG_DURATION, AT(interval_ns), .preset = "1s", .min = 1e7, .max = 3600e9,
     .help = "length of one sample"},
    {"verify", CFG_BOOL, AT(verify), .preset = "true",
     .help = "read everything that was written back at the end"},
    {"drain-limit", CFG_DURATION, AT(drain_limit_ns), .preset = "30s", .min = 1e8, .max = 3600e9,
     .help = "how long the last I/Os may take"},
};
#undef THIS
static const struct cfg_schema run_schema = SCHEMA("run", struct run_config, run_fields);

/* ---- faults ---- */

#define THIS fault_args
static const struct cfg_field fault_path_fields[] = {
    {"host", CFG_STRING, AT(host), .required = true, .help = "whose path"},
    {"path", CFG_UINT, AT(path), .required = true, .max = LAB_MAX_PATHS - 1,
     .help = "number of the path, counted from 0 as in reports"},
    {"volume", CFG_STRING, AT(volume),
     .help = "whose paths are counted; the host's first volume unless given"},
};
static const struct cfg_field fault_portal_fields[] = {
    {"portal", CFG_PORTAL, AT(portal), .required = true,
     .help = "a portal of the group or of a member"},
};
static const struct cfg_field fault_host_fields[] = {
    {"host", CFG_STRING, AT(host), .help = "whose paths; every host's unless given"},
};
#define MEMBER_FIELD                                                              \
	{                                                                         \
		"member", CFG_STRING, AT(member), .required = true,               \
						  .help = "a member of the group" \
	}
#define DRIVE_FIELDS                                                                        \
	MEMBER_FIELD,                                                                       \
	{                                                                                   \
		"drive", CFG_UINT, AT(drive), .required = true, .max = 63,                  \
					      .help = "number of the drive, counted from 0" \
	}
static const struct cfg_field fault_drive_fields[] = {DRIVE_FIELDS};
static const struct cfg_field fault_slow_fields[] = {
    DRIVE_FIELDS,
    {"factor", CFG_REAL, AT(factor), .preset = "1", .min = 1, .max = 1000,
     .help = "its modelled service times grow so many times"},
    {"extra", CFG_DURATION, AT(extra_ns), .max = 60e9,
     .help = "each command takes so much longer, also with timing none"},
};
static const struct cfg_field fault_latent_fields[] = {
    DRIVE_FIELDS,
    {"rate", CFG_PERCENT, AT(rate), .preset = "1%", .max = 100,
     .help = "share of the reads that finds a new bad sector"},
};
static const struct cfg_field fault_member_fields[] = {MEMBER_FIELD};
static const struct cfg_field fault_controller_fields[] = {
    {"member", CFG_STRING, AT(member),
     .help = "whose controller (style equallogic); in style lun the group has two"},
    {"controller", CFG_UINT, AT(controller), .max = 1,
     .help = "0 or 1; style equallogic: the active one unless given"},
};
static const struct cfg_field fault_link_fields[] = {
    MEMBER_FIELD,
    {"controller", CFG_UINT, AT(controller), .preset = "0", .max = 1, .help = "0 or 1"},
    {"port", CFG_UINT, AT(port), .required = true, .max = 31,
     .help = "number of the member's portal, counted from 0"},
};
#undef THIS
#define ARGS_SCHEMA(name, label)                               \
	static const struct cfg_schema fault_##name##_schema = \
	    SCHEMA(label, struct fault_args, fault_##name##_fields)
ARGS_SCHEMA(path, "path fault");
ARGS_SCHEMA(portal, "portal fault");
ARGS_SCHEMA(host, "host fault");
ARGS_SCHEMA(drive, "drive fault");
ARGS_SCHEMA(slow, "slow drive");
ARGS_SCHEMA(latent, "latent sector errors");
ARGS_SCHEMA(member, "member fault");
ARGS_SCHEMA(controller, "controller fault");
ARGS_SCHEMA(link, "link fault");

const struct cfg_schema *const fault_schemas[FAULT_KINDS] = {
    [FAULT_PATH_RESET] = &fault_path_schema,
    [FAULT_PATH_DOWN] = &fault_path_schema,
    [FAULT_PORTAL_DOWN] = &fault_portal_schema,
    [FAULT_ALL_PATHS_DOWN] = &fault_host_schema,
    [FAULT_DRIVE_FAIL] = &fault_drive_schema,
    [FAULT_DRIVE_SLOW] = &fault_slow_schema,
    [FAULT_DRIVE_LATENT] = &fault_latent_schema,
    [FAULT_MEMBER_OFFLINE] = &fault_member_schema,
    [FAULT_CONTROLLER_FAILOVER] = &fault_controller_schema,
    [FAULT_LINK_DOWN] = &fault_link_schema,
    [FAULT_BATTERY_LOST] = &fault_member_schema,
    [FAULT_SCRUB] = &fault_member_schema,
};

#define KIND(key, kind, schema, text)                                      \
	{                                                                  \
		key, CFG_UNION, AT(raw[kind]), .sub = schema, .help = text \
	}
#define THIS fault_config
static const struct cfg_field fault_fields[] = {
    {"at", CFG_DURATION, AT(at_ns), .required = true, .max = 30 * 86400e9,
     .help = "when it begins, from the start of the measured window"},
    {"for", CFG_DURATION, AT(for_ns), .min = 1, .max = 30 * 86400e9,
     .help = "how long it lasts; until the end unless given"},
    KIND("path-reset", FAULT_PATH_RESET, &fault_path_schema,
	 "the target resets the TCP connections of one path; they may come back at once"),
    KIND("path-down", FAULT_PATH_DOWN, &fault_path_schema,
	 "one path of one host is reset and refused"),
    KIND("portal-down", FAULT_PORTAL_DOWN, &fault_portal_schema,
	 "a portal resets its connections and stops listening"),
    KIND("all-paths-down", FAULT_ALL_PATHS_DOWN, &fault_host_schema,
	 "every path of a host, or of all hosts, goes down"),
    KIND("drive-fail", FAULT_DRIVE_FAIL, &fault_drive_schema,
	 "a drive fails; with `for` it returns, with what it held then"),
    KIND("drive-slow", FAULT_DRIVE_SLOW, &fault_slow_schema, "a drive gets slow"),
    KIND("drive-latent", FAULT_DRIVE_LATENT, &fault_latent_schema,
	 "a drive develops sectors that cannot be read"),
    KIND("member-offline", FAULT_MEMBER_OFFLINE, &fault_member_schema,
	 "a member is switched off: its portals are silent, its pages cannot be reached"),
    KIND("controller-failover", FAULT_CONTROLLER_FAILOVER, &fault_controller_schema,
	 "a controller dies; with `for` it returns"),
    KIND("link-down", FAULT_LINK_DOWN, &fault_link_schema,
	 "a port of a controller loses its link; the partner's port takes over (equallogic)"),
    KIND("battery-lost", FAULT_BATTERY_LOST, &fault_member_schema,
	 "the battery of a member's cache fails: it writes through"),
    KIND("scrub", FAULT_SCRUB, &fault_member_schema,
	 "a scrub of the member begins; with `for` it is stopped if it still runs"),
};
#undef THIS
static const struct cfg_schema fault_schema = SCHEMA("fault", struct fault_config, fault_fields);

/* ---- expectations ---- */

#define THIS expect_config
static const struct cfg_field expect_fields[] = {
    {"data-mismatches", CFG_UNION, AT(data_mismatches),
     .help = "pages that read back wrong, such as 0"},
    {"io-errors", CFG_UNION, AT(io_errors), .help = "I/Os that failed, such as 0"},
    {"max-io-gap", CFG_UNION, AT(max_io_gap),
     .help = "longest time without a completion while I/O was due, such as \"<= 2s\""},
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
    {"faults", CFG_LIST, AT(faults), .sub = &fault_schema,
     .help = "timeline of faults, one kind each"},
    {"expect", CFG_LIST, AT(expect), .sub = &expect_schema,
     .help = "each one key and one condition; each becomes a verdict"},
};
#undef THIS
const struct cfg_schema lab_schema = SCHEMA("the lab", struct lab, lab_fields);
