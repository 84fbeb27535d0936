/* SPDX-License-Identifier: MIT
 *
 * The real loop: descriptors, waits that end, stops from a signal handler.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/loop.h"

/* Far above what anything here takes: only a hang reaches it. */
#define LIMIT_NS (20 * NS_PER_S)

struct end {
	struct loop *loop;
	struct loop_watch watch;
	unsigned times;
	uint32_t ready;
	struct end *victim; /* deleted by the first callback */
	struct end *kicked; /* gets a byte by the first callback */
	bool muted;	    /* sets its victim's events to 0 instead of deleting it */
};

struct fixture {
	struct loop *loop;
	struct end end[4]; /* two socket pairs: 0-1 and 2-3 */
	struct loop_timer timer;
	struct loop_task task;
	unsigned timer_times, task_times;
	bool stop_in_timer;
};

static struct loop *signalled_loop;

static void end_ready(void *arg, uint32_t ready)
{
	struct end *end = arg;

	end->times++;
	end->ready = ready;
	if (end->kicked)
		assert_int_equal(write(end->kicked->watch.fd, "x", 1), 1);
	end->kicked = NULL;
	if (end->victim && end->muted)
		assert_int_equal(loop_watch_set(end->loop, &end->victim->watch, 0), 0);
	else if (end->victim)
		loop_watch_del(end->loop, &end->victim->watch);
}

static void timer_fired(void *arg)
{
	struct fixture *fix = arg;

	fix->timer_times++;
	if (fix->stop_in_timer)
		loop_stop(fix->loop);
}

static void task_ran(void *arg)
{
	struct fixture *fix = arg;

	fix->task_times++;
}

static int setup(void **state)
{
	struct fixture *fix = calloc(1, sizeof *fix);

	if (!fix || loop_new_real(&fix->loop) < 0) {
		free(fix);
		return -1;
	}
	for (unsigned i = 0; i < 4; i += 2) {
		int fds[2];

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) < 0)
			return -1;
		fix->end[i].watch.fd = fds[0];
		fix->end[i + 1].watch.fd = fds[1];
	}
	for (unsigned i = 0; i < 4; i++) {
		fix->end[i].loop = fix->loop;
		fix->end[i].watch.fn = end_ready;
		fix->end[i].watch.arg = &fix->end[i];
	}
	loop_timer_init(&fix->timer, timer_fired, fix);
	loop_task_init(&fix->task, task_ran, fix);
	*state = fix;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fix = *state;

	for (unsigned i = 0; i < 4; i++) {
		loop_watch_del(fix->loop, &fix->end[i].watch);
		if (fix->end[i].watch.fd >= 0)
			close(fix->end[i].watch.fd);
	}
	loop_free(fix->loop);
	free(fix);
	return 0;
}

static void clocks(void **state)
{
	struct fixture *fix = *state;
	uint64_t before = loop_now_ns(fix->loop);

	assert_false(loop_is_virtual(fix->loop));
	assert_true(loop_now_ns(fix->loop) >= before);
	assert_true(loop_wall_ns(fix->loop) > UINT64_C(1700000000) * NS_PER_S);
}

static void readable_then_gone(void **state)
{
	struct fixture *fix = *state;
	struct end *end = &fix->end[0];
	char byte = 0;

	assert_int_equal(loop_watch_add(fix->loop, &end->watch, EPOLLIN), 0);
	assert_int_equal(loop_turn(fix->loop, false), 0);
	assert_int_equal(end->times, 0);
	assert_int_equal(write(fix->end[1].watch.fd, "x", 1), 1);
	assert_int_equal(loop_turn(fix->loop, true), 0);
	assert_int_equal(end->times, 1);
	assert_int_equal(end->ready, EPOLLIN);
	assert_int_equal(read(end->watch.fd, &byte, 1), 1);
	assert_int_equal(loop_watch_set(fix->loop, &end->watch, EPOLLIN | EPOLLOUT), 0);
	assert_int_equal(loop_turn(fix->loop, true), 0);
	assert_int_equal(end->ready, EPOLLOUT);
	close(fix->end[1].watch.fd);
	fix->end[1].watch.fd = -1;
	assert_int_equal(loop_turn(fix->loop, true), 0);
	assert_true(end->ready & EPOLLHUP);
	loop_watch_del(fix->loop, &end->watch);
	loop_watch_del(fix->loop, &end->watch); /* inactive: fine */
	assert_int_equal(loop_turn(fix->loop, false), 0);
	assert_int_equal(end->times, 3);
}

