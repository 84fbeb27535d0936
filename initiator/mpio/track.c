/* SPDX-License-Identifier: MIT
 *
 * How far each failover has got: milestones of the last loss of a path.
 *
 * A request taken back belongs to that loss until it ends or is lost again; a path that is lost
 * again before its earlier loss has drained begins anew, and what is left of the earlier one is
 * not followed any further.
 */
#include "initiator/mpio/device.h"

static void tell(struct mpio_path *p, struct mpio_track *track)
{
	struct mpio *m = p->mpio;

	if (!m->track_fn || m->freeing)
		return;
	track->at_ns = loop_now_ns(m->loop);
	track->path = p->index;
	track->loss = p->loss.number;
	m->track_fn(m->track_arg, track);
}

static void tell_plain(struct mpio_path *p, enum mpio_milestone milestone, unsigned other)
{
	struct mpio_track track = {.milestone = milestone, .other = other};

	tell(p, &track);
}

/* The loss REQ belongs to, or NULL. */
static struct mpio_path *loss_of(struct mpio *m, const struct mpio_req *req)
{
	struct mpio_path *p = m->paths[req->loss_path];

	return req->loss && p->loss.number == req->loss ? p : NULL;
}

static void left(struct mpio_path *p)
{
	struct mpio_track track = {
	    .milestone = MPIO_DRAINED, .other = p->index, .ios = p->loss.failed};

	assert(p->loss.open > 0);
	if (--p->loss.open == 0)
		tell(p, &track);
}

void mpio_track_taken_back(struct mpio_path *p, struct mpio_req *req)
{
	struct mpio_path *before = loss_of(p->mpio, req);

	if (before && before != p)
		left(before);
	req->loss_path = p->index;
	req->loss = p->loss.number + 1; /* mpio_track_lost follows */
}

void mpio_track_lost(struct mpio_path *p, unsigned taken_back)
{
	struct mpio_track track = {
	    .milestone = MPIO_LOST,
	    .other = p->index,
	    .ios = taken_back,
	    .by = p->path->lost_by,
	    .alive_ns = p->path->heard_ns,
	};

	p->loss = (struct mpio_loss){.number = p->loss.number + 1, .open = taken_back};
	tell(p, &track);
	if (taken_back == 0)
		tell_plain(p, MPIO_DRAINED, p->index);
}

void mpio_track_sent(struct mpio *m, const struct mpio_req *req)
{
	struct mpio_path *p = loss_of(m, req);

	if (!p || p->loss.reissued)
		return;
	p->loss.reissued = true;
	tell_plain(p, MPIO_FIRST_REISSUE, req->path);
}

void mpio_track_ended(struct mpio *m, const struct mpio_req *req, int status)
{
	struct mpio_path *p = loss_of(m, req);

	if (!p)
		return;
	if (status == 0 && !p->loss.succeeded) {
		p->loss.succeeded = true;
		tell_plain(p, MPIO_FIRST_SUCCESS, req->path);
	}
	p->loss.failed += status != 0;
	left(p);
}

void mpio_track_fenced(struct mpio_path *p, unsigned freed, enum mpio_proof proof, unsigned via)
{
	struct mpio_track track = {
	    .milestone = MPIO_FENCED, .other = via, .ios = freed, .proof = proof};

	tell(p, &track);
}

void mpio_track_up(struct mpio_path *p)
{
	if (p->loss.number == 0 || p->loss.returned)
		return;
	p->loss.returned = p->loss.first_io_due = true;
	tell_plain(p, MPIO_UP_AGAIN, p->index);
}

void mpio_track_first_io(struct mpio_path *p)
{
	p->loss.first_io_due = false;
	tell_plain(p, MPIO_FIRST_IO, p->index);
}
