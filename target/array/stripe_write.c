/* SPDX-License-Identifier: MIT
 *
 * Writes and UNMAP of a piece of one stripe, and the journal's replay.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "target/array/stripe_set.h"

/* ---- the end of a write ---- */

/* All that was to be written is there, or its drives are stale: what is known of the stripe now? */
static void settle(struct stripe_op *op)
{
	struct stripe_marks *marks = &op->set->marks;
	uint64_t stripe = op->at.stripe, written = op->sent & ~op->failed;

	if (!marks->count)
		return;
	uint64_t lost = stripe_lost(marks, stripe);
	for (uint64_t left = lost & written; left; left &= left - 1) {
		unsigned column = (unsigned)__builtin_ctzll(left);
		if (op->work->legs[column].io.length_bytes == op->set->geometry.chunk_bytes)
			lost &= ~STRIPE_BIT(column);
	}
	bool dirty = stripe_is_dirty(marks, stripe) && !op->cleans;
	stripe_marks_set(marks, stripe, dirty, lost);
}

/* The drives that missed the write of COLUMNS, or will. */
static uint64_t drives_of(const struct stripe_op *op, uint64_t columns)
{
	const struct stripe_set *set = op->set;
	uint64_t drives = 0;
	for (uint64_t left = columns; left; left &= left - 1) {
		unsigned column = (unsigned)__builtin_ctzll(left);
		struct stripe_target target = stripe_find(set, &op->at, column);
		/* A place that was given to the column while the write was under way, before or
		 * after a crash, is filled by a rebuild, which waits for this stripe. */
		bool later = op->epoch != set->epoch ||
			     (op->kind == STRIPE_REPLAY && !(op->sent >> column & 1));
		if (later && (target.collecting || (!target.readable && target.takes)))
			continue;
		drives |= STRIPE_BIT(op->sent >> column & 1 ? op->work->legs[column].drive
							    : target.drive);
	}
	return drives;
}

/* All legs have answered: is the data safe without those that failed? */
static void write_judge(struct stripe_op *op)
{
	struct stripe_set *set = op->set;
	uint64_t missed = (op->plan.write_mask & ~op->sent) | op->failed;
	struct stripe_state state;

	if (!missed) {
		settle(op);
		stripe_op_end(op, 0);
		return;
	}
	stripe_op_state(op, &state);
	uint64_t bad = missed | state.absent | (state.unreadable & ~(op->sent & ~op->failed));
	uint64_t drives = drives_of(op, missed);
	bool covered = !op->shortage && (!state.dirty || op->cleans) &&
		       (unsigned)__builtin_popcountll(bad) <= set->geometry.parities &&
		       stripe_covers(set, drives);
	if (covered) {
		for (uint64_t left = drives; left; left &= left - 1)
			raid_mark_stale(&set->set, (unsigned)__builtin_ctzll(left));
		settle(op);
		stripe_op_end(op, 0);
		return;
	}
	int status = op->shortage ? op->shortage : -EIO;
	if (!stripe_keep(op, status))
		stripe_marks_set(&set->marks, op->at.stripe, true,
				 stripe_lost(&set->marks, op->at.stripe));
	if (set->set.dirty)
		set->set.dirty(set->set.stale_arg);
	stripe_op_end(op, status);
}

/* ---- the write phase ---- */

/* Notes the legs of SENT in the journal; false: it is full just now. */
static bool journal_legs(struct stripe_op *op, uint64_t sent)
{
	struct stripe_set *set = op->set;
	struct journal_record *record = stripe_journal_take(&set->journal);
	int of_column[RAID_DRIVES_MAX], first = -1;

	if (!record)
		return false;
	record->stripe = op->at.stripe;
	record->unmap = op->kind == STRIPE_UNMAP;
	record->clean = op->cleans;
	record->missed = op->plan.write_mask & ~sent;
	for (unsigned i = 0; i < set->geometry.width + op->twins; i++) {
		const struct stripe_leg *leg = &op->work->legs[i];
		bool twin = i >= set->geometry.width;
		if (!twin && !(sent >> i & 1))
			continue;
		struct journal_leg note = {
		    .column = leg->column,
		    .drive = leg->drive,
		    .twin = twin,
		    .offset_bytes = leg->io.offset_bytes,
		    .length_bytes = leg->io.length_bytes,
		};
		int same = set->geometry.copies ? first : -1;
		if (twin && sent >> leg->column & 1)
			same = of_column[leg->column];
		if (!twin)
			of_column[leg->column] = (int)record->leg_count;
		if (first < 0)
			first = (int)record->leg_count;
		stripe_journal_add(&set->journal, record, &note, leg->io.iov, leg->io.iov_count,
				   same);
	}
	stripe_journal_commit(&set->journal, record);
	op->record = record;
	return true;
}

