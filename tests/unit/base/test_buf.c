/* SPDX-License-Identifier: MIT
 *
 * Buffer pool: sizes, alignment, references, reuse, the limit and its refusals.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"

static void sizes_and_alignment(void **state)
{
	static const size_t sizes[] = {0,     1,     512,     4096,	     4097,   8192,
				       65536, 65537, 1 << 20, (1 << 20) + 1, 5 << 20};
	struct buf_pool *pool = buf_pool_new(64 * MIB);

	assert_non_null(pool);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct buf *buf = buf_new(pool, sizes[i]);

		assert_non_null(buf);
		assert_true(buf->size_bytes >= sizes[i]);
		assert_int_equal((uintptr_t)buf->data % 4096, 0);
		assert_int_equal(buf->refs, 1);
		assert_int_equal(buf_pool_in_use_bytes(pool), buf->size_bytes);
		memset(buf->data, 0xa5, buf->size_bytes);
		assert_null(buf_unref(buf));
		assert_int_equal(buf_pool_in_use_bytes(pool), 0);
	}
	assert_int_equal(buf_pool_refusals(pool), 0);
	assert_null(buf_pool_free(pool));
}

static void references(void **state)
{
	struct buf_pool *pool = buf_pool_new(MIB);
	struct buf *buf = buf_new(pool, 100);

	assert_ptr_equal(buf_ref(buf), buf);
	buf_unref(buf);
	assert_int_equal(buf_pool_in_use_bytes(pool), 4096); /* still held */
	memset(buf->data, 1, 100);
	buf_unref(buf);
	assert_int_equal(buf_pool_in_use_bytes(pool), 0);
	assert_null(buf_unref(NULL));
	assert_null(buf_pool_free(NULL));
	buf_pool_free(pool);
}

static void reuse(void **state)
{
	struct buf_pool *pool = buf_pool_new(MIB);
	struct buf *first = buf_new(pool, 8000);
	struct buf *again, *other;

	buf_unref(first);
	again = buf_new(pool, 5000); /* of the same class */
	assert_ptr_equal(again, first);
	other = buf_new(pool, 5000);
	assert_ptr_not_equal(other, again);
	buf_unref(again);
	buf_unref(other);
	buf_pool_free(pool);
}

static void limit(void **state)
{
	struct buf_pool *pool = buf_pool_new(64 * KIB);
	struct buf *small[16], *large;

	assert_null(buf_new(pool, 65 * KIB));
	assert_null(buf_new(pool, 33 * KIB + 64 * KIB));
	assert_int_equal(buf_pool_refusals(pool), 2);
	for (unsigned i = 0; i < 16; i++) {
		small[i] = buf_new(pool, 4096);
		assert_non_null(small[i]);
	}
	assert_null(buf_new(pool, 1));
	assert_int_equal(buf_pool_refusals(pool), 3);
	assert_int_equal(buf_pool_in_use_bytes(pool), 64 * KIB);
	buf_unref(small[0]);
	small[0] = buf_new(pool, 1); /* room again */
	assert_non_null(small[0]);
	for (unsigned i = 0; i < 16; i++)
		buf_unref(small[i]);
	/* All of the memory waits in the class of 4 KiB: it must not stand in the way. */
	large = buf_new(pool, 64 * KIB);
	assert_non_null(large);
	buf_unref(large);
	assert_int_equal(buf_pool_in_use_bytes(pool), 0);
	assert_int_equal(buf_pool_refusals(pool), 3);
	buf_pool_free(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(sizes_and_alignment),
	    cmocka_unit_test(references),
	    cmocka_unit_test(reuse),
	    cmocka_unit_test(limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
