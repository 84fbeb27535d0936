/* SPDX-License-Identifier: MIT
 *
 * The Exchange engine behind workload_ops: the lab's hosts become servers, their volumes databases
 * and logs; the test (ese_test.h) says what is done with them.
 *
 * stop leaves the databases detached: everything dirty is written and nothing is in flight.
 * verify attaches them once more and reads every page.
 */
#include "harness/workload/ese/ese_workload.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_dag.h"
#include "harness/workload/ese/ese_test.h"
#include "harness/workload/exchange_profile.h"

#define PROGRESS_NS (NS_PER_S / 4)

static unsigned databases_of(const struct ese_workload *ese, unsigned first)
{
	unsigned end = first;

	while (end < ese->database_count &&
	       !strcmp(ese->places[end].database->host, ese->places[first].database->host))
		end++;
	return end - first;
}

static unsigned active_databases(const struct ese_workload *ese)
{
	unsigned count = 0;

	for (unsigned i = 0; i < ese->database_count; i++)
		count += !ese->places[i].copy_of;
	return MAX_OF(count, 1);
}

static int make_servers(struct ese_workload *ese, struct err *err)
{
	uint64_t wall_ns = loop_wall_ns(ese->env.loop);
	int r = 0;

	for (unsigned first = 0; r == 0 && first < ese->database_count;) {
		unsigned count = databases_of(ese, first);
		struct ese_server_setup setup = {
		    .env = &ese->env,
		    .config = &ese->config,
		    .check = &ese->base.check,
		    .host = ese->places[first].database->host,
		    .wall_ns = wall_ns,
		    .number = ese->server_count + 1,
		    .places = &ese->places[first],
		    .database_count = count,
		    .iops_per_database =
			ese_config_target_iops(&ese->config) / active_databases(ese),
		};

		r = ese_server_new(&setup, &ese->servers[ese->server_count], err);
		if (r == 0)
			ese->server_count++;
		first += count;
	}
	return r;
}

static void plan(struct ese_workload *ese)
{
	const struct ese_config *config = &ese->config;
	struct exchange_day day;
	char messages[60];

	exchange_day_init(&day, &config->day);
	exchange_messages_note(config->profile, config->messages, messages, sizeof messages);
	/* What is beside the transactional I/O follows from it and is not planned; tests that end
	 * themselves have no target. */
	if (!ese->base.ends_itself)
		ese->base.plan.transactional_iops =
		    ese_config_target_iops(config) * exchange_day_mean(&day, 0, day.length_ns);
	ese->base.plan.total_iops = ese->base.plan.transactional_iops;
	snprintf(ese->summary, sizeof ese->summary,
		 "%s: %u %s on %u %s, %llu mailboxes x %.3f IOPS%s, engine ese",
		 exchange_profile_of(config->profile)->name, ese->database_count,
		 ese->database_count == 1 ? "database" : "databases", ese->server_count,
		 ese->server_count == 1 ? "server" : "servers",
		 (unsigned long long)config->mailboxes, config->iops_per_mailbox, messages);
	ese->base.plan.summary = ese->summary;
}

/* 1 when nothing is dirty any more. */
static double written_back(const struct ese_workload *ese)
{
	uint64_t dirty = 0;

	for (unsigned i = 0; i < ese->server_count; i++)
		dirty += ese_server_dirty_pages(ese->servers[i]);
	return 1 / (1 + (double)dirty);
}

static double attached_part(const struct ese_workload *ese)
{
	double sum = 0;

	for (unsigned i = 0; i < ese->server_count; i++)
		sum += ese_server_progress(ese->servers[i]);
	return sum / ese->server_count;
}

static void report_progress(void *arg)
{
	struct ese_workload *ese = arg;

	ese->base.progress = ese->phase == ESE_ATTACHING ? attached_part(ese) : written_back(ese);
	loop_timer_set(ese->env.loop, &ese->progress_timer,
		       loop_now_ns(ese->env.loop) + PROGRESS_NS);
}

