/* SPDX-License-Identifier: MIT
 *
 * The drive and its service-time model on the virtual loop: exact completion instants, counters,
 * failure in the middle, draining; and the catalogue.
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

/* Round figures: overhead 0.1 ms, half a rotation 3 ms, 4096 bytes in 40.96 us. */
static const struct drive_model disk = {
    .name = "test",
    .size_bytes = 100 * MIB,
    .rpm = 10000,
    .seek_read_ns = 4000000,
    .seek_write_ns = 8000000,
    .overhead_ns = 100000,
    .transfer_bytes_per_s = 100000000,
    .channels = 1,
};
enum { OVERHEAD = 100000, HALF_TURN = 3000000, TRANSFER = 40960 };

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

/* Seek over 1/4 of the drive: average * 15/8 * 1/2. */
static void exact_times(void **state)
{
	open_drive(&disk, DRIVE_TIMING_MODELLED);
	submit(0, IO_READ, 0);			   /* the head stands there */
	submit(1, IO_READ, BLOCK);		   /* sequential */
	submit(2, IO_READ, 25 * MIB + 2 * BLOCK);  /* a quarter of the drive */
	submit(3, IO_WRITE, 25 * MIB + 3 * BLOCK); /* sequential */
	submit(4, IO_WRITE, 4 * BLOCK);		   /* a quarter back */
	submit(5, IO_FLUSH, 0);
	submit(6, IO_READ, 5 * BLOCK); /* sequential: FLUSH does not move the arm */
	submit(7, IO_READ, 0);	       /* near: the least seek */
	assert_int_equal(ended, 0);
	assert_int_equal(drive->in_flight, 8);
	assert_int_equal(loop_run(loop), 0);

	uint64_t at = 0;
	const uint64_t expected[] = {
	    OVERHEAD + TRANSFER,
	    OVERHEAD + TRANSFER,
	    OVERHEAD + 3750000 + HALF_TURN + TRANSFER,
	    OVERHEAD + TRANSFER,
	    OVERHEAD + 7500000 + HALF_TURN + TRANSFER,
	    OVERHEAD,
	    OVERHEAD + TRANSFER,
	    OVERHEAD + 250000 + HALF_TURN + TRANSFER,
	};
	for (int i = 0; i < 8; i++) {
		at += expected[i];
		assert_int_equal(order[i], i);
		assert_int_equal(ended_ns[i], at);
		assert_int_equal(ios[i].status, 0);
	}
	assert_int_equal(drive->counters.busy_ns, at);
	assert_int_equal(drive->counters.reads, 5);
	assert_int_equal(drive->counters.writes, 2);
	assert_int_equal(drive->counters.flushes, 1);
	assert_int_equal(drive->counters.read_bytes, 5 * BLOCK);
	assert_int_equal(drive->counters.write_bytes, 2 * BLOCK);
	assert_int_equal(drive->in_flight, 0);
}

static void idle_time_is_not_busy(void **state)
{
	open_drive(&disk, DRIVE_TIMING_MODELLED);
	submit(0, IO_READ, 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(loop_run_until(loop, NS_PER_S), 0);
	uint64_t now = loop_now_ns(loop);
	submit(1, IO_READ, BLOCK);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(ended_ns[1], now + OVERHEAD + TRANSFER);
	assert_int_equal(drive->counters.busy_ns, 2 * (OVERHEAD + TRANSFER));
}

/* The mean over random places is the data sheet's average. */
static void random_seeks_average(void **state)
{
	const struct drive_model *model = drive_model_find("sas-10k-600");
	struct rng rng;
	double sum = 0;
	uint64_t head = 0;
	enum { COUNT = 20000 };

	rng_init(&rng, 7, 0);
	for (int i = 0; i < COUNT; i++) {
		struct io io = {
		    .op = IO_READ,
		    .offset_bytes = rng_below(&rng, model->size_bytes / BLOCK) * BLOCK,
		    .length_bytes = BLOCK,
		};
		sum += (double)drive_service_ns(model, model->size_bytes, head, &io);
		head = io.offset_bytes + BLOCK;
	}
	/* 0.2 + 3.8 + 3.0 + 0.036 ms */
	assert_true(sum / COUNT > 6.95e6 && sum / COUNT < 7.12e6);
}

static void channels_side_by_side(void **state)
{
	static struct drive_model ssd;
	ssd = disk;
	ssd.rpm = 0;
	ssd.channels = 4;
	open_drive(&ssd, DRIVE_TIMING_MODELLED);
	for (int i = 0; i < 8; i++)
		submit(i, IO_READ, (uint64_t)i * 3 * BLOCK);
	assert_int_equal(loop_run(loop), 0);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(order[i], i);
		assert_int_equal(ended_ns[i], (i < 4 ? 1 : 2) * (OVERHEAD + TRANSFER));
	}
}

static void failure_in_the_middle(void **state)
{
	open_drive(&disk, DRIVE_TIMING_MODELLED);
	submit(0, IO_READ, 0);
	submit(1, IO_READ, BLOCK);
	assert_int_equal(loop_run_until(loop, OVERHEAD + TRANSFER), 0);
	assert_int_equal(ended, 1);
	drive_set_failed(drive, true);
	submit(2, IO_WRITE, 0);
	assert_int_equal(ios[2].status, -ENODEV);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(ios[1].status, -ENODEV);
	assert_int_equal(drive->counters.errors, 2);
	drive_set_failed(drive, false);
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
		assert_int_equal(model->size_bytes % 4096, 0);
		assert_true(model->transfer_bytes_per_s > 0);
		assert_true(model->channels > 0);
		assert_true(model->rpm == 0 || model->seek_read_ns > 0);
	}
	assert_int_equal(count, 6);
	assert_null(drive_model_find("floppy"));
	assert_int_equal(drive_model_find("sas-15k-600")->seek_read_ns, 3400000);
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
	    cmocka_unit_test_setup_teardown(idle_time_is_not_busy, setup, teardown),
	    cmocka_unit_test(random_seeks_average),
	    cmocka_unit_test_setup_teardown(channels_side_by_side, setup, teardown),
	    cmocka_unit_test_setup_teardown(failure_in_the_middle, setup, teardown),
	    cmocka_unit_test_setup_teardown(drain_serves_at_once, setup, teardown),
	    cmocka_unit_test_setup_teardown(untimed_is_inline, setup, teardown),
	    cmocka_unit_test(catalogue),
	    cmocka_unit_test_setup_teardown(long_name, setup, teardown),
	};
	return cmocka_run_group_tests_name("drive", tests, NULL, NULL);
}
