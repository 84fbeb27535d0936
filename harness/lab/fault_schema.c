/* SPDX-License-Identifier: MIT
 *
 * The kinds of faults: names, keys, help.
 */
#include "base/bytes.h"
#include "harness/lab/lab_impl.h"

const char *const fault_kind_names[] = {
    [FAULT_PATH_RESET] = "path-reset",
    [FAULT_PATH_DOWN] = "path-down",
    [FAULT_PORTAL_DOWN] = "portal-down",
    [FAULT_PORTAL_SILENT] = "portal-silent",
    [FAULT_ALL_PATHS_DOWN] = "all-paths-down",
    [FAULT_SESSION_RESET] = "session-reset",
    [FAULT_HALF_OPEN] = "half-open",
    [FAULT_BLACK_HOLE] = "black-hole",
    [FAULT_PATH_HOLD] = "path-hold",
    [FAULT_PATH_SLOW] = "path-slow",
    [FAULT_DIGEST_CORRUPTION] = "digest-corruption",
    [FAULT_TARGET_CRASH] = "target-crash",
    [FAULT_ALUA_FLIP] = "alua-flip",
    [FAULT_CHAP_SECRET] = "chap-secret",
    [FAULT_DRIVE_FAIL] = "drive-fail",
    [FAULT_DRIVE_SLOW] = "drive-slow",
    [FAULT_DRIVE_LATENT] = "drive-latent",
    [FAULT_MEMBER_OFFLINE] = "member-offline",
    [FAULT_CONTROLLER_FAILOVER] = "controller-failover",
    [FAULT_LINK_DOWN] = "link-down",
    [FAULT_BATTERY_LOST] = "battery-lost",
    [FAULT_SCRUB] = "scrub",
    [FAULT_COPY_ACTIVATE] = "copy-activate",
    [FAULT_COPY_RESEED] = "copy-reseed",
    [FAULT_RANDOM] = "random",
    [FAULT_KINDS] = NULL,
};

/* ---- what each kind takes ---- */

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
#define PLACE_FIELDS                                                                         \
	{"host", CFG_STRING, AT(host), .help = "whose paths; every host's unless given"},    \
	    {"path", CFG_UINT, AT(path), .max = LAB_MAX_PATHS - 1,                           \
	     .help = "number of the path, from 0 as in reports; all of them unless given"},  \
	    {"volume", CFG_STRING, AT(volume),                                               \
	     .help = "whose paths are counted; the host's first volume unless given"},       \
	    {"portal", CFG_PORTAL, AT(portal), .help = "instead: the paths to this portal"}, \
	{                                                                                    \
		"member", CFG_STRING, AT(member),                                            \
		    .help = "instead: the paths to the portals of this member"               \
	}
