/* SPDX-License-Identifier: MIT
 *
 * The controller cache, case by case: when writes are done and where they are then, destage
 * order, modes, errors of the set, back-pressure, read-ahead, controller time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "target/array/cache.h"
#include "target/array/cache_record.h"
#include "tests/unit/array/slow_disk.h"

enum { CHUNK = 4096, STRIPE = 4 * CHUNK, FRAMES = 64, DISK_BYTES = 4 << 20 };

struct bench {
	struct loop *loop;
	struct slow_disk disk;
	struct cache *cache;
	struct cache_config config;
	struct cache_status status;
};

static void open_cache(struct bench *bench)
{
	struct err err = {0};
	if (cache_open(bench->loop, &bench->config, &bench->disk.layer, &bench->cache, &err))
		fail_msg("%s", err.what);
}

static struct bench *bench_open(enum cache_mode mode)
{
	struct bench *bench = calloc(1, sizeof *bench);
	assert_int_equal(loop_new_virtual(0, &bench->loop), 0);
	slow_disk_open(&bench->disk, bench->loop, DISK_BYTES, 1);
	bench->config = (struct cache_config){
	    .name = "m1",
	    .size_bytes = FRAMES * CHUNK,
	    .mode = mode,
	    .read = true,
	    .chunk_bytes = CHUNK,
	    .stripe_bytes = STRIPE,
	};
	open_cache(bench);
	return bench;
}

static void bench_close(struct bench *bench)
{
	bench->disk.dead = false;
	slow_disk_drain(&bench->disk);
	cache_close(bench->cache);
	slow_disk_close(&bench->disk);
	loop_free(bench->loop);
	free(bench);
}

static const struct cache_counters *counters(struct bench *bench)
{
	cache_status(bench->cache, &bench->status);
	return &bench->status.counters;
}

struct wait {
	struct io io;
	struct iovec iov;
	bool ended;
};

static void note_end(struct io *io)
{
	((struct wait *)io->owner)->ended = true;
}

static void begin(struct bench *bench, struct wait *wait, enum io_op op, unsigned flags,
		  uint64_t offset, void *data, uint64_t length)
{
	*wait = (struct wait){.iov = {data, length}};
	wait->io = (struct io){
	    .op = op,
	    .flags = flags,
	    .offset_bytes = offset,
	    .length_bytes = length,
	    .iov = &wait->iov,
	    .iov_count = data ? 1 : 0,
	    .done = note_end,
	    .owner = wait,
	};
	io_submit(cache_layer(bench->cache), &wait->io);
}

static void run_ns(struct bench *bench, uint64_t ns)
{
	assert_int_equal(loop_run_until(bench->loop, loop_now_ns(bench->loop) + ns), 0);
}

static int request(struct bench *bench, enum io_op op, unsigned flags, uint64_t offset, void *data,
		   uint64_t length)
{
	struct wait wait;
	begin(bench, &wait, op, flags, offset, data, length);
	for (unsigned i = 0; !wait.ended && i < 10000; i++)
		run_ns(bench, NS_PER_MS);
	assert_true(wait.ended);
	return wait.io.status;
}

static int write_value(struct bench *bench, uint64_t offset, uint64_t length, int value)
{
	static uint8_t data[MIB];
	memset(data, value, length);
	return request(bench, IO_WRITE, 0, offset, data, length);
}

static int read_value(struct bench *bench, uint64_t offset, uint64_t length)
{
	static uint8_t data[MIB];
	assert_int_equal(request(bench, IO_READ, 0, offset, data, length), 0);
	for (uint64_t i = 1; i < length; i++)
		assert_int_equal(data[i], data[0]);
	return data[0];
}

static void a_write_is_done_in_memory_and_destaged_with_age(void **state)
{
	struct bench *bench = bench_open(CACHE_WRITE_BACK);
	uint8_t data[512] = {1};

	assert_int_equal(write_value(bench, 8192, 4096, 'a'), 0);
	assert_int_equal(request(bench, IO_WRITE, IO_FUA, 65536, data, sizeof data), 0);
	assert_int_equal(request(bench, IO_FLUSH, 0, 0, NULL, 0), 0);
	assert_int_equal(bench->disk.writes, 0);
	assert_int_equal(bench->disk.flushes, 0);
	assert_int_equal(read_value(bench, 8192, 4096), 'a');
	(void)counters(bench);
	assert_int_equal(bench->status.dirty_bytes, 4096 + 512);
	run_ns(bench, 7 * NS_PER_S);
	assert_int_equal(bench->disk.writes, 2);
	assert_int_equal(bench->disk.now[8192], 'a');
	(void)counters(bench);
	assert_int_equal(bench->status.dirty_bytes, 0);
	assert_true(bench->disk.flushes >= 1);
	bench_close(bench);
}

/* What was written through before a crash lies in the set, and perhaps not on stable storage. */
static void the_first_flush_goes_down(void **state)
{
	struct bench *bench = bench_open(CACHE_WRITE_BACK);
	struct nvram nvram;
	struct err err;

	cache_close(bench->cache);
	assert_int_equal(nvram_open(NULL, "m1", records_bytes(FRAMES, CHUNK), &nvram, &err), 0);
	bench->config.nvram = &nvram;
	open_cache(bench);
	assert_int_equal(request(bench, IO_FLUSH, 0, 0, NULL, 0), 0);
	assert_int_equal(bench->disk.flushes, 1);
	assert_int_equal(write_value(bench, 0, 4096, 'a'), 0);
	assert_int_equal(request(bench, IO_FLUSH, 0, 0, NULL, 0), 0);
	assert_int_equal(bench->disk.flushes, 1);
	bench_close(bench);
	nvram_close(&nvram);
}

