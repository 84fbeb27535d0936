/* SPDX-License-Identifier: MIT
 *
 * A mailbox server of the Exchange engine: one host of the lab with its databases, the page cache
 * they share, the sessions that load them, maintenance, and the reads that log replication asks
 * for.
 *
 * Life: new -> attach (creates what is not there) -> start -> set_sessions any time -> stop
 * (sessions end their transactions) -> detach (dirty pages written, databases clean) -> free.
 * A callback may come from within the call.  Threading: the loop's thread.  Time and chance from
 * the loop and the seed only.
 *
 * Sessions (closed loop) go round robin over the databases, each: transaction, think, next.  An
 * open loop has arrivals instead, at the rate of the target.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_SERVER_H
#define SANLAB_HARNESS_WORKLOAD_ESE_SERVER_H

#include <jansson.h>

#include "harness/workload/ese/ese_config.h"
#include "harness/workload/workload.h"

struct ese_db;
struct ese_server;

/* The streams of a database, in this order in the workload's array. */
enum ese_stream {
	ESE_DB_READ,
	ESE_DB_WRITE,
	ESE_LOG_WRITE,
	ESE_BDM_READ,
	ESE_LOG_READ,
	ESE_STREAMS,
};
extern const char *const ese_stream_names[ESE_STREAMS];
extern const char *const ese_copy_stream_names[ESE_STREAMS];

/* Where a database is and what accounts its I/O. */
struct ese_place {
	const struct workload_device *database, *log; /* may be the same */
	const char *copy_of; /* the volume of the active database it is a copy of; NULL: active */
	bool copied;	     /* active, and there are copies (ese_dag.h) that get its log */
	uint64_t log_base_bytes;     /* of the log area on its volume */
	struct stream *streams;	     /* ESE_STREAMS of them */
	struct stream *copy_streams; /* ... while it is a passive copy; NULL: never is */
};

struct ese_server_setup {
	const struct workload_env *env;
	const struct ese_config *config;
	struct workload_check *check; /* counted into */
	const char *host;
	unsigned number;  /* among the servers of the run, from 1 */
	uint64_t wall_ns; /* when the run began: new databases and their copies know by it */
	const struct ese_place *places;
	unsigned database_count;
	double iops_per_database; /* the target: of each active one */
};

/* Since the server was made. */
struct ese_server_counts {
	uint64_t transactions; /* ended */
	uint64_t failed;       /* ended with an error */
	uint64_t stalls;       /* a transaction waited for a free page of the cache */
	uint64_t log_stalls;   /* ... because the log ring was full */
	uint64_t late;	       /* open loop: arrivals that waited for a free transaction */
	uint64_t active_ns;    /* for how long databases were active, all together, ... */
	uint64_t at_ns;	       /* ... by now */
};

int ese_server_new(const struct ese_server_setup *setup, struct ese_server **ret_server,
		   struct err *err);
struct ese_server *ese_server_free(struct ese_server *server); /* NULL is fine; returns NULL */

/* Databases are created or attached, and recovered where they were not detached. */
void ese_server_attach(struct ese_server *server, workload_fn done, void *arg);
void ese_server_start(struct ese_server *server);
/* No new transaction; called back when no I/O is in flight any more. */
void ese_server_stop(struct ese_server *server, workload_fn done, void *arg);
/* After stop: writes what is dirty and detaches. */
void ese_server_detach(struct ese_server *server, workload_fn done, void *arg);
/* After stop, in place of detach: forgets what is in memory, as a crash does.  Then attach. */
void ese_server_drop(struct ese_server *server, workload_fn done, void *arg);
double ese_server_progress(const struct ese_server *server); /* 0..1 of attach */

/* Closed loop: how many sessions there are from now on; more begin at once, those too many end
 * after their transaction. */
void ese_server_set_sessions(struct ese_server *server, unsigned count);
unsigned ese_server_sessions(const struct ese_server *server);

const char *ese_server_host(const struct ese_server *server);
/* The mean share of the full rate between two instants of the loop, by the course of the day; 1
 * without one. */
double ese_server_day_share(const struct ese_server *server, uint64_t from_ns, uint64_t to_ns);
double ese_server_target_iops(const struct ese_server *server);
/* The same on average from BEGUN to ENDED: databases may have come and gone meanwhile. */
double ese_server_mean_target_iops(const struct ese_server *server,
				   const struct ese_server_counts *begun,
				   const struct ese_server_counts *ended);
unsigned ese_server_database_count(const struct ese_server *server);
struct ese_db *ese_server_database(struct ese_server *server, unsigned index);
const struct ese_place *ese_server_place(const struct ese_server *server, unsigned index);
/* Transactions of one database that have ended. */
uint64_t ese_server_transactions(const struct ese_server *server, unsigned index);

/* A passive copy is attached, but gets no transactions; the target goes with the active ones. */
bool ese_server_is_active(const struct ese_server *server, unsigned index);
unsigned ese_server_active_count(const struct ese_server *server);
void ese_server_set_active(struct ese_server *server, unsigned index, bool active);
/* DONE when no transaction is under way on a database that is not active any more. */
void ese_server_quiesce(struct ese_server *server, unsigned index, workload_fn done, void *arg);
/* One database goes as by a crash, or comes (again), while the others are at work. */
void ese_server_drop_database(struct ese_server *server, unsigned index, workload_fn done,
			      void *arg);
void ese_server_attach_database(struct ese_server *server, unsigned index, workload_fn done,
				void *arg);
bool ese_server_gave_up(const struct ese_server *server, unsigned index); /* dropped, not back */
/* The log of an active database gets on: for its copies.  From ese_log's callbacks. */
struct ese_log_taps {
	void (*file_closed)(void *arg, uint64_t generation);
	void (*written)(void *arg, uint64_t lgpos, const void *segments, uint32_t bytes);
	void *arg;
};
void ese_server_tap_log(struct ese_server *server, unsigned index, const struct ese_log_taps *taps);

/* "Database Cache Size" and its bounds, all databases together. */
uint64_t ese_server_cache_used_bytes(const struct ese_server *server);
uint64_t ese_server_dirty_pages(const struct ese_server *server); /* to be written at a detach */
uint64_t ese_server_cache_min_bytes(const struct ese_server *server);
uint64_t ese_server_cache_max_bytes(const struct ese_server *server);
void ese_server_counts(const struct ese_server *server, struct ese_server_counts *ret_counts);

/* Adds what the reports need: host, sessions, cache, mix, databases (record->exchange). */
json_t *ese_server_describe(const struct ese_server *server);

#endif
