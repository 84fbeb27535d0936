/* SPDX-License-Identifier: MIT
 *
 * Faults as control commands.
 */
#include "harness/run/real_faults.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "harness/run/fault_command.h"
#include "harness/run/hosts.h"

enum { PORTALS_MAX = LAB_MAX_PATHS };

static int command(struct real_faults *faults, json_t *request, struct err *err)
{
	int r = faults->target ? target_command(faults->target, request, NULL, err) : -ENOTSUP;

	json_decref(request);
	return r;
}

static int set_portal(struct real_faults *faults, const char *portal, bool down, struct err *err)
{
	return command(faults,
		       json_pack("{s:s, s:s}", "command", down ? "portal-down" : "portal-up",
				 "portal", portal),
		       err);
}

static int reset_path(struct real_faults *faults, const struct fault_config *fault, struct err *err)
{
	char initiator[224];

	snprintf(initiator, sizeof initiator, HOST_IQN_PREFIX "%s", fault->host);
	return command(faults,
		       json_pack("{s:s, s:s, s:s}", "command", "reset", "portal",
				 fault->portal.text, "initiator", initiator),
		       err);
}

struct portal_set {
	char names[PORTALS_MAX][64];
	int count;
};

static void add_portal(struct portal_set *set, const char *portal)
{
	for (int i = 0; i < set->count; i++)
		if (strcmp(set->names[i], portal) == 0)
			return;
	if (set->count < PORTALS_MAX)
		snprintf(set->names[set->count++], sizeof set->names[0], "%s", portal);
}

static void add_host(const struct lab *lab, const struct host_config *host, struct portal_set *set)
{
	struct lab_path paths[LAB_MAX_PATHS];
	const char *volume;

	for (size_t v = 0; (volume = lab_host_volume(host, v)); v++) {
		int count = lab_paths_of(lab, host, volume, paths);

		for (int i = 0; i < count; i++)
			if (!paths[i].url)
				add_portal(set, paths[i].portal);
	}
}

static int set_all(struct real_faults *faults, const struct fault_config *fault, bool down,
		   struct err *err)
{
	const struct host_config *hosts = faults->lab->hosts.items;
	struct portal_set set = {.count = 0};
	int r = 0;

	for (size_t h = 0; h < faults->lab->hosts.count; h++)
		if (!fault->host || strcmp(hosts[h].name, fault->host) == 0)
			add_host(faults->lab, &hosts[h], &set);
	for (int i = 0; i < set.count; i++) {
		int one = set_portal(faults, set.names[i], down, err);

		r = r < 0 ? r : one;
	}
	return r;
}

static int crash(struct real_faults *faults, bool begin, struct err *err)
{
	if (!faults->target)
		return -ENOTSUP;
	if (!begin)
		return target_restart(faults->target, faults->restarted, faults->arg, err);
	target_kill(faults->target);
	return 0;
}

int real_faults_apply(void *arg, const struct fault_config *fault, bool begin, struct err *err)
{
	struct real_faults *faults = arg;
	int relayed = relay_faults_apply(faults->relay, fault, begin);

	if (relayed < 0)
		return err_set(err, relayed, "the relay does not listen");
	if (fault_is_of_network(fault->kind))
		return relayed ? 0 : err_set(err, -ENOENT, "no path fits the fault");
	switch (fault->kind) {
	case FAULT_PATH_RESET:
		return relayed ? 0 : reset_path(faults, fault, err);
	case FAULT_PATH_DOWN:
		return relayed ? 0 : set_portal(faults, fault->portal.text, begin, err);
	case FAULT_PORTAL_DOWN:
		return set_portal(faults, fault->portal.text, begin, err);
	case FAULT_ALL_PATHS_DOWN:
		return fault_needs_relay(faults->lab, fault, NULL)
			   ? 0
			   : set_all(faults, fault, begin, err);
	case FAULT_TARGET_CRASH:
		return crash(faults, begin, err);
	default:
		return command(faults, fault_command(fault, begin), err);
	}
}
