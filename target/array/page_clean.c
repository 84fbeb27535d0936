/* SPDX-License-Identifier: MIT
 *
 * The cleaner of pages that were left.
 */
#include "target/array/page_clean.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

#define RETRY_NS (1 * NS_PER_S)

struct left_page {
	unsigned member;
	uint32_t page;
	bool failed; /* at the last try */
};

struct cleaner {
	struct loop *loop;
	struct pool *pool;
	void (*freed)(struct pool *pool);
	struct left_page *pages; /* pages[0] is at hand while busy */
	unsigned count, room;
	enum clean_step { CLEAN_IDLE, CLEAN_UNMAP, CLEAN_FLUSH } step;
	bool io_out, running, stopping;
	struct io io;
	struct loop_timer timer; /* to go on, or to try again */
};

static struct member *member_of(const struct cleaner *cleaner, const struct left_page *left)
{
	return cleaner->pool->members[left->member];
}

static void cleaner_run(struct cleaner *cleaner);

static void io_ended(struct io *io)
{
	struct cleaner *cleaner = io->owner;
	cleaner->io_out = false;
	cleaner_run(cleaner);
}

static void send(struct cleaner *cleaner, enum io_op op, uint64_t offset, uint64_t length)
{
	cleaner->io_out = true;
	cleaner->io = (struct io){
	    .op = op,
	    .offset_bytes = offset,
	    .length_bytes = length,
	    .done = io_ended,
	    .owner = cleaner,
	};
	io_submit(&member_of(cleaner, &cleaner->pages[0])->layer, &cleaner->io);
}

/* The page at hand goes behind the others. */
static void put_off(struct cleaner *cleaner)
{
	struct left_page left = cleaner->pages[0];
	left.failed = true;
	memmove(&cleaner->pages[0], &cleaner->pages[1],
		(cleaner->count - 1) * sizeof *cleaner->pages);
	cleaner->pages[cleaner->count - 1] = left;
	cleaner->step = CLEAN_IDLE;
	cleaner->freed(cleaner->pool);
}

static bool give(struct cleaner *cleaner)
{
	struct left_page left = cleaner->pages[0];
	struct member *member = member_of(cleaner, &left);

	if (member_give_page(member, left.page))
		return false;
	/* The page is free from here on.  If that is not on stable storage, the next opening
	 * finds it as it is now, and cleans it again. */
	(void)member_sync(member);
	cleaner->count--;
	memmove(&cleaner->pages[0], &cleaner->pages[1], cleaner->count * sizeof *cleaner->pages);
	cleaner->step = CLEAN_IDLE;
	cleaner->freed(cleaner->pool);
	return true;
}

/* Sends the next request; false: there is nothing to do now. */
static bool step(struct cleaner *cleaner)
{
	if (cleaner->stopping || cleaner->count == 0)
		return false;
	struct left_page *left = &cleaner->pages[0];
	if (cleaner->step == CLEAN_IDLE) {
		if (left->failed || loop_timer_pending(&cleaner->timer))
			return false;
		cleaner->step = CLEAN_UNMAP;
		send(cleaner, IO_UNMAP, left->page * POOL_PAGE_BYTES, POOL_PAGE_BYTES);
	} else if (cleaner->io.status) {
		put_off(cleaner);
	} else if (cleaner->step == CLEAN_UNMAP) {
		cleaner->step = CLEAN_FLUSH;
		send(cleaner, IO_FLUSH, 0, 0);
	} else if (!give(cleaner)) {
		put_off(cleaner);
	}
	return true;
}

static void cleaner_run(struct cleaner *cleaner)
{
	if (cleaner->running)
		return;
	cleaner->running = true;
	while (!cleaner->io_out && step(cleaner))
		;
	cleaner->running = false;
	if (!cleaner->stopping && cleaner->count > 0 && cleaner->step == CLEAN_IDLE &&
	    !loop_timer_pending(&cleaner->timer))
		loop_timer_set(cleaner->loop, &cleaner->timer,
			       loop_now_ns(cleaner->loop) + RETRY_NS);
}

static void try_again(void *arg)
{
	struct cleaner *cleaner = arg;
	for (unsigned i = 0; i < cleaner->count; i++)
		cleaner->pages[i].failed = false;
	cleaner_run(cleaner);
}

int cleaner_open(struct loop *loop, struct pool *pool, void (*freed)(struct pool *pool),
		 struct cleaner **ret_cleaner)
{
	struct cleaner *cleaner = calloc(1, sizeof *cleaner);
	if (!cleaner)
		return -ENOMEM;
	cleaner->loop = loop;
	cleaner->pool = pool;
	cleaner->freed = freed;
	loop_timer_init(&cleaner->timer, try_again, cleaner);
	*ret_cleaner = cleaner;
	return 0;
}

void cleaner_stop(struct cleaner *cleaner)
{
	cleaner->stopping = true;
	loop_timer_cancel(cleaner->loop, &cleaner->timer);
}

struct cleaner *cleaner_close(struct cleaner *cleaner)
{
	if (!cleaner)
		return NULL;
	cleaner_stop(cleaner);
	free(cleaner->pages);
	free(cleaner);
	return NULL;
}

int cleaner_reserve(struct cleaner *cleaner, unsigned more)
{
	unsigned room = cleaner->count + more;
	if (room <= cleaner->room)
		return 0;
	struct left_page *pages = realloc(cleaner->pages, 2 * room * sizeof *pages);
	if (!pages)
		return -ENOMEM;
	cleaner->pages = pages;
	cleaner->room = 2 * room;
	return 0;
}

void cleaner_add(struct cleaner *cleaner, unsigned member, uint32_t page)
{
	cleaner->pages[cleaner->count++] = (struct left_page){.member = member, .page = page};
	/* From the loop: whoever leaves a page may be deep in a completion. */
	if (!cleaner->stopping && !cleaner->io_out)
		loop_timer_set(cleaner->loop, &cleaner->timer, loop_now_ns(cleaner->loop));
}

unsigned cleaner_count(const struct cleaner *cleaner)
{
	return cleaner->count;
}

unsigned cleaner_count_of(const struct cleaner *cleaner, unsigned member)
{
	unsigned count = 0;
	for (unsigned i = 0; i < cleaner->count; i++)
		count += cleaner->pages[i].member == member;
	return count;
}

bool cleaner_will_free(const struct cleaner *cleaner)
{
	for (unsigned i = 0; i < cleaner->count && !cleaner->stopping; i++)
		if (!cleaner->pages[i].failed &&
		    !member_is_offline(member_of(cleaner, &cleaner->pages[i])))
			return true;
	return false;
}
