/* SPDX-License-Identifier: MIT
 *
 * The mover: moves under way, their pace and their ends.
 */
#include "target/array/page_move.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "target/array/page_clean.h"

enum {
	COPY_BYTES = COPY_RUN_PIECES * COPY_PIECE_BYTES,
	REST_FACTOR = 4, /* beside the application, a move works a fifth of the time */
	BUSY_MAX = 1000, /* times a move is refused for want of memory before it is given up */
};
#define REST_MAX_NS (500 * NS_PER_MS)
#define BUSY_NS	    (10 * NS_PER_MS)
#define RECLAIM_NS  (5 * NS_PER_S) /* no move begins for so long after space ran out */

_Static_assert(COPY_PIECES *COPY_PIECE_BYTES == POOL_PAGE_BYTES, "pieces make a page");

enum move_step {
	MOVE_FREE,
	MOVE_COPY,   /* the next run is to be chosen */
	MOVE_READ,   /* a run is being read */
	MOVE_WRITE,  /* and written */
	MOVE_SETTLE, /* what is copied is being flushed before the page is closed */
	MOVE_DRAIN,  /* closed: what is under way on it is to end */
	MOVE_FLUSH,  /* closed and all copied: the last flush */
};

struct page_move {
	struct mover *mover;
	struct move_order order;
	uint32_t page; /* taken on the new member */
	uint16_t generation;
	enum move_step step;
	bool cancel, closed, io_out, running;
	unsigned busy_count;
	struct page_copy copy;
	uint64_t offset_bytes, length_bytes; /* of the run at hand, within the page */
	uint64_t began_ns;		     /* that run */
	uint64_t closed_ns;
	uint64_t seen_ops; /* of the application on both members */
	struct io io;
	struct iovec iov;
	uint8_t *buffer;
	struct loop_timer timer; /* pending: the move rests */
};

struct mover {
	struct loop *loop;
	struct pool *pool;
	struct mover_owner owner;
	struct page_move moves[MOVES_MAX];
	unsigned active;
	bool paused, stopping;
	uint64_t rate_bytes_per_s;
	uint64_t free_ns; /* when the rate allows the next run */
	uint64_t barred_until_ns;
	struct loop_task task; /* begins moves, sees to cancelled ones */
	struct loop_timer timer;
	struct pool_moves counters;
};

static void move_run(struct page_move *move);

static struct page_entry *entry_of(const struct page_move *move)
{
	return &move->order.volume->map.entries[move->order.index];
}

static struct member *member_from(const struct page_move *move)
{
	return move->mover->pool->members[move->order.from];
}

static struct member *member_to(const struct page_move *move)
{
	return move->mover->pool->members[move->order.to];
}

/* ---- requests ---- */

static void io_ended(struct io *io)
{
	struct page_move *move = io->owner;
	move->io_out = false;
	move_run(move);
}

static void send(struct page_move *move, struct member *member, enum io_op op, uint64_t offset,
		 uint64_t length)
{
	bool data = op == IO_READ || op == IO_WRITE;

	move->io_out = true;
	move->iov = (struct iovec){move->buffer, length};
	move->io = (struct io){
	    .op = op,
	    .offset_bytes = offset,
	    .length_bytes = length,
	    .iov = data ? &move->iov : NULL,
	    .iov_count = data,
	    .done = io_ended,
	    .owner = move,
	};
	member->move_ops += data;
	io_submit(&member->layer, &move->io);
}

/* ---- the pace ---- */

static uint64_t application_ops(const struct member *member)
{
	return member->counters.reads + member->counters.writes - member->move_ops;
}

static uint64_t both_ops(const struct page_move *move)
{
	return application_ops(member_from(move)) + application_ops(member_to(move));
}

/* A run has been copied: the move rests, at least until the loop's next turn. */
static void rest(struct page_move *move)
{
	struct mover *mover = move->mover;
	uint64_t now = loop_now_ns(mover->loop), until = now, ops = both_ops(move);

	if (ops != move->seen_ops)
		until += MIN_OF(REST_FACTOR * (now - move->began_ns), REST_MAX_NS);
	move->seen_ops = ops;
	loop_timer_set(mover->loop, &move->timer, MAX_OF(until, mover->free_ns));
}

static void rested(void *arg)
{
	move_run(arg);
}

/* ---- ends ---- */

