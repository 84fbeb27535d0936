/* SPDX-License-Identifier: MIT
 *
 * A small target on loopback ports for tests of the control room: a group portal, two portals on
 * member m1, one on m2, volumes a and b.
 */
#ifndef SANLAB_TESTS_UNIT_CONTROL_LAB_H
#define SANLAB_TESTS_UNIT_CONTROL_LAB_H

#include "target/control/control.h"
#include "target/scsi/alua.h"
#include "target/target.h"

enum { PORTALS = 3 };

struct lab {
	struct cfg_portal portals[PORTALS];
	struct member_config members[2];
	struct volume_config volumes[2];
	struct pool_config pool;
	struct group_config group;
	struct loop *loop;
	struct target *target;
};

void lab_start(struct lab *lab, enum group_style style);
void lab_stop(struct lab *lab);
/* The access state of a volume at a group that there is. */
enum alua_state lab_state_of(struct lab *lab, const char *volume, uint16_t group);
/* Executes TEXT; true when it was carried out.  A refusal must have a reason. */
bool lab_command(struct lab *lab, const char *text);
/* Turns the loop until CONDITION holds; fails after ten seconds. */
void lab_wait(struct lab *lab, bool (*condition)(struct lab *lab), const char *what);

#endif
