/* SPDX-License-Identifier: MIT
 *
 * The relay's thread, its messages, its lines and their ports.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/bytes.h"
#include "harness/run/relay_impl.h"

enum { BACKLOG = 64 };

enum message_kind { MESSAGE_QUIT, MESSAGE_PORT, MESSAGE_FAULT };

/* Small enough for one atomic write to a pipe. */
struct message {
	enum message_kind kind;
	struct relay_line *line;
	struct relay_port *port;
	struct relay_fault fault;
	bool begin;
};
_Static_assert(sizeof(struct message) <= PIPE_BUF, "messages must not mix");

static int send_message(struct relay *relay, const struct message *message)
{
	ssize_t n;

	do
		n = write(relay->pipe[1], message, sizeof *message);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof *message ? 0 : n < 0 ? -errno : -EIO;
}

/* ---- the relay's thread ---- */

static void each_conn(struct relay_line *line, void (*fn)(struct relay_conn *conn))
{
	for (unsigned i = 0; i < line->known_count; i++) {
		struct relay_conn *conn = LIST_FIRST(&line->known[i]->conns);

		while (conn) {
			struct relay_conn *next = LIST_NEXT(conn, entry);

			fn(conn);
			conn = next;
		}
	}
}

static void forget(struct relay_conn *conn)
{
	conn->forgotten = true;
}

static void reset_forgotten(struct relay_conn *conn)
{
	if (conn->forgotten)
		relay_conn_reset(conn);
}

static void unstick(struct relay_conn *conn)
{
	relay_flow_unstick(&conn->flow[0]);
	relay_flow_unstick(&conn->flow[1]);
}

