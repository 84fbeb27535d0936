/* SPDX-License-Identifier: MIT
 *
 * MPIO: one device over N paths to one logical unit.  The device is an io_layer: the workload
 * submits `struct io` with byte offsets; MPIO picks a path by policy, watches it, and when the path
 * is lost re-issues its I/O on another.
 *
 * Promises
 *  - every io ends exactly once (asserted);
 *  - with no path left, I/O waits at most no_path_ns, then ends with -ENODEV;
 *  - no order is promised between ios in flight together; once all of them have ended, the content
 *    of their ranges stays what it is until somebody writes again (see the fence);
 *  - a write that ended with an error may have been executed, but not after a write that was
 *    submitted later and ended with success.
 *
 * The fence: why a lost write never destroys a newer one.  A write (or unmap) whose path was lost
 * may still be executed at any time, until the target has ended the I_T nexus it was sent on: its
 * bytes may sit in a relay, in a black hole, in the target's own socket.  Its re-issue carries the
 * same bytes, so that one goes out at once, elsewhere, and ends the caller's io; the old one
 * executed late changes nothing then.  What would be destroyed is a write of OTHER bytes to the
 * same blocks.  So for each lost write its range is kept (also after the io has ended, with success
 * or with -ENODEV) until the old nexus is proved dead, and until then
 *  - no other write or unmap that overlaps the range is sent; a later lost write of the same blocks
 *    waits, too: the older goes first;
 *  - the re-issue itself waits for overlapping writes that are still in flight on healthy paths.
 * Reads wait for nothing (while overlapping writes are in flight together they may see either).  A
 * write that waits for longer than fence_wait_ns fails with -ETIMEDOUT.  The proofs, tried from the
 * moment of the loss:
 *  1. the path itself has logged in again, with its ISID to its target portal group: a target ends
 *     the old session and its tasks before it answers (session reinstatement, RFC 7143 6.3.5).  tgt
 *     does so but for a write its threads have begun: that one has microseconds left;
 *  2. a login with the lost path's name and ISID through another path's portal in the same target
 *     portal group has succeeded (path_ops.fence): the same reinstatement;
 *  3. neither is possible: fence_hold_ns after the loss, and only when a request waits for it,
 *     LOGICAL UNIT RESET through any other path has ended all tasks of the unit.  This one assumes
 *     that by then no byte of the old connection is still on its way: it was closed with a reset,
 *     and fence_hold_ns stands for the longest life of a segment in the network; a relay that
 *     hoards data for longer breaks it.
 * `fence: strict` takes 1 and 2 only, `reset` all three, `none` keeps no ranges, as dm-multipath
 * does: a write that comes late may destroy a newer one.  The ranges live as long as the device: at
 * most fence_limit of them; writes wait when there could be more.
 *
 * Threading: the loop's thread.
 */
#ifndef SANLAB_INITIATOR_MPIO_MPIO_H
#define SANLAB_INITIATOR_MPIO_MPIO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "base/hist.h"
#include "base/io.h"
#include "base/loop.h"
#include "base/rng.h"
#include "initiator/path/path.h"

struct mpio;

/* ---- the lab file's part ---- */
struct mpio_config {
	int policy;		       /* index into mpio_policy_names */
	struct cfg_list overrides;     /* struct mpio_override: see mpio_policy_for */
	uint64_t rr_ios, rr_bytes;     /* round-robin: what ends a turn; neither: one I/O */
	uint64_t preferred_path;       /* failover-only */
	int failback;		       /* failover-only: enum mpio_failback */
	struct cfg_list primary_paths; /* round-robin-subset: uint64_t; none: the optimized */
	struct cfg_list weights;       /* weighted-paths: uint64_t, one a path */
	struct cfg_list throughput;    /* service-time: uint64_t, one a path; none: equal */
	bool use_non_optimized;	       /* such paths count as optimized ones */
	uint64_t slice_refresh_ns;     /* slice-aware: how often the map is asked for */
	uint64_t volume_sessions;      /* EqualLogic's limits; 0: every path */
	uint64_t slice_sessions;
	const char *no_path; /* "fail", "queue" or "queue 20s": mpio_config_check makes of it */
	uint64_t no_path_ns; /* how long I/O waits for a path; 0: not at all; MPIO_FOREVER */
	uint64_t reconnect_min_ns, reconnect_max_ns; /* back-off, default 250 ms .. 4 s */
	uint64_t io_timeout_ns, keepalive_ns, tcp_user_timeout_ns, login_timeout_ns;
	uint64_t keepalive_misses;
	uint64_t max_retries; /* BUSY, unit attention and the like on one io, default 30 */
	uint64_t queue_depth; /* per path, default 128 */
	bool header_digest;   /* ask for it, default no */

