/* SPDX-License-Identifier: MIT
 *
 * Fencing: a write whose path was lost may or may not have been executed.  Until its re-issue has
 * ended nothing else to an overlapping range is sent, or the re-issue could overwrite what came
 * later.
 *
 * Fenced writes themselves wait only for older ones, so two lost writes to one range cannot block
 * each other.  The list is short (writes in flight on lost paths) and usually empty: callers test
 * fence_count first.
 */
#include "initiator/mpio/device.h"

void mpio_fence(struct mpio *m, struct mpio_req *req)
{
	if (req->fenced)
		return; /* lost again: it keeps its place */
	req->fenced = true;
	TAILQ_INSERT_TAIL(&m->fences, req, fence_link);
	m->fence_count++;
}

/* All that was blocked tries again; what other fences still hold will be blocked again. */
void mpio_unfence(struct mpio *m, struct mpio_req *req)
{
	struct mpio_req *waiting;

	assert(req->fenced && m->fence_count > 0);
	req->fenced = false;
	TAILQ_REMOVE(&m->fences, req, fence_link);
	m->fence_count--;
	for (waiting = TAILQ_FIRST(&m->blocked); waiting; waiting = TAILQ_NEXT(waiting, link))
		waiting->state = REQ_READY;
	TAILQ_CONCAT(&m->blocked, &m->ready, link);
	TAILQ_CONCAT(&m->ready, &m->blocked, link);
}

static bool overlap(const struct mpio_req *a, const struct mpio_req *b)
{
	return a->offset_bytes < b->offset_bytes + b->length_bytes &&
	       b->offset_bytes < a->offset_bytes + a->length_bytes;
}

bool mpio_fence_blocks(const struct mpio *m, const struct mpio_req *req)
{
	const struct mpio_req *fence;

	if (req->pio.op == IO_FLUSH)
		return false; /* promises nothing about writes not yet answered */
	for (fence = TAILQ_FIRST(&m->fences); fence; fence = TAILQ_NEXT(fence, fence_link)) {
		if (fence == req)
			return false;
		if (overlap(fence, req))
			return true;
	}
	return false;
}
