/* SPDX-License-Identifier: MIT
 *
 * What is known about every page of one database (or every segment of one log ring): the
 * generation last sent, whether I/O is in flight on it, and whether the last write failed, which
 * leaves old and new both possible.
 *
 * A page in flight is locked: it is neither read nor written by anyone else, so that what a read
 * must return is always exactly known.
 *
 * Memory: 8 bytes a page that has been written; maps of pages never written stay untouched zero
 * pages of the kernel.  Ownership: plain, page_set_done frees the maps.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_PAGE_SET_H
#define SANLAB_HARNESS_WORKLOAD_PAGE_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "harness/workload/page.h"

struct page_set {
	uint64_t pages;
	uint32_t *generation; /* last sent; 0: never */
	uint32_t *low;	      /* last acknowledged, valid where `either` is set */
	uint64_t *locked;     /* bitmap */
	uint64_t *either;     /* bitmap */
	uint64_t written;     /* distinct pages with an acknowledged write */
	bool unwritten_is_zero;
};

int page_set_init(struct page_set *set, uint64_t pages, bool unwritten_is_zero);
void page_set_done(struct page_set *set);

/* Pages of [first, first + count) before the first locked one. */
uint64_t page_set_free_run(const struct page_set *set, uint64_t first, uint64_t count);
void page_set_lock(struct page_set *set, uint64_t first, uint64_t count);
void page_set_unlock(struct page_set *set, uint64_t first, uint64_t count);

/* The generation to write into PAGE (locked). */
uint64_t page_set_write_begin(struct page_set *set, uint64_t page);
void page_set_write_end(struct page_set *set, uint64_t page, bool acknowledged);

void page_set_expect(const struct page_set *set, uint64_t page, struct page_expect *ret_expect);
/* True when a write of PAGE has ever been acknowledged; or at least tried. */
bool page_set_is_written(const struct page_set *set, uint64_t page);
bool page_set_is_tried(const struct page_set *set, uint64_t page);

#endif
