/* SPDX-License-Identifier: MIT
 *
 * What operations on a stripe share: work space, phases, beginning and end.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "target/array/stripe_set.h"

enum { BARE_WORKS_MAX = 4096 };

/* ---- work space ---- */

static void work_free(struct stripe_work *work)
{
	free(work->legs);
	free(work->rows);
	free(work);
}

/* Only a mirror's writes do without rows: all their legs point to the caller's data. */
static bool needs_rows(const struct stripe_op *op)
{
	return !op->set->geometry.copies ||
	       (op->kind != STRIPE_WRITE && op->kind != STRIPE_UNMAP && op->kind != STRIPE_REPLAY);
}

static struct stripe_work *work_make(struct stripe_set *set, bool rows)
{
	struct stripe_work *work = calloc(1, sizeof *work);
	if (!work)
		return NULL;
	work->legs = calloc(set->legs, sizeof *work->legs);
	if (rows)
		work->rows = aligned_alloc(4096, (set->geometry.width + 1) * set->row_bytes);
	if (!work->legs || (rows && !work->rows)) {
		work_free(work);
		return NULL;
	}
	return work;
}

static struct stripe_work *work_take(struct stripe_set *set, bool rows)
{
	struct stripe_work **idle = rows ? &set->works : &set->bare_works;
	unsigned *made = rows ? &set->works_made : &set->bare_made;
	struct stripe_work *work = *idle;

	if (work) {
		*idle = work->next;
		return work;
	}
	if (*made == (rows ? set->works_limit : BARE_WORKS_MAX))
		return NULL;
	work = work_make(set, rows);
	*made += work != NULL;
	return work;
}

static void work_give(struct stripe_set *set, struct stripe_work *work)
{
	struct stripe_work **idle = work->rows ? &set->works : &set->bare_works;
	for (unsigned i = 0; i < set->legs; i++) {
		free(work->legs[i].heap);
		work->legs[i].heap = NULL;
	}
	work->next = *idle;
	*idle = work;
}

void stripe_works_free(struct stripe_set *set)
{
	assert(STAILQ_EMPTY(&set->starved) && STAILQ_EMPTY(&set->unjournaled));
	struct stripe_work **idle[] = {&set->works, &set->bare_works};
	for (size_t i = 0; i < ARRAY_SIZE(idle); i++) {
		while (*idle[i]) {
			struct stripe_work *work = *idle[i];
			*idle[i] = work->next;
			work_free(work);
		}
	}
}

/* ---- end ---- */

static void op_run(struct stripe_op *op);
static void op_granted(struct stripe_lock *lock);

/* Gives what became free to those that wait for it; a loop, not a recursion. */
static void feed(struct stripe_set *set)
{
	if (set->feeding)
		return;
	set->feeding = true;
	for (;;) {
		struct stripe_op *op = STAILQ_FIRST(&set->unjournaled);
		if (op && (set->journal.free || set->set.unrecorded)) {
			STAILQ_REMOVE_HEAD(&set->unjournaled, waiting_entry);
			stripe_write_journaled(op);
			continue;
		}
		op = STAILQ_FIRST(&set->starved);
		struct stripe_work *work = op ? work_take(set, needs_rows(op)) : NULL;
		if (!work)
			break;
		STAILQ_REMOVE_HEAD(&set->starved, waiting_entry);
		op->work = work;
		op_run(op);
	}
	set->feeding = false;
}

/* What was updated counts only as long as every drive that lacks it is known. */
static int answer(const struct stripe_op *op, int status)
{
	if (status == 0 && op->kind != STRIPE_READ && op->set->set.unrecorded)
		return -EIO;
	return raid_status(status);
}

void stripe_op_answer(struct stripe_op *op, int status)
{
	struct io *parent = op->parent;
	struct fan *fan = op->fan;
	op->parent = NULL;
	op->fan = NULL;
	fan_end(&op->set->set.parts, fan, parent, answer(op, status));
}

