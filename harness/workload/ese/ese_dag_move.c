/* SPDX-License-Identifier: MIT
 *
 * Activation: a copy becomes the active database, in order or because that one is gone.
 */
#include "harness/workload/ese/ese_dag_impl.h"

#include <errno.h>
#include <string.h>

static void moved(struct dag_copy *copy)
{
	copy->moved_ns = loop_now_ns(copy->dag->setup.loop) - copy->begin_ns;
	dag_settled(copy);
}

static void turn_round(struct dag_copy *copy)
{
	struct dag_end end = copy->active;

	copy->active = copy->passive;
	copy->passive = end;
	dag_tap(copy);
}

/* Other copies of the database follow the new active one. */
static void move_others(const struct dag_copy *moved_copy, const struct dag_end *was)
{
	struct ese_dag *dag = moved_copy->dag;

	for (unsigned i = 0; i < dag->count; i++) {
		struct dag_copy *copy = &dag->copies[i];

		if (copy == moved_copy || copy->active.server != was->server ||
		    copy->active.index != was->index)
			continue;
		copy->active = moved_copy->active;
		if (copy->state == DAG_FOLLOWS)
			dag_set_failed(copy, "its active database has moved");
	}
}

static void lead(struct dag_copy *copy)
{
	struct ese_db *db = dag_db(&copy->passive);
	const struct dag_end was = copy->active;

	copy->copy = ese_copy_free(copy->copy);
	copy->seed = ese_seed_free(copy->seed);
	ese_db_lead(db, ese_db_dbtime(db));
	dag_use_role(copy, &copy->passive, true);
	ese_server_set_active(copy->passive.server, copy->passive.index, true);
	copy->activations++;
	turn_round(copy);
	move_others(copy, &was);
	if (copy->failover) {
		dag_set_failed(copy, "it was active when it failed");
	} else {
		copy->state = DAG_IDLE;
		dag_follow(copy);
	}
	moved(copy);
	dag_say(copy, "%s took %.3f s; %llu log files (%llu bytes) lost",
		copy->failover ? "failover" : "switchover", (double)copy->moved_ns / 1e9,
		(unsigned long long)copy->lost_files, (unsigned long long)copy->lost_bytes);
}

static void end_stopped(void *arg, int status)
{
	dag_later(arg, lead, status);
}

static void refuse(struct dag_copy *copy)
{
	copy->refused++;
	copy->state = DAG_FOLLOWS;
	dag_say(copy, "not activated: %llu log files are lost, %u may be",
		(unsigned long long)copy->lost_files, copy->lost_files_max);
	dag_set_failed(copy, "its active database is gone and it lacks too much of its log");
	moved(copy);
}

static void count_loss(struct dag_copy *copy)
{
	struct ese_copy_counters counters;

	ese_copy_counters(copy->copy, &counters);
	copy->lost_bytes = copy->flushed_lgpos > counters.shipped_lgpos
			       ? copy->flushed_lgpos - counters.shipped_lgpos
			       : 0;
	copy->lost_files = (copy->lost_bytes + ESE_LOG_FILE_BYTES - 1) / ESE_LOG_FILE_BYTES;
}

static void all_replayed(struct dag_copy *copy)
{
	if (copy->status < 0) {
		copy->state = DAG_FOLLOWS;
		dag_set_failed(copy, copy->why[0] ? copy->why : "the log could not be replayed");
		if (!copy->failover) /* it stays where it was */
			ese_server_set_active(copy->active.server, copy->active.index, true);
		moved(copy);
		return;
	}
	if (copy->failover) {
		count_loss(copy);
		if (copy->lost_files > copy->lost_files_max) {
			refuse(copy);
			return;
		}
	}
	ese_copy_stop(copy->copy, end_stopped, copy);
}

static void replay_ended(void *arg, int status)
{
	dag_later(arg, all_replayed, status);
}

static void drained(void *arg, int status)
{
	struct dag_copy *copy = arg;

	if (status < 0)
		dag_later(copy, all_replayed, status);
	else
		ese_copy_catch_up(copy->copy, replay_ended, copy);
}

static void quiet(void *arg, int status)
{
	struct dag_copy *copy = arg;

	ese_log_drain(ese_db_log(dag_db(&copy->active)), drained, copy);
}

static void active_gone(void *arg, int status)
{
	/* Replay of what is there goes on by itself. */
	(void)arg;
	(void)status;
}

static void fail_over(struct dag_copy *copy)
{
	ese_server_set_active(copy->active.server, copy->active.index, false);
	copy->flushed_lgpos = ese_log_flushed(ese_db_log(dag_db(&copy->active)));
	ese_copy_source_lost(copy->copy, replay_ended, copy);
	ese_server_drop_database(copy->active.server, copy->active.index, active_gone, copy);
}

static void switch_over(struct dag_copy *copy)
{
	ese_server_set_active(copy->active.server, copy->active.index, false);
	ese_server_quiesce(copy->active.server, copy->active.index, quiet, copy);
}

int ese_dag_activate(struct ese_dag *dag, const char *database, const char *to, bool failover,
		     unsigned lost_files_max, struct err *err)
{
	struct dag_copy *copy = dag_find(dag, database, to, err);

	if (!copy)
		return -ENOENT;
	if (copy->state != DAG_FOLLOWS || !dag->running)
		return err_set(err, -EBUSY, "the copy of %s on %s is not healthy: %s", database,
			       dag_volume(&copy->passive), dag_state_names[copy->state]);
	copy->state = DAG_MOVING;
	copy->failover = failover;
	copy->lost_files_max = lost_files_max;
	copy->lost_bytes = copy->lost_files = 0;
	copy->begin_ns = loop_now_ns(dag->setup.loop);
	if (failover)
		fail_over(copy);
	else
		switch_over(copy);
	return 0;
}
