/* SPDX-License-Identifier: MIT
 *
 * The read-back at the end: every sector whose content is known.
 */
#include <errno.h>

#include "base/bytes.h"
#include "harness/workload/replay_impl.h"

enum { READ_BACK_SECTORS = 128, READ_BACK_DEPTH = 8 };

static void tell_progress(struct replay *replay)
{
	const struct workload_check *check = &replay->base.check;

	if (check->pages_written)
		replay->base.progress =
		    MIN_OF(1.0, (double)(check->pages_read_back + check->pages_not_readable) /
				    (double)check->pages_written);
}

/* No path is left: what has not been read cannot be. */
static void give_up(struct replay_device *device)
{
	uint64_t count;

	while ((count = sector_map_next(&device->map, &device->next_sector, READ_BACK_SECTORS))) {
		device->replay->base.check.pages_not_readable +=
		    sector_map_known(&device->map, device->next_sector, count);
		device->next_sector += count;
	}
}

/* True: all of it has been asked for. */
static bool read_device(struct replay_device *device)
{
	if (device->gone)
		give_up(device);
	while (!device->replay->stopping && device->active_count < READ_BACK_DEPTH) {
		uint64_t first = device->next_sector;
		uint64_t count = sector_map_next(&device->map, &first, READ_BACK_SECTORS);

		if (!count)
			return true;
		device->next_sector = first + count;
		if (replay_read_back(device, first, count))
			continue;
		/* Others have all there is: when one of them has ended it is tried again. */
		device->next_sector = first;
		return false;
	}
	return device->replay->stopping;
}

void replay_verify_go_on(struct replay *replay)
{
	workload_fn verified = replay->verified;
	bool all = true;

	if (replay->reading) /* one that ends at once leaves the work to the outer call */
		return;
	replay->reading = true;
	for (unsigned d = 0; d < replay->env.device_count; d++)
		all &= read_device(&replay->devices[d]);
	replay->reading = false;
	tell_progress(replay);
	if (!all || replay->in_flight || !verified)
		return;
	replay->verified = NULL;
	if (!replay->stopping)
		replay->base.progress = 1;
	verified(replay->verified_arg, replay->stopping ? -ECANCELED : 0);
}

void replay_verify(struct workload *workload, workload_fn done, void *arg)
{
	struct replay *replay = container_of(workload, struct replay, base);

	replay->stopping = false;
	replay->base.progress = 0;
	replay->verified = done;
	replay->verified_arg = arg;
	replay_verify_go_on(replay);
}
