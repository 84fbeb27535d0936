/* SPDX-License-Identifier: MIT
 *
 * A member whose drives keep nothing answers as fast as one whose drives do: what it leaves out is
 * copies and arithmetic, never time.  What is read are zeros, from the caches too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "harness/lab/lab.h"
#include "harness/sim/array_load.h"

static const char lab_text[] = "name: hollow\n"
			       "group:\n"
			       "  style: lun\n"
			       "  portal: 127.0.0.1:3260\n"
			       "  pools:\n"
			       "    - name: default\n"
			       "      members:\n"
			       "        - name: m1\n"
			       "          drives: {model: sas-15k-600, count: 6, size: 128MiB}\n"
			       "          raid: raid5\n"
			       "          cache: {size: 16MiB, mode: write-back}\n"
			       "          ssd-cache: {count: 1, size: 64MiB, model: ssd-sas-200}\n"
			       "          checksums: false\n"
			       "          timing: modelled\n"
			       "  volumes:\n"
			       "    - {name: v, size: 256MiB, thin: false, ssd-cache: true}\n";

struct world {
	struct lab *lab;
	struct loop *loop;
	struct group *group;
};

static void open_world(struct world *world, const char *store)
{
	char set[80];
	const char *sets[] = {set};
	struct err err = {0};

	snprintf(set, sizeof set, "group.pools.default.members.m1.%s", store);
	assert_int_equal(
	    lab_parse("hollow.yaml", lab_text, strlen(lab_text), sets, 1, stderr, &world->lab), 0);
	assert_int_equal(loop_new_virtual(0, &world->loop), 0);
	if (group_open(world->loop, &world->lab->group, "hollow", 1, &world->group, &err))
		fail_msg("%s", err.what);
}

static void close_world(struct world *world)
{
	group_close(world->group);
	loop_free(world->loop);
	lab_free(world->lab);
}

enum { STREAMS = 3 };
struct outcome {
	uint64_t requests[STREAMS], p50_ns[STREAMS], p99_ns[STREAMS], sum_ns[STREAMS];
};

static void play(const char *store, unsigned flags, struct outcome *ret_outcome)
{
	struct array_stream_config config = {
	    .op = IO_READ,
	    .flags = flags,
	    .per_second = 100,
	    .mean_bytes = 33350,
	    .unit_bytes = 32 * KIB,
	    .region_bytes = 256 * MIB,
	};
	struct array_load *load;
	struct world world;

	open_world(&world, store);
	assert_int_equal(array_load_new(world.loop, 7, &load), 0);
	config.volume = group_volume(world.group, 0);
	assert_int_equal(array_load_add(load, &config), 0);
	config.op = IO_WRITE;
	config.flags = 0;
	config.per_second = 60;
	assert_int_equal(array_load_add(load, &config), 1);
	config.op = IO_READ;
	config.flags = flags;
	config.pattern = ARRAY_STREAM_SEQUENTIAL;
	config.per_second = 9;
	config.mean_bytes = config.unit_bytes = 256 * KIB;
	assert_int_equal(array_load_add(load, &config), 2);
	loop_run_until(world.loop, 5 * NS_PER_S);
	array_load_begin_window(load);
	loop_run_until(world.loop, 65 * NS_PER_S);
	array_load_stop(load);
	loop_run_until(world.loop, 75 * NS_PER_S);
	assert_int_equal(array_load_outstanding(load), 0);
	for (unsigned i = 0; i < STREAMS; i++) {
		const struct array_stream_result *result = array_load_result(load, i);

		assert_int_equal(result->errors, 0);
		ret_outcome->requests[i] = result->requests;
		ret_outcome->p50_ns[i] = hist_quantile_ns(&result->latency, 0.5);
		ret_outcome->p99_ns[i] = hist_quantile_ns(&result->latency, 0.99);
		ret_outcome->sum_ns[i] = result->latency.sum_ns;
	}
	group_close(world.group);
	world.group = NULL;
	array_load_free(load);
	loop_free(world.loop);
	lab_free(world.lab);
}

static void it_takes_the_same_time(void **state)
{
	struct outcome real, hollow, blind;

	play("store=memory", 0, &real);
	play("store=discard", 0, &hollow);
	play("store=discard", IO_BLIND, &blind);
	assert_true(real.requests[0] > 5000 && real.requests[1] > 3000);
	assert_memory_equal(&real, &hollow, sizeof real);
	assert_memory_equal(&real, &blind, sizeof real);
}

struct one {
	struct io io;
	struct iovec iov;
	bool ended;
	uint8_t data[32 * KIB];
};

static void one_ended(struct io *io)
{
	((struct one *)io->owner)->ended = true;
}

static void one(struct world *world, enum io_op op, unsigned flags, uint8_t fill, struct one *one)
{
	memset(one->data, fill, sizeof one->data);
	one->iov = (struct iovec){one->data, sizeof one->data};
	one->ended = false;
	one->io = (struct io){.op = op,
			      .flags = flags,
			      .offset_bytes = 96 * KIB,
			      .length_bytes = sizeof one->data,
			      .iov = &one->iov,
			      .iov_count = 1,
			      .done = one_ended,
			      .owner = one};
	io_submit(volume_layer(group_volume(world->group, 0)), &one->io);
	loop_run_until(world->loop, loop_now_ns(world->loop) + NS_PER_S);
	assert_true(one->ended);
	assert_int_equal(one->io.status, 0);
}

static void what_is_read_are_zeros(void **state)
{
	struct one *io = calloc(1, sizeof *io);
	struct world world;
	uint8_t any = 0;

	assert_non_null(io);
	open_world(&world, "store=discard");
	one(&world, IO_WRITE, 0, 0xaa, io);
	one(&world, IO_READ, 0, 0x55, io); /* from the write cache */
	for (size_t i = 0; i < sizeof io->data; i++)
		any |= io->data[i];
	assert_int_equal(any, 0);
	one(&world, IO_READ, IO_BLIND, 0x55, io);
	assert_int_equal(io->data[0], 0x55);
	close_world(&world);
	free(io);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(it_takes_the_same_time),
	    cmocka_unit_test(what_is_read_are_zeros),
	};

	return cmocka_run_group_tests_name("hollow", tests, NULL, NULL);
}
