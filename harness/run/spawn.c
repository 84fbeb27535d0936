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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "target/control/control.h"

#define COMMAND_TIMEOUT_NS (5 * NS_PER_S)

enum {
	READY_LIMIT_MS = 30000,
	STOP_LIMIT_MS = 5000,
	SETS_MAX = 256,
	LINE_MAX_BYTES = 4096,
};

struct target_process {
	pid_t pid;
	int pid_fd;	/* -1: the kernel has none */
	int stdin_pipe; /* closed: the target ends */
	int stdout_pipe;
	char dir[80], socket[104];
	bool reaped;
	int status; /* of wait4 */
	struct rusage usage;
	struct loop *loop;
	struct loop_watch watch;
	loop_fn gone;
	void *arg;
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
	snprintf(process->socket, sizeof process->socket, "%s/control", process->dir);
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

static int start(struct target_process *process, const char *exe, char *const argv[],
		 struct err *err)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1};
	char own[4096];
	int r = 0;

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		r = -errno;
	if (r == 0)
		r = spawn(process, exe ? exe : own_executable(own, sizeof own), argv, in[0],
			  out[1]);
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

/* 1: the line has come; 0: end of file; else a negative errno. */
static int wait_ready(struct target_process *process)
{
	struct timespec deadline;
	char line[LINE_MAX_BYTES];
	size_t used = 0;

	deadline_in(&deadline, READY_LIMIT_MS);
	for (;;) {
		struct pollfd fd = {.fd = process->stdout_pipe, .events = POLLIN};
		int left = milliseconds_until(&deadline);
		ssize_t got;

		if (poll(&fd, 1, left) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (!fd.revents)
			return -ETIMEDOUT;
		got = read(process->stdout_pipe, line + used, sizeof line - 1 - used);
		if (got <= 0)
			return got < 0 ? -errno : 0;
		used += (size_t)got;
		line[used] = '\0';
		if (strncmp(line, "ready", MIN_OF(used, 5)) != 0)
			return -EPROTO;
		if (strchr(line, '\n'))
			return 1;
		if (used == sizeof line - 1)
			return 1; /* long enough to tell */
	}
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

static struct target_process *release(struct target_process *process)
{
	if (process->loop)
		loop_watch_del(process->loop, &process->watch);
	close_pipe(&process->stdin_pipe);
	close_pipe(&process->stdout_pipe);
	close_pipe(&process->pid_fd);
	if (process->dir[0]) {
		unlink(process->socket);
		rmdir(process->dir);
	}
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

struct target_process *target_stop_process(struct target_process *process, json_t **ret_usage)
{
	json_t *stop, *answer = NULL;

	if (!process)
		return NULL;
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
		 struct target_process **ret_process, int *ret_exit_code, struct err *err)
{
	struct target_process *process = calloc(1, sizeof *process);
	const char *argv[5 + 2 * SETS_MAX + 1] = {"sanlab", "target", lab_file, "--control"};
	size_t argc = 5;
	int r;

	*ret_exit_code = EXIT_INTERNAL;
	if (!process)
		return err_set(err, -ENOMEM, "no memory to start the target");
	process->stdin_pipe = process->stdout_pipe = process->pid_fd = -1;
	if (set_count > SETS_MAX) {
		free(process);
		return err_set(err, -E2BIG, "more than %d --set", SETS_MAX);
	}
	r = make_directory(process, err);
	argv[4] = process->socket;
	for (size_t i = 0; i < set_count; i++) {
		argv[argc++] = "--set";
		argv[argc++] = sets[i];
	}
	if (r == 0)
		r = start(process, exe, (char *const *)(uintptr_t)argv, err);
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
