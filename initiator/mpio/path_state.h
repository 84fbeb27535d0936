/* SPDX-License-Identifier: MIT
 *
 * The life of a path as MPIO sees it: (state, input) -> (state, when to try again).  Pure.
 */
#ifndef SANLAB_INITIATOR_MPIO_PATH_STATE_H
#define SANLAB_INITIATOR_MPIO_PATH_STATE_H

#include "initiator/mpio/mpio.h"

struct path_machine {
	enum mpio_path_state state;
	unsigned failures; /* logins failed in a row */
};

enum path_input {
	PATH_INPUT_CONNECT, /* a login begins */
	PATH_INPUT_UP,	    /* logged in to the right unit */
	PATH_INPUT_WRONG,   /* logged in to another one */
	PATH_INPUT_DOWN,    /* the login failed or the session ended */
};

struct path_output {
	enum mpio_path_state from, to;
	bool reconnect;
	uint64_t reconnect_after_ns;
};

struct path_output path_machine_step(struct path_machine *machine, enum path_input input,
				     const struct mpio_config *config, struct rng *rng);

/* Back-off before login number FAILURES + 1: doubles up to the limit, less up to a quarter at
 * random, so that paths lost together do not come back in step. */
uint64_t path_backoff_ns(unsigned failures, const struct mpio_config *config, struct rng *rng);

#endif
