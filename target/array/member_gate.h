/* SPDX-License-Identifier: MIT
 *
 * The way into a member: open, held while its controllers fail over, or shut while it is offline.
 *
 * Held requests wait in the order of their arrival; their number is bounded by those who send them
 * (the windows of iSCSI sessions, the buffers of the target).
 */
#ifndef SANLAB_TARGET_ARRAY_MEMBER_GATE_H
#define SANLAB_TARGET_ARRAY_MEMBER_GATE_H

#include <stdbool.h>

#include "base/io.h"

struct member;

enum member_gate_state { MEMBER_OPEN, MEMBER_HOLDS, MEMBER_OFFLINE };

struct member_gate {
	enum member_gate_state state;
	struct io *first, *last;
};

/* What is held goes on when the gate opens, and ends with -ENODEV when it shuts. */
void member_set_gate(struct member *member, enum member_gate_state state);
enum member_gate_state member_gate_state(const struct member *member);
/* Of a gate that is not open: keeps IO or ends it. */
void member_gate_take(struct member_gate *gate, struct io *io);

#endif
