/* SPDX-License-Identifier: MIT
 *
 * The copies of the databases: which follow which, what is said of them, their end.
 */
#include "harness/workload/ese/ese_dag_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const dag_state_names[] = {"idle", "healthy", "failed", "seeding", "activating"};

void dag_say(const struct dag_copy *copy, const char *format, ...)
{
	const struct ese_dag_setup *setup = &copy->dag->setup;
	char text[400];
	int used = snprintf(text, sizeof text, "copy %s of %s: ", dag_volume(&copy->passive),
			    dag_volume(&copy->active));
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, sizeof text - (size_t)used, format, args);
	va_end(args);
	if (setup->said)
		setup->said(setup->arg, text);
}

/* ---- following ---- */

/* A step that must not run within the callback that asks for it. */
void dag_later(struct dag_copy *copy, void (*next)(struct dag_copy *copy), int status)
{
	copy->next = next;
	copy->status = status;
	loop_task_queue(copy->dag->setup.loop, &copy->task);
}

static void run_next(void *arg)
{
	struct dag_copy *copy = arg;

	copy->next(copy);
}

static void replayed(void *arg, uint64_t lgpos)
{
	struct dag_copy *copy = arg;

	ese_db_replayed(dag_db(&copy->passive), lgpos);
}

void dag_set_failed(struct dag_copy *copy, const char *why)
{
	snprintf(copy->why, sizeof copy->why, "%s", why);
	copy->state = DAG_FAILED;
	dag_say(copy, "failed, needs a seed: %s", why);
}

static void copy_failed(void *arg, const char *why)
{
	struct dag_copy *copy = arg;

	if (copy->state == DAG_FOLLOWS)
		dag_set_failed(copy, why);
	else
		snprintf(copy->why, sizeof copy->why, "%s", why);
}

static struct ese_copy_end end_of(const struct dag_end *end)
{
	const struct ese_place *place = ese_server_place(end->server, end->index);
	struct stream *streams =
	    ese_server_is_active(end->server, end->index) ? place->streams : place->copy_streams;

	return (struct ese_copy_end){
	    .log = ese_db_log(dag_db(end)),
	    .area = *ese_db_log_area(dag_db(end)),
	    .log_read = &streams[ESE_LOG_READ],
	};
}

int dag_open_copy(struct dag_copy *copy, uint64_t replayed_lgpos)
{
	struct ese_dag *dag = copy->dag;
	struct ese_copy_config config = {
	    .loop = dag->setup.loop,
	    .block = dag->setup.config->replication == ESE_REPLICATE_BLOCK,
	    .holder = copy->holder,
	    .source = end_of(&copy->active),
	    .target = end_of(&copy->passive),
	    .ops = copy->seed ? &ese_seed_redo_ops : &ese_db_redo_ops,
	    .ops_arg = copy->seed ? (void *)copy->seed : dag_db(&copy->passive),
	    .replayed_lgpos = replayed_lgpos,
	    .replayed = replayed,
	    .failed = copy_failed,
	    .arg = copy,
	};
	int r = ese_copy_new(&config, &copy->copy);

	if (r == 0)
		ese_copy_start(copy->copy);
	return r;
}

/* Whether the logs of both ends fit together, NULL; or why not. */
static const char *misfit(const struct dag_copy *copy)
{
	const struct ese_log *active = ese_db_log(dag_db(&copy->active));
	const struct ese_log *passive = ese_db_log(dag_db(&copy->passive));

	if (!active || !passive)
		return "it is not attached";
	if (ese_log_next_segment(passive) > ese_log_next_segment(active))
		return "its log is ahead of the active database's";
	if (ese_log_next_segment(passive) < ese_log_oldest(active))
		return "the log that it lacks is gone";
	return NULL;
}

void dag_use_role(const struct dag_copy *copy, const struct dag_end *end, bool active)
{
	const struct ese_config *config = copy->dag->setup.config;
	const struct ese_place *place = ese_server_place(end->server, end->index);
	struct stream *streams = active ? place->streams : place->copy_streams;
	struct ese_db_streams set = {
	    .db_read = &streams[ESE_DB_READ],
	    .db_write = &streams[ESE_DB_WRITE],
	    .log_write = &streams[ESE_LOG_WRITE],
	    .log_read = &streams[ESE_LOG_READ],
	};

	ese_db_set_streams(dag_db(end), &set);
	ese_db_set_checkpoint_depth(dag_db(end), active ? config->checkpoint_bytes
							: config->copy_checkpoint_bytes);
}

void dag_follow(struct dag_copy *copy)
{
	const char *why = misfit(copy);
	uint64_t from;

	if (why) {
		dag_set_failed(copy, why);
		return;
	}
	dag_use_role(copy, &copy->passive, false);
	ese_db_follow(dag_db(&copy->passive), &from);
	copy->state = DAG_FOLLOWS;
	if (dag_open_copy(copy, from) < 0)
		dag_set_failed(copy, "out of memory");
}

