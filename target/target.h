/* SPDX-License-Identifier: MIT
 *
 * The whole target: group, SCSI device, iSCSI server and control socket, made from the lab file's
 * `group:` part.  Used by `sanlab target`.
 *
 * Threading: the loop's thread.
 */
#ifndef SANLAB_TARGET_TARGET_H
#define SANLAB_TARGET_TARGET_H

#include <jansson.h>

#include "base/config.h"
#include "base/loop.h"
#include "target/array/array.h"
#include "target/iscsi/iscsi.h"

struct target;

/* The iSCSI name of a volume: iqn.2026-11.test.sanlab:LAB:VOLUME (style equallogic), or of the
 * group: iqn.2026-11.test.sanlab:LAB (style lun; volumes are LUNs in the lab file's order).
 * Bytes as for snprintf. */
int target_iqn(char *out, size_t size, enum group_style style, const char *lab,
	       const char *volume);

/* Opens stores and listens on every portal.  -EADDRINUSE and the like come with ERR filled. */
int target_start(struct loop *loop, const struct group_config *config, const char *lab_name,
		 uint64_t seed, struct target **ret_target, struct err *err);
struct target *target_stop(struct target *target);

struct group *target_group(struct target *target);
struct iscsi_server *target_server(struct target *target);

/* Statistics and state as one document (portals, members, drives, volumes). */
json_t *target_status(struct target *target);

/* target/control: a Unix stream socket; one JSON object a line in, one out:
 *   {"command": "status"}
 *   {"command": "reset", "portal": "127.0.0.1:3261", "initiator": "iqn..."}   (initiator optional)
 *   {"command": "portal-down", "portal": ...}   {"command": "portal-up", "portal": ...}
 *   {"command": "drive-fail", "member": "m1", "drive": 3}   {"command": "drive-return", ...}
 *   {"command": "stop"}
 * Answers {"ok": true, ...} or {"ok": false, "error": "...", "hint": "..."}. */
struct control;
int control_open(struct loop *loop, struct target *target, const char *socket_path,
		 struct control **ret_control, struct err *err);
struct control *control_close(struct control *control);
/* The client's side (sanlab ctl, fault timeline): blocking, with a deadline. */
int control_call(const char *socket_path, json_t *request, json_t **ret_answer, struct err *err);

#endif
