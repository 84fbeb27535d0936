/* SPDX-License-Identifier: MIT
 *
 * `sanlab run`: target, hosts, engine, reports, exit code.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/bytes.h"
#include "harness/run/array_check.h"
#include "harness/run/environment.h"
#include "harness/run/hosts.h"
#include "harness/run/ledger_check.h"
#include "harness/run/observer.h"
#include "harness/run/outcome.h"
#include "harness/run/progress.h"
#include "harness/run/real_faults.h"
#include "harness/run/run.h"
#include "harness/run/spawn.h"
#include "harness/workload/foreign.h"

struct lab_run {
	const struct lab *lab;
	const struct run_options *options;
	struct loop *loop;
	struct target_process *target;
	struct relay_faults *relay;
	struct hosts hosts;
	struct real_faults faults;
	struct report_dir *out_dir;
	struct event_log *events;
	struct run_engine *engine;
	struct recorder *recorder; /* NULL: nothing is recorded */
	struct observer *observer; /* of a foreign load; else NULL */
	struct progress_line progress;
	struct loop_watch signals;
	sigset_t old_mask;
	unsigned interrupts;
	bool aborted, target_gone, finished;
};

/* ---- signals: the first ends in order, the second aborts ---- */

static const struct {
	int number;
	const char *why;
} ending_signals[] = {
    {SIGINT, "interrupted (SIGINT)"},
    {SIGTERM, "stopped (SIGTERM)"},
    {SIGHUP, "the terminal is gone (SIGHUP)"},
};

static const char *why_signal(int number)
{
	for (size_t i = 0; i < ARRAY_SIZE(ending_signals); i++)
		if (ending_signals[i].number == number)
			return ending_signals[i].why;
	return "stopped";
}

static void signal_ready(void *arg, uint32_t ready)
{
	struct lab_run *run = arg;
	struct signalfd_siginfo info;

	if (read(run->signals.fd, &info, sizeof info) != sizeof info)
		return;
	if (run->interrupts++ > 0 || !run->engine) {
		run->aborted = true;
		loop_stop(run->loop);
		return;
	}
	run_engine_stop(run->engine, why_signal((int)info.ssi_signo));
}

static int watch_signals(struct lab_run *run, struct err *err)
{
	sigset_t mask;
	int r;

	sigemptyset(&mask);
	for (size_t i = 0; i < ARRAY_SIZE(ending_signals); i++)
		sigaddset(&mask, ending_signals[i].number);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	signal(SIGPIPE, SIG_IGN);
	run->signals = (struct loop_watch){.fn = signal_ready, .arg = run};
	run->signals.fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	r = run->signals.fd < 0 ? -errno : loop_watch_add(run->loop, &run->signals, EPOLLIN);
	return r < 0 ? err_set(err, r, "cannot watch for signals: %s", strerror(-r)) : 0;
}

/* ---- setting up ---- */

static void stop_loop(void *arg)
{
	loop_stop(arg);
}

static void target_gone(void *arg)
{
	struct lab_run *run = arg;
	char end[40], why[100];

	target_describe_end(run->target, end, sizeof end);
	snprintf(why, sizeof why, "the target ended during the run: %s", end);
	run->target_gone = true;
	if (run->engine)
		run_engine_fail(run->engine, why);
	else
		loop_stop(run->loop);
}

/* Killed by the timeline and started again. */
static void target_restarted(void *arg, int status)
{
	struct lab_run *run = arg;

	if (status < 0)
		run_engine_fail(run->engine, "the killed target could not be started again");
	else
		run_engine_note(run->engine, "the target listens again");
}

static int connect_hosts(struct lab_run *run, struct err *err)
{
	int r = relay_faults_open(run->lab, &run->relay, err);

	if (r == 0)
		r = hosts_open(run->loop, run->lab, run->relay, &run->hosts, err);

	if (r < 0)
		return r;
	hosts_connect(&run->hosts, stop_loop, run->loop);
	if (run->hosts.waited)
		r = loop_run(run->loop);
	if (r < 0)
		return err_set(err, r, "the event loop failed: %s", strerror(-r));
	if (run->aborted)
		return err_set(err, -EINTR, "interrupted before the run began");
	if (run->target_gone)
		return err_set(err, -ECHILD, "the target ended before the hosts had logged in");
	if (run->hosts.status < 0) {
		err_set(err, run->hosts.status, "a host cannot reach its volume: %s",
			run->hosts.why);
		err_hint(err,
			 "`sanlab target` alone shows whether the portals listen; for existing "
			 "targets check the urls");
	}
	return run->hosts.status;
}

/* The load comes from elsewhere: say where it may come to, and watch it come. */
static int wait_for_others(struct lab_run *run, struct err *err)
{
	json_t *request = json_pack("{s:s}", "command", "status"), *status = NULL;
	int r = target_command(run->target, request, &status, err);
	const json_t *portal;
	size_t i;

	json_decref(request);
	if (r < 0)
		return r;
	printf("ready: lab %s,", run->lab->name);
	json_array_foreach(json_object_get(status, "portals"), i, portal)
	{
		printf(" %s", json_string_value(json_object_get(portal, "portal")));
	}
	putchar('\n');
	fflush(stdout);
	json_decref(status);
	r = observer_new(run->loop, run->target, run->engine, &run->observer);
	return r < 0 ? err_set(err, r, "no memory to watch the load") : 0;
}

