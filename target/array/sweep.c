/* SPDX-License-Identifier: MIT
 *
 * What becomes of each slot of a set:
 *
 *   good -> (drive failed, update missed) -> wait -> clear -> rebuild -> flush -> good
 *
 * A failure on the way goes back to `wait`, from where another drive may be taken.  sweep_turn
 * moves every slot on that can be moved; it is pure but for the requests it starts.
 */
#include "target/array/sweep_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/log.h"

/* Rebuilds in place that come to nothing before only a change of drives helps. */
enum { ATTEMPTS_MAX = 4, DRAIN_POLL_NS = 1000000 };

/* ---- the set as a whole ---- */

int sweep_slack(const struct sweep *sweep, unsigned slot)
{
	unsigned width = sweep->protection.group_drives, base = slot / width * width;
	int out = 0;

	for (unsigned i = base; i < base + width && i < sweep->config.slot_count; i++)
		out += slot_out(&sweep->slots[i]);
	return (int)sweep->protection.tolerance - out;
}

bool sweep_is_whole(const struct sweep *sweep)
{
	for (unsigned i = 0; i < sweep->config.slot_count; i++)
		if (slot_out(&sweep->slots[i]))
			return false;
	return true;
}

static bool rebuild_runs(const struct sweep_slot *slot)
{
	return slot->step == SLOT_REBUILD || slot->step == SLOT_FLUSH;
}

struct sweep_slot *sweep_first_rebuild(const struct sweep *sweep)
{
	const struct sweep_slot *best = NULL;
	int least = 0;

	for (unsigned i = 0; i < sweep->config.slot_count; i++) {
		const struct sweep_slot *slot = &sweep->slots[i];
		if (!rebuild_runs(slot))
			continue;
		/* Moving back restores no redundancy: it comes last. */
		int slack = slot->moving_back ? RAID_DRIVES_MAX : sweep_slack(sweep, i);
		if (slack < 0 && best)
			continue; /* nothing can be worked out there now */
		if (!best || slack < least || least < 0) {
			best = slot;
			least = slack;
		}
	}
	return (struct sweep_slot *)best;
}

uint64_t sweep_next_unit(const struct sweep *sweep, uint64_t unit)
{
	const struct sweep_config *config = &sweep->config;
	if (!config->next_used || unit >= sweep->unit_count)
		return unit;
	uint64_t used = config->next_used(config->arg, unit * sweep->unit_bytes);
	if (used == UINT64_MAX)
		return sweep->unit_count;
	return MIN_OF(MAX_OF(unit, used / sweep->unit_bytes), sweep->unit_count);
}

uint64_t sweep_used_bytes(const struct sweep *sweep)
{
	const struct sweep_config *config = &sweep->config;
	return config->used_bytes ? config->used_bytes(config->arg) : config->set->size_bytes;
}

/* ---- drives for slots ---- */

static struct sweep_slot *slot_of_drive(struct sweep *sweep, unsigned drive)
{
	for (unsigned i = 0; i < sweep->config.slot_count; i++)
		if (sweep->slots[i].drive == drive)
			return &sweep->slots[i];
	return NULL;
}

static unsigned slot_index(const struct sweep_slot *slot)
{
	return (unsigned)(slot - slot->sweep->slots);
}

/* A drive that has no slot, is there, and is large enough; SWEEP_NO_DRIVE: none. */
static unsigned find_spare(struct sweep *sweep, const struct sweep_slot *slot)
{
	uint64_t least = UINT64_MAX;
	for (unsigned i = 0; i < sweep->config.slot_count; i++) {
		const struct drive *drive = slot_drive(&sweep->slots[i]);
		least = drive ? MIN_OF(least, drive->layer.size_bytes) : least;
	}
	/* From the end, where the lab file's spares are; a drive whose slot is on distributed spare
	 * space is kept for that slot. */
	unsigned end = sweep->protection.distributed_spares ? sweep->config.slot_count : 0;
	for (unsigned i = sweep->config.drive_count; i > end; i--) {
		const struct drive *drive = sweep->config.drives[i - 1];
		if (!drive->failed && drive->layer.size_bytes >= least &&
		    !slot_of_drive(sweep, i - 1))
			return i - 1;
	}
	return SWEEP_NO_DRIVE;
}

/* The distributed spare that is free, plus one; 0: none. */
static unsigned find_spare_space(const struct sweep *sweep)
{
	uint64_t taken = 0;
	for (unsigned i = 0; i < sweep->config.slot_count; i++)
		taken |= UINT64_C(1) << sweep->slots[i].spare;
	for (unsigned spare = 1; spare <= sweep->protection.distributed_spares; spare++)
		if (!(taken >> spare & 1))
			return spare;
	return 0;
}