static void bad_descriptor_is_refused(void **state)
{
	struct fixture *fix = *state;
	struct loop_watch watch = {.fd = -1};

	assert_int_equal(loop_watch_add(fix->loop, &watch, EPOLLIN), -EBADF);
	assert_false(watch.active);
}

static void events_timers_tasks(void **state)
{
	struct fixture *fix = *state;

	/* All three are due: one turn runs all, and the wait does not delay them. */
	assert_int_equal(loop_watch_add(fix->loop, &fix->end[0].watch, EPOLLOUT), 0);
	loop_timer_set(fix->loop, &fix->timer, 0);
	loop_task_queue(fix->loop, &fix->task);
	assert_int_equal(loop_turn(fix->loop, true), 0);
	assert_int_equal(fix->end[0].times, 1);
	assert_int_equal(fix->timer_times, 1);
	assert_int_equal(fix->task_times, 1);
}

/* What comes in during a turn waits for the next one, or is asked for before the tasks. */
static void gathers_before_tasks(void **state)
{
	struct fixture *fix = *state;

	for (unsigned gathers = 0; gathers < 2; gathers++) {
		char byte;

		if (gathers)
			loop_gather(fix->loop);
		for (unsigned i = 0; i < 4; i += 2) {
			fix->end[i].times = 0;
			assert_int_equal(loop_watch_add(fix->loop, &fix->end[i].watch, EPOLLIN), 0);
		}
		fix->end[0].kicked = &fix->end[3];
		assert_int_equal(write(fix->end[1].watch.fd, "x", 1), 1);
		assert_int_equal(loop_turn(fix->loop, true), 0);
		assert_int_equal(fix->end[2].times, gathers);
		assert_int_equal(read(fix->end[0].watch.fd, &byte, 1), 1);
		assert_int_equal(loop_turn(fix->loop, false), 0);
		assert_true(fix->end[2].times > gathers);
		assert_int_equal(read(fix->end[2].watch.fd, &byte, 1), 1);
		for (unsigned i = 0; i < 4; i += 2)
			loop_watch_del(fix->loop, &fix->end[i].watch);
	}
}

/* Both ends are ready in one batch; whichever comes first silences the other. */
static void silence_within_batch(struct fixture *fix, bool muted)
{
	for (unsigned i = 0; i < 2; i++) {
		fix->end[2 * i].victim = &fix->end[2 - 2 * i];
		fix->end[2 * i].muted = muted;
		assert_int_equal(loop_watch_add(fix->loop, &fix->end[2 * i].watch, EPOLLOUT), 0);
	}
	assert_int_equal(loop_turn(fix->loop, true), 0);
	assert_int_equal(fix->end[0].times + fix->end[2].times, 1);
	assert_int_equal(loop_turn(fix->loop, true), 0);
	assert_int_equal(fix->end[0].times + fix->end[2].times, 2);
	assert_true(fix->end[0].times == 0 || fix->end[2].times == 0);
}

static void delete_within_batch(void **state)
{
	silence_within_batch(*state, false);
}

static void mute_within_batch(void **state)
{
	silence_within_batch(*state, true);
}

