/* SPDX-License-Identifier: MIT
 *
 * The pieces of a page that is copied.
 */
#include "target/array/page_copy.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"

static bool bit(const uint64_t *words, unsigned index)
{
	return words[index / 64] >> (index % 64) & 1;
}

void page_copy_begin(struct page_copy *copy)
{
	*copy = (struct page_copy){.dirty_count = 0};
	page_copy_touch(copy, 0, (uint64_t)COPY_PIECES * COPY_PIECE_BYTES);
}

void page_copy_touch(struct page_copy *copy, uint64_t offset_bytes, uint64_t length_bytes)
{
	if (length_bytes == 0)
		return;
	unsigned first = (unsigned)(offset_bytes / COPY_PIECE_BYTES);
	unsigned last = (unsigned)((offset_bytes + length_bytes - 1) / COPY_PIECE_BYTES);

	assert(last < COPY_PIECES);
	for (unsigned i = first; i <= last; i++) {
		copy->dirty_count += !bit(copy->dirty, i);
		copy->dirty[i / 64] |= UINT64_C(1) << (i % 64);
	}
}

bool page_copy_next(struct page_copy *copy, uint64_t *ret_offset_bytes, uint64_t *ret_length_bytes)
{
	unsigned first = copy->next, count = 0;

	if (copy->dirty_count == 0)
		return false;
	while (!bit(copy->dirty, first))
		if (++first == COPY_PIECES) {
			first = 0;
			copy->passes++;
		}
	while (count < COPY_RUN_PIECES && first + count < COPY_PIECES &&
	       bit(copy->dirty, first + count)) {
		copy->dirty[(first + count) / 64] &= ~(UINT64_C(1) << ((first + count) % 64));
		count++;
	}
	copy->dirty_count -= count;
	copy->next = first + count;
	if (copy->next == COPY_PIECES) {
		copy->next = 0;
		copy->passes++;
	}
	*ret_offset_bytes = (uint64_t)first * COPY_PIECE_BYTES;
	*ret_length_bytes = (uint64_t)count * COPY_PIECE_BYTES;
	return true;
}

bool page_copy_may_close(const struct page_copy *copy)
{
	return copy->dirty_count <= COPY_CLOSE_PIECES || copy->passes >= COPY_PASSES_MAX;
}

bool page_copy_is_fresh(const struct page_copy *copy, uint64_t offset_bytes, uint64_t length_bytes)
{
	for (uint64_t at = offset_bytes; at < offset_bytes + length_bytes; at += COPY_PIECE_BYTES)
		if (bit(copy->written, (unsigned)(at / COPY_PIECE_BYTES)))
			return false;
	return true;
}

void page_copy_wrote(struct page_copy *copy, uint64_t offset_bytes, uint64_t length_bytes)
{
	for (uint64_t at = offset_bytes; at < offset_bytes + length_bytes; at += COPY_PIECE_BYTES) {
		unsigned piece = (unsigned)(at / COPY_PIECE_BYTES);
		copy->written[piece / 64] |= UINT64_C(1) << (piece % 64);
	}
}
