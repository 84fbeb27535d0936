/* SPDX-License-Identifier: MIT
 *
 * The device without a network: nothing is answered before the floor, in the order it is due, and
 * what the layer below says is passed on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "harness/sim/direct.h"

#define FLOOR_NS (50 * NS_PER_US)

/* Answers at once, or after a time of the request's own: its offset in microseconds. */
struct below {
	struct io_layer layer;
	struct loop *loop;
	struct pending {
		struct io *io;
		struct loop_timer timer;
	} pending[8];
	unsigned count;
	int status;
};

static struct below *at; /* one a test */

static void pending_due(void *arg)
{
	struct pending *pending = arg;

	io_complete(pending->io, at->status);
}

static void below_submit(struct io_layer *layer, struct io *io)
{
	struct pending *pending = &at->pending[at->count++];

	if (io->offset_bytes == 0) {
		io_complete(io, at->status);
		return;
	}
	pending->io = io;
	loop_timer_init(&pending->timer, pending_due, pending);
	loop_timer_set(at->loop, &pending->timer,
		       loop_now_ns(at->loop) + io->offset_bytes * NS_PER_US);
}

static const struct io_layer_ops below_ops = {.name = "below", .submit = below_submit};

static uint64_t ended_ns[8];
static int ended_status[8];
static unsigned ended;

static void io_ended(struct io *io)
{
	ended_ns[ended] = loop_now_ns(at->loop);
	ended_status[ended++] = io->status;
}

static int set_up(void **state)
{
	struct io_layer *direct;

	at = calloc(1, sizeof *at);
	assert_int_equal(loop_new_virtual(0, &at->loop), 0);
	at->layer = (struct io_layer){.ops = &below_ops, .size_bytes = MIB};
	ended = 0;
	assert_int_equal(sim_direct_new(at->loop, &at->layer, FLOOR_NS, &direct), 0);
	*state = direct;
	return 0;
}

static int tear_down(void **state)
{
	sim_direct_free(*state);
	loop_free(at->loop);
	free(at);
	return 0;
}

static void send(struct io_layer *direct, struct io *io, uint64_t microseconds)
{
	*io = (struct io){.op = IO_READ, .offset_bytes = microseconds, .done = io_ended};
	io_submit(direct, io);
}

static void answers_wait_for_the_floor(void **state)
{
	struct io ios[3];

	assert_int_equal(((struct io_layer *)*state)->size_bytes, MIB);
	send(*state, &ios[0], 0);
	send(*state, &ios[1], 200);
	send(*state, &ios[2], 10);
	assert_int_equal(ended, 0);
	assert_int_equal(loop_run(at->loop), 0);
	assert_int_equal(ended, 3);
	assert_int_equal(ended_ns[0], FLOOR_NS);
	assert_int_equal(ended_ns[1], FLOOR_NS);
	assert_int_equal(ended_ns[2], 200 * NS_PER_US);
}

static void later_requests_do_not_pass_earlier_ones(void **state)
{
	struct io ios[2];

	/* Sent first, answered last: both before their floors, which are 5 us apart. */
	send(*state, &ios[0], 40);
	assert_int_equal(loop_run_until(at->loop, 5 * NS_PER_US), 0);
	send(*state, &ios[1], 10);
	assert_int_equal(loop_run(at->loop), 0);
	assert_int_equal(ended, 2);
	assert_int_equal(ended_ns[0], FLOOR_NS);
	assert_int_equal(ended_ns[1], FLOOR_NS + 5 * NS_PER_US);
}

static void errors_are_passed_on(void **state)
{
	struct io io;

	at->status = -EIO;
	send(*state, &io, 0);
	assert_int_equal(loop_run(at->loop), 0);
	assert_int_equal(ended, 1);
	assert_int_equal(ended_status[0], -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(answers_wait_for_the_floor, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(later_requests_do_not_pass_earlier_ones, set_up,
					    tear_down),
	    cmocka_unit_test_setup_teardown(errors_are_passed_on, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("direct", tests, NULL, NULL);
}
