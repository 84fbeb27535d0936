/* SPDX-License-Identifier: MIT
 *
 * I/O vectors: every (skip, size) of lists with odd and empty entries, and io_in_range.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/io.h"

enum { TOTAL = 20 };

/* 20 bytes in entries of 0, 3, 0, 0, 7, 1, 9 and 0 bytes. */
struct scattered {
	uint8_t bytes[64];
	struct iovec iov[8];
};

static void scatter(struct scattered *s)
{
	static const size_t length[] = {0, 3, 0, 0, 7, 1, 9, 0};
	uint8_t *at = s->bytes;
	uint8_t value = 0;

	memset(s->bytes, 0xee, sizeof s->bytes);
	for (size_t i = 0; i < ARRAY_SIZE(length); i++) {
		s->iov[i] = (struct iovec){at, length[i]};
		for (size_t n = 0; n < length[i]; n++)
			*at++ = value++;
		at += 4; /* a gap that nothing may touch */
	}
}

static void check_gaps(const struct scattered *s)
{
	for (size_t i = 0; i < 8; i++) {
		const uint8_t *end = (const uint8_t *)s->iov[i].iov_base + s->iov[i].iov_len;

		for (size_t n = 0; n < 4; n++)
			assert_int_equal(end[n], 0xee);
	}
}

static void bytes(void **state)
{
	struct scattered s = {0};

	scatter(&s);
	assert_int_equal(iov_bytes(s.iov, 8), TOTAL);
	assert_int_equal(iov_bytes(s.iov, 0), 0);
}

static void to_mem_everywhere(void **state)
{
	struct scattered s = {0};

	scatter(&s);
	for (size_t skip = 0; skip <= TOTAL; skip++) {
		for (size_t size = 0; skip + size <= TOTAL; size++) {
			uint8_t out[TOTAL + 1];

			memset(out, 0xdd, sizeof out);
			iov_to_mem(s.iov, 8, skip, out, size);
			for (size_t i = 0; i < size; i++)
				assert_int_equal(out[i], skip + i);
			assert_int_equal(out[size], 0xdd);
		}
	}
}

static void from_mem_and_zero_everywhere(void **state)
{
	uint8_t in[TOTAL], out[TOTAL];

	for (size_t i = 0; i < TOTAL; i++)
		in[i] = (uint8_t)(100 + i);
	for (size_t skip = 0; skip <= TOTAL; skip++) {
		for (size_t size = 0; skip + size <= TOTAL; size++) {
			struct scattered s = {0};

			scatter(&s);
			iov_from_mem(s.iov, 8, skip, in, size);
			check_gaps(&s);
			iov_to_mem(s.iov, 8, 0, out, TOTAL);
			for (size_t i = 0; i < TOTAL; i++)
				assert_int_equal(out[i],
						 i >= skip && i < skip + size ? 100 + i - skip : i);
			iov_zero(s.iov, 8, skip, size);
			check_gaps(&s);
			iov_to_mem(s.iov, 8, 0, out, TOTAL);
			for (size_t i = 0; i < TOTAL; i++)
				assert_int_equal(out[i], i >= skip && i < skip + size ? 0 : i);
		}
	}
}

static void slice_everywhere(void **state)
{
	struct scattered s = {0};

	scatter(&s);
	for (size_t skip = 0; skip <= TOTAL; skip++) {
		for (size_t size = 0; skip + size <= TOTAL; size++) {
			struct iovec slice[8];
			uint8_t out[TOTAL];
			int count = iov_slice(s.iov, 8, skip, size, slice, 8);

			assert_in_range(count, size > 0, 4);
			assert_int_equal(iov_bytes(slice, (unsigned)count), size);
			iov_to_mem(slice, (unsigned)count, 0, out, size);
			for (size_t i = 0; i < size; i++)
				assert_int_equal(out[i], skip + i);
		}
	}
}

static void slice_without_room(void **state)
{
	struct scattered s = {0};
	struct iovec slice[3];

	scatter(&s);
	assert_int_equal(iov_slice(s.iov, 8, 0, TOTAL, slice, 3), -E2BIG);
	assert_int_equal(iov_slice(s.iov, 8, 0, 11, slice, 3), 3);
	assert_int_equal(iov_slice(s.iov, 8, 5, 0, slice, 0), 0);
	assert_int_equal(iov_slice(s.iov, 8, 5, 1, slice, 0), -E2BIG);
}

static void in_range(void **state)
{
	static const struct {
		uint64_t offset, length;
		bool fits;
	} rows[] = {
	    {0, 0, true},	    {0, 4096, true},	      {4096, 0, true},
	    {4097, 0, false},	    {3584, 512, true},	      {3584, 1024, false},
	    {UINT64_MAX, 2, false}, {512, UINT64_MAX, false},
	};
	struct io_layer layer = {.size_bytes = 4096};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct io io = {.offset_bytes = rows[i].offset, .length_bytes = rows[i].length};

		assert_int_equal(io_in_range(&layer, &io), rows[i].fits);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(bytes),
	    cmocka_unit_test(to_mem_everywhere),
	    cmocka_unit_test(from_mem_and_zero_everywhere),
	    cmocka_unit_test(slice_everywhere),
	    cmocka_unit_test(slice_without_room),
	    cmocka_unit_test(in_range),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
