/* SPDX-License-Identifier: MIT
 *
 * One libiscsi context on the loop: when to read, when to write, when to give up.
 *
 * Commands queued during a turn of the loop are written together by one task at its end, under
 * TCP_CORK when there are several, so that they leave in as few segments as fit.  EPOLLOUT is
 * asked for only while the socket is full; a closed command window is opened by what is read.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "base/text.h"
#include "initiator/path/iscsi_path.h"

static void watch_for(struct iscsi_path *p, int events)
{
	uint32_t wanted = EPOLLRDHUP;

	if (events & POLLIN)
		wanted |= EPOLLIN;
	if (events & POLLOUT)
		wanted |= EPOLLOUT;
	if (p->watch.events != wanted)
		loop_watch_set(p->path.loop, &p->watch, wanted);
}

/* Follows a redirection with a context of its own: libiscsi keeps state of the first portal. */
static void log_in_elsewhere(struct iscsi_path *p)
{
	session_close(p, true);
	if (p->redirected)
		snprintf(p->path.redirected_to, sizeof p->path.redirected_to, "%s", p->at_portal);
	p->redirected = p->again = false;
	if (session_open(p) < 0)
		p->lost = true;
}

/* libiscsi has a logout ready.  Waiting for its answer would only delay the path's I/O, which has
 * to go elsewhere; with I/O in flight the reset that follows most likely overtakes it. */
static void leave(struct iscsi_path *p)
{
	session_lose(p, PATH_DETECT_ASKED, "the target asked to log out%s", session_doing(p));
	session_libiscsi(p, POLLOUT);
}

/* Acts on what the callbacks noted.  libiscsi is not on the stack here. */
static void session_settle(struct iscsi_path *p)
{
	if (p->heard) {
		p->heard = false;
		p->nops = 0;
		p->path.heard_ns = loop_now_ns(p->path.loop);
	}
	if (p->asked && !p->lost)
		leave(p);
	if (p->manage.count)
		manage_settle(p);
	iscsi_path_deliver(p);
	command_deliver(p);
	if ((p->redirected || p->again) && !p->lost)
		log_in_elsewhere(p);
	if (p->lost) {
		char why[sizeof p->why];

		memcpy(why, p->why, sizeof why);
		iscsi_path_teardown(p, p->oldest || !p->asked);
		iscsi_path_event(p, PATH_EVENT_DOWN, why);
	} else if (p->identified) {
		p->identified = false;
		p->phase = ISCSI_UP;
		p->path.up = true;
		p->path.lost_by = PATH_DETECT_NONE;
		p->nops = 0;
		p->path.heard_ns = p->last_nop_ns = loop_now_ns(p->path.loop);
		session_set_tick(p);
		iscsi_path_event(p, PATH_EVENT_UP, "");
	} else if (p->manage.count) {
		manage_pump(p);
	}
}

void session_service(struct iscsi_path *p, int revents)
{
	int wanted;

	if (!p->ctx)
		return;
	if (session_libiscsi(p, revents) == 0 && revents & POLLIN)
		p->heard = true; /* a part of an answer is a sign of life, too */
	if (!p->lost && !p->redirected && !p->again) {
		wanted = iscsi_which_events(p->ctx);
		if (wanted & POLLOUT && !(revents & POLLOUT && p->phase != ISCSI_CONNECTING)) {
			/* Written at the end of the turn, most likely without EPOLLOUT. */
			loop_task_queue(p->path.loop, &p->flush);
			wanted &= ~POLLOUT;
		}
		watch_for(p, wanted);
	}
	session_settle(p);
}

static void cork(struct iscsi_path *p, int on)
{
	(void)setsockopt(p->watch.fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on);
}

void session_flush(void *arg)
{
	struct iscsi_path *p = arg;
	bool corked;

	if (!p->ctx || p->lost)
		return;
	iscsi_path_enter(p);
	corked = p->queued > 1;
	p->queued = 0;
	p->stamped = false;
	if (corked)
		cork(p, 1);
	session_libiscsi(p, POLLOUT);
	if (corked)
		cork(p, 0);
	if (!p->lost)
		watch_for(p, iscsi_which_events(p->ctx));
	session_settle(p);
	iscsi_path_leave(p);
}

static void on_ready(void *arg, uint32_t ready)
{
	struct iscsi_path *p = arg;
	unsigned login = p->logins;
	int revents = 0;

	iscsi_path_enter(p);
	if (ready & EPOLLERR) {
		session_lose_socket(p);
	} else {
		if (ready & EPOLLIN)
			revents |= POLLIN;
		if (ready & EPOLLOUT)
			revents |= POLLOUT;
		session_service(p, revents);
		/* What had been answered before the end has been read by now. */
		if (p->ctx && p->logins == login && ready & (EPOLLHUP | EPOLLRDHUP))
			session_lose_closed(p);
	}
	if (p->ctx && p->lost)
		session_settle(p);
	iscsi_path_leave(p);
}

