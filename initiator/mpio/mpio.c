/* SPDX-License-Identifier: MIT
 *
 * The MPIO device: making, starting, asking and freeing it.
 */
#include "initiator/mpio/mpio.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "initiator/mpio/device.h"
#include "initiator/mpio/host_load.h"

static const struct io_layer_ops mpio_layer_ops = {.name = "mpio", .submit = mpio_submit};

static void set_default(uint64_t *value, uint64_t preset)
{
	if (!*value)
		*value = preset;
}

static void take_config(struct mpio *m, const struct mpio_config *config)
{
	struct mpio_config *c = &m->config;

	*c = *config;
	set_default(&c->reconnect_min_ns, 250 * NS_PER_MS);
	set_default(&c->reconnect_max_ns, MAX_OF(4 * NS_PER_S, c->reconnect_min_ns));
	c->reconnect_max_ns = MAX_OF(c->reconnect_max_ns, c->reconnect_min_ns);
	set_default(&c->io_timeout_ns, 5 * NS_PER_S);
	set_default(&c->queue_depth, 128);
	set_default(&c->transition_ns, 60 * NS_PER_S);
	set_default(&c->marginal_forget_ns, 20 * NS_PER_S);
	if (c->no_path && mpio_parse_no_path(c->no_path, &c->no_path_ns) < 0)
		c->no_path_ns = 20 * NS_PER_S; /* mpio_config_check has said so */
	set_default(&c->fence_hold_ns, 5 * NS_PER_S);
	set_default(&c->fence_wait_ns, 60 * NS_PER_S);
	set_default(&c->fence_limit, 8192);
	set_default(&c->slice_refresh_ns, 5 * NS_PER_S);
}

void mpio_set_policy(struct mpio *m, const struct mpio_policy *policy)
{
	m->policy = policy;
	memset(m->policy_state, 0, policy->state_bytes);
	policy->init(m->policy_state, &m->config, m->referrals.map);
	for (unsigned i = 0; i < m->count; i++)
		mpio_view_refresh(m, i);
}

/* The last thing of the turn, and of this function: the owner may free the device in it. */
static void on_task(void *arg)
{
	struct mpio *m = arg;

	mpio_drop_due(m);
	mpio_fence_advance(m);
	if (m->ready_due && !m->ready_told) {
		m->ready_told = true;
		loop_timer_cancel(m->loop, &m->settle_timer);
		if (m->ready_fn)
			m->ready_fn(m->ready_arg, m->ready_status,
				    m->ready_status ? m->last_why : "");
	}
}

static void on_settled(void *arg)
{
	struct mpio *m = arg;

	m->ready_due = true;
	m->ready_status = m->usable_count ? 0 : -ENODEV;
	loop_task_queue(m->loop, &m->task);
}

int mpio_new(struct loop *loop, const struct mpio_config *config, const char *name, uint64_t seed,
	     struct mpio **ret_mpio)
{
	const struct mpio_policy *policy = mpio_policy_at(config->policy);
	struct mpio *m;
	int r;

	if (!policy)
		return -EINVAL;
	m = calloc(1, sizeof *m);
	if (!m)
		return -ENOMEM;
	take_config(m, config);
	m->policy_state = calloc(1, mpio_policy_state_bytes());
	if (!m->policy_state || fence_init(&m->fences, (unsigned)m->config.fence_limit) < 0) {
		free(m->policy_state);
		free(m);
		return -ENOMEM;
	}
	m->layer.ops = &mpio_layer_ops;
	m->loop = loop;
	snprintf(m->name, sizeof m->name, "%s", name);
	rng_init(&m->rng, seed, rng_stream_of(name));
	m->incoming_tail = &m->incoming;
	TAILQ_INIT(&m->ready);
	TAILQ_INIT(&m->delayed);
	TAILQ_INIT(&m->blocked);
	TAILQ_INIT(&m->behind);
	TAILQ_INIT(&m->crowded);
	TAILQ_INIT(&m->free_reqs);
	loop_timer_init(&m->delay_timer, mpio_delay_due, m);
	loop_timer_init(&m->no_path_timer, mpio_no_path_due, m);
	loop_timer_init(&m->refuse_timer, mpio_refuse_due, m);
	loop_timer_init(&m->settle_timer, on_settled, m);
	loop_timer_init(&m->fence_timer, mpio_fence_due, m);
	loop_timer_init(&m->alua.timer, mpio_alua_due, m);
	loop_task_init(&m->task, on_task, m);
	r = mpio_referrals_init(m);
	if (r < 0) {
		mpio_free(m);
		return r;
	}
	mpio_set_policy(m, policy);
	m->gone = true; /* until started */
	snprintf(m->last_why, sizeof m->last_why, "no path");
	*ret_mpio = m;
	return 0;
}

