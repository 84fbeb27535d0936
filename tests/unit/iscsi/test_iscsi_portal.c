/* SPDX-License-Identifier: MIT
 *
 * Portals that cannot listen: the message names the port and who holds it.
 */
#include <arpa/inet.h>
#include <errno.h>
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
	struct iscsi_portal_config config = {.group_tag = 1, .relative_port = 1};
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_port_in_use),
	    cmocka_unit_test(test_bad_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
