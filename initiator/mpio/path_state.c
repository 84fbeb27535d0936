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

const char *mpio_access_name(enum mpio_access access)
{
	switch (access) {
	case MPIO_OPTIMIZED:
		return "optimized";
	case MPIO_NON_OPTIMIZED:
		return "non-optimized";
	case MPIO_STANDBY:
		return "standby";
	case MPIO_UNAVAILABLE:
		return "unavailable";
	case MPIO_LBA_DEPENDENT:
		return "lba-dependent";
	case MPIO_OFFLINE:
		return "offline";
	case MPIO_TRANSITIONING:
		return "transitioning";
	case MPIO_ACCESS_NONE:
		break;
	}
	return "none";
}

/* ---- health ---- */

static void forget(struct path_machine *machine, const struct mpio_config *config, uint64_t now_ns)
{
	uint64_t each_ns = MAX_OF(config->marginal_forget_ns, UINT64_C(1));
	uint64_t gone = (now_ns - machine->marked_ns) / each_ns;

	if (gone >= machine->marks) {
		machine->marks = 0;
		machine->marked_ns = now_ns;
		machine->degraded = false;
	} else {
		machine->marks -= (unsigned)gone;
		machine->marked_ns += gone * each_ns;
	}
}

void path_machine_mark(struct path_machine *machine, const struct mpio_config *config,
		       uint64_t now_ns)
{
	if (!config->marginal_errors)
		return;
	forget(machine, config, now_ns);
	/* Not more than it takes: a path that failed for an hour recovers as fast as another. */
	if (machine->marks < config->marginal_errors)
		machine->marks++;
	if (machine->marks >= config->marginal_errors)
		machine->degraded = true;
}

/* ---- access ---- */

void path_machine_access(struct path_machine *machine, enum mpio_access access,
			 uint64_t pending_until_ns)
{
	if (access == MPIO_TRANSITIONING && machine->access != access)
		machine->pending_until_ns = pending_until_ns;
	machine->access = access;
}

uint8_t path_machine_rank(const struct path_machine *machine)
{
	uint8_t rank = MPIO_RANK_OPTIMIZED;

	if (machine->access == MPIO_LBA_DEPENDENT)
		rank = MPIO_RANK_LBA_DEPENDENT;
	else if (machine->access == MPIO_NON_OPTIMIZED)
		rank = MPIO_RANK_NON_OPTIMIZED;
	return machine->degraded ? rank + MPIO_RANK_DEGRADED : rank;
}

bool path_machine_active(const struct path_machine *machine)
{
	switch (machine->access) {
	case MPIO_TRANSITIONING:
	case MPIO_STANDBY:
	case MPIO_UNAVAILABLE:
	case MPIO_OFFLINE:
		return false;
	case MPIO_OPTIMIZED:
	case MPIO_NON_OPTIMIZED:
	case MPIO_LBA_DEPENDENT:
	case MPIO_ACCESS_NONE:
		break;
	}
	return true;
}

/* What a logged-in path is good for. */
static enum mpio_path_state good_for(const struct path_machine *machine, uint64_t now_ns)
{
	if (machine->access == MPIO_TRANSITIONING && now_ns < machine->pending_until_ns)
		return MPIO_PATH_PENDING;
	if (!path_machine_active(machine) || machine->no_capacity)
		return MPIO_PATH_STANDBY;
	return machine->degraded ? MPIO_PATH_DEGRADED : MPIO_PATH_UP;
}

static uint64_t look_ns(const struct path_machine *machine, const struct mpio_config *config)
{
	uint64_t at_ns = UINT64_MAX;

	if (machine->state == MPIO_PATH_PENDING)
		at_ns = machine->pending_until_ns;
	if (machine->degraded)
		at_ns =
		    MIN_OF(at_ns, machine->marked_ns + machine->marks * config->marginal_forget_ns);
	return at_ns;
}

/* ---- the machine ---- */

enum { DROPS_APART_NS = 1000 * 1000 * 1000 };

static void came_down(struct path_machine *machine, const struct mpio_config *config,
		      uint64_t now_ns, struct rng *rng, struct path_output *out)
{
	bool removed = machine->missing && machine->state == MPIO_PATH_CONNECTING;

	if (mpio_path_logged_in(machine->state))
		path_machine_mark(machine, config, now_ns);
	out->reconnect = true;
	out->reconnect_after_ns = path_backoff_ns(machine->failures, config, rng);
	if (machine->failures < UINT32_MAX)
		machine->failures++;
	if (removed)
		out->reconnect_after_ns = config->reconnect_max_ns;
	machine->state = removed ? MPIO_PATH_REMOVED : MPIO_PATH_DOWN;
}

/* At once, unless it happens again and again. */
static void dropped(struct path_machine *machine, const struct mpio_config *config, uint64_t now_ns,
		    struct rng *rng, struct path_output *out)
{
	bool again = machine->dropped && now_ns - machine->dropped_ns < DROPS_APART_NS;

	out->reconnect = true;
	out->reconnect_after_ns = again ? path_backoff_ns(0, config, rng) : 0;
	machine->dropped = true;
	machine->dropped_ns = now_ns;
	machine->state = MPIO_PATH_DOWN;
}

static void came_up(struct path_machine *machine, const struct mpio_config *config, uint64_t now_ns)
{
	machine->failures = 0;
	machine->missing = false;
	forget(machine, config, now_ns);
	machine->state = good_for(machine, now_ns);
}

struct path_output path_machine_step(struct path_machine *machine, enum path_input input,
				     const struct mpio_config *config, uint64_t now_ns,
				     struct rng *rng)
{
	struct path_output out = {.from = machine->state};

	switch (input) {
	case PATH_INPUT_CONNECT:
		assert(machine->state == MPIO_PATH_DOWN || machine->state == MPIO_PATH_WRONG_LU ||
		       machine->state == MPIO_PATH_REMOVED);
		machine->state = MPIO_PATH_CONNECTING;
		break;
	case PATH_INPUT_UP:
		assert(machine->state == MPIO_PATH_CONNECTING);
		came_up(machine, config, now_ns);
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
		came_down(machine, config, now_ns, rng, &out);
		break;
	case PATH_INPUT_DROPPED:
		assert(machine->state != MPIO_PATH_DOWN);
		dropped(machine, config, now_ns, rng, &out);
		break;
	case PATH_INPUT_LOOK:
		assert(mpio_path_logged_in(machine->state));
		if (machine->degraded)
			forget(machine, config, now_ns);
		machine->state = good_for(machine, now_ns);
		break;
	}
	out.to = machine->state;
	out.look_ns = mpio_path_logged_in(machine->state) ? look_ns(machine, config) : UINT64_MAX;
	return out;
}
