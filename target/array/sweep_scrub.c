/* SPDX-License-Identifier: MIT
 *
 * The book of a scrub: where it stands and what it found.
 */
#include "target/array/sweep_impl.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/log.h"

static void note_place(struct sweep *sweep, const struct raid_unit *unit)
{
	struct scrub_progress *scrub = &sweep->scrub;
	bool lost = unit->status != 0;

	scrub->units_repaired += unit->repaired > 0;
	scrub->units_inconsistent += unit->inconsistent;
	scrub->units_lost += lost;
	if (!unit->repaired && !unit->inconsistent && !lost)
		return;
	if (scrub->place_count == SCRUB_PLACES_MAX)
		return;
	scrub->places[scrub->place_count++] = (struct scrub_place){
	    .offset_bytes = unit->unit * sweep->unit_bytes,
	    .length_bytes = sweep->unit_bytes,
	    .repaired = unit->repaired,
	    .inconsistent = unit->inconsistent,
	    .lost = lost,
	};
}

void sweep_scrub_unit_done(struct sweep *sweep, const struct sweep_run *run)
{
	const struct raid_unit *unit = &run->unit;
	struct scrub_progress *scrub = &sweep->scrub;

	sweep->scrub_in_flight--;
	if (run->generation != sweep->scrub_generation)
		return; /* of one that was stopped */
	/* What a set that is not whole says is not about the place: again, when it is whole. */
	if (unit->status == -EBUSY || (unit->status && !sweep_is_whole(sweep))) {
		sweep->scrub_cursor = MIN_OF(sweep->scrub_cursor, unit->unit);
		return;
	}
	scrub->units_checked++;
	scrub->checked_bytes += sweep->unit_bytes;
	note_place(sweep, unit);
	sweep_meter_add(&sweep->scrub_meter, sweep_now(sweep), sweep->unit_bytes);
}

int sweep_scrub_start(struct sweep *sweep)
{
	struct scrub_progress *scrub = &sweep->scrub;

	if (!sweep->unit_count)
		return -ENOTSUP;
	if (scrub->running)
		return -EALREADY;
	*scrub = (struct scrub_progress){
	    .running = true,
	    .started_ns = sweep_now(sweep),
	    .completed = scrub->completed,
	};
	sweep->scrub_generation++;
	sweep->scrub_cursor = 0;
	sweep_meter_start(&sweep->scrub_meter, sweep_now(sweep));
	sweep_wake(sweep, 0);
	return 0;
}

void sweep_scrub_stop(struct sweep *sweep)
{
	if (!sweep->scrub.running)
		return;
	sweep->scrub.running = false;
	sweep->scrub.ended_ns = sweep_now(sweep);
	sweep->scrub_generation++;
}

static void scrub_finish(struct sweep *sweep)
{
	struct scrub_progress *scrub = &sweep->scrub;

	scrub->running = false;
	scrub->ended_ns = sweep_now(sweep);
	scrub->completed++;
	if (scrub->units_repaired || scrub->units_lost || scrub->units_inconsistent)
		log_warn(
		    "member %s: scrub found %llu stripes to repair, %llu of them inconsistent, "
		    "and %llu beyond repair",
		    sweep->config.name, (unsigned long long)scrub->units_repaired,
		    (unsigned long long)scrub->units_inconsistent,
		    (unsigned long long)scrub->units_lost);
	else
		log_info("member %s: scrub found nothing wrong", sweep->config.name);
}

void sweep_scrub_turn(struct sweep *sweep)
{
	uint64_t every = sweep->config.scrub_every_ns, now = sweep_now(sweep);

	if (sweep->scrub_due_ns && now >= sweep->scrub_due_ns) {
		(void)sweep_scrub_start(sweep); /* one that still runs does for this time */
		sweep->scrub_due_ns += every * ((now - sweep->scrub_due_ns) / every + 1);
	}
	if (sweep->scrub.running && sweep->scrub_in_flight == 0 && sweep_is_whole(sweep)) {
		sweep->scrub_cursor = sweep_next_unit(sweep, sweep->scrub_cursor);
		if (sweep->scrub_cursor >= sweep->unit_count)
			scrub_finish(sweep);
	}
	if (sweep->scrub_due_ns)
		sweep_wake(sweep, sweep->scrub_due_ns);
}
