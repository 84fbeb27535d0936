/* SPDX-License-Identifier: MIT
 *
 * Paths coming and going: identity after every login, reconnects, and what happens to I/O when a
 * path, or the last one, is lost.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "initiator/mpio/device.h"

enum { NOTICES_APART_NS = 1000 * 1000 * 1000 };

static void tell(struct mpio_path *p, enum mpio_path_state from, enum mpio_path_state to,
		 unsigned reissued, const char *why)
{
	struct mpio *m = p->mpio;
	struct mpio_event event = {
	    .at_ns = loop_now_ns(m->loop),
	    .path = p->index,
	    .from = from,
	    .to = to,
	    .reissued = reissued,
	    .by = to == MPIO_PATH_DOWN ? p->path->lost_by : PATH_DETECT_NONE,
	    .alive_ns = p->path->heard_ns,
	    .access = mpio_path_logged_in(to) ? p->machine.access : MPIO_ACCESS_NONE,
	    .why = why,
	};

	if (m->event_fn && !m->freeing)
		m->event_fn(m->event_arg, &event);
}

void mpio_path_notice(struct mpio_path *p, const char *what)
{
	uint64_t now = loop_now_ns(p->mpio->loop);

	if (p->noticed_ns && now - p->noticed_ns < NOTICES_APART_NS)
		return;
	p->noticed_ns = MAX_OF(now, UINT64_C(1));
	tell(p, p->machine.state, p->machine.state, 0, what);
}

/* ---- how many are left ---- */

static void count(struct mpio *m, enum mpio_path_state state, int by)
{
	m->usable_count += (unsigned)by * mpio_path_usable(state);
	m->pending_count += (unsigned)by * (state == MPIO_PATH_PENDING);
	m->login_count += (unsigned)by * mpio_path_logged_in(state);
}

/* A transition ends by itself; without one I/O waits for so long and no longer. */
static void watch_no_path(struct mpio *m, bool had_some)
{
	if (m->usable_count + m->pending_count > 0) {
		m->gone = false;
		loop_timer_cancel(m->loop, &m->no_path_timer);
	} else if (had_some && m->config.no_path_ns != MPIO_FOREVER) {
		loop_timer_set(m->loop, &m->no_path_timer,
			       loop_now_ns(m->loop) + m->config.no_path_ns);
	}
}

static void step(struct mpio_path *p, enum path_input input, unsigned reissued, const char *why)
{
	struct mpio *m = p->mpio;
	uint64_t now = loop_now_ns(m->loop);
	bool had_some = m->usable_count + m->pending_count > 0;
	struct path_output out = path_machine_step(&p->machine, input, &m->config, now, &m->rng);

	count(m, out.from, -1);
	count(m, out.to, 1);
	watch_no_path(m, had_some);
	p->rank = path_machine_rank(&p->machine) + (p->returning ? MPIO_RANK_RETURNING : 0);
	mpio_view_refresh(m, p->index);
	if (out.reconnect)
		loop_timer_set(m->loop, &p->reconnect, now + out.reconnect_after_ns);
	if (p->returning)
		out.look_ns = MIN_OF(out.look_ns, p->returned_ns + m->config.failback_delay_ns);
	if (out.look_ns != UINT64_MAX)
		loop_timer_set(m->loop, &p->look, out.look_ns);
	else
		loop_timer_cancel(m->loop, &p->look);
	if (!mpio_path_logged_in(out.to) && input != PATH_INPUT_CONNECT)
		snprintf(m->last_why, sizeof m->last_why, "path %u (%s): %s", p->index,
			 p->path->config.portal ? p->path->config.portal : "?", why);
	if (out.from != out.to)
		tell(p, out.from, out.to, reissued, why);
}

void mpio_path_look(struct mpio_path *p, const char *why)
{
	struct mpio *m = p->mpio;
	char text[96];

	if (!mpio_path_logged_in(p->machine.state))
		return;
	if (p->returning && loop_now_ns(m->loop) >= p->returned_ns + m->config.failback_delay_ns)
		p->returning = false;
	step(p, PATH_INPUT_LOOK, 0, why);
	if (p->machine.no_capacity && path_machine_active(&p->machine)) {
		/* It has access now: first the rest of the unit has to be seen. */
		snprintf(text, sizeof text, "%s: to be identified again", why);
		mpio_drop_path(m, p->index, text);
	}
}

