/* SPDX-License-Identifier: MIT
 *
 * Session reinstatement as a fence: one more login, in a libiscsi context of its own, with the
 * initiator name and ISID of a path that is lost.
 *
 * RFC 7143 6.3.5: a login with the ISID of a session that the target still has, to the same portal
 * group, ends that session and its tasks before it succeeds.  Then it logs out again.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "initiator/path/iscsi_path.h"

struct iscsi_fence {
	struct iscsi_path *through;
	const struct iscsi_path *victim; /* stays down, and stays, until done */
	struct path_fence *fence;
	struct iscsi_context *ctx;
	struct loop_watch watch;
	struct loop_timer deadline;
	bool proved; /* logged in: the old session is gone */
	bool again;  /* refused, but perhaps not without the security stage */
	bool plain;  /* without the security stage */
	bool over;
	int status;
	struct iscsi_fence **place; /* among the path's */
};

static int start(struct iscsi_fence *f);

static void end(struct iscsi_fence *f)
{
	struct iscsi_path *p = f->through;
	struct path_fence *fence = f->fence;
	int status = f->proved ? 0 : f->status;
	struct linger linger = {.l_onoff = 1, .l_linger = 0};

	f->over = true;
	loop_watch_del(p->path.loop, &f->watch);
	loop_timer_cancel(p->path.loop, &f->deadline);
	if (f->ctx && iscsi_get_fd(f->ctx) >= 0 && !f->proved)
		(void)setsockopt(iscsi_get_fd(f->ctx), SOL_SOCKET, SO_LINGER, &linger,
				 sizeof linger);
	if (f->ctx)
		iscsi_destroy_context(f->ctx);
	*f->place = NULL;
	free(f);
	fence->done(fence, status);
}

static void conclude(struct iscsi_fence *f, int status)
{
	if (f->over)
		return; /* also what libiscsi calls while its context goes away */
	f->over = true;
	f->status = status;
}

static void logged_out(struct iscsi_context *ctx, int status, void *command_data, void *arg)
{
	conclude(arg, 0);
}

static void logged_in(struct iscsi_context *ctx, int status, void *command_data, void *arg)
{
	struct iscsi_fence *f = arg;

	if (f->over)
		return;
	if (status != SCSI_STATUS_GOOD) {
		f->again = !f->plain && !f->victim->path.config.user &&
			   login_wants_plain(login_status(iscsi_get_error(ctx)));
		conclude(f, -ECONNREFUSED);
		return;
	}
	f->proved = true;
	if (iscsi_logout_async(ctx, logged_out, f) != 0)
		conclude(f, 0);
}

/* Also called when the connection ends. */
static void connected(struct iscsi_context *ctx, int status, void *command_data, void *arg)
{
	struct iscsi_fence *f = arg;

	if (f->over || f->proved)
		return;
	if (status != SCSI_STATUS_GOOD)
		conclude(f, -ECONNREFUSED);
	else if (iscsi_login_async(ctx, logged_in, f) != 0)
		conclude(f, -EPROTO);
}

/* The deadline stays: it is for both. */
static int begin_again(struct iscsi_fence *f)
{
	uint64_t deadline_ns = f->deadline.deadline_ns;
	int r = -ENOMEM;

	loop_watch_del(f->through->path.loop, &f->watch);
	loop_timer_cancel(f->through->path.loop, &f->deadline);
	iscsi_destroy_context(f->ctx);
	f->ctx = iscsi_create_context(f->victim->initiator);
	f->plain = true;
	f->over = f->again = false;
	if (f->ctx)
		r = start(f);
	if (r == 0)
		loop_timer_set(f->through->path.loop, &f->deadline, deadline_ns);
	else
		conclude(f, r);
	return r;
}

static void on_ready(void *arg, uint32_t ready)
{
	struct iscsi_fence *f = arg;
	struct iscsi_path *p = f->through;
	int revents = (ready & EPOLLIN ? POLLIN : 0) | (ready & EPOLLOUT ? POLLOUT : 0);
	int wanted;

	iscsi_path_enter(p);
	if (ready & EPOLLERR)
		conclude(f, -ECONNREFUSED);
	else if (iscsi_service(f->ctx, revents) < 0 || ready & (EPOLLHUP | EPOLLRDHUP))
		conclude(f, -ECONNRESET);
	if (f->over && f->again && begin_again(f) == 0) {
		/* another context, another socket */
	} else if (f->over) {
		end(f);
	} else {
		wanted = iscsi_which_events(f->ctx);
		loop_watch_set(p->path.loop, &f->watch,
			       EPOLLRDHUP | (wanted & POLLIN ? EPOLLIN : 0U) |
				   (wanted & POLLOUT ? EPOLLOUT : 0U));
	}
	iscsi_path_leave(p);
}

static void on_deadline(void *arg)
{
	struct iscsi_fence *f = arg;
	struct iscsi_path *p = f->through;

	iscsi_path_enter(p);
	conclude(f, -ETIMEDOUT);
	end(f);
	iscsi_path_leave(p);
}

static int start(struct iscsi_fence *f)
{
	struct iscsi_path *p = f->through;
	struct loop *loop = p->path.loop;
	int r;

	/* The victim's name, ISID and credentials; all are copied by libiscsi. */
	r = login_configure(f->ctx, &f->victim->path.config, !f->plain);
	if (r < 0)
		return r;
	if (iscsi_connect_async(f->ctx, login_address(&p->path.config, p->at_portal), connected,
				f) != 0)
		return -ECONNREFUSED;
	f->watch = (struct loop_watch){.fd = iscsi_get_fd(f->ctx), .fn = on_ready, .arg = f};
	r = loop_watch_add(loop, &f->watch, EPOLLOUT | EPOLLRDHUP);
	if (r < 0)
		return r;
	loop_timer_init(&f->deadline, on_deadline, f);
	loop_timer_set(loop, &f->deadline, loop_now_ns(loop) + p->path.config.login_timeout_ns);
	return 0;
}

static struct iscsi_fence **free_place(struct iscsi_path *p)
{
	for (unsigned i = 0; i < PATH_FENCES_MAX; i++)
		if (!p->fences[i])
			return &p->fences[i];
	return NULL;
}

int fence_begin(struct path *path, const struct path *victim, struct path_fence *fence)
{
	struct iscsi_path *p = container_of(path, struct iscsi_path, path);
	const struct iscsi_path *v = container_of(victim, struct iscsi_path, path);
	struct iscsi_fence **place, *f;
	int r;

	assert(victim->ops == path->ops && victim != path);
	if (!path->up)
		return -ENOTCONN;
	if (v->phase != ISCSI_DOWN)
		return -EALREADY; /* its own login is the same proof, or it is up */
	if (strcmp(p->target, v->target) != 0)
		return -EINVAL;
	place = free_place(p);
	if (!place)
		return -EBUSY;
	f = calloc(1, sizeof *f);
	if (!f)
		return -ENOMEM;
	f->through = p;
	f->place = place;
	f->victim = v;
	f->plain = v->plain;
	f->fence = fence;
	f->ctx = iscsi_create_context(v->initiator);
	r = f->ctx ? start(f) : -ENOMEM;
	if (r < 0) {
		f->over = true;
		if (f->ctx)
			iscsi_destroy_context(f->ctx);
		free(f);
		return r;
	}
	*place = f;
	return 0;
}

void fence_cancel_all(struct iscsi_path *p)
{
	for (unsigned i = 0; i < PATH_FENCES_MAX; i++) {
		struct iscsi_fence *f = p->fences[i];

		if (!f)
			continue;
		conclude(f, -ECANCELED);
		end(f);
	}
}
