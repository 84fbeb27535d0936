/* SPDX-License-Identifier: MIT
 *
 * The memory store: zeros where nothing was written, random requests against a shadow, UNMAP.
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
#include "target/drive/drive.h"

enum { SIZE_BYTES = 1 << 20, SECTOR = 512, SEED = 42 };

static int last_status;

static void done(struct io *io)
{
	last_status = io->status;
}

static int run(struct io_layer *store, enum io_op op, uint64_t offset, const struct iovec *iov,
	       unsigned count, uint64_t length)
{
	struct io io = {
	    .op = op,
	    .offset_bytes = offset,
	    .length_bytes = length,
	    .iov = iov,
	    .iov_count = count,
	    .done = done,
	};
	last_status = 1;
	io_submit(store, &io);
	return last_status;
}

static struct io_layer *open_store(uint64_t size)
{
	struct io_layer *store = NULL;
	assert_int_equal(store_memory_ops.open(NULL, NULL, "d", size, &store, NULL), 0);
	return store;
}

static void unwritten_is_zero(void **state)
{
	struct io_layer *store = open_store(UINT64_C(600) * 1000 * 1000 * 1000);
	uint8_t buffer[8192], zero[8192] = {0};
	struct iovec iov = {buffer, sizeof buffer};

	memset(buffer, 0xff, sizeof buffer);
	assert_int_equal(run(store, IO_READ, store->size_bytes - 8192, &iov, 1, 8192), 0);
	assert_memory_equal(buffer, zero, sizeof zero);
	assert_int_equal(run(store, IO_READ, store->size_bytes - 4096, &iov, 1, 8192), -ERANGE);
	/* The neighbours of a first write are zeros as well. */
	memset(buffer, 0xab, sizeof buffer);
	iov.iov_len = SECTOR;
	assert_int_equal(run(store, IO_WRITE, 65536 - SECTOR, &iov, 1, SECTOR), 0);
	iov.iov_len = 2 * SECTOR;
	assert_int_equal(run(store, IO_READ, 65536 - 2 * SECTOR, &iov, 1, 2 * SECTOR), 0);
	assert_memory_equal(buffer, zero, SECTOR);
	assert_int_equal(buffer[SECTOR], 0xab);
	store->ops->free(store);
}

/* Cuts BUFFER into up to three entries at random places. */
static unsigned cut(struct rng *rng, uint8_t *buffer, size_t size, struct iovec *iov)
{
	size_t a = rng_below(rng, size + 1), b = a + rng_below(rng, size - a + 1);
	iov[0] = (struct iovec){buffer, a};
	iov[1] = (struct iovec){buffer + a, b - a};
	iov[2] = (struct iovec){buffer + b, size - b};
	return 3;
}

static void random_against_shadow(void **state)
{
	struct io_layer *store = open_store(SIZE_BYTES);
	uint8_t *shadow = calloc(1, SIZE_BYTES), *buffer = malloc(SIZE_BYTES);
	struct rng rng;
	rng_init(&rng, SEED, 0);
	for (int i = 0; i < 3000; i++) {
		struct iovec iov[3];
		uint64_t offset = rng_below(&rng, SIZE_BYTES / SECTOR) * SECTOR;
		uint64_t most = MIN_OF(SIZE_BYTES - offset, UINT64_C(200) * 1024) / SECTOR;
		uint64_t size = (1 + rng_below(&rng, most)) * SECTOR;
		unsigned count = rng_below(&rng, 2) ? cut(&rng, buffer, size, iov) : 1;
		if (count == 1)
			iov[0] = (struct iovec){buffer, size};
		switch (rng_below(&rng, 4)) {
		case 0:
		case 1:
			rng_fill(&rng, buffer, size);
			memcpy(shadow + offset, buffer, size);
			assert_int_equal(run(store, IO_WRITE, offset, iov, count, size), 0);
			break;
		case 2:
			memset(shadow + offset, 0, size);
			assert_int_equal(run(store, IO_UNMAP, offset, NULL, 0, size), 0);
			break;
		default:
			assert_int_equal(run(store, IO_READ, offset, iov, count, size), 0);
			assert_memory_equal(buffer, shadow + offset, size);
		}
	}
	assert_int_equal(run(store, IO_FLUSH, 0, NULL, 0, 0), 0);
	struct iovec all = {buffer, SIZE_BYTES};
	assert_int_equal(run(store, IO_READ, 0, &all, 1, SIZE_BYTES), 0);
	assert_memory_equal(buffer, shadow, SIZE_BYTES);
	free(shadow);
	free(buffer);
	store->ops->free(store);
}