static void move_end(struct page_move *move, int status)
{
	struct mover *mover = move->mover;
	struct volume *volume = move->order.volume;
	struct page_entry *entry = entry_of(move);

	loop_timer_cancel(mover->loop, &move->timer);
	entry->moving = 0;
	if (move->closed) {
		uint64_t pause_ns = loop_now_ns(mover->loop) - move->closed_ns;
		mover->counters.longest_pause_ns =
		    MAX_OF(mover->counters.longest_pause_ns, pause_ns);
		if (entry->leaving == PAGE_CLOSED)
			entry->leaving = PAGE_OPEN;
	}
	free(move->buffer);
	move->buffer = NULL;
	move->step = MOVE_FREE;
	mover->active--;
	mover->counters.done += status == 0;
	mover->counters.cancelled += status == -ECANCELED;
	mover->counters.failed += status != 0 && status != -ECANCELED;
	mover->owner.ended(mover->owner.arg, &move->order, status);
	mover_kick(mover);
	volume_wake(volume);
}

/* The old place counts and goes on to. */
static void abandon(struct page_move *move, int status)
{
	cleaner_add(move->mover->pool->cleaner, move->order.to, move->page);
	move_end(move, status);
}

/* The record of the new owner may or may not be on stable storage.  The old place must win in
 * either case, so it is given a newer generation; when that fails too, nothing may be written to
 * the page any more, because opening may find either place. */
static void switch_failed(struct page_move *move, int status)
{
	struct page_entry *entry = entry_of(move);
	uint16_t generation = (uint16_t)(move->generation + 1);
	int rc = member_own_page(member_from(move), entry->page, generation);

	if (rc == 0)
		rc = member_sync(member_from(move));
	if (rc == 0) {
		entry->generation = generation;
		abandon(move, status);
		return;
	}
	entry->leaving = PAGE_FROZEN;
	pool_event(move->mover->pool,
		   "page %u of volume %s takes no writes: neither page map can be written",
		   move->order.index, move->order.volume->name);
	move_end(move, status);
}

/* The page is closed, idle and the same in both places, and the new one is on stable storage. */
static void switch_page(struct page_move *move)
{
	struct volume *volume = move->order.volume;
	struct page_entry *entry = entry_of(move);
	uint32_t old = entry->page;
	int rc = member_own_page(member_to(move), move->page, move->generation);

	if (rc == 0)
		rc = member_sync(member_to(move));
	if (rc) {
		switch_failed(move, rc);
		return;
	}
	entry->page = move->page;
	entry->member = (uint8_t)move->order.to;
	entry->generation = move->generation;
	volume->member_pages[move->order.from]--;
	volume->member_pages[move->order.to]++;
	volume->moved = true;
	entry->pinned |= member_leave_page(member_from(move), old) != 0;
	cleaner_add(move->mover->pool->cleaner, move->order.from, old);
	move_end(move, 0);
}

/* ---- steps ---- */

static void copied(struct page_move *move)
{
	struct mover *mover = move->mover;

	mover->counters.copied_bytes += move->length_bytes;
	/* What is copied of a closed page does not wait for the rate, but counts. */
	if (mover->rate_bytes_per_s)
		mover->free_ns = MAX_OF(mover->free_ns, loop_now_ns(mover->loop)) +
				 move->length_bytes * NS_PER_S / mover->rate_bytes_per_s;
	move->step = MOVE_COPY;
	if (!move->closed)
		rest(move);
}

static void choose_run(struct page_move *move)
{
	if (!move->closed && page_copy_may_close(&move->copy)) {
		move->step = MOVE_SETTLE;
		send(move, member_to(move), IO_FLUSH, 0, 0);
		return;
	}
	if (!page_copy_next(&move->copy, &move->offset_bytes, &move->length_bytes)) {
		assert(move->closed);
		move->step = MOVE_FLUSH;
		send(move, member_to(move), IO_FLUSH, 0, 0);
		return;
	}
	move->began_ns = loop_now_ns(move->mover->loop);
	move->step = MOVE_READ;
	send(move, member_from(move), IO_READ,
	     entry_of(move)->page * POOL_PAGE_BYTES + move->offset_bytes, move->length_bytes);
}

static bool is_zero(const uint8_t *data, uint64_t length)
{
	return data[0] == 0 && memcmp(data, data + 1, length - 1) == 0;
}

static void run_was_read(struct page_move *move)
{
	/* The new page began as zeros: what reads as zeros need not be written, and takes no
	 * room in a sparse store. */
	if (is_zero(move->buffer, move->length_bytes) &&
	    page_copy_is_fresh(&move->copy, move->offset_bytes, move->length_bytes)) {
		copied(move);
		return;
	}
	page_copy_wrote(&move->copy, move->offset_bytes, move->length_bytes);
	move->step = MOVE_WRITE;
	send(move, member_to(move), IO_WRITE, move->page * POOL_PAGE_BYTES + move->offset_bytes,
	     move->length_bytes);
}

