/* SPDX-License-Identifier: MIT
 *
 * Child requests and what the children of one parent share.
 */
#include "target/array/part.h"

#include <errno.h>
#include <stdlib.h>

void part_pool_init(struct part_pool *pool)
{
	freelist_init(&pool->parts, sizeof(struct part), PART_LIMIT);
	freelist_init(&pool->fans, sizeof(struct fan), PART_LIMIT);
}

void part_pool_done(struct part_pool *pool)
{
	freelist_done(&pool->parts);
	freelist_done(&pool->fans);
}

struct fan *fan_take(struct part_pool *pool, struct io *parent, unsigned pending)
{
	struct fan *fan = freelist_take(&pool->fans);
	if (fan)
		*fan = (struct fan){.parent = parent, .pending = pending};
	return fan;
}

void fan_end(struct part_pool *pool, struct fan *fan, struct io *parent, int status)
{
	if (!fan) {
		io_complete(parent, status);
		return;
	}
	if (status && !fan->status)
		fan->status = status;
	if (--fan->pending > 0)
		return;
	status = fan->status;
	parent = fan->parent;
	freelist_give(&pool->fans, fan);
	io_complete(parent, status);
}

int part_take(struct part_pool *pool, struct io *parent, unsigned count, struct part **ret_parts)
{
	struct part *first = NULL;
	struct fan *fan = NULL;

	if (count > 1) {
		if (!freelist_reserve(&pool->parts, count))
			return -EBUSY;
		fan = fan_take(pool, parent, count);
		if (!fan)
			return -EBUSY;
	}
	for (unsigned i = 0; i < count; i++) {
		struct part *part = freelist_take(&pool->parts);
		if (!part)
			return -EBUSY; /* only with count 1: more were reserved */
		part->parent = parent;
		part->fan = fan;
		part->heap = NULL;
		part->io.link = first ? &first->io : NULL;
		first = part;
	}
	*ret_parts = first;
	return 0;
}

int iov_slice_any(const struct io *parent, uint64_t skip, uint64_t size, struct iovec *slice,
		  unsigned max, struct iovec **ret_heap, const struct iovec **ret_iov)
{
	int count = iov_slice(parent->iov, parent->iov_count, skip, size, slice, max);
	if (count >= 0) {
		*ret_iov = slice;
		return count;
	}
	struct iovec *heap = malloc(parent->iov_count * sizeof *heap);
	if (!heap)
		return -ENOMEM;
	count = iov_slice(parent->iov, parent->iov_count, skip, size, heap, parent->iov_count);
	*ret_heap = heap;
	*ret_iov = heap;
	return count;
}

int part_fill(struct part *part, uint64_t skip_bytes, uint64_t offset_bytes, uint64_t length_bytes)
{
	const struct io *parent = part->parent;
	struct io *io = &part->io;

	io->op = parent->op;
	io->flags = parent->flags;
	io->offset_bytes = offset_bytes;
	io->length_bytes = length_bytes;
	io->iov = parent->iov;
	io->iov_count = parent->iov_count;
	part->skip_bytes = skip_bytes;
	if (parent->iov_count == 0 || (skip_bytes == 0 && length_bytes == parent->length_bytes))
		return 0;
	int count = iov_slice_any(parent, skip_bytes, length_bytes, part->slice, PART_SLICES,
				  &part->heap, &io->iov);
	if (count < 0)
		return count;
	io->iov_count = (unsigned)count;
	return 0;
}

void part_end(struct part_pool *pool, struct part *part, int status)
{
	struct fan *fan = part->fan;
	struct io *parent = part->parent;

	if (part->heap)
		free(part->heap);
	freelist_give(&pool->parts, part);
	fan_end(pool, fan, parent, status);
}
