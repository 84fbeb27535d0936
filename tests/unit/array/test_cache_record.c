/* SPDX-License-Identifier: MIT
 *
 * Records of dirty pages: a process killed at any step leaves each sector old or new and never
 * half; damage is found.
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
#include "base/rng.h"
#include "target/array/cache_record.h"

enum { FRAMES = 4, PAGE_BYTES = 8192, SECTORS = PAGE_BYTES / CACHE_SECTOR_BYTES };

struct bench {
	struct nvram nvram;
	struct records records;
	/* what frame 1 holds by its last answered write, and by the one under way; 0: nothing */
	uint8_t before[SECTORS], after[SECTORS];
	struct nvram copy;
	unsigned steps;
	struct recovered found[FRAMES];
	unsigned found_count;
};

static void note_found(void *arg, const struct recovered *found)
{
	struct bench *bench = arg;
	bench->found[bench->found_count++] = *found;
}

static struct record_losses recover(struct bench *bench, struct nvram *nvram,
				    struct records *records)
{
	struct record_losses losses;
	bench->found_count = 0;
	records_init(records, nvram, FRAMES, PAGE_BYTES);
	records_recover(records, note_found, bench, &losses);
	return losses;
}

/* What a killed process would leave here must be readable. */
static void check_step(void *arg)
{
	struct bench *bench = arg;
	struct records records;

	bench->steps++;
	memcpy(bench->copy.memory, bench->nvram.memory, bench->nvram.bytes);
	struct record_losses losses = recover(bench, &bench->copy, &records);
	assert_int_equal(losses.lost_bytes, 0);
	assert_int_equal(losses.lost_records, 0);
	cache_bits dirty = bench->found_count ? bench->found[0].dirty : 0;
	for (unsigned i = 0; i < SECTORS; i++) {
		const uint8_t *data = records_content(&records, 1) + i * CACHE_SECTOR_BYTES;
		if (!(dirty >> i & 1)) {
			assert_int_equal(bench->before[i], 0);
			continue;
		}
		assert_true(data[0] == bench->before[i] || data[0] == bench->after[i]);
		for (unsigned k = 1; k < CACHE_SECTOR_BYTES; k++)
			assert_int_equal(data[k], data[0]);
	}
}

static void bench_open(struct bench *bench)
{
	size_t bytes = records_bytes(FRAMES, PAGE_BYTES);
	*bench = (struct bench){.steps = 0};
	assert_int_equal(nvram_open(NULL, "test", bytes, &bench->nvram, NULL), 0);
	assert_int_equal(nvram_open(NULL, "copy", bytes, &bench->copy, NULL), 0);
	assert_int_equal(records_format(&bench->nvram, FRAMES, PAGE_BYTES), 0);
	records_init(&bench->records, &bench->nvram, FRAMES, PAGE_BYTES);
}

static void bench_close(struct bench *bench)
{
	nvram_close(&bench->nvram);
	nvram_close(&bench->copy);
}

static void put(struct bench *bench, uint32_t frame, uint64_t page, unsigned first,
		unsigned sectors, uint8_t value, cache_bits committed)
{
	static uint8_t data[PAGE_BYTES];
	struct iovec iov = {data, (size_t)sectors * CACHE_SECTOR_BYTES};
	struct io io = {.op = IO_WRITE, .iov = &iov, .iov_count = 1, .length_bytes = iov.iov_len};

	memset(data, value, sizeof data);
	records_write(&bench->records, frame, page, &io, 0, first, sectors, committed,
		      committed | bits_range(first, sectors));
}

static void a_kill_at_any_step_leaves_old_or_new(void **state)
{
	struct bench bench;
	struct rng rng;
	cache_bits committed = 0;

	rng_init(&rng, 1, 0);
	bench_open(&bench);
	bench.records.stepped = check_step;
	bench.records.arg = &bench;
	for (unsigned i = 1; i < 200; i++) {
		unsigned first = (unsigned)rng_below(&rng, SECTORS);
		unsigned count = 1 + (unsigned)rng_below(&rng, SECTORS - first);
		memset(bench.after + first, (int)i, count);
		put(&bench, 1, 77, first, count, (uint8_t)i, committed);
		committed |= bits_range(first, count);
		memset(bench.before + first, (int)i, count);
		check_step(&bench);
		if (rng_below(&rng, 4) == 0) {
			/* Destaged: from here on any of it may be missing. */
			memset(bench.before, 0, sizeof bench.before);
			committed = 0;
			records_commit(&bench.records, 1, 77, committed);
		}
	}
	assert_true(bench.steps > 1000);
	bench_close(&bench);
}

