/* SPDX-License-Identifier: MIT
 *
 * Timers, tasks and runs on the virtual loop, where every moment is exact.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/bytes.h"
#include "base/loop.h"
#include "base/rng.h"

struct fixture {
	struct loop *loop;
	char trace[256];
	size_t traced;
};

/* What happened, as a string of names: the order is what these tests are about. */
struct actor {
	struct fixture *fix;
	char name;
	struct loop_timer timer;
	struct loop_task task;
	void (*then)(struct actor *actor);
	struct actor *other;
	uint64_t at_ns;
	unsigned times;
};

static int setup(void **state)
{
	struct fixture *fix = calloc(1, sizeof *fix);

	if (!fix || loop_new_virtual(1000, &fix->loop) < 0) {
		free(fix);
		return -1;
	}
	*state = fix;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fix = *state;

	loop_free(fix->loop);
	free(fix);
	return 0;
}

static void actor_fn(void *arg)
{
	struct actor *actor = arg;

	assert_true(actor->fix->traced + 1 < sizeof actor->fix->trace);
	actor->fix->trace[actor->fix->traced++] = actor->name;
	actor->at_ns = loop_now_ns(actor->fix->loop);
	actor->times++;
	if (actor->then)
		actor->then(actor);
}

static void actors_init(struct fixture *fix, struct actor *actors, size_t count)
{
	memset(actors, 0, count * sizeof *actors);
	for (size_t i = 0; i < count; i++) {
		actors[i].fix = fix;
		actors[i].name = (char)('a' + i);
		loop_timer_init(&actors[i].timer, actor_fn, &actors[i]);
		loop_task_init(&actors[i].task, actor_fn, &actors[i]);
	}
}

static void virtual_clock(void **state)
{
	struct fixture *fix = *state;

	assert_true(loop_is_virtual(fix->loop));
	assert_int_equal(loop_now_ns(fix->loop), 1000);
	assert_int_equal(loop_wall_ns(fix->loop), UINT64_C(1767225600000001000));
	assert_int_equal(loop_run(fix->loop), 0); /* nothing to happen: returns */
	assert_int_equal(loop_now_ns(fix->loop), 1000);
}

static void timers_by_deadline_then_order(void **state)
{
	struct fixture *fix = *state;
	struct actor a[5];

	actors_init(fix, a, 5);
	loop_timer_set(fix->loop, &a[0].timer, 5000);
	loop_timer_set(fix->loop, &a[1].timer, 3000);
	loop_timer_set(fix->loop, &a[2].timer, 5000);
	loop_timer_set(fix->loop, &a[3].timer, 10); /* the past */
	loop_timer_set(fix->loop, &a[4].timer, 3000);
	loop_timer_set(fix->loop, &a[0].timer, 5000); /* set again: now behind c */
	assert_true(loop_timer_pending(&a[0].timer));
	assert_int_equal(loop_run(fix->loop), 0);
	assert_string_equal(fix->trace, "dbeca");
	assert_int_equal(a[3].at_ns, 1000);
	assert_int_equal(a[1].at_ns, 3000);
	assert_int_equal(a[0].at_ns, 5000);
	assert_int_equal(loop_now_ns(fix->loop), 5000);
	assert_false(loop_timer_pending(&a[0].timer));
}

static void timer_move_and_cancel(void **state)
{
	struct fixture *fix = *state;
	struct actor a[4];

	actors_init(fix, a, 4);
	for (size_t i = 0; i < 4; i++)
		loop_timer_set(fix->loop, &a[i].timer, 2000 + 1000 * i);
	loop_timer_set(fix->loop, &a[0].timer, 9000); /* later */
	loop_timer_set(fix->loop, &a[3].timer, 1500); /* earlier */
	loop_timer_cancel(fix->loop, &a[2].timer);
	loop_timer_cancel(fix->loop, &a[2].timer); /* idle: fine */
	assert_int_equal(loop_run(fix->loop), 0);
	assert_string_equal(fix->trace, "dba");
}

static void cancel_other(struct actor *actor)
{
	loop_timer_cancel(actor->fix->loop, &actor->other->timer);
	loop_task_cancel(actor->fix->loop, &actor->other->task);
}

static void cancel_in_callback(void **state)
{
	struct fixture *fix = *state;
	struct actor a[4];

	actors_init(fix, a, 4);
	a[0].then = cancel_other;
	a[0].other = &a[1]; /* due at the same moment */
	a[2].then = cancel_other;
	a[2].other = &a[3]; /* a task of the same turn */
	loop_timer_set(fix->loop, &a[0].timer, 2000);
	loop_timer_set(fix->loop, &a[1].timer, 2000);
	loop_task_queue(fix->loop, &a[2].task);
	loop_task_queue(fix->loop, &a[3].task);
	assert_int_equal(loop_run(fix->loop), 0);
	assert_string_equal(fix->trace, "ca");
}