/* Readers that hold on to what they borrowed, against copies of what it was then. */
static void lends_what_stays_as_it_was(void **state)
{
	enum { HOLDERS = 8 };
	struct io_layer *store = open_store(SIZE_BYTES);
	uint8_t *shadow = calloc(1, SIZE_BYTES), *buffer = malloc(SIZE_BYTES);
	struct io_lent *lent = calloc(HOLDERS, sizeof *lent);
	uint8_t *copy[HOLDERS] = {NULL};
	struct rng rng;
	rng_init(&rng, SEED, 1);
	for (int i = 0; i < 3000; i++) {
		uint64_t offset = rng_below(&rng, SIZE_BYTES / SECTOR) * SECTOR;
		uint64_t most = MIN_OF(SIZE_BYTES - offset, UINT64_C(200) * 1024) / SECTOR;
		uint64_t size = (1 + rng_below(&rng, most)) * SECTOR;
		struct iovec iov = {buffer, size};
		unsigned holder = (unsigned)rng_below(&rng, HOLDERS);
		if (copy[holder]) {
			uint64_t at = 0;
			for (unsigned n = 0; n < lent[holder].count; n++) {
				const struct iovec *piece = &lent[holder].iov[n];
				assert_memory_equal(piece->iov_base, copy[holder] + at,
						    piece->iov_len);
				at += piece->iov_len;
			}
			io_lent_give_back(&lent[holder]);
			free(copy[holder]);
			copy[holder] = NULL;
		} else {
			assert_int_equal(io_lend(store, offset, size, &lent[holder]), 0);
			assert_int_equal(iov_bytes(lent[holder].iov, lent[holder].count), size);
			copy[holder] = malloc(size);
			memcpy(copy[holder], shadow + offset, size);
		}
		if (rng_below(&rng, 2)) {
			rng_fill(&rng, buffer, size);
			memcpy(shadow + offset, buffer, size);
			assert_int_equal(run(store, IO_WRITE, offset, &iov, 1, size), 0);
		} else {
			memset(shadow + offset, 0, size);
			assert_int_equal(run(store, IO_UNMAP, offset, NULL, 0, size), 0);
		}
	}
	for (unsigned i = 0; i < HOLDERS; i++) {
		io_lent_give_back(&lent[i]);
		free(copy[i]);
	}
	struct iovec all = {buffer, SIZE_BYTES};
	assert_int_equal(run(store, IO_READ, 0, &all, 1, SIZE_BYTES), 0);
	assert_memory_equal(buffer, shadow, SIZE_BYTES);
	assert_int_equal(io_lend(store, SIZE_BYTES - SECTOR, 2 * SECTOR, lent), -ERANGE);
	free(lent);
	free(shadow);
	free(buffer);
	store->ops->free(store);
}

static void odd_size(void **state)
{
	struct io_layer *store = open_store(65536 + 1024);
	uint8_t buffer[1024];
	struct iovec iov = {buffer, sizeof buffer};
	memset(buffer, 1, sizeof buffer);
	assert_int_equal(run(store, IO_WRITE, 65536, &iov, 1, 1024), 0);
	assert_int_equal(run(store, IO_UNMAP, 0, NULL, 0, 65536 + 1024), 0);
	assert_int_equal(run(store, IO_READ, 65536, &iov, 1, 1024), 0);
	assert_int_equal(buffer[0] | buffer[1023], 0);
	store->ops->free(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(unwritten_is_zero),
	    cmocka_unit_test(random_against_shadow),
	    cmocka_unit_test(lends_what_stays_as_it_was),
	    cmocka_unit_test(odd_size),
	};
	return cmocka_run_group_tests_name("store_memory", tests, NULL, NULL);
}