static void free_ese(struct workload *workload)
{
	struct ese_workload *ese = container_of(workload, struct ese_workload, base);

	loop_timer_cancel(ese->env.loop, &ese->progress_timer);
	ese_dag_free(ese->dag);
	ese_test_free(ese->test);
	for (unsigned i = 0; i < ese->server_count; i++)
		ese_server_free(ese->servers[i]);
	free(ese->servers);
	free(ese->places);
	free(ese->base.streams);
	free(ese);
}

static void copy_said(void *arg, const char *text)
{
	struct ese_workload *ese = arg;

	ese_test_note(ese->test, text);
}

static int open_copies(struct ese_workload *ese)
{
	const struct ese_dag_setup setup = {
	    .loop = ese->env.loop,
	    .config = &ese->config,
	    .servers = ese->servers,
	    .server_count = ese->server_count,
	    .said = copy_said,
	    .arg = ese,
	};

	return ese_dag_new(&setup, &ese->dag);
}

static int open_parts(struct ese_workload *ese, struct err *err)
{
	struct ese_test_setup setup = {
	    .env = &ese->env,
	    .config = &ese->config,
	    .workload = &ese->base,
	};
	int r = ese_check_devices(ese, err);

	if (r == 0)
		r = ese_make_places(ese, err);
	if (r == 0)
		r = make_servers(ese, err);
	setup.servers = ese->servers;
	setup.server_count = ese->server_count;
	if (r == 0)
		r = ese_test_new(&setup, &ese->test, err);
	if (r == 0)
		r = open_copies(ese);
	return r;
}

static int open_ese(const struct workload_env *env, const void *config,
		    struct workload **ret_workload, struct err *err)
{
	struct ese_workload *ese = calloc(1, sizeof *ese);
	int r;

	if (!ese)
		return err_set(err, -ENOMEM, "no memory for the workload");
	ese->base.ops = &ese_workload_ops;
	ese->env = *env;
	ese->config = *(const struct ese_config *)config;
	loop_timer_init(&ese->progress_timer, report_progress, ese);
	r = open_parts(ese, err);
	if (r < 0) {
		free_ese(&ese->base);
		return r;
	}
	plan(ese);
	*ret_workload = &ese->base;
	return 0;
}

/* ---- the phases ---- */

static void each_ended(void *arg, int status)
{
	struct ese_workload *ese = arg;
	workload_fn done = ese->done;

	if (status < 0 && ese->status == 0)
		ese->status = status;
	if (--ese->waiting)
		return;
	loop_timer_cancel(ese->env.loop, &ese->progress_timer);
	ese->done = NULL;
	done(ese->arg, ese->status);
}

/* FN with every server, then DONE. */
static void with_servers(struct ese_workload *ese,
			 void (*fn)(struct ese_server *server, workload_fn done, void *arg),
			 workload_fn done, void *arg)
{
	assert(!ese->done);
	ese->done = done;
	ese->arg = arg;
	ese->status = 0;
	ese->waiting = ese->server_count + 1;
	for (unsigned i = 0; i < ese->server_count; i++)
		fn(ese->servers[i], each_ended, ese);
	each_ended(ese, 0);
}

static void stop_now(struct ese_workload *ese);

static void prepared(void *arg, int status)
{
	struct ese_workload *ese = arg;
	workload_fn done = ese->phase_done;

	ese->phase = ESE_SETTLED;
	if (ese->stop_done) {
		stop_now(ese);
		return;
	}
	ese->phase_done = NULL;
	if (status == 0)
		ese_dag_start(ese->dag);
	done(ese->phase_arg, status);
}

static void prepare_ese(struct workload *workload, workload_fn done, void *arg)
{
	struct ese_workload *ese = container_of(workload, struct ese_workload, base);

	ese->phase_done = done;
	ese->phase_arg = arg;
	ese->phase = ESE_ATTACHING;
	ese_test_prepare(ese->test);
	report_progress(ese);
	with_servers(ese, ese_server_attach, prepared, ese);
}

static void start_ese(struct workload *workload)
{
	ese_test_start(container_of(workload, struct ese_workload, base)->test);
}

static void warm_up_ese(struct workload *workload, workload_fn done, void *arg)
{
	ese_test_warm_up(container_of(workload, struct ese_workload, base)->test, done, arg);
}