/* The drive that a slot on spare space waits for, when it is there. */
static bool home_is_free(struct sweep *sweep, unsigned slot)
{
	return !sweep->config.drives[slot]->failed && !slot_of_drive(sweep, slot);
}

/* ---- steps ---- */

static void slot_wait(struct sweep_slot *slot, uint64_t delay_ns)
{
	slot->step = SLOT_WAIT;
	slot->due_ns = sweep_now(slot->sweep) + delay_ns;
	sweep_wake(slot->sweep, slot->due_ns);
}

/* A rebuild came to nothing. */
static void slot_give_up(struct sweep_slot *slot)
{
	slot->attempts++;
	slot->anew = false;
	slot->stale = true;
	if (slot->moving_back) { /* the spare space has all there is */
		slot->moving_back = false;
		slot->drive = SWEEP_NO_DRIVE;
		slot->stale = false;
	}
	/* Not at once again: what ails the drive may pass, and the spare delay may be 0. */
	slot_wait(slot, MAX_OF(slot->sweep->config.spare_delay_ns, NS_PER_S));
}

static void slot_rebuild(struct sweep_slot *slot)
{
	struct sweep *sweep = slot->sweep;
	struct drive *drive = slot_drive(slot);

	sweep->config.ops->slot_replace(sweep->config.set, slot_index(slot), drive);
	slot->step = SLOT_REBUILD;
	slot->cursor = 0;
	slot->lost_units = 0;
	sweep_meter_start(&slot->meter, sweep_now(sweep));
	log_info("member %s: slot %u is being rebuilt onto %s", sweep->config.name,
		 slot_index(slot), drive ? drive->name : "distributed spare space");
	sweep_wake(sweep, 0);
}

static void clear_done(struct io *io)
{
	struct sweep_slot *slot = io->owner;
	slot->in_flight--;
	if (io->status)
		slot->anew = true;
	sweep_wake(slot->sweep, 0);
}

/* What the drive holds may be anything, but places not in use are not rebuilt: they must be zeros
 * as on the other drives.  Reads that began while it was trusted must not find them. */
static void slot_clear(struct sweep_slot *slot)
{
	slot->anew = false;
	slot->stale = true;
	slot->step = SLOT_DRAIN;
	sweep_wake(slot->sweep, 0);
}

static void slot_drained(struct sweep_slot *slot)
{
	struct drive *drive = slot_drive(slot);

	if (drive && drive->in_flight > 0) {
		sweep_wake(slot->sweep, sweep_now(slot->sweep) + DRAIN_POLL_NS);
		return;
	}
	slot->step = SLOT_CLEAR;
	if (!drive)
		return;
	slot->in_flight++;
	slot->io = (struct io){
	    .op = IO_UNMAP,
	    .length_bytes = drive->layer.size_bytes,
	    .done = clear_done,
	    .owner = slot,
	};
	io_submit(&drive->layer, &slot->io);
}

static bool record_drive(struct sweep_slot *slot, unsigned drive)
{
	struct sweep *sweep = slot->sweep;
	const struct sweep_config *config = &sweep->config;

	if (!config->assign || config->assign(config->arg, slot_index(slot), drive) == 0)
		return true;
	if (!sweep->warned)
		log_warn("member %s: cannot record which drive takes slot %u: no rebuild",
			 config->name, slot_index(slot));
	sweep->warned = true;
	return false;
}

/* DRIVE: of the member, or SWEEP_NO_DRIVE for spare space. */
static void slot_assign(struct sweep_slot *slot, unsigned drive)
{
	struct sweep *sweep = slot->sweep;
	const struct sweep_config *config = &sweep->config;
	unsigned spare = drive == SWEEP_NO_DRIVE ? find_spare_space(sweep) : 0;

	if (!record_drive(slot, drive))
		return;
	slot->drive = drive;
	slot->spare = spare;
	slot->all_units = spare && (config->spares_used || sweep->spares_used >> spare & 1);
	sweep->spares_used |= spare ? UINT64_C(1) << spare : 0;
	slot->attempts = 0;
	slot->erred = false;
	slot_clear(slot);
}

