/* SPDX-License-Identifier: MIT
 *
 * Starting, watching and stopping the target process.
 */
#include "harness/run/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "target/control/control.h"

#define COMMAND_TIMEOUT_NS (5 * NS_PER_S)

enum {
	READY_LIMIT_MS = 30000,
	STOP_LIMIT_MS = 5000,
	LINE_MAX_BYTES = 4096,
};

struct target_process {
	pid_t pid;
	int pid_fd;	/* -1: the kernel has none */
	int stdin_pipe; /* closed: the target ends */
	int stdout_pipe;
	char dir[80], own_socket[104];
	const char *socket; /* own_socket, or where the caller wants it */
	bool reaped;
	int status; /* of wait4 */
	struct rusage usage;
	const char *exe;
	char **argv; /* its strings are the caller's, but for own_socket */
	struct loop *loop;
	struct loop_watch watch;
	loop_fn gone;
	void *arg;
	/* a new life */
	bool killed;
	struct rusage usage_before;
	struct loop_watch output;
	struct loop_timer limit;
	char line[LINE_MAX_BYTES];
	size_t used;
	void (*ready)(void *arg, int status);
	void *ready_arg;
};

json_t *usage_json(const struct rusage *usage)
{
	return json_pack(
	    "{s:I, s:I, s:I}", "user_cpu_ns",
	    (json_int_t)usage->ru_utime.tv_sec * 1000000000 + usage->ru_utime.tv_usec * 1000,
	    "system_cpu_ns",
	    (json_int_t)usage->ru_stime.tv_sec * 1000000000 + usage->ru_stime.tv_usec * 1000,
	    "max_rss_bytes", (json_int_t)usage->ru_maxrss * 1024);
}

static void close_pipe(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* ---- starting ---- */

static int make_directory(struct target_process *process, struct err *err)
{
	const char *base = getenv("TMPDIR");
	int size;

	/* The path of a socket has 107 bytes at most: a long TMPDIR does not do. */
	if (!base || !*base || strlen(base) > 50)
		base = "/tmp";
	size = snprintf(process->dir, sizeof process->dir, "%s/sanlab-XXXXXX", base);
	if (size < 0 || (size_t)size >= sizeof process->dir || !mkdtemp(process->dir)) {
		int r = errno ? -errno : -ENAMETOOLONG;

		process->dir[0] = '\0';
		err_set(err, r, "cannot make a directory for the control socket in %s: %s", base,
			strerror(-r));
		err_hint(err, "set TMPDIR to a directory that can be written to");
		return r;
	}
	snprintf(process->own_socket, sizeof process->own_socket, "%s/control", process->dir);
	return 0;
}

static int spawn(struct target_process *process, const char *exe, char *const argv[],
		 int stdin_read, int stdout_write)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, defaults;
	extern char **environ;
	int r;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, stdin_read, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, stdout_write, STDOUT_FILENO);
	posix_spawnattr_init(&attributes);
	sigemptyset(&none);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGINT);
	sigaddset(&defaults, SIGTERM);
	sigaddset(&defaults, SIGPIPE);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						  POSIX_SPAWN_SETPGROUP);
	r = posix_spawn(&process->pid, exe, &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	if (r)
		return -r;
	process->pid_fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
	return 0;
}

/* Our own file by its name, so that ps(1) shows the target as what it is; by the kernel's link when
 * the file has been replaced meanwhile. */
static const char *own_executable(char *out, size_t size)
{
	ssize_t length = readlink("/proc/self/exe", out, size - 1);

	if (length <= 0)
		return "/proc/self/exe";
	out[length] = '\0';
	return access(out, X_OK) == 0 ? out : "/proc/self/exe";
}

static int start(struct target_process *process, struct err *err)
{
	const char *exe = process->exe;
	int in[2] = {-1, -1}, out[2] = {-1, -1};
	char own[4096];
	int r = 0;

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		r = -errno;
	if (r == 0)
		r = spawn(process, exe ? exe : own_executable(own, sizeof own), process->argv,
			  in[0], out[1]);
	close_pipe(&in[0]);
	close_pipe(&out[1]);
	if (r < 0) {
		close_pipe(&in[1]);
		close_pipe(&out[0]);
		return err_set(err, r, "cannot start the target: %s", strerror(-r));
	}
	process->stdin_pipe = in[1];
	process->stdout_pipe = out[0];
	return 0;
}

static int milliseconds_until(const struct timespec *deadline)
{
	struct timespec now;
	int64_t ms;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ms = (deadline->tv_sec - now.tv_sec) * 1000 + (deadline->tv_nsec - now.tv_nsec) / 1000000;
	return ms > 0 ? (int)ms : 0;
}

static void deadline_in(struct timespec *deadline, int ms)
{
	clock_gettime(CLOCK_MONOTONIC, deadline);
	deadline->tv_sec += ms / 1000;
}

