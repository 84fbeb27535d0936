/* SPDX-License-Identifier: MIT
 *
 * Load on one database of the Exchange engine, on any loop: attached (made, if there is none),
 * everything read, then changed by some sessions; whoever looks on is told of each operation.
 */
#ifndef SANLAB_TESTS_KILLED_ESE_LOAD_H
#define SANLAB_TESTS_KILLED_ESE_LOAD_H

#include "base/rng.h"
#include "harness/workload/ese/ese_checksum.h"
#include "harness/workload/ese/ese_db.h"
#include "tests/killed/ese_oracle.h"

enum { LOAD_SESSIONS = 8 };

enum ese_load_what {
	ESE_LOAD_OPENED,   /* status */
	ESE_LOAD_FOUND,	   /* key, exists, version */
	ESE_LOAD_VERIFIED, /* status: pages that are wrong */
	ESE_LOAD_BEGIN,	   /* key, kind, lazy */
	ESE_LOAD_END,	   /* key, status, version, dbtime, at */
	ESE_LOAD_DETACHED, /* status */
};

struct ese_load_event {
	uint8_t what, kind, lazy, exists;
	int32_t status;
	uint32_t key, version;
	uint64_t dbtime, at_ns;
	/* OPENED: of the recovery, if there was one. */
	uint32_t recovered, pages_mended;
	uint64_t redone;
};

struct ese_load_config {
	struct loop *loop;
	const struct workload_device *device;
	uint64_t seed; /* of what it does; the database's own is fixed */
	unsigned keys;
	uint64_t lazy_flush_ns;
	uint64_t think_ns; /* at most, between two operations of a session */
	uint32_t cache_pages;
	uint64_t checkpoint_depth_bytes;
	unsigned log_files;
	uint64_t initial_bytes, max_bytes;
	void (*event)(void *arg, const struct ese_load_event *event);
	void *arg;
};

struct ese_load;

struct ese_load_session {
	struct ese_load *load;
	struct ese_op op;
	struct loop_timer timer;
	uint32_t key;
	bool busy;
};

enum ese_load_phase { LOAD_CLOSED, LOAD_MOVING /* opening, detaching, dropping */, LOAD_OPEN };

struct ese_load {
	struct ese_load_config config;
	struct rng rng;
	struct ese_cache *cache;
	struct ese_db *db;
	struct ese_checksum *checksum;
	bool *exists;	    /* of each key */
	uint16_t *op_count; /* since it was verified */
	struct ese_load_session sessions[LOAD_SESSIONS];
	uint32_t next_key; /* to be verified */
	unsigned busy;
	bool running, verifying;
	enum ese_load_phase phase;
};

/* NULL: it cannot be (told on stderr). */
struct ese_load *ese_load_new(const struct ese_load_config *config);
struct ese_load *ese_load_free(struct ese_load *load); /* detached or dropped */
void ese_load_open(struct ese_load *load);
void ese_load_verify(struct ese_load *load);
void ese_load_run(struct ese_load *load);
/* Sessions end, then the database is detached in order. */
void ese_load_detach(struct ese_load *load);
/* As a crash, of one that is open: sessions end as they are, nothing is written. */
void ese_load_drop(struct ese_load *load, workload_fn done, void *arg);

#endif
