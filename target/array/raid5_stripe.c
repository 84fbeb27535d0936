/* SPDX-License-Identifier: MIT
 *
 * Operations on one parity stripe, under a lock on the columns they touch:
 *
 *   lock -> work space -> plan -> read phase -> new parity -> write phase -> judge -> unlock
 *
 * A read that fails is planned anew without that drive.  A write that fails, or a drive that was
 * out, leaves that drive stale: the parity written at the same time stands for its content.  With
 * a second drive out nothing is written, or, if it fails in the middle, the operation ends with
 * -EIO and the drive is left out, so that no later read trusts what is inconsistent.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "target/array/raid5.h"

enum { XOR_ALIGN = 32 };

#define BIT(drive) (UINT64_C(1) << (drive))

/* ---- work space ---- */

static void work_free(struct raid5_work *work)
{
	free(work->legs);
	free(work->rows);
	free(work->vector);
	free(work);
}

static struct raid5_work *work_take(struct raid5 *raid)
{
	unsigned width = raid->geometry.width;
	struct raid5_work *work = raid->works;

	if (work) {
		raid->works = work->next;
		return work;
	}
	if (raid->works_made == raid->works_limit)
		return NULL;
	work = calloc(1, sizeof *work);
	if (!work)
		return NULL;
	work->legs = calloc(width, sizeof *work->legs);
	work->rows = aligned_alloc(4096, (width + 1) * raid->row_bytes);
	work->vector = calloc(width + 2, sizeof(void *));
	if (!work->legs || !work->rows || !work->vector) {
		work_free(work);
		return NULL;
	}
	raid->works_made++;
	return work;
}

void raid5_works_free(struct raid5 *raid)
{
	assert(STAILQ_EMPTY(&raid->starved));
	while (raid->works) {
		struct raid5_work *work = raid->works;
		raid->works = work->next;
		work_free(work);
	}
}

static uint8_t *row_of(struct raid5_op *op, unsigned drive)
{
	return op->work->rows + drive * op->raid->row_bytes;
}

/* ---- end ---- */

static void op_run(struct raid5_op *op);

/* Gives idle work space to those that wait for it; a loop, not a recursion. */
static void feed_starved(struct raid5 *raid)
{
	if (raid->feeding)
		return;
	raid->feeding = true;
	while (!STAILQ_EMPTY(&raid->starved)) {
		struct raid5_work *work = work_take(raid);
		if (!work)
			break;
		struct raid5_op *op = STAILQ_FIRST(&raid->starved);
		STAILQ_REMOVE_HEAD(&raid->starved, starved_entry);
		op->work = work;
		op_run(op);
	}
	raid->feeding = false;
}

static void op_end(struct raid5_op *op, int status)
{
	struct raid5 *raid = op->raid;
	struct fan *fan = op->fan;
	struct io *parent = op->parent;

	if (op->work) {
		for (unsigned i = 0; i < raid->geometry.width; i++) {
			free(op->work->legs[i].heap);
			op->work->legs[i].heap = NULL;
		}
		op->work->next = raid->works;
		raid->works = op->work;
	}
	stripe_lock_release(&raid->locks, &op->lock);
	freelist_give(&raid->ops, op);
	feed_starved(raid);
	fan_end(&raid->set.parts, fan, parent, raid_status(status));
}

/* ---- phases ---- */

/* Drives of the op's set that are out, as a mask within the set. */
static uint64_t out_mask(const struct raid5_op *op)
{
	uint64_t mask = 0;
	for (unsigned i = 0; i < op->write.width; i++)
		if (!raid_usable(&op->raid->set, op->base + i))
			mask |= BIT(i);
	return mask;
}

static void phase_step(struct raid5_op *op)
{
	if (--op->pending == 0)
		op->phase_done(op);
}

static void leg_done(struct io *io)
{
	struct raid5_leg *leg = container_of(io, struct raid5_leg, io);
	struct raid5_op *op = leg->op;
	if (io->status)
		op->failed |= BIT(leg - op->work->legs);
	phase_step(op);
}

/* Submits the legs of MASK, filled before, and calls PHASE_DONE when all have ended. */
static void phase_submit(struct raid5_op *op, uint64_t mask,
			 void (*phase_done)(struct raid5_op *op))
{
	struct raid5_leg *legs = op->work->legs;
	op->sent = mask;
	op->failed = 0;
	op->phase_done = phase_done;
	op->pending = 1 + (unsigned)__builtin_popcountll(mask);
	for (uint64_t left = mask; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		io_submit(&op->raid->set.drives[op->base + i]->layer, &legs[i].io);
	}
	phase_step(op);
}

static void leg_fill(struct raid5_op *op, unsigned drive, enum io_op kind, struct raid5_span span)
{
	struct raid5_leg *leg = &op->work->legs[drive];
	leg->op = op;
	leg->slice[0] = (struct iovec){row_of(op, drive) + span.lo, span.hi - span.lo};
	leg->io = (struct io){
	    .op = kind,
	    .offset_bytes = op->row * op->write.chunk_bytes + span.lo,
	    .length_bytes = span.hi - span.lo,
	    .iov = kind == IO_UNMAP ? NULL : leg->slice,
	    .iov_count = kind == IO_UNMAP ? 0 : 1,
	    .done = leg_done,
	    .owner = op,
	};
	if (kind == IO_WRITE)
		leg->io.flags = op->parent->flags;
}

