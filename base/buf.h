/* SPDX-License-Identifier: MIT
 *
 * Reference-counted payload buffers from a pool, so that the data path neither calls malloc nor
 * clears memory.  Size classes are powers of two from 4 KiB; larger than 1 MiB goes to malloc.
 * Memory is 4 KiB aligned and NOT zeroed.
 *
 * Threading: a pool belongs to one thread; so do its buffers.
 * Bounds: at most LIMIT_BYTES handed out; beyond that buf_new gives NULL and counts a refusal.
 */
#ifndef SANLAB_BASE_BUF_H
#define SANLAB_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

struct buf_pool;

struct buf {
	uint8_t *data;
	size_t size_bytes; /* usable, at least what was asked for */
	unsigned refs;
	unsigned size_class; /* private */
	struct buf_pool *pool;
	/* Set by the first owner where the buffer stands for something else: called before the
	 * memory goes back to the pool. */
	void (*released)(struct buf *buf);
	struct buf *next; /* private: free list */
};

struct buf_pool *buf_pool_new(size_t limit_bytes);	       /* NULL: out of memory */
struct buf_pool *buf_pool_free(struct buf_pool *pool);	       /* all buffers must be back */
struct buf *buf_new(struct buf_pool *pool, size_t size_bytes); /* one reference */
struct buf *buf_ref(struct buf *buf);
struct buf *buf_unref(struct buf *buf); /* NULL is fine; returns NULL */
size_t buf_pool_in_use_bytes(const struct buf_pool *pool);
uint64_t buf_pool_refusals(const struct buf_pool *pool);

#endif