static void close_page(struct page_move *move)
{
	entry_of(move)->leaving = PAGE_CLOSED;
	move->closed = true;
	move->closed_ns = loop_now_ns(move->mover->loop);
	move->step = MOVE_DRAIN;
}

/* A request failed.  For want of memory it is tried again. */
static void step_failed(struct page_move *move)
{
	int status = move->io.status;

	move->io.status = 0;
	if (status != -EBUSY || ++move->busy_count > BUSY_MAX) {
		abandon(move, status);
		return;
	}
	if (move->step == MOVE_READ || move->step == MOVE_WRITE)
		page_copy_touch(&move->copy, move->offset_bytes, move->length_bytes);
	move->step = MOVE_COPY;
	loop_timer_set(move->mover->loop, &move->timer, loop_now_ns(move->mover->loop) + BUSY_NS);
}

/* Does one step; false: the move waits, or has ended. */
static bool step(struct page_move *move)
{
	if (move->step == MOVE_FREE || loop_timer_pending(&move->timer))
		return false;
	if (move->io.status)
		step_failed(move);
	else if (move->cancel || member_is_offline(member_from(move)) ||
		 member_is_offline(member_to(move)))
		abandon(move, move->cancel ? -ECANCELED : -ENODEV);
	else if (move->step == MOVE_COPY && move->mover->paused && !move->closed)
		return false;
	else if (move->step == MOVE_COPY)
		choose_run(move);
	else if (move->step == MOVE_READ)
		run_was_read(move);
	else if (move->step == MOVE_WRITE)
		copied(move);
	else if (move->step == MOVE_SETTLE)
		close_page(move);
	else if (move->step == MOVE_FLUSH)
		switch_page(move);
	else if (entry_of(move)->in_flight > 0)
		return false;
	else
		move->step = MOVE_COPY;
	return true;
}

static void move_run(struct page_move *move)
{
	if (move->running)
		return;
	move->running = true;
	while (!move->io_out && !move->mover->stopping && step(move))
		;
	move->running = false;
}

/* ---- beginning ---- */

static int move_take(struct page_move *move)
{
	const struct move_order *order = &move->order;
	struct page_entry *entry = entry_of(move);
	struct member *to = member_to(move);

	move->generation = (uint16_t)(entry->generation + 1);
	int rc = cleaner_reserve(move->mover->pool->cleaner, 2 * MOVES_MAX);
	if (rc)
		return rc;
	move->buffer = malloc(COPY_BYTES);
	if (!move->buffer)
		return -ENOMEM;
	rc =
	    member_reserve_page(to, order->volume->id, order->index, move->generation, &move->page);
	if (rc == 0) {
		rc = member_sync(to);
		if (rc)
			cleaner_add(move->mover->pool->cleaner, order->to, move->page);
	}
	if (rc) {
		free(move->buffer);
		move->buffer = NULL;
	}
	return rc;
}

static bool may_begin(const struct mover *mover, const struct move_order *order)
{
	const struct page_entry *entry = &order->volume->map.entries[order->index];

	return entry->page != PAGE_NONE && entry->member == order->from && !entry->leaving &&
	       !entry->moving && order->from != order->to &&
	       !member_is_offline(mover->pool->members[order->from]) &&
	       member_takes_pages(mover->pool->members[order->to]);
}

static void begin(struct mover *mover, struct page_move *move, const struct move_order *order)
{
	*move = (struct page_move){.mover = mover, .order = *order, .step = MOVE_FREE};
	loop_timer_init(&move->timer, rested, move);
	int rc = may_begin(mover, order) ? move_take(move) : -ECANCELED;
	if (rc) {
		mover->counters.failed += rc != -ECANCELED;
		mover->counters.cancelled += rc == -ECANCELED;
		mover->owner.ended(mover->owner.arg, order, rc);
		return;
	}
	page_copy_begin(&move->copy);
	entry_of(move)->moving = (unsigned)(move - mover->moves) + 1;
	move->seen_ops = both_ops(move);
	move->step = MOVE_COPY;
	mover->active++;
	move_run(move);
}

static bool barred(struct mover *mover)
{
	uint64_t now = loop_now_ns(mover->loop);

	if (now >= mover->barred_until_ns)
		return false;
	loop_timer_set(mover->loop, &mover->timer, mover->barred_until_ns);
	return true;
}