static void port_ready(void *arg, uint32_t ready)
{
	struct relay_port *port = arg;
	int fd = accept4(port->watch.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		relay_conn_accept(port, fd);
}

/* A bound socket that does not listen answers with a reset, and keeps its port. */
static void set_listening(struct relay_port *port, bool listening)
{
	struct loop *loop = port->line->relay->loop;

	if (port->listening == listening)
		return;
	port->listening = listening;
	if (!listening) {
		loop_watch_del(loop, &port->watch);
		(void)shutdown(port->watch.fd, SHUT_RDWR);
	} else if (listen(port->watch.fd, BACKLOG) == 0) {
		loop_watch_add(loop, &port->watch, EPOLLIN);
	}
}

static void add_port(struct relay_port *port)
{
	struct relay_line *line = port->line;

	line->known[line->known_count++] = port;
	port->listening = true;
	loop_watch_add(line->relay->loop, &port->watch, EPOLLIN);
	set_listening(port, !line->refusing);
}

static void set_refusing(struct relay_line *line, bool begin)
{
	line->refusing += begin ? 1 : -1U;
	for (unsigned i = 0; i < line->known_count; i++)
		set_listening(line->known[i], !line->refusing);
	if (begin)
		each_conn(line, relay_conn_reset);
}

static void set_half_open(struct relay_line *line, bool begin)
{
	line->half_open += begin ? 1 : -1U;
	if (begin)
		each_conn(line, forget);
	else if (!line->half_open)
		each_conn(line, reset_forgotten);
}

static void set_black_hole(struct relay_line *line, const struct relay_fault *fault, bool begin)
{
	uint64_t *above = &line->weather.above_bytes;

	if (!fault->above_bytes) {
		line->holes += begin ? 1 : -1U;
		return;
	}
	line->narrow += begin ? 1 : -1U;
	if (begin)
		*above = *above ? MIN_OF(*above, fault->above_bytes) : fault->above_bytes;
	if (line->narrow)
		return;
	*above = 0;
	each_conn(line, unstick);
}

static void set_slow(struct relay_line *line, const struct relay_fault *fault, bool begin)
{
	struct relay_weather *weather = &line->weather;

	weather->delay_ns += begin ? fault->delay_ns : -fault->delay_ns;
	weather->jitter_ns += begin ? fault->jitter_ns : -fault->jitter_ns;
	weather->loss += begin ? fault->loss : -fault->loss;
	if (weather->loss < 1e-12)
		weather->loss = 0; /* what rounding leaves */
}

static void set_fault(struct relay_line *line, const struct relay_fault *fault, bool begin)
{
	switch (fault->kind) {
	case RELAY_RESET:
		each_conn(line, relay_conn_reset);
		break;
	case RELAY_REFUSE:
		set_refusing(line, begin);
		break;
	case RELAY_HALF_OPEN:
		set_half_open(line, begin);
		break;
	case RELAY_BLACK_HOLE:
		set_black_hole(line, fault, begin);
		break;
	case RELAY_HOLD:
		line->holding += begin ? 1 : -1U;
		break;
	case RELAY_SLOW:
		set_slow(line, fault, begin);
		break;
	case RELAY_CORRUPT:
		line->weather.corrupt += fault->count;
		break;
	case RELAY_FAULT_KINDS:
		break;
	}
	each_conn(line, relay_conn_pump);
}

static void message_ready(void *arg, uint32_t ready)
{
	struct relay *relay = arg;
	struct message message;

	if (read(relay->pipe[0], &message, sizeof message) != (ssize_t)sizeof message)
		return;
	if (message.kind == MESSAGE_QUIT)
		loop_stop(relay->loop);
	else if (message.kind == MESSAGE_PORT)
		add_port(message.port);
	else
		set_fault(message.line, &message.fault, message.begin);
}

static void *run(void *arg)
{
	struct relay *relay = arg;

	(void)loop_run(relay->loop);
	for (unsigned i = 0; i < relay->line_count; i++)
		each_conn(relay->lines[i], relay_conn_reset);
	relay_conn_bury(relay);
	return NULL;
}

/* ---- the owner's thread ---- */

static int start_thread(struct relay *relay)
{
	sigset_t all, before;
	int r;

	/* Signals are the owner's. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	r = pthread_create(&relay->thread, NULL, run, relay);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	relay->running = r == 0;
	return -r;
}

int relay_new(uint64_t seed, struct relay **ret_relay, struct err *err)
{
	struct relay *relay = calloc(1, sizeof *relay);
	int r;

	if (!relay)
		return err_set(err, -ENOMEM, "no memory for the relay");
	relay->pipe[0] = relay->pipe[1] = -1;
	SLIST_INIT(&relay->dead);
	rng_init(&relay->rng, seed, rng_stream_of("relay"));
	loop_task_init(&relay->bury, relay_conn_bury, relay);
	r = loop_new_real(&relay->loop);
	if (r == 0 && pipe2(relay->pipe, O_CLOEXEC) < 0)
		r = -errno;
	relay->watch = (struct loop_watch){.fd = relay->pipe[0], .fn = message_ready, .arg = relay};
	if (r == 0)
		r = loop_watch_add(relay->loop, &relay->watch, EPOLLIN);
	if (r == 0)
		r = start_thread(relay);
	if (r < 0) {
		relay_free(relay);
		return err_set(err, r, "cannot start the relay: %s", strerror(-r));
	}
	*ret_relay = relay;
	return 0;
}

static void free_line(struct relay_line *line)
{
	for (unsigned i = 0; i < line->port_count; i++) {
		close(line->ports[i]->watch.fd);
		free(line->ports[i]);
	}
	free(line);
}

struct relay *relay_free(struct relay *relay)
{
	static const struct message quit = {.kind = MESSAGE_QUIT};

	if (!relay)
		return NULL;
	if (relay->running) {
		int r = send_message(relay, &quit);

		assert(r == 0); /* a pipe that we hold both ends of */
		pthread_join(relay->thread, NULL);
	}
	for (unsigned i = 0; i < relay->line_count; i++)
		free_line(relay->lines[i]);
	loop_free(relay->loop);
	for (int i = 0; i < 2; i++)
		if (relay->pipe[i] >= 0)
			close(relay->pipe[i]);
	free(relay);
	return NULL;
}

int relay_add_line(struct relay *relay, struct relay_line **ret_line)
{
	struct relay_line *line;

	if (relay->line_count == RELAY_LINES_MAX)
		return -E2BIG;
	line = calloc(1, sizeof *line);
	if (!line)
		return -ENOMEM;
	line->relay = relay;
	relay->lines[relay->line_count++] = line;
	*ret_line = line;
	return 0;
}

