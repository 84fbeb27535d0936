/* SPDX-License-Identifier: MIT
 *
 * Copies between I/O vectors and flat memory, and slices of vectors.
 */
#include "base/io.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

struct cursor {
	const struct iovec *iov;
	unsigned left; /* entries from iov on */
	uint64_t skip; /* bytes of *iov already passed */
};

static struct cursor cursor_at(const struct iovec *iov, unsigned count, uint64_t skip)
{
	while (count > 0 && skip >= iov->iov_len) {
		skip -= iov->iov_len;
		iov++;
		count--;
	}
	return (struct cursor){.iov = iov, .left = count, .skip = skip};
}

/* The next run of at most SIZE contiguous bytes; empty entries are passed over. */
static struct iovec cursor_next(struct cursor *at, uint64_t size)
{
	struct iovec part;

	while (at->left > 0 && at->iov->iov_len == at->skip) {
		at->iov++;
		at->left--;
		at->skip = 0;
	}
	assert(at->left > 0);
	part.iov_base = (uint8_t *)at->iov->iov_base + at->skip;
	part.iov_len = MIN_OF(size, at->iov->iov_len - at->skip);
	at->skip += part.iov_len;
	return part;
}

uint64_t iov_bytes(const struct iovec *iov, unsigned count)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < count; i++)
		sum += iov[i].iov_len;
	return sum;
}

void iov_to_mem(const struct iovec *iov, unsigned count, uint64_t skip, void *to, size_t size)
{
	struct cursor at = cursor_at(iov, count, skip);
	uint8_t *out = to;

	while (size > 0) {
		struct iovec part = cursor_next(&at, size);

		memcpy(out, part.iov_base, part.iov_len);
		out += part.iov_len;
		size -= part.iov_len;
	}
}

void iov_from_mem(const struct iovec *iov, unsigned count, uint64_t skip, const void *from,
		  size_t size)
{
	struct cursor at = cursor_at(iov, count, skip);
	const uint8_t *in = from;

	while (size > 0) {
		struct iovec part = cursor_next(&at, size);

		memcpy(part.iov_base, in, part.iov_len);
		in += part.iov_len;
		size -= part.iov_len;
	}
}

void iov_zero(const struct iovec *iov, unsigned count, uint64_t skip, size_t size)
{
	struct cursor at = cursor_at(iov, count, skip);

	while (size > 0) {
		struct iovec part = cursor_next(&at, size);

		memset(part.iov_base, 0, part.iov_len);
		size -= part.iov_len;
	}
}

int iov_slice(const struct iovec *iov, unsigned count, uint64_t skip, uint64_t size,
	      struct iovec *slice, unsigned max)
{
	struct cursor at = cursor_at(iov, count, skip);
	unsigned used = 0;

	while (size > 0) {
		if (used == max)
			return -E2BIG;
		slice[used] = cursor_next(&at, size);
		size -= slice[used].iov_len;
		used++;
	}
	return (int)used;
}

int io_lent_add(struct io_lent *lent, const void *memory, size_t size_bytes,
		struct io_layer *lender, uint64_t place)
{
	if (lent->count == IO_LENT_MAX)
		return -E2BIG;
	lent->iov[lent->count] = (struct iovec){(void *)memory, size_bytes};
	lent->lender[lent->count++] = (struct io_lender){lender, place};
	return 0;
}

int io_lent_add_zeros(struct io_lent *lent, uint64_t size_bytes)
{
	static const uint8_t zeros[64 * 1024];
	int r = 0;

	for (; size_bytes > 0 && r == 0; size_bytes -= MIN_OF(size_bytes, sizeof zeros))
		r = io_lent_add(lent, zeros, MIN_OF(size_bytes, sizeof zeros), NULL, 0);
	return r;
}

void io_lent_give_back(struct io_lent *lent)
{
	for (unsigned i = 0; i < lent->count; i++) {
		struct io_layer *layer = lent->lender[i].layer;

		if (layer)
			layer->ops->take_back(layer, lent->iov[i].iov_base, lent->lender[i].place);
	}
	lent->count = 0;
}
