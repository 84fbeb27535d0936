/* SPDX-License-Identifier: MIT
 *
 * Buffer pool: one free list a size class.  What is handed out and what waits in the free lists
 * together stay below the limit; buffers of other classes are given up when room is needed.
 */
#include "base/buf.h"

#include <assert.h>
#include <stdlib.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define POISON(p, size)	  __asan_poison_memory_region(p, size)
#define UNPOISON(p, size) __asan_unpoison_memory_region(p, size)
#else
#define POISON(p, size)	  ((void)0)
#define UNPOISON(p, size) ((void)0)
#endif

enum {
	SMALLEST_BITS = 12, /* 4 KiB: a page, the alignment of all */
	LARGEST_BITS = 20,  /* 1 MiB */
	CLASSES = LARGEST_BITS - SMALLEST_BITS + 1,
	CLASS_NONE = CLASSES, /* larger ones are never kept */
};

struct buf_pool {
	size_t limit_bytes;
	size_t in_use_bytes;
	size_t kept_bytes;
	uint64_t refusals;
	struct buf *kept[CLASSES];
};

struct buf_pool *buf_pool_new(size_t limit_bytes)
{
	struct buf_pool *pool = calloc(1, sizeof *pool);

	if (pool)
		pool->limit_bytes = limit_bytes;
	return pool;
}

static void buf_destroy(struct buf *buf)
{
	UNPOISON(buf->data, buf->size_bytes);
	free(buf->data);
	free(buf);
}

static void give_up_one(struct buf_pool *pool, unsigned size_class)
{
	struct buf *buf = pool->kept[size_class];

	pool->kept[size_class] = buf->next;
	pool->kept_bytes -= buf->size_bytes;
	buf_destroy(buf);
}

struct buf_pool *buf_pool_free(struct buf_pool *pool)
{
	if (!pool)
		return NULL;
	assert(pool->in_use_bytes == 0);
	for (unsigned i = 0; i < CLASSES; i++)
		while (pool->kept[i])
			give_up_one(pool, i);
	free(pool);
	return NULL;
}

static unsigned class_of(size_t size_bytes)
{
	if (size_bytes <= (size_t)1 << SMALLEST_BITS)
		return 0;
	if (size_bytes > (size_t)1 << LARGEST_BITS)
		return CLASS_NONE;
	return 64U - (unsigned)__builtin_clzll(size_bytes - 1) - SMALLEST_BITS;
}

static void make_room(struct buf_pool *pool, size_t size_bytes)
{
	for (unsigned i = CLASSES; i-- > 0;)
		while (pool->kept[i] &&
		       pool->in_use_bytes + pool->kept_bytes > pool->limit_bytes - size_bytes)
			give_up_one(pool, i);
}

static struct buf *buf_make(struct buf_pool *pool, size_t size_bytes, unsigned size_class)
{
	struct buf *buf = malloc(sizeof *buf);

	if (!buf)
		return NULL;
	*buf = (struct buf){.size_bytes = size_bytes, .size_class = size_class, .pool = pool};
	buf->data = aligned_alloc((size_t)1 << SMALLEST_BITS, size_bytes);
	if (!buf->data) {
		free(buf);
		return NULL;
	}
	return buf;
}

struct buf *buf_new(struct buf_pool *pool, size_t size_bytes)
{
	const size_t unit = (size_t)1 << SMALLEST_BITS;
	unsigned size_class = class_of(size_bytes);
	struct buf *buf = NULL;
	size_t gross_bytes;

	if (size_bytes > pool->limit_bytes)
		goto refuse;
	gross_bytes =
	    size_class == CLASS_NONE ? (size_bytes + unit - 1) / unit * unit : unit << size_class;
	if (gross_bytes > pool->limit_bytes - pool->in_use_bytes)
		goto refuse;
	if (size_class != CLASS_NONE && pool->kept[size_class]) {
		buf = pool->kept[size_class];
		pool->kept[size_class] = buf->next;
		pool->kept_bytes -= buf->size_bytes;
		UNPOISON(buf->data, buf->size_bytes);
	} else {
		make_room(pool, gross_bytes);
		buf = buf_make(pool, gross_bytes, size_class);
		if (!buf)
			goto refuse;
	}
	buf->refs = 1;
	buf->released = NULL;
	buf->next = NULL;
	pool->in_use_bytes += buf->size_bytes;
	return buf;
refuse:
	pool->refusals++;
	return NULL;
}

struct buf *buf_ref(struct buf *buf)
{
	assert(buf->refs > 0);
	buf->refs++;
	return buf;
}

struct buf *buf_unref(struct buf *buf)
{
	struct buf_pool *pool;

	if (!buf)
		return NULL;
	assert(buf->refs > 0);
	if (--buf->refs > 0)
		return NULL;
	if (buf->released)
		buf->released(buf);
	pool = buf->pool;
	pool->in_use_bytes -= buf->size_bytes;
	if (buf->size_class == CLASS_NONE) {
		buf_destroy(buf);
		return NULL;
	}
	POISON(buf->data, buf->size_bytes);
	buf->next = pool->kept[buf->size_class];
	pool->kept[buf->size_class] = buf;
	pool->kept_bytes += buf->size_bytes;
	return NULL;
}

size_t buf_pool_in_use_bytes(const struct buf_pool *pool)
{
	return pool->in_use_bytes;
}

uint64_t buf_pool_refusals(const struct buf_pool *pool)
{
	return pool->refusals;
}
