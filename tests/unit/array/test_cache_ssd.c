/* SPDX-License-Identifier: MIT
 *
 * The SSD read-cache tier: admission, bypass, and that it never gives anything older than the set,
 * under random overlapping load with slow and failing SSDs.
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
#include "target/array/cache_ssd.h"
#include "tests/unit/array/rig.h"
#include "tests/unit/array/slow_disk.h"

enum { SSDS = 2, PAGE = 16 * 1024, DISK_BYTES = 1 << 20, SECTOR = 512, JOBS = 12 };

struct bench {
	struct loop *loop;
	struct slow_disk disk;
	struct drive *drives[SSDS];
	struct cache_ssd *ssd;
	const struct cache_ssd_counters *counters;
};

static void bench_open(struct bench *bench, uint64_t seed, uint64_t size_bytes, uint64_t max_io)
{
	struct err err = {0};

	memset(bench, 0, sizeof *bench);
	assert_int_equal(loop_new_virtual(0, &bench->loop), 0);
	slow_disk_open(&bench->disk, bench->loop, DISK_BYTES, seed);
	for (unsigned i = 0; i < SSDS; i++) {
		struct drive_config config = {
		    .name = i ? "ssd1" : "ssd0",
		    .model = drive_model_find("ssd-sas-200"),
		    .size_bytes = 16 * MIB,
		    .timing = DRIVE_TIMING_MODELLED,
		    .store = &store_memory_ops,
		    .seed = seed,
		};
		assert_int_equal(drive_open(bench->loop, &config, &bench->drives[i], &err), 0);
	}
	struct cache_ssd_config config = {
	    .drives = bench->drives,
	    .drive_count = SSDS,
	    .size_bytes = size_bytes,
	    .page_bytes = PAGE,
	    .max_io_bytes = max_io,
	};
	assert_int_equal(cache_ssd_open(&config, &bench->disk.layer, &bench->ssd, &err), 0);
	bench->counters = cache_ssd_counters(bench->ssd);
}

static void bench_close(struct bench *bench)
{
	slow_disk_drain(&bench->disk);
	for (unsigned i = 0; i < SSDS; i++)
		drive_drain(bench->drives[i]);
	cache_ssd_close(bench->ssd);
	for (unsigned i = 0; i < SSDS; i++)
		drive_close(bench->drives[i]);
	slow_disk_close(&bench->disk);
	loop_free(bench->loop);
}

static void note_end(struct io *io)
{
	*(bool *)io->owner = true;
}

/* One request, and all that follows from it. */
static int request(struct bench *bench, enum io_op op, unsigned flags, uint64_t offset, void *data,
		   uint64_t length)
{
	struct iovec iov = {data, length};
	bool ended = false;
	struct io io = {
	    .op = op,
	    .flags = flags,
	    .offset_bytes = offset,
	    .length_bytes = length,
	    .iov = &iov,
	    .iov_count = data ? 1 : 0,
	    .done = note_end,
	    .owner = &ended,
	};
	io_submit(cache_ssd_layer(bench->ssd), &io);
	assert_int_equal(loop_run(bench->loop), 0);
	assert_true(ended);
	return io.status;
}

static int read_cached(struct bench *bench, uint64_t offset, void *data, uint64_t length)
{
	return request(bench, IO_READ, IO_SSD_CACHE, offset, data, length);
}

static void a_page_is_admitted_at_its_second_miss(void **state)
{
	static struct bench bench;
	static uint8_t data[64 * KIB];
	bench_open(&bench, 1, 0, 64 * KIB);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(read_cached(&bench, 64 * KIB, data, 32 * KIB), 0);
	assert_int_equal(bench.counters->read_misses, 2);
	assert_int_equal(bench.counters->read_hits, 3);
	assert_int_equal(bench.disk.reads, 2);
	assert_int_equal(bench.counters->admitted_pages, 2);
	assert_int_equal(bench.counters->cached_bytes, 32 * KIB);
	bench_close(&bench);
}

