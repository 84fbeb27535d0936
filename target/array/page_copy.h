/* SPDX-License-Identifier: MIT
 *
 * Copying a page while it is in use: which pieces are to be copied, and when the rest is so small
 * that the page can be closed for it.  Pure.
 *
 * A piece is clean when both places hold the same as far as ended writes go.  All begin dirty; a
 * piece is taken off the list before it is read, and a write, which goes to the old place alone,
 * puts its pieces back when it ends.  So a write that was under way while its piece was read makes
 * the piece dirty later, and once the page is closed and nothing is under way on it, clean pieces
 * are equal and the others are all that is left to be copied.
 */
#ifndef SANLAB_TARGET_ARRAY_PAGE_COPY_H
#define SANLAB_TARGET_ARRAY_PAGE_COPY_H

#include <stdbool.h>
#include <stdint.h>

enum {
	COPY_PIECE_BYTES = 64 * 1024,
	COPY_PIECES = 15 * 1024 * 1024 / COPY_PIECE_BYTES,
	COPY_RUN_PIECES = 4,   /* at most in one request */
	COPY_CLOSE_PIECES = 8, /* so few may be left to copy while requests wait */
	COPY_PASSES_MAX = 6,   /* after which the page is closed however much is left */
	COPY_WORDS = (COPY_PIECES + 63) / 64,
};

struct page_copy {
	uint64_t dirty[COPY_WORDS];
	uint64_t written[COPY_WORDS]; /* in the new place, which began as zeros */
	unsigned dirty_count;
	unsigned next; /* where the search goes on */
	unsigned passes;
};

void page_copy_begin(struct page_copy *copy);
/* What was changed in the old place, or could not be copied; offsets within the page. */
void page_copy_touch(struct page_copy *copy, uint64_t offset_bytes, uint64_t length_bytes);
/* Takes the next run of dirty pieces; false: there is none. */
bool page_copy_next(struct page_copy *copy, uint64_t *ret_offset_bytes, uint64_t *ret_length_bytes);
bool page_copy_may_close(const struct page_copy *copy);
/* Is a run that reads as zeros zeros in the new place already? */
bool page_copy_is_fresh(const struct page_copy *copy, uint64_t offset_bytes, uint64_t length_bytes);
void page_copy_wrote(struct page_copy *copy, uint64_t offset_bytes, uint64_t length_bytes);

#endif