static void what_is_written_again_is_destaged_once(void **state)
{
	struct bench *bench = bench_open(CACHE_WRITE_BACK);
	for (int i = 0; i < 50; i++)
		assert_int_equal(write_value(bench, 4096, 4096, i), 0);
	run_ns(bench, 7 * NS_PER_S);
	assert_int_equal(bench->disk.writes, 1);
	assert_int_equal(counters(bench)->overwritten_bytes, 49 * 4096);
	assert_int_equal(bench->disk.now[4096], 49);
	bench_close(bench);
}

static void small_writes_become_whole_stripes(void **state)
{
	struct bench *bench = bench_open(CACHE_WRITE_BACK);
	for (uint64_t at = 0; at < 2 * STRIPE; at += 512)
		assert_int_equal(write_value(bench, STRIPE + at, 512, 's'), 0);
	run_ns(bench, 7 * NS_PER_S);
	assert_int_equal(bench->disk.writes, 2);
	assert_int_equal(bench->disk.last_length, STRIPE);
	assert_int_equal(counters(bench)->full_stripes, 2);
	bench_close(bench);
}

static void a_cached_stripe_that_is_mostly_dirty_goes_whole(void **state)
{
	struct bench *bench = bench_open(CACHE_WRITE_BACK);
	assert_int_equal(read_value(bench, 0, STRIPE), 0);
	assert_int_equal(write_value(bench, 512, 3 * CHUNK, 'x'), 0);
	run_ns(bench, 7 * NS_PER_S);
	assert_int_equal(bench->disk.writes, 1);
	assert_int_equal(bench->disk.last_offset, 0);
	assert_int_equal(bench->disk.last_length, STRIPE);
	bench_close(bench);
}