/* "127.0.0.1:3260" or "[::1]:3260"; a target's redirection may leave out the port. */
static int parse_portal(const char *portal, struct sockaddr_storage *to, socklen_t *ret_bytes)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)to;
	struct sockaddr_in *four = (struct sockaddr_in *)(void *)to;
	const char *end = *portal == '[' ? strchr(portal, ']') : strchr(portal, ':');
	size_t length = end ? (size_t)(end - portal) + (*end == ']') : strlen(portal);
	unsigned long number = portal[length] ? strtoul(portal + length + 1, NULL, 10) : 3260;
	char host[64];

	if (number == 0 || number > UINT16_MAX || length < 2 || length >= sizeof host)
		return -EINVAL;
	memset(to, 0, sizeof *to);
	memcpy(host, portal, length);
	host[length] = '\0';
	if (host[0] == '[' && host[length - 1] == ']') {
		host[length - 1] = '\0';
		six->sin6_family = AF_INET6;
		six->sin6_port = htons((uint16_t)number);
		*ret_bytes = sizeof *six;
		return inet_pton(AF_INET6, host + 1, &six->sin6_addr) == 1 ? 0 : -EINVAL;
	}
	four->sin_family = AF_INET;
	four->sin_port = htons((uint16_t)number);
	*ret_bytes = sizeof *four;
	return inet_pton(AF_INET, host, &four->sin_addr) == 1 ? 0 : -EINVAL;
}

/* A socket bound to the loopback port of *AT, 0: a free one, which AT then has. */
static int bound_socket(struct sockaddr_in *at)
{
	static const int on = 1;
	socklen_t size = sizeof *at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, (const struct sockaddr *)(const void *)at, size) == 0 &&
	    getsockname(fd, (struct sockaddr *)(void *)at, &size) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

/* Listens on a free loopback port from now on; connections wait in the kernel until the relay has
 * heard of it.  The kernel takes a port that it has chosen itself away from a socket that stops
 * listening: a second socket asks for it by number. */
static int open_port(struct relay_port *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int chosen, r = parse_portal(port->portal, &port->to, &port->to_bytes);

	if (r < 0)
		return r;
	chosen = bound_socket(&at);
	if (chosen < 0)
		return chosen;
	port->watch.fd = bound_socket(&at);
	r = port->watch.fd < 0 ? port->watch.fd : 0;
	close(chosen);
	if (r == 0 && listen(port->watch.fd, BACKLOG) < 0) {
		r = -errno;
		close(port->watch.fd);
	}
	snprintf(port->address, sizeof port->address, "127.0.0.1:%u", ntohs(at.sin_port));
	return r;
}

static struct relay_port *new_port(struct relay_line *line, const char *portal)
{
	struct message message = {.kind = MESSAGE_PORT, .line = line};
	struct relay_port *port;

	if (line->port_count == RELAY_PORTS_MAX)
		return NULL;
	port = calloc(1, sizeof *port);
	if (!port)
		return NULL;
	port->line = line;
	port->watch = (struct loop_watch){.fn = port_ready, .arg = port};
	LIST_INIT(&port->conns);
	snprintf(port->portal, sizeof port->portal, "%s", portal);
	if (open_port(port) < 0) {
		free(port);
		return NULL;
	}
	line->ports[line->port_count++] = port;
	message.port = port;
	if (send_message(line->relay, &message) < 0)
		return NULL;
	return port;
}

const char *relay_dial(void *arg, const char *portal)
{
	struct relay_line *line = arg;
	struct relay_port *port = NULL;

	for (unsigned i = 0; i < line->port_count && !port; i++)
		if (strcmp(line->ports[i]->portal, portal) == 0)
			port = line->ports[i];
	if (!port)
		port = new_port(line, portal);
	return port ? port->address : portal;
}

int relay_set(struct relay_line *line, const struct relay_fault *fault, bool begin)
{
	struct message message = {
	    .kind = MESSAGE_FAULT, .line = line, .fault = *fault, .begin = begin};

	if (!begin && (fault->kind == RELAY_RESET || fault->kind == RELAY_CORRUPT))
		return 0;
	return send_message(line->relay, &message);
}

void relay_line_stats(const struct relay_line *line, struct relay_stats *ret_stats)
{
	const struct relay_counters *from = &line->counters;

	*ret_stats = (struct relay_stats){
	    .connections = from->connections,
	    .resets = from->resets,
	    .refused = from->refused,
	    .stalls = from->stalls,
	    .corrupted = from->corrupted,
	    .bytes_lost = from->bytes_lost,
	};
}