static void set_past(struct actor *actor)
{
	if (actor->times < 3)
		loop_timer_set(actor->fix->loop, &actor->timer, 0);
}

static void past_deadline_waits_for_next_turn(void **state)
{
	struct fixture *fix = *state;
	struct actor a[3];

	actors_init(fix, a, 3);
	a[0].then = set_past;
	loop_timer_set(fix->loop, &a[0].timer, 2000);
	loop_timer_set(fix->loop, &a[1].timer, 2000);
	loop_task_queue(fix->loop, &a[2].task);
	assert_int_equal(loop_turn(fix->loop, true), 0); /* the task keeps it from waiting */
	assert_string_equal(fix->trace, "c");
	assert_int_equal(loop_turn(fix->loop, false), 0);
	assert_string_equal(fix->trace, "c"); /* not due yet */
	assert_int_equal(loop_turn(fix->loop, true), 0);
	assert_string_equal(fix->trace, "cab");	     /* b is not overtaken, a runs once a turn */
	assert_int_equal(a[0].timer.deadline_ns, 0); /* as it was set */
	assert_int_equal(loop_turn(fix->loop, false), 0);
	assert_string_equal(fix->trace, "caba");
	assert_int_equal(loop_run(fix->loop), 0);
	assert_string_equal(fix->trace, "cabaa");
	assert_int_equal(loop_now_ns(fix->loop), 2000);
}

static void queue_other(struct actor *actor)
{
	loop_task_queue(actor->fix->loop, &actor->other->task);
}

static void tasks_in_one_turn(void **state)
{
	struct fixture *fix = *state;
	struct actor a[4];

	actors_init(fix, a, 4);
	a[0].then = queue_other;
	a[0].other = &a[3];
	a[2].then = queue_other; /* a timer queues a task: it runs in the same turn */
	a[2].other = &a[0];
	loop_task_queue(fix->loop, &a[0].task);
	loop_task_queue(fix->loop, &a[1].task);
	loop_task_queue(fix->loop, &a[0].task); /* twice is once */
	loop_timer_set(fix->loop, &a[2].timer, 1000);
	assert_int_equal(loop_turn(fix->loop, true), 0);
	assert_string_equal(fix->trace, "cabd");
	fix->traced = 0;
	loop_task_queue(fix->loop, &a[1].task); /* reuse */
	assert_int_equal(loop_turn(fix->loop, false), 0);
	assert_int_equal(a[1].times, 2);
}

static void task_cancel_keeps_the_list(void **state)
{
	/* Cancelling the head, the middle, the tail and the only one. */
	for (unsigned gone = 0; gone < 3; gone++) {
		struct fixture *fix = *state;
		struct actor a[4];
		char want[4] = "abd";

		actors_init(fix, a, 4);
		memset(fix->trace, 0, sizeof fix->trace);
		fix->traced = 0;
		for (unsigned i = 0; i < 3; i++)
			loop_task_queue(fix->loop, &a[i].task);
		loop_task_cancel(fix->loop, &a[gone].task);
		loop_task_cancel(fix->loop, &a[gone].task);
		loop_task_queue(fix->loop, &a[3].task);
		for (unsigned i = 0, at = 0; i < 4; i++)
			if (i != gone)
				want[at++] = (char)('a' + i);
		assert_int_equal(loop_run(fix->loop), 0);
		assert_string_equal(fix->trace, want);
		loop_task_queue(fix->loop, &a[0].task);
		loop_task_cancel(fix->loop, &a[0].task);
		assert_int_equal(loop_run(fix->loop), 0);
		assert_string_equal(fix->trace, want);
	}
}

static void count_and_requeue(void *arg)
{
	struct actor *actor = arg;

	if (++actor->times < 100000)
		loop_task_queue(actor->fix->loop, &actor->task);
}

static void tasks_do_not_starve_timers(void **state)
{
	struct fixture *fix = *state;
	struct actor a[2];

	actors_init(fix, a, 2);
	a[0].task.fn = count_and_requeue;
	loop_task_queue(fix->loop, &a[0].task);
	assert_int_equal(loop_turn(fix->loop, true), 0);
	assert_in_range(a[0].times, 1, 99999);
	loop_timer_set(fix->loop, &a[1].timer, 1000);
	assert_int_equal(loop_turn(fix->loop, true), 0);
	assert_int_equal(a[1].times, 1);
	assert_int_equal(loop_run(fix->loop), 0);
	assert_int_equal(a[0].times, 100000);
}

