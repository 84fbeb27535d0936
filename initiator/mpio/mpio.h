/* SPDX-License-Identifier: MIT
 *
 * MPIO: one device over N paths to one logical unit.  The device is an io_layer: the workload
 * submits `struct io` with byte offsets; MPIO picks a path by policy, watches it, and when the path
 * is lost re-issues its I/O on another.
 *
 * Promises
 *  - every io ends exactly once (asserted);
 *  - an io is re-issued only after the path it was on has been torn down (its socket is closed);
 *    a write whose path died may have been executed: while its outcome is unknown no other io of
 *    this device to an overlapping range is sent, so re-issue cannot overtake a newer write;
 *  - with no path left, I/O waits at most no_path_ns, then ends with -ENODEV;
 *  - no order is promised between ios in flight together.
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
	int policy;		 /* index into mpio_policy_names */
	uint64_t rr_ios;	 /* round-robin: I/Os before the next path, default 1 */
	uint64_t preferred_path; /* failover-only */
	uint64_t no_path_ns;	 /* how long I/O waits for a path, default 20 s (PDORemovePeriod) */
	uint64_t reconnect_min_ns, reconnect_max_ns; /* back-off, default 250 ms .. 4 s */
	uint64_t io_timeout_ns, keepalive_ns, tcp_user_timeout_ns, login_timeout_ns;
	uint64_t max_retries; /* BUSY, unit attention and the like on one io, default 30 */
	uint64_t queue_depth; /* per path, default 128 */
};
extern const struct cfg_schema mpio_schema;
extern const char *const mpio_policy_names[];

enum mpio_path_state {
	MPIO_PATH_DOWN,
	MPIO_PATH_CONNECTING,
	MPIO_PATH_UP,
	MPIO_PATH_WRONG_LU, /* logged in, but to another logical unit: never used */
};
extern const char *const mpio_path_state_names[];

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
	const struct path_identity *identity; /* NULL while not up */
};

struct mpio_event {
	uint64_t at_ns;
	unsigned path;
	enum mpio_path_state from, to;
	unsigned reissued; /* I/Os that went back to the queue with it */
	const char *why;
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
	bool needs_slices;  /* the slice map is to be fetched */
	void (*init)(void *state, const struct mpio_config *config, const struct slice_map *slices);
	/* The path for the request; -1 when none is usable, or none that is not full. */
	int (*select)(void *state, const struct mpio_path_view *paths, unsigned count,
		      const struct mpio_ask *ask);
	/* What PATH has answered with success after SERVICE_NS, counted before the views are: the
	 * request is still in them.  May be NULL. */
	void (*answered)(void *state, const struct mpio_path_view *paths, unsigned path,
			 uint64_t sent_ns, uint64_t now_ns);
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

/* Counts what is on its way over each portal together with the other devices that share LOADS:
 * those of one host.  Before the first path; LOADS outlives the device. */
struct host_load;
void mpio_share_loads(struct mpio *mpio, struct host_load *loads);

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
/* Zeroes the ledgers: called when the measured window begins. */
void mpio_ledger_reset(struct mpio *mpio);

#endif
