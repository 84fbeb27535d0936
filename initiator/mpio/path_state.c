/* SPDX-License-Identifier: MIT
 *
 * Path states and the reconnect back-off.
 */
#include "initiator/mpio/path_state.h"

#include <assert.h>

#include "base/bytes.h"

const char *const mpio_path_state_names[] = {
    [MPIO_PATH_DOWN] = "down",
    [MPIO_PATH_CONNECTING] = "connecting",
    [MPIO_PATH_UP] = "up",
    [MPIO_PATH_PENDING] = "pending",
    [MPIO_PATH_STANDBY] = "standby",
    [MPIO_PATH_DEGRADED] = "degraded",
    [MPIO_PATH_WRONG_LU] = "wrong-lu",
    [MPIO_PATH_REMOVED] = "removed",
    NULL,
};

const char *const mpio_milestone_names[] = {
    [MPIO_LOST] = "lost",
    [MPIO_FIRST_REISSUE] = "first-reissue",
    [MPIO_FIRST_SUCCESS] = "first-success",
    [MPIO_DRAINED] = "drained",
    [MPIO_FENCED] = "fenced",
    [MPIO_UP_AGAIN] = "up-again",
    [MPIO_FIRST_IO] = "first-io",
    NULL,
};

const char *const mpio_proof_names[] = {
    [MPIO_PROOF_LOGIN] = "login",
    [MPIO_PROOF_OTHER_LOGIN] = "other-login",
    [MPIO_PROOF_RESET] = "reset",
    NULL,
};

uint64_t path_backoff_ns(unsigned failures, const struct mpio_config *config, struct rng *rng)
{
	uint64_t delay = config->reconnect_min_ns;

	for (unsigned i = 0; i < failures && delay < config->reconnect_max_ns; i++)
		delay *= 2;
	delay = MIN_OF(delay, config->reconnect_max_ns);
	return delay - rng_below(rng, delay / 4 + 1);
}

struct path_output path_machine_step(struct path_machine *machine, enum path_input input,
				     const struct mpio_config *config, struct rng *rng)
{
	struct path_output out = {.from = machine->state};

	switch (input) {
	case PATH_INPUT_CONNECT:
		assert(machine->state == MPIO_PATH_DOWN || machine->state == MPIO_PATH_WRONG_LU);
		machine->state = MPIO_PATH_CONNECTING;
		break;
	case PATH_INPUT_UP:
		assert(machine->state == MPIO_PATH_CONNECTING);
		machine->state = MPIO_PATH_UP;
		machine->failures = 0;
		break;
	case PATH_INPUT_WRONG:
		assert(machine->state == MPIO_PATH_CONNECTING);
		machine->state = MPIO_PATH_WRONG_LU;
		/* Somebody may map the right unit again: look, but seldom. */
		out.reconnect = true;
		out.reconnect_after_ns = config->reconnect_max_ns;
		break;
	case PATH_INPUT_DOWN:
		assert(machine->state != MPIO_PATH_DOWN);
		out.reconnect = true;
		out.reconnect_after_ns = path_backoff_ns(machine->failures, config, rng);
		if (machine->failures < UINT32_MAX)
			machine->failures++;
		machine->state = MPIO_PATH_DOWN;
		break;
	}
	out.to = machine->state;
	return out;
}