/* ---- the active's log ---- */

static void file_closed(void *arg, uint64_t generation)
{
	struct dag_copy *first = arg;
	struct ese_dag *dag = first->dag;

	for (unsigned i = 0; i < dag->count; i++)
		if (dag->copies[i].copy && dag->copies[i].active.server == first->active.server &&
		    dag->copies[i].active.index == first->active.index)
			ese_copy_file_closed(dag->copies[i].copy, generation);
}

static void written(void *arg, uint64_t lgpos, const void *segments, uint32_t bytes)
{
	struct dag_copy *first = arg;
	struct ese_dag *dag = first->dag;

	for (unsigned i = 0; i < dag->count; i++)
		if (dag->copies[i].copy && dag->copies[i].active.server == first->active.server &&
		    dag->copies[i].active.index == first->active.index)
			ese_copy_written(dag->copies[i].copy, lgpos, segments, bytes);
}

void dag_tap(struct dag_copy *copy)
{
	const struct ese_log_taps taps = {file_closed, written, copy};
	const struct ese_log_taps none = {0};

	ese_server_tap_log(copy->passive.server, copy->passive.index, &none);
	ese_server_tap_log(copy->active.server, copy->active.index, &taps);
}

void ese_dag_start(struct ese_dag *dag)
{
	if (!dag)
		return;
	dag->running = true;
	for (unsigned i = 0; i < dag->count; i++) {
		struct dag_copy *copy = &dag->copies[i];

		dag_tap(copy);
		if (copy->state == DAG_IDLE)
			dag_follow(copy);
	}
}

/* ---- the end ---- */

static void stop_copy(struct dag_copy *copy);

/* One after the other: who waits for a log to be drained is the only one. */
static void one_stopped(struct ese_dag *dag)
{
	workload_fn done = dag->done;

	if (++dag->stop_at < dag->count) {
		stop_copy(&dag->copies[dag->stop_at]);
		return;
	}
	dag->done = NULL;
	done(dag->arg, 0);
}

static void passive_dropped(void *arg, int status)
{
	struct dag_copy *copy = arg;

	one_stopped(copy->dag);
}

static void close_copy(struct dag_copy *copy)
{
	copy->copy = ese_copy_free(copy->copy);
	copy->seed = ese_seed_free(copy->seed);
	if (copy->state == DAG_FOLLOWS)
		copy->state = DAG_IDLE;
	/* What lacks a part of its log must not be marked as clean. */
	if (copy->state != DAG_IDLE && ese_db_is_open(dag_db(&copy->passive)))
		ese_server_drop_database(copy->passive.server, copy->passive.index, passive_dropped,
					 copy);
	else
		one_stopped(copy->dag);
}

static void copy_ended(void *arg, int status)
{
	struct dag_copy *copy = arg;

	dag_later(copy, close_copy, status);
}

static void end_copy(struct dag_copy *copy)
{
	if (copy->status < 0 && copy->state == DAG_FOLLOWS)
		dag_set_failed(copy,
			       copy->why[0] ? copy->why : "it could not be brought up to date");
	if (copy->copy)
		ese_copy_stop(copy->copy, copy_ended, copy);
	else
		close_copy(copy);
}

static void caught_up(void *arg, int status)
{
	dag_later(arg, end_copy, status);
}

static void log_flushed(void *arg, int status)
{
	struct dag_copy *copy = arg;

	if (status < 0)
		dag_later(copy, end_copy, status);
	else
		ese_copy_catch_up(copy->copy, caught_up, copy);
}

static void stop_copy(struct dag_copy *copy)
{
	struct ese_log *log = ese_db_log(dag_db(&copy->active));

	if (copy->state == DAG_MOVING || copy->state == DAG_SEEDING)
		return; /* dag_settled goes on */
	copy->status = 0;
	if (copy->copy && copy->state == DAG_FOLLOWS && log)
		ese_log_drain(log, log_flushed, copy);
	else
		end_copy(copy);
}

void ese_dag_stop(struct ese_dag *dag, workload_fn done, void *arg)
{
	if (!dag || !dag->running) {
		done(arg, 0);
		return;
	}
	assert(!dag->done);
	dag->running = false;
	dag->done = done;
	dag->arg = arg;
	dag->stop_at = 0;
	for (unsigned i = 0; i < dag->count; i++)
		if (dag->copies[i].seed && ese_seed_running(dag->copies[i].seed))
			ese_seed_stop(dag->copies[i].seed);
	stop_copy(&dag->copies[0]);
}

void dag_settled(struct dag_copy *copy)
{
	struct ese_dag *dag = copy->dag;

	if (dag->done && &dag->copies[dag->stop_at] == copy)
		stop_copy(copy);
}

