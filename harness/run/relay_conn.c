/* SPDX-License-Identifier: MIT
 *
 * One relayed connection: two sockets, a flow each way, and how the end of one side reaches the
 * other.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/bytes.h"
#include "harness/run/relay_impl.h"

static struct relay_line *line_of(const struct relay_conn *conn)
{
	return conn->port->line;
}

static struct loop *loop_of(const struct relay_conn *conn)
{
	return line_of(conn)->relay->loop;
}

static void count_up(atomic_uint_fast64_t *counter, uint64_t by)
{
	atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

/* ---- ends ---- */

static void close_side(struct relay_conn *conn, enum relay_side side, bool reset)
{
	static const struct linger abort_now = {.l_onoff = 1, .l_linger = 0};
	struct loop_watch *watch = &conn->watch[side];

	if (watch->fd < 0)
		return;
	loop_watch_del(loop_of(conn), watch);
	if (reset)
		(void)setsockopt(watch->fd, SOL_SOCKET, SO_LINGER, &abort_now, sizeof abort_now);
	close(watch->fd);
	watch->fd = -1;
}

static void finish(struct relay_conn *conn)
{
	struct relay *relay = line_of(conn)->relay;

	if (conn->dead)
		return;
	close_side(conn, RELAY_CLIENT, false);
	close_side(conn, RELAY_SERVER, false);
	loop_timer_cancel(relay->loop, &conn->timer);
	conn->dead = true;
	LIST_REMOVE(conn, entry);
	SLIST_INSERT_HEAD(&relay->dead, conn, dead_entry);
	loop_task_queue(relay->loop, &relay->bury);
}

void relay_conn_reset(struct relay_conn *conn)
{
	struct relay_line *line = line_of(conn);

	if (conn->dead)
		return;
	count_up(&line->counters.resets, 1);
	count_up(&line->counters.bytes_lost,
		 relay_flow_held(&conn->flow[0]) + relay_flow_held(&conn->flow[1]));
	close_side(conn, RELAY_CLIENT, true);
	close_side(conn, RELAY_SERVER, true);
	finish(conn);
}

void relay_conn_bury(void *arg)
{
	struct relay *relay = arg;
	struct relay_conn *conn;

	while ((conn = SLIST_FIRST(&relay->dead))) {
		SLIST_REMOVE_HEAD(&relay->dead, dead_entry);
		relay_flow_done(&conn->flow[0]);
		relay_flow_done(&conn->flow[1]);
		free(conn);
		relay->conn_count--;
	}
}

/* SIDE has ended.  A reset makes its kernel forget what it had sent and could not deliver. */
static void side_ended(struct relay_conn *conn, enum relay_side side, enum relay_end how)
{
	struct relay_line *line = line_of(conn);
	struct relay_flow *flow = &conn->flow[side];

	if (conn->ended[side] == RELAY_OPEN || how == RELAY_RST)
		conn->ended[side] = how;
	if (how == RELAY_RST && line->holes) {
		count_up(&line->counters.bytes_lost, relay_flow_held(flow));
		relay_flow_drop(flow);
	} else if (how == RELAY_RST && relay_flow_held(flow)) {
		/* It comes after what is on its way, which a reset of ours would undo. */
		conn->ended[side] = RELAY_FIN;
	}
	if (how == RELAY_RST)
		close_side(conn, side, false);
}

/* ---- bytes ---- */

