/* SPDX-License-Identifier: MIT
 *
 * The life of a path as MPIO sees it: (state, input, now) -> (state, when to try again).  Pure.
 *
 * What a logged-in path is good for follows from the access state of its target port group, from
 * whether its login could see the whole unit, and from its health.  Health is a leaky bucket: each
 * failure is a mark, one is forgotten every marginal_forget_ns.  Marginal_errors marks make the
 * path degraded; it is so until all are forgotten (hysteresis).
 */
#ifndef SANLAB_INITIATOR_MPIO_PATH_STATE_H
#define SANLAB_INITIATOR_MPIO_PATH_STATE_H

#include "initiator/mpio/mpio.h"

struct path_machine {
	enum mpio_path_state state;
	unsigned failures; /* logins failed in a row */
	bool missing;	   /* the unit was said not to be there */
	bool dropped;	   /* the login was ended by ourselves, lately */
	uint64_t dropped_ns;
	enum mpio_access access;
	bool no_capacity;	   /* this login knows the unit only in part: not for I/O */
	uint64_t pending_until_ns; /* of a transition: then the path counts as standby */
	unsigned marks;
	uint64_t marked_ns; /* when the marks were counted last */
	bool degraded;
};

enum path_input {
	PATH_INPUT_CONNECT, /* a login begins */
	PATH_INPUT_UP,	    /* logged in to the right unit; `access` is known */
	PATH_INPUT_WRONG,   /* logged in to another one */
	PATH_INPUT_DOWN,    /* the login failed or the session ended */
	PATH_INPUT_DROPPED, /* we have ended the session, to look at the unit again */
	PATH_INPUT_LOOK,    /* of a logged-in path access, health or time have changed */
};

struct path_output {
	enum mpio_path_state from, to;
	bool reconnect;
	uint64_t reconnect_after_ns;
	uint64_t look_ns; /* when PATH_INPUT_LOOK is due; UINT64_MAX: not by time alone */
};

struct path_output path_machine_step(struct path_machine *machine, enum path_input input,
				     const struct mpio_config *config, uint64_t now_ns,
				     struct rng *rng);

/* A failure of a logged-in path: PATH_INPUT_LOOK, or a login, takes it into account. */
void path_machine_mark(struct path_machine *machine, const struct mpio_config *config,
		       uint64_t now_ns);

/* The group's state as told, or met; a transition may last until PENDING_UNTIL_NS. */
void path_machine_access(struct path_machine *machine, enum mpio_access access,
			 uint64_t pending_until_ns);

/* The group's state is one in which the unit takes I/O. */
bool path_machine_active(const struct path_machine *machine);

/* enum mpio_rank, of a path that may carry I/O. */
uint8_t path_machine_rank(const struct path_machine *machine);

/* Back-off before login number FAILURES + 1: doubles up to the limit, less up to a quarter at
 * random, so that paths lost together do not come back in step. */
uint64_t path_backoff_ns(unsigned failures, const struct mpio_config *config, struct rng *rng);

#endif
