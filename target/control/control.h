/* SPDX-License-Identifier: MIT
 *
 * The control socket of a running target: a Unix stream socket, one JSON object a line in, one out.
 *
 *   {"command": "status"}
 *   {"command": "reset", "portal": "127.0.0.1:3261", "initiator": "iqn..."}  (initiator optional)
 *   {"command": "drive-fail", "member": "m1", "drive": 3}
 *   {"command": "alua-set", "volume": "db1", "group": 1, "state": "standby", "transition": "3s"}
 *     an implicit change of the asymmetric access state (transition optional: how long the group is
 *     `transitioning` before); state "failed" makes the transition under way fail
 *   ... control_command_info tells all of them, and what they take
 *
 * Answers are {"ok": true, ...} or {"ok": false, "error": "...", "hint": "..."}.
 *
 * Threading: control_open's side lives on the target's loop; control_call blocks its caller.
 * Bounds: a request line is at most 64 KiB, at most 16 clients at once.
 */
#ifndef SANLAB_TARGET_CONTROL_CONTROL_H
#define SANLAB_TARGET_CONTROL_CONTROL_H

#include <jansson.h>

#include "base/err.h"
#include "base/loop.h"

struct target;
struct control;

/* Listens at SOCKET_PATH (mode 0600; a socket left behind by a dead target is replaced, a live one
 * is -EADDRINUSE).  The command "stop" ends LOOP. */
int control_open(struct loop *loop, struct target *target, const char *socket_path,
		 struct control **ret_control, struct err *err);
struct control *control_close(struct control *control);

/* One request and its answer, within TIMEOUT_NS.  Borrows REQUEST.  An answer with "ok": false
 * gives -EREMOTEIO and its words in ERR. */
int control_call(const char *socket_path, const json_t *request, uint64_t timeout_ns,
		 json_t **ret_answer, struct err *err);

/* What the target is and has done, as one document (portals, members, drives, volumes). */
json_t *control_status(struct target *target);

/* The commands, for help texts; NULL beyond the last one. */
struct control_command_info {
	const char *name, *args, *help; /* ARGS as `sanlab ctl` takes them: "member=M drive=N" */
};
const struct control_command_info *control_command_info(size_t index);

/* Executes one request (also for tests without a socket); always gives an answer object. */
json_t *control_execute(struct loop *loop, struct target *target, const json_t *json);

#endif
