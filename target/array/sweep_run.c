/* SPDX-License-Identifier: MIT
 *
 * Hands units to the set: which comes next, how many at a time, how fast.
 */
#include "target/array/sweep_impl.h"

#include <assert.h>
#include <errno.h>

#include "base/bytes.h"

enum {
	TURN_BYTES = 2 << 20, /* moved before the loop gets its turn again */
	TURN_UNITS = 256,
	BUSY_RETRY_NS = 1000000,
	MARK_NS = 1000000000,
};

#define DIRTY_WAIT_NS	  (5 * NS_PER_S)
#define DIRTY_WAIT_MAX_NS (640 * NS_PER_S)

/* ---- the meter ---- */

void sweep_meter_start(struct sweep_meter *meter, uint64_t now_ns)
{
	*meter = (struct sweep_meter){.start_ns = now_ns, .mark_ns = now_ns};
}

void sweep_meter_add(struct sweep_meter *meter, uint64_t now_ns, uint64_t bytes)
{
	meter->done_bytes += bytes;
	if (now_ns - meter->mark_ns < MARK_NS)
		return;
	double rate = (double)(meter->done_bytes - meter->mark_bytes) * (double)NS_PER_S /
		      (double)(now_ns - meter->mark_ns);
	if (meter->bytes_per_s)
		rate = (3 * (double)meter->bytes_per_s + rate) / 4;
	meter->bytes_per_s = (uint64_t)rate;
	meter->mark_ns = now_ns;
	meter->mark_bytes = meter->done_bytes;
}

void sweep_meter_tell(const struct sweep_meter *meter, uint64_t now_ns, uint64_t total_bytes,
		      double *ret_percent, uint64_t *ret_bytes_per_s, uint64_t *ret_remaining_ns)
{
	uint64_t rate = meter->bytes_per_s, done = MIN_OF(meter->done_bytes, total_bytes);

	if (!rate && now_ns > meter->start_ns)
		rate = (uint64_t)((double)done * (double)NS_PER_S /
				  (double)(now_ns - meter->start_ns));
	*ret_percent = total_bytes ? 100.0 * (double)done / (double)total_bytes : 100;
	*ret_bytes_per_s = rate;
	*ret_remaining_ns = UINT64_MAX;
	if (rate)
		*ret_remaining_ns =
		    (uint64_t)((double)(total_bytes - done) * (double)NS_PER_S / (double)rate);
}

/* ---- ends ---- */

static void charge(struct sweep *sweep, uint64_t bytes)
{
	uint64_t rate = sweep->config.rate_bytes_per_s, now = sweep_now(sweep);

	sweep->turn_bytes += bytes;
	if (rate)
		sweep->pay_ns = MAX_OF(sweep->pay_ns, now) +
				(uint64_t)((double)bytes * (double)NS_PER_S / (double)rate);
}

static void rebuild_unit_done(struct sweep *sweep, const struct raid_unit *unit)
{
	struct sweep_slot *slot = &sweep->slots[unit->slot];
	int status = unit->status;

	slot->in_flight--;
	if (slot->anew)
		return;
	if (status == -ENODEV) {
		slot->anew = true;
		return;
	}
	/* With too many drives out it says nothing about the place: later, when one is back. */
	if (status == -EBUSY || (status && sweep_slack(sweep, unit->slot) < 0)) {
		slot->cursor = MIN_OF(slot->cursor, unit->unit);
		return;
	}
	slot->lost_units += status != 0;
	sweep_meter_add(&slot->meter, sweep_now(sweep), sweep->unit_bytes);
}

static void unit_done(struct raid_unit *unit)
{
	struct sweep_run *run = container_of(unit, struct sweep_run, unit);
	struct sweep *sweep = run->sweep;

	sweep->in_flight--;
	charge(sweep, unit->moved_bytes);
	if (unit->status == -EBUSY)
		sweep->retry_ns = sweep_now(sweep) + BUSY_RETRY_NS;
	if (unit->kind == RAID_UNIT_REBUILD)
		rebuild_unit_done(sweep, unit);
	else if (run->generation)
		sweep_scrub_unit_done(sweep, run);
	else if (unit->status == -EBUSY)
		sweep->dirty_from = MIN_OF(sweep->dirty_from, unit->unit);
	run->next = sweep->idle;
	sweep->idle = run;
	sweep_wake(sweep, 0);
}

/* ---- beginnings ---- */

