/* SPDX-License-Identifier: MIT
 *
 * Updates that failed half-way, beyond what redundancy covers.  Those who sent them were told so,
 * but what is on the drives is neither old nor new, may fit no checksum and no parity.  So they
 * are kept in the journal and count as done:
 *
 *   - a read takes what they have from the journal: once it was seen, it stays;
 *   - whatever needs their place tries them again first, as does a restart;
 *   - a further update of their place is refused while they cannot be done, for it would be
 *     overtaken; so is one of any place of a set of which many are kept;
 *   - background work takes their stripes for dirty.
 *
 * Without a journal, or room in it, the stripe is marked as dirty.
 */
#include <assert.h>
#include <errno.h>

#include "base/bytes.h"
#include "target/array/stripe_set.h"

bool stripe_keep(struct stripe_op *op, int status)
{
	if (!op->record || op->record->leg_count == 0 ||
	    !stripe_journal_keep(&op->set->journal, op->record, status, op->retaken))
		return false;
	op->record = NULL; /* it is not op's to release any more */
	return true;
}

/* ---- finding them ---- */

struct place {
	const struct stripe_journal *journal;
	uint64_t stripe;
	struct stripe_span span;
};

static bool is_there(const void *arg, const struct journal_record *record)
{
	const struct place *place = arg;
	uint64_t lo, hi;

	if (record->stripe != place->stripe)
		return false;
	stripe_journal_span(place->journal, record, &lo, &hi);
	return lo < place->span.hi && place->span.lo < hi;
}

static struct journal_record *find(const struct stripe_set *set, uint64_t stripe,
				   struct stripe_span span, uint64_t after)
{
	struct place place = {&set->journal, stripe, span};
	return set->journal.kept ? stripe_journal_kept(&set->journal, after, is_there, &place)
				 : NULL;
}

bool stripe_is_kept(const struct stripe_set *set, uint64_t stripe, struct stripe_span span)
{
	return find(set, stripe, span, 0);
}

static bool follows(const void *arg, const struct journal_record *record)
{
	return record->stripe >= *(const uint64_t *)arg;
}

uint64_t stripe_kept_next(const struct stripe_set *set, uint64_t from)
{
	uint64_t least = UINT64_MAX, after = 0;
	const struct journal_record *record;

	while (set->journal.kept &&
	       (record = stripe_journal_kept(&set->journal, after, follows, &from))) {
		least = MIN_OF(least, record->stripe);
		after = record->sequence;
	}
	return least;
}

/* ---- trying them again ---- */

/* Of those side by side: the others need not suffer from what befell one of them. */
struct group {
	unsigned sets;
	uint64_t set;
};

static bool is_of_group(const void *arg, const struct journal_record *record)
{
	const struct group *group = arg;
	return record->stripe % group->sets == group->set;
}

/* The oldest of the updates kept of OP's set, if they are so many that a further one might find no
 * room; else NULL. */
static struct journal_record *crowd(const struct stripe_op *op)
{
	const struct stripe_set *set = op->set;
	struct group group = {set->geometry.sets, op->at.stripe % set->geometry.sets};
	unsigned limit = MAX_OF(set->journal.slot_count / 2 / group.sets, 1U), count = 0;
	struct journal_record *oldest = NULL, *record;
	uint64_t after = 0;

	if (!set->journal.kept || (op->kind != STRIPE_WRITE && op->kind != STRIPE_UNMAP))
		return NULL;
	while ((record = stripe_journal_kept(&set->journal, after, is_of_group, &group))) {
		oldest = oldest ? oldest : record;
		after = record->sequence;
		count++;
	}
	return count >= limit ? oldest : NULL;
}

/* Somebody else has asked for it, whose lock may still wait for OP's: OP's goes behind it. */
static bool wait_behind(struct stripe_op *op, const struct journal_record *record)
{
	struct stripe_set *set = op->set;

	if (record->stripe != op->at.stripe)
		return false;
	stripe_lock_release(&set->locks, &op->lock);
	bool granted = stripe_lock_acquire(&set->locks, &op->lock);
	assert(!granted);
	return true;
}

bool stripe_kept_first(struct stripe_op *op)
{
	struct stripe_set *set = op->set;
	struct stripe_span span = {op->lock.lo, op->lock.hi};
	struct journal_record *record;

	if (op->kind == STRIPE_REPLAY || !freelist_reserve(&set->ops, 1))
		return false;
	record = find(set, op->at.stripe, span, op->tried);
	if (record) {
		op->tried = record->sequence;
	} else if (!op->crowd_tried) {
		record = crowd(op);
		op->crowd_tried = true;
	}
	if (!record)
		return false;
	if (!stripe_journal_make_due(&set->journal, record))
		return wait_behind(op, record);
	struct stripe_op *replay = freelist_take(&set->ops);
	assert(replay); /* reserved */
	/* Its lock is given up: the other needs more than that, and comes before. */
	stripe_lock_release(&set->locks, &op->lock);
	stripe_replay_start(replay, set, record, op);
	return true;
}

