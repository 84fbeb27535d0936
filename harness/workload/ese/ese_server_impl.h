/* SPDX-License-Identifier: MIT
 *
 * Inside of a server: ese_server.c (life), ese_sessions.c (load), ese_bdm.c (maintenance),
 * ese_feed.c (log replication reads), ese_describe.c (what the reports want).
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_SERVER_IMPL_H
#define SANLAB_HARNESS_WORKLOAD_ESE_SERVER_IMPL_H

#include "base/bytes.h"
#include "harness/workload/ese/ese_db.h"
#include "harness/workload/ese/ese_server.h"

enum {
	ESE_BDM_RUNS = ESE_RUN_PAGES / 2, /* runs of a batch that cached pages part */
	ESE_OPEN_SLOTS = 256,		  /* open loop: transactions under way, per database */
};

struct ese_server_db;

/* Walks the database in batches of 256 KiB; what is cached is left out. */
struct ese_bdm {
	struct ese_server_db *db;
	struct loop_timer timer;
	struct ese_page_io runs[ESE_BDM_RUNS];
	uint64_t next; /* page */
	uint64_t due_ns;
	unsigned in_flight;
	bool running;
};

/* Reads closed log files, once for each other copy: a header of 4 KiB, then 256 KiB each. */
struct ese_feed {
	struct ese_server_db *db;
	struct loop_task task;
	struct io io;
	struct iovec iov;
	struct buf *buf;
	uint64_t generation; /* being read, or the next one */
	uint64_t closed;     /* the newest that is complete; 0: none */
	unsigned pass;
	uint64_t offset_bytes; /* in the file; UINT64_MAX: its header is next */
	uint64_t submitted_ns;
	bool running, busy;
};

struct ese_server_db {
	struct ese_server *server;
	struct ese_db *db;
	struct ese_place place;
	char name[64];
	uint64_t transactions;
	uint64_t cached_pages; /* when the load ended: detached, none are */
	struct ese_bdm bdm;
	struct ese_feed feed;
	bool attached;
	bool active;	   /* takes transactions */
	unsigned ops;	   /* transactions under way */
	workload_fn quiet; /* waits for the last of them */
	void *quiet_arg;
	struct ese_log_taps taps;
	/* Dropped or attached alone. */
	bool given_up; /* dropped: not attached again with the others */
	workload_fn move_done;
	void *move_arg;
	struct loop_timer move_timer;
};

/* A session of the closed loop, or a transaction's place in the open loop. */
struct ese_session {
	struct ese_server *server;
	struct ese_server_db *db;
	struct ese_op op;
	struct loop_timer timer;
	unsigned index;
	bool alive; /* a transaction is under way, or it thinks */
	struct ese_session *next;
};

struct ese_server {
	struct ese_server_setup setup;
	struct loop *loop;
	const struct ese_config *config;
	struct ese_cache *cache;
	struct buf_pool *buffers;
	struct ese_server_db *dbs;
	unsigned db_count;
	struct ese_server_counts counts;
	/* Load. */
	struct rng dice;
	struct ese_session **sessions; /* closed: by index; open: the slots */
	unsigned session_room, session_count;
	unsigned next_db;
	bool running;
	unsigned busy; /* transactions, maintenance and log reads under way */
	/* Open loop. */
	struct ese_session *free_slots;
	struct loop_timer arrival;
	uint64_t arrival_ns, waiting;
	struct exchange_day day;
	uint64_t day_start_ns; /* when the load began */
	double per_s;	       /* transactions of an active database */
	uint64_t paced_ns, paced_transactions, paced_ios;
	uint64_t roles_since_ns; /* counts.active_ns is of then */
	/* Waiting for all databases, or for what is busy. */
	unsigned steps;
	int status;
	workload_fn done;
	void *arg;
	workload_fn idle;
	void *idle_arg;
	bool was_attached;
	char why[200];
};

/* One thing less under way. */
void ese_server_unbusy(struct ese_server *server);
/* ese_server_copies.c */
struct stream *ese_server_streams(const struct ese_server_db *db); /* by its role now */
void ese_server_copies_open(struct ese_server_db *db);
void ese_server_copies_close(struct ese_server_db *db);
/* A transaction on DB has ended: maybe the last that somebody waits for. */
void ese_server_tell_quiet(struct ese_server_db *db);

int ese_sessions_open(struct ese_server *server);
void ese_sessions_close(struct ese_server *server);
void ese_sessions_start(struct ese_server *server);
void ese_sessions_stop(struct ese_server *server); /* those under way end */

void ese_bdm_open(struct ese_bdm *bdm, struct ese_server_db *db);
void ese_bdm_start(struct ese_bdm *bdm);
void ese_bdm_stop(struct ese_bdm *bdm);

void ese_feed_open(struct ese_feed *feed, struct ese_server_db *db);
void ese_feed_close(struct ese_feed *feed);
void ese_feed_start(struct ese_feed *feed);
void ese_feed_stop(struct ese_feed *feed);
void ese_feed_closed(struct ese_feed *feed, uint64_t generation);

#endif