static void take(struct relay_conn *conn, enum relay_side side)
{
	struct relay_line *line = line_of(conn);
	struct relay *relay = line->relay;
	struct relay_flow *flow = &conn->flow[side];
	uint64_t stalls = flow->stalls, corrupted = flow->corrupted;
	struct relay_weather weather = line->weather;
	uint8_t *to;
	size_t room;
	ssize_t n;

	/* Only what the target says is damaged. */
	if (side == RELAY_CLIENT || !conn->digests.header)
		weather.corrupt = 0;
	while (conn->watch[side].fd >= 0 && conn->ended[side] == RELAY_OPEN &&
	       (room = relay_flow_room(flow, &to)) > 0) {
		n = recv(conn->watch[side].fd, to, room, MSG_DONTWAIT);
		if (n > 0 && line->half_open) {
			count_up(&line->counters.bytes_lost, (uint64_t)n);
		} else if (n > 0) {
			relay_flow_took(flow, (size_t)n, loop_now_ns(relay->loop), &weather,
					&conn->digests, &relay->rng);
		} else if (n == 0) {
			side_ended(conn, side, RELAY_FIN);
		} else if (errno == EAGAIN) {
			break;
		} else if (errno != EINTR) {
			side_ended(conn, side, RELAY_RST);
		}
	}
	if (flow->corrupted != corrupted)
		line->weather.corrupt = weather.corrupt;
	count_up(&line->counters.stalls, flow->stalls - stalls);
	count_up(&line->counters.corrupted, flow->corrupted - corrupted);
}

/* Sends on what may go; false: the other side is gone. */
static bool give(struct relay_conn *conn, enum relay_side from, uint64_t *ret_due_ns)
{
	struct relay_flow *flow = &conn->flow[from];
	struct loop_watch *to = &conn->watch[!from];
	const uint8_t *bytes;
	size_t size;

	*ret_due_ns = 0;
	while ((size = relay_flow_ready(flow, loop_now_ns(loop_of(conn)), &bytes, ret_due_ns)) >
	       0) {
		ssize_t n = send(to->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0)
			return false;
		relay_flow_sent(flow, (size_t)n);
	}
	return true;
}

/* The end of FROM reaches the other side when all before it has. */
static void tell_end(struct relay_conn *conn, enum relay_side from)
{
	struct loop_watch *to = &conn->watch[!from];

	if (conn->ended[from] == RELAY_OPEN || conn->told[from] ||
	    relay_flow_held(&conn->flow[from]))
		return;
	conn->told[from] = true;
	if (conn->ended[from] == RELAY_RST)
		close_side(conn, !from, true);
	else if (to->fd >= 0)
		(void)shutdown(to->fd, SHUT_WR);
}

static void watch_side(struct relay_conn *conn, enum relay_side side)
{
	struct loop_watch *watch = &conn->watch[side];
	const uint8_t *bytes;
	uint64_t due_ns;
	uint8_t *to;
	uint32_t events = 0;

	if (watch->fd < 0)
		return;
	if (conn->ended[side] == RELAY_OPEN && relay_flow_room(&conn->flow[side], &to) > 0)
		events |= EPOLLIN;
	if ((side == RELAY_SERVER && conn->connecting) ||
	    (!relay_line_is_blocked(line_of(conn)) &&
	     relay_flow_ready(&conn->flow[!side], loop_now_ns(loop_of(conn)), &bytes, &due_ns) > 0))
		events |= EPOLLOUT;
	if (events != watch->events)
		loop_watch_set(loop_of(conn), watch, events);
}

static bool is_over(const struct relay_conn *conn)
{
	if (conn->watch[RELAY_CLIENT].fd < 0 && conn->watch[RELAY_SERVER].fd < 0)
		return true;
	return conn->told[RELAY_CLIENT] && conn->told[RELAY_SERVER];
}

static int dial(struct relay_conn *conn);

static void pump(struct relay_conn *conn)
{
	struct relay_line *line = line_of(conn);
	uint64_t due_ns[2] = {0, 0}, next_ns;

	if (relay_line_is_blocked(line))
		return;
	if (!conn->dialled && (conn->ended[RELAY_CLIENT] != RELAY_OPEN || dial(conn) < 0)) {
		relay_conn_reset(
		    conn); /* also one that gave up before the portal ever heard of it */
		return;
	}
	if (conn->connecting)
		return;
	for (unsigned from = RELAY_CLIENT; from <= RELAY_SERVER; from++) {
		if (conn->watch[!from].fd >= 0 && !give(conn, from, &due_ns[from]))
			side_ended(conn, !from, RELAY_RST);
		if (conn->watch[!from].fd < 0)
			relay_flow_drop(&conn->flow[from]);
		tell_end(conn, from);
	}
	next_ns = due_ns[0] && due_ns[1] ? MIN_OF(due_ns[0], due_ns[1]) : due_ns[0] | due_ns[1];
	if (next_ns)
		loop_timer_set(line->relay->loop, &conn->timer, next_ns);
}

