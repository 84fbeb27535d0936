/* SPDX-License-Identifier: MIT
 *
 * Background work on one stripe: a slot's column is worked out and written (rebuild, onto a new
 * drive or onto spare slots), or everything is read and what is wrong is written again (verify).
 */
#include <assert.h>
#include <errno.h>

#include "base/bytes.h"
#include "target/array/stripe_set.h"

static struct stripe_span whole_chunk(const struct stripe_op *op)
{
	return (struct stripe_span){0, op->set->geometry.chunk_bytes};
}

/* ---- rebuild ---- */

/* Does the way of a column to its place lead over SLOT's drive? */
static bool passes(const struct stripe_op *op, unsigned column, unsigned slot)
{
	const struct stripe_set *set = op->set;
	unsigned drive = stripe_place(&set->geometry, &op->at, column).drive;
	while (drive != slot && set->spared_mask >> drive & 1)
		drive = stripe_spare_drive(&set->geometry, &op->at, set->spare_of[drive] - 1);
	return drive == slot;
}

/* The column to be rebuilt and the drive it goes to.  -ENOENT: SLOT has nothing here; -ENODEV: it
 * is not, or no more, being rebuilt. */
static int rebuild_aim(struct stripe_op *op)
{
	const struct stripe_set *set = op->set;
	unsigned slot = op->unit->slot, column = 0;

	while (column < set->geometry.width && !passes(op, column, slot))
		column++;
	if (set->set.filling_mask >> slot & 1) {
		if (set->set.drives[slot]->failed)
			return -ENODEV;
	} else if (!((set->spared_mask & ~set->spare_good_mask) >> slot & 1)) {
		return -ENODEV;
	}
	if (column == set->geometry.width)
		return -ENOENT;
	op->column = column;
	op->target = slot;
	if (!(set->set.filling_mask >> slot & 1))
		op->target = stripe_find(set, &op->at, column).drive;
	return 0;
}

/* The drive with the spare slot cannot take it: then it is that drive's own rebuild that will. */
static int spare_is_out(struct stripe_op *op)
{
	struct stripe_set *set = op->set;
	if (set->set.stale_mask >> op->target & 1)
		return 0;
	if (!stripe_covers(set, STRIPE_BIT(op->target)))
		return -EIO;
	raid_mark_stale(&set->set, op->target);
	return 0;
}

static void rebuild_written(struct stripe_op *op)
{
	struct stripe_set *set = op->set;
	struct stripe_marks *marks = &set->marks;
	uint64_t bit = STRIPE_BIT(op->column), stripe = op->at.stripe;
	int status = 0;

	if (op->failed & bit && op->shortage)
		status = -EBUSY;
	else if (op->failed & bit && op->target == op->unit->slot)
		status = -ENODEV;
	else if (op->failed & bit)
		status = spare_is_out(op);
	else if (stripe_lost(marks, stripe) & bit)
		stripe_marks_set(marks, stripe, stripe_is_dirty(marks, stripe),
				 stripe_lost(marks, stripe) & ~bit);
	if (status == -ENODEV)
		raid_mark_stale(&set->set, op->target);
	stripe_op_end(op, status);
}

/* Too little is left: the column is lost until it is written, or the rest returns. */
static void rebuild_lost(struct stripe_op *op)
{
	struct stripe_set *set = op->set;
	struct stripe_marks *marks = &set->marks;
	uint64_t lost = stripe_lost(marks, op->at.stripe) | STRIPE_BIT(op->column);

	if (stripe_marks_set(marks, op->at.stripe, stripe_is_dirty(marks, op->at.stripe), lost)) {
		stripe_op_end(op, -EIO);
		return;
	}
	/* So much is lost that there is no room to note it: better no rebuild than that. */
	if (set->set.filling_mask >> op->unit->slot & 1)
		raid_mark_stale(&set->set, op->unit->slot);
	stripe_op_end(op, -ENODEV);
}

static void rebuild_reads_done(struct stripe_op *op)
{
	struct stripe_set *set = op->set;
	struct stripe_span span = whole_chunk(op);
	uint64_t bit = STRIPE_BIT(op->column);
	uint8_t *column[RAID_DRIVES_MAX];
	struct stripe_state state;

	if (stripe_reads_failed(op)) {
		if (op->shortage)
			stripe_op_end(op, -EBUSY);
		else
			stripe_rebuild_run(op);
		return;
	}
	stripe_rows(op, span, column);
	stripe_recover(&set->shape, op->plan.lost, op->plan.read_mask, column, span.hi);
	stripe_op_state(op, &state);
	uint64_t mask = stripe_make_rows(op, bit | (op->cure & ~state.absent), span);
	for (uint64_t left = mask; left; left &= left - 1)
		stripe_leg_fill(op, (unsigned)__builtin_ctzll(left), IO_WRITE, span);
	op->work->legs[op->column].drive = op->target;
	stripe_phase(op, mask, rebuild_written);
}

