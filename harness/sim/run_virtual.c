/* SPDX-License-Identifier: MIT
 *
 * Drives a simulated lab in slices of virtual time, and looks up between them: for signals, and
 * whether the progress line is due.
 */
#include "harness/sim/run_virtual.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/text.h"
#include "harness/run/array_check.h"
#include "harness/run/environment.h"
#include "harness/run/ledger_check.h"
#include "harness/run/outcome.h"
#include "harness/run/progress.h"
#include "harness/sim/sim_lab.h"
#include "target/control/control.h"

#define SLICE_NS (100 * NS_PER_MS)
#define DRAW_NS	 (250 * NS_PER_MS)

struct virtual_run {
	const struct lab *lab;
	const struct run_options *options;
	struct sim_lab *sim;
	struct run_engine *engine;
	struct report_dir *out_dir;
	struct event_log *events;
	struct recorder *recorder; /* NULL: nothing is recorded */
	struct loop *wall;	   /* only its clock */
	uint64_t begun_ns, drawn_ns;
	struct progress_line progress;
	bool finished;
};

/* ---- signals: the first ends in order, the second aborts ---- */

static volatile sig_atomic_t interrupted;

static void note_signal(int number)
{
	static const char aborted[] = "sanlab: aborted: no results\n";

	if (interrupted) {
		/* Nothing outside this process is to be put in order. */
		(void)!write(STDERR_FILENO, aborted, sizeof aborted - 1);
		_exit(EXIT_EXPECTATION);
	}
	interrupted = number;
}

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};

static void watch_signals(bool on)
{
	struct sigaction action = {.sa_handler = on ? note_signal : SIG_DFL};

	interrupted = 0;
	for (size_t i = 0; i < ARRAY_SIZE(ending_signals); i++)
		sigaction(ending_signals[i], &action, NULL);
}

static const char *why_signal(int number)
{
	return number == SIGINT	   ? "interrupted (SIGINT)"
	       : number == SIGTERM ? "stopped (SIGTERM)"
				   : "the terminal is gone (SIGHUP)";
}

/* ---- the run ---- */

static void engine_finished(void *arg)
{
	struct virtual_run *run = arg;

	run->finished = true;
	loop_stop(sim_lab_loop(run->sim));
}

/* What the target has counted, against what we have. */
static void ask_target(void *arg, struct record *record)
{
	struct virtual_run *run = arg;

	record->target = control_status(sim_lab_target(run->sim));
	if (record->path_count)
		ledger_check(run->engine, record);
	array_check(run->lab, record);
}

static void look_up(struct virtual_run *run)
{
	uint64_t now_ns;

	if (interrupted)
		run_engine_stop(run->engine, why_signal(interrupted));
	if (!run->options->progress)
		return;
	now_ns = loop_now_ns(run->wall);
	if (now_ns < run->drawn_ns + DRAW_NS)
		return;
	run->drawn_ns = now_ns;
	progress_draw(&run->progress);
}

static int drive(struct virtual_run *run)
{
	struct loop *loop = sim_lab_loop(run->sim);
	int r = 0;

	run_engine_on_judge(run->engine, NULL, ask_target, run);
	run_engine_start(run->engine, engine_finished, run);
	while (!run->finished && r == 0) {
		r = loop_run_until(loop, loop_now_ns(loop) + SLICE_NS);
		look_up(run);
	}
	return r;
}

static void describe(struct virtual_run *run, struct record *record)
{
	record->config_yaml = outcome_config(run->lab);
	record->environment = environment_json();
	json_object_set_new(record->environment, "clock", json_string("virtual"));
}

static void tell_cost(const struct virtual_run *run)
{
	char virtual_time[32], wall[32];
	uint64_t took_ns = loop_now_ns(run->wall) - run->begun_ns;

	if (!run->options->quiet)
		fprintf(stderr, "sanlab: %s of virtual time in %s\n",
			text_duration(virtual_time, sizeof virtual_time,
				      (double)loop_now_ns(sim_lab_loop(run->sim))),
			text_duration(wall, sizeof wall, (double)took_ns));
}

static int set_up(struct virtual_run *run, struct err *err)
{
	const struct virtual_config *config = &run->lab->virtual_run;
	struct sim_lab_options options = {
	    .network = config->network,
	    .link = {.delay_ns = config->delay_ns,
		     .jitter_ns = config->jitter_ns,
		     .rate_bytes_per_s = config->rate_bytes_per_s},
	};
	int r = loop_new_real(&run->wall);

	if (r < 0)
		return err_set(err, r, "cannot read the clock: %s", strerror(-r));
	run->begun_ns = loop_now_ns(run->wall);
	r = report_dir_open(run->options->out_dir, &run->out_dir, err);
	if (r == 0)
		r = sim_lab_new(run->lab, &options, &run->sim, err);
	if (r < 0)
		return r;
	report_dir_clear(run->out_dir);
	r = event_log_open(run->options->out_dir, &run->events, err);
	if (r == 0 && run->options->record) {
		r = recorder_open(run->options->record, sim_lab_loop(run->sim), &run->recorder,
				  err);
		if (r == 0)
			sim_lab_record(run->sim, run->recorder);
	}
	if (r == 0)
		r = sim_lab_open(run->sim, run->events, &run->engine, err);
	return r;
}

static int run_to_end(struct virtual_run *run)
{
	struct record *record;
	int r;

	run->progress = (struct progress_line){
	    .to = run->options->progress ? stderr : NULL,
	    .loop = sim_lab_loop(run->sim),
	    .engine = run->engine,
	};
	watch_signals(true);
	r = drive(run);
	watch_signals(false);
	progress_stop(&run->progress);
	if (r < 0) {
		fprintf(stderr, "sanlab: the event loop failed\n");
		return EXIT_INTERNAL;
	}
	record = run_engine_record(run->engine);
	describe(run, record);
	tell_cost(run);
	return outcome_report(record, run->options);
}

int run_virtual(const struct lab *lab, const struct run_options *options)
{
	struct virtual_run run = {.lab = lab, .options = options};
	struct err err = {0};
	int code, r = sim_lab_check(lab, lab->virtual_run.network, &err);

	if (r < 0) {
		err_print(&err);
		return EXIT_USAGE;
	}
	r = set_up(&run, &err);
	if (r < 0) {
		err_print(&err);
		code = r == -EINVAL ? EXIT_USAGE : EXIT_ENVIRONMENT;
	} else {
		code = run_to_end(&run);
	}
	sim_lab_free(run.sim);
	recorder_close(run.recorder);
	event_log_close(run.events);
	report_dir_close(run.out_dir);
	loop_free(run.wall);
	return code;
}