/* Reads what there is of the line.  1: it has come; 0: end of file; -EAGAIN: not yet all of it. */
static int read_ready(struct target_process *process)
{
	size_t room = sizeof process->line - 1 - process->used;
	ssize_t got = read(process->stdout_pipe, process->line + process->used, room);

	if (got <= 0)
		return got < 0 ? -errno : 0;
	process->used += (size_t)got;
	process->line[process->used] = '\0';
	if (strncmp(process->line, "ready", MIN_OF(process->used, 5)) != 0)
		return -EPROTO;
	/* Or long enough to tell. */
	return strchr(process->line, '\n') || process->used == sizeof process->line - 1 ? 1
											: -EAGAIN;
}

/* 1: the line has come; 0: end of file; else a negative errno. */
static int wait_ready(struct target_process *process)
{
	struct timespec deadline;
	int r = -EAGAIN;

	deadline_in(&deadline, READY_LIMIT_MS);
	process->used = 0;
	while (r == -EAGAIN || r == -EINTR) {
		struct pollfd fd = {.fd = process->stdout_pipe, .events = POLLIN};
		int left = milliseconds_until(&deadline);

		if (poll(&fd, 1, left) < 0) {
			r = -errno;
			continue;
		}
		r = fd.revents ? read_ready(process) : -ETIMEDOUT;
	}
	return r;
}

/* ---- ending ---- */

static bool reap(struct target_process *process, int options)
{
	pid_t pid;

	if (process->reaped)
		return true;
	do
		pid = wait4(process->pid, &process->status, options, &process->usage);
	while (pid < 0 && errno == EINTR);
	process->reaped = pid != 0;
	return process->reaped;
}

/* Waits for its end without a timer: the descriptor of a process is readable when it ends. */
static bool wait_end(struct target_process *process, int limit_ms)
{
	struct timespec deadline;

	deadline_in(&deadline, limit_ms);
	while (!reap(process, WNOHANG)) {
		struct pollfd fd = {.fd = process->pid_fd, .events = POLLIN};
		int left = milliseconds_until(&deadline);

		if (process->pid_fd < 0 || left == 0)
			return false;
		poll(&fd, 1, left);
	}
	return true;
}

static void stop_watching(struct target_process *process)
{
	if (!process->loop)
		return;
	loop_watch_del(process->loop, &process->watch);
	loop_watch_del(process->loop, &process->output);
	loop_timer_cancel(process->loop, &process->limit);
}

static struct target_process *release(struct target_process *process)
{
	stop_watching(process);
	close_pipe(&process->stdin_pipe);
	close_pipe(&process->stdout_pipe);
	close_pipe(&process->pid_fd);
	if (process->dir[0]) {
		unlink(process->own_socket);
		rmdir(process->dir);
	}
	free(process->argv);
	free(process);
	return NULL;
}

void target_describe_end(struct target_process *process, char *out, size_t size)
{
	if (!reap(process, WNOHANG))
		snprintf(out, size, "still running");
	else if (WIFSIGNALED(process->status))
		snprintf(out, size, "signal %d", WTERMSIG(process->status));
	else
		snprintf(out, size, "exit %d", WEXITSTATUS(process->status));
}

static void add_usage(struct rusage *to, const struct rusage *more)
{
	timeradd(&to->ru_utime, &more->ru_utime, &to->ru_utime);
	timeradd(&to->ru_stime, &more->ru_stime, &to->ru_stime);
	to->ru_maxrss = MAX_OF(to->ru_maxrss, more->ru_maxrss);
}

struct target_process *target_stop_process(struct target_process *process, json_t **ret_usage)
{
	json_t *stop, *answer = NULL;

	if (!process)
		return NULL;
	stop_watching(process);
	stop = json_pack("{s:s}", "command", "stop");
	if (!reap(process, WNOHANG) &&
	    control_call(process->socket, stop, COMMAND_TIMEOUT_NS, &answer, NULL) == 0)
		json_decref(answer);
	json_decref(stop);
	close_pipe(&process->stdin_pipe);
	if (!wait_end(process, STOP_LIMIT_MS)) {
		kill(process->pid, SIGTERM);
		if (!wait_end(process, STOP_LIMIT_MS)) {
			kill(process->pid, SIGKILL);
			reap(process, 0);
		}
	}
	add_usage(&process->usage, &process->usage_before);
	if (ret_usage)
		*ret_usage = usage_json(&process->usage);
	return release(process);
}

/* ---- the interface ---- */

static int not_ready(struct target_process *process, int r, int *ret_exit_code, struct err *err)
{
	if (r == 0) {
		char end[40];

		/* Its end of the pipe is closed: it has ended, or is about to. */
		if (!wait_end(process, STOP_LIMIT_MS))
			kill(process->pid, SIGKILL);
		reap(process, 0);
		target_describe_end(process, end, sizeof end);
		*ret_exit_code = WIFEXITED(process->status) && WEXITSTATUS(process->status)
				     ? WEXITSTATUS(process->status)
				     : EXIT_INTERNAL;
		release(process);
		return err_set(err, -ECHILD, "the target ended before it was ready: %s", end);
	}
	target_stop_process(process, NULL);
	*ret_exit_code = EXIT_INTERNAL;
	return err_set(err, r, "the target did not get ready: %s", strerror(-r));
}