	int fence;		     /* enum mpio_fence_mode */
	uint64_t fence_hold_ns;	     /* default 5 s */
	uint64_t fence_wait_ns;	     /* a write that waits for longer fails; default 60 s */
	uint64_t fence_limit;	     /* ranges kept, default 8192 */
	bool fence_unknown_group;    /* proof 2 also where no portal group is told */
	bool alua_explicit;	     /* SET TARGET PORT GROUPS when no path is optimized */
	uint64_t alua_poll_ns;	     /* REPORT TARGET PORT GROUPS at least that often; 0: never */
	uint64_t transition_ns;	     /* longest ALUA transition, unless told; default 60 s */
	uint64_t marginal_errors;    /* marks that make a path degraded; 0: none is */
	uint64_t marginal_forget_ns; /* one mark is forgotten after that long; default 20 s */
	uint64_t failback_delay_ns;  /* a path that returns carries I/O in an emergency only */
};
enum mpio_failback { MPIO_FAILBACK_AUTO, MPIO_FAILBACK_MANUAL };
/* One volume, or all units of one make (vendor and product begin with `hardware`), by another
 * policy than the host's others. */
struct mpio_override {
	const char *volume, *hardware; /* exactly one */
	int policy;
};
enum { MPIO_FENCE_RESET, MPIO_FENCE_STRICT, MPIO_FENCE_NONE };
#define MPIO_FOREVER UINT64_MAX
extern const struct cfg_schema mpio_schema;
/* After decoding: what the schema cannot check or fill in. */
void mpio_config_check(struct cfg *cfg, struct mpio_config *config);
/* "fail", "queue", "queue 20s" or "20s"; -EINVAL. */
int mpio_parse_no_path(const char *text, uint64_t *ret_ns);
extern const char *const mpio_policy_names[];
/* Cross-checks of the policies' keys, and their defaults. */
void mpio_policy_check(struct cfg *cfg, struct mpio_config *config);
/* ... and of those that name paths, for a VOLUME that has PATHS.  False: an error was added. */
bool mpio_policy_check_paths(struct cfg *cfg, const struct mpio_config *config, const char *volume,
			     unsigned paths);
/* The configuration of VOLUME's device.  Which policy it gets goes as with Microsoft's: the
 * volume's own, else its make's (known once a path is up, so MPIO heeds it), else the host's. */
void mpio_config_for(const struct mpio_config *config, const char *volume,
		     struct mpio_config *ret_config);

enum mpio_path_state {
	MPIO_PATH_DOWN,
	MPIO_PATH_CONNECTING,
	MPIO_PATH_UP,
	MPIO_PATH_PENDING, /* logged in; its target port group is in transition */
	/* Logged in; its group is in standby, unavailable or offline, maybe since before the login:
	 * then the capacity is unknown, and when the group is active another login follows. */
	MPIO_PATH_STANDBY,
	MPIO_PATH_DEGRADED, /* usable, but it fails too often: for when no better one is left */
	MPIO_PATH_WRONG_LU, /* logged in, but to another logical unit: never used */
	MPIO_PATH_REMOVED,  /* its logical unit is not there any more; looked at again seldom */
};
extern const char *const mpio_path_state_names[];
/* I/O may be sent. */
static inline bool mpio_path_usable(enum mpio_path_state state)
{
	return state == MPIO_PATH_UP || state == MPIO_PATH_DEGRADED;
}
/* Logged in to the right unit. */
static inline bool mpio_path_logged_in(enum mpio_path_state state)
{
	return mpio_path_usable(state) || state == MPIO_PATH_PENDING || state == MPIO_PATH_STANDBY;
}