void mpio_path_mark(struct mpio_path *p, const char *why)
{
	bool was = p->machine.degraded;

	path_machine_mark(&p->machine, &p->mpio->config, loop_now_ns(p->mpio->loop));
	if (p->machine.degraded && !was)
		mpio_path_look(p, why);
}

void mpio_path_look_due(void *arg)
{
	struct mpio_path *p = arg;
	struct mpio *m = p->mpio;
	const char *why = p->machine.state == MPIO_PATH_PENDING ? "in transition for too long"
								: "no failure for long enough";

	m->depth++;
	mpio_path_look(p, why);
	mpio_pump(m);
	m->depth--;
}

/* NULL when the unit behind the path is the one this device stands for. */
static const char *mismatch(const struct mpio *m, const struct path_identity *id)
{
	if (!id->no_capacity && (!id->block_bytes || !id->blocks))
		return "a logical unit without capacity";
	if (!id->designator_bytes && m->count > 1)
		return "a logical unit without identity: paths to it cannot be told apart";
	if (!m->identified)
		return NULL;
	if (id->designator_bytes != m->unit.designator_bytes ||
	    memcmp(id->designator, m->unit.designator, id->designator_bytes) != 0)
		return "another logical unit (designator differs)";
	if (*id->serial && *m->unit.serial && strcmp(id->serial, m->unit.serial) != 0)
		return "another logical unit (serial number differs)";
	if (id->no_capacity || m->unit.no_capacity)
		return NULL; /* nothing to compare yet */
	if (id->block_bytes != m->unit.block_bytes)
		return "another logical unit (block size differs)";
	if (id->blocks * id->block_bytes < m->layer.size_bytes)
		return "the logical unit is smaller than before";
	return NULL;
}

static uint32_t smaller_limit(uint32_t a, uint32_t b)
{
	return a && b ? MIN_OF(a, b) : a | b; /* 0: no limit told */
}

static void learn(struct mpio *m, const struct path_identity *id)
{
	const struct mpio_policy *policy = mpio_policy_of_make(&m->config, id->vendor, id->product);

	if (!m->identified) {
		m->identified = true;
		m->unit = *id;
		m->layer.size_bytes = id->blocks * id->block_bytes;
		if (policy)
			mpio_set_policy(m, policy);
		return;
	}
	if (id->no_capacity)
		return;
	if (m->unit.no_capacity) { /* known by name only until now */
		m->unit = *id;
		m->layer.size_bytes = id->blocks * id->block_bytes;
		return;
	}
	m->unit.max_transfer_blocks =
	    smaller_limit(m->unit.max_transfer_blocks, id->max_transfer_blocks);
	m->unit.max_unmap_blocks = smaller_limit(m->unit.max_unmap_blocks, id->max_unmap_blocks);
	m->unit.can_unmap &= id->can_unmap;
}

/* The login is over and the socket closed: its I/O may go elsewhere, the oldest first. */
static void end_login(struct mpio_path *p, enum path_input input, const char *why)
{
	struct mpio *m = p->mpio;
	unsigned reissued = 0;
	struct mpio_req *req;
	bool was_up;

	while ((req = TAILQ_LAST(&p->lost, mpio_req_list))) {
		mpio_track_taken_back(p, req);
		mpio_requeue_first(m, req);
		reissued++;
	}
	if (mpio_path_logged_in(p->machine.state)) {
		p->ledger.losses++;
		mpio_track_lost(p, reissued);
	}
	p->ledger.reissued += reissued;
	p->failing = p->admitting = false;
	mpio_fence_path_down(p);
	was_up = mpio_path_logged_in(p->machine.state);
	step(p, input, reissued, why);
	if (was_up)
		mpio_alua_lost(p);
	if (m->gone)
		mpio_fail_waiting(m);
}

/* Without access a moment ago, and now, or always, no state that says so: another login, less and
 * less often, until one sees the unit. */
static void not_seen(struct mpio_path *p)
{
	static const char why[] = "no access to the unit, but no state that says so";

	p->path->lost_by = PATH_DETECT_SENSE;
	step(p, PATH_INPUT_DOWN, 0, why);
	mpio_drop_path(p->mpio, p->index, why);
}