static const struct cfg_field fault_place_fields[] = {PLACE_FIELDS};
static const struct cfg_field fault_black_hole_fields[] = {
    PLACE_FIELDS,
    {"above", CFG_SIZE, AT(above_bytes), .min = 576, .max = 65536,
     .help = "only packets larger than this vanish (a PDU that needs one); all unless given"},
};
static const struct cfg_field fault_weather_fields[] = {
    PLACE_FIELDS,
    {"delay", CFG_DURATION, AT(delay_ns), .max = 60e9, .help = "each way"},
    {"jitter", CFG_DURATION, AT(jitter_ns), .max = 60e9,
     .help = "each way on top of it, uniform from nothing to this"},
    {"loss", CFG_PERCENT, AT(loss), .max = 90,
     .help = "of the segments, which TCP sends again: a stall each (200 ms and more at the end "
	     "of a burst)"},
};
static const struct cfg_field fault_corruption_fields[] = {
    PLACE_FIELDS,
    {"count", CFG_UINT, AT(count), .preset = "1", .min = 1, .max = 1000000,
     .help = "PDUs of the target whose header arrives with a flipped bit"},
};
static const struct cfg_field fault_alua_fields[] = {
    {"volume", CFG_STRING, AT(volume), .help = "whose access states; every volume's unless given"},
    {"transition", CFG_DURATION, AT(transition_ns), .max = 60e9,
     .help = "how long both groups are in transition"},
};
static const struct cfg_field fault_chap_fields[] = {
    {"user", CFG_STRING, AT(user), .required = true, .help = "a user of the secrets file"},
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
#define COPY_FIELDS                                                        \
	{"database", CFG_STRING, AT(volume), .required = true,             \
	 .help = "the volume of the active database"},                     \
	{                                                                  \
		"to", CFG_STRING, AT(to),                                  \
		    .help = "the volume of the copy; its only one unless " \
			    "given"                                        \
	}
const char *const fault_activation_names[] = {"switchover", "failover", NULL};
const char *const fault_dial_names[] = {"lossless", "good-availability", "best-availability", NULL};
static const struct cfg_field fault_activate_fields[] = {
    COPY_FIELDS,
    {"mode", CFG_ENUM, AT(mode), .preset = "switchover", .names = fault_activation_names,
     .help = "switchover: in order, nothing is lost; failover: the active database is gone, and "
	     "what was not shipped of its log"},
    {"mount-dial", CFG_ENUM, AT(dial), .preset = "good-availability", .names = fault_dial_names,
     .help = "failover: the copy becomes active if it lacks no more log files than 0, 6, 12"},
};
static const struct cfg_field fault_reseed_fields[] = {
    COPY_FIELDS,
    {"rate", CFG_SIZE, AT(rate_bytes), .min = 65536,
     .help = "bytes a second; as fast as it goes unless given"},
};
static const struct cfg_field fault_random_fields[] = {
    {"of", CFG_STRINGS, AT(of), .required = true,
     .help = "kinds of path faults, such as [path-reset, black-hole, half-open]"},
    {"times", CFG_UINT, AT(times), .required = true, .min = 1, .max = 1000,
     .help = "how many faults, as far as there is a path to hit"},
    {"within", CFG_DURATION, AT(within_ns), .required = true, .min = 1e6, .max = 30 * 86400e9,
     .help = "they begin within this time, counted from `at`"},
    {"shortest", CFG_DURATION, AT(shortest_ns), .preset = "100ms", .min = 1e6, .max = 3600e9,
     .help = "shortest fault"},
    {"longest", CFG_DURATION, AT(longest_ns), .preset = "1s", .min = 1e6, .max = 3600e9,
     .help = "longest fault"},
    {"leave", CFG_UINT, AT(leave), .preset = "1", .max = LAB_MAX_PATHS,
     .help = "paths of each volume that are spared at any time"},
    {"host", CFG_STRING, AT(host), .help = "whose paths; every host's unless given"},
};
#undef THIS
#define ARGS_SCHEMA(name, label)                               \
	static const struct cfg_schema fault_##name##_schema = \
	    SCHEMA(label, struct fault_args, fault_##name##_fields)
ARGS_SCHEMA(path, "path fault");
ARGS_SCHEMA(portal, "portal fault");
ARGS_SCHEMA(host, "host fault");
ARGS_SCHEMA(place, "path fault");
ARGS_SCHEMA(black_hole, "black hole");
ARGS_SCHEMA(weather, "slow path");
ARGS_SCHEMA(corruption, "digest corruption");
ARGS_SCHEMA(alua, "ALUA flip");
ARGS_SCHEMA(chap, "CHAP secret");
ARGS_SCHEMA(drive, "drive fault");
ARGS_SCHEMA(slow, "slow drive");
ARGS_SCHEMA(latent, "latent sector errors");
ARGS_SCHEMA(member, "member fault");
ARGS_SCHEMA(controller, "controller fault");
ARGS_SCHEMA(link, "link fault");
ARGS_SCHEMA(random, "random faults");
ARGS_SCHEMA(activate, "activation of a copy");
ARGS_SCHEMA(reseed, "reseed of a copy");
static const struct cfg_schema fault_crash_schema = {"target crash", sizeof(struct fault_args),
						     NULL, 0};

const struct cfg_schema *const fault_schemas[FAULT_KINDS] = {
    [FAULT_PATH_RESET] = &fault_path_schema,
    [FAULT_PATH_DOWN] = &fault_path_schema,
    [FAULT_PORTAL_DOWN] = &fault_portal_schema,
    [FAULT_PORTAL_SILENT] = &fault_portal_schema,
    [FAULT_ALL_PATHS_DOWN] = &fault_host_schema,
    [FAULT_SESSION_RESET] = &fault_path_schema,
    [FAULT_HALF_OPEN] = &fault_place_schema,
    [FAULT_BLACK_HOLE] = &fault_black_hole_schema,
    [FAULT_PATH_HOLD] = &fault_place_schema,
    [FAULT_PATH_SLOW] = &fault_weather_schema,
    [FAULT_DIGEST_CORRUPTION] = &fault_corruption_schema,
    [FAULT_TARGET_CRASH] = &fault_crash_schema,
    [FAULT_ALUA_FLIP] = &fault_alua_schema,
    [FAULT_CHAP_SECRET] = &fault_chap_schema,
    [FAULT_DRIVE_FAIL] = &fault_drive_schema,
    [FAULT_DRIVE_SLOW] = &fault_slow_schema,
    [FAULT_DRIVE_LATENT] = &fault_latent_schema,
    [FAULT_MEMBER_OFFLINE] = &fault_member_schema,
    [FAULT_CONTROLLER_FAILOVER] = &fault_controller_schema,
    [FAULT_LINK_DOWN] = &fault_link_schema,
    [FAULT_BATTERY_LOST] = &fault_member_schema,
    [FAULT_SCRUB] = &fault_member_schema,
    [FAULT_COPY_ACTIVATE] = &fault_activate_schema,
    [FAULT_COPY_RESEED] = &fault_reseed_schema,
    [FAULT_RANDOM] = &fault_random_schema,
};

/* ---- one entry ---- */

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
    {"every", CFG_DURATION, AT(every_ns), .min = 1e6, .max = 30 * 86400e9,
     .help = "it comes again so long after it began"},
    {"times", CFG_UINT, AT(times), .min = 1, .max = 10000,
     .help = "with `every`: how often; until the window ends unless given"},
    KIND("path-reset", FAULT_PATH_RESET, &fault_path_schema,
	 "the target resets the TCP connections of one path; they may come back at once"),
    KIND("path-down", FAULT_PATH_DOWN, &fault_path_schema,
	 "one path of one host is reset and refused"),
    KIND("portal-down", FAULT_PORTAL_DOWN, &fault_portal_schema,
	 "a portal resets its connections and stops listening"),
    KIND("portal-silent", FAULT_PORTAL_SILENT, &fault_portal_schema,
	 "a portal is a black hole for everybody: nothing is accepted, answered or reset there"),
    KIND("all-paths-down", FAULT_ALL_PATHS_DOWN, &fault_host_schema,
	 "every path of a host, or of all hosts, goes down"),
    KIND("session-reset", FAULT_SESSION_RESET, &fault_path_schema,
	 "the network resets the session of one volume on one path (any target)"),
    KIND("half-open", FAULT_HALF_OPEN, &fault_place_schema,
	 "the peer accepts and acknowledges but never answers; at the end it has forgotten every "
	 "connection (any target)"),
    KIND("black-hole", FAULT_BLACK_HOLE, &fault_black_hole_schema,
	 "nothing gets through and nobody is told (any target)"),
    KIND("path-hold", FAULT_PATH_HOLD, &fault_place_schema,
	 "a black hole that loses nothing: what was sent arrives late (any target)"),
    KIND("path-slow", FAULT_PATH_SLOW, &fault_weather_schema,
	 "delay, jitter, loss on paths (any target)"),
    KIND("digest-corruption", FAULT_DIGEST_CORRUPTION, &fault_corruption_schema,
	 "headers arrive damaged and their digest tells (any target; mpio.header-digest)"),
    KIND("target-crash", FAULT_TARGET_CRASH, &fault_crash_schema,
	 "the target is killed (SIGKILL); with `for` it is started again then"),
    KIND("alua-flip", FAULT_ALUA_FLIP, &fault_alua_schema,
	 "the access states of both target port groups change places (style lun)"),
    KIND("chap-secret", FAULT_CHAP_SECRET, &fault_chap_schema,
	 "the target has another secret for a user: logins fail, sessions stay"),
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
    KIND("copy-activate", FAULT_COPY_ACTIVATE, &fault_activate_schema,
	 "a passive copy of a database becomes the active one"),
    KIND("copy-reseed", FAULT_COPY_RESEED, &fault_reseed_schema,
	 "a passive copy is made anew from the active database, which goes on"),
    KIND("random", FAULT_RANDOM, &fault_random_schema,
	 "path faults at random, the same ones for the same seed"),
};
#undef THIS
const struct cfg_schema fault_schema = SCHEMA("fault", struct fault_config, fault_fields);
