/* SPDX-License-Identifier: MIT
 *
 * The target as a process of its own: started from this very executable, watched, stopped.
 *
 * It never survives us: it reads a pipe whose other end only we hold, and ends when that closes,
 * however we end.  It runs in a process group of its own, so that Ctrl-C reaches only the run,
 * which then stops it in order.
 */
#ifndef SANLAB_HARNESS_RUN_SPAWN_H
#define SANLAB_HARNESS_RUN_SPAWN_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"
#include "base/loop.h"

struct target_process;

/* Runs `EXE target LAB_FILE --set ... --control SOCKET` and waits for its line beginning "ready"
 * (at most 30 s).  EXE NULL: this executable; CONTROL NULL: a socket of its own, nobody else's.
 * What the target says on stderr appears on ours. When it ends before it is ready: *ret_exit_code
 * is its exit code (it has told why) and the result is -ECHILD. */
int target_spawn(const char *exe, const char *lab_file, const char *const *sets, size_t set_count,
		 const char *control, struct target_process **ret_process, int *ret_exit_code,
		 struct err *err);
/* One command on the control socket; ANSWER may be NULL.  Borrows REQUEST. */
int target_command(struct target_process *process, const json_t *request, json_t **ret_answer,
		   struct err *err);
/* GONE is called on the loop when the process ends by itself.  -ENOSYS: the kernel has no pidfd. */
int target_watch(struct target_process *process, struct loop *loop, loop_fn gone, void *arg);
/* Kills it (SIGKILL) without waiting for its end; GONE is not called. */
void target_kill(struct target_process *process);
/* Starts it again as it was started at first, after target_kill; does not wait.  READY is called on
 * the loop of target_watch: STATUS 0 when it listens, -ECHILD when it ended first, -ETIMEDOUT. */
int target_restart(struct target_process *process, void (*ready)(void *arg, int status), void *arg,
		   struct err *err);
/* How it ended, once GONE was called: "exit 3", "signal 9". */
void target_describe_end(struct target_process *process, char *out, size_t size);
/* Asks it to stop, waits, and makes it stop when it does not.  *ret_usage: CPU time and memory, of
 * all its lives together. */
struct target_process *target_stop_process(struct target_process *process, json_t **ret_usage);

/* CPU time and peak memory of a process as the reports have it. */
struct rusage;
json_t *usage_json(const struct rusage *usage);

#endif