int session_open(struct iscsi_path *p)
{
	const char *address;
	int r;

	p->ctx = iscsi_create_context(p->initiator);
	if (!p->ctx) {
		snprintf(p->why, sizeof p->why, "out of memory");
		return -ENOMEM;
	}
	p->phase = ISCSI_CONNECTING;
	p->path.lost_by = PATH_DETECT_LOGIN; /* if it fails here */
	p->queued = 0;
	p->stamped = false;
	p->logins++;
	r = login_configure(p->ctx, &p->path.config, p->lingers && !p->plain);
	address = login_address(&p->path.config, p->at_portal);
	errno = 0;
	if (r == 0 && iscsi_connect_async(p->ctx, address, login_connected, p) != 0) {
		p->path.lost_by = session_detect(errno);
		r = -ECONNREFUSED;
	}
	if (r < 0) {
		snprintf(p->why, sizeof p->why, "cannot connect to %s: %s", p->at_portal,
			 iscsi_get_error(p->ctx));
		p->why[strcspn(p->why, "\r\n")] = 0;
	} else {
		p->watch =
		    (struct loop_watch){.fd = iscsi_get_fd(p->ctx), .fn = on_ready, .arg = p};
		r = loop_watch_add(p->path.loop, &p->watch, EPOLLOUT | EPOLLRDHUP);
		if (r < 0)
			snprintf(p->why, sizeof p->why, "cannot watch the socket: %s",
				 strerror(-r));
	}
	if (r < 0) {
		session_close(p, true);
		p->phase = ISCSI_DOWN;
		return r;
	}
	session_set_tick(p);
	return 0;
}

void session_close(struct iscsi_path *p, bool hard)
{
	struct loop *loop = p->path.loop;

	loop_watch_del(loop, &p->watch);
	loop_task_cancel(loop, &p->flush);
	loop_timer_cancel(loop, &p->tick);
	loop_timer_cancel(loop, &p->pause);
	link_watch_remove(&p->link);
	if (!p->ctx)
		return;
	if (hard) {
		/* Nothing still in the send buffer may reach the target later: what was lost is
		 * about to be sent again elsewhere. */
		struct linger linger = {.l_onoff = 1, .l_linger = 0};
		int fd = iscsi_get_fd(p->ctx);

		if (fd >= 0)
			(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
	}
	p->tearing = true;
	iscsi_destroy_context(p->ctx);
	p->tearing = false;
	p->ctx = NULL;
}

/* How long the oldest command has been without an answer. */
static uint64_t waiting_ns(const struct iscsi_path *p, uint64_t now)
{
	uint64_t io = p->oldest ? now - p->oldest->submit_ns : 0;

	io = MAX_OF(io, command_waiting_ns(p, now));
	return MAX_OF(io, manage_waiting_ns(p, now));
}

/* The next moment at which something may be due; what is heard until then moves it on. */
void session_set_tick(struct iscsi_path *p)
{
	const struct path_config *c = &p->path.config;
	uint64_t now = loop_now_ns(p->path.loop);
	uint64_t alive = MAX_OF(p->path.heard_ns, p->last_nop_ns) + c->keepalive_ns;
	uint64_t answer = now - waiting_ns(p, now) + c->io_timeout_ns;

	if (p->phase == ISCSI_UP)
		loop_timer_set(p->path.loop, &p->tick, MIN_OF(alive, answer));
	else
		loop_timer_set(p->path.loop, &p->tick, p->login_deadline_ns);
}

static void nop_answered(struct iscsi_context *ctx, int status, void *command_data, void *arg)
{
	struct iscsi_path *p = arg;

	if (p->tearing)
		return;
	if (status == SCSI_STATUS_GOOD)
		p->heard = true;
	else
		session_lose_failed(p, errno);
}

/* A NOP is a non-immediate command here: a window closed by the target holds it back too, and so
 * a target that has stopped taking commands is noticed all the same. */
static void keep_alive(struct iscsi_path *p, uint64_t now)
{
	uint64_t interval = p->path.config.keepalive_ns;

	/* From the last NOP, too: after a pause of this process each gets its whole interval. */
	if (now - p->path.heard_ns < interval || now - p->last_nop_ns < interval)
		return;
	if (p->nops >= p->path.config.keepalive_misses) {
		char text[32];

		session_lose(
		    p, PATH_DETECT_KEEPALIVE, "no sign of life for %s: %u keep-alives unanswered",
		    text_duration(text, sizeof text, (double)(now - p->path.heard_ns)), p->nops);
		return;
	}
	p->nops++;
	p->last_nop_ns = now;
	p->queued++;
	if (iscsi_nop_out_async(p->ctx, nop_answered, NULL, 0, p) != 0)
		session_lose(p, PATH_DETECT_PROTOCOL, "cannot send a keep-alive: %s",
			     iscsi_get_error(p->ctx));
	else
		loop_task_queue(p->path.loop, &p->flush);
}

void session_tick(void *arg)
{
	struct iscsi_path *p = arg;
	const struct path_config *c = &p->path.config;
	uint64_t now = loop_now_ns(p->path.loop);
	char text[32];

	if (!p->ctx)
		return;
	iscsi_path_enter(p);
	if (p->phase != ISCSI_UP) {
		text_duration(text, sizeof text, (double)c->login_timeout_ns);
		session_lose(p, PATH_DETECT_LOGIN, "no login within %s: timed out%s", text,
			     session_doing(p));
	} else if (waiting_ns(p, now) >= c->io_timeout_ns) {
		text_duration(text, sizeof text, (double)waiting_ns(p, now));
		session_lose(p, PATH_DETECT_COMMAND, "no answer to a command for %s", text);
	} else {
		keep_alive(p, now);
	}
	if (p->lost)
		session_settle(p);
	else
		session_set_tick(p);
	iscsi_path_leave(p);
}
