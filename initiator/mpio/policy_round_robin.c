/* SPDX-License-Identifier: MIT
 *
 * Round robin: every path in turn, `rr-ios` I/Os or `rr-bytes` bytes each, whichever comes first.
 * A path that is down or full is passed over and the next one gets a whole turn.
 */
#include "base/bytes.h"
#include "initiator/mpio/policy.h"

static void begin_turn(struct mpio_turns *turns, unsigned path)
{
	turns->current = path;
	turns->ios_left = turns->ios;
	turns->bytes_left = turns->bytes;
}

void mpio_turns_init(struct mpio_turns *turns, const struct mpio_config *config)
{
	turns->ios = config->rr_ios;
	turns->bytes = config->rr_bytes;
	if (!turns->ios && !turns->bytes)
		turns->ios = 1;
	begin_turn(turns, 0);
}

static bool turn_ends(struct mpio_turns *turns, uint64_t bytes)
{
	bool by_ios = turns->ios && --turns->ios_left == 0;
	bool by_bytes = turns->bytes && bytes >= turns->bytes_left;

	if (!by_bytes)
		turns->bytes_left -= turns->bytes ? bytes : 0;
	return by_ios || by_bytes;
}

int mpio_turns_take(struct mpio_turns *turns, const struct mpio_path_view *paths, unsigned count,
		    uint64_t bytes)
{
	unsigned at = turns->current;

	for (unsigned tried = 0; tried < count; tried++) {
		unsigned next = at + 1 < count ? at + 1 : 0;

		if (paths[at].usable && !paths[at].full) {
			if (tried)
				begin_turn(turns, at);
			if (turn_ends(turns, bytes))
				begin_turn(turns, next);
			return (int)at;
		}
		at = next;
	}
	return -1;
}

static void init(void *state, const struct mpio_config *config, const struct slice_map *slices)
{
	mpio_turns_init(state, config);
}

static int select_path(void *state, const struct mpio_path_view *paths, unsigned count,
		       const struct mpio_ask *ask)
{
	return mpio_turns_take(state, paths, count, ask->length_bytes);
}

const struct mpio_policy mpio_policy_round_robin = {
    .name = "round-robin",
    .help = "every path of the best access state in turn, rr-ios I/Os or rr-bytes bytes each",
    .state_bytes = sizeof(struct mpio_turns),
    .init = init,
    .select = select_path,
};