static void unit_start(struct sweep *sweep, enum raid_unit_kind kind, unsigned slot, uint64_t unit,
		       uint64_t generation)
{
	struct sweep_run *run = sweep->idle;

	sweep->idle = run->next;
	run->sweep = sweep;
	run->generation = generation;
	run->unit = (struct raid_unit){
	    .kind = kind,
	    .slot = slot,
	    .unit = unit,
	    .done = unit_done,
	    .owner = sweep,
	};
	sweep->in_flight++;
	sweep->config.ops->unit_run(sweep->config.set, &run->unit);
}

/* The most exposed slot that has a unit left to begin. */
static struct sweep_slot *next_rebuild(struct sweep *sweep, bool *ret_any)
{
	struct sweep_slot *best = NULL;
	int least = 0;

	*ret_any = false;
	for (unsigned i = 0; i < sweep->config.slot_count; i++) {
		struct sweep_slot *slot = &sweep->slots[i];
		*ret_any = *ret_any || slot->step == SLOT_REBUILD || slot->step == SLOT_FLUSH;
		if (slot->step != SLOT_REBUILD || slot->anew || slot_failed(slot))
			continue;
		/* Below 0 nothing can be worked out, nor moved back: tried again at once, it would
		 * fail again at once. */
		int slack = sweep_slack(sweep, i);
		if (slack >= 0 && slot->moving_back)
			slack = RAID_DRIVES_MAX;
		if (slack < 0 || (best && slack >= least))
			continue;
		slot->cursor = slot_next_unit(slot);
		if (slot->cursor >= sweep->unit_count)
			continue;
		best = slot;
		least = slack;
	}
	return best;
}

/* Places where a write failed half-way: what can be cured is cured without waiting for a scrub. */
static bool dirty_start(struct sweep *sweep)
{
	const struct raid_ops *ops = sweep->config.ops;

	if (sweep->dirty_from == UINT64_MAX || !ops->dirty_unit)
		return false;
	uint64_t unit = ops->dirty_unit(sweep->config.set, sweep->dirty_from);
	sweep->dirty_from = unit == UINT64_MAX ? unit : unit + 1;
	if (unit == UINT64_MAX)
		return false;
	unit_start(sweep, RAID_UNIT_VERIFY, 0, unit, 0);
	return true;
}

void sweep_dirty(struct sweep *sweep)
{
	if (sweep->dirty_due_ns || !sweep->config.ops->dirty_unit)
		return;
	sweep->dirty_wait_ns = DIRTY_WAIT_NS;
	sweep->dirty_due_ns = sweep_now(sweep) + DIRTY_WAIT_NS;
	sweep_wake(sweep, sweep->dirty_due_ns);
}

void sweep_dirty_turn(struct sweep *sweep)
{
	uint64_t now = sweep_now(sweep);

	if (!sweep->dirty_due_ns)
		return;
	if (now >= sweep->dirty_due_ns) {
		sweep->dirty_from = 0;
		sweep->dirty_wait_ns = MIN_OF(2 * sweep->dirty_wait_ns, DIRTY_WAIT_MAX_NS);
		sweep->dirty_due_ns =
		    sweep->config.ops->dirty_unit(sweep->config.set, 0) == UINT64_MAX
			? 0
			: now + sweep->dirty_wait_ns;
	}
	if (sweep->dirty_due_ns)
		sweep_wake(sweep, sweep->dirty_due_ns);
}

static bool start_one(struct sweep *sweep)
{
	bool rebuilding;
	struct sweep_slot *slot = next_rebuild(sweep, &rebuilding);

	if (slot) {
		slot->in_flight++;
		unit_start(sweep, RAID_UNIT_REBUILD, (unsigned)(slot - sweep->slots),
			   slot->cursor++, 0);
		return true;
	}
	if (dirty_start(sweep))
		return true;
	if (rebuilding || !sweep->scrub.running || !sweep_is_whole(sweep))
		return false;
	sweep->scrub_cursor = sweep_next_unit(sweep, sweep->scrub_cursor);
	if (sweep->scrub_cursor >= sweep->unit_count)
		return false;
	sweep->scrub_in_flight++;
	unit_start(sweep, RAID_UNIT_VERIFY, 0, sweep->scrub_cursor++, sweep->scrub_generation);
	return true;
}

void sweep_pump(struct sweep *sweep)
{
	sweep->turn_bytes = 0;
	if (sweep->paused)
		return;
	for (unsigned units = 0; sweep->in_flight < sweep->config.window; units++) {
		uint64_t now = sweep_now(sweep), ready = MAX_OF(sweep->pay_ns, sweep->retry_ns);
		if (now < ready) {
			sweep_wake(sweep, ready);
			return;
		}
		if (units >= TURN_UNITS || sweep->turn_bytes >= TURN_BYTES) {
			sweep_wake(sweep, 0);
			return;
		}
		if (!start_one(sweep))
			return;
	}
}