void stripe_op_end(struct stripe_op *op, int status)
{
	struct stripe_set *set = op->set;
	struct fan *fan = op->fan;
	struct io *parent = op->parent;
	struct raid_unit *unit = op->unit;
	struct stripe_op *then = op->then;
	uint64_t moved_bytes = op->moved_bytes;
	int rc = answer(op, status);

	if (op->retaken) {
		set->journal.retaken--;
	} else if (then) { /* it has not come to it */
		stripe_journal_not_due(&set->journal, op->record);
		op->record = NULL;
	}
	/* What some drive may lack is replayed at the next start. */
	if (op->record && !set->set.unrecorded)
		stripe_journal_release(&set->journal, op->record);
	set->replays -= op->kind == STRIPE_REPLAY;
	if (op->work)
		work_give(set, op->work);
	stripe_lock_release(&set->locks, &op->lock);
	freelist_give(&set->ops, op);
	if (!STAILQ_EMPTY(&set->unjournaled) || !STAILQ_EMPTY(&set->starved))
		feed(set);
	if (unit) {
		unit->moved_bytes += moved_bytes;
		unit->status = status;
		unit->done(unit);
	} else if (parent) {
		fan_end(&set->set.parts, fan, parent, rc);
	}
	if (then && stripe_lock_acquire(&set->locks, &then->lock))
		op_granted(&then->lock);
}

/* ---- phases ---- */

void stripe_op_state(const struct stripe_op *op, struct stripe_state *ret_state)
{
	const struct stripe_set *set = op->set;
	struct stripe_state state = {.dirty = stripe_is_dirty(&set->marks, op->at.stripe)};

	for (unsigned i = 0; i < set->geometry.width; i++) {
		struct stripe_target target = stripe_find(set, &op->at, i);
		if (!target.readable)
			state.absent |= STRIPE_BIT(i);
		if (!target.takes)
			state.out |= STRIPE_BIT(i);
	}
	state.absent |= state.out;
	state.unreadable = state.absent | op->avoid | stripe_lost(&set->marks, op->at.stripe);
	*ret_state = state;
}

static void phase_step(struct stripe_op *op)
{
	if (--op->pending == 0)
		op->phase_done(op);
}

static void leg_done(struct io *io)
{
	struct stripe_leg *leg = container_of(io, struct stripe_leg, io);
	struct stripe_op *op = leg->op;

	if (io->status && leg->twin) {
		raid_mark_stale(&op->set->set, leg->drive); /* its filling was for nothing */
	} else if (io->status) {
		op->failed |= STRIPE_BIT(leg->column);
		if (raid_is_shortage(io->status))
			op->shortage = io->status;
		else if (io->op == IO_READ && io->status != -ENODEV)
			op->cure |= STRIPE_BIT(leg->column);
	}
	phase_step(op);
}

void stripe_phase(struct stripe_op *op, uint64_t mask, void (*phase_done)(struct stripe_op *op))
{
	struct stripe_set *set = op->set;
	struct stripe_leg *legs = op->work->legs;

	op->sent = mask;
	op->failed = 0;
	op->shortage = 0;
	op->phase_done = phase_done;
	op->pending = 1 + (unsigned)__builtin_popcountll(mask) + op->twins;
	unsigned twins = op->twins;
	op->twins = 0;
	for (uint64_t left = mask; left; left &= left - 1) {
		struct stripe_leg *leg = &legs[__builtin_ctzll(left)];
		op->moved_bytes += leg->io.length_bytes;
		io_submit(&set->set.drives[leg->drive]->layer, &leg->io);
	}
	for (unsigned i = set->geometry.width; i < set->geometry.width + twins; i++) {
		op->moved_bytes += legs[i].io.length_bytes;
		io_submit(&set->set.drives[legs[i].drive]->layer, &legs[i].io);
	}
	phase_step(op);
}

void stripe_rows(const struct stripe_op *op, struct stripe_span span, uint8_t **column)
{
	for (unsigned i = 0; i < op->set->geometry.width; i++)
		column[i] = stripe_row(op, i) + span.lo;
}