static int record_to(struct lab_run *run, struct err *err)
{
	int r;

	if (!run->options->record)
		return 0;
	r = recorder_open(run->options->record, run->loop, &run->recorder, err);
	for (unsigned i = 0; r == 0 && i < run->hosts.count; i++)
		run->hosts.devices[i].recorder = run->recorder;
	return r;
}

static int set_up(struct lab_run *run, const char *lab_file, const char *const *sets,
		  size_t set_count, int *ret_exit_code, struct err *err)
{
	struct fault_ops faults = {.apply = real_faults_apply, .arg = &run->faults};
	int r = loop_new_real(&run->loop);

	*ret_exit_code = EXIT_ENVIRONMENT;
	if (r < 0)
		return err_set(err, r, "cannot make an event loop: %s", strerror(-r));
	r = watch_signals(run, err);
	if (r == 0)
		r = report_dir_open(run->options->out_dir, &run->out_dir, err);
	if (r == 0 && run->lab->has_group) {
		r = target_spawn(NULL, lab_file, sets, set_count, run->options->control,
				 &run->target, ret_exit_code, err);
		if (r < 0)
			return r;
		*ret_exit_code = EXIT_ENVIRONMENT;
		target_watch(run->target, run->loop, target_gone, run);
	}
	if (r == 0)
		r = connect_hosts(run, err);
	run->faults = (struct real_faults){.lab = run->lab,
					   .target = run->target,
					   .relay = run->relay,
					   .restarted = target_restarted,
					   .arg = run};
	if (r < 0)
		return r;
	report_dir_clear(run->out_dir);
	r = event_log_open(run->options->out_dir, &run->events, err);
	if (r < 0)
		return r;
	r = record_to(run, err);
	if (r < 0)
		return r;
	r = run_engine_new(run->loop, run->lab, run->hosts.devices, run->hosts.count, &faults,
			   run->events, &run->engine, err);
	if (r == -EINVAL)
		*ret_exit_code = EXIT_USAGE;
	if (r == 0 && run->lab->workload_ops == &foreign_workload_ops)
		r = wait_for_others(run, err);
	return r;
}

/* ---- the end ---- */

/* What the target has counted, against what we have. */
static void ask_target(void *arg, struct record *record)
{
	struct lab_run *run = arg;
	json_t *request;

	if (!run->target || run->target_gone)
		return;
	request = json_pack("{s:s}", "command", "status");
	if (target_command(run->target, request, &record->target, NULL) == 0) {
		json_object_del(record->target, "ok");
		if (!run->observer) /* else the I/O is not ours to account for */
			ledger_check(run->engine, record);
	}
	json_decref(request);
	array_check(run->lab, record);
}

static void observe(void *arg, struct record *record)
{
	struct lab_run *run = arg;

	if (run->observer)
		observer_report(run->observer, record);
}

/* ... and what it has cost. */
static void stop_target(struct lab_run *run, struct record *record)
{
	json_t *usage = NULL;

	if (!run->target)
		return;
	run->target = target_stop_process(run->target, &usage);
	if (!record->target)
		record->target = json_object();
	json_object_set_new(record->target, "process", usage);
}

static void describe_environment(struct record *record)
{
	struct rusage usage;

	record->environment = environment_json();
	getrusage(RUSAGE_SELF, &usage);
	json_object_set_new(record->environment, "process", usage_json(&usage));
}

static void engine_finished(void *arg)
{
	struct lab_run *run = arg;

	run->finished = true;
	loop_stop(run->loop);
}

static int run_engine_to_end(struct lab_run *run)
{
	struct record *record;
	int r;

	progress_start(&run->progress, run->loop, run->engine,
		       run->options->progress ? stderr : NULL);
	run_engine_on_judge(run->engine, observe, ask_target, run);
	run_engine_start(run->engine, engine_finished, run);
	r = run->finished ? 0 : loop_run(run->loop);
	progress_stop(&run->progress);
	if (r < 0 || run->aborted) {
		fprintf(stderr, "sanlab: %s\n",
			run->aborted ? "aborted: no results" : "the event loop failed");
		return run->aborted ? EXIT_EXPECTATION : EXIT_INTERNAL;
	}
	record = run_engine_record(run->engine);
	record->config_yaml = outcome_config(run->lab);
	describe_environment(record);
	stop_target(run, record);
	return outcome_report(record, run->options);
}

static void tear_down(struct lab_run *run)
{
	progress_stop(&run->progress);
	observer_free(run->observer);
	run_engine_free(run->engine);
	hosts_close(&run->hosts);
	recorder_close(run->recorder);
	relay_faults_close(run->relay);
	event_log_close(run->events);
	report_dir_close(run->out_dir);
	target_stop_process(run->target, NULL);
	if (run->loop)
		loop_watch_del(run->loop, &run->signals);
	if (run->signals.fd > 0)
		close(run->signals.fd);
	loop_free(run->loop);
	sigprocmask(SIG_SETMASK, &run->old_mask, NULL);
}

int run_lab(const struct lab *lab, const char *lab_file, const char *const *sets, size_t set_count,
	    const struct run_options *options)
{
	struct lab_run run = {.lab = lab, .options = options};
	struct err err = {0};
	int code;

	sigprocmask(SIG_SETMASK, NULL, &run.old_mask);
	if (set_up(&run, lab_file, sets, set_count, &code, &err) < 0) {
		/* A target that ended has said why itself. */
		if (err.code != -ECHILD || code == EXIT_INTERNAL)
			err_print(&err);
	} else {
		code = run_engine_to_end(&run);
	}
	tear_down(&run);
	return code;
}