static void run_until(void **state)
{
	struct fixture *fix = *state;
	struct actor a[3];

	actors_init(fix, a, 3);
	loop_timer_set(fix->loop, &a[0].timer, 2000);
	loop_timer_set(fix->loop, &a[1].timer, 3000);
	loop_timer_set(fix->loop, &a[2].timer, 3001);
	assert_int_equal(loop_run_until(fix->loop, 2500), 0);
	assert_string_equal(fix->trace, "a");
	assert_int_equal(loop_now_ns(fix->loop), 2500);
	assert_int_equal(loop_run_until(fix->loop, 3000), 0);
	assert_string_equal(fix->trace, "ab"); /* due at the deadline runs */
	assert_int_equal(loop_run_until(fix->loop, 1), 0);
	assert_string_equal(fix->trace, "ab");
	assert_int_equal(loop_now_ns(fix->loop), 3000); /* never back */
	assert_int_equal(loop_run_until(fix->loop, 8000), 0);
	assert_string_equal(fix->trace, "abc");
	assert_int_equal(loop_now_ns(fix->loop), 8000);
	loop_timer_set(fix->loop, &a[0].timer, UINT64_MAX); /* never */
	assert_int_equal(loop_run(fix->loop), 0);
	assert_string_equal(fix->trace, "abc");
	loop_timer_cancel(fix->loop, &a[0].timer);
}

static void stop_loop(struct actor *actor)
{
	loop_stop(actor->fix->loop);
}

static void stop_ends_after_the_turn(void **state)
{
	struct fixture *fix = *state;
	struct actor a[4];

	actors_init(fix, a, 4);
	a[0].then = stop_loop;
	loop_timer_set(fix->loop, &a[0].timer, 2000);
	loop_timer_set(fix->loop, &a[1].timer, 2000);
	loop_timer_set(fix->loop, &a[2].timer, 2001);
	assert_int_equal(loop_run(fix->loop), 0);
	assert_string_equal(fix->trace, "ab");
	assert_int_equal(loop_run(fix->loop), 0); /* the stop is used up */
	assert_string_equal(fix->trace, "abc");
	loop_timer_set(fix->loop, &a[3].timer, 0);
	loop_stop(fix->loop); /* before the run: must not be lost */
	assert_int_equal(loop_run(fix->loop), 0);
	assert_string_equal(fix->trace, "abc");
	loop_timer_cancel(fix->loop, &a[3].timer);
}

static void no_watches(void **state)
{
	struct fixture *fix = *state;
	struct loop_watch watch = {.fd = 0};

	assert_int_equal(loop_watch_add(fix->loop, &watch, EPOLLIN), -ENOTSUP);
	assert_false(watch.active);
	loop_watch_del(fix->loop, &watch);
}

enum { MANY = 2000 };

struct crowd {
	struct loop *loop;
	struct loop_timer timer[MANY];
	uint64_t last_deadline_ns, fired;
};

static struct crowd crowd;

static void crowd_fn(void *arg)
{
	struct loop_timer *timer = arg;

	assert_true(timer->deadline_ns >= crowd.last_deadline_ns);
	assert_int_equal(timer->deadline_ns, loop_now_ns(crowd.loop));
	crowd.last_deadline_ns = timer->deadline_ns;
	crowd.fired++;
}

static void many_timers(void **state)
{
	struct fixture *fix = *state;
	uint64_t cancelled = 0;
	struct rng rng;

	rng_init(&rng, 1, 1);
	memset(&crowd, 0, sizeof crowd);
	crowd.loop = fix->loop;
	for (size_t i = 0; i < MANY; i++) {
		loop_timer_init(&crowd.timer[i], crowd_fn, &crowd.timer[i]);
		loop_timer_set(fix->loop, &crowd.timer[i], 1000 + rng_below(&rng, 100000));
	}
	for (size_t i = 0; i < MANY; i++) {
		struct loop_timer *timer = &crowd.timer[rng_below(&rng, MANY)];

		if (i % 3 == 0) {
			cancelled += loop_timer_pending(timer);
			loop_timer_cancel(fix->loop, timer);
		} else {
			cancelled -= !loop_timer_pending(timer);
			loop_timer_set(fix->loop, timer, 1000 + rng_below(&rng, 100000));
		}
	}
	assert_int_equal(loop_run(fix->loop), 0);
	assert_int_equal(crowd.fired, MANY - cancelled);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
	    CASE(virtual_clock),
	    CASE(timers_by_deadline_then_order),
	    CASE(timer_move_and_cancel),
	    CASE(cancel_in_callback),
	    CASE(past_deadline_waits_for_next_turn),
	    CASE(tasks_in_one_turn),
	    CASE(task_cancel_keeps_the_list),
	    CASE(tasks_do_not_starve_timers),
	    CASE(run_until),
	    CASE(stop_ends_after_the_turn),
	    CASE(no_watches),
	    CASE(many_timers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
