/* SPDX-License-Identifier: MIT
 *
 * The relay on real sockets: a client, the relay, and a server that the test plays itself.  Every
 * wait has a deadline; what must not come is proved by what comes after it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "harness/run/relay.h"

enum { DEADLINE_MS = 10000, QUIET_MS = 50 };

struct rig {
	struct relay *relay;
	struct relay_line *line;
	int listener, client, server;
	char portal[64];
};

static int loopback_listener(char *portal, size_t size)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)(void *)&at, sizeof at) < 0 ||
	    listen(fd, 8) < 0 || getsockname(fd, (struct sockaddr *)(void *)&at, &bytes) < 0)
		return -1;
	snprintf(portal, size, "127.0.0.1:%u", ntohs(at.sin_port));
	return fd;
}

static int set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof *rig);
	struct err err = {0};

	if (!rig || relay_new(1, &rig->relay, &err) < 0 ||
	    relay_add_line(rig->relay, &rig->line) < 0)
		return -1;
	rig->listener = loopback_listener(rig->portal, sizeof rig->portal);
	rig->client = rig->server = -1;
	*state = rig;
	return rig->listener < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	relay_free(rig->relay);
	close(rig->listener);
	if (rig->client >= 0)
		close(rig->client);
	if (rig->server >= 0)
		close(rig->server);
	free(rig);
	return 0;
}

static bool readable(int fd, int ms)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	return poll(&poll_fd, 1, ms) == 1;
}

/* 0 or the errno of connect. */
static int dial(struct rig *rig)
{
	struct sockaddr_in to = {.sin_family = AF_INET};
	const char *address = relay_dial(rig->line, rig->portal);

	assert_string_not_equal(address, rig->portal);
	inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
	to.sin_port = htons((uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10));
	if (rig->client >= 0)
		close(rig->client);
	rig->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(rig->client >= 0);
	return connect(rig->client, (struct sockaddr *)(void *)&to, sizeof to) < 0 ? errno : 0;
}

static void accept_server(struct rig *rig)
{
	assert_true(readable(rig->listener, DEADLINE_MS));
	if (rig->server >= 0)
		close(rig->server);
	rig->server = accept4(rig->listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(rig->server >= 0);
}

static void join(struct rig *rig)
{
	assert_int_equal(dial(rig), 0);
	accept_server(rig);
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void hear(int fd, const char *text)
{
	char got[64] = "";
	size_t have = 0;

	while (have < strlen(text)) {
		ssize_t n;

		assert_true(readable(fd, DEADLINE_MS));
		n = recv(fd, got + have, strlen(text) - have, 0);
		assert_true(n > 0);
		have += (size_t)n;
	}
	assert_string_equal(got, text);
}

/* 0: end of file, else the errno; bytes are skipped. */
static int end_of(int fd)
{
	char bytes[64];

	for (;;) {
		ssize_t n;

		assert_true(readable(fd, DEADLINE_MS));
		n = recv(fd, bytes, sizeof bytes, 0);
		if (n <= 0)
			return n < 0 ? errno : 0;
	}
}

static void set(struct rig *rig, const struct relay_fault *fault, bool begin)
{
	assert_int_equal(relay_set(rig->line, fault, begin), 0);
}

/* The message of the last fault has been carried out when a newer port answers. */
static void wait_for_relay(struct rig *rig)
{
	char portal[64];
	struct relay_line *other;
	struct sockaddr_in to = {.sin_family = AF_INET};
	int listener = loopback_listener(portal, sizeof portal), fd, end;

	assert_int_equal(relay_add_line(rig->relay, &other), 0);
	inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
	to.sin_port =
	    htons((uint16_t)strtoul(strrchr(relay_dial(other, portal), ':') + 1, NULL, 10));
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)(void *)&to, sizeof to), 0);
	assert_true(readable(listener, DEADLINE_MS));
	end = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(end);
	close(fd);
	close(listener);
}

static void passes_both_ways(void **state)
{
	struct rig *rig = *state;

	join(rig);
	say(rig->client, "ping");
	hear(rig->server, "ping");
	say(rig->server, "pong");
	hear(rig->client, "pong");
	/* The same port for the same portal. */
	assert_string_equal(relay_dial(rig->line, rig->portal), relay_dial(rig->line, rig->portal));
}

