/* SPDX-License-Identifier: MIT
 *
 * UNMAP: whole pages of a thin volume go back to their member, everything else becomes zeros.
 *
 * A page that goes back is first closed to new requests, then, when it is idle, unmapped on its
 * member (it reads as zeros from then on) and flushed, then taken off the map: whoever gets it next
 * finds zeros, also after a crash in between.  One page at a time: the range may be the whole
 * volume, and work in the background has no hurry.
 */
#include <errno.h>

#include "base/bytes.h"
#include "target/array/page_move.h"

static struct page_entry *entry_of(const struct unmap *unmap)
{
	return &unmap->volume->map.entries[unmap->at_bytes / POOL_PAGE_BYTES];
}

/* Bytes of the range on the page at hand. */
static uint64_t here_bytes(const struct unmap *unmap)
{
	uint64_t within = unmap->at_bytes % POOL_PAGE_BYTES;
	return MIN_OF(POOL_PAGE_BYTES - within, unmap->end_bytes - unmap->at_bytes);
}

static void go_on(struct unmap *unmap)
{
	unmap->at_bytes += here_bytes(unmap);
	unmap->step = UNMAP_NEXT;
}

static void unmap_end(struct unmap *unmap, int status)
{
	struct volume *volume = unmap->volume;
	struct io *parent = unmap->parent;
	freelist_give(&volume->unmaps, unmap);
	if (status)
		volume->counters.errors++;
	io_complete(parent, status);
}

/* Opens the page to requests again, or for good to nobody. */
static void page_reopen(struct unmap *unmap)
{
	entry_of(unmap)->leaving = PAGE_OPEN;
	volume_wake(unmap->volume);
}

static void unmap_run(struct unmap *unmap);

static void io_ended(struct io *io)
{
	struct unmap *unmap = io->owner;
	unmap->io_ended = true;
	if (!unmap->running)
		unmap_run(unmap);
}

static void send(struct unmap *unmap, enum io_op op, uint64_t offset, uint64_t length)
{
	struct member *member = unmap->volume->pool->members[entry_of(unmap)->member];
	unmap->io_ended = false;
	unmap->io = (struct io){
	    .op = op,
	    .offset_bytes = offset,
	    .length_bytes = length,
	    .done = io_ended,
	    .owner = unmap,
	};
	io_submit(&member->layer, &unmap->io);
}

/* Begins with the page at hand.  False: it must wait for another UNMAP of the same page, or for
 * the move of the page to end. */
static bool begin_page(struct unmap *unmap, int *ret_status)
{
	struct volume *volume = unmap->volume;
	struct page_entry *entry = entry_of(unmap);
	uint64_t within = unmap->at_bytes % POOL_PAGE_BYTES;

	if (entry->page == PAGE_NONE) {
		go_on(unmap);
		return true;
	}
	if (entry->leaving == PAGE_FROZEN) {
		*ret_status = -EIO;
		return true;
	}
	if (entry->leaving) {
		STAILQ_INSERT_TAIL(&volume->waiting, unmap, entry);
		return false;
	}
	/* The volume's last page ends with the volume. */
	unmap->whole =
	    volume->thin && within == 0 && !entry->pinned &&
	    (here_bytes(unmap) == POOL_PAGE_BYTES || unmap->end_bytes == volume->layer.size_bytes);
	if (unmap->whole && entry->moving) {
		mover_cancel(volume->pool->mover, entry);
		STAILQ_INSERT_TAIL(&volume->waiting, unmap, entry);
		return false;
	}
	if (unmap->whole) {
		entry->leaving = PAGE_CLOSED;
		unmap->step = UNMAP_LEAVE;
		return true;
	}
	entry->in_flight++;
	unmap->step = UNMAP_ZERO;
	send(unmap, IO_UNMAP, entry->page * POOL_PAGE_BYTES + within, here_bytes(unmap));
	return true;
}

static bool leave_page(struct unmap *unmap)
{
	struct page_entry *entry = entry_of(unmap);
	if (entry->in_flight > 0) {
		STAILQ_INSERT_TAIL(&unmap->volume->waiting, unmap, entry);
		return false;
	}
	unmap->step = UNMAP_ZERO;
	send(unmap, IO_UNMAP, entry->page * POOL_PAGE_BYTES, POOL_PAGE_BYTES);
	return true;
}

/* The page's zeros are on stable storage. */
static int forget_page(struct unmap *unmap)
{
	struct volume *volume = unmap->volume;
	struct page_entry *entry = entry_of(unmap);
	struct member *member = volume->pool->members[entry->member];

	int rc = member_give_page(member, entry->page);
	if (rc)
		return rc;
	/* It is free from here on, whether or not that is on stable storage: if it is not, the
	 * next opening finds the volume with a page of zeros. */
	rc = member_sync(member);
	entry->page = PAGE_NONE;
	entry->heat = 0;
	volume->member_pages[entry->member]--;
	volume->map.mapped--;
	pool_check_space(volume->pool);
	return rc;
}

/* What follows a request to the member; returns the status of the whole. */
static int step_done(struct unmap *unmap)
{
	struct page_entry *entry = entry_of(unmap);
	int rc = unmap->io.status;

	if (!unmap->whole) {
		if (entry->moving)
			mover_written(unmap->volume->pool->mover, entry,
				      unmap->at_bytes % POOL_PAGE_BYTES, here_bytes(unmap));
		if (--entry->in_flight == 0 && entry->leaving)
			volume_wake(unmap->volume);
		go_on(unmap);
		return rc;
	}
	if (rc == 0 && unmap->step == UNMAP_ZERO) {
		unmap->step = UNMAP_FLUSH;
		send(unmap, IO_FLUSH, 0, 0);
		return 0;
	}
	if (rc == 0)
		rc = forget_page(unmap);
	page_reopen(unmap);
	go_on(unmap);
	return rc;
}

static void unmap_run(struct unmap *unmap)
{
	int rc = 0;
	unmap->running = true;
	while (rc == 0 && unmap->at_bytes < unmap->end_bytes) {
		bool ready = true;
		if (unmap->step == UNMAP_NEXT)
			ready = begin_page(unmap, &rc);
		else if (unmap->step == UNMAP_LEAVE)
			ready = leave_page(unmap);
		else if (unmap->io_ended)
			rc = step_done(unmap);
		else
			ready = false;
		if (!ready) {
			unmap->running = false;
			return;
		}
	}
	unmap_end(unmap, rc);
}

void volume_unmap_go_on(struct unmap *unmap)
{
	unmap_run(unmap);
}

void volume_unmap(struct volume *volume, struct io *io)
{
	struct unmap *unmap = freelist_take(&volume->unmaps);
	if (!unmap) {
		volume->counters.errors++;
		io_complete(io, -EBUSY);
		return;
	}
	*unmap = (struct unmap){
	    .volume = volume,
	    .parent = io,
	    .at_bytes = io->offset_bytes,
	    .end_bytes = io->offset_bytes + io->length_bytes,
	};
	unmap_run(unmap);
}
