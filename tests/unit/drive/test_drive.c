/* SPDX-License-Identifier: MIT
 *
 * The drive and the shell of its model on the virtual loop: exact completion instants, counters,
 * failure in the middle, draining; and the catalogue.  The model's figures: test_disk.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "target/drive/drive.h"
#include "target/drive/model.h"

enum { REQUESTS = 16, BLOCK = 4096 };

/* One revolution 6 ms; 100 MB/s all over and a switch of 0.5 ms make tracks of 650,240 bytes. */
static const struct drive_model disk = {
    .name = "test",
    .size_bytes = 100 * MIB,
    .rpm = 10000,
    .heads = 2,
    .seek_read = {300000, 4000000, 8000000},
    .seek_write = {500000, 5000000, 9000000},
    .overhead_ns = 100000,
    .outer_bytes_per_s = 100000000,
    .inner_bytes_per_s = 100000000,
};
static const struct drive_model ssd = {
    .name = "ssd",
    .size_bytes = 100 * MIB,
    .overhead_ns = 100000,
    .channels = 4,
    .read_latency_ns = 50000,
    .write_latency_ns = 200000,
    .transfer_bytes_per_s = 100000000,
};
enum { OVERHEAD = 100000, REVOLUTION = 6000000, TRACK = 650240, TRANSFER = 40960 };

static struct loop *loop;
static struct drive *drive;
static struct io ios[REQUESTS];
static uint64_t ended_ns[REQUESTS];
static int order[REQUESTS], ended;
static uint8_t buffers[REQUESTS][BLOCK];
static struct iovec iovs[REQUESTS];

static void done(struct io *io)
{
	ended_ns[io - ios] = loop_now_ns(loop);
	order[ended++] = (int)(io - ios);
}

static void submit(int index, enum io_op op, uint64_t offset)
{
	iovs[index] = (struct iovec){buffers[index], BLOCK};
	bool moves = op == IO_READ || op == IO_WRITE;
	ios[index] = (struct io){
	    .op = op,
	    .offset_bytes = offset,
	    .length_bytes = op == IO_FLUSH ? 0 : BLOCK,
	    .iov = moves ? &iovs[index] : NULL,
	    .iov_count = moves,
	    .status = 1,
	    .done = done,
	};
	io_submit(&drive->layer, &ios[index]);
}

static void open_drive(const struct drive_model *model, enum drive_timing timing)
{
	struct drive_config config = {
	    .name = "m1-drive00",
	    .model = model,
	    .timing = timing,
	    .store = &store_memory_ops,
	};
	assert_int_equal(drive_open(loop, &config, &drive, NULL), 0);
	ended = 0;
}

static int setup(void **state)
{
	return loop_new_virtual(0, &loop);
}

static int teardown(void **state)
{
	drive = drive_close(drive);
	loop = loop_free(loop);
	return 0;
}

/* When the head has passed BYTES of the first track, counted from its beginning. */
static uint64_t angle_ns(uint64_t bytes)
{
	return bytes * REVOLUTION / TRACK;
}

static void exact_times(void **state)
{
	open_drive(&disk, DRIVE_TIMING_MODELLED);
	submit(0, IO_READ, 0);		/* the head stands there, but the place went by */
	submit(1, IO_READ, BLOCK);	/* goes on without a gap: decoded meanwhile */
	submit(2, IO_WRITE, 2 * BLOCK); /* so does a write */
	assert_int_equal(ended, 0);
	assert_int_equal(drive->in_flight, 3);
	assert_int_equal(loop_run(loop), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(order[i], i);
		assert_int_equal(ended_ns[i], REVOLUTION + angle_ns((i + 1) * BLOCK));
		assert_int_equal(ios[i].status, 0);
	}
	/* One that follows only now misses its place, and waits for it. */
	submit(3, IO_WRITE, 3 * BLOCK);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(ended_ns[3], 2 * REVOLUTION + angle_ns(4 * BLOCK));
	assert_int_equal(drive->counters.busy_ns,
			 2 * REVOLUTION + angle_ns(4 * BLOCK) - 2 * OVERHEAD);
	assert_int_equal(drive->counters.reads, 2);
	assert_int_equal(drive->counters.writes, 2);
	assert_int_equal(drive->counters.read_bytes, 2 * BLOCK);
	assert_int_equal(drive->counters.served, 4);
	assert_int_equal(drive->counters.completed, 4);
	assert_int_equal(drive->counters.queue_peak, 3);
	assert_int_equal(drive->counters.late_max_ns, 0);
	assert_int_equal(drive->in_flight, 0);
}

/* A transfer over the end of a track loses the switch and nothing else. */
static void exact_switch(void **state)
{
	open_drive(&disk, DRIVE_TIMING_MODELLED);
	submit(0, IO_READ, TRACK / 512 * 512 - 512);
	assert_int_equal(loop_run(loop), 0);
	uint64_t first = angle_ns(TRACK - 512) + (angle_ns(TRACK - 512) < OVERHEAD) * REVOLUTION;
	assert_int_equal(ended_ns[0], first + (REVOLUTION - angle_ns(TRACK - 512)) + 500000 +
					  angle_ns(BLOCK - 512));
}

