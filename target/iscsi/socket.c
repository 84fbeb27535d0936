/* SPDX-License-Identifier: MIT
 *
 * The shell of a connection: a TCP socket on the loop.
 *
 * Input is read with one readv a turn (more only while the room given is filled); output that the
 * turn has gathered is written by a task at its end, directly, and EPOLLOUT is only asked for
 * when the socket takes no more.  After the last answer the sending side is shut down and input
 * thrown away until the peer closes: closing with unread input would reset the connection and
 * could cost the peer that answer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/log.h"
#include "target/iscsi/conn.h"

enum { READS_PER_TURN = 4, DISCARD_BYTES = 16384, USER_TIMEOUT_MS = 30000 };

struct iscsi_socket {
	struct loop *loop;
	struct iscsi_conn *conn; /* NULL: closed */
	struct loop_watch watch;
	struct loop_task task;
	uint32_t read_most, write_most; /* bytes a call; 0: any.  Set by knobs of tests */
	unsigned busy; /* functions of this file on the stack: the last one out frees */
	bool blocked;  /* the socket takes no more */
	bool shut;     /* our side is done */
	bool reset;
	bool silent; /* nothing goes in or out any more */
};

static void socket_leave(struct iscsi_socket *socket)
{
	if (--socket->busy == 0 && !socket->conn)
		free(socket);
}

static void shell_wake(void *arg)
{
	struct iscsi_socket *socket = arg;

	if (!socket->silent)
		loop_task_queue(socket->loop, &socket->task);
}

static void shell_reset(void *arg)
{
	struct iscsi_socket *socket = arg;

	socket->reset = true;
}

static void shell_closed(void *arg)
{
	struct iscsi_socket *socket = arg;

	socket->busy++;
	socket->conn = NULL;
	loop_task_cancel(socket->loop, &socket->task);
	loop_watch_del(socket->loop, &socket->watch);
	if (socket->reset || socket->silent) {
		struct linger hard = {.l_onoff = 1, .l_linger = 0};

		setsockopt(socket->watch.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
	}
	close(socket->watch.fd);
	socket_leave(socket);
}

void iscsi_socket_deafen(int fd, bool deaf)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog filter = {.len = 1, .filter = &drop};
	int none = 0;
	int r = deaf ? setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter)
		     : setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof none);

	/* Then the kernel still acknowledges what nobody reads. */
	if (r < 0)
		log_debug("no socket filter: %s", strerror(errno));
}

static void shell_silence(void *arg)
{
	struct iscsi_socket *socket = arg;
	unsigned forever_ms = 0;

	socket->silent = true;
	/* Or the kernel would give up on what the peer no longer acknowledges. */
	setsockopt(socket->watch.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &forever_ms, sizeof forever_ms);
	iscsi_socket_deafen(socket->watch.fd, true);
	loop_task_cancel(socket->loop, &socket->task);
	loop_watch_set(socket->loop, &socket->watch, 0);
}

static const struct iscsi_shell_ops shell_ops = {shell_wake, shell_closed, shell_reset,
						 shell_silence};

/* Cuts a vector to its first MOST bytes; what is left of its N entries. */
static unsigned iov_cut(struct iovec *iov, unsigned n, size_t most)
{
	for (unsigned i = 0; i < n; i++) {
		if (iov[i].iov_len >= most) {
			iov[i].iov_len = most;
			return i + 1;
		}
		most -= iov[i].iov_len;
	}
	return n;
}

static int socket_error(int fd)
{
	int number = 0;
	socklen_t size = sizeof number;

	(void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &size);
	return number;
}

/* NUMBER: errno, 0 when the peer has closed in order. */
static void lost(struct iscsi_socket *socket, int number)
{
	struct iscsi_conn *conn = socket->conn;

	if (!conn->end_why)
		conn->end_why = number == 0	       ? "closed by the initiator"
				: number == ECONNRESET ? "reset by the initiator"
				: number == EPIPE      ? "reset by the initiator"
				: number == ETIMEDOUT  ? "TCP timed out"
						       : "TCP failed";
	iscsi_conn_kill(conn);
}

static void discard_input(struct iscsi_socket *socket)
{
	static __thread uint8_t nowhere[DISCARD_BYTES];
	ssize_t n = read(socket->watch.fd, nowhere, sizeof nowhere);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		iscsi_conn_kill(socket->conn);
}