/* Further places get the column's new content whether or not its own place can; a parity that was
 * not worked out, as its place is out, they miss. */
static void twins_fill(struct stripe_op *op)
{
	struct stripe_set *set = op->set;
	uint64_t parity = stripe_all_mask(&set->shape) & ~stripe_data_mask(&set->shape);
	uint64_t missed = 0;

	if (!(set->spared_mask & set->set.filling_mask))
		return;
	if (op->kind == STRIPE_WRITE && op->plan.method == STRIPE_READ_MODIFY_WRITE)
		missed = op->plan.write_mask & parity & ~op->plan.read_mask;
	else if (op->kind == STRIPE_WRITE && op->plan.method == STRIPE_DATA_ONLY)
		missed = op->plan.write_mask & parity;
	for (uint64_t left = missed; left; left &= left - 1) {
		struct stripe_target target =
		    stripe_find(set, &op->at, (unsigned)__builtin_ctzll(left));
		for (unsigned i = 0; i < target.twin_count; i++)
			raid_mark_stale(&set->set, target.twin[i]);
	}
	stripe_twins_fill(op, op->plan.write_mask & ~missed);
}

void stripe_write_journaled(struct stripe_op *op)
{
	if (op->set->set.unrecorded) {
		stripe_op_end(op, -EIO);
		return;
	}
	if (op->epoch != op->set->epoch) {
		if (op->kind == STRIPE_UNMAP)
			stripe_unmap_run(op);
		else
			stripe_write_run(op);
		return;
	}
	struct stripe_state state;
	stripe_op_state(op, &state);
	/* A drive that returned since the plan was made misses this write all the same. */
	uint64_t sent = op->plan.write_mask & ~(state.out | op->out);
	uint64_t missed = op->plan.write_mask & ~sent;
	op->sent = sent;
	/* It could not be acknowledged, and half-way it would spoil the rest of the stripe. */
	if (missed && !stripe_covers(op->set, drives_of(op, missed))) {
		stripe_op_end(op, -EIO);
		return;
	}
	twins_fill(op);
	if (op->set->journal.nvram && !journal_legs(op, sent)) {
		op->twins = 0;
		STAILQ_INSERT_TAIL(&op->set->unjournaled, op, waiting_entry);
		return;
	}
	if (op->plan.spoils)
		stripe_marks_set(&op->set->marks, op->at.stripe, true,
				 stripe_lost(&op->set->marks, op->at.stripe));
	stripe_phase(op, sent, write_judge);
}

/* ---- new content ---- */

