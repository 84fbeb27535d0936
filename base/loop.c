/* SPDX-License-Identifier: MIT
 *
 * Timers, tasks and turns: what the real and the virtual loop have in common.
 */
#include "base/loop.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/loop_impl.h"

enum {
	HEAP_ROOM_FIRST = 256,
	TASKS_PER_TURN = 4096, /* tasks that queue each other must not starve descriptors */
};

int loop_init(struct loop *loop, const struct loop_ops *ops)
{
	loop->ops = ops;
	loop->heap = calloc(HEAP_ROOM_FIRST, sizeof *loop->heap);
	if (!loop->heap)
		return -ENOMEM;
	loop->heap_room = HEAP_ROOM_FIRST;
	return 0;
}

void loop_done(struct loop *loop)
{
	free(loop->heap);
}

struct loop *loop_free(struct loop *loop)
{
	if (loop) {
		assert(!loop->in_turn);
		loop->ops->free(loop);
	}
	return NULL;
}

uint64_t loop_now_ns(const struct loop *loop)
{
	return loop->ops->now_ns(loop);
}

uint64_t loop_wall_ns(const struct loop *loop)
{
	return loop->ops->wall_ns(loop);
}

void loop_gather(struct loop *loop)
{
	loop->gathers = true;
}

bool loop_is_virtual(const struct loop *loop)
{
	return loop->ops->is_virtual;
}

/* Timers: a binary heap. */

static bool heap_before(const struct loop_heap_entry *a, const struct loop_heap_entry *b)
{
	return a->due_ns < b->due_ns || (a->due_ns == b->due_ns && a->order < b->order);
}

static void heap_place(struct loop *loop, size_t at, struct loop_heap_entry entry)
{
	loop->heap[at] = entry;
	entry.timer->slot = at + 1;
}

static void heap_up(struct loop *loop, size_t at, struct loop_heap_entry entry)
{
	while (at > 0) {
		size_t parent = (at - 1) / 2;

		if (!heap_before(&entry, &loop->heap[parent]))
			break;
		heap_place(loop, at, loop->heap[parent]);
		at = parent;
	}
	heap_place(loop, at, entry);
}

static void heap_down(struct loop *loop, size_t at, struct loop_heap_entry entry)
{
	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= loop->heap_count)
			break;
		if (child + 1 < loop->heap_count &&
		    heap_before(&loop->heap[child + 1], &loop->heap[child]))
			child++;
		if (!heap_before(&loop->heap[child], &entry))
			break;
		heap_place(loop, at, loop->heap[child]);
		at = child;
	}
	heap_place(loop, at, entry);
}

/* Puts ENTRY where the entry at AT was: it may belong above or below. */
static void heap_replace(struct loop *loop, size_t at, struct loop_heap_entry entry)
{
	if (at > 0 && heap_before(&entry, &loop->heap[(at - 1) / 2]))
		heap_up(loop, at, entry);
	else
		heap_down(loop, at, entry);
}

static void heap_grow(struct loop *loop)
{
	size_t room = loop->heap_room * 2;
	struct loop_heap_entry *heap = reallocarray(loop->heap, room, sizeof *heap);

	if (!heap) {
		/* A timer that never fires would hang what waits for it. */
		log_error("out of memory for %zu timers", room);
		abort();
	}
	loop->heap = heap;
	loop->heap_room = room;
}

void loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t deadline_ns)
{
	struct loop_heap_entry entry = {deadline_ns, loop->next_order++, timer};

	/* Set from a timer and already due: after all that are due now, that is, next turn. */
	if (loop->in_timers)
		entry.due_ns = MAX_OF(deadline_ns, loop->timers_now_ns);
	timer->deadline_ns = deadline_ns;
	timer->order = entry.order;
	if (timer->slot != 0) {
		assert(loop->heap[timer->slot - 1].timer == timer);
		heap_replace(loop, timer->slot - 1, entry);
		return;
	}
	if (loop->heap_count == loop->heap_room)
		heap_grow(loop);
	loop->heap_count++;
	heap_up(loop, loop->heap_count - 1, entry);
}

void loop_timer_cancel(struct loop *loop, struct loop_timer *timer)
{
	size_t at;

	if (timer->slot == 0)
		return;
	at = timer->slot - 1;
	assert(at < loop->heap_count && loop->heap[at].timer == timer);
	timer->slot = 0;
	loop->heap_count--;
	if (at < loop->heap_count)
		heap_replace(loop, at, loop->heap[loop->heap_count]);
}

