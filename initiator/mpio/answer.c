/* SPDX-License-Identifier: MIT
 *
 * What comes back from a path: success, sense, status or loss, and what follows from it.
 */
#include <errno.h>
#include <stdio.h>

#include "base/bytes.h"
#include "initiator/mpio/device.h"
#include "initiator/mpio/retry.h"

static void give_up(struct mpio *m, struct mpio_req *req, int status)
{
	m->paths[req->path]->ledger.errors++;
	mpio_finish(m, req, status);
}

/* Up to a quarter less, so that what was refused together does not come back together. */
static uint64_t with_jitter(struct mpio *m, uint64_t delay_ns)
{
	return delay_ns - rng_below(&m->rng, delay_ns / 4 + 1);
}

static bool others_left(const struct mpio *m, const struct mpio_req *req)
{
	for (unsigned i = 0; i < m->count; i++)
		if (m->views[i].able && !(req->avoid >> i & 1))
			return true;
	return false;
}

static void elsewhere(struct mpio *m, struct mpio_req *req, const struct retry_rule *rule)
{
	req->avoid |= UINT64_C(1) << req->path;
	if (others_left(m, req)) {
		mpio_requeue_first(m, req);
	} else if (rule->action == RETRY_ELSEWHERE) {
		give_up(m, req, rule->status);
	} else {
		req->avoid = 0;
		mpio_delay(m, req, with_jitter(m, retry_backoff_ns(req->retries)));
	}
}

/* False: there is no such thing on this path. */
static bool access_met(struct mpio *m, struct mpio_req *req, const struct retry_rule *rule)
{
	uint64_t now = loop_now_ns(m->loop);

	if (!mpio_alua_met(m->paths[req->path], rule->access))
		return false;
	/* A transition takes as long as it takes, but not for ever. */
	if (!req->pending_ns)
		req->pending_ns = MAX_OF(now, UINT64_C(1));
	if (now - req->pending_ns > mpio_alua_transition_ns(m)) {
		give_up(m, req, rule->status);
		return true;
	}
	m->paths[req->path]->ledger.retries++;
	if (m->usable_count > 0)
		mpio_requeue_first(m, req);
	else
		mpio_delay(m, req, with_jitter(m, retry_backoff_ns(0)));
	return true;
}

static void also(struct mpio *m, const struct mpio_req *req, const struct retry_rule *rule)
{
	struct mpio_path *p = m->paths[req->path];
	uint64_t now = loop_now_ns(m->loop);
	char what[96];

	switch (rule->also) {
	case ALSO_NOTHING:
		break;
	case ALSO_FULL:
		window_full(&p->window, m->views[req->path].in_flight, now);
		mpio_view_refresh(m, req->path);
		break;
	case ALSO_BUSY:
		window_busy(&p->window, now);
		mpio_view_refresh(m, req->path);
		break;
	case ALSO_ASK:
		mpio_alua_changed(p);
		break;
	case ALSO_TELL:
		if (req->pio.result == PATH_SENSE)
			snprintf(what, sizeof what, "%s (%x/%02x/%02x)", rule->why,
				 req->pio.sense_key, req->pio.asc, req->pio.ascq);
		else
			snprintf(what, sizeof what, "%s", rule->why);
		mpio_path_notice(p, what);
		break;
	case ALSO_MARK:
		mpio_path_mark(p, rule->why);
		break;
	case ALSO_MISSING:
		p->machine.missing = true;
		break;
	}
}

static void again(struct mpio *m, struct mpio_req *req, const struct retry_rule *rule)
{
	m->paths[req->path]->ledger.retries++;
	switch (rule->action) {
	case RETRY_SAME:
		req->same_path = true;
		mpio_requeue_first(m, req);
		break;
	case RETRY_BACKOFF:
		mpio_delay(m, req, with_jitter(m, retry_backoff_ns(req->retries)));
		break;
	case RETRY_ELSEWHERE:
	case RETRY_ELSEWHERE_WAIT:
	case RETRY_ACCESS:
		elsewhere(m, req, rule);
		break;
	case RETRY_RECHECK:
	case RETRY_ACCEPT:
	case RETRY_FAIL:
		mpio_requeue_first(m, req);
		break;
	}
	req->retries++;
}

