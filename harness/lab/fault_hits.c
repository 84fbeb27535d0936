/* SPDX-License-Identifier: MIT
 *
 * Which paths a fault takes away: for the relay, and to tell what a lost path was lost to.
 */
#include <string.h>

#include "harness/lab/lab_impl.h"

static const struct member_config *member_of(const struct lab *lab, const char *name)
{
	const struct pool_config *pools = lab->group.pools.items;

	for (size_t p = 0; p < lab->group.pools.count; p++) {
		const struct member_config *members = pools[p].members.items;

		for (size_t m = 0; m < pools[p].members.count; m++)
			if (members[m].name && strcmp(members[m].name, name) == 0)
				return &members[m];
	}
	return NULL;
}

/* The number of PORTAL among the member's, -1: it is none of them. */
static int portal_index(const struct lab *lab, const char *member, const char *portal)
{
	const struct member_config *config = member_of(lab, member);
	const struct cfg_portal *portals = config ? config->portals.items : NULL;

	for (size_t i = 0; portals && i < config->portals.count; i++)
		if (strcmp(portals[i].text, portal) == 0)
			return (int)i;
	return -1;
}

bool lab_fault_hits(const struct lab *lab, const struct fault_config *fault, const char *host,
		    const char *volume, unsigned index, const char *portal)
{
	if (fault_has_drive(fault->kind) || fault->kind == FAULT_BATTERY_LOST ||
	    fault->kind == FAULT_SCRUB || fault->kind == FAULT_RANDOM ||
	    fault_is_of_workload(fault->kind))
		return false;
	if (fault->kind == FAULT_SESSION_RESET)
		return strcmp(fault->host, host) == 0 && strcmp(fault->volume, volume) == 0 &&
		       fault->path == index;
	if (fault->kind == FAULT_ALUA_FLIP)
		return !fault->volume || strcmp(fault->volume, volume) == 0;
	if (fault->host && strcmp(fault->host, host) != 0)
		return false;
	/* Several urls of a lun may lead to one portal: of the volume that counts, one path is
	 * meant. */
	if (fault->has_path && strcmp(fault->volume, volume) == 0)
		return fault->path == index;
	if (fault->portal.set)
		return strcmp(fault->portal.text, portal) == 0;
	if (fault->member) {
		int at = portal_index(lab, fault->member, portal);

		return at >= 0 && (fault->kind != FAULT_LINK_DOWN || (int)fault->port == at);
	}
	return true;
}
