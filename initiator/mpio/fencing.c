/* SPDX-License-Identifier: MIT
 *
 * Fencing: which writes wait because of lost ones, and the ladder of proofs that an old nexus is
 * dead (the argument stands in mpio.h; the table of ranges in fence.h).
 *
 * The ladder is climbed from the device's task, never from within a path's callback.  A nexus is
 * known by path and key: target portal groups have numbers; where none is told, the portal a login
 * has really reached stands for the group it belongs to.
 */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "initiator/mpio/device.h"

enum {
	CONNECT_GRACE_NS = 250 * 1000 * 1000, /* a login of its own may come through first */
	HOLD_NS = 500 * 1000 * 1000,	      /* for what is in flight, before a reset */
	RETRY_NS = 1000 * 1000 * 1000,	      /* after all paths have failed to reset the unit */
};

#define KEY_OF_PORTAL (UINT64_C(1) << 63)

/* ---- who waits ---- */

static bool overlap(const struct mpio_req *a, const struct mpio_req *b)
{
	return a->offset_bytes < b->offset_bytes + b->length_bytes &&
	       b->offset_bytes < a->offset_bytes + a->length_bytes;
}

/* For REQ, which was lost: another write to its blocks is on its way over a path that is well, or
 * was lost earlier and has not been done again.  The latter has to come first also when its own
 * old nexus is dead: done after REQ it would be undone by what is left of REQ's. */
static bool must_follow(const struct mpio *m, const struct mpio_req *req)
{
	for (const struct mpio_chunk *chunk = m->chunks; chunk; chunk = chunk->next)
		for (unsigned i = 0; i < MPIO_POOL_CHUNK; i++) {
			const struct mpio_req *other = &chunk->reqs[i];

			if (other == req || other->state == REQ_FREE || !mpio_changes_data(other) ||
			    !overlap(other, req))
				continue;
			if (other->state == REQ_SENT || other->place < req->place)
				return true;
		}
	return false;
}

bool mpio_fence_passes(struct mpio *m, struct mpio_req *req)
{
	enum req_state wait = REQ_READY;

	if (m->config.fence == MPIO_FENCE_NONE)
		return true;
	if (m->fences.count > 0) {
		if (fence_blocks(&m->fences, req->offset_bytes, req->length_bytes, req->place))
			wait = REQ_BLOCKED;
		else if (req->place != FENCE_NO_PLACE && must_follow(m, req))
			wait = REQ_BEHIND;
	}
	if (wait == REQ_READY && !fence_room(&m->fences, m->writes_in_flight))
		wait = REQ_CROWDED;
	if (wait == REQ_READY)
		return true;
	if (wait != REQ_BEHIND && !req->blocked_ns) {
		req->blocked_ns = MAX_OF(loop_now_ns(m->loop), UINT64_C(1));
		loop_task_queue(m->loop, &m->task); /* somebody waits: a reason for a reset */
	}
	mpio_queue_req(m, req, wait);
	return false;
}

static void all_ready(struct mpio *m, struct mpio_req_list *list)
{
	struct mpio_req *req;

	TAILQ_FOREACH (req, list, link)
		req->state = REQ_READY;
	/* In front: they have waited for longer. */
	TAILQ_CONCAT(list, &m->ready, link);
	TAILQ_CONCAT(&m->ready, list, link);
}

void mpio_fence_write_ended(struct mpio *m)
{
	struct mpio_req *req;

	if (!TAILQ_EMPTY(&m->behind))
		all_ready(m, &m->behind);
	req = TAILQ_FIRST(&m->crowded);
	if (req && fence_room(&m->fences, m->writes_in_flight))
		mpio_queue_req(m, req, REQ_READY);
}

void mpio_fence_lost(struct mpio *m, struct mpio_req *req)
{
	const struct mpio_path *p = m->paths[req->path];
	struct fence_range range = {
	    .offset_bytes = req->offset_bytes,
	    .length_bytes = req->length_bytes,
	    .place = req->place,
	    .lost_ns = loop_now_ns(m->loop),
	    .key = p->key,
	    .path = p->index,
	};

	if (m->config.fence == MPIO_FENCE_NONE || m->freeing)
		return;
	req->place = fence_add(&m->fences, &range);
	loop_task_queue(m->loop, &m->task);
}

/* ---- proofs ---- */

static void proved(struct mpio_path *p, unsigned freed, enum mpio_proof proof, unsigned via)
{
	struct mpio *m = p->mpio;

	if (freed == 0)
		return;
	mpio_track_fenced(p, freed, proof, via);
	all_ready(m, &m->crowded);
	all_ready(m, &m->behind);
	all_ready(m, &m->blocked);
}

static uint64_t key_of(const struct path *path)
{
	const char *portal = path->redirected_to;

	if (path->identity.portal_group >= 0)
		return (uint64_t)path->identity.portal_group;
	if (!*portal && path->config.portal)
		portal = path->config.portal;
	return rng_stream_of(portal) | KEY_OF_PORTAL;
}