static void large_and_unmarked_reads_pass_by(void **state)
{
	static struct bench bench;
	static uint8_t data[256 * KIB];
	bench_open(&bench, 1, 0, 64 * KIB);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(read_cached(&bench, 0, data, 256 * KIB), 0);
		assert_int_equal(request(&bench, IO_READ, 0, 512 * KIB, data, 32 * KIB), 0);
	}
	assert_int_equal(bench.counters->bypassed, 4);
	assert_int_equal(bench.counters->read_misses + bench.counters->read_hits, 0);
	assert_int_equal(bench.disk.reads, 8);
	bench_close(&bench);
}

static void a_write_goes_through_and_renews(void **state)
{
	static struct bench bench;
	static uint8_t data[PAGE], back[PAGE];
	bench_open(&bench, 1, 0, 64 * KIB);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(read_cached(&bench, 0, data, PAGE), 0);
	memset(data, 'w', sizeof data);
	assert_int_equal(request(&bench, IO_WRITE, 0, 0, data, PAGE), 0);
	assert_memory_equal(bench.disk.now, data, PAGE);
	assert_int_equal(bench.counters->renewed_bytes, PAGE);
	assert_int_equal(read_cached(&bench, 0, back, PAGE), 0);
	assert_memory_equal(back, data, PAGE);
	assert_int_equal(bench.disk.reads, 2);
	/* A page that is not cached is not put there by a write. */
	assert_int_equal(request(&bench, IO_WRITE, 0, 8 * PAGE, data, PAGE), 0);
	assert_int_equal(bench.counters->admitted_pages, 1);
	assert_int_equal(request(&bench, IO_UNMAP, 0, 0, NULL, PAGE), 0);
	assert_int_equal(read_cached(&bench, 0, back, PAGE), 0);
	assert_int_equal(back[0], 0);
	bench_close(&bench);
}

