/* SPDX-License-Identifier: MIT
 *
 * Lost links, and what becomes of iSCSI paths over them: on a virtual Ethernet between two network
 * namespaces.  Skipped where an unprivileged user may not have these.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>

#include "initiator/net/link_watch.h"
#include "netns.h"
#include "tests/initiator/rig.h"

struct told {
	struct link_watch_entry entry;
	unsigned count;
	char interface[32];
	struct told *removes; /* from within lost */
};

static void on_lost(struct link_watch_entry *entry, const char *interface)
{
	struct told *told = entry->owner;

	told->count++;
	snprintf(told->interface, sizeof told->interface, "%s", interface);
	if (told->removes)
		link_watch_remove(&told->removes->entry);
}

static int watch_address(struct link_watch *watch, struct told *told, const char *text)
{
	struct sockaddr_in address = {.sin_family = AF_INET};

	*told = (struct told){.entry = {.lost = on_lost, .owner = told}};
	assert_int_equal(inet_pton(AF_INET, text, &address.sin_addr), 1);
	return link_watch_add(watch, &told->entry, (struct sockaddr *)&address);
}

/* The kernel may tell of one loss more than once, when links go up and down in quick succession. */
static bool at_least(struct loop *loop, const unsigned *count, unsigned want)
{
	uint64_t deadline = loop_now_ns(loop) + RIG_WAIT_S * NS_PER_S;

	while (*count < want && loop_now_ns(loop) < deadline)
		loop_run_until(loop, loop_now_ns(loop) + NS_PER_MS);
	return *count >= want;
}

static void events(void **unused)
{
	struct told near, loopback, second, removed;
	struct link_watch *watch;
	struct loop *loop;

	assert_int_equal(loop_new_virtual(0, &loop), 0);
	assert_int_equal(link_watch_new(loop, &watch), -ENOTSUP);
	loop_free(loop);
	assert_int_equal(loop_new_real(&loop), 0);
	assert_int_equal(link_watch_new(loop, &watch), 0);
	assert_int_equal(watch_address(watch, &near, "192.0.2.1"), -ENODEV);
	assert_int_equal(watch_address(watch, &loopback, "127.0.0.1"), 0);
	assert_int_equal(watch_address(watch, &removed, NETNS_NEAR), 0);
	assert_int_equal(watch_address(watch, &second, NETNS_NEAR), 0);
	assert_int_equal(watch_address(watch, &near, NETNS_NEAR), 0);
	near.removes = &removed; /* told after it */
	netns_far_link(false);
	assert_true(at_least(loop, &near.count, 1));
	assert_string_equal(near.interface, "v0");
	assert_int_equal(second.count, near.count);
	assert_int_equal(removed.count, 0);
	/* Again, and itself. */
	near.removes = &near;
	near.count = 0;
	netns_far_link(true);
	netns_far_link(false);
	assert_true(at_least(loop, &near.count, 1));
	second.count = 0;
	netns_far_link(true);
	netns_far_link(false);
	assert_true(at_least(loop, &second.count, 1));
	assert_int_equal(near.count, 1);
	assert_int_equal(loopback.count, 0);
	netns_far_link(true);
	link_watch_remove(&loopback.entry);
	link_watch_remove(&second.entry);
	link_watch_free(watch);
	loop_free(loop);
}

/* The rig's peer listens on the far side. */
static void open_far(struct rig *rig, struct link_watch **ret_watch)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof address;

	rig_open(rig);
	assert_int_equal(link_watch_new(rig->loop, ret_watch), 0);
	peer_stop_listening(&rig->peer);
	netns_enter(true);
	rig->peer.listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	netns_enter(false);
	assert_int_equal(inet_pton(AF_INET, NETNS_FAR, &address.sin_addr), 1);
	assert_int_equal(bind(rig->peer.listen_fd, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(rig->peer.listen_fd, 8), 0);
	assert_int_equal(getsockname(rig->peer.listen_fd, (struct sockaddr *)&address, &size), 0);
	snprintf(rig->peer.portal, sizeof rig->peer.portal, NETNS_FAR ":%u",
		 ntohs(address.sin_port));
	rig->peer.listen_watch.fd = rig->peer.listen_fd;
	assert_int_equal(loop_watch_add(rig->loop, &rig->peer.listen_watch, EPOLLIN), 0);
	rig->config.links = *ret_watch;
	rig->config.keepalive_ns = 1000 * NS_PER_S;
	rig->config.io_timeout_ns = 1000 * NS_PER_S;
}

static void close_far(struct rig *rig, struct link_watch *watch)
{
	rig->owner.path = path_free(rig->owner.path);
	link_watch_free(watch);
	rig_close(rig);
}

/* With all timers off: the link alone tells. */
static void a_path_whose_link_goes(void **unused)
{
	static uint8_t data[PEER_BLOCK_BYTES];
	struct link_watch *watch;
	struct owner_io oio = {0};
	struct rig rig;

	open_far(&rig, &watch);
	rig.config.tcp_user_timeout_ns = 1000 * NS_PER_S;
	rig_up(&rig);
	rig.peer.mute_io = true;
	owner_submit(&rig.owner, &oio, IO_WRITE, 0, 1, data);
	rig_expect(&rig, &rig.peer.writes, 1);
	netns_far_link(false);
	rig_expect_down(&rig, 1, "no link on v0");
	assert_int_equal(rig.owner.path->lost_by, PATH_DETECT_LINK);
	assert_int_equal(oio.pio.result, PATH_LOST);
	netns_far_link(true);
	rig.peer.mute_io = false;
	rig_up(&rig);
	owner_submit(&rig.owner, &oio, IO_WRITE, 0, 1, data);
	rig_expect(&rig, &rig.owner.ok, 1);
	close_far(&rig, watch);
}

/* A black hole with the link in order: TCP gives up on unacknowledged data. */
static void data_that_nobody_acknowledges(void **unused)
{
	static uint8_t data[PEER_BLOCK_BYTES];
	struct link_watch *watch;
	struct owner_io oio = {0};
	struct rig rig;

	open_far(&rig, &watch);
	rig.config.tcp_user_timeout_ns = 300 * NS_PER_MS;
	rig_up(&rig);
	netns_far_address(false);
	owner_submit(&rig.owner, &oio, IO_WRITE, 0, 1, data);
	rig_expect_down(&rig, 1, "timed out");
	assert_int_equal(rig.owner.path->lost_by, PATH_DETECT_TCP_TIMEOUT);
	assert_int_equal(oio.pio.result, PATH_LOST);
	netns_far_address(true);
	close_far(&rig, watch);
}

/* The last one: there is no way back. */
static void an_interface_that_goes_away(void **unused)
{
	struct link_watch *watch;
	struct rig rig;

	open_far(&rig, &watch);
	rig.config.tcp_user_timeout_ns = 1000 * NS_PER_S;
	rig_up(&rig);
	netns_near_delete();
	rig_expect_down(&rig, 1, "no link on v0");
	rig_connect(&rig);
	rig_expect_down(&rig, 2, "unreachable");
	assert_int_equal(rig.owner.path->lost_by, PATH_DETECT_LINK);
	close_far(&rig, watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(events),
	    cmocka_unit_test(a_path_whose_link_goes),
	    cmocka_unit_test(data_that_nobody_acknowledges),
	    cmocka_unit_test(an_interface_that_goes_away),
	};
	const char *why;

	if (!netns_open(&why)) {
		printf("1..0 # SKIP %s\n", why);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