/* Points the leg of a data column to its part of the caller's data. */
static int leg_source(struct stripe_op *op, unsigned column, struct stripe_span span)
{
	struct stripe_leg *leg = stripe_leg_fill(op, column, IO_WRITE, span);
	uint64_t at = column * op->set->geometry.chunk_bytes + span.lo - op->lo;

	if (op->parent->iov_count == 0) {
		leg->slice[0] = (struct iovec){op->set->zeros, span.hi - span.lo};
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
static uint8_t *leg_memory(struct stripe_leg *leg, uint8_t *row, struct stripe_span span)
{
	uint8_t *own = leg->io.iov->iov_base;
	if (leg->io.iov_count == 1 && (uintptr_t)own % STRIPE_CODE_ALIGN == 0)
		return own;
	iov_to_mem(leg->io.iov, leg->io.iov_count, 0, row + span.lo, span.hi - span.lo);
	return row + span.lo;
}

static struct stripe_span written(const struct stripe_op *op, unsigned column)
{
	return stripe_written(op->set->geometry.chunk_bytes, op->lo, op->hi, column);
}

static void parity_from_all(struct stripe_op *op)
{
	struct stripe_span hull = op->plan.hull;
	uint8_t *column[RAID_DRIVES_MAX];

	if (op->set->set.hollow)
		return;
	stripe_rows(op, hull, column);
	for (unsigned i = 0; i < op->set->geometry.data; i++) {
		struct stripe_leg *leg = &op->work->legs[i];
		struct stripe_span span = written(op, i);

		if (span.lo == hull.lo && span.hi == hull.hi)
			column[i] = leg_memory(leg, stripe_row(op, i), span);
		else if (span.lo < span.hi)
			iov_to_mem(leg->io.iov, leg->io.iov_count, 0, stripe_row(op, i) + span.lo,
				   span.hi - span.lo);
	}
	stripe_encode(&op->set->shape, column, hull.hi - hull.lo);
}

static void parity_from_change(struct stripe_op *op)
{
	const struct stripe_geometry *geometry = &op->set->geometry;
	uint8_t *spare = stripe_row(op, geometry->width);

	if (op->set->set.hollow)
		return;
	for (unsigned i = 0; i < geometry->data; i++) {
		struct stripe_span span = written(op, i);
		uint64_t size = span.hi - span.lo;
		uint8_t *parity[2] = {NULL, NULL};
		if (size == 0)
			continue;
		for (unsigned p = 0; p < geometry->parities; p++)
			if (op->plan.read_mask >> (geometry->data + p) & 1)
				parity[p] = stripe_row(op, geometry->data + p) + span.lo;
		uint8_t *change = stripe_row(op, i) + span.lo;
		stripe_difference(change, leg_memory(&op->work->legs[i], spare, span), change,
				  size);
		stripe_apply(i, change, parity[0], parity[1], size);
	}
}

/* A column that could not be read is written as it was worked out, with what is new in it. */
static void cure_lost(struct stripe_op *op)
{
	for (uint64_t left = op->plan.lost & op->cure; left; left &= left - 1) {
		unsigned column = (unsigned)__builtin_ctzll(left);
		struct stripe_span span = written(op, column);
		if (span.lo == op->plan.hull.lo && span.hi == op->plan.hull.hi)
			continue;
		stripe_leg_fill(op, column, IO_WRITE, op->plan.hull);
		op->plan.write_mask |= STRIPE_BIT(column);
	}
}

/* A mirror's copies all get the caller's data. */
static void copies_fill(struct stripe_op *op)
{
	const struct stripe_leg *first = &op->work->legs[0];
	for (unsigned i = 1; i < op->set->geometry.width; i++) {
		struct stripe_leg *leg = stripe_leg_fill(op, i, first->io.op, op->plan.hull);
		leg->io.iov = first->io.iov;
		leg->io.iov_count = first->io.iov_count;
	}
}

/* All that had to be read is in its rows: works out the parity and writes. */
static void write_out(struct stripe_op *op)
{
	const struct stripe_geometry *geometry = &op->set->geometry;
	struct stripe_span hull = op->plan.hull;
	uint8_t *column[RAID_DRIVES_MAX];

	if (op->plan.method == STRIPE_REBUILD_WRITE && !op->set->set.hollow) {
		stripe_rows(op, hull, column);
		stripe_recover(&op->set->shape, op->plan.lost, op->plan.read_mask, column,
			       hull.hi - hull.lo);
	}
	for (unsigned i = 0; i < geometry->data; i++) {
		struct stripe_span span = written(op, i);
		int rc = span.lo < span.hi ? leg_source(op, i, span) : 0;
		if (rc) {
			stripe_op_end(op, rc);
			return;
		}
	}
	op->cleans = false;
	if (geometry->copies) {
		copies_fill(op);
		op->cleans = hull.hi - hull.lo == geometry->chunk_bytes;
	} else if (op->plan.method == STRIPE_READ_MODIFY_WRITE) {
		parity_from_change(op);
	} else if (op->plan.method != STRIPE_DATA_ONLY) {
		parity_from_all(op);
		op->cleans = hull.hi - hull.lo == geometry->chunk_bytes;
	}
	for (unsigned i = geometry->data; i < geometry->width && !geometry->copies; i++)
		stripe_leg_fill(op, i, IO_WRITE, hull);
	if (op->plan.method == STRIPE_REBUILD_WRITE)
		cure_lost(op);
	stripe_write_journaled(op);
}

static void write_reads_done(struct stripe_op *op)
{
	if (!stripe_reads_failed(op))
		write_out(op);
	else if (op->shortage)
		stripe_op_end(op, op->shortage);
	else
		stripe_write_run(op); /* planned anew, with one column less each time */
}

/* Were the write to fail half-way, could that be noted? */
static bool has_room(const struct stripe_op *op)
{
	const struct stripe_marks *marks = &op->set->marks;
	return stripe_marks_room(marks) || stripe_marks_slot(marks, op->at.stripe)->key;
}

void stripe_write_run(struct stripe_op *op)
{
	struct stripe_span hull = {op->lock.lo, op->lock.hi};
	struct stripe_state state;

	op->epoch = op->set->epoch;
	stripe_op_state(op, &state);
	op->out = state.out;
	int rc = stripe_kept_refuses(op);
	if (rc == 0)
		rc = stripe_plan_write(&op->set->shape, op->lo, op->hi, hull, &state, &op->plan);
	if (rc == 0 && !has_room(op))
		rc = -EIO;
	if (rc)
		stripe_op_end(op, rc);
	else if (op->plan.read_mask == 0)
		write_out(op);
	else
		stripe_read_rows(op, op->plan.read_mask, hull, write_reads_done);
}

/* ---- UNMAP: zeros everywhere, which is consistent redundancy too ---- */

void stripe_unmap_run(struct stripe_op *op)
{
	const struct stripe_geometry *geometry = &op->set->geometry;
	struct stripe_state state;

	op->epoch = op->set->epoch;
	stripe_op_state(op, &state);
	op->out = state.out;
	int rc = stripe_kept_refuses(op);
	if (rc == 0 &&
	    ((unsigned)__builtin_popcountll(state.absent) > geometry->parities || !has_room(op)))
		rc = -EIO;
	if (rc) {
		stripe_op_end(op, rc);
		return;
	}
	op->plan = (struct stripe_plan){
	    .hull = {op->lock.lo, op->lock.hi},
	    .write_mask = stripe_mask(geometry->width),
	};
	op->cleans = op->lock.hi - op->lock.lo == geometry->chunk_bytes;
	for (unsigned i = 0; i < geometry->width; i++)
		stripe_leg_fill(op, i, IO_UNMAP, op->plan.hull);
	stripe_write_journaled(op);
}

/* ---- replay ---- */

void stripe_replay_run(struct stripe_op *op)
{
	struct stripe_set *set = op->set;
	struct journal_record *record = op->record;
	uint64_t sent = 0;

	if (op->then) {
		stripe_journal_retake(&set->journal, record);
		op->retaken = true;
	}
	op->epoch = set->epoch;
	op->cleans = record->clean;
	/* A column that a rebuild could not work out meanwhile has not missed this any more. */
	op->plan.write_mask = record->missed & ~stripe_lost(&set->marks, op->at.stripe);
	for (unsigned i = 0; i < record->leg_count; i++) {
		const struct journal_leg *note = &record->legs[i];
		struct stripe_target target = stripe_find(set, &op->at, note->column);
		if (note->twin)
			continue; /* what is filled after a restart begins anew */
		op->plan.write_mask |= STRIPE_BIT(note->column);
		if (!target.takes)
			continue;
		sent |= STRIPE_BIT(note->column);
		struct stripe_leg *leg =
		    stripe_leg_fill(op, note->column, record->unmap ? IO_UNMAP : IO_WRITE,
				    (struct stripe_span){0, note->length_bytes});
		/* Where the column is now. */
		leg->io.offset_bytes =
		    target.offset_bytes + note->offset_bytes % set->geometry.chunk_bytes;
		leg->slice[0] = (struct iovec){stripe_journal_data(&set->journal, record, i),
					       note->length_bytes};
	}
	stripe_twins_fill(op, sent);
	stripe_phase(op, sent, write_judge);
}

void stripe_replay_start(struct stripe_op *op, struct stripe_set *set,
			 struct journal_record *record, struct stripe_op *then)
{
	*op = (struct stripe_op){.kind = STRIPE_REPLAY, .record = record, .then = then};
	set->replays++;
	stripe_op_submit(set, op, record->stripe,
			 (struct stripe_span){0, set->geometry.chunk_bytes});
}

/* Is it of this set? */
static bool fits(const struct stripe_set *set, const struct journal_record *record)
{
	if (record->stripe >= set->geometry.stripe_count)
		return false;
	for (unsigned i = 0; i < record->leg_count; i++)
		if (record->legs[i].column >= set->geometry.width ||
		    record->legs[i].length_bytes >
			set->geometry.chunk_bytes -
			    record->legs[i].offset_bytes % set->geometry.chunk_bytes)
			return false;
	return true;
}

void stripe_replay_begin(struct stripe_set *set)
{
	struct journal_record *record;
	uint64_t after = 0;

	while (set->journal.nvram && (record = stripe_journal_next(&set->journal, after))) {
		after = record->sequence;
		struct stripe_op *op = fits(set, record) ? freelist_take(&set->ops) : NULL;
		if (!op) {
			stripe_journal_release(&set->journal, record);
			continue;
		}
		stripe_replay_start(op, set, record, NULL);
	}
}