static void fill_between_the_marks_drives_destage(void **state)
{
	struct bench *bench = bench_open(CACHE_WRITE_BACK);
	bench->disk.latency_ns = NS_PER_MS;
	/* 56 pages may be dirty: the low mark is at 33. */
	for (uint64_t i = 0; i < 32; i++)
		assert_int_equal(write_value(bench, i * STRIPE, 512, 'm'), 0);
	assert_int_equal(bench->disk.writes, 0);
	for (uint64_t i = 32; i < 40; i++)
		assert_int_equal(write_value(bench, i * STRIPE, 512, 'm'), 0);
	assert_true(bench->disk.writes > 0);
	/* In ascending order. */
	assert_true(bench->disk.last_offset <= bench->disk.writes * STRIPE);
	bench_close(bench);
}

static void writes_wait_for_room_and_never_fail(void **state)
{
	static uint8_t data[CHUNK];
	struct bench *bench = bench_open(CACHE_WRITE_BACK);
	struct wait *waits = calloc(200, sizeof *waits);
	unsigned ended = 0;

	bench->disk.latency_ns = 20 * NS_PER_MS;
	for (unsigned i = 0; i < 200; i++)
		begin(bench, &waits[i], IO_WRITE, 0, (uint64_t)i * STRIPE, data, CHUNK);
	for (unsigned i = 0; i < 200; i++)
		ended += waits[i].ended;
	assert_true(ended < 64);
	assert_true(counters(bench)->write_waits > 100);
	assert_true(bench->status.waiting > 100);
	run_ns(bench, NS_PER_S);
	for (unsigned i = 0; i < 200; i++) {
		assert_true(waits[i].ended);
		assert_int_equal(waits[i].io.status, 0);
	}
	free(waits);
	bench_close(bench);
}

static void through_without_mirror_or_battery_and_back(void **state)
{
	struct bench *bench = bench_open(CACHE_WRITE_BACK);
	uint8_t data[512] = {7};

	assert_int_equal(write_value(bench, 0, 4096, 'b'), 0);
	cache_set_battery(bench->cache, false);
	(void)counters(bench);
	assert_int_equal(bench->status.in_force, CACHE_WRITE_THROUGH);
	assert_string_equal(bench->status.why, "battery lost");
	assert_int_equal(bench->status.dirty_bytes, 0); /* destaged at once */
	assert_int_equal(bench->disk.now[0], 'b');
	assert_int_equal(write_value(bench, 8192, 4096, 'c'), 0);
	assert_int_equal(bench->disk.now[8192], 'c');
	assert_int_equal(request(bench, IO_WRITE, IO_FUA, 512, data, sizeof data), 0);
	assert_int_equal(bench->disk.fua_writes, 1);
	uint64_t flushes = bench->disk.flushes;
	assert_int_equal(request(bench, IO_FLUSH, 0, 0, NULL, 0), 0);
	assert_true(bench->disk.flushes > flushes);
	uint64_t reads = bench->disk.reads;
	assert_int_equal(read_value(bench, 8192, 4096), 'c');
	assert_int_equal(bench->disk.reads, reads);
	cache_set_mirrored(bench->cache, false);
	cache_set_battery(bench->cache, true);
	(void)counters(bench);
	assert_string_equal(bench->status.why, "mirror lost");
	cache_set_mirrored(bench->cache, true);
	uint64_t writes = bench->disk.writes;
	assert_int_equal(write_value(bench, 16384, 4096, 'd'), 0);
	assert_int_equal(bench->disk.writes, writes);
	bench_close(bench);
}

static void a_set_that_refuses_keeps_the_data_dirty(void **state)
{
	struct bench *bench = bench_open(CACHE_WRITE_BACK);
	bench->disk.dead = true;
	assert_int_equal(write_value(bench, 0, 4096, 'e'), 0);
	run_ns(bench, 20 * NS_PER_S);
	assert_true(counters(bench)->destage_errors > 5);
	assert_int_equal(bench->status.dirty_bytes, 4096);
	assert_int_equal(bench->status.failed_bytes, 4096);
	assert_int_equal(read_value(bench, 0, 4096), 'e');
	bench->disk.dead = false;
	run_ns(bench, 8 * NS_PER_S);
	(void)counters(bench);
	assert_int_equal(bench->status.dirty_bytes, 0);
	assert_int_equal(bench->disk.now[0], 'e');
	bench_close(bench);
}

