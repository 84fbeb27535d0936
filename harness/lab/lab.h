/* SPDX-License-Identifier: MIT
 *
 * The lab file (DESIGN section 6) as one C structure: every room's part composed, decoded and
 * cross-checked.  All errors are reported in one go with file:line:column.
 *
 * Ownership: lab_free frees everything; strings and lists live in lab->cfg.
 */
#ifndef SANLAB_HARNESS_LAB_LAB_H
#define SANLAB_HARNESS_LAB_LAB_H

#include "base/config.h"
#include "initiator/mpio/mpio.h"
#include "target/array/array.h"

/* A logical unit of a target that is there already: labs without a group, and `sanlab bench`. */
struct lun_config {
	const char *name;
	struct cfg_list urls; /* const char *: one path each */
};

struct host_config {
	const char *name;
	int stack; /* enum stack_kind, index into stack_names */
	struct mpio_config mpio;
	const char *chap_user;	 /* of group.chap.secrets; NULL: none */
	struct cfg_list volumes; /* const char *: volumes of the lab's group */
	struct cfg_list luns;	 /* struct lun_config */
};
enum stack_kind { STACK_DIRECT };
extern const char *const stack_names[];

struct run_config {
	uint64_t warmup_ns, duration_ns;
	uint64_t interval_ns;	 /* sample length; 0: what suits the workload, or 1 s */
	bool verify;		 /* read the whole written set back at the end, default yes */
	uint64_t drain_limit_ns; /* how long the last I/Os may take, default 30 s */
};

/* What `sanlab run --virtual` puts between hosts and volumes; real runs have real networks. */
enum virtual_network {
	VIRTUAL_LINKS, /* a simulated link for each host and portal, iSCSI and MPIO over it */
	VIRTUAL_NONE,  /* nothing: the hosts' devices are the volumes themselves */
};
extern const char *const virtual_network_names[];
struct virtual_config {
	int network;
	uint64_t delay_ns, jitter_ns; /* of a link, one way */
	uint64_t rate_bytes_per_s;    /* 0: unlimited */
};

/* Fault timeline: `- {at: 10s, path-down: {host: mbx1, path: 2}, for: 5s}`; `at` counts from the
 * start of the measured window.  `every` and `times` repeat an entry; `random` stands for many.
 * Faults of paths work against any target (a relay in this process carries them out where the
 * lab's own target does not); the others need a group. */
enum fault_kind {
	FAULT_PATH_RESET,
	FAULT_PATH_DOWN,
	FAULT_PORTAL_DOWN,
	FAULT_PORTAL_SILENT,
	FAULT_ALL_PATHS_DOWN,
	/* of the network, on paths */
	FAULT_SESSION_RESET,
	FAULT_HALF_OPEN,
	FAULT_BLACK_HOLE,
	FAULT_PATH_HOLD,
	FAULT_PATH_SLOW,
	FAULT_DIGEST_CORRUPTION,
	/* of the target */
	FAULT_TARGET_CRASH,
	FAULT_ALUA_FLIP,
	FAULT_CHAP_SECRET,
	/* of the array */
	FAULT_DRIVE_FAIL,
	FAULT_DRIVE_SLOW,
	FAULT_DRIVE_LATENT,
	FAULT_MEMBER_OFFLINE,
	FAULT_CONTROLLER_FAILOVER,
	FAULT_LINK_DOWN,
	FAULT_BATTERY_LOST,
	FAULT_SCRUB,
	/* of the workload: copies of databases */
	FAULT_COPY_ACTIVATE,
	FAULT_COPY_RESEED,
	FAULT_RANDOM, /* never in the timeline: stands for others */
	FAULT_KINDS,
};
extern const char *const fault_kind_names[]; /* "path-reset", ... as in the file */
struct fault_config {
	uint64_t at_ns, for_ns;		 /* for 0: until the end */
	uint64_t every_ns, times;	 /* 0: once; until the window's end */
	struct cfg_raw raw[FAULT_KINDS]; /* exactly one given */
	/* filled by lab_load */
	int kind;
	const char *host;	  /* NULL: every host */
	const char *volume;	  /* whose paths are counted; NULL: none are */
	uint64_t path;		  /* index from 0 as in lab_paths_of and in reports */
	bool has_path;		  /* `volume` and `path` mean one */
	struct cfg_portal portal; /* of a path or portal; not set: every one */
	const char *member;	  /* NULL: the fault is none of a member's */
	uint64_t drive, port;
	int controller;	   /* -1: the active one */
	double factor;	   /* drive-slow */
	uint64_t extra_ns; /* ... */
	double rate;	   /* drive-latent: share of the reads */
	uint64_t above_bytes;
	uint64_t delay_ns, jitter_ns;
	double loss;
	uint64_t count;		/* digest-corruption */
	uint64_t transition_ns; /* alua-flip */
	const char *user;	/* chap-secret */
	const char *to;		/* copy-*: the volume of the copy; NULL: the only one */
	bool failover;		/* copy-activate */
	uint64_t lost_logs_max; /* ... */
	uint64_t rate_bytes;	/* copy-reseed, a second; 0: no limit */
	struct fault_random {
		unsigned kinds; /* a bit each */
		uint64_t times, within_ns, shortest_ns, longest_ns, leave;
	} random;
};
/* Which of the fields above a kind has. */
bool fault_has_drive(int kind);
bool fault_has_controller(int kind);
/* Begins and has no end: takes no `for`. */
bool fault_is_instant(int kind);
/* Of the workload: nothing happens to storage or network. */
bool fault_is_of_workload(int kind);
/* Of the network between host and target. */
bool fault_is_of_network(int kind);
struct lab;
/* The relay carries FAULT out on a path: it is the network's, or the path is one to somebody else's
 * target (URL given), or one host's alone and the target would refuse the others there, too. */