static void idle_time_is_not_busy(void **state)
{
	open_drive(&ssd, DRIVE_TIMING_MODELLED);
	submit(0, IO_READ, 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(loop_run_until(loop, NS_PER_S), 0);
	uint64_t now = loop_now_ns(loop);
	submit(1, IO_WRITE, BLOCK);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(ended_ns[1], now + OVERHEAD + 200000 + TRANSFER);
	/* A share of four channels. */
	assert_int_equal(drive->counters.busy_ns, (50000 + TRANSFER) / 4 + (200000 + TRANSFER) / 4);
	assert_int_equal(drive->counters.response_ns, 2 * OVERHEAD + 250000 + 2 * TRANSFER);
}

static void channels_side_by_side(void **state)
{
	open_drive(&ssd, DRIVE_TIMING_MODELLED);
	for (int i = 0; i < 8; i++)
		submit(i, IO_READ, (uint64_t)i * 3 * BLOCK);
	assert_int_equal(loop_run(loop), 0);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(order[i], i);
		assert_int_equal(ended_ns[i], OVERHEAD + (i < 4 ? 1 : 2) * (50000 + TRANSFER));
	}
}

static void changed(void *arg, struct drive *which)
{
	assert_ptr_equal(which, drive);
	++*(int *)arg;
}

static void failure_in_the_middle(void **state)
{
	int changes = 0;
	open_drive(&disk, DRIVE_TIMING_MODELLED);
	submit(0, IO_READ, 0);
	submit(1, IO_READ, BLOCK);
	assert_int_equal(loop_run_until(loop, REVOLUTION + angle_ns(BLOCK)), 0);
	assert_int_equal(ended, 1);
	drive->changed = changed;
	drive->changed_arg = &changes;
	drive_set_failed(drive, true);
	drive_set_failed(drive, true);
	assert_int_equal(changes, 1);
	submit(2, IO_WRITE, 0);
	assert_int_equal(ios[2].status, -ENODEV);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(ios[1].status, -ENODEV);
	assert_int_equal(drive->counters.errors, 2);
	assert_int_equal(drive->counters.gone_errors, 2);
	drive_set_failed(drive, false);
	assert_int_equal(changes, 2);
	submit(3, IO_READ, 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(ios[3].status, 0);
}

static void drain_serves_at_once(void **state)
{
	open_drive(&disk, DRIVE_TIMING_MODELLED);
	for (int i = 0; i < 4; i++)
		submit(i, IO_WRITE, (uint64_t)(3 - i) * BLOCK);
	drive_drain(drive);
	assert_int_equal(ended, 4);
	assert_int_equal(drive->in_flight, 0);
	submit(4, IO_READ, 0);
	assert_int_equal(ios[4].status, 0);
	assert_int_equal(loop_now_ns(loop), 0);
}

static void untimed_is_inline(void **state)
{
	open_drive(&disk, DRIVE_TIMING_NONE);
	memset(buffers[0], 0x5a, BLOCK);
	submit(0, IO_WRITE, BLOCK);
	submit(1, IO_READ, BLOCK);
	assert_int_equal(ended, 2);
	assert_memory_equal(buffers[0], buffers[1], BLOCK);
	submit(2, IO_READ, disk.size_bytes);
	assert_int_equal(ios[2].status, -ERANGE);
	assert_int_equal(drive->counters.errors, 1);
}

static void catalogue(void **state)
{
	size_t count = 0;
	for (; drive_model_names[count]; count++) {
		const struct drive_model *model = drive_model_find(drive_model_names[count]);
		assert_non_null(model);
		assert_string_equal(model->name, drive_model_names[count]);
		assert_int_equal(model->size_bytes % 512, 0);
		assert_in_range(model->queue_depth, 32, 128);
		assert_true(model->overhead_ns > 0);
		if (!model->rpm) {
			assert_true(model->channels > 0 && model->transfer_bytes_per_s > 0);
			continue;
		}
		assert_true(model->seek_read.average_ns <= model->seek_write.average_ns);
		assert_true(model->inner_bytes_per_s < model->outer_bytes_per_s);
		assert_true(model->outer_bytes_per_s < model->link_bytes_per_s);
	}
	assert_int_equal(count, 13);
	assert_null(drive_model_find("floppy"));
	assert_int_equal(drive_model_find("sas-15k-600")->seek_read.average_ns, 3400000);
	assert_ptr_equal(store_find("memory"), &store_memory_ops);
	assert_ptr_equal(store_find("file"), &store_file_ops);
	assert_null(store_find("tape"));
	assert_string_equal(drive_timing_names[DRIVE_TIMING_MODELLED], "modelled");
	assert_null(drive_timing_names[2]);
}

static void long_name(void **state)
{
	struct err err = {0};
	struct drive_config config = {
	    .name = "a-name-that-is-longer-than-any-drive-may-have-in-a-member",
	    .model = &disk,
	    .store = &store_memory_ops,
	};
	assert_int_equal(drive_open(loop, &config, &drive, &err), -ENAMETOOLONG);
	assert_null(drive);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(exact_times, setup, teardown),
	    cmocka_unit_test_setup_teardown(exact_switch, setup, teardown),
	    cmocka_unit_test_setup_teardown(idle_time_is_not_busy, setup, teardown),
	    cmocka_unit_test_setup_teardown(channels_side_by_side, setup, teardown),
	    cmocka_unit_test_setup_teardown(failure_in_the_middle, setup, teardown),
	    cmocka_unit_test_setup_teardown(drain_serves_at_once, setup, teardown),
	    cmocka_unit_test_setup_teardown(untimed_is_inline, setup, teardown),
	    cmocka_unit_test(catalogue),
	    cmocka_unit_test_setup_teardown(long_name, setup, teardown),
	};
	return cmocka_run_group_tests_name("drive", tests, NULL, NULL);
}