/* Asymmetric access states as REPORT TARGET PORT GROUPS has them. */
enum mpio_access {
	MPIO_OPTIMIZED = 0x0,
	MPIO_NON_OPTIMIZED = 0x1,
	MPIO_STANDBY = 0x2,
	MPIO_UNAVAILABLE = 0x3,
	MPIO_LBA_DEPENDENT = 0x4,
	MPIO_OFFLINE = 0xe,
	MPIO_TRANSITIONING = 0xf,
	MPIO_ACCESS_NONE = 0xff, /* the unit has no asymmetric access */
};
const char *mpio_access_name(enum mpio_access access);

/* The per-path ledger. */
struct mpio_ledger {
	uint64_t ios, reads, writes, read_bytes, write_bytes; /* completed with success */
	uint64_t errors;				      /* sense or status that ended an io */
	uint64_t retries;  /* same-path or other-path retries after BUSY, UA, ... */
	uint64_t reissued; /* I/Os taken away from this path when it was lost */
	uint64_t losses, logins;
	uint64_t slow_warnings;
	struct hist latency; /* service time: sent on this path to answered */
};

struct mpio_path_info {
	const char *portal;
	enum mpio_path_state state;
	const struct mpio_ledger *ledger;
	unsigned in_flight;
	unsigned depth_limit;		      /* shrinks with TASK SET FULL and BUSY, grows again */
	enum mpio_access access;	      /* of its target port group, as last told */
	uint8_t rank;			      /* lower is better, see mpio_path_view */
	const struct path_identity *identity; /* NULL while not logged in */
};

/* A change of a path's state; with FROM equal to TO something the target told that a person should
 * know (reservations preempted, a threshold reached): WHY says what. */
struct mpio_event {
	uint64_t at_ns;
	unsigned path;
	enum mpio_path_state from, to;
	unsigned reissued;   /* I/Os that went back to the queue with it */
	enum path_detect by; /* what found a loss */
	uint64_t alive_ns;   /* of a loss: the last sign of life */
	enum mpio_access access;
	const char *why;
};

/* Where a failover stands: the tracker of the failover record is called for each once a loss, in
 * this order but for FENCED, UP and FIRST_IO, which come when they come. */
enum mpio_milestone {
	MPIO_LOST,	    /* its I/O is back in the queue */
	MPIO_FIRST_REISSUE, /* the first of it goes out again, on OTHER */
	MPIO_FIRST_SUCCESS, /* the first of it has succeeded, on OTHER */
	MPIO_DRAINED,	    /* the last of it has ended, or was lost again with another path */
	MPIO_FENCED,	    /* the old nexus is dead: PROOF */
	MPIO_UP_AGAIN,
	MPIO_FIRST_IO, /* the first success on the path since */
	MPIO_MILESTONES,
};
enum mpio_proof { MPIO_PROOF_LOGIN, MPIO_PROOF_OTHER_LOGIN, MPIO_PROOF_RESET };
extern const char *const mpio_milestone_names[];
extern const char *const mpio_proof_names[];
struct mpio_track {
	enum mpio_milestone milestone;
	uint64_t at_ns;
	unsigned path;	     /* the one that was lost */
	unsigned loss;	     /* losses of this path, counted from 1: tells one from the next */
	unsigned other;	     /* FIRST_*: where; FENCED by OTHER_LOGIN or RESET: through which */
	unsigned ios;	     /* LOST: taken back; DRAINED: failed; FENCED: ranges freed */
	enum path_detect by; /* LOST */
	uint64_t alive_ns;   /* LOST: the last sign of life */
	enum mpio_proof proof;
};

/* ---- policies: one file each, pure ---- */

/* What is on its way over one portal from all devices of a host (host_load.h). */
struct mpio_load {
	unsigned in_flight;
	uint64_t in_flight_bytes;
};

/* How good a path's access to the unit is; lower is better.  The lowest bit says degraded. */
enum mpio_rank {
	MPIO_RANK_OPTIMIZED = 0,
	MPIO_RANK_LBA_DEPENDENT = 2,
	MPIO_RANK_NON_OPTIMIZED = 4,
	MPIO_RANK_DEGRADED = 1,	   /* added to the above */
	MPIO_RANK_NOT_PRIMARY = 8, /* added while the path is outside a configured primary set */
	MPIO_RANK_RETURNING = 16,  /* added for failback_delay_ns after a path has come back */
};