static void a_dead_set_does_not_hang_its_writers(void **state)
{
	struct bench *bench = bench_open(CACHE_WRITE_BACK);
	unsigned failed = 0;
	bench->disk.dead = true;
	for (uint64_t i = 0; i < 100; i++)
		failed += write_value(bench, i * STRIPE, CHUNK, 'f') == -EIO;
	assert_true(failed > 30 && failed < 60);
	bench_close(bench);
}

/* All frames hold what the dead part refuses or what cannot be flushed: what lies elsewhere is
 * written all the same, and what was read meanwhile is not kept. */
static void a_dead_part_does_not_hold_up_the_rest(void **state)
{
	enum { HALF = DISK_BYTES / 2 };
	struct bench *bench = bench_open(CACHE_WRITE_BACK);
	uint8_t data[CHUNK] = {'i'};

	bench->disk.dead_from = HALF;
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(write_value(bench, i * CHUNK, CHUNK, 'g'), 0);
	run_ns(bench, 20 * NS_PER_S); /* destaged, and not to be flushed */
	for (uint64_t i = 0; i < 60; i++)
		(void)write_value(bench, HALF + i * CHUNK, CHUNK, 'h');
	(void)counters(bench);
	assert_true(bench->status.dirty_bytes + 20 * CHUNK > 56 * CHUNK);
	cache_set_battery(bench->cache, false);
	bench->disk.latency_ns = NS_PER_MS;
	for (uint64_t i = 40; i < 80; i++) {
		assert_int_equal(read_value(bench, i * CHUNK, CHUNK), 0);
		memset(data, 'i', sizeof data);
		assert_int_equal(request(bench, IO_WRITE, IO_FUA, i * CHUNK, data, sizeof data), 0);
		assert_int_equal(read_value(bench, i * CHUNK, CHUNK), 'i');
	}
	assert_int_equal(request(bench, IO_WRITE, 0, DISK_BYTES - CHUNK, data, CHUNK), -EIO);
	assert_int_equal(request(bench, IO_FLUSH, 0, 0, NULL, 0), -EIO);
	bench->disk.dead_from = 0;
	run_ns(bench, 5 * NS_PER_S);
	assert_int_equal(bench->disk.now[0], 'g');
	assert_int_equal(bench->disk.now[HALF], 'h');
	assert_int_equal(read_value(bench, 50 * CHUNK, CHUNK), 'i');
	assert_false(bench->disk.overlap);
	bench_close(bench);
}

static void unmap_drops_what_is_cached(void **state)
{
	struct bench *bench = bench_open(CACHE_WRITE_BACK);
	assert_int_equal(write_value(bench, 0, STRIPE, 'g'), 0);
	assert_int_equal(request(bench, IO_UNMAP, 0, 4096, NULL, 4096), 0);
	assert_int_equal(read_value(bench, 4096, 4096), 0);
	assert_int_equal(read_value(bench, 0, 4096), 'g');
	(void)counters(bench);
	assert_int_equal(bench->status.dirty_bytes, STRIPE - 4096);
	run_ns(bench, 7 * NS_PER_S);
	assert_int_equal(bench->disk.now[4096], 0);
	assert_int_equal(bench->disk.now[8192], 'g');
	bench_close(bench);
}

static void reads_hit_the_second_time(void **state)
{
	struct bench *bench = bench_open(CACHE_WRITE_THROUGH);
	memset(bench->disk.now, 'h', STRIPE);
	assert_int_equal(read_value(bench, 512, 8192), 'h');
	assert_int_equal(read_value(bench, 512, 8192), 'h');
	assert_int_equal(read_value(bench, 0, 4096), 'h'); /* its first sector is missing */
	assert_int_equal(counters(bench)->read_hits, 1);
	assert_int_equal(counters(bench)->read_misses + counters(bench)->read_partial_hits, 2);
	assert_int_equal(bench->disk.reads, 2);
	bench_close(bench);
}

