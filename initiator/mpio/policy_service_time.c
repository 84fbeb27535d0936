/* SPDX-License-Identifier: MIT
 *
 * Service time, by the rule of Linux' dm-service-time: the path on which the request would end
 * first, that is with the least (bytes in flight + the request's) / relative throughput.  A
 * throughput of 0 means only when there is no other path.  As there, only this device's bytes are
 * counted.
 */
#include "base/bytes.h"
#include "initiator/mpio/policy.h"

struct service_time {
	unsigned next;
};

static void init(void *state, const struct mpio_config *config, const struct slice_map *slices) {}

/* bytes_a / throughput_a < bytes_b / throughput_b, multiplied out.  Requests without data count a
 * block, so that throughput decides between idle paths for them, too. */
static bool better(const struct mpio_path_view *a, const struct mpio_path_view *b, const void *arg)
{
	const struct mpio_ask *ask = arg;
	uint64_t bytes = MAX_OF(ask->length_bytes, UINT64_C(512));

	if (!a->throughput || !b->throughput)
		return a->throughput > b->throughput ||
		       (a->throughput == b->throughput && a->in_flight_bytes < b->in_flight_bytes);
	return (a->in_flight_bytes + bytes) * b->throughput <
	       (b->in_flight_bytes + bytes) * a->throughput;
}

static int select_path(void *state, const struct mpio_path_view *paths, unsigned count,
		       const struct mpio_ask *ask)
{
	struct service_time *service = state;

	return mpio_best_path(paths, count, &service->next, better, ask);
}

const struct mpio_policy mpio_policy_service_time = {
    .name = "service-time",
    .help = "least bytes in flight for its relative `throughput`, as dm-service-time",
    .state_bytes = sizeof(struct service_time),
    .init = init,
    .select = select_path,
};