static void read_rows(struct raid5_op *op, uint64_t mask, void (*phase_done)(struct raid5_op *op))
{
	for (uint64_t left = mask; left; left &= left - 1)
		leg_fill(op, (unsigned)__builtin_ctzll(left), IO_READ, op->plan.hull);
	phase_submit(op, mask, phase_done);
}

/* XOR of the rows of MASK over the hull into the row of TO. */
static void xor_rows(struct raid5_op *op, uint64_t mask, unsigned to)
{
	struct raid5_span hull = op->plan.hull;
	unsigned count = 0;
	for (uint64_t left = mask; left; left &= left - 1)
		op->work->vector[count++] = row_of(op, (unsigned)__builtin_ctzll(left)) + hull.lo;
	raid_xor(op->work->vector, count, row_of(op, to) + hull.lo, hull.hi - hull.lo);
}

/* ---- a read through parity ---- */

static void read_judge(struct raid5_op *op)
{
	unsigned data = (unsigned)(op->write.lo / op->write.chunk_bytes);
	unsigned lost = raid5_data_drive(op->write.width, op->write.parity, data);
	struct raid5_span hull = op->plan.hull;

	if (op->failed) {
		op_end(op, -EIO);
		return;
	}
	xor_rows(op, (BIT(op->write.width - 1) * 2 - 1) & ~BIT(lost), lost);
	iov_from_mem(op->parent->iov, op->parent->iov_count, op->skip_bytes,
		     row_of(op, lost) + hull.lo, hull.hi - hull.lo);
	op_end(op, 0);
}

static void read_run(struct raid5_op *op)
{
	unsigned data = (unsigned)(op->write.lo / op->write.chunk_bytes);
	uint64_t lost = BIT(raid5_data_drive(op->write.width, op->write.parity, data));
	uint64_t others = (BIT(op->write.width - 1) * 2 - 1) & ~lost;

	op->plan.hull = (struct raid5_span){op->lock.lo, op->lock.hi};
	if (out_mask(op) & others)
		op_end(op, -EIO);
	else
		read_rows(op, others, read_judge);
}

/* ---- a write ---- */

static void write_judge(struct raid5_op *op)
{
	struct raid_set *set = &op->raid->set;
	uint64_t missed = (op->plan.write_mask & ~op->sent) | op->failed;
	bool covered = __builtin_popcountll(out_mask(op) | missed) <= 1;

	for (uint64_t left = missed; left; left &= left - 1)
		raid_mark_stale(set, op->base + (unsigned)__builtin_ctzll(left), covered);
	op_end(op, missed && !covered ? -EIO : 0);
}

/* Points the leg of the DATA-th chunk to its part of the caller's data. */
static int leg_source(struct raid5_op *op, unsigned data, struct raid5_span span)
{
	unsigned drive = raid5_data_drive(op->write.width, op->write.parity, data);
	struct raid5_leg *leg = &op->work->legs[drive];
	uint64_t at = data * op->write.chunk_bytes + span.lo - op->write.lo;

	leg_fill(op, drive, IO_WRITE, span);
	if (op->parent->iov_count == 0) {
		leg->slice[0].iov_base = op->raid->zeros;
		return 0;
	}
	free(leg->heap);
	leg->heap = NULL;
	int count = iov_slice_any(op->parent, op->skip_bytes + at, span.hi - span.lo, leg->slice,
				  PART_SLICES, &leg->heap, &leg->io.iov);
	if (count < 0)
		return count;
	leg->io.iov_count = (unsigned)count;
	return 0;
}

/* Memory that ISA-L can read with the new data of a leg: the caller's own where it lies right,
 * else a copy in ROW. */
static uint8_t *leg_memory(struct raid5_leg *leg, uint8_t *row, struct raid5_span span)
{
	uint8_t *own = leg->io.iov->iov_base;
	if (leg->io.iov_count == 1 && (uintptr_t)own % XOR_ALIGN == 0)
		return own;
	iov_to_mem(leg->io.iov, leg->io.iov_count, 0, row + span.lo, span.hi - span.lo);
	return row + span.lo;
}

static void parity_from_all(struct raid5_op *op)
{
	const struct raid5_write *write = &op->write;
	struct raid5_span hull = op->plan.hull;
	unsigned count = 0;

	for (unsigned data = 0; data < write->width - 1; data++) {
		unsigned drive = raid5_data_drive(write->width, write->parity, data);
		struct raid5_leg *leg = &op->work->legs[drive];
		struct raid5_span span = raid5_written(write, data);
		uint8_t *source = row_of(op, drive) + hull.lo;

		if (span.lo == hull.lo && span.hi == hull.hi)
			source = leg_memory(leg, row_of(op, drive), span);
		else if (span.lo < span.hi)
			iov_to_mem(leg->io.iov, leg->io.iov_count, 0, row_of(op, drive) + span.lo,
				   span.hi - span.lo);
		op->work->vector[count++] = source;
	}
	raid_xor(op->work->vector, count, row_of(op, write->parity) + hull.lo, hull.hi - hull.lo);
}

