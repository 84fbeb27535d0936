/* SPDX-License-Identifier: MIT
 *
 * The event loop and its clock: everything above it is told the time and never asks the system.
 *
 * Two kinds implement one interface: the real loop (epoll, CLOCK_MONOTONIC) and the virtual loop
 * (no descriptors; the clock jumps to the next timer).  Code above cannot tell which it runs on.
 *
 * Threading: a loop and all that is registered with it belong to one thread.
 * Ownership: timers, tasks and watches are embedded in the caller's objects; the loop only links
 * them, so they must be cancelled before that memory goes away.
 * Order within a turn: descriptor events, then due timers (by deadline, then by the order of
 * loop_timer_set), then tasks, which also include those queued by tasks of the same turn; then
 * the loop waits.  Equal inputs give equal order: simulations are reproducible.
 */
#ifndef SANLAB_BASE_LOOP_H
#define SANLAB_BASE_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;

typedef void (*loop_fn)(void *arg);

struct loop_timer {
	loop_fn fn;
	void *arg;
	uint64_t deadline_ns;
	uint64_t order; /* private */
	size_t slot;	/* private: heap position + 1, 0 while idle */
	/* Set after loop_timer_init: microseconds count, as for a drive that is modelled.  The real
	 * loop then wakes a little early and looks on until the timer is due. */
	bool exact;
};

/* Runs once before the loop next waits: the place to flush what a turn has gathered. */
struct loop_task {
	loop_fn fn;
	void *arg;
	struct loop_task *next; /* private */
	bool queued;		/* private */
};

struct loop_watch {
	int fd;
	uint32_t events;		       /* EPOLLIN | EPOLLOUT ... as last set */
	void (*fn)(void *arg, uint32_t ready); /* ready: EPOLL* bits */
	void *arg;
	bool active; /* private */
};

int loop_new_real(struct loop **ret_loop);
int loop_new_virtual(uint64_t start_ns, struct loop **ret_loop);
struct loop *loop_free(struct loop *loop); /* NULL is fine; returns NULL */

/* Monotonic nanoseconds.  Real: read from the clock at each call. */
uint64_t loop_now_ns(const struct loop *loop);
/* Nanoseconds since 1970 UTC.  Virtual: a fixed epoch (2026-01-01T00:00:00Z) plus loop_now_ns. */
uint64_t loop_wall_ns(const struct loop *loop);
bool loop_is_virtual(const struct loop *loop);

static inline void loop_timer_init(struct loop_timer *timer, loop_fn fn, void *arg)
{
	*timer = (struct loop_timer){.fn = fn, .arg = arg};
}
static inline bool loop_timer_pending(const struct loop_timer *timer)
{
	return timer->slot != 0;
}
/* Sets or moves the timer.  A deadline in the past is due in the next turn. */
void loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t deadline_ns);
void loop_timer_cancel(struct loop *loop, struct loop_timer *timer); /* idle timers are fine */

static inline void loop_task_init(struct loop_task *task, loop_fn fn, void *arg)
{
	*task = (struct loop_task){.fn = fn, .arg = arg};
}
void loop_task_queue(struct loop *loop, struct loop_task *task); /* queued twice runs once */
void loop_task_cancel(struct loop *loop, struct loop_task *task);

/* -ENOTSUP on the virtual loop.  fn/arg/fd are set by the caller before loop_watch_add. */
int loop_watch_add(struct loop *loop, struct loop_watch *watch, uint32_t events);
int loop_watch_set(struct loop *loop, struct loop_watch *watch, uint32_t events);
void loop_watch_del(struct loop *loop, struct loop_watch *watch); /* inactive is fine */

/* Runs until loop_stop.  The virtual loop also returns when nothing is left to happen.
 * Returns 0 or a negative errno of the wait itself. */
int loop_run(struct loop *loop);
/* As loop_run, but returns at the latest when the clock has reached DEADLINE_NS, where the virtual
 * clock then stands even if nothing was left to happen; what is due at DEADLINE_NS runs. */
int loop_run_until(struct loop *loop, uint64_t deadline_ns);
/* From now on a turn that brought events of some descriptors asks for those of the others before it
 * goes on to its tasks: for an end that asks several peers at once and is limited by its processor,
 * as fewer and larger writes cost less.  Nothing on the virtual loop. */
void loop_gather(struct loop *loop);
/* One turn; waits at most until the next timer (WAIT true) or not at all. */
int loop_turn(struct loop *loop, bool wait);
/* Ends loop_run after the current turn.  From the loop's own thread or a signal handler. */
void loop_stop(struct loop *loop);

#endif
