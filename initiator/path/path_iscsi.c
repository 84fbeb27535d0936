/* SPDX-License-Identifier: MIT
 *
 * The `iscsi` kind of path: life from path_new_iscsi to path_free, and the end of a login.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "initiator/path/iscsi_path.h"

static const char default_initiator[] = "iqn.2026-11.test.sanlab:initiator";

static struct iscsi_path *of(struct path *path)
{
	return container_of(path, struct iscsi_path, path);
}

static void destroy(struct iscsi_path *p)
{
	loop_task_cancel(p->path.loop, &p->later);
	explicit_bzero(p->password, sizeof p->password);
	free(p->slots);
	free(p);
}

void iscsi_path_enter(struct iscsi_path *p)
{
	p->depth++;
}

void iscsi_path_leave(struct iscsi_path *p)
{
	assert(p->depth);
	if (--p->depth == 0 && p->free_wanted)
		destroy(p);
}

void iscsi_path_event(struct iscsi_path *p, enum path_event event, const char *why)
{
	if (!p->free_wanted && p->path.config.event)
		p->path.config.event(p->path.config.arg, &p->path, event, why);
}

void iscsi_path_teardown(struct iscsi_path *p, bool hard)
{
	p->path.up = false;
	p->phase = ISCSI_DOWN;
	session_close(p, hard);
	p->lost = p->redirected = p->again = p->identified = p->asked = false;
	iscsi_path_deliver(p); /* answered before the end came: these count */
	command_deliver(p);
	iscsi_path_end_lost(p);
	command_end_lost(p);
	manage_end_lost(p);
	iscsi_path_end_refused(p);
	command_end_refused(p);
}

/* Refused I/O, and the failure of a start that was over before it began. */
static void on_later(void *arg)
{
	struct iscsi_path *p = arg;

	iscsi_path_enter(p);
	iscsi_path_end_refused(p);
	command_end_refused(p);
	if (p->lost) {
		char why[sizeof p->why];

		memcpy(why, p->why, sizeof why);
		iscsi_path_teardown(p, true);
		iscsi_path_event(p, PATH_EVENT_DOWN, why);
	}
	iscsi_path_leave(p);
}

static int iscsi_connect(struct path *path)
{
	struct iscsi_path *p = of(path);
	int r;

	if (p->phase != ISCSI_DOWN)
		return -EALREADY;
	p->hops = 0;
	memcpy(p->at_portal, p->portal, sizeof p->at_portal);
	path->redirected_to[0] = 0;
	path->lost_by = PATH_DETECT_NONE;
	p->login_deadline_ns = loop_now_ns(path->loop) + path->config.login_timeout_ns;
	r = session_open(p);
	if (r == -ENOTSUP)
		return r; /* a virtual loop has no descriptors */
	if (r < 0) {
		p->phase = ISCSI_CONNECTING; /* the event says that it failed, from the loop */
		p->lost = true;
		loop_task_queue(path->loop, &p->later);
	}
	return 0;
}

/* An orderly end tells the target; nobody waits for its answer. */
static void try_logout(struct iscsi_path *p)
{
	if (!p->path.up || p->lost || p->oldest || iscsi_out_queue_length(p->ctx))
		return;
	p->tearing = true;
	if (iscsi_logout_async(p->ctx, login_connected, NULL) == 0)
		(void)iscsi_service(p->ctx, iscsi_which_events(p->ctx) & 4 /* POLLOUT */);
	p->tearing = false;
}

static void end_everything(struct iscsi_path *p)
{
	bool idle = !p->oldest;

	p->path.lost_by = PATH_DETECT_ASKED;
	if (p->ctx && idle)
		try_logout(p);
	iscsi_path_teardown(p, !idle);
	fence_cancel_all(p);
}

static void iscsi_disconnect_path(struct path *path)
{
	struct iscsi_path *p = of(path);

	iscsi_path_enter(p);
	end_everything(p);
	iscsi_path_leave(p);
}

/* From within a callback the memory stays until that has returned. */
static void iscsi_free(struct path *path)
{
	struct iscsi_path *p = of(path);

	p->free_wanted = true;
	iscsi_path_enter(p);
	end_everything(p);
	assert(path->in_flight == 0);
	iscsi_path_leave(p);
}

static const struct path_ops iscsi_ops = {
    .name = "iscsi",
    .connect = iscsi_connect,
    .submit = iscsi_path_submit,
    .command = command_submit,
    .fence = fence_begin,
    .reset_unit = manage_reset_unit,
    .abort_tasks = manage_abort_tasks,
    .disconnect = iscsi_disconnect_path,
    .free = iscsi_free,
};

static bool copy_string(char *out, size_t size, const char *text)
{
	return !text || (size_t)snprintf(out, size, "%s", text) < size;
}

/* An iSCSI name (RFC 7143 4.2.7) has no blanks and no control characters in it. */
static bool name_is_sound(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f)
			return false;
	return n > 0;
}

/* The path's own copies, and defaults for what was left at zero. */
static int take_config(struct iscsi_path *p, const struct path_config *config)
{
	struct path_config *c = &p->path.config;

	*c = *config;
	if (!c->portal || !c->target || !login_portal_is_numeric(c->portal))
		return -EINVAL;
	if (!copy_string(p->portal, sizeof p->portal, c->portal) ||
	    !copy_string(p->target, sizeof p->target, c->target) ||
	    !copy_string(p->initiator, sizeof p->initiator,
			 c->initiator_name ? c->initiator_name : default_initiator) ||
	    !copy_string(p->user, sizeof p->user, c->user) ||
	    !copy_string(p->password, sizeof p->password, c->password))
		return -EINVAL;
	if (!name_is_sound(p->target) || !name_is_sound(p->initiator))
		return -EINVAL;
	c->portal = p->portal;
	c->target = p->target;
	c->initiator_name = p->initiator;
	c->user = *p->user ? p->user : NULL;
	c->password = *p->password ? p->password : NULL;
	path_config_defaults(c);
	if (c->max_in_flight > ISCSI_MAX_IN_FLIGHT || c->lun > 0x3fff)
		return -EINVAL;
	/* libiscsi puts 16 bits on the wire as they are: from 256 on they need flat addressing
	 * (SAM-5 4.7.4). */
	p->wire_lun = (int)(c->lun < 256 ? c->lun : 0x4000 | c->lun);
	return 0;
}

int path_new_iscsi(struct loop *loop, const struct path_config *config, struct path **ret_path)
{
	struct iscsi_path *p = calloc(1, sizeof *p);
	int r;

	if (!p)
		return -ENOMEM;
	r = take_config(p, config);
	if (r == 0) {
		p->slots = calloc(p->path.config.max_in_flight, sizeof *p->slots);
		r = p->slots ? 0 : -ENOMEM;
	}
	if (r < 0) {
		free(p);
		return r;
	}
	p->path.ops = &iscsi_ops;
	p->path.loop = loop;
	p->answered_tail = &p->answered;
	p->refused_tail = &p->refused;
	command_init(p);
	SLIST_INIT(&p->free_slots);
	for (unsigned i = p->path.config.max_in_flight; i-- > 0;) {
		p->slots[i].owner = p;
		SLIST_INSERT_HEAD(&p->free_slots, &p->slots[i], free_link);
	}
	loop_task_init(&p->flush, session_flush, p);
	loop_task_init(&p->later, on_later, p);
	loop_timer_init(&p->tick, session_tick, p);
	p->link = (struct link_watch_entry){.lost = login_link_lost, .owner = p};
	loop_timer_init(&p->pause, probe_send, p);
	*ret_path = &p->path;
	return 0;
}
