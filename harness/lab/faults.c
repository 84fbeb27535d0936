/* SPDX-License-Identifier: MIT
 *
 * The fault timeline: which kind each entry is, and which portal it means.
 */
#include <string.h>

#include "base/bytes.h"
#include "harness/lab/lab_impl.h"

/* The one raw part that is given, by kind; NULL (and an error) unless it is exactly one. */
static const struct cfg_raw *fault_kind(struct lab *lab, struct fault_config *fault)
{
	const struct cfg_raw *kinds[] = {
	    [FAULT_PATH_RESET] = &fault->path_reset,
	    [FAULT_PATH_DOWN] = &fault->path_down,
	    [FAULT_PORTAL_DOWN] = &fault->portal_down,
	    [FAULT_ALL_PATHS_DOWN] = &fault->all_paths_down,
	};
	const struct cfg_raw *found = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!kinds[i]->node)
			continue;
		if (found) {
			cfg_error_raw(lab->cfg, kinds[i],
				      "a second kind in one fault ('%s' and '%s')",
				      fault_kind_names[fault->kind], fault_kind_names[i]);
			cfg_hint(lab->cfg, "give each its own entry");
			return NULL;
		}
		found = kinds[i];
		fault->kind = (int)i;
	}
	if (!found && cfg_valid(lab->cfg, &fault->path_reset)) {
		cfg_error_at(lab->cfg, &fault->at_ns, "a fault without a kind");
		cfg_hint(lab->cfg, "allowed: %s, %s, %s, %s", fault_kind_names[0],
			 fault_kind_names[1], fault_kind_names[2], fault_kind_names[3]);
	}
	return found;
}

static const struct host_config *find_host(struct lab *lab, const char *const *name)
{
	const struct host_config *hosts = lab->hosts.items, *host = lab_find_host(lab, *name);
	enum { MOST = 64 };
	const char *names[MOST + 1];
	size_t count = 0;

	if (host)
		return host;
	for (size_t i = 0; i < lab->hosts.count && count < MOST; i++)
		if (hosts[i].name)
			names[count++] = hosts[i].name;
	names[count] = NULL;
	cfg_error_at(lab->cfg, name, "the lab has no host '%.60s'", *name);
	const char *near = cfg_nearest(*name, names);
	if (near)
		cfg_hint(lab->cfg, "did you mean '%s'?", near);
	return NULL;
}

static void resolve_path(struct lab *lab, struct fault_config *fault, const struct fault_args *args)
{
	struct lab_path paths[LAB_MAX_PATHS];
	char why[200];

	if (!args->host || !cfg_valid(lab->cfg, &args->path))
		return;
	const struct host_config *host = find_host(lab, &args->host);
	const char *volume = args->volume;
	if (host && !volume)
		volume = lab_host_volume(host, 0);
	if (!host || !volume)
		return;
	int count = lab_paths_of(lab, host, volume, paths);
	if (count < 0) {
		if (args->volume)
			cfg_error_at(lab->cfg, &args->volume, "host '%.60s' has no volume '%.60s'",
				     args->host, volume);
		return;
	}
	if (args->path >= (uint64_t)count) {
		cfg_error_at(lab->cfg, &args->path,
			     "host '%.60s' has no path %llu to volume '%.60s': it has %d, counted "
			     "from 0",
			     args->host, (unsigned long long)args->path, volume, count);
		return;
	}
	fault->host = args->host;
	fault->volume = volume;
	fault->path = args->path;
	(void)cfg_parse_scalar(CFG_PORTAL, paths[args->path].portal, &fault->portal, why,
			       sizeof why);
}

static bool has_portal(const struct cfg_list *portals, const char *text)
{
	const struct cfg_portal *items = portals->items;
	for (size_t i = 0; i < portals->count; i++)
		if (!strcmp(items[i].text, text))
			return true;
	return false;
}

static void resolve_portal(struct lab *lab, struct fault_config *fault,
			   const struct fault_args *args)
{
	const struct pool_config *pools = lab->group.pools.items;
	bool found = !strcmp(lab->group.portal.text, args->portal.text);

	if (!args->portal.set)
		return;
	for (size_t p = 0; p < lab->group.pools.count; p++) {
		const struct member_config *members = pools[p].members.items;
		for (size_t m = 0; m < pools[p].members.count; m++)
			found = found || has_portal(&members[m].portals, args->portal.text);
	}
	if (!found)
		cfg_error_at(lab->cfg, &args->portal,
			     "neither the group nor a member has portal %s", args->portal.text);
	fault->portal = args->portal;
}

static void check_fault(struct lab *lab, struct fault_config *fault)
{
	struct fault_args args = {.host = NULL};
	const struct cfg_raw *raw = fault_kind(lab, fault);

	if (cfg_valid(lab->cfg, &fault->at_ns) && cfg_valid(lab->cfg, &lab->run.duration_ns) &&
	    fault->at_ns >= lab->run.duration_ns)
		cfg_error_at(lab->cfg, &fault->at_ns,
			     "the fault begins after the measured window ('duration')");
	if (!raw)
		return;
	switch (fault->kind) {
	case FAULT_PATH_RESET:
	case FAULT_PATH_DOWN:
		cfg_decode_raw(lab->cfg, raw, &fault_path_schema, &args);
		resolve_path(lab, fault, &args);
		break;
	case FAULT_PORTAL_DOWN:
		cfg_decode_raw(lab->cfg, raw, &fault_portal_schema, &args);
		resolve_portal(lab, fault, &args);
		break;
	default:
		cfg_decode_raw(lab->cfg, raw, &fault_host_schema, &args);
		if (args.host && find_host(lab, &args.host))
			fault->host = args.host;
		break;
	}
	if (fault->kind == FAULT_PATH_RESET && cfg_given(lab->cfg, &fault->for_ns))
		cfg_error_at(lab->cfg, &fault->for_ns,
			     "'path-reset' is an instant and takes no 'for'; use 'path-down'");
}

void lab_check_faults(struct lab *lab)
{
	struct fault_config *faults = lab->faults.items;

	if (lab->faults.count && !lab->has_group) {
		cfg_error_at(lab->cfg, &lab->faults,
			     "faults need a group: they are carried out by the lab's own target");
		return;
	}
	for (size_t i = 0; i < lab->faults.count; i++)
		check_fault(lab, &faults[i]);
}
