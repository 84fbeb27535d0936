/* SPDX-License-Identifier: MIT
 *
 * Portals that cannot listen: the message names the port and who holds it; portals that are silent.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/iscsi/iscsi.h"

static void test_port_in_use(void **state)
{
	struct sockaddr_in taken = {.sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct iscsi_portal_config config = {.group_tag = 1, .target_port_group = 1};
	socklen_t size = sizeof taken;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct iscsi_portal *portal = NULL;
	struct iscsi_server *server;
	struct buf_pool *pool = buf_pool_new(1 << 20);
	struct loop *loop;
	struct err err = {0};
	char pid[32];

	assert_int_equal(bind(fd, (struct sockaddr *)&taken, sizeof taken), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&taken, &size), 0);
	assert_int_equal(loop_new_real(&loop), 0);
	server = iscsi_server_new(loop, pool);
	snprintf(config.address.host, sizeof config.address.host, "127.0.0.1");
	config.address.port = ntohs(taken.sin_port);
	snprintf(config.address.text, sizeof config.address.text, "127.0.0.1:%u",
		 config.address.port);
	assert_int_equal(iscsi_server_listen(server, &config, &portal, &err), -EADDRINUSE);
	assert_null(portal);
	assert_int_equal(iscsi_server_portal_count(server), 0);
	assert_non_null(strstr(err.what, config.address.text));
	snprintf(pid, sizeof pid, "process %d ", (int)getpid());
	assert_non_null(strstr(err.what, pid));
	assert_true(err.hint[0] != '\0');
	iscsi_server_free(server);
	loop_free(loop);
	buf_pool_free(pool);
	close(fd);
}

static void test_bad_address(void **state)
{
	struct iscsi_portal_config config = {
	    .address = {.host = "localhost", .text = "localhost:1"}};
	struct buf_pool *pool = buf_pool_new(1 << 20);
	struct iscsi_portal *portal = NULL;
	struct iscsi_server *server;
	struct loop *loop;
	struct err err = {0};

	assert_int_equal(loop_new_real(&loop), 0);
	server = iscsi_server_new(loop, pool);
	assert_int_equal(iscsi_server_listen(server, &config, &portal, &err), -EINVAL);
	assert_non_null(strstr(err.what, "localhost:1"));
	iscsi_server_free(server);
	loop_free(loop);
	buf_pool_free(pool);
}

/* ---- silence ---- */

struct silent_rig {
	struct buf_pool *pool;
	struct loop *loop;
	struct iscsi_server *server;
	struct iscsi_portal *portal;
};

static void rig_open(struct silent_rig *rig)
{
	struct iscsi_portal_config config = {.group_tag = 1, .target_port_group = 1};
	struct err err = {0};

	snprintf(config.address.host, sizeof config.address.host, "127.0.0.1");
	rig->pool = buf_pool_new(1 << 20);
	assert_int_equal(loop_new_real(&rig->loop), 0);
	rig->server = iscsi_server_new(rig->loop, rig->pool);
	assert_int_equal(iscsi_server_listen(rig->server, &config, &rig->portal, &err), 0);
}

static void rig_close(struct silent_rig *rig)
{
	iscsi_server_free(rig->server);
	loop_free(rig->loop);
	buf_pool_free(rig->pool);
}

static int start_connect(const struct silent_rig *rig)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(iscsi_portal_config(rig->portal)->address.port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_true(connect(fd, (struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS);
	return fd;
}

/* What happens at FD within LIMIT_MS while the server runs; 0: nothing. */
static short events_of(struct silent_rig *rig, int fd, short wanted, int limit_ms)
{
	uint64_t until_ns = loop_now_ns(rig->loop) + (uint64_t)limit_ms * 1000000;

	do {
		struct pollfd at = {.fd = fd, .events = wanted};

		assert_true(loop_turn(rig->loop, false) >= 0);
		if (poll(&at, 1, 1) > 0)
			return at.revents;
	} while (loop_now_ns(rig->loop) < until_ns);
	return 0;
}

static uint64_t connections(const struct silent_rig *rig)
{
	return iscsi_portal_counters(rig->portal)->connections_now;
}

/* A silent portal neither answers nor resets nor accepts; when it speaks, the connections of before
 * are reset and new ones are taken. */
static void test_silent(void **state)
{
	struct silent_rig rig;
	char byte;
	int old, new;

	rig_open(&rig);
	old = start_connect(&rig);
	assert_int_equal(events_of(&rig, old, POLLOUT, 2000), POLLOUT);
	while (connections(&rig) == 0)
		assert_true(loop_turn(rig.loop, true) >= 0);

	iscsi_portal_set_silent(rig.portal, true);
	assert_true(iscsi_portal_is_silent(rig.portal));
	new = start_connect(&rig);
	assert_int_equal(events_of(&rig, new, POLLOUT, 60), 0);
	/* Half a login would be refused at once if anybody heard it. */
	assert_int_equal(send(old, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL), 18);
	shutdown(old, SHUT_WR);
	assert_int_equal(events_of(&rig, old, POLLIN, 60), 0);
	assert_int_equal(connections(&rig), 1);

	iscsi_portal_set_silent(rig.portal, false);
	assert_true(events_of(&rig, old, POLLIN, 2000) & (POLLIN | POLLERR | POLLHUP));
	assert_int_equal(recv(old, &byte, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	/* The kernel tries again after a second. */
	assert_int_equal(events_of(&rig, new, POLLOUT, 5000), POLLOUT);
	while (connections(&rig) == 0)
		assert_true(loop_turn(rig.loop, true) >= 0);
	close(old);
	close(new);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_port_in_use),
	    cmocka_unit_test(test_bad_address),
	    cmocka_unit_test(test_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