struct dag_copy *dag_find(struct ese_dag *dag, const char *database, const char *to,
			  struct err *err)
{
	for (unsigned i = 0; dag && i < dag->count; i++) {
		struct dag_copy *copy = &dag->copies[i];

		if (!strcmp(dag_volume(&copy->active), database) &&
		    (!to || !strcmp(dag_volume(&copy->passive), to)))
			return copy;
	}
	err_set(err, -ENOENT, "%s is no active database with a copy%s%s", database,
		to ? " on " : "", to ? to : "");
	return NULL;
}

bool ese_dag_is_moving(const struct ese_dag *dag)
{
	for (unsigned i = 0; dag && i < dag->count; i++)
		if (dag->copies[i].state == DAG_MOVING || dag->copies[i].state == DAG_SEEDING)
			return true;
	return false;
}

/* ---- what the reports want ---- */

static json_t *integer(uint64_t value)
{
	return json_integer((json_int_t)value);
}

json_t *ese_dag_describe(const struct ese_dag *dag)
{
	json_t *json = json_array();

	for (unsigned i = 0; dag && i < dag->count; i++) {
		const struct dag_copy *copy = &dag->copies[i];
		struct ese_copy_counters counters = {0};
		json_t *one = json_object();

		if (copy->copy)
			ese_copy_counters(copy->copy, &counters);
		json_object_set_new(one, "active", json_string(dag_volume(&copy->active)));
		json_object_set_new(one, "passive", json_string(dag_volume(&copy->passive)));
		json_object_set_new(one, "state", json_string(dag_state_names[copy->state]));
		json_object_set_new(one, "why", json_string(copy->why));
		json_object_set_new(one, "copy_queue_files", integer(counters.copy_queue_files));
		json_object_set_new(one, "replay_queue_files",
				    integer(counters.replay_queue_files));
		json_object_set_new(one, "updates_replayed", integer(counters.updates_done));
		json_object_set_new(one, "activations", integer(copy->activations));
		json_object_set_new(one, "activations_refused", integer(copy->refused));
		json_object_set_new(one, "lost_log_files", integer(copy->lost_files));
		json_object_set_new(one, "lost_log_bytes", integer(copy->lost_bytes));
		json_object_set_new(one, "activation_ns", integer(copy->moved_ns));
		json_object_set_new(one, "reseeds", integer(copy->reseeds));
		json_object_set_new(one, "seed_bytes", integer(copy->seed_bytes));
		json_object_set_new(one, "seed_ns", integer(copy->seeded_ns));
		json_array_append_new(json, one);
	}
	return json;
}

/* ---- life ---- */

static bool find_active(const struct ese_dag_setup *setup, const char *volume,
			struct dag_end *ret_end)
{
	for (unsigned s = 0; s < setup->server_count; s++)
		for (unsigned i = 0; i < ese_server_database_count(setup->servers[s]); i++) {
			struct dag_end end = {setup->servers[s], i};

			if (strcmp(dag_volume(&end), volume) != 0)
				continue;
			*ret_end = end;
			return true;
		}
	return false;
}

static void add_copies(struct ese_dag *dag, struct ese_server *server)
{
	for (unsigned i = 0; i < ese_server_database_count(server); i++) {
		const struct ese_place *place = ese_server_place(server, i);
		struct dag_copy *copy = &dag->copies[dag->count];

		if (!place->copy_of || dag->count == COPIES_MAX ||
		    !find_active(&dag->setup, place->copy_of, &copy->active))
			continue;
		copy->dag = dag;
		copy->passive = (struct dag_end){server, i};
		for (unsigned k = 0; k < dag->count; k++)
			copy->holder += dag->copies[k].active.server == copy->active.server &&
					dag->copies[k].active.index == copy->active.index;
		copy->holder = MIN_OF(copy->holder, ESE_LOG_HOLDERS - 1u);
		loop_task_init(&copy->task, run_next, copy);
		dag->count++;
	}
}

int ese_dag_new(const struct ese_dag_setup *setup, struct ese_dag **ret_dag)
{
	struct ese_dag *dag = calloc(1, sizeof *dag);

	if (!dag)
		return -ENOMEM;
	dag->setup = *setup;
	dag->copies = calloc(COPIES_MAX, sizeof *dag->copies);
	if (!dag->copies) {
		free(dag);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < setup->server_count; i++)
		add_copies(dag, setup->servers[i]);
	if (dag->count == 0)
		dag = ese_dag_free(dag);
	*ret_dag = dag;
	return 0;
}

struct ese_dag *ese_dag_free(struct ese_dag *dag)
{
	if (!dag)
		return NULL;
	for (unsigned i = 0; i < dag->count; i++) {
		loop_task_cancel(dag->setup.loop, &dag->copies[i].task);
		ese_copy_free(dag->copies[i].copy);
		ese_seed_free(dag->copies[i].seed);
	}
	free(dag->copies);
	free(dag);
	return NULL;
}