static void read_input(struct iscsi_socket *socket)
{
	for (int i = 0; i < READS_PER_TURN && socket->conn; i++) {
		struct iovec iov[2];
		unsigned n = iscsi_conn_rx_iov(socket->conn, iov);
		ssize_t got;

		if (n == 0)
			break;
		if (socket->read_most > 0)
			n = iov_cut(iov, n, socket->read_most);
		got = readv(socket->watch.fd, iov, (int)n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			break;
		if (got <= 0) {
			lost(socket, got < 0 ? errno : 0);
			break;
		}
		iscsi_conn_received(socket->conn, (size_t)got);
		if ((uint64_t)got < iov_bytes(iov, n))
			break;
	}
	if (socket->conn)
		loop_task_queue(socket->loop, &socket->task);
}

/* Writes until there is nothing left or the socket is full. */
static void write_output(struct iscsi_socket *socket)
{
	struct iovec iov[TX_IOV_MAX];
	unsigned n;

	while (!socket->blocked && (n = iscsi_conn_tx_iov(socket->conn, iov, TX_IOV_MAX)) > 0) {
		struct msghdr message = {.msg_iov = iov, .msg_iovlen = n};
		ssize_t sent;

		if (socket->write_most > 0)
			message.msg_iovlen = n = iov_cut(iov, n, socket->write_most);
		sent = sendmsg(socket->watch.fd, &message, MSG_NOSIGNAL);
		if (sent >= 0) {
			socket->blocked = (uint64_t)sent < iov_bytes(iov, n);
			iscsi_conn_sent(socket->conn, (size_t)sent);
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN) {
			lost(socket, errno);
			return;
		}
		socket->blocked = true;
	}
}

static void update_interest(struct iscsi_socket *socket)
{
	uint32_t events = 0;

	if (socket->shut || !iscsi_conn_paused(socket->conn))
		events |= EPOLLIN;
	if (socket->blocked)
		events |= EPOLLOUT;
	if (events != socket->watch.events)
		loop_watch_set(socket->loop, &socket->watch, events);
}

/* The end of a turn: what it has gathered goes out, and what had to wait for that goes on. */
static void socket_flush(void *arg)
{
	struct iscsi_socket *socket = arg;

	socket->busy++;
	for (;;) {
		write_output(socket);
		if (!socket->conn || socket->blocked || iscsi_conn_paused(socket->conn) ||
		    !iscsi_conn_has_input(socket->conn))
			break;
		iscsi_conn_received(socket->conn, 0);
		if (!socket->conn || iscsi_tx_empty(&socket->conn->tx))
			break;
	}
	if (socket->conn && !socket->shut && iscsi_conn_finished(socket->conn)) {
		socket->shut = true;
		shutdown(socket->watch.fd, SHUT_WR);
	}
	if (socket->conn)
		update_interest(socket);
	socket_leave(socket);
}

static void socket_ready(void *arg, uint32_t ready)
{
	struct iscsi_socket *socket = arg;

	socket->busy++;
	if (socket->silent)
		ready &= EPOLLERR | EPOLLHUP;
	if (ready & EPOLLOUT) {
		socket->blocked = false;
		loop_task_queue(socket->loop, &socket->task);
	}
	if (ready & EPOLLERR)
		lost(socket, socket_error(socket->watch.fd));
	else if (socket->shut)
		discard_input(socket);
	else if (ready & EPOLLIN)
		read_input(socket);
	else if (ready & EPOLLHUP)
		lost(socket, 0);
	socket_leave(socket);
}

/* The address of our end of the connection, or of the peer's, as text. */
static void host_of(int fd, bool peer, char *out, socklen_t size)
{
	struct sockaddr_storage address = {0};
	socklen_t length = sizeof address;
	int r = peer ? getpeername(fd, (struct sockaddr *)&address, &length)
		     : getsockname(fd, (struct sockaddr *)&address, &length);

	out[0] = '\0';
	if (r < 0)
		return;
	if (address.ss_family == AF_INET) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address;

		inet_ntop(AF_INET, &v4->sin_addr, out, size);
	} else if (address.ss_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address;

		inet_ntop(AF_INET6, &v6->sin6_addr, out, size);
	}
}

int iscsi_socket_open(struct iscsi_portal *portal, int fd)
{
	struct iscsi_socket *sock = calloc(1, sizeof *sock);
	unsigned timeout_ms = USER_TIMEOUT_MS;
	char host[INET6_ADDRSTRLEN], peer[INET6_ADDRSTRLEN];
	int one = 1, r;

	if (!sock)
		return -ENOMEM;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
	host_of(fd, false, host, sizeof host);
	host_of(fd, true, peer, sizeof peer);
	sock->loop = portal->server->loop;
	sock->read_most = knobs.split_reads_bytes;
	sock->write_most = knobs.small_writes_bytes;
	loop_task_init(&sock->task, socket_flush, sock);
	sock->watch = (struct loop_watch){.fd = fd, .fn = socket_ready, .arg = sock};
	r = loop_watch_add(sock->loop, &sock->watch, EPOLLIN);
	if (r < 0) {
		free(sock);
		return r;
	}
	sock->conn = iscsi_conn_new(portal, host, &shell_ops, sock);
	if (!sock->conn) {
		loop_watch_del(sock->loop, &sock->watch);
		free(sock);
		return -ENOMEM;
	}
	iscsi_conn_set_peer(sock->conn, peer);
	return 0;
}