static void parity_from_change(struct raid5_op *op)
{
	const struct raid5_write *write = &op->write;
	uint8_t *parity = row_of(op, write->parity), *spare = row_of(op, write->width);

	for (unsigned data = 0; data < write->width - 1; data++) {
		unsigned drive = raid5_data_drive(write->width, write->parity, data);
		struct raid5_span span = raid5_written(write, data);
		if (span.lo >= span.hi)
			continue;
		/* In place: each block is read from all sources before it is stored. */
		void **vector = op->work->vector;
		vector[0] = parity + span.lo;
		vector[1] = row_of(op, drive) + span.lo;
		vector[2] = leg_memory(&op->work->legs[drive], spare, span);
		raid_xor(vector, 3, parity + span.lo, span.hi - span.lo);
	}
}

/* All that had to be read is in its rows: works out the parity and writes. */
static void write_out(struct raid5_op *op)
{
	const struct raid5_write *write = &op->write;

	if (op->plan.method == RAID5_REBUILD_WRITE)
		xor_rows(op, op->plan.read_mask, op->plan.lost);
	for (unsigned data = 0; data < write->width - 1; data++) {
		struct raid5_span span = raid5_written(write, data);
		int rc = span.lo < span.hi ? leg_source(op, data, span) : 0;
		if (rc) {
			op_end(op, rc);
			return;
		}
	}
	if (op->plan.method == RAID5_READ_MODIFY_WRITE)
		parity_from_change(op);
	else if (op->plan.method != RAID5_DATA_ONLY)
		parity_from_all(op);
	leg_fill(op, write->parity, IO_WRITE, op->plan.hull);
	phase_submit(op, op->plan.write_mask & ~out_mask(op), write_judge);
}

static void write_run(struct raid5_op *op);

static void write_reads_done(struct raid5_op *op)
{
	if (op->failed) {
		op->avoid |= op->failed;
		write_run(op); /* planned anew, at most twice: then too many are to be avoided */
		return;
	}
	write_out(op);
}

static void write_run(struct raid5_op *op)
{
	uint64_t out = out_mask(op);
	int rc = raid5_plan_write(&op->write, out | op->avoid, out, &op->plan);
	if (rc)
		op_end(op, rc);
	else if (op->plan.read_mask == 0)
		write_out(op);
	else
		read_rows(op, op->plan.read_mask, write_reads_done);
}

/* ---- UNMAP of a whole stripe: zeros everywhere, which is consistent parity too ---- */

static void unmap_run(struct raid5_op *op)
{
	uint64_t all = BIT(op->write.width - 1) * 2 - 1, out = out_mask(op);

	if (__builtin_popcountll(out) > 1) {
		op_end(op, -EIO);
		return;
	}
	op->plan.hull = (struct raid5_span){0, op->write.chunk_bytes};
	op->plan.write_mask = all;
	for (unsigned i = 0; i < op->write.width; i++)
		leg_fill(op, i, IO_UNMAP, op->plan.hull);
	phase_submit(op, all & ~out, write_judge);
}

/* ---- beginning ---- */

static void op_run(struct raid5_op *op)
{
	switch (op->kind) {
	case RAID5_READ:
		read_run(op);
		break;
	case RAID5_WRITE:
		write_run(op);
		break;
	case RAID5_UNMAP:
		unmap_run(op);
		break;
	}
}

static void op_granted(struct stripe_lock *lock)
{
	struct raid5_op *op = container_of(lock, struct raid5_op, lock);
	op->work = work_take(op->raid);
	if (op->work)
		op_run(op);
	else if (op->raid->works_made == 0)
		op_end(op, -ENOMEM); /* nobody will ever give any back */
	else
		STAILQ_INSERT_TAIL(&op->raid->starved, op, starved_entry);
}

void raid5_op_submit(struct raid5 *raid, struct raid5_op *op, uint64_t skip, uint64_t size)
{
	struct raid5_stripe at = raid5_stripe_at(&raid->geometry, op->parent->offset_bytes + skip);
	struct raid5_span hull =
	    raid5_hull(raid->geometry.chunk_bytes, at.within, at.within + size);

	op->raid = raid;
	op->base = at.set * raid->geometry.width;
	op->write = (struct raid5_write){
	    .width = raid->geometry.width,
	    .parity = at.parity,
	    .chunk_bytes = raid->geometry.chunk_bytes,
	    .lo = at.within,
	    .hi = at.within + size,
	};
	op->row = at.row;
	op->skip_bytes = skip;
	op->avoid = 0;
	op->failed = 0;
	op->work = NULL;
	op->lock = (struct stripe_lock){
	    .stripe = at.stripe,
	    .lo = hull.lo,
	    .hi = hull.hi,
	    .granted = op_granted,
	};
	if (stripe_lock_acquire(&raid->locks, &op->lock))
		op_granted(&op->lock);
}
