/* SPDX-License-Identifier: MIT
 *
 * The table of portals: short, and searched only while paths are made.
 */
#include "initiator/mpio/host_load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct portal_load {
	struct mpio_load load;
	SLIST_ENTRY(portal_load) link;
	char portal[];
};

struct host_load {
	SLIST_HEAD(, portal_load) portals;
};

int host_load_new(struct host_load **ret_loads)
{
	struct host_load *loads = calloc(1, sizeof *loads);

	if (!loads)
		return -ENOMEM;
	SLIST_INIT(&loads->portals);
	*ret_loads = loads;
	return 0;
}

struct host_load *host_load_free(struct host_load *loads)
{
	struct portal_load *entry;

	if (!loads)
		return NULL;
	while ((entry = SLIST_FIRST(&loads->portals))) {
		SLIST_REMOVE_HEAD(&loads->portals, link);
		free(entry);
	}
	free(loads);
	return NULL;
}

struct mpio_load *host_load_of(struct host_load *loads, const char *portal)
{
	struct portal_load *entry;
	size_t bytes = strlen(portal) + 1;

	SLIST_FOREACH (entry, &loads->portals, link)
		if (strcmp(entry->portal, portal) == 0)
			return &entry->load;
	entry = calloc(1, sizeof *entry + bytes);
	if (!entry)
		return NULL;
	memcpy(entry->portal, portal, bytes);
	SLIST_INSERT_HEAD(&loads->portals, entry, link);
	return &entry->load;
}