static void a_scan_leaves_the_working_set(void **state)
{
	struct bench *bench = bench_open(CACHE_WRITE_THROUGH);
	for (unsigned round = 0; round < 2; round++)
		for (uint64_t page = 0; page < 20; page++)
			(void)read_value(bench, page * CHUNK, CHUNK);
	for (uint64_t at = MIB; at < 3 * MIB; at += CHUNK)
		(void)read_value(bench, at, CHUNK);
	uint64_t reads = bench->disk.reads;
	for (uint64_t page = 0; page < 20; page++)
		(void)read_value(bench, page * CHUNK, CHUNK);
	assert_int_equal(bench->disk.reads, reads);
	bench_close(bench);
}

static void sequential_reads_are_read_ahead(void **state)
{
	struct bench *bench = bench_open(CACHE_WRITE_THROUGH);
	cache_close(bench->cache);
	bench->config.prefetch = true;
	bench->config.size_bytes = MIB;
	open_cache(bench);
	bench->disk.latency_ns = NS_PER_MS;
	for (uint64_t at = 0; at < MIB; at += 8192)
		(void)read_value(bench, at, 8192);
	const struct cache_counters *c = counters(bench);
	assert_true(c->read_hits > 100);
	assert_true(c->prefetch_used_bytes > MIB * 3 / 4);
	assert_true(c->prefetched_bytes < MIB * 3 / 2);
	bench_close(bench);
}

static void controller_time_is_modelled(void **state)
{
	struct bench *bench = bench_open(CACHE_WRITE_BACK);
	static uint8_t data[65536];
	struct wait wait;

	cache_close(bench->cache);
	bench->config.modelled = true;
	open_cache(bench);
	uint64_t began_ns = loop_now_ns(bench->loop);
	begin(bench, &wait, IO_WRITE, 0, 0, data, sizeof data);
	assert_false(wait.ended);
	while (!wait.ended)
		assert_int_equal(loop_turn(bench->loop, true), 0);
	assert_int_equal(loop_now_ns(bench->loop) - began_ns,
			 CACHE_WRITE_NS + sizeof data * NS_PER_S / CACHE_BYTES_PER_S);
	began_ns = loop_now_ns(bench->loop);
	begin(bench, &wait, IO_READ, 0, 0, data, 4096);
	while (!wait.ended)
		assert_int_equal(loop_turn(bench->loop, true), 0);
	assert_true(loop_now_ns(bench->loop) - began_ns >=
		    CACHE_READ_HIT_NS + 4096 * NS_PER_S / CACHE_BYTES_PER_S);
	bench_close(bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_write_is_done_in_memory_and_destaged_with_age),
	    cmocka_unit_test(the_first_flush_goes_down),
	    cmocka_unit_test(what_is_written_again_is_destaged_once),
	    cmocka_unit_test(small_writes_become_whole_stripes),
	    cmocka_unit_test(a_cached_stripe_that_is_mostly_dirty_goes_whole),
	    cmocka_unit_test(fill_between_the_marks_drives_destage),
	    cmocka_unit_test(writes_wait_for_room_and_never_fail),
	    cmocka_unit_test(through_without_mirror_or_battery_and_back),
	    cmocka_unit_test(a_set_that_refuses_keeps_the_data_dirty),
	    cmocka_unit_test(a_dead_set_does_not_hang_its_writers),
	    cmocka_unit_test(a_dead_part_does_not_hold_up_the_rest),
	    cmocka_unit_test(unmap_drops_what_is_cached),
	    cmocka_unit_test(reads_hit_the_second_time),
	    cmocka_unit_test(a_scan_leaves_the_working_set),
	    cmocka_unit_test(sequential_reads_are_read_ahead),
	    cmocka_unit_test(controller_time_is_modelled),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