static void ends_pass(void **state)
{
	struct rig *rig = *state;
	static const struct linger hard = {.l_onoff = 1, .l_linger = 0};

	join(rig);
	say(rig->client, "last words");
	shutdown(rig->client, SHUT_WR);
	hear(rig->server, "last words");
	assert_int_equal(end_of(rig->server), 0);
	say(rig->server, "answer"); /* half closed only */
	hear(rig->client, "answer");
	close(rig->server);
	rig->server = -1;
	assert_int_equal(end_of(rig->client), 0);

	join(rig);
	setsockopt(rig->server, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
	close(rig->server);
	rig->server = -1;
	assert_int_equal(end_of(rig->client), ECONNRESET);
}

static void resets(void **state)
{
	struct rig *rig = *state;
	struct relay_stats stats;

	join(rig);
	set(rig, &(struct relay_fault){.kind = RELAY_RESET}, true);
	assert_int_equal(end_of(rig->client), ECONNRESET);
	assert_int_equal(end_of(rig->server), ECONNRESET);
	join(rig);
	say(rig->client, "again");
	hear(rig->server, "again");
	relay_line_stats(rig->line, &stats);
	assert_int_equal(stats.resets, 1);
	assert_int_equal(stats.connections, 2);
}

static void refuses(void **state)
{
	struct rig *rig = *state;
	struct relay_fault down = {.kind = RELAY_REFUSE};

	join(rig);
	set(rig, &down, true);
	assert_int_equal(end_of(rig->client), ECONNRESET);
	set(rig, &down, true); /* faults overlap */
	assert_int_equal(dial(rig), ECONNREFUSED);
	set(rig, &down, false);
	wait_for_relay(rig);
	assert_int_equal(dial(rig), ECONNREFUSED);
	set(rig, &down, false);
	wait_for_relay(rig);
	join(rig);
	say(rig->client, "back");
	hear(rig->server, "back");
}

static void black_hole_delivers_later(void **state)
{
	struct rig *rig = *state;
	struct relay_fault hole = {.kind = RELAY_BLACK_HOLE};

	join(rig);
	set(rig, &hole, true);
	wait_for_relay(rig);
	say(rig->client, "lost?");
	assert_false(readable(rig->server, QUIET_MS));
	set(rig, &hole, false);
	hear(rig->server, "lost?");
}

/* What a reset connection had sent into the hole is gone; into a network that only holds it, not.
 */
static void reset_in_the_dark(void **state, enum relay_fault_kind kind, bool arrives)
{
	struct rig *rig = *state;
	struct relay_fault dark = {.kind = kind};
	static const struct linger hard = {.l_onoff = 1, .l_linger = 0};

	join(rig);
	set(rig, &dark, true);
	wait_for_relay(rig);
	say(rig->client, "late");
	/* The relay has it: its kernel buffer is what a reset would not wait for. */
	(void)readable(rig->server, QUIET_MS);
	setsockopt(rig->client, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
	close(rig->client);
	rig->client = -1;
	assert_false(readable(rig->server, QUIET_MS)); /* nor does its end get through */
	set(rig, &dark, false);
	if (arrives) {
		hear(rig->server, "late");
		assert_int_equal(end_of(rig->server), 0);
	} else {
		assert_int_equal(end_of(rig->server), ECONNRESET);
	}
}

static void black_hole_loses_what_was_reset(void **state)
{
	reset_in_the_dark(state, RELAY_BLACK_HOLE, false);
}

static void hold_delivers_what_was_reset(void **state)
{
	reset_in_the_dark(state, RELAY_HOLD, true);
}

static void half_open_accepts_and_forgets(void **state)
{
	struct rig *rig = *state;
	struct relay_fault dead = {.kind = RELAY_HALF_OPEN};
	int old;

	join(rig);
	set(rig, &dead, true);
	wait_for_relay(rig);
	say(rig->client, "hello?");
	assert_false(readable(rig->server, QUIET_MS));
	old = rig->client;
	rig->client = -1;
	assert_int_equal(dial(rig), 0);
	say(rig->client, "anybody?");
	assert_false(readable(rig->client, QUIET_MS));
	assert_false(readable(rig->listener, 0));
	set(rig, &dead, false);
	assert_int_equal(end_of(old), ECONNRESET);
	assert_int_equal(end_of(rig->client), ECONNRESET);
	assert_int_equal(end_of(rig->server), ECONNRESET);
	close(old);
	join(rig);
	say(rig->client, "new");
	hear(rig->server, "new");
}

static void slow_is_slow(void **state)
{
	struct rig *rig = *state;
	struct relay_fault slow = {.kind = RELAY_SLOW, .delay_ns = 60 * NS_PER_MS};

	join(rig);
	set(rig, &slow, true);
	wait_for_relay(rig);
	say(rig->client, "ping");
	assert_false(readable(rig->server, 30));
	hear(rig->server, "ping");
	set(rig, &slow, false);
	say(rig->server, "pong");
	hear(rig->client, "pong");
}

static void dead_portal_is_a_reset(void **state)
{
	struct rig *rig = *state;

	close(rig->listener);
	assert_int_equal(dial(rig), 0);
	assert_int_equal(end_of(rig->client), ECONNRESET);
	rig->listener = loopback_listener(rig->portal, sizeof rig->portal);
	/* What cannot be parsed is not relayed. */
	assert_string_equal(relay_dial(rig->line, "name:3260"), "name:3260");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(passes_both_ways, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(ends_pass, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(resets, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(refuses, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(black_hole_delivers_later, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(black_hole_loses_what_was_reset, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(hold_delivers_what_was_reset, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(half_open_accepts_and_forgets, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(slow_is_slow, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(dead_portal_is_a_reset, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("relay", tests, NULL, NULL);
}