/* Out, and the time to wait for the drive is over or it is back. */
static void slot_choose(struct sweep_slot *slot)
{
	struct sweep *sweep = slot->sweep;
	bool here = !slot_failed(slot), due = sweep_now(sweep) >= slot->due_ns;

	if (!slot_out(slot)) {
		if (due || slot->drive != SWEEP_NO_DRIVE)
			slot->step = SLOT_GOOD;
		return;
	}
	/* Nothing can be worked out; a drive that was only pulled may come back and cure it. */
	if (sweep_slack(sweep, slot_index(slot)) < 0)
		return;
	if (slot->drive == SWEEP_NO_DRIVE && home_is_free(sweep, slot_index(slot))) {
		slot_assign(slot, slot_index(slot));
		return;
	}
	if (here && !slot->erred && slot->attempts == 0) {
		slot_clear(slot);
		return;
	}
	if (!due)
		return;
	unsigned spare = find_spare(sweep, slot);
	if (spare != SWEEP_NO_DRIVE)
		slot_assign(slot, spare);
	else if (slot_failed(slot) && find_spare_space(sweep))
		slot_assign(slot, SWEEP_NO_DRIVE);
	else if (here && slot->attempts < ATTEMPTS_MAX)
		slot_clear(slot);
}

static void flush_done(struct io *io)
{
	struct sweep_slot *slot = io->owner;
	slot->in_flight--;
	if (io->status)
		slot->anew = true;
	sweep_wake(slot->sweep, 0);
}

/* The rebuilt content has to be as stable as what it stands in for before the set relies on it. */
static void slot_flush(struct sweep_slot *slot)
{
	const struct sweep_config *config = &slot->sweep->config;
	struct drive *drive = slot_drive(slot);

	slot->step = SLOT_FLUSH;
	slot->in_flight++;
	slot->io = (struct io){.op = IO_FLUSH, .done = flush_done, .owner = slot};
	io_submit(drive ? &drive->layer : config->set, &slot->io);
}

static void slot_finish(struct sweep_slot *slot)
{
	struct sweep *sweep = slot->sweep;
	const struct sweep_config *config = &sweep->config;

	if (slot->moving_back && !record_drive(slot, slot->drive)) {
		slot_give_up(slot);
		return;
	}
	/* Not recorded, it would be rebuilt again after a restart; until then it serves. */
	if (config->fresh && config->fresh(config->arg, slot_index(slot)))
		log_warn("member %s: cannot record that slot %u is rebuilt", config->name,
			 slot_index(slot));
	if (slot->lost_units)
		log_warn("member %s: %llu stripes of slot %u could not be worked out", config->name,
			 (unsigned long long)slot->lost_units, slot_index(slot));
	config->ops->slot_good(config->set, slot_index(slot));
	slot->step = SLOT_GOOD;
	slot->stale = false;
	slot->erred = false;
	if (slot->drive != SWEEP_NO_DRIVE)
		slot->spare = 0;
	slot->moving_back = false;
	sweep->dirty_from = 0;
	slot->attempts = 0;
	sweep->rebuilds++;
	log_info("member %s: slot %u is rebuilt", config->name, slot_index(slot));
}

/* ---- distributed spare space is left when the drive is back ---- */

static void slot_move_back(struct sweep_slot *slot)
{
	struct sweep *sweep = slot->sweep;
	unsigned home = slot_index(slot);

	if (slot->drive != SWEEP_NO_DRIVE || slot->attempts >= ATTEMPTS_MAX ||
	    !home_is_free(sweep, home))
		return;
	slot->all_units = false;
	/* Recorded when it is done: until then the spare space takes all updates as well. */
	slot->moving_back = true;
	slot->drive = home;
	slot_clear(slot);
}

/* ---- turns ---- */

static void slot_turn(struct sweep_slot *slot)
{
	struct sweep *sweep = slot->sweep;
	bool lost = slot_failed(slot) || slot->anew;

	switch (slot->step) {
	case SLOT_GOOD:
		if (slot_out(slot))
			slot_wait(slot, sweep->config.spare_delay_ns);
		else
			slot_move_back(slot);
		break;
	case SLOT_WAIT:
		slot_choose(slot);
		break;
	case SLOT_DRAIN:
		if (lost)
			slot_give_up(slot);
		else
			slot_drained(slot);
		break;
	case SLOT_CLEAR:
		if (slot->in_flight > 0)
			break;
		if (lost)
			slot_give_up(slot);
		else
			slot_rebuild(slot);
		break;
	case SLOT_REBUILD:
		if (slot->in_flight > 0)
			break;
		slot->cursor = slot_next_unit(slot);
		if (lost)
			slot_give_up(slot);
		else if (slot->cursor >= sweep->unit_count)
			slot_flush(slot);
		break;
	case SLOT_FLUSH:
		if (slot->in_flight > 0)
			break;
		if (lost)
			slot_give_up(slot);
		else
			slot_finish(slot);
		break;
	}
}