struct stripe_leg *stripe_leg_fill(struct stripe_op *op, unsigned column, enum io_op kind,
				   struct stripe_span span)
{
	struct stripe_leg *leg = &op->work->legs[column];
	struct stripe_target target = stripe_find(op->set, &op->at, column);

	leg->op = op;
	leg->column = column;
	leg->drive = target.drive;
	leg->twin = false;
	if (op->work->rows)
		leg->slice[0] = (struct iovec){stripe_row(op, column) + span.lo, span.hi - span.lo};
	leg->io = (struct io){
	    .op = kind,
	    .offset_bytes = target.offset_bytes + span.lo,
	    .length_bytes = span.hi - span.lo,
	    .iov = kind == IO_UNMAP ? NULL : leg->slice,
	    .iov_count = kind == IO_UNMAP ? 0 : 1,
	    .done = leg_done,
	    .owner = op,
	};
	if (kind == IO_WRITE && op->parent)
		leg->io.flags = op->parent->flags;
	else if (kind == IO_READ && op->set->set.hollow && op->parent && op->parent->op == IO_WRITE)
		leg->io.flags = IO_BLIND; /* for parity that is not worked out */
	return leg;
}

void stripe_twins_fill(struct stripe_op *op, uint64_t mask)
{
	struct stripe_set *set = op->set;

	op->twins = 0;
	if (!(set->spared_mask & set->set.filling_mask))
		return;
	for (uint64_t left = mask; left; left &= left - 1) {
		unsigned column = (unsigned)__builtin_ctzll(left);
		struct stripe_target target = stripe_find(set, &op->at, column);
		for (unsigned i = 0; i < target.twin_count; i++) {
			struct stripe_leg *leg = &op->work->legs[set->geometry.width + op->twins++];
			leg->op = op;
			leg->column = column;
			leg->drive = target.twin[i];
			leg->twin = true;
			leg->io = op->work->legs[column].io;
		}
	}
}

void stripe_read_rows(struct stripe_op *op, uint64_t mask, struct stripe_span span,
		      void (*phase_done)(struct stripe_op *op))
{
	for (uint64_t left = mask; left; left &= left - 1)
		stripe_leg_fill(op, (unsigned)__builtin_ctzll(left), IO_READ, span);
	stripe_phase(op, mask, phase_done);
}

bool stripe_reads_failed(struct stripe_op *op)
{
	op->avoid |= op->failed;
	return op->failed != 0;
}

/* ---- beginning ---- */

static void op_run(struct stripe_op *op)
{
	switch (op->kind) {
	case STRIPE_READ:
		stripe_read_run(op);
		break;
	case STRIPE_WRITE:
		stripe_write_run(op);
		break;
	case STRIPE_UNMAP:
		stripe_unmap_run(op);
		break;
	case STRIPE_REBUILD:
		stripe_rebuild_run(op);
		break;
	case STRIPE_VERIFY:
		stripe_verify_run(op);
		break;
	case STRIPE_REPLAY:
		stripe_replay_run(op);
		break;
	}
}

static void op_granted(struct stripe_lock *lock)
{
	struct stripe_op *op = container_of(lock, struct stripe_op, lock);
	struct stripe_set *set = op->set;
	bool rows = needs_rows(op);

	if (set->journal.kept && stripe_kept_first(op))
		return;
	op->work = work_take(set, rows);
	if (op->work)
		op_run(op);
	else if ((rows ? set->works_made : set->bare_made) == 0)
		stripe_op_end(op, -ENOMEM); /* nobody will ever give any back */
	else
		STAILQ_INSERT_TAIL(&set->starved, op, waiting_entry);
}

void stripe_op_submit(struct stripe_set *set, struct stripe_op *op, uint64_t stripe,
		      struct stripe_span lock)
{
	op->set = set;
	op->at = stripe_at(&set->geometry, stripe);
	op->lock = (struct stripe_lock){
	    .stripe = stripe,
	    .lo = lock.lo,
	    .hi = lock.hi,
	    .granted = op_granted,
	};
	if (stripe_lock_acquire(&set->locks, &op->lock))
		op_granted(&op->lock);
}