void stripe_rebuild_run(struct stripe_op *op)
{
	struct stripe_state state;

	int rc = rebuild_aim(op);
	if (rc == 0 && !raid_takes(&op->set->set, op->target)) {
		stripe_op_end(op, spare_is_out(op));
		return;
	}
	if (rc) {
		stripe_op_end(op, rc == -ENOENT ? 0 : rc);
		return;
	}
	stripe_op_state(op, &state);
	/* What is half-way there cannot be worked out from; when that has been written, it can. */
	state.dirty |= stripe_is_kept(op->set, op->at.stripe, whole_chunk(op));
	rc = stripe_plan_read(&op->set->shape, STRIPE_BIT(op->column), &state, &op->plan);
	if (rc)
		rebuild_lost(op);
	else
		stripe_read_rows(op, op->plan.read_mask, whole_chunk(op), rebuild_reads_done);
}

/* ---- verify ---- */

/* A unit is a row: the next set's stripe of it, or the end. */
static void verify_next(struct stripe_op *op, int status)
{
	struct stripe_set *set = op->set;
	struct raid_unit *unit = op->unit;
	uint64_t stripe = op->at.stripe + 1;

	if (status && !unit->status)
		unit->status = status;
	if (stripe % set->geometry.sets == 0) {
		stripe_op_end(op, unit->status);
		return;
	}
	unit->moved_bytes += op->moved_bytes;
	op->unit = NULL;
	stripe_op_end(op, 0);
	op = freelist_take(&set->ops);
	if (!op) {
		unit->status = -EBUSY;
		unit->done(unit);
		return;
	}
	*op = (struct stripe_op){
	    .kind = STRIPE_VERIFY,
	    .unit = unit,
	    .hi = stripe_data_bytes(&set->geometry),
	};
	stripe_op_submit(set, op, stripe, (struct stripe_span){0, set->geometry.chunk_bytes});
}

/* Is all parity either among WRITTEN or on stale drives, so that nobody can take it for true? */
static bool parity_is_known(const struct stripe_op *op, uint64_t written)
{
	const struct stripe_set *set = op->set;
	for (unsigned i = set->geometry.data; i < set->geometry.width; i++) {
		unsigned drive = stripe_find(set, &op->at, i).drive;
		if (!(written >> i & 1) && !(set->set.stale_mask >> drive & 1))
			return false;
	}
	return true;
}

static void verify_written(struct stripe_op *op)
{
	struct stripe_marks *marks = &op->set->marks;
	uint64_t written = op->sent & ~op->failed, stripe = op->at.stripe;

	op->unit->repaired += (unsigned)__builtin_popcountll(written);
	if (marks->count) {
		bool dirty = stripe_is_dirty(marks, stripe) && !parity_is_known(op, written);
		stripe_marks_set(marks, stripe, dirty, stripe_lost(marks, stripe) & ~written);
	}
	verify_next(op, op->shortage ? -EBUSY : op->failed ? -EIO : 0);
}

/* The columns to be written again, their rows made; or -EIO. */
static int verify_repair(struct stripe_op *op, const struct stripe_state *state, uint64_t *ret_fix)
{
	const struct stripe_shape *shape = &op->set->shape;
	uint64_t parity = stripe_all_mask(shape) & ~stripe_data_mask(shape);
	uint64_t lost = stripe_lost(&op->set->marks, op->at.stripe);
	struct stripe_span span = whole_chunk(op);
	struct stripe_state seen = *state;
	uint8_t *column[RAID_DRIVES_MAX];
	uint64_t fix = (op->cure | lost) & ~state->absent;

	stripe_rows(op, span, column);
	seen.unreadable |= op->failed;
	if (!seen.unreadable && !state->dirty && !stripe_fits(shape, column, span.hi)) {
		op->unit->inconsistent = true;
		fix |= parity;
	}
	if (state->dirty)
		fix |= parity & ~state->absent;
	if (!fix) {
		*ret_fix = 0;
		return 0;
	}
	/* What is wanted is everything, so that all data is known. */
	int rc =
	    stripe_plan_read(shape, seen.unreadable ? seen.unreadable : parity, &seen, &op->plan);
	if (rc)
		return rc;
	op->plan.read_mask |= op->sent & ~op->failed & stripe_data_mask(shape);
	stripe_recover(shape, op->plan.lost, op->plan.read_mask, column, span.hi);
	if (fix & parity)
		stripe_encode(shape, column, span.hi);
	*ret_fix = fix;
	return 0;
}

static void verify_reads_done(struct stripe_op *op)
{
	struct stripe_state state;
	uint64_t fix;

	if (op->shortage) {
		verify_next(op, -EBUSY);
		return;
	}
	stripe_op_state(op, &state);
	int rc = verify_repair(op, &state, &fix);
	if (rc) {
		verify_next(op, rc);
		return;
	}
	for (uint64_t left = fix; left; left &= left - 1)
		stripe_leg_fill(op, (unsigned)__builtin_ctzll(left), IO_WRITE, whole_chunk(op));
	stripe_twins_fill(op, fix);
	stripe_phase(op, fix, verify_written);
}

void stripe_verify_run(struct stripe_op *op)
{
	struct stripe_state state;

	if (stripe_is_kept(op->set, op->at.stripe, whole_chunk(op))) {
		verify_next(op, -EIO);
		return;
	}
	stripe_op_state(op, &state);
	op->avoid = 0;
	stripe_read_rows(op, stripe_mask(op->set->geometry.width) & ~state.unreadable,
			 whole_chunk(op), verify_reads_done);
}