void mpio_path_admit(struct mpio_path *p)
{
	struct mpio *m = p->mpio;

	p->admitting = false;
	if (p->machine.no_capacity && path_machine_active(&p->machine)) {
		not_seen(p);
		return;
	}
	p->returning = m->config.failback_delay_ns > 0 && p->loss.number > 0;
	p->returned_ns = loop_now_ns(m->loop);
	step(p, PATH_INPUT_UP, 0, "");
	mpio_track_up(p);
	mpio_referrals_path_up(m);
	if (m->login_count == m->count && m->usable_count > 0 && !m->ready_told) {
		m->ready_due = true;
		m->ready_status = 0;
		loop_task_queue(m->loop, &m->task);
	}
}

static void came_up(struct mpio_path *p)
{
	struct mpio *m = p->mpio;
	const char *why = mismatch(m, &p->path->identity);

	mpio_fence_path_up(p);
	if (why) {
		step(p, PATH_INPUT_WRONG, 0, why);
		mpio_drop_path(m, p->index, why);
		return;
	}
	learn(m, &p->path->identity);
	p->machine.no_capacity = p->path->identity.no_capacity;
	m->views[p->index].member = p->path->identity.target_port_group;
	p->ledger.logins++;
	window_init(&p->window, (unsigned)m->config.queue_depth);
	p->failing = false;
	if (!mpio_alua_login(p))
		mpio_path_admit(p);
}

void mpio_path_event(void *arg, struct path *path, enum path_event event, const char *why)
{
	struct mpio_path *p = arg;
	struct mpio *m = p->mpio;

	if (m->freeing)
		return;
	m->depth++;
	if (event == PATH_EVENT_UP) {
		came_up(p);
	} else if (p->machine.state != MPIO_PATH_DOWN) {
		p->drop = false; /* done already */
		if (path->lost_by != PATH_DETECT_LOGIN)
			p->machine.missing = false; /* that has another reason */
		end_login(p, PATH_INPUT_DOWN, why && *why ? why : "connection lost");
	}
	mpio_pump(m);
	m->depth--;
}

void mpio_path_reconnect(void *arg)
{
	struct mpio_path *p = arg;
	struct mpio *m = p->mpio;
	int r;

	if (p->fencing) {
		p->reconnect_due = true; /* its ISID is in use */
		return;
	}
	m->depth++;
	p->connect_ns = loop_now_ns(m->loop);
	step(p, PATH_INPUT_CONNECT, 0, "");
	r = path_connect(p->path);
	if (r < 0)
		end_login(p, PATH_INPUT_DOWN, strerror(-r));
	m->depth--;
}

void mpio_path_give_up(struct mpio_path *p, const char *why)
{
	path_disconnect(p->path); /* no event follows */
	p->path->lost_by = PATH_DETECT_ASKED;
	p->admitting = false;
	step(p, PATH_INPUT_DOWN, 0, why);
}

/* From the task, because this may be in the middle of the path's own callback. */
void mpio_drop_path(struct mpio *m, unsigned path, const char *why)
{
	struct mpio_path *p = m->paths[path];

	if (p->drop)
		return;
	p->drop = true;
	snprintf(p->drop_why, sizeof p->drop_why, "%s", why);
	mpio_view_refresh(m, path);
	loop_task_queue(m->loop, &m->task);
}

void mpio_drop_due(struct mpio *m)
{
	m->depth++;
	for (unsigned i = 0; i < m->count; i++) {
		struct mpio_path *p = m->paths[i];

		if (!p->drop)
			continue;
		path_disconnect(p->path); /* its I/O comes back lost; no event follows */
		p->drop = false;
		p->path->lost_by = PATH_DETECT_SENSE;
		if (mpio_path_logged_in(p->machine.state))
			end_login(p, PATH_INPUT_DROPPED, p->drop_why);
		else
			mpio_view_refresh(m, i);
	}
	mpio_pump(m);
	m->depth--;
}

void mpio_no_path_due(void *arg)
{
	struct mpio *m = arg;

	m->depth++;
	m->gone = true;
	mpio_fail_waiting(m);
	m->depth--;
}