bool fault_needs_relay(const struct lab *lab, const struct fault_config *fault, const char *url);

/* One occurrence. */
struct fault_event {
	uint64_t at_ns, for_ns; /* from the window's start; for 0: until the end, or an instant */
	const struct fault_config *fault;
};
enum { LAB_MAX_FAULT_EVENTS = 10000 };

/* Expectations: `- {max-io-gap: "<= 2s"}`; one key each, and `stream: write` beside those that
 * are about streams. */
struct expect_config {
	struct cfg_raw data_mismatches, io_errors, max_io_gap, path_share, achieved_iops,
	    db_read_latency, db_write_latency, log_write_latency, rebuild, scrub, failover_time,
	    failback_time, p50_latency, p90_latency, p95_latency, p99_latency, p999_latency,
	    max_latency, p99_lateness, max_lateness;
	const char *stream; /* NULL: all of them */
	double step;	    /* of a sweep, its depth or rate; 0: the whole window */
	/* filled by lab_load */
	const char *key;  /* "max-io-gap" */
	const char *text; /* as written: "<= 2s" */
	int op;		  /* enum expect_op */
	/* ns for times; number for counts; fraction for achieved-iops (of the plan) and for
	 * path-share ("within 1%": EXPECT_LE 0.01, how far a path's share may be from even). */
	double value;
};
enum expect_op { EXPECT_EQ, EXPECT_LE, EXPECT_LT, EXPECT_GE, EXPECT_GT };

struct lab {
	const char *name;
	uint64_t seed;
	struct group_config group; /* valid when has_group */
	struct cfg_list hosts;	   /* struct host_config */
	struct cfg_raw workload;
	struct run_config run;
	struct virtual_config virtual_run;
	struct cfg_list faults; /* struct fault_config */
	struct cfg_list expect; /* struct expect_config */
	/* filled by lab_load */
	bool has_group;
	struct fault_event *timeline; /* every occurrence, in the order of time */
	size_t timeline_count;
	struct fault_config *random_faults; /* what `random` became */
	struct cfg *cfg;
	const struct workload_ops *workload_ops; /* NULL: no workload (target-only lab) */
	void *workload_config; /* decoded by workload_ops->schema, for workload_ops->open */
};

/* Loads FILE, applies SETS (count assignments), checks everything.  Every failure has been printed
 * to stderr (-EINVAL: the file's errors; else the file cannot be read).  Only a lab with hosts
 * and a workload can be run (lab_can_run). */
int lab_load(const char *file, const char *const *sets, size_t set_count, struct lab **ret_lab);
/* As lab_load for a text (tests). */
int lab_parse(const char *name, const char *text, size_t size, const char *const *sets,
	      size_t set_count, FILE *errors_to, struct lab **ret_lab);
struct lab *lab_free(struct lab *lab);
bool lab_can_run(const struct lab *lab, struct err *err);
/* Makes LAB one whose load is somebody else's: without hosts, its workload `foreign`.  -ENOMEM. */
int lab_observe(struct lab *lab);
/* The paths of one volume (or lun) of a host in the order in which everything counts them, from
 * 0: faults, reports, `preferred-path`.  A group's volume: the portals of its pool's members in the
 * order of the file, in style lun after the group portal; of those what the host's session limits
 * let it open.  A lun: its urls. */
enum { LAB_MAX_PATHS = 64 };
struct lab_path {
	char portal[64];
	const char *url; /* of a lun; NULL for a group's volume */
	int member;	 /* of the pool, counted from 0; -1: none */
};
/* Returns how many; -ENOENT: the host has no such volume; -E2BIG: more than LAB_MAX_PATHS. */
int lab_paths_of(const struct lab *lab, const struct host_config *host, const char *volume,
		 struct lab_path paths[LAB_MAX_PATHS]);
/* Could FAULT take path PATH (from lab_paths_of, number INDEX) of the host's volume away?  Faults
 * of the whole target or of controllers may take any. */
bool lab_fault_hits(const struct lab *lab, const struct fault_config *fault, const char *host,
		    const char *volume, unsigned index, const char *portal);
/* NULL: no such host. */
const struct host_config *lab_find_host(const struct lab *lab, const char *name);
/* The host's devices, volumes first, then luns: NULL beyond the end. */
const char *lab_host_volume(const struct host_config *host, size_t index);
/* Never-written parts of a group's VOLUME read as zeros: nothing is older than this run, because no
 * member that may hold a part of it has a store that lasts. */
bool lab_volume_is_fresh(const struct lab *lab, const char *volume);

/* The effective configuration as YAML. */
int lab_emit(const struct lab *lab, FILE *to);
/* Prints the reference of every key (from the schemas' help). */
void lab_print_reference(FILE *to);

#endif