struct mpio_path_view {
	bool usable;  /* able, and of the lowest rank among the able ones (or policy->all_ranks) */
	bool full;    /* at its queue depth: usable again when an I/O is answered */
	bool able;    /* up: I/O may be sent */
	uint8_t rank; /* enum mpio_rank, summed */
	uint16_t member;     /* target port group: the member whose port it is; 0: not told */
	uint16_t throughput; /* relative, of the configuration */
	uint32_t weight;     /* of the configuration */
	unsigned in_flight;  /* of this device */
	uint64_t in_flight_bytes;
	const struct mpio_load *load; /* of the whole host; never NULL */
};

/* One request that needs a path. */
struct mpio_ask {
	uint64_t offset_bytes, length_bytes;
	uint64_t now_ns;
};
struct slice_map;

struct mpio_policy {
	const char *name;
	const char *help;
	size_t state_bytes; /* zeroed at start */
	bool all_ranks;	    /* shown every able path as usable; heeds `rank` itself */
	bool primary_set;   /* heeds primary-paths */
	bool needs_slices;  /* the slice map is to be fetched */
	void (*init)(void *state, const struct mpio_config *config, const struct slice_map *slices);
	/* The path for the request; -1 when none is usable, or none that is not full. */
	int (*select)(void *state, const struct mpio_path_view *paths, unsigned count,
		      const struct mpio_ask *ask);
	/* PATH has answered with success what was sent at SENT_NS.  May be NULL. */
	void (*answered)(void *state, const struct mpio_path_view *paths, unsigned count,
			 unsigned path, uint64_t sent_ns, uint64_t now_ns);
};
const struct mpio_policy *mpio_policy_find(const char *name);

/* ---- the device ---- */
int mpio_new(struct loop *loop, const struct mpio_config *config, const char *name, uint64_t seed,
	     struct mpio **ret_mpio);
/* Adds a path before mpio_start; takes ownership.  The path's config.event/arg are set here.
 * Paths are made with MPIO's timeouts: use mpio_path_config for them. */
void mpio_path_config(const struct mpio_config *config, struct path_config *out);
int mpio_add_path(struct mpio *mpio, struct path *path);
void mpio_on_event(struct mpio *mpio, void (*fn)(void *arg, const struct mpio_event *event),
		   void *arg);
void mpio_on_track(struct mpio *mpio, void (*fn)(void *arg, const struct mpio_track *track),
		   void *arg);

/* Counts what is on its way over each portal together with the other devices that share LOADS:
 * those of one host.  Before the first path; LOADS outlives the device. */
struct host_load;
void mpio_share_loads(struct mpio *mpio, struct host_load *loads);
/* Lets the paths know of lost links.  Before the first path; LINKS outlives the device. */
void mpio_watch_links(struct mpio *mpio, struct link_watch *links);

/* Connects every path; READY is called once, when every path is up, or when SETTLE_NS have passed
 * with at least one up (status 0), or without any (-ENODEV, ERR of the last failure). */
void mpio_start(struct mpio *mpio, uint64_t settle_ns,
		void (*ready)(void *arg, int status, const char *why), void *arg);
/* Ends waiting I/O with -ENODEV, logs out, frees.  Call with no I/O in flight, else it ends it. */
struct mpio *mpio_free(struct mpio *mpio);

struct io_layer *mpio_layer(struct mpio *mpio); /* size valid once ready */
const char *mpio_name(const struct mpio *mpio);
unsigned mpio_path_count(const struct mpio *mpio);
void mpio_path_info(const struct mpio *mpio, unsigned path, struct mpio_path_info *ret_info);
uint32_t mpio_block_bytes(const struct mpio *mpio);
uint64_t mpio_waiting(const struct mpio *mpio); /* I/Os queued without a path */
unsigned mpio_fences(const struct mpio *mpio);	/* ranges of lost writes kept */
/* Zeroes the ledgers: called when the measured window begins. */
void mpio_ledger_reset(struct mpio *mpio);

#endif
