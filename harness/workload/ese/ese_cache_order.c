/* SPDX-License-Identifier: MIT
 *
 * Who leaves the cache next (LRU-2).
 *
 * Pages seen once are in a list by their use, which is also the order of time.  The others are in
 * a heap by their last but one use.  A use makes that only newer, so the heap is put right no
 * sooner than a page comes to its top: a use costs no more than two stores.
 */
#include <assert.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_cache_impl.h"

enum { PINNED_TRIES = 64 };

/* ---- the list ---- */

static void once_append(struct ese_cache *cache, struct ese_frame *frame)
{
	frame->order_prev = cache->once_last;
	frame->order_next = NULL;
	if (cache->once_last)
		cache->once_last->order_next = frame;
	else
		cache->once_first = frame;
	cache->once_last = frame;
	cache->once_count++;
}

static void once_remove(struct ese_cache *cache, struct ese_frame *frame)
{
	if (frame->order_prev)
		frame->order_prev->order_next = frame->order_next;
	else
		cache->once_first = frame->order_next;
	if (frame->order_next)
		frame->order_next->order_prev = frame->order_prev;
	else
		cache->once_last = frame->order_prev;
	frame->order_prev = frame->order_next = NULL;
	cache->once_count--;
}

/* ---- the heap ---- */

static void heap_put(struct ese_cache *cache, uint32_t at, struct heap_slot slot)
{
	cache->heap[at] = slot;
	slot.frame->heap_slot = at + 1;
}

static void sift_up(struct ese_cache *cache, uint32_t at, struct heap_slot slot)
{
	while (at && cache->heap[(at - 1) / 2].key_ns > slot.key_ns) {
		heap_put(cache, at, cache->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	heap_put(cache, at, slot);
}

static void sift_down(struct ese_cache *cache, uint32_t at, struct heap_slot slot)
{
	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < cache->heap_count &&
		    cache->heap[child + 1].key_ns < cache->heap[child].key_ns)
			child++;
		if (child >= cache->heap_count || cache->heap[child].key_ns >= slot.key_ns)
			break;
		heap_put(cache, at, cache->heap[child]);
		at = child;
	}
	heap_put(cache, at, slot);
}

static void heap_add(struct ese_cache *cache, struct ese_frame *frame)
{
	sift_up(cache, cache->heap_count++,
		(struct heap_slot){.key_ns = frame->before_ns, .frame = frame});
}

static void heap_remove(struct ese_cache *cache, struct ese_frame *frame)
{
	uint32_t at = frame->heap_slot - 1;
	struct heap_slot last = cache->heap[--cache->heap_count];

	assert(cache->heap[at].frame == frame);
	frame->heap_slot = 0;
	if (last.frame == frame)
		return;
	if (at && cache->heap[(at - 1) / 2].key_ns > last.key_ns)
		sift_up(cache, at, last);
	else
		sift_down(cache, at, last);
}

/* The frame with the oldest last but one use, its key put right. */
static struct ese_frame *heap_top(struct ese_cache *cache)
{
	while (cache->heap_count) {
		struct heap_slot top = cache->heap[0];

		if (top.key_ns == top.frame->before_ns)
			return top.frame;
		top.key_ns = top.frame->before_ns;
		sift_down(cache, 0, top);
	}
	return NULL;
}

/* ---- both ---- */

void order_enter(struct ese_cache *cache, struct ese_frame *frame)
{
	assert(frame->present && !frame->pinned && !order_has(cache, frame));
	if (frame->before_ns)
		heap_add(cache, frame);
	else
		once_append(cache, frame);
}

void order_used(struct ese_cache *cache, struct ese_frame *frame, bool was_once)
{
	if (!was_once)
		return; /* its key follows */
	once_remove(cache, frame);
	order_enter(cache, frame);
}

void order_leave(struct ese_cache *cache, struct ese_frame *frame)
{
	if (frame->heap_slot)
		heap_remove(cache, frame);
	else if (order_has(cache, frame))
		once_remove(cache, frame);
}

static bool may_leave(const struct ese_frame *frame)
{
	return !frame->pins && !frame->writing;
}

/* The oldest that may leave and was not used after SINCE_NS.  Those in use go to the end: they are
 * being used now. */
static struct ese_frame *once_victim(struct ese_cache *cache, uint64_t since_ns)
{
	for (uint32_t tries = MIN_OF(cache->once_count, PINNED_TRIES); tries; tries--) {
		struct ese_frame *frame = cache->once_first;

		if (frame->last_ns > since_ns)
			return NULL;
		if (may_leave(frame))
			return frame;
		once_remove(cache, frame);
		once_append(cache, frame);
	}
	return NULL;
}

static struct ese_frame *heap_victim(struct ese_cache *cache, uint64_t since_ns)
{
	struct ese_frame *busy[PINNED_TRIES], *found = NULL;
	unsigned count = 0;

	while (count < PINNED_TRIES) {
		struct ese_frame *top = heap_top(cache);

		if (!top)
			break;
		if (may_leave(top) && top->last_ns <= since_ns) {
			found = top;
			break;
		}
		heap_remove(cache, top);
		busy[count++] = top;
	}
	while (count)
		heap_add(cache, busy[--count]);
	return found;
}

static struct ese_frame *pick(struct ese_cache *cache, uint64_t now_ns)
{
	uint64_t since_ns =
	    now_ns > cache->config.correlated_ns ? now_ns - cache->config.correlated_ns : 0;
	struct ese_frame *frame = once_victim(cache, since_ns);

	/* Within the correlation interval a page is still being used, as long as there are others.
	 */
	if (!frame)
		frame = heap_victim(cache, since_ns);
	if (!frame)
		frame = once_victim(cache, UINT64_MAX);
	if (!frame)
		frame = heap_victim(cache, UINT64_MAX);
	return frame;
}

bool ese_cache_wants_victims(struct ese_cache *cache)
{
	uint32_t coming = ese_cache_available(cache) + cache->leaving;

	if (coming < cache->low)
		cache->scavenging = true;
	else if (coming >= cache->high)
		cache->scavenging = false;
	return cache->scavenging;
}

enum ese_victim ese_cache_victim(struct ese_cache *cache, uint64_t now_ns,
				 struct ese_frame **ret_frame)
{
	struct ese_frame *frame = pick(cache, now_ns);

	if (!frame)
		return ESE_VICTIM_NONE;
	order_leave(cache, frame);
	if (!frame->dirty) {
		cache_evict(cache, frame);
		return ESE_VICTIM_FREED;
	}
	frame->leaves = true;
	cache->leaving++;
	*ret_frame = frame;
	return ESE_VICTIM_DIRTY;
}

void ese_cache_spare(struct ese_cache *cache, struct ese_frame *frame)
{
	if (!frame->leaves)
		return;
	frame->leaves = false;
	cache->leaving--;
	order_enter(cache, frame);
}