static void the_set_serves_what_a_failed_ssd_cannot(void **state)
{
	static struct bench bench;
	static uint8_t data[PAGE], back[PAGE];
	bench_open(&bench, 1, 0, 64 * KIB);
	memset(data, 'x', sizeof data);
	assert_int_equal(request(&bench, IO_WRITE, 0, 0, data, PAGE), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(read_cached(&bench, 0, back, PAGE), 0);
	for (unsigned i = 0; i < SSDS; i++)
		drive_set_failed(bench.drives[i], true);
	assert_int_equal(read_cached(&bench, 0, back, PAGE), 0);
	assert_memory_equal(back, data, PAGE);
	assert_true(bench.counters->errors > 0);
	bench_close(&bench);
}

static void the_least_recently_used_page_goes(void **state)
{
	static struct bench bench;
	static uint8_t data[PAGE];
	bench_open(&bench, 1, 4 * PAGE, 64 * KIB);
	for (unsigned round = 0; round < 2; round++)
		for (uint64_t page = 0; page < 4; page++)
			assert_int_equal(read_cached(&bench, page * PAGE, data, PAGE), 0);
	assert_int_equal(read_cached(&bench, 0, data, PAGE), 0);
	for (unsigned round = 0; round < 2; round++)
		assert_int_equal(read_cached(&bench, 9 * PAGE, data, PAGE), 0);
	uint64_t hits = bench.counters->read_hits;
	assert_int_equal(read_cached(&bench, 0, data, PAGE), 0);
	assert_int_equal(bench.counters->read_hits, hits + 1);
	assert_int_equal(bench.counters->evicted_pages, 1);
	assert_int_equal(bench.counters->cached_bytes, 4 * PAGE);
	bench_close(&bench);
}

/* ---- under load ---- */

struct job {
	struct io io;
	struct iovec iov;
	uint8_t data[2 * PAGE];
	bool used;
	uint64_t lowest[2 * PAGE / SECTOR]; /* the oldest writes a read may see */
	struct load *load;
};

struct load {
	struct bench bench;
	struct rng rng;
	uint64_t next;
	uint64_t done[DISK_BYTES / SECTOR]; /* the last answered write of each sector */
	bool busy[DISK_BYTES / SECTOR];	    /* a write is under way: they do not overlap here */
	struct job jobs[JOBS];
	uint64_t seed;
};

static void load_done(struct io *io)
{
	struct job *job = io->owner;
	struct load *load = job->load;
	uint64_t first = io->offset_bytes / SECTOR;

	assert_int_equal(io->status, 0);
	for (uint64_t i = 0; i < io->length_bytes / SECTOR; i++) {
		uint64_t id;
		memcpy(&id, job->data + i * SECTOR, sizeof id);
		if (io->op == IO_WRITE) {
			load->done[first + i] = id;
			load->busy[first + i] = false;
		} else if (id < job->lowest[i]) {
			fail_msg("seed %llu: sector %llu: write %llu after %llu",
				 (unsigned long long)load->seed, (unsigned long long)(first + i),
				 (unsigned long long)id, (unsigned long long)job->lowest[i]);
		}
	}
	job->used = false;
}

static void load_start(struct load *load)
{
	struct job *job = &load->jobs[rng_below(&load->rng, JOBS)];
	uint64_t sectors = 1 + rng_below(&load->rng, 2 * PAGE / SECTOR);
	uint64_t first = rng_below(&load->rng, 12 * PAGE / SECTOR - sectors);
	bool write = rng_below(&load->rng, 3) == 0;

	if (job->used)
		return;
	for (uint64_t i = 0; write && i < sectors; i++)
		if (load->busy[first + i])
			return;
	load->next++;
	for (uint64_t i = 0; i < sectors; i++) {
		job->lowest[i] = load->done[first + i];
		if (!write)
			continue;
		load->busy[first + i] = true;
		memcpy(job->data + i * SECTOR, &load->next, sizeof load->next);
	}
	job->used = true;
	job->load = load;
	job->iov = (struct iovec){job->data, sectors * SECTOR};
	job->io = (struct io){
	    .op = write ? IO_WRITE : IO_READ,
	    .flags = IO_SSD_CACHE,
	    .offset_bytes = first * SECTOR,
	    .length_bytes = sectors * SECTOR,
	    .iov = &job->iov,
	    .iov_count = 1,
	    .done = load_done,
	    .owner = job,
	};
	io_submit(cache_ssd_layer(load->bench.ssd), &job->io);
}

static void never_older_than_the_set(void **state)
{
	static struct load load;
	uint64_t hits = 0;

	for (uint64_t seed = 1; seed <= 30; seed++) {
		memset(&load, 0, sizeof load);
		load.seed = seed;
		rng_init(&load.rng, seed, 2);
		bench_open(&load.bench, seed, 8 * PAGE, 2 * PAGE);
		load.bench.disk.latency_ns = NS_PER_MS;
		for (unsigned i = 0; i < 3000; i++) {
			load_start(&load);
			if (rng_below(&load.rng, 200) == 0)
				drive_set_failed(load.bench.drives[0], rng_below(&load.rng, 2));
			uint64_t ns = rng_below(&load.rng, 200 * NS_PER_US);
			assert_int_equal(
			    loop_run_until(load.bench.loop, loop_now_ns(load.bench.loop) + ns), 0);
		}
		assert_int_equal(loop_run(load.bench.loop), 0);
		hits += load.bench.counters->read_hits;
		bench_close(&load.bench);
	}
	assert_true(hits > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_page_is_admitted_at_its_second_miss),
	    cmocka_unit_test(large_and_unmarked_reads_pass_by),
	    cmocka_unit_test(a_write_goes_through_and_renews),
	    cmocka_unit_test(the_set_serves_what_a_failed_ssd_cannot),
	    cmocka_unit_test(the_least_recently_used_page_goes),
	    cmocka_unit_test(never_older_than_the_set),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
