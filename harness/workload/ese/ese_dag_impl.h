/* SPDX-License-Identifier: MIT
 *
 * Inside of the copies of the databases: ese_dag.c (who follows whom, life), ese_dag_move.c
 * (activation), ese_dag_seed.c.  A copy is a pair of ends, one active, one passive; a switchover
 * turns it round.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_DAG_IMPL_H
#define SANLAB_HARNESS_WORKLOAD_ESE_DAG_IMPL_H

#include "base/bytes.h"
#include "harness/workload/ese/ese_copy.h"
#include "harness/workload/ese/ese_dag.h"
#include "harness/workload/ese/ese_seed.h"

enum { COPIES_MAX = 256 };

struct dag_end {
	struct ese_server *server;
	unsigned index;
};

enum dag_state {
	DAG_IDLE,    /* not started, or stopped */
	DAG_FOLLOWS, /* replays what is shipped */
	DAG_FAILED,  /* needs a seed */
	DAG_SEEDING,
	DAG_MOVING, /* on its way to be active */
};
extern const char *const dag_state_names[];

struct dag_copy {
	struct ese_dag *dag;
	struct dag_end active, passive;
	unsigned holder;
	enum dag_state state;
	struct ese_copy *copy;
	struct ese_seed *seed;
	struct loop_task task; /* what a callback of the copy or the seed asks for */
	void (*next)(struct dag_copy *copy);
	int status; /* of what has ended */
	char why[160];
	/* The activation or the seed under way. */
	bool failover;
	unsigned lost_files_max;
	uint64_t flushed_lgpos; /* failover: what the active one had on its device */
	uint64_t bytes_per_s, seed_lgpos, begin_ns;
	/* What became of them. */
	unsigned activations, refused, reseeds;
	uint64_t lost_bytes, lost_files, seed_bytes;
	uint64_t moved_ns, seeded_ns; /* how long the last one took */
};

struct ese_dag {
	struct ese_dag_setup setup;
	struct dag_copy *copies;
	unsigned count;
	bool running;
	/* stop */
	unsigned stop_at; /* the copy whose turn it is */
	workload_fn done;
	void *arg;
};

static inline struct ese_db *dag_db(const struct dag_end *end)
{
	return ese_server_database(end->server, end->index);
}

static inline const char *dag_volume(const struct dag_end *end)
{
	return ese_server_place(end->server, end->index)->database->volume;
}

/* ese_dag.c */
void dag_say(const struct dag_copy *copy, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A step that must not run within the callback that asks for it. */
void dag_later(struct dag_copy *copy, void (*next)(struct dag_copy *copy), int status);
void dag_set_failed(struct dag_copy *copy, const char *why);
int dag_open_copy(struct dag_copy *copy, uint64_t replayed_lgpos);
void dag_follow(struct dag_copy *copy);
void dag_tap(struct dag_copy *copy);
/* Streams and checkpoint depth of the role. */
void dag_use_role(const struct dag_copy *copy, const struct dag_end *end, bool active);
/* An activation or a seed is over: the end may have come meanwhile. */
void dag_settled(struct dag_copy *copy);
/* NULL and ERR: there is none. */
struct dag_copy *dag_find(struct ese_dag *dag, const char *database, const char *to,
			  struct err *err);

#endif