int target_spawn(const char *exe, const char *lab_file, const char *const *sets, size_t set_count,
		 const char *control, struct target_process **ret_process, int *ret_exit_code,
		 struct err *err)
{
	struct target_process *process = calloc(1, sizeof *process);
	size_t argc = 5;
	int r;

	*ret_exit_code = EXIT_INTERNAL;
	if (process)
		process->argv = calloc(5 + 2 * set_count + 1, sizeof *process->argv);
	if (!process || !process->argv) {
		free(process);
		return err_set(err, -ENOMEM, "no memory to start the target");
	}
	process->stdin_pipe = process->stdout_pipe = process->pid_fd = -1;
	process->exe = exe;
	r = make_directory(process, err);
	process->socket = control ? control : process->own_socket;
	/* posix_spawn writes to none of them. */
	process->argv[0] = (char *)(uintptr_t) "sanlab";
	process->argv[1] = (char *)(uintptr_t) "target";
	process->argv[2] = (char *)(uintptr_t)lab_file;
	process->argv[3] = (char *)(uintptr_t) "--control";
	process->argv[4] = (char *)(uintptr_t)process->socket;
	for (size_t i = 0; i < set_count; i++) {
		process->argv[argc++] = (char *)(uintptr_t) "--set";
		process->argv[argc++] = (char *)(uintptr_t)sets[i];
	}
	if (r == 0)
		r = start(process, err);
	if (r < 0) {
		*ret_exit_code = EXIT_ENVIRONMENT;
		release(process);
		return r;
	}
	r = wait_ready(process);
	if (r <= 0)
		return not_ready(process, r, ret_exit_code, err);
	*ret_exit_code = EXIT_PASS;
	*ret_process = process;
	return 0;
}

int target_command(struct target_process *process, const json_t *request, json_t **ret_answer,
		   struct err *err)
{
	json_t *answer = NULL;
	int r = control_call(process->socket, request, COMMAND_TIMEOUT_NS, &answer, err);

	if (r == 0 && ret_answer)
		*ret_answer = answer;
	else if (r == 0)
		json_decref(answer);
	return r;
}

static void pid_ready(void *arg, uint32_t ready)
{
	struct target_process *process = arg;

	if (!reap(process, WNOHANG))
		return;
	loop_watch_del(process->loop, &process->watch);
	if (!process->killed)
		process->gone(process->arg);
}

int target_watch(struct target_process *process, struct loop *loop, loop_fn gone, void *arg)
{
	if (process->pid_fd < 0)
		return -ENOSYS;
	process->loop = loop;
	process->gone = gone;
	process->arg = arg;
	process->watch =
	    (struct loop_watch){.fd = process->pid_fd, .fn = pid_ready, .arg = process};
	return loop_watch_add(loop, &process->watch, EPOLLIN);
}

/* ---- a new life ---- */

void target_kill(struct target_process *process)
{
	if (reap(process, WNOHANG))
		return;
	process->killed = true;
	kill(process->pid, SIGKILL);
}

static void told_ready(struct target_process *process, int status)
{
	loop_watch_del(process->loop, &process->output);
	loop_timer_cancel(process->loop, &process->limit);
	process->ready(process->ready_arg, status);
}

static void output_ready(void *arg, uint32_t ready)
{
	struct target_process *process = arg;
	int r = read_ready(process);

	if (r == 1)
		told_ready(process, 0);
	else if (r != -EAGAIN && r != -EINTR)
		told_ready(process, r == 0 ? -ECHILD : r);
}

static void limit_due(void *arg)
{
	told_ready(arg, -ETIMEDOUT);
}

int target_restart(struct target_process *process, void (*ready)(void *arg, int status), void *arg,
		   struct err *err)
{
	int r;

	if (!process->killed)
		return err_set(err, -EALREADY, "the target runs already");
	if (!process->loop)
		return err_set(err, -ENOSYS, "the target cannot be watched on this kernel");
	stop_watching(process);
	if (!wait_end(process, STOP_LIMIT_MS))
		return err_set(err, -EBUSY, "the killed target does not end");
	add_usage(&process->usage_before, &process->usage);
	close_pipe(&process->stdin_pipe);
	close_pipe(&process->stdout_pipe);
	close_pipe(&process->pid_fd);
	process->killed = process->reaped = false;
	process->used = 0;
	process->ready = ready;
	process->ready_arg = arg;
	r = start(process, err);
	if (r < 0) {
		process->reaped = true; /* there is none to be ended */
		return r;
	}
	loop_timer_init(&process->limit, limit_due, process);
	loop_timer_set(process->loop, &process->limit,
		       loop_now_ns(process->loop) + READY_LIMIT_MS * NS_PER_MS);
	process->output =
	    (struct loop_watch){.fd = process->stdout_pipe, .fn = output_ready, .arg = process};
	r = loop_watch_add(process->loop, &process->output, EPOLLIN);
	if (r == 0)
		r = target_watch(process, process->loop, process->gone, process->arg);
	return r < 0 ? err_set(err, r, "cannot watch the target: %s", strerror(-r)) : 0;
}