void relay_conn_pump(struct relay_conn *conn)
{
	if (conn->dead)
		return;
	pump(conn);
	if (conn->dead)
		return;
	if (is_over(conn)) {
		finish(conn);
		return;
	}
	watch_side(conn, RELAY_CLIENT);
	watch_side(conn, RELAY_SERVER);
}

/* ---- events ---- */

static void timer_due(void *arg)
{
	relay_conn_pump(arg);
}

static void side_ready(struct relay_conn *conn, enum relay_side side, uint32_t ready)
{
	if (conn->dead)
		return;
	if (side == RELAY_SERVER && conn->connecting && ready & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
		int error = 0;
		socklen_t size = sizeof error;

		(void)getsockopt(conn->watch[side].fd, SOL_SOCKET, SO_ERROR, &error, &size);
		if (error) {
			count_up(&line_of(conn)->counters.refused, 1);
			relay_conn_reset(conn);
			return;
		}
		conn->connecting = false;
	}
	if (ready & (EPOLLIN | EPOLLERR | EPOLLHUP))
		take(conn, side);
	/* An end that is not read is an end all the same. */
	if (ready & EPOLLERR && conn->watch[side].fd >= 0)
		side_ended(conn, side, RELAY_RST);
	else if (ready & EPOLLHUP && conn->watch[side].fd >= 0 && conn->ended[side] != RELAY_OPEN)
		close_side(conn, side, false);
	relay_conn_pump(conn);
}

static void client_ready(void *arg, uint32_t ready)
{
	side_ready(arg, RELAY_CLIENT, ready);
}

static void server_ready(void *arg, uint32_t ready)
{
	side_ready(arg, RELAY_SERVER, ready);
}

static void no_delay(int fd)
{
	static const int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static int dial(struct relay_conn *conn)
{
	struct relay_port *port = conn->port;
	struct loop_watch *watch = &conn->watch[RELAY_SERVER];
	int fd = socket(port->to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	conn->dialled = true;
	if (fd < 0)
		return -errno;
	no_delay(fd);
	if (connect(fd, (const struct sockaddr *)(const void *)&port->to, port->to_bytes) < 0 &&
	    errno != EINPROGRESS) {
		r = -errno;
		close(fd);
		return r;
	}
	*watch = (struct loop_watch){.fd = fd, .fn = server_ready, .arg = conn};
	conn->connecting = true;
	r = loop_watch_add(loop_of(conn), watch, EPOLLIN | EPOLLOUT);
	if (r < 0) {
		close(fd);
		watch->fd = -1;
	}
	return r;
}

void relay_conn_accept(struct relay_port *port, int fd)
{
	struct relay *relay = port->line->relay;
	struct relay_conn *conn =
	    relay->conn_count < RELAY_CONNECTIONS_MAX ? calloc(1, sizeof *conn) : NULL;

	if (!conn || relay_flow_init(&conn->flow[0]) < 0 || relay_flow_init(&conn->flow[1]) < 0) {
		count_up(&port->line->counters.refused, 1);
		if (conn)
			relay_flow_done(&conn->flow[0]);
		free(conn);
		close(fd);
		return;
	}
	relay->conn_count++;
	count_up(&port->line->counters.connections, 1);
	no_delay(fd);
	conn->port = port;
	conn->forgotten = port->line->half_open > 0;
	conn->watch[RELAY_CLIENT] = (struct loop_watch){.fd = fd, .fn = client_ready, .arg = conn};
	conn->watch[RELAY_SERVER].fd = -1;
	loop_timer_init(&conn->timer, timer_due, conn);
	LIST_INSERT_HEAD(&port->conns, conn, entry);
	if (loop_watch_add(relay->loop, &conn->watch[RELAY_CLIENT], EPOLLIN) < 0)
		relay_conn_reset(conn);
	else
		relay_conn_pump(conn);
}
