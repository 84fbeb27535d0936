/* SPDX-License-Identifier: MIT
 *
 * The array's controllers at work: carries out on portals, members and access states what the
 * machines of target/array/controller.h decide.
 *
 * Style equallogic: each member has a pair of its own.  While it fails over, the member's portals
 * are silent and requests for its pages that come through other members' portals wait; offline,
 * they end with -ENODEV.  Style lun: two controllers, those of target port groups 1 and 2.
 *
 * Threading: the loop's thread.  Ownership: all it works on is borrowed.
 */
#ifndef SANLAB_TARGET_CONTROLLERS_H
#define SANLAB_TARGET_CONTROLLERS_H

#include "target/array/array.h"
#include "target/array/controller.h"
#include "target/export.h"
#include "target/iscsi/iscsi.h"

struct controllers;

struct controllers_env {
	struct loop *loop;
	struct group *group;
	struct exports *exports;
	struct iscsi_server *server; /* its portals are there already */
};

int controllers_open(const struct group_config *config, const struct controllers_env *env,
		     struct controllers **ret_controllers, struct err *err);
/* Lets go of what it holds back; before sessions are closed. */
struct controllers *controllers_close(struct controllers *controllers);

/* MEMBER: whose controller (style equallogic), NULL in style lun.  -EINVAL and -EALREADY come with
 * ERR filled. */
int controllers_event(struct controllers *controllers, struct member *member,
		      const struct controller_event *event, struct err *err);
/* The member leaves the group, as when it is switched off, or joins it again. */
int controllers_set_offline(struct controllers *controllers, struct member *member, bool offline,
			    struct err *err);

/* For status: NULL unless the style has them. */
const struct controller_pair *controllers_pair(const struct controllers *controllers,
					       const struct member *member);
const struct controller_duo *controllers_duo(const struct controllers *controllers);
/* Switched off by controllers_set_offline. */
bool controllers_is_switched_off(const struct controllers *controllers,
				 const struct member *member);

#endif
