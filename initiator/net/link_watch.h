/* SPDX-License-Identifier: MIT
 *
 * Carriers of this host's interfaces: who uses an address is told when the interface that has it
 * loses its link, is switched off or goes away.  A path need not wait for a timeout then.
 *
 * Nothing is ever told of loopback.  Coming back is not told either: who reconnects will see.
 *
 * Threading: the loop's thread.
 */
#ifndef SANLAB_INITIATOR_NET_LINK_WATCH_H
#define SANLAB_INITIATOR_NET_LINK_WATCH_H

#include <stdbool.h>
#include <sys/queue.h>
#include <sys/socket.h>

struct link_watch;
struct loop;

struct link_watch_entry {
	/* From the loop, at least once for each loss; may remove any entry, also this one. */
	void (*lost)(struct link_watch_entry *entry, const char *interface);
	void *owner;

	/* private */
	int ifindex;
	unsigned round;
	bool active;
	LIST_ENTRY(link_watch_entry) link;
};

/* -ENOTSUP: a virtual loop, or no netlink here. */
int link_watch_new(struct loop *loop, struct link_watch **ret_watch);
/* NULL is fine; no entry may be left. */
struct link_watch *link_watch_free(struct link_watch *watch);
/* Watches the interface that has LOCAL, an address of this host; -ENODEV: none has it. */
int link_watch_add(struct link_watch *watch, struct link_watch_entry *entry,
		   const struct sockaddr *local);
void link_watch_remove(struct link_watch_entry *entry); /* inactive is fine */

#endif