static void window_ese(struct workload *workload, bool begins)
{
	ese_test_window(container_of(workload, struct ese_workload, base)->test, begins);
}

static json_t *describe_ese(struct workload *workload)
{
	struct ese_workload *ese = container_of(workload, struct ese_workload, base);
	json_t *json = ese_test_describe(ese->test);

	if (json && ese->dag)
		json_object_set_new(json, "copies", ese_dag_describe(ese->dag));
	return json;
}

static int fault_ese(struct workload *workload, const struct workload_fault *fault, struct err *err)
{
	struct ese_dag *dag = container_of(workload, struct ese_workload, base)->dag;

	if (fault->kind == WORKLOAD_COPY_RESEED)
		return ese_dag_reseed(dag, fault->volume, fault->to, fault->bytes_per_s, err);
	return ese_dag_activate(dag, fault->volume, fault->to, fault->failover,
				fault->lost_files_max, err);
}

static void detached(void *arg, int status)
{
	struct ese_workload *ese = arg;
	workload_fn done = ese->stop_done;

	ese->phase = ESE_SETTLED;
	if (done) {
		ese->stop_done = NULL;
		done(ese->stop_arg, 0);
		return;
	}
	done = ese->phase_done;
	ese->phase_done = NULL;
	done(ese->phase_arg, ese->verify_status < 0 ? ese->verify_status : status);
}

static void copies_stopped(void *arg, int status)
{
	struct ese_workload *ese = arg;

	with_servers(ese, ese_server_detach, detached, ese);
}

static void detach(struct ese_workload *ese)
{
	ese->phase = ESE_DETACHING;
	ese_dag_stop(ese->dag, copies_stopped, ese);
}

static void test_stopped(void *arg, int status)
{
	struct ese_workload *ese = arg;

	/* A check that is under way ends with `verified`. */
	if (!ese->verifying)
		detach(ese);
}

static void stop_now(struct ese_workload *ese)
{
	ese_test_stop(ese->test, test_stopped, ese);
}

/* An attach or detach under way is awaited: it ends by itself. */
static void stop_ese(struct workload *workload, workload_fn drained, void *arg)
{
	struct ese_workload *ese = container_of(workload, struct ese_workload, base);

	ese->stop_done = drained;
	ese->stop_arg = arg;
	if (ese->phase == ESE_SETTLED)
		report_progress(ese);
	if (ese->phase == ESE_SETTLED || ese->phase == ESE_CHECKING)
		stop_now(ese);
}

static void verified(void *arg, int status)
{
	struct ese_workload *ese = arg;

	ese->verifying = false;
	ese->verify_status = status;
	detach(ese);
}

static void attached_again(void *arg, int status)
{
	struct ese_workload *ese = arg;

	ese->phase = ESE_CHECKING;
	if (status < 0 || ese->stop_done)
		verified(ese, status < 0 ? status : -ECANCELED);
	else
		ese_test_verify(ese->test, verified, ese);
}

static void verify_ese(struct workload *workload, workload_fn done, void *arg)
{
	struct ese_workload *ese = container_of(workload, struct ese_workload, base);

	if (ese->config.content == ESE_NO_CONTENT) {
		done(arg, 0);
		return;
	}
	ese->phase_done = done;
	ese->phase_arg = arg;
	ese->phase = ESE_ATTACHING;
	ese->verifying = true;
	with_servers(ese, ese_server_attach, attached_again, ese);
}

const struct workload_ops ese_workload_ops = {
    .name = "exchange",
    .engine = "ese",
    .help = "Exchange databases with page cache, transactions and log; Jetstress' tests",
    .schema = &ese_schema,
    .configure = ese_configure,
    .open = open_ese,
    .prepare = prepare_ese,
    .start = start_ese,
    .stop = stop_ese,
    .verify = verify_ese,
    .free = free_ese,
    .check = ese_check_volume,
    .check_names = ese_check_names,
    .check_fault = ese_check_fault,
    .warm_up = warm_up_ese,
    .window = window_ese,
    .describe = describe_ese,
    .fault = fault_ese,
};
