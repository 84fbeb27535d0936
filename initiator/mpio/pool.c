/* SPDX-License-Identifier: MIT
 *
 * Free lists of requests: memory grows with the I/Os in flight and is kept until mpio_free, so
 * that no I/O in a steady state calls malloc.
 */
#include <stdlib.h>

#include "initiator/mpio/device.h"

struct mpio_req *mpio_req_get(struct mpio *m)
{
	struct mpio_req *req = TAILQ_FIRST(&m->free_reqs);

	if (!req) {
		struct mpio_chunk *chunk = calloc(1, sizeof *chunk);

		if (!chunk)
			return NULL;
		chunk->next = m->chunks;
		m->chunks = chunk;
		for (unsigned i = 0; i < MPIO_POOL_CHUNK; i++) {
			req = &chunk->reqs[i];
			req->mpio = m;
			req->pio.owner = req;
			req->pio.done = mpio_answered;
			TAILQ_INSERT_TAIL(&m->free_reqs, req, link);
		}
		req = TAILQ_FIRST(&m->free_reqs);
	}
	TAILQ_REMOVE(&m->free_reqs, req, link);
	assert(req->state == REQ_FREE);
	req->whole = NULL;
	req->place = FENCE_NO_PLACE;
	req->blocked_ns = 0;
	req->pending_ns = 0;
	req->loss = 0;
	req->same_path = false;
	req->avoid = 0;
	req->retries = 0;
	return req;
}

void mpio_req_put(struct mpio *m, struct mpio_req *req)
{
	req->state = REQ_FREE;
	req->io = NULL;
	TAILQ_INSERT_HEAD(&m->free_reqs, req, link);
}

struct mpio_whole *mpio_whole_get(struct mpio *m)
{
	struct mpio_whole *whole = SLIST_FIRST(&m->free_wholes);

	if (whole)
		SLIST_REMOVE_HEAD(&m->free_wholes, link);
	else
		whole = malloc(sizeof *whole);
	if (whole)
		*whole = (struct mpio_whole){0};
	return whole;
}

void mpio_whole_put(struct mpio *m, struct mpio_whole *whole)
{
	SLIST_INSERT_HEAD(&m->free_wholes, whole, link);
}

void mpio_pool_free(struct mpio *m)
{
	struct mpio_whole *whole;
	struct mpio_chunk *chunk;

	while ((whole = SLIST_FIRST(&m->free_wholes))) {
		SLIST_REMOVE_HEAD(&m->free_wholes, link);
		free(whole);
	}
	while ((chunk = m->chunks)) {
		m->chunks = chunk->next;
		for (unsigned i = 0; i < MPIO_POOL_CHUNK; i++)
			free(chunk->reqs[i].slice);
		free(chunk);
	}
}
