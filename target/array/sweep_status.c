/* SPDX-License-Identifier: MIT
 *
 * Background work as an administrator sees it and has it done.
 */
#include "base/bytes.h"
#include "target/array/member.h"
#include "target/array/sweep_impl.h"

#include <errno.h>

const char *const member_state_names[] = {"healthy", "degraded", "rebuilding", "failed", NULL};
const char *const member_drive_state_names[] = {"online", "spare",  "rebuilding",
						"stale",  "failed", NULL};

static bool is_rebuilding(const struct sweep_slot *slot)
{
	return slot->step == SLOT_DRAIN || slot->step == SLOT_CLEAR || slot->step == SLOT_REBUILD ||
	       slot->step == SLOT_FLUSH;
}

enum member_state member_state(const struct member *member)
{
	const struct sweep *sweep = member->sweep;
	bool rebuilding = false;

	for (unsigned i = 0; i < sweep->config.slot_count; i++) {
		if (sweep_slack(sweep, i) < 0)
			return MEMBER_FAILED;
		rebuilding = rebuilding || is_rebuilding(&sweep->slots[i]);
	}
	if (rebuilding)
		return MEMBER_REBUILDING;
	return sweep_is_whole(sweep) ? MEMBER_HEALTHY : MEMBER_DEGRADED;
}

int member_drive_slot(const struct member *member, unsigned drive)
{
	const struct sweep *sweep = member->sweep;
	for (unsigned i = 0; i < sweep->config.slot_count; i++)
		if (sweep->slots[i].drive == drive)
			return (int)i;
	return -1;
}

enum member_drive_state member_drive_state(const struct member *member, unsigned drive)
{
	const struct sweep *sweep = member->sweep;
	int index = member_drive_slot(member, drive);

	if (sweep->config.drives[drive]->failed)
		return MEMBER_DRIVE_FAILED;
	if (index < 0)
		return MEMBER_DRIVE_SPARE;
	const struct sweep_slot *slot = &sweep->slots[index];
	if (is_rebuilding(slot))
		return MEMBER_DRIVE_REBUILDING;
	return slot->stale ? MEMBER_DRIVE_STALE : MEMBER_DRIVE_ONLINE;
}

bool member_drive_is_good(const struct member *member, unsigned index)
{
	return index < member->drive_count &&
	       member_drive_state(member, index) == MEMBER_DRIVE_ONLINE;
}

void member_rebuild_progress(const struct member *member, struct rebuild_progress *ret_progress)
{
	const struct sweep *sweep = member->sweep;
	const struct sweep_slot *slot = sweep_first_rebuild(sweep);
	struct rebuild_progress progress = {
	    .paused = sweep->paused,
	    .completed = sweep->rebuilds,
	    .remaining_ns = UINT64_MAX,
	};

	for (unsigned i = 0; i < sweep->config.slot_count; i++)
		progress.waiting += &sweep->slots[i] != slot && sweep->slots[i].step != SLOT_GOOD;
	if (slot) {
		uint64_t set_rate, set_bytes = sweep->config.set->size_bytes;
		const struct drive *drive = slot_drive(slot);
		uint64_t drive_bytes = (drive ? drive : sweep->config.drives[0])->layer.size_bytes;
		progress.running = true;
		progress.slot = (unsigned)(slot - sweep->slots);
		progress.drive = slot->drive;
		progress.lost_bytes = slot->lost_units * sweep->unit_bytes;
		sweep_meter_tell(&slot->meter, sweep_now(sweep),
				 slot->all_units ? set_bytes : sweep_used_bytes(sweep),
				 &progress.percent, &set_rate, &progress.remaining_ns);
		progress.bytes_per_s =
		    (uint64_t)((double)set_rate * (double)drive_bytes / (double)set_bytes);
	}
	*ret_progress = progress;
}

void member_scrub_progress(const struct member *member, struct scrub_progress *ret_progress)
{
	const struct sweep *sweep = member->sweep;

	*ret_progress = sweep->scrub;
	ret_progress->paused = sweep->paused;
	ret_progress->remaining_ns = UINT64_MAX;
	if (!sweep->scrub.running) {
		ret_progress->percent = sweep->scrub.completed ? 100 : 0;
		return;
	}
	ret_progress->waiting = !sweep_is_whole(sweep) || sweep_first_rebuild(sweep);
	sweep_meter_tell(&sweep->scrub_meter, sweep_now(sweep), sweep_used_bytes(sweep),
			 &ret_progress->percent, &ret_progress->bytes_per_s,
			 &ret_progress->remaining_ns);
}

int member_scrub_start(struct member *member)
{
	return sweep_scrub_start(member->sweep);
}

void member_scrub_stop(struct member *member)
{
	sweep_scrub_stop(member->sweep);
}

void member_background_pause(struct member *member, bool paused)
{
	member->sweep->paused = paused;
	sweep_wake(member->sweep, 0);
}

void member_set_rebuild_rate(struct member *member, uint64_t bytes_per_s)
{
	struct sweep *sweep = member->sweep;
	sweep->config.rate_bytes_per_s = bytes_per_s;
	sweep->pay_ns = 0;
	sweep_wake(sweep, 0);
}