/* From the loop: moves that were cancelled end, others begin. */
static void attend(void *arg)
{
	struct mover *mover = arg;
	struct move_order order;

	for (unsigned i = 0; i < MOVES_MAX; i++)
		move_run(&mover->moves[i]);
	for (unsigned i = 0; i < MOVES_MAX && !mover->paused && !mover->stopping; i++) {
		if (mover->moves[i].step != MOVE_FREE)
			continue;
		if (barred(mover) || !mover->owner.next(mover->owner.arg, &order))
			return;
		begin(mover, &mover->moves[i], &order);
		if (mover->moves[i].step == MOVE_FREE)
			mover_kick(mover); /* it ended at once: there may be more */
	}
}

/* ---- the mover ---- */

int mover_open(struct loop *loop, struct pool *pool, uint64_t rate_bytes_per_s,
	       const struct mover_owner *owner, struct mover **ret_mover)
{
	struct mover *mover = calloc(1, sizeof *mover);
	if (!mover)
		return -ENOMEM;
	mover->loop = loop;
	mover->pool = pool;
	mover->owner = *owner;
	mover->rate_bytes_per_s = rate_bytes_per_s;
	for (unsigned i = 0; i < MOVES_MAX; i++)
		mover->moves[i].mover = mover;
	loop_task_init(&mover->task, attend, mover);
	loop_timer_init(&mover->timer, attend, mover);
	*ret_mover = mover;
	return 0;
}

void mover_stop(struct mover *mover)
{
	if (mover->stopping)
		return; /* volumes may be gone by now */
	mover->stopping = true;
	loop_task_cancel(mover->loop, &mover->task);
	loop_timer_cancel(mover->loop, &mover->timer);
	for (unsigned i = 0; i < MOVES_MAX; i++) {
		struct page_move *move = &mover->moves[i];
		if (move->step == MOVE_FREE)
			continue;
		loop_timer_cancel(mover->loop, &move->timer);
		/* The next opening finds the page taken for it, and cleans it. */
		entry_of(move)->moving = 0;
		if (move->closed && entry_of(move)->leaving == PAGE_CLOSED)
			entry_of(move)->leaving = PAGE_OPEN;
		volume_wake(move->order.volume);
	}
}

struct mover *mover_close(struct mover *mover)
{
	if (!mover)
		return NULL;
	for (unsigned i = 0; i < MOVES_MAX; i++) {
		assert(!mover->moves[i].io_out);
		free(mover->moves[i].buffer);
	}
	free(mover);
	return NULL;
}

void mover_kick(struct mover *mover)
{
	if (!mover->stopping)
		loop_task_queue(mover->loop, &mover->task);
}

void mover_pause(struct mover *mover, bool paused)
{
	mover->paused = paused;
	mover_kick(mover);
}

unsigned mover_pages_taken(const struct mover *mover, unsigned member)
{
	unsigned count = 0;

	for (unsigned i = 0; i < MOVES_MAX; i++)
		count += mover->moves[i].step != MOVE_FREE && mover->moves[i].order.to == member;
	return count;
}

bool mover_is_idle(const struct mover *mover)
{
	return mover->active == 0;
}

void mover_counters(const struct mover *mover, struct pool_moves *ret_moves)
{
	*ret_moves = mover->counters;
	ret_moves->paused = mover->paused;
	ret_moves->under_way = mover->active;
}

void mover_written(struct mover *mover, const struct page_entry *entry, uint64_t offset_bytes,
		   uint64_t length_bytes)
{
	struct page_move *move = &mover->moves[entry->moving - 1];

	assert(entry_of(move) == entry);
	page_copy_touch(&move->copy, offset_bytes, length_bytes);
}

void mover_cancel(struct mover *mover, const struct page_entry *entry)
{
	mover->moves[entry->moving - 1].cancel = true;
	loop_timer_cancel(mover->loop, &mover->moves[entry->moving - 1].timer);
	mover_kick(mover);
}

void mover_page_idle(struct mover *mover, const struct volume *volume)
{
	for (unsigned i = 0; i < MOVES_MAX; i++)
		if (mover->moves[i].step == MOVE_DRAIN && mover->moves[i].order.volume == volume)
			move_run(&mover->moves[i]);
}

bool mover_reclaim(struct mover *mover)
{
	bool expected = cleaner_will_free(mover->pool->cleaner);

	mover->barred_until_ns = loop_now_ns(mover->loop) + RECLAIM_NS;
	for (unsigned i = 0; i < MOVES_MAX && !mover->stopping; i++) {
		struct page_move *move = &mover->moves[i];
		if (move->step == MOVE_FREE)
			continue;
		expected = true;
		if (!move->closed && !move->cancel)
			mover_cancel(mover, entry_of(move));
	}
	return expected;
}