/* Its login has succeeded, to whichever unit: the first rung. */
void mpio_fence_path_up(struct mpio_path *p)
{
	struct mpio *m = p->mpio;

	p->key = key_of(p->path);
	p->fence_tried = 0;
	m->reset_tried &= ~(UINT64_C(1) << p->index);
	for (unsigned i = 0; i < m->count; i++)
		m->paths[i]->fence_tried &= ~(UINT64_C(1) << p->index);
	if (m->fences.count == 0)
		return;
	proved(p, fence_free_nexus(&m->fences, p->index, p->key), MPIO_PROOF_LOGIN, p->index);
	loop_task_queue(m->loop, &m->task);
}

void mpio_fence_path_down(struct mpio_path *p)
{
	p->fence_tried = 0;
	if (p->mpio->fences.count > 0)
		loop_task_queue(p->mpio->loop, &p->mpio->task);
}

static bool can_help(const struct mpio_path *p)
{
	return p->path->up && !p->failing && !p->drop && mpio_path_logged_in(p->machine.state);
}

static bool same_target(const struct path *a, const struct path *b)
{
	const char *x = a->config.target, *y = b->config.target;

	return x == y || (x && y && strcmp(x, y) == 0);
}

static bool same_group(const struct mpio *m, uint64_t key, uint64_t other)
{
	if ((key | other) & KEY_OF_PORTAL)
		return m->config.fence_unknown_group && key & other & KEY_OF_PORTAL;
	return key == other;
}

static void other_login_done(struct path_fence *fence, int status)
{
	struct mpio_path *p = fence->owner;
	struct mpio *m = p->mpio;

	p->fencing = false;
	if (m->freeing)
		return;
	m->depth++;
	if (status == 0)
		proved(p, fence_free_nexus(&m->fences, p->index, p->fence_key),
		       MPIO_PROOF_OTHER_LOGIN, p->fence_via);
	else
		p->fence_tried |= UINT64_C(1) << p->fence_via;
	loop_task_queue(m->loop, &m->task);
	if (p->reconnect_due) {
		p->reconnect_due = false;
		mpio_path_reconnect(p);
	}
	mpio_pump(m);
	m->depth--;
}

/* The second rung, through Q. */
static bool fence_through(struct mpio_path *p, const struct mpio_path *q, uint64_t key)
{
	if (p->machine.state == MPIO_PATH_CONNECTING)
		mpio_path_give_up(p, "fenced through another path meanwhile");
	p->fence = (struct path_fence){.done = other_login_done, .owner = p};
	p->fence_via = q->index;
	p->fence_key = key;
	p->fencing = true;
	if (path_fence(q->path, p->path, &p->fence) == 0)
		return true;
	p->fencing = false;
	p->fence_tried |= UINT64_C(1) << q->index;
	return false;
}

/* Returns when to look again. */
static uint64_t fence_path(struct mpio_path *p, uint64_t now)
{
	struct mpio *m = p->mpio;
	const struct fence_range *oldest = fence_oldest_of(&m->fences, p->index);
	bool connecting = p->machine.state == MPIO_PATH_CONNECTING;

	/* A path that is logged in with ranges left has come back to another portal group. */
	if (!oldest || p->fencing || p->path->up || p->failing)
		return UINT64_MAX;
	for (unsigned i = 0; i < m->count; i++) {
		const struct mpio_path *q = m->paths[i];

		if (q == p || p->fence_tried >> i & 1 || !can_help(q) ||
		    !same_target(p->path, q->path) || !same_group(m, oldest->key, q->key))
			continue;
		if (connecting && now < p->connect_ns + CONNECT_GRACE_NS)
			return p->connect_ns + CONNECT_GRACE_NS;
		if (fence_through(p, q, oldest->key))
			break;
	}
	return UINT64_MAX;
}

/* ---- the third rung ---- */

static void abort_done(struct path_fence *fence, int status)
{
	struct mpio_path *p = fence->owner;

	/* Without success the path's own deadlines will tell. */
	p->aborting = false;
}

/* What had not been answered before the reset has been ended by it without a word: on the path
 * that reset the unit the path knows, on the others ABORT TASK SET tells which. */
static void bring_back(struct mpio *m)
{
	for (unsigned i = 0; i < m->count; i++) {
		struct mpio_path *p = m->paths[i];

		if (i == m->reset_via || !p->path->up || p->aborting || !p->path->in_flight)
			continue;
		p->abort = (struct path_fence){.done = abort_done, .owner = p};
		p->aborting = path_abort_tasks(p->path, &p->abort) == 0;
	}
}