int mpio_add_path(struct mpio *mpio, struct path *path)
{
	struct mpio_path *p;

	if (mpio->started)
		return -EBUSY;
	if (mpio->count == MPIO_MAX_PATHS)
		return -ENOSPC;
	p = calloc(1, sizeof *p);
	if (!p)
		return -ENOMEM;
	p->load = &p->own_load;
	if (mpio->loads)
		p->load = host_load_of(mpio->loads, path->config.portal ? path->config.portal : "");
	if (!p->load) {
		free(p);
		return -ENOMEM;
	}
	p->mpio = mpio;
	p->path = path;
	p->index = mpio->count;
	p->machine.access = MPIO_ACCESS_NONE;
	window_init(&p->window, (unsigned)mpio->config.queue_depth);
	TAILQ_INIT(&p->lost);
	loop_timer_init(&p->reconnect, mpio_path_reconnect, p);
	loop_timer_init(&p->look, mpio_path_look_due, p);
	path->config.links = mpio->links;
	path->config.event = mpio_path_event;
	path->config.arg = p;
	mpio->paths[p->index] = p;
	mpio_view_init(mpio, p->index);
	mpio->count++;
	return 0;
}

void mpio_watch_links(struct mpio *mpio, struct link_watch *links)
{
	assert(mpio->count == 0);
	mpio->links = links;
}

void mpio_share_loads(struct mpio *mpio, struct host_load *loads)
{
	assert(mpio->count == 0);
	mpio->loads = loads;
}

void mpio_on_event(struct mpio *mpio, void (*fn)(void *arg, const struct mpio_event *event),
		   void *arg)
{
	mpio->event_fn = fn;
	mpio->event_arg = arg;
}

void mpio_on_track(struct mpio *mpio, void (*fn)(void *arg, const struct mpio_track *track),
		   void *arg)
{
	mpio->track_fn = fn;
	mpio->track_arg = arg;
}

void mpio_start(struct mpio *mpio, uint64_t settle_ns,
		void (*ready)(void *arg, int status, const char *why), void *arg)
{
	uint64_t now = loop_now_ns(mpio->loop);

	assert(!mpio->started);
	mpio->started = true;
	if (mpio->count > 1)
		loop_gather(mpio->loop); /* what the paths answered is replaced together */
	mpio->gone = false;
	mpio->ready_fn = ready;
	mpio->ready_arg = arg;
	loop_timer_set(mpio->loop, &mpio->settle_timer, now + (mpio->count ? settle_ns : 0));
	if (mpio->config.no_path_ns != MPIO_FOREVER)
		loop_timer_set(mpio->loop, &mpio->no_path_timer, now + mpio->config.no_path_ns);
	for (unsigned i = 0; i < mpio->count; i++)
		mpio_path_reconnect(mpio->paths[i]);
}

static void cancel_timers(struct mpio *m)
{
	loop_timer_cancel(m->loop, &m->delay_timer);
	loop_timer_cancel(m->loop, &m->no_path_timer);
	loop_timer_cancel(m->loop, &m->refuse_timer);
	loop_timer_cancel(m->loop, &m->settle_timer);
	loop_timer_cancel(m->loop, &m->fence_timer);
	loop_timer_cancel(m->loop, &m->alua.timer);
	loop_task_cancel(m->loop, &m->task);
	for (unsigned i = 0; i < m->count; i++) {
		loop_timer_cancel(m->loop, &m->paths[i]->reconnect);
		loop_timer_cancel(m->loop, &m->paths[i]->look);
	}
}

struct mpio *mpio_free(struct mpio *mpio)
{
	if (!mpio)
		return NULL;
	/* Not from within a completion or a path event: their callers still use the device. */
	assert(!mpio->depth && !mpio->pumping);
	mpio->freeing = true;
	for (unsigned i = 0; i < mpio->count; i++) {
		struct mpio_req *req;

		path_free(mpio->paths[i]->path);
		while ((req = TAILQ_FIRST(&mpio->paths[i]->lost)))
			mpio_finish(mpio, req, -ENODEV);
	}
	mpio_fail_waiting(mpio);
	cancel_timers(mpio);
	assert(mpio->open_ios == 0);
	mpio_pool_free(mpio);
	fence_done(&mpio->fences);
	mpio_referrals_done(mpio);
	for (unsigned i = 0; i < mpio->count; i++)
		free(mpio->paths[i]);
	free(mpio->policy_state);
	free(mpio);
	return NULL;
}

struct io_layer *mpio_layer(struct mpio *mpio)
{
	return &mpio->layer;
}

const char *mpio_name(const struct mpio *mpio)
{
	return mpio->name;
}

unsigned mpio_path_count(const struct mpio *mpio)
{
	return mpio->count;
}

void mpio_path_info(const struct mpio *mpio, unsigned path, struct mpio_path_info *ret_info)
{
	const struct mpio_path *p;

	assert(path < mpio->count);
	p = mpio->paths[path];
	*ret_info = (struct mpio_path_info){
	    .portal = p->path->config.portal,
	    .state = p->machine.state,
	    .ledger = &p->ledger,
	    .in_flight = mpio->views[path].in_flight,
	    .depth_limit = p->window.limit,
	    .access = p->machine.access,
	    .rank = p->rank,
	    .identity = mpio_path_logged_in(p->machine.state) ? &p->path->identity : NULL,
	};
}

uint32_t mpio_block_bytes(const struct mpio *mpio)
{
	return mpio->unit.block_bytes;
}

uint64_t mpio_waiting(const struct mpio *mpio)
{
	return mpio->incoming_count + mpio->queued_reqs;
}

unsigned mpio_fences(const struct mpio *mpio)
{
	return mpio->fences.count;
}
