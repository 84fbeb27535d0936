/* SPDX-License-Identifier: MIT
 *
 * sanlab target: the target alone, in the foreground.
 *
 * Prints one line beginning "ready" on stdout when every portal listens.  SIGINT, SIGTERM and
 * SIGHUP end it in order.  When standard input is a pipe its end ends the target as well: that is
 * how a `sanlab run` that dies takes its target along.
 *
 * With --out the fault timeline runs as well, and a report tells what the target saw of whoever
 * logged in.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "harness/cli/cli.h"
#include "harness/lab/lab.h"
#include "harness/run/run.h"
#include "target/control/control.h"
#include "target/target.h"

static struct loop *signalled_loop;

static void on_signal(int number)
{
	loop_stop(signalled_loop);
}

static void handle_signals(struct loop *loop)
{
	struct sigaction action = {.sa_handler = on_signal}, before;

	signalled_loop = loop;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	/* Under nohup it is ignored, and stays so. */
	if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
}

/* A connection is a descriptor, and the usual soft limit of 1024 is low for a target. */
static void allow_descriptors(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

static void stdin_ready(void *arg, uint32_t ready)
{
	struct loop *loop = arg;
	char scrap[256];

	if (read(STDIN_FILENO, scrap, sizeof scrap) == 0)
		loop_stop(loop);
}

static void watch_stdin(struct loop *loop, struct loop_watch *watch)
{
	struct stat st;

	*watch = (struct loop_watch){.fd = STDIN_FILENO, .fn = stdin_ready, .arg = loop};
	if (!fstat(STDIN_FILENO, &st) && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
		loop_watch_add(loop, watch, EPOLLIN);
}

static void say_ready(const struct lab *lab, struct target *target)
{
	struct iscsi_server *server = target_server(target);

	printf("ready: lab %s,", lab->name);
	for (size_t i = 0; i < iscsi_server_portal_count(server); i++)
		printf(" %s", iscsi_portal_config(iscsi_server_portal(server, i))->address.text);
	putchar('\n');
	fflush(stdout);
}

static int serve(struct loop *loop, const struct lab *lab, const char *control_path,
		 struct err *err)
{
	struct control *control = NULL;
	struct target *target;
	struct loop_watch stdin_watch;
	int r = target_start(loop, &lab->group, lab->name, lab->seed, &target, err);

	if (r)
		return r;
	if (control_path)
		r = control_open(loop, target, control_path, &control, err);
	if (!r) {
		handle_signals(loop);
		watch_stdin(loop, &stdin_watch);
		say_ready(lab, target);
		r = loop_run(loop);
		loop_watch_del(loop, &stdin_watch);
	}
	control_close(control);
	target_stop(target);
	return r;
}

int cmd_target(const struct cli_args *args)
{
	struct err err = {0};
	struct loop *loop = NULL;
	struct lab *lab;
	int r;

	if (lab_load(args->words[0], args->sets, args->set_count, &lab) < 0)
		return EXIT_USAGE;
	if (!lab->has_group) {
		err_set(&err, -EINVAL, "the lab has no group: there is nothing to export");
		err_where(&err, "%s", args->words[0]);
		err_hint(&err, "add a `group:` part; scripts/labs/raw.yaml is a small one");
		err_print(&err);
		lab_free(lab);
		return EXIT_USAGE;
	}
	if (args->out_dir) {
		struct run_options options = {
		    .out_dir = args->out_dir, .control = args->control, .quiet = args->quiet};

		r = lab_observe(lab);
		r = r < 0 ? EXIT_INTERNAL
			  : run_lab(lab, args->words[0], args->sets, args->set_count, &options);
		lab_free(lab);
		return r;
	}
	allow_descriptors();
	r = loop_new_real(&loop);
	if (r)
		err_set(&err, r, "cannot make an event loop");
	else
		r = serve(loop, lab, args->control, &err);
	if (r)
		err_print(&err);
	loop_free(loop);
	lab_free(lab);
	return r ? (r == -EINVAL ? EXIT_USAGE : EXIT_ENVIRONMENT) : EXIT_PASS;
}
