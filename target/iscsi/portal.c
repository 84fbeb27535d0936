/* SPDX-License-Identifier: MIT
 *
 * The shell of a portal: a listening socket and the acceptance of connections.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "target/iscsi/conn.h"

/* A crowd that connects at once must not make others wait for TCP to try again, which takes a
 * second. */
enum { LISTEN_BACKLOG = 4096, ACCEPTS_PER_TURN = 64 };
#define NO_DESCRIPTORS_NS (100 * NS_PER_MS)

struct iscsi_listener {
	struct iscsi_portal *portal;
	struct loop_watch watch;
	struct loop_timer retry; /* out of descriptors: accepts again later */
};

union any_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t address_make(const struct cfg_portal *from, union any_address *address)
{
	memset(address, 0, sizeof *address);
	if (inet_pton(AF_INET, from->host, &address->v4.sin_addr) == 1) {
		address->v4.sin_family = AF_INET;
		address->v4.sin_port = htons(from->port);
		return sizeof address->v4;
	}
	if (inet_pton(AF_INET6, from->host, &address->v6.sin6_addr) == 1) {
		address->v6.sin6_family = AF_INET6;
		address->v6.sin6_port = htons(from->port);
		return sizeof address->v6;
	}
	return 0;
}

static void retry_accept(void *arg)
{
	struct iscsi_listener *listener = arg;

	loop_watch_set(listener->portal->server->loop, &listener->watch, EPOLLIN);
}

static void accept_ready(void *arg, uint32_t ready)
{
	struct iscsi_listener *listener = arg;
	struct loop *loop = listener->portal->server->loop;

	if (listener->portal->silent)
		return;
	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		union any_address peer;
		socklen_t size = sizeof peer;
		int fd =
		    accept4(listener->watch.fd, &peer.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			if (iscsi_socket_open(listener->portal, fd) < 0) {
				log_debug("portal %s: no room for another connection",
					  listener->portal->config.address.text);
				listener->portal->counters.login_failures++;
				close(fd);
			}
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		if (errno == EMFILE && iscsi_conn_make_room(listener->portal->server))
			continue;
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			log_debug("portal %s: %s; accepting again later",
				  listener->portal->config.address.text, strerror(errno));
			loop_watch_set(loop, &listener->watch, 0);
			loop_timer_set(loop, &listener->retry,
				       loop_now_ns(loop) + NO_DESCRIPTORS_NS);
		}
		return;
	}
}

static int address_in_use(const struct iscsi_portal *portal, struct err *err)
{
	const struct cfg_portal *address = &portal->config.address;
	char holder[128];

	if (!iscsi_port_holder(address->port, holder, sizeof holder)) {
		err_set(err, -EADDRINUSE, "cannot listen on %s: port %u is in use", address->text,
			address->port);
		err_hint(err, "choose another port, or stop the program that uses this one");
		return -EADDRINUSE;
	}
	err_set(err, -EADDRINUSE, "cannot listen on %s: port %u is in use by %s", address->text,
		address->port, holder);
	err_hint(err, "stop that program, or choose another port");
	return -EADDRINUSE;
}

/* A bound and listening socket in *RET_FD. */
static int listen_on(struct iscsi_portal *portal, int *ret_fd, struct err *err)
{
	const struct cfg_portal *config = &portal->config.address;
	union any_address address;
	socklen_t size = address_make(config, &address);
	int one = 1, fd, r;

	if (size == 0)
		return err_set(err, -EINVAL, "cannot listen on %s: not a numeric address",
			       config->text);
	fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		r = -errno;
		return err_set(err, r, "cannot listen on %s: %s", config->text, strerror(-r));
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (address.any.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
	if (bind(fd, &address.any, size) < 0 || listen(fd, LISTEN_BACKLOG) < 0) {
		r = -errno;
		if (r == -EADDRINUSE)
			address_in_use(portal, err);
		else
			err_set(err, r, "cannot listen on %s: %s", config->text, strerror(-r));
		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

/* Port 0 was asked for: which one is it? */
static void learn_port(struct cfg_portal *config, int fd)
{
	union any_address address = {0};
	socklen_t size = sizeof address;

	if (config->port != 0 || getsockname(fd, &address.any, &size) < 0)
		return;
	config->port =
	    ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
	snprintf(config->text, sizeof config->text, strchr(config->host, ':') ? "[%s]:%u" : "%s:%u",
		 config->host, config->port);
}

int iscsi_listener_open(struct iscsi_portal *portal, struct err *err)
{
	struct iscsi_listener *listener = calloc(1, sizeof *listener);
	int fd = -1, r;

	if (!listener)
		return err_set(err, -ENOMEM, "cannot listen on %s: out of memory",
			       portal->config.address.text);
	r = listen_on(portal, &fd, err);
	if (r < 0) {
		free(listener);
		return r;
	}
	listener->portal = portal;
	loop_timer_init(&listener->retry, retry_accept, listener);
	listener->watch = (struct loop_watch){.fd = fd, .fn = accept_ready, .arg = listener};
	r = loop_watch_add(portal->server->loop, &listener->watch, EPOLLIN);
	if (r < 0) {
		close(fd);
		free(listener);
		return err_set(err, r, "cannot listen on %s: the loop takes no descriptor",
			       portal->config.address.text);
	}
	learn_port(&portal->config.address, fd);
	portal->listener = listener;
	if (portal->silent)
		iscsi_listener_silence(portal, true);
	return 0;
}

void iscsi_listener_close(struct iscsi_portal *portal)
{
	struct iscsi_listener *listener = portal->listener;
	struct loop *loop = portal->server->loop;

	if (!listener)
		return;
	portal->listener = NULL;
	loop_watch_del(loop, &listener->watch);
	loop_timer_cancel(loop, &listener->retry);
	close(listener->watch.fd);
	free(listener);
}

/* Connections that the kernel has made and nobody has taken: the one that made them is dead. */
static void reset_waiting(const struct iscsi_listener *listener)
{
	const struct linger hard = {.l_onoff = 1, .l_linger = 0};
	int fd;

	while ((fd = accept4(listener->watch.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
		close(fd);
	}
}

void iscsi_listener_silence(struct iscsi_portal *portal, bool silent)
{
	struct iscsi_listener *listener = portal->listener;
	struct loop *loop = portal->server->loop;

	if (!listener)
		return;
	loop_timer_cancel(loop, &listener->retry);
	if (!silent)
		reset_waiting(listener);
	iscsi_socket_deafen(listener->watch.fd, silent);
	loop_watch_set(loop, &listener->watch, silent ? 0 : EPOLLIN);
}
