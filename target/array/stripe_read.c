/* SPDX-License-Identifier: MIT
 *
 * Reads of columns that cannot be read directly: from the rest of the stripe.  The caller has its
 * answer before a column that answered with a medium or checksum error is written again.
 */
#include <errno.h>

#include "base/bytes.h"
#include "target/array/stripe_set.h"

uint64_t stripe_make_rows(struct stripe_op *op, uint64_t mask, struct stripe_span span)
{
	const struct stripe_shape *shape = &op->set->shape;
	uint64_t data = stripe_data_mask(shape), there = op->plan.read_mask | op->plan.lost;
	uint8_t *column[RAID_DRIVES_MAX];

	if (shape->copies)
		there |= 1; /* recovered from any other */
	if (!(mask & ~there))
		return mask;
	if ((there & data) != data)
		return mask & there;
	stripe_rows(op, span, column);
	stripe_encode(shape, column, span.hi - span.lo);
	return mask;
}

static void cured(struct stripe_op *op)
{
	stripe_op_end(op, 0);
}

/* What cannot be written stays as bad as it was. */
static void cure(struct stripe_op *op)
{
	struct stripe_state state;

	stripe_op_state(op, &state);
	uint64_t mask = op->cure & ~state.absent;
	if (mask)
		mask = stripe_make_rows(op, mask, op->plan.hull);
	for (uint64_t left = mask; left; left &= left - 1)
		stripe_leg_fill(op, (unsigned)__builtin_ctzll(left), IO_WRITE, op->plan.hull);
	stripe_phase(op, mask, cured);
}

static void read_judge(struct stripe_op *op)
{
	struct stripe_span hull = op->plan.hull;
	const struct stripe_shape *shape = &op->set->shape;
	uint8_t *column[RAID_DRIVES_MAX];

	if (stripe_reads_failed(op)) {
		if (op->shortage)
			stripe_op_end(op, op->shortage);
		else
			stripe_read_run(op); /* one column less each time */
		return;
	}
	stripe_rows(op, hull, column);
	stripe_recover(shape, op->plan.lost, op->plan.read_mask, column, hull.hi - hull.lo);
	iov_from_mem(op->parent->iov, op->parent->iov_count, op->skip_bytes, column[op->column],
		     hull.hi - hull.lo);
	stripe_op_answer(op, 0);
	cure(op);
}

void stripe_read_run(struct stripe_op *op)
{
	struct stripe_state state;

	op->plan.hull = (struct stripe_span){op->lock.lo, op->lock.hi};
	if (stripe_is_kept(op->set, op->at.stripe, op->plan.hull)) {
		stripe_kept_read(op);
		return;
	}
	stripe_op_state(op, &state);
	int rc = stripe_plan_read(&op->set->shape, STRIPE_BIT(op->column), &state, &op->plan);
	if (rc)
		stripe_op_end(op, rc);
	else
		stripe_read_rows(op, op->plan.read_mask, op->plan.hull, read_judge);
}