static void apply(struct mpio *m, struct mpio_req *req, const struct retry_rule *rule)
{
	char why[96];

	also(m, req, rule);
	if (rule->action == RETRY_ACCEPT) {
		mpio_ledger_count(m, req);
		mpio_finish(m, req, 0);
		return;
	}
	if (rule->action == RETRY_ACCESS && access_met(m, req, rule))
		return;
	if (rule->action == RETRY_RECHECK) {
		/* Whoever answers there may be another unit by now. */
		snprintf(why, sizeof why, "%s (%x/%02x/%02x): to be identified again", rule->why,
			 req->pio.sense_key, req->pio.asc, req->pio.ascq);
		mpio_drop_path(m, req->path, why);
	}
	if (rule->action == RETRY_FAIL || req->retries >= m->config.max_retries)
		give_up(m, req, rule->status);
	else
		again(m, req, rule);
}

/* Its path dies: it stays there until the DOWN event says that the socket is closed. */
static void lost(struct mpio *m, struct mpio_req *req)
{
	struct mpio_path *p = m->paths[req->path];

	mpio_queue_req(m, req, REQ_LOST);
	if (mpio_changes_data(req))
		mpio_fence_lost(m, req);
	p->failing = true;
	mpio_view_refresh(m, req->path);
}

static void not_sent(struct mpio *m, struct mpio_req *req)
{
	static const struct retry_rule full = {0,      RETRY_ANY,  RETRY_ANY, RETRY_BACKOFF,
					       -EBUSY, "path full"};
	struct mpio_path *p = m->paths[req->path];

	if (mpio_path_logged_in(p->machine.state) && p->path->up) {
		/* It has fewer slots than the configured depth. */
		window_init(&p->window, MAX_OF(m->views[req->path].in_flight, 1U));
		mpio_view_refresh(m, req->path);
		apply(m, req, &full);
		return;
	}
	if (mpio_path_logged_in(p->machine.state)) {
		p->failing = true;
		mpio_view_refresh(m, req->path);
	}
	mpio_requeue_first(m, req);
}

static void succeeded(struct mpio *m, struct mpio_req *req)
{
	struct mpio_path *p = m->paths[req->path];

	mpio_ledger_count(m, req);
	if (p->loss.first_io_due)
		mpio_track_first_io(p);
	if (p->window.limit < p->window.most) {
		window_good(&p->window, loop_now_ns(m->loop));
		mpio_view_refresh(m, req->path);
	}
	if (m->policy->answered)
		m->policy->answered(m->policy_state, m->views, m->count, req->path, req->sent_ns,
				    loop_now_ns(m->loop));
	mpio_finish(m, req, 0);
}

static void handle(struct mpio *m, struct mpio_req *req)
{
	switch (req->pio.result) {
	case PATH_OK:
		succeeded(m, req);
		break;
	case PATH_SENSE:
		mpio_referrals_sense(m, &req->pio);
		apply(m, req, retry_for_sense(req->pio.sense_key, req->pio.asc, req->pio.ascq));
		break;
	case PATH_STATUS:
		apply(m, req, retry_for_status(req->pio.scsi_status));
		break;
	case PATH_LOST:
		lost(m, req);
		break;
	case PATH_NOT_SENT:
		not_sent(m, req);
		break;
	}
}

void mpio_answered(struct path_io *pio)
{
	struct mpio_req *req = pio->owner;
	struct mpio *m = req->mpio;
	bool write = mpio_changes_data(req);

	/* Exactly once: a second answer, or one for an io that has ended, is a broken path kind. */
	assert(req->state == REQ_SENT);
	m->depth++;
	mpio_view_answered(m, req->path, req->length_bytes);
	m->writes_in_flight -= write;
	if (m->freeing && pio->result != PATH_OK)
		mpio_finish(m, req, -ENODEV);
	else
		handle(m, req);
	if (write)
		mpio_fence_write_ended(m);
	if (m->holding)
		loop_task_queue(m->loop, &m->task);
	mpio_pump(m);
	m->depth--;
}

void mpio_delay_due(void *arg)
{
	struct mpio *m = arg;
	uint64_t now = loop_now_ns(m->loop);
	struct mpio_req *req;

	m->depth++;
	while ((req = TAILQ_FIRST(&m->delayed)) && req->due_ns <= now)
		mpio_queue_req(m, req, REQ_READY);
	if (req)
		loop_timer_set(m->loop, &m->delay_timer, req->due_ns);
	mpio_pump(m);
	m->depth--;
}