static void run_timers(struct loop *loop)
{
	uint64_t first_of_next_turn = loop->next_order;

	if (loop->heap_count == 0)
		return;
	loop->timers_now_ns = loop_now_ns(loop);
	loop->in_timers = true;
	while (loop->heap_count > 0 && loop->heap[0].due_ns <= loop->timers_now_ns &&
	       loop->heap[0].order < first_of_next_turn) {
		struct loop_timer *timer = loop->heap[0].timer;

		loop_timer_cancel(loop, timer);
		timer->fn(timer->arg);
	}
	loop->in_timers = false;
}

/* Tasks: a FIFO. */

void loop_task_queue(struct loop *loop, struct loop_task *task)
{
	if (task->queued)
		return;
	task->queued = true;
	task->next = NULL;
	if (loop->task_tail)
		loop->task_tail->next = task;
	else
		loop->task_head = task;
	loop->task_tail = task;
}

void loop_task_cancel(struct loop *loop, struct loop_task *task)
{
	struct loop_task *before = NULL;

	if (!task->queued)
		return;
	for (struct loop_task *t = loop->task_head; t != task; t = t->next) {
		assert(t);
		before = t;
	}
	if (before)
		before->next = task->next;
	else
		loop->task_head = task->next;
	if (loop->task_tail == task)
		loop->task_tail = before;
	task->next = NULL;
	task->queued = false;
}

static void run_tasks(struct loop *loop)
{
	for (unsigned i = 0; loop->task_head && i < TASKS_PER_TURN; i++) {
		struct loop_task *task = loop->task_head;

		loop->task_head = task->next;
		if (!loop->task_head)
			loop->task_tail = NULL;
		task->next = NULL;
		task->queued = false;
		task->fn(task->arg);
	}
}

/* Watches. */

int loop_watch_add(struct loop *loop, struct loop_watch *watch, uint32_t events)
{
	assert(!watch->active);
	return loop->ops->watch_add(loop, watch, events);
}

int loop_watch_set(struct loop *loop, struct loop_watch *watch, uint32_t events)
{
	assert(watch->active);
	if (events == watch->events)
		return 0;
	return loop->ops->watch_set(loop, watch, events);
}

void loop_watch_del(struct loop *loop, struct loop_watch *watch)
{
	if (watch->active)
		loop->ops->watch_del(loop, watch);
}

/* Turns. */

static int turn_until(struct loop *loop, bool wait, uint64_t deadline_ns)
{
	uint64_t until_ns = 0;
	int rc;

	assert(!loop->in_turn);
	loop->exact = false;
	if (wait && !loop->task_head && !loop->stopping) {
		until_ns = deadline_ns;
		if (loop->heap_count > 0 && loop->heap[0].due_ns <= until_ns) {
			until_ns = loop->heap[0].due_ns;
			loop->exact = loop->heap[0].timer->exact;
		}
	}
	loop->in_turn = true;
	rc = loop->ops->wait(loop, until_ns);
	if (rc == 0) {
		run_timers(loop);
		run_tasks(loop);
	}
	loop->in_turn = false;
	return rc;
}

int loop_turn(struct loop *loop, bool wait)
{
	return turn_until(loop, wait, LOOP_NEVER);
}

/* Whether something will still happen by DEADLINE_NS without a descriptor. */
static bool has_work_until(const struct loop *loop, uint64_t deadline_ns)
{
	uint64_t due_ns = loop->heap_count > 0 ? loop->heap[0].due_ns : LOOP_NEVER;

	return loop->task_head || (due_ns <= deadline_ns && due_ns != LOOP_NEVER);
}

int loop_run_until(struct loop *loop, uint64_t deadline_ns)
{
	int rc = 0;

	while (rc == 0 && !loop->stopping) {
		bool is_last = loop_now_ns(loop) >= deadline_ns;

		if (loop->ops->is_virtual && !has_work_until(loop, deadline_ns) &&
		    (is_last || deadline_ns == LOOP_NEVER))
			break;
		rc = turn_until(loop, !is_last, deadline_ns);
		if (is_last && !loop->ops->is_virtual)
			break;
	}
	loop->stopping = 0;
	return rc;
}

int loop_run(struct loop *loop)
{
	return loop_run_until(loop, LOOP_NEVER);
}

void loop_stop(struct loop *loop)
{
	loop->stopping = 1;
	loop->ops->wake(loop);
}
