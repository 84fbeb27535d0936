/* SPDX-License-Identifier: MIT
 *
 * The way into a member.
 */
#include "target/array/member_gate.h"

#include <errno.h>
#include <stddef.h>

#include "target/array/member.h"
#include "target/array/pool_status.h"

void member_gate_take(struct member_gate *gate, struct io *io)
{
	if (gate->state == MEMBER_OFFLINE) {
		io_complete(io, -ENODEV);
		return;
	}
	io->link = NULL;
	if (gate->last)
		gate->last->link = io;
	else
		gate->first = io;
	gate->last = io;
}

void member_set_gate(struct member *member, enum member_gate_state state)
{
	struct member_gate *gate = &member->gate;
	struct io *io = gate->first;

	gate->state = state;
	if (state == MEMBER_HOLDS)
		return;
	gate->first = gate->last = NULL;
	while (io) {
		struct io *next = io->link;

		io->link = NULL;
		/* Through the front door: completions may have changed the gate meanwhile. */
		io_submit(&member->layer, io);
		io = next;
	}
}

void member_set_offline(struct member *member, bool offline)
{
	member_set_gate(member, offline ? MEMBER_OFFLINE : MEMBER_OPEN);
}

bool member_is_offline(const struct member *member)
{
	return member->gate.state == MEMBER_OFFLINE;
}

enum member_gate_state member_gate_state(const struct member *member)
{
	return member->gate.state;
}