static void reset_done(struct path_fence *fence, int status)
{
	struct mpio *m = fence->owner;
	unsigned before[MPIO_MAX_PATHS];

	m->resetting = m->holding = false;
	if (m->freeing)
		return;
	m->depth++;
	if (status == 0) {
		memcpy(before, m->fences.of_path, sizeof before);
		fence_free_older(&m->fences, m->reset_older_ns);
		for (unsigned i = 0; i < m->count; i++)
			proved(m->paths[i], before[i] - m->fences.of_path[i], MPIO_PROOF_RESET,
			       m->reset_via);
		bring_back(m);
	} else {
		m->reset_tried |= UINT64_C(1) << m->reset_via;
	}
	loop_task_queue(m->loop, &m->task);
	mpio_pump(m);
	m->depth--;
}

static bool idle(const struct mpio *m)
{
	for (unsigned i = 0; i < m->count; i++)
		if (m->views[i].in_flight > 0 && can_help(m->paths[i]))
			return false;
	return true;
}

static struct mpio_path *path_to_reset(struct mpio *m)
{
	struct mpio_path *found = NULL;

	for (unsigned i = 0; i < m->count; i++) {
		struct mpio_path *p = m->paths[i];

		if (!can_help(p) || m->reset_tried >> i & 1)
			continue;
		if (!found ||
		    (mpio_path_usable(p->machine.state) && !mpio_path_usable(found->machine.state)))
			found = p;
	}
	return found;
}

static void reset_now(struct mpio *m, uint64_t now)
{
	struct mpio_path *p;

	m->reset_older_ns = now - m->config.fence_hold_ns;
	while ((p = path_to_reset(m))) {
		m->reset = (struct path_fence){.done = reset_done, .owner = m};
		m->reset_via = p->index;
		m->resetting = true;
		if (path_reset_unit(p->path, &m->reset) == 0)
			return;
		m->resetting = false;
		m->reset_tried |= UINT64_C(1) << p->index;
	}
	m->holding = false;
	m->reset_tried = 0;
	m->reset_retry_ns = now + RETRY_NS;
}

/* When the oldest range that no other rung is busy with may be freed by a reset. */
static uint64_t reset_due_ns(const struct mpio *m)
{
	const struct fence_range *range;

	TAILQ_FOREACH (range, &m->fences.held, link)
		if (!m->paths[range->path]->fencing)
			return MAX_OF(range->lost_ns + m->config.fence_hold_ns, m->reset_retry_ns);
	return UINT64_MAX;
}

/* A reset ends the commands of all paths, and a target need not answer them: nothing may be in
 * flight.  Returns when to look again. */
static uint64_t reset_unit(struct mpio *m, uint64_t now)
{
	bool wanted = !TAILQ_EMPTY(&m->blocked) || !TAILQ_EMPTY(&m->crowded);
	uint64_t due;

	if (m->config.fence != MPIO_FENCE_RESET || m->resetting)
		return UINT64_MAX;
	due = wanted && path_to_reset(m) ? reset_due_ns(m) : UINT64_MAX;
	if (due > now) {
		m->holding = false; /* another proof was faster */
		return due;
	}
	if (!m->holding) {
		m->holding = true;
		m->hold_until_ns = now + HOLD_NS;
	}
	if (!idle(m) && now < m->hold_until_ns)
		return m->hold_until_ns;
	reset_now(m, now);
	return m->resetting ? UINT64_MAX : m->reset_retry_ns;
}

/* ---- all of it ---- */

/* Nobody waits for ever.  Returns when the next has waited for too long. */
static uint64_t expire(struct mpio *m, struct mpio_req_list *list, uint64_t now)
{
	uint64_t next_ns = UINT64_MAX;
	struct mpio_req *req, *next;

	for (req = TAILQ_FIRST(list); req; req = next) {
		uint64_t until_ns = req->blocked_ns + m->config.fence_wait_ns;

		next = TAILQ_NEXT(req, link);
		if (until_ns > now)
			next_ns = MIN_OF(next_ns, until_ns);
		else
			mpio_finish(m, req, -ETIMEDOUT);
	}
	return next_ns;
}

void mpio_fence_advance(struct mpio *m)
{
	uint64_t now = loop_now_ns(m->loop);
	uint64_t next_ns = UINT64_MAX, at_ns;

	if (m->fences.count == 0 && !m->holding && TAILQ_EMPTY(&m->crowded))
		return;
	m->depth++;
	for (unsigned i = 0; i < m->count; i++) {
		at_ns = fence_path(m->paths[i], now);
		next_ns = MIN_OF(next_ns, at_ns);
	}
	at_ns = reset_unit(m, now);
	next_ns = MIN_OF(next_ns, at_ns);
	at_ns = expire(m, &m->blocked, now);
	next_ns = MIN_OF(next_ns, at_ns);
	at_ns = expire(m, &m->crowded, now);
	next_ns = MIN_OF(next_ns, at_ns);
	if (next_ns != UINT64_MAX)
		loop_timer_set(m->loop, &m->fence_timer, next_ns);
	mpio_pump(m);
	m->depth--;
}

void mpio_fence_due(void *arg)
{
	struct mpio *m = arg;

	/* From the timer there is nobody on the stack either. */
	mpio_fence_advance(m);
}
