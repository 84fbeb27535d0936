/* SPDX-License-Identifier: MIT
 *
 * Private to base: what both kinds of loop share (timers, tasks, turns) and what differs (the
 * clock, waiting, descriptors).
 */
#ifndef SANLAB_BASE_LOOP_IMPL_H
#define SANLAB_BASE_LOOP_IMPL_H

#include <signal.h>

#include "base/loop.h"

#define LOOP_NEVER UINT64_MAX

struct loop_ops {
	uint64_t (*now_ns)(const struct loop *loop);
	uint64_t (*wall_ns)(const struct loop *loop);
	/* Waits until UNTIL_NS (LOOP_NEVER: no limit; not in the future: do not wait) or a
	 * descriptor is ready, and calls the watches' functions. */
	int (*wait)(struct loop *loop, uint64_t until_ns);
	void (*wake)(struct loop *loop); /* ends a wait; async-signal safe */
	int (*watch_add)(struct loop *loop, struct loop_watch *watch, uint32_t events);
	int (*watch_set)(struct loop *loop, struct loop_watch *watch, uint32_t events);
	void (*watch_del)(struct loop *loop, struct loop_watch *watch);
	void (*free)(struct loop *loop);
	bool is_virtual;
};

/* The keys stand in the heap itself: sifting does not touch the timers' memory but to note
 * their new slots. */
struct loop_heap_entry {
	uint64_t due_ns;
	uint64_t order;
	struct loop_timer *timer;
};

struct loop {
	const struct loop_ops *ops;
	struct loop_heap_entry *heap;
	size_t heap_count, heap_room;
	uint64_t next_order;
	bool in_turn;
	bool gathers; /* loop_gather */
	bool exact;   /* what ops->wait waits for is an exact timer */
	bool in_timers;
	uint64_t timers_now_ns; /* while in_timers: timers due up to here run in this turn */
	struct loop_task *task_head, *task_tail;
	volatile sig_atomic_t stopping;
};

int loop_init(struct loop *loop, const struct loop_ops *ops);
void loop_done(struct loop *loop);

#endif
