/* SPDX-License-Identifier: MIT
 *
 * RTNLGRP_LINK on a netlink socket of its own, and a list of who wants to know.
 */
#include "initiator/net/link_watch.h"

#include <assert.h>
#include <errno.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <netlink/addr.h>
#include <netlink/cache.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/route/addr.h>
#include <netlink/socket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/loop.h"

struct link_watch {
	struct loop *loop;
	struct nl_sock *socket;
	struct loop_watch watch;
	unsigned round; /* of telling: entries may go and come meanwhile */
	LIST_HEAD(, link_watch_entry) entries;
};

/* One round: each entry of the interface is told once, whatever the others do to the list. */
static void tell(struct link_watch *watch, int ifindex, const char *interface)
{
	struct link_watch_entry *entry;

	watch->round++;
	for (entry = LIST_FIRST(&watch->entries); entry;) {
		if (entry->ifindex != ifindex || entry->round == watch->round) {
			entry = LIST_NEXT(entry, link);
			continue;
		}
		entry->round = watch->round;
		entry->lost(entry, interface);
		entry = LIST_FIRST(&watch->entries);
	}
}

static int on_message(struct nl_msg *msg, void *arg)
{
	struct nlmsghdr *header = nlmsg_hdr(msg);
	const struct ifinfomsg *info;
	const struct nlattr *name;
	char interface[IFNAMSIZ] = "?";

	if (header->nlmsg_type != RTM_NEWLINK && header->nlmsg_type != RTM_DELLINK)
		return NL_OK;
	if (!nlmsg_valid_hdr(header, sizeof *info))
		return NL_SKIP;
	info = nlmsg_data(header);
	/* AF_BRIDGE: a port that leaves a bridge. */
	if (info->ifi_flags & IFF_LOOPBACK || info->ifi_family != AF_UNSPEC)
		return NL_OK;
	if (header->nlmsg_type == RTM_NEWLINK && info->ifi_flags & IFF_UP &&
	    info->ifi_flags & IFF_LOWER_UP)
		return NL_OK;
	name = nlmsg_find_attr(header, sizeof *info, IFLA_IFNAME);
	if (name)
		snprintf(interface, sizeof interface, "%s", (const char *)nla_data(name));
	tell(arg, info->ifi_index, interface);
	return NL_OK;
}

static void on_ready(void *arg, uint32_t ready)
{
	struct link_watch *watch = arg;
	struct rtgenmsg all = {.rtgen_family = AF_UNSPEC};

	/* Messages were dropped: ask for the state of all links, answered like events. */
	if (nl_recvmsgs_default(watch->socket) == -NLE_NOMEM)
		(void)nl_send_simple(watch->socket, RTM_GETLINK, NLM_F_DUMP, &all, sizeof all);
}

static int open_socket(struct link_watch *watch)
{
	struct nl_sock *socket = nl_socket_alloc();

	if (!socket)
		return -ENOMEM;
	watch->socket = socket;
	nl_socket_disable_seq_check(socket);
	if (nl_socket_modify_cb(socket, NL_CB_VALID, NL_CB_CUSTOM, on_message, watch) < 0 ||
	    nl_connect(socket, NETLINK_ROUTE) < 0 ||
	    nl_socket_add_membership(socket, RTNLGRP_LINK) < 0 ||
	    nl_socket_set_nonblocking(socket) < 0)
		return -ENOTSUP;
	watch->watch =
	    (struct loop_watch){.fd = nl_socket_get_fd(socket), .fn = on_ready, .arg = watch};
	return loop_watch_add(watch->loop, &watch->watch, EPOLLIN);
}

int link_watch_new(struct loop *loop, struct link_watch **ret_watch)
{
	struct link_watch *watch = calloc(1, sizeof *watch);
	int r;

	if (!watch)
		return -ENOMEM;
	watch->loop = loop;
	LIST_INIT(&watch->entries);
	r = open_socket(watch);
	if (r < 0) {
		link_watch_free(watch);
		return r;
	}
	*ret_watch = watch;
	return 0;
}

struct link_watch *link_watch_free(struct link_watch *watch)
{
	if (!watch)
		return NULL;
	assert(LIST_EMPTY(&watch->entries));
	loop_watch_del(watch->loop, &watch->watch);
	nl_socket_free(watch->socket);
	free(watch);
	return NULL;
}

static bool same_address(struct nl_addr *address, const struct sockaddr *local)
{
	const struct sockaddr_in *four = (const void *)local;
	const struct sockaddr_in6 *six = (const void *)local;
	bool is_six = local->sa_family == AF_INET6;
	const void *bytes = is_six ? (const void *)&six->sin6_addr : &four->sin_addr;
	unsigned size = is_six ? sizeof six->sin6_addr : sizeof four->sin_addr;

	return address && nl_addr_get_family(address) == local->sa_family &&
	       nl_addr_get_len(address) == size &&
	       memcmp(nl_addr_get_binary_addr(address), bytes, size) == 0;
}

static int find_in(struct nl_cache *cache, const struct sockaddr *local)
{
	for (struct nl_object *o = nl_cache_get_first(cache); o; o = nl_cache_get_next(o)) {
		struct rtnl_addr *address = (struct rtnl_addr *)o;

		if (same_address(rtnl_addr_get_local(address), local))
			return rtnl_addr_get_ifindex(address);
	}
	return -ENODEV;
}

static int find_interface(const struct sockaddr *local)
{
	struct nl_sock *socket = nl_socket_alloc();
	struct nl_cache *cache = NULL;
	int r = -ENODEV;

	if (!socket)
		return -ENOMEM;
	if (nl_connect(socket, NETLINK_ROUTE) == 0 && rtnl_addr_alloc_cache(socket, &cache) == 0)
		r = find_in(cache, local);
	if (cache)
		nl_cache_free(cache);
	nl_socket_free(socket);
	return r;
}

int link_watch_add(struct link_watch *watch, struct link_watch_entry *entry,
		   const struct sockaddr *local)
{
	int ifindex = find_interface(local);

	assert(!entry->active);
	if (ifindex < 0)
		return ifindex;
	entry->ifindex = ifindex;
	entry->round = watch->round; /* from the next event on */
	entry->active = true;
	LIST_INSERT_HEAD(&watch->entries, entry, link);
	return 0;
}

void link_watch_remove(struct link_watch_entry *entry)
{
	if (!entry->active)
		return;
	entry->active = false;
	LIST_REMOVE(entry, link);
}