static void sweep_turn(void *arg)
{
	struct sweep *sweep = arg;
	const struct sweep_config *config = &sweep->config;

	for (unsigned i = 0; i < config->slot_count; i++) {
		enum slot_step before;
		do {
			before = sweep->slots[i].step;
			slot_turn(&sweep->slots[i]);
		} while (sweep->slots[i].step != before);
	}
	sweep_scrub_turn(sweep);
	sweep_dirty_turn(sweep);
	sweep_pump(sweep);
	uint64_t now = sweep_now(sweep);
	for (unsigned i = 0; i < config->slot_count; i++)
		if (sweep->slots[i].step == SLOT_WAIT && sweep->slots[i].due_ns > now)
			sweep_wake(sweep, sweep->slots[i].due_ns);
}

void sweep_wake(struct sweep *sweep, uint64_t at_ns)
{
	if (!sweep->unit_count)
		return; /* a level without redundancy */
	at_ns = MAX_OF(at_ns, sweep_now(sweep));
	if (!loop_timer_pending(&sweep->timer) || at_ns < sweep->timer.deadline_ns)
		loop_timer_set(sweep->config.loop, &sweep->timer, at_ns);
}

void sweep_drive_changed(struct sweep *sweep, unsigned index)
{
	struct sweep_slot *slot = slot_of_drive(sweep, index);
	bool failed = sweep->config.drives[index]->failed;

	if (slot && failed && slot->step != SLOT_GOOD && slot->step != SLOT_WAIT)
		slot->anew = true; /* whatever it missed meanwhile */
	if (slot && !failed) {
		slot->attempts = 0;
		slot->erred = false;
	}
	if (!failed)
		sweep->dirty_from = 0;
	if (!failed && !slot && index < sweep->config.slot_count)
		sweep->slots[index].attempts = 0; /* its content may move back */
	sweep_wake(sweep, 0);
}

void sweep_slot_stale(struct sweep *sweep, unsigned slot)
{
	struct sweep_slot *at = &sweep->slots[slot];

	at->stale = true;
	at->erred = at->erred || !slot_failed(at);
	if (at->step != SLOT_GOOD && at->step != SLOT_WAIT)
		at->anew = true;
	sweep_wake(sweep, 0);
}

/* ---- opening ---- */

int sweep_open(const struct sweep_config *config, struct sweep **ret_sweep)
{
	struct sweep *sweep = calloc(1, sizeof *sweep);
	if (!sweep)
		return -ENOMEM;
	sweep->config = *config;
	if (!sweep->config.window)
		sweep->config.window = SWEEP_WINDOW;
	sweep->config.window = MIN_OF(sweep->config.window, SWEEP_WINDOW_MAX);
	sweep->protection = config->ops->protection(config->slot_count);
	loop_timer_init(&sweep->timer, sweep_turn, sweep);
	for (unsigned i = 0; i < config->slot_count; i++) {
		sweep->slots[i].sweep = sweep;
		sweep->slots[i].drive = config->slot_drive[i];
		if (config->slot_drive[i] == SWEEP_NO_DRIVE)
			sweep->slots[i].spare = find_spare_space(sweep);
		sweep->slots[i].all_units = sweep->slots[i].spare > 0;
		sweep->slots[i].stale = config->stale_mask >> i & 1;
	}
	for (unsigned i = 0; i < sweep->config.window; i++) {
		sweep->runs[i].next = sweep->idle;
		sweep->idle = &sweep->runs[i];
	}
	sweep->unit_count = config->ops->unit_count ? config->ops->unit_count(config->set) : 0;
	if (sweep->unit_count) {
		sweep->unit_bytes = config->set->size_bytes / sweep->unit_count;
		sweep->scrub_due_ns =
		    config->scrub_every_ns ? sweep_now(sweep) + config->scrub_every_ns : 0;
		sweep_wake(sweep, 0);
		if (config->ops->dirty_unit &&
		    config->ops->dirty_unit(config->set, 0) != UINT64_MAX)
			sweep_dirty(sweep);
	}
	*ret_sweep = sweep;
	return 0;
}

struct sweep *sweep_close(struct sweep *sweep)
{
	if (!sweep)
		return NULL;
	assert(sweep->in_flight == 0);
	loop_timer_cancel(sweep->config.loop, &sweep->timer);
	free(sweep);
	return NULL;
}
