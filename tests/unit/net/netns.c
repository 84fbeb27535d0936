/* SPDX-License-Identifier: MIT
 *
 * Namespaces and links through libnl.
 */
#include "netns.h"

#include <assert.h>
#include <fcntl.h>
#include <linux/if.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/link/veth.h>
#include <netlink/socket.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

static int near_fd = -1, far_fd = -1;

static struct nl_sock *netlink(void)
{
	struct nl_sock *socket = nl_socket_alloc();

	assert(socket && nl_connect(socket, NETLINK_ROUTE) == 0);
	return socket;
}

static int set_up(const char *name, bool up)
{
	struct nl_sock *socket = netlink();
	struct rtnl_link *old = NULL, *change = rtnl_link_alloc();
	int r = rtnl_link_get_kernel(socket, 0, name, &old);

	assert(change);
	if (r == 0) {
		if (up)
			rtnl_link_set_flags(change, IFF_UP);
		else
			rtnl_link_unset_flags(change, IFF_UP);
		r = rtnl_link_change(socket, old, change, 0);
		rtnl_link_put(old);
	}
	rtnl_link_put(change);
	nl_socket_free(socket);
	return r;
}

static int set_address(const char *name, const char *text, bool there)
{
	struct nl_sock *socket = netlink();
	struct rtnl_addr *address = rtnl_addr_alloc();
	struct rtnl_link *link = NULL;
	struct nl_addr *local = NULL;
	int r = rtnl_link_get_kernel(socket, 0, name, &link);

	assert(address);
	if (r == 0)
		r = nl_addr_parse(text, AF_INET, &local);
	if (r == 0) {
		nl_addr_set_prefixlen(local, 24);
		rtnl_addr_set_local(address, local);
		rtnl_addr_set_ifindex(address, rtnl_link_get_ifindex(link));
		r = there ? rtnl_addr_add(socket, address, 0)
			  : rtnl_addr_delete(socket, address, 0);
	}
	nl_addr_put(local);
	rtnl_link_put(link);
	rtnl_addr_put(address);
	nl_socket_free(socket);
	return r;
}

/* In the near namespace: both ends, the second then moved to the far one. */
static int make_links(void)
{
	struct nl_sock *socket = netlink();
	struct rtnl_link *far = NULL, *change = rtnl_link_alloc();
	int r = rtnl_link_veth_add(socket, "v0", "v1", getpid());

	assert(change);
	if (r == 0)
		r = rtnl_link_get_kernel(socket, 0, "v1", &far);
	if (r == 0) {
		rtnl_link_set_ns_fd(change, far_fd);
		r = rtnl_link_change(socket, far, change, 0);
		rtnl_link_put(far);
	}
	rtnl_link_put(change);
	nl_socket_free(socket);
	return r;
}

static int make_net(void)
{
	int r = unshare(CLONE_NEWNET);
	int fd = r == 0 ? open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC) : -1;

	return fd;
}

bool netns_open(const char **ret_why)
{
	*ret_why = "user and network namespaces are refused";
	if (unshare(CLONE_NEWUSER) < 0)
		return false;
	far_fd = make_net();
	near_fd = far_fd >= 0 ? make_net() : -1;
	if (near_fd < 0)
		return false;
	*ret_why = "no virtual Ethernet here";
	if (make_links() < 0 || set_up("lo", true) < 0 || set_address("v0", NETNS_NEAR, true) < 0 ||
	    set_up("v0", true) < 0)
		return false;
	netns_far_address(true);
	netns_far_link(true);
	netns_enter(true);
	assert(set_up("lo", true) == 0);
	netns_enter(false);
	return true;
}

void netns_enter(bool far)
{
	int r = setns(far ? far_fd : near_fd, CLONE_NEWNET);

	assert(r == 0);
}

void netns_far_link(bool up)
{
	netns_enter(true);
	assert(set_up("v1", up) == 0);
	netns_enter(false);
}

void netns_far_address(bool there)
{
	netns_enter(true);
	assert(set_address("v1", NETNS_FAR, there) == 0);
	netns_enter(false);
}

void netns_near_delete(void)
{
	struct nl_sock *socket = netlink();
	struct rtnl_link *link = rtnl_link_alloc();

	assert(link);
	rtnl_link_set_name(link, "v0");
	assert(rtnl_link_delete(socket, link) == 0);
	rtnl_link_put(link);
	nl_socket_free(socket);
}