static void an_update_cut_short_is_finished(void **state)
{
	struct bench bench;
	struct records records;
	bench_open(&bench);
	put(&bench, 1, 5, 0, 4, 'a', 0);
	put(&bench, 1, 5, 2, 4, 'b', bits_range(0, 4));
	recover(&bench, &bench.nvram, &records);
	assert_int_equal(bench.found_count, 1);
	assert_int_equal(bench.found[0].page, 5);
	assert_true(bench.found[0].dirty == bits_range(0, 6));
	assert_int_equal(records_content(&records, 1)[0], 'a');
	assert_int_equal(records_content(&records, 1)[2 * CACHE_SECTOR_BYTES], 'b');
	bench_close(&bench);
}

static void damaged_content_is_left_out(void **state)
{
	struct bench bench;
	struct records records;
	bench_open(&bench);
	put(&bench, 0, 9, 0, 8, 'a', 0);
	records_content(&bench.records, 0)[3 * CACHE_SECTOR_BYTES + 17] ^= 4;
	struct record_losses losses = recover(&bench, &bench.nvram, &records);
	assert_int_equal(losses.lost_bytes, CACHE_SECTOR_BYTES);
	assert_true(bench.found[0].dirty == (bits_range(0, 8) & ~bits_range(3, 1)));
	bench_close(&bench);
}

/* Every bit of every record, one after the other: found, or without effect. */
static void damaged_records_are_found(void **state)
{
	struct bench bench;
	struct records records;
	bench_open(&bench);
	put(&bench, 0, 9, 0, 8, 'a', 0);
	put(&bench, 2, 10, 0, 16, 'b', 0);
	size_t begin = bench.records.headers_at, end = bench.records.content_at;
	for (size_t bit = begin * 8; bit < end * 8; bit++) {
		memcpy(bench.copy.memory, bench.nvram.memory, bench.nvram.bytes);
		bench.copy.memory[bit / 8] ^= (uint8_t)(1 << bit % 8);
		struct record_losses losses = recover(&bench, &bench.copy, &records);
		bool reported = losses.lost_bytes || losses.lost_records || losses.torn;
		bool whole = bench.found_count == 2 && bench.found[0].page == 9 &&
			     bench.found[0].dirty == bits_range(0, 8) &&
			     bench.found[1].page == 10 && bench.found[1].dirty == bits_range(0, 16);
		if (!reported && !whole)
			fail_msg("bit %zu", bit);
	}
	bench_close(&bench);
}

static void a_page_in_another_frame_is_not_taken_for_it(void **state)
{
	struct bench bench;
	struct records records;
	bench_open(&bench);
	put(&bench, 0, 9, 0, 8, 'a', 0);
	records_commit(&bench.records, 0, 9, 0);
	/* The frame's next page; then its newest header is lost. */
	put(&bench, 0, 12, 0, 8, 'b', 0);
	struct record_losses before = recover(&bench, &bench.nvram, &records);
	assert_int_equal(before.lost_records, 0);
	struct record_header *headers =
	    (struct record_header *)(void *)(bench.nvram.memory + records.headers_at);
	headers[headers[1].sequence > headers[0].sequence].crc ^= 1;
	struct record_losses losses = recover(&bench, &bench.nvram, &records);
	assert_int_equal(losses.lost_records, 1);
	for (unsigned i = 0; i < bench.found_count; i++)
		assert_int_not_equal(bench.found[i].page, 9);
	bench_close(&bench);
}

static void the_first_page_tells_what_it_is(void **state)
{
	struct bench bench;
	uint32_t frames, page_bytes;
	struct err err = {0};
	bench_open(&bench);
	assert_int_equal(records_probe(&bench.nvram, &frames, &page_bytes, &err), 0);
	assert_int_equal(frames, FRAMES);
	assert_int_equal(page_bytes, PAGE_BYTES);
	assert_int_equal(records_probe(&bench.copy, &frames, &page_bytes, &err), -ENODATA);
	for (unsigned byte = 0; byte < 24; byte++) {
		bench.nvram.memory[byte] ^= 1;
		assert_int_equal(records_probe(&bench.nvram, &frames, &page_bytes, &err), -EILSEQ);
		bench.nvram.memory[byte] ^= 1;
	}
	bench.nvram.bytes /= 2;
	assert_int_equal(records_probe(&bench.nvram, &frames, &page_bytes, &err), -EILSEQ);
	bench.nvram.bytes *= 2;
	bench_close(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_kill_at_any_step_leaves_old_or_new),
	    cmocka_unit_test(an_update_cut_short_is_finished),
	    cmocka_unit_test(damaged_content_is_left_out),
	    cmocka_unit_test(damaged_records_are_found),
	    cmocka_unit_test(a_page_in_another_frame_is_not_taken_for_it),
	    cmocka_unit_test(the_first_page_tells_what_it_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
