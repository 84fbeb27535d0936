/* SPDX-License-Identifier: MIT
 *
 * The copies of the databases (workload.placement: copy-of): who is active, who follows, and how
 * that changes.
 *
 *  switchover  the active database takes no more transactions, its log is shipped and replayed to
 *              the end, the copy becomes active, and what was active follows it: nothing is lost
 *  failover    the active database is gone as by a crash; what was not shipped is lost.  A copy
 *              that lacks more log files than may be lost is not activated (AutoDatabaseMountDial:
 *              lossless 0, good availability 6, best 12)
 *  reseed      the copy is made anew from the active database
 *
 * Threading: the loop's thread.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_DAG_H
#define SANLAB_HARNESS_WORKLOAD_ESE_DAG_H

#include <jansson.h>

#include "harness/workload/ese/ese_server.h"

struct ese_dag;

struct ese_dag_setup {
	struct loop *loop;
	const struct ese_config *config;
	struct ese_server **servers; /* the caller's */
	unsigned server_count;
	/* What happened, as a line for the record; may be NULL. */
	void (*said)(void *arg, const char *text);
	void *arg;
};

/* *ret_dag NULL: there are no copies. */
int ese_dag_new(const struct ese_dag_setup *setup, struct ese_dag **ret_dag);
struct ese_dag *ese_dag_free(struct ese_dag *dag); /* stopped; NULL is fine; returns NULL */

/* The databases are attached (again): copies follow from where they are. */
void ese_dag_start(struct ese_dag *dag);
/* No transaction is under way any more: the copies are brought up to date and end, so that all can
 * be detached; those that cannot are dropped, and need a seed. */
void ese_dag_stop(struct ese_dag *dag, workload_fn done, void *arg);

/* DATABASE names the volume of the active one, TO (NULL: its only one) that of a copy. */
int ese_dag_activate(struct ese_dag *dag, const char *database, const char *to, bool failover,
		     unsigned lost_files_max, struct err *err);
int ese_dag_reseed(struct ese_dag *dag, const char *database, const char *to, uint64_t bytes_per_s,
		   struct err *err);
bool ese_dag_is_moving(const struct ese_dag *dag); /* an activation or a seed is under way */
json_t *ese_dag_describe(const struct ese_dag *dag);

#endif
