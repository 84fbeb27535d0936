/* SPDX-License-Identifier: MIT
 *
 * The whole target: group, SCSI device, iSCSI server and control socket, made from the lab file's
 * `group:` part.  Used by `sanlab target`.
 *
 * Threading: the loop's thread.
 */
#ifndef SANLAB_TARGET_TARGET_H
#define SANLAB_TARGET_TARGET_H

#include "base/config.h"
#include "base/loop.h"
#include "target/array/array.h"
#include "target/export.h"
#include "target/iscsi/iscsi.h"

struct target;

/* Opens stores and listens on every portal.  -EADDRINUSE and the like come with ERR filled. */
int target_start(struct loop *loop, const struct group_config *config, const char *lab_name,
		 uint64_t seed, struct target **ret_target, struct err *err);
/* The same without a socket: nobody listens, and who is in this process hands connections to the
 * portals (target/iscsi/conn.h). */
int target_start_inside(struct loop *loop, const struct group_config *config, const char *lab_name,
			uint64_t seed, struct target **ret_target, struct err *err);
struct target *target_stop(struct target *target);

struct group *target_group(struct target *target);
/* The logical unit of a volume; NULL: there is no such volume. */
struct scsi_lu *target_find_lu(struct target *target, const char *volume);
struct iscsi_server *target_server(struct target *target);
const struct exports *target_exports(const struct target *target);
struct controllers *target_controllers(struct target *target);
struct chap_secrets *target_secrets(struct target *target); /* NULL: no CHAP */
const char *target_lab_name(const struct target *target);
enum group_style target_style(const struct target *target);
struct buf_pool *target_buffers(struct target *target);

#endif