int stripe_kept_refuses(const struct stripe_op *op)
{
	const struct stripe_set *set = op->set;
	struct stripe_span span = {op->lock.lo, op->lock.hi};
	const struct journal_record *record = find(set, op->at.stripe, span, 0);

	if (!record)
		record = crowd(op);
	return record ? stripe_journal_kept_status(&set->journal, record) : 0;
}

/* ---- reading what they have ---- */

/* Where the content of RECORD's leg is that covers the byte AT of COLUMN (of a mirror: of any);
 * NULL: it has none. */
static const uint8_t *content_at(const struct stripe_set *set, const struct journal_record *record,
				 unsigned column, uint64_t at)
{
	for (unsigned i = 0; i < record->leg_count; i++) {
		const struct journal_leg *leg = &record->legs[i];
		uint64_t lo = leg->offset_bytes % set->geometry.chunk_bytes;
		if ((leg->column != column && !set->geometry.copies) || at < lo ||
		    at >= lo + leg->length_bytes)
			continue;
		return record->unmap ? set->zeros
				     : stripe_journal_data(&set->journal, record, i) + (at - lo);
	}
	return NULL;
}

/* The end of the bytes from SPAN.lo on for which the same legs have content, or none has. */
static uint64_t run_end(const struct stripe_op *op, struct stripe_span span)
{
	const struct stripe_set *set = op->set;
	const struct journal_record *record;
	uint64_t after = 0;

	while ((record = find(set, op->at.stripe, span, after))) {
		after = record->sequence;
		for (unsigned i = 0; i < record->leg_count; i++) {
			uint64_t lo = record->legs[i].offset_bytes % set->geometry.chunk_bytes;
			uint64_t hi = lo + record->legs[i].length_bytes;
			if (lo > span.lo)
				span.hi = MIN_OF(span.hi, lo);
			else if (hi > span.lo)
				span.hi = MIN_OF(span.hi, hi);
		}
	}
	return span.hi;
}

static void next_run(struct stripe_op *op);

/* The columns that the update has for the run, their rows filled if FILL. */
static uint64_t take_columns(struct stripe_op *op, const struct journal_record *record, bool fill)
{
	struct stripe_span run = op->plan.hull;
	uint64_t there = 0;

	for (unsigned i = 0; record && i < op->set->geometry.width; i++) {
		const uint8_t *content = content_at(op->set, record, i, run.lo);
		if (!content)
			continue;
		there |= STRIPE_BIT(i);
		if (fill)
			memcpy(stripe_row(op, i) + run.lo, content, run.hi - run.lo);
	}
	return there;
}

static void run_read(struct stripe_op *op)
{
	struct stripe_span run = op->plan.hull;
	uint8_t *column[RAID_DRIVES_MAX];

	if (stripe_reads_failed(op)) {
		if (op->shortage)
			stripe_op_end(op, op->shortage);
		else
			next_run(op); /* one column less each time */
		return;
	}
	(void)take_columns(op, find(op->set, op->at.stripe, run, 0), true);
	stripe_rows(op, run, column);
	stripe_recover(&op->set->shape, op->plan.lost, op->plan.read_mask, column, run.hi - run.lo);
	iov_from_mem(op->parent->iov, op->parent->iov_count,
		     op->skip_bytes + (run.lo - op->lock.lo), column[op->column], run.hi - run.lo);
	op->at_bytes = run.hi;
	next_run(op);
}

static void next_run(struct stripe_op *op)
{
	struct stripe_span run = {op->at_bytes, op->lock.hi};
	struct stripe_state state;

	if (run.lo == run.hi) {
		stripe_op_end(op, 0);
		return;
	}
	run.hi = run_end(op, run);
	op->plan.hull = run;
	const struct journal_record *record = find(op->set, op->at.stripe, run, 0);
	uint64_t there = take_columns(op, record, false);
	stripe_op_state(op, &state);
	if (record)
		state.unreadable |= record->missed;
	state.unreadable &= ~there;
	int rc = stripe_plan_read(&op->set->shape, STRIPE_BIT(op->column), &state, &op->plan);
	if (rc)
		stripe_op_end(op, rc);
	else
		stripe_read_rows(op, op->plan.read_mask & ~there, run, run_read);
}

void stripe_kept_read(struct stripe_op *op)
{
	op->at_bytes = op->lock.lo;
	next_run(op);
}
