/* SPDX-License-Identifier: MIT
 *
 * A copy is made anew: created where the active's log stands, then seeded while it follows.
 */
#include "harness/workload/ese/ese_dag_impl.h"

#include <errno.h>
#include <string.h>

static void seed_failed(struct dag_copy *copy, const char *why)
{
	copy->state = DAG_FOLLOWS;
	ese_log_hold(ese_db_log(dag_db(&copy->active)), copy->holder, UINT64_MAX);
	dag_set_failed(copy, why);
	dag_settled(copy);
}

static void seed_over(struct dag_copy *copy)
{
	copy->seed_bytes = ese_seed_bytes(copy->seed);
	copy->seeded_ns = loop_now_ns(copy->dag->setup.loop) - copy->begin_ns;
	copy->state = DAG_FOLLOWS;
	if (copy->status < 0) {
		dag_set_failed(copy, copy->status == -ECANCELED ? "the seed was not finished"
								: strerror(-copy->status));
	} else if (ese_copy_state(copy->copy) == ESE_COPY_FAILED) {
		dag_set_failed(copy, ese_copy_why(copy->copy));
	} else {
		copy->reseeds++;
		dag_say(copy, "seeded: %llu bytes in %.3f s", (unsigned long long)copy->seed_bytes,
			(double)copy->seeded_ns / 1e9);
	}
	dag_settled(copy);
}

static void seed_ended(void *arg, int status)
{
	dag_later(arg, seed_over, status);
}

static void seed_attached(void *arg, int status)
{
	struct dag_copy *copy = arg;
	const struct ese_place *from = ese_server_place(copy->active.server, copy->active.index);
	const struct ese_place *to = ese_server_place(copy->passive.server, copy->passive.index);
	struct ese_seed_config config = {
	    .loop = copy->dag->setup.loop,
	    .source = dag_db(&copy->active),
	    .target = dag_db(&copy->passive),
	    .read = &from->copy_streams[ESE_DB_READ],
	    .write = &to->copy_streams[ESE_DB_WRITE],
	    .bytes_per_s = copy->bytes_per_s,
	    .done = seed_ended,
	    .arg = copy,
	};
	uint64_t unused;

	if (status < 0 || !copy->dag->running) {
		seed_failed(copy, status < 0 ? strerror(-status) : "the run ended");
		return;
	}
	dag_use_role(copy, &copy->passive, false);
	ese_db_follow(dag_db(&copy->passive), &unused);
	ese_db_replayed(dag_db(&copy->passive), copy->seed_lgpos);
	if (ese_seed_new(&config, &copy->seed) < 0 || dag_open_copy(copy, copy->seed_lgpos) < 0) {
		seed_failed(copy, "out of memory");
		return;
	}
	ese_seed_start(copy->seed);
}

static void seed_created(void *arg, int status)
{
	struct dag_copy *copy = arg;

	if (status < 0)
		seed_failed(copy, strerror(-status));
	else
		ese_server_attach_database(copy->passive.server, copy->passive.index, seed_attached,
					   copy);
}

static void make_target(void *arg, int status)
{
	struct dag_copy *copy = arg;
	struct ese_log *log = ese_db_log(dag_db(&copy->active));

	if (!log) {
		copy->state = DAG_FOLLOWS;
		dag_set_failed(copy, "its active database is gone");
		return;
	}
	/* What is logged from here on is replayed; what was before is in the pages. */
	copy->seed_lgpos = ese_log_tip(log);
	ese_log_hold(log, copy->holder, copy->seed_lgpos / ESE_SEGMENT_BYTES * ESE_SEGMENT_BYTES);
	ese_db_become_copy(dag_db(&copy->passive), dag_db(&copy->active));
	ese_db_create_at(dag_db(&copy->passive), copy->seed_lgpos, seed_created, copy);
}

static void drop_target(struct dag_copy *copy)
{
	copy->copy = ese_copy_free(copy->copy);
	copy->seed = ese_seed_free(copy->seed);
	if (ese_db_is_open(dag_db(&copy->passive)))
		ese_server_drop_database(copy->passive.server, copy->passive.index, make_target,
					 copy);
	else
		make_target(copy, 0);
}

static void old_stopped(void *arg, int status)
{
	dag_later(arg, drop_target, status);
}

int ese_dag_reseed(struct ese_dag *dag, const char *database, const char *to, uint64_t bytes_per_s,
		   struct err *err)
{
	struct dag_copy *copy = dag_find(dag, database, to, err);

	if (!copy)
		return -ENOENT;
	if ((copy->state != DAG_FOLLOWS && copy->state != DAG_FAILED) || !dag->running)
		return err_set(err, -EBUSY, "the copy of %s on %s is busy: %s", database,
			       dag_volume(&copy->passive), dag_state_names[copy->state]);
	copy->state = DAG_SEEDING;
	copy->bytes_per_s = bytes_per_s;
	copy->why[0] = '\0';
	copy->begin_ns = loop_now_ns(dag->setup.loop);
	if (copy->copy)
		ese_copy_stop(copy->copy, old_stopped, copy);
	else
		drop_target(copy);
	return 0;
}