static void timer_is_not_early(void **state)
{
	struct fixture *fix = *state;
	uint64_t due_ns = loop_now_ns(fix->loop) + 3 * NS_PER_MS + 123;

	fix->stop_in_timer = true;
	loop_timer_set(fix->loop, &fix->timer, due_ns);
	assert_int_equal(loop_run_until(fix->loop, due_ns + LIMIT_NS), 0);
	assert_int_equal(fix->timer_times, 1);
	assert_true(loop_now_ns(fix->loop) >= due_ns);
	assert_true(loop_now_ns(fix->loop) < due_ns + LIMIT_NS);
}

/* It wakes before, looks on, and still neither fires early nor misses what a descriptor says. */
static void exact_timer_is_not_early(void **state)
{
	struct fixture *fix = *state;
	struct end *end = &fix->end[0];

	fix->timer.exact = true;
	assert_int_equal(loop_watch_add(fix->loop, &end->watch, EPOLLIN), 0);
	for (unsigned i = 1; i <= 5; i++) {
		uint64_t due_ns = loop_now_ns(fix->loop) + 2 * NS_PER_MS;

		loop_timer_set(fix->loop, &fix->timer, due_ns);
		while (fix->timer_times < i)
			assert_int_equal(loop_turn(fix->loop, true), 0);
		assert_true(loop_now_ns(fix->loop) >= due_ns);
	}
	loop_timer_set(fix->loop, &fix->timer, loop_now_ns(fix->loop) + LIMIT_NS);
	assert_int_equal(write(fix->end[1].watch.fd, "x", 1), 1);
	assert_int_equal(loop_turn(fix->loop, true), 0);
	assert_int_equal(end->times, 1);
	assert_int_equal(fix->timer_times, 5);
}

static void run_until_deadline(void **state)
{
	struct fixture *fix = *state;
	uint64_t deadline_ns = loop_now_ns(fix->loop) + 2 * NS_PER_MS;

	loop_timer_set(fix->loop, &fix->timer, deadline_ns + 100 * NS_PER_S);
	assert_int_equal(loop_run_until(fix->loop, deadline_ns), 0);
	assert_true(loop_now_ns(fix->loop) >= deadline_ns);
	assert_true(loop_now_ns(fix->loop) < deadline_ns + LIMIT_NS);
	assert_int_equal(fix->timer_times, 0);
	loop_task_queue(fix->loop, &fix->task);
	assert_int_equal(loop_run_until(fix->loop, 1), 0); /* in the past: one turn */
	assert_int_equal(fix->task_times, 1);
	loop_timer_cancel(fix->loop, &fix->timer);
}

static void on_alarm(int number)
{
	(void)number;
	loop_stop(signalled_loop);
}

static void stop_from_signal_handler(void **state)
{
	struct fixture *fix = *state;
	struct sigaction action = {.sa_handler = on_alarm}, before;
	struct itimerval soon = {.it_value.tv_usec = 2000};
	uint64_t begin_ns = loop_now_ns(fix->loop);

	signalled_loop = fix->loop;
	assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
	assert_int_equal(loop_run_until(fix->loop, begin_ns + LIMIT_NS), 0);
	assert_true(loop_now_ns(fix->loop) < begin_ns + LIMIT_NS);
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
	/* The wake-up that was left behind does not disturb the next run. */
	loop_timer_set(fix->loop, &fix->timer, loop_now_ns(fix->loop) + NS_PER_MS);
	fix->stop_in_timer = true;
	assert_int_equal(loop_run_until(fix->loop, begin_ns + 2 * LIMIT_NS), 0);
	assert_int_equal(fix->timer_times, 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
	    CASE(clocks),
	    CASE(readable_then_gone),
	    CASE(bad_descriptor_is_refused),
	    CASE(events_timers_tasks),
	    CASE(gathers_before_tasks),
	    CASE(delete_within_batch),
	    CASE(mute_within_batch),
	    CASE(timer_is_not_early),
	    CASE(exact_timer_is_not_early),
	    CASE(run_until_deadline),
	    CASE(stop_from_signal_handler),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
