/* SPDX-License-Identifier: MIT
 *
 * The fault timeline: which kind each entry is, and which portal it means.
 */
#include <string.h>

#include "base/bytes.h"
#include "harness/lab/lab_impl.h"
#include "harness/workload/workload.h"
#include "target/array/cache.h"

bool fault_has_drive(int kind)
{
	return kind == FAULT_DRIVE_FAIL || kind == FAULT_DRIVE_SLOW || kind == FAULT_DRIVE_LATENT;
}

bool fault_has_controller(int kind)
{
	return kind == FAULT_CONTROLLER_FAILOVER || kind == FAULT_LINK_DOWN;
}

bool fault_is_instant(int kind)
{
	return kind == FAULT_PATH_RESET || kind == FAULT_SESSION_RESET ||
	       kind == FAULT_DIGEST_CORRUPTION || kind == FAULT_ALUA_FLIP ||
	       fault_is_of_workload(kind);
}

bool fault_is_of_workload(int kind)
{
	return kind == FAULT_COPY_ACTIVATE || kind == FAULT_COPY_RESEED;
}

bool fault_is_of_network(int kind)
{
	return kind >= FAULT_SESSION_RESET && kind <= FAULT_DIGEST_CORRUPTION;
}

static bool is_of_one_path(int kind)
{
	return kind == FAULT_PATH_RESET || kind == FAULT_PATH_DOWN || kind == FAULT_SESSION_RESET;
}

/* Somebody else's target will do. */
static bool is_of_paths(int kind)
{
	return fault_is_of_network(kind) || is_of_one_path(kind) || kind == FAULT_ALL_PATHS_DOWN ||
	       kind == FAULT_RANDOM;
}

bool fault_needs_relay(const struct lab *lab, const struct fault_config *fault, const char *url)
{
	bool of_one_host = fault->host && lab->hosts.count > 1 &&
			   (fault->kind == FAULT_PATH_DOWN || fault->kind == FAULT_ALL_PATHS_DOWN);

	return fault_is_of_network(fault->kind) || of_one_host || (url && is_of_paths(fault->kind));
}

static void name_kinds(struct lab *lab)
{
	char all[500] = "";

	for (size_t i = 0; i < FAULT_KINDS; i++) {
		size_t used = strlen(all);
		(void)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "",
			       fault_kind_names[i]);
	}
	cfg_hint(lab->cfg, "allowed: %s", all);
}

/* The one raw part that is given, by kind; NULL (and an error) unless it is exactly one. */
static const struct cfg_raw *fault_kind(struct lab *lab, struct fault_config *fault)
{
	const struct cfg_raw *found = NULL;

	for (size_t i = 0; i < FAULT_KINDS; i++) {
		if (!fault->raw[i].node)
			continue;
		if (found) {
			cfg_error_raw(lab->cfg, &fault->raw[i],
				      "a second kind in one fault ('%s' and '%s')",
				      fault_kind_names[fault->kind], fault_kind_names[i]);
			cfg_hint(lab->cfg, "give each its own entry");
			return NULL;
		}
		found = &fault->raw[i];
		fault->kind = (int)i;
	}
	if (!found && cfg_valid(lab->cfg, &fault->raw[0])) {
		cfg_error_at(lab->cfg, &fault->at_ns, "a fault without a kind");
		name_kinds(lab);
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
	if (count == 0)
		return; /* a wrong url is told already */
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
	fault->has_path = true;
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

static const struct member_config *find_member(struct lab *lab, const char *const *name);

static bool has_url_to(const struct lab *lab, const char *portal)
{
	const struct host_config *hosts = lab->hosts.items;

	for (size_t h = 0; h < lab->hosts.count; h++) {
		const struct lun_config *luns = hosts[h].luns.items;

		for (size_t i = 0; i < hosts[h].luns.count; i++) {
			const char *const *urls = luns[i].urls.items;
			struct path_url url;

			for (size_t u = 0; u < luns[i].urls.count; u++)
				if (path_url_parse(urls[u], &url, NULL) == 0 &&
				    strcmp(url.portal, portal) == 0)
					return true;
		}
	}
	return false;
}

static void resolve_portal(struct lab *lab, struct fault_config *fault,
			   const struct fault_args *args)
{
	const struct pool_config *pools = lab->group.pools.items;
	bool found = !strcmp(lab->group.portal.text, args->portal.text) ||
		     (is_of_paths(fault->kind) && has_url_to(lab, args->portal.text));

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

/* Whose or which paths a fault of the network hits: exactly one way of saying it, or all. */
static void resolve_place(struct lab *lab, struct fault_config *fault,
			  const struct fault_args *args)
{
	bool path = cfg_given(lab->cfg, &args->path);
	int ways = (args->host || path) + args->portal.set + (args->member != NULL);

	if (ways > 1) {
		cfg_error_at(lab->cfg, &fault->at_ns, "'%s' names its paths in more than one way",
			     fault_kind_names[fault->kind]);
		cfg_hint(lab->cfg, "write host and path, or portal, or member");
	} else if (path && !args->host) {
		cfg_error_at(lab->cfg, &args->path, "a path is a host's: name the host");
	} else if (args->volume && !path) {
		cfg_error_at(lab->cfg, &args->volume,
			     "a volume only tells whose paths are counted: name host and path");
	} else if (path) {
		resolve_path(lab, fault, args);
	} else if (args->portal.set) {
		resolve_portal(lab, fault, args);
	} else if (args->member) {
		fault->member = find_member(lab, &args->member) ? args->member : NULL;
	} else if (args->host && find_host(lab, &args->host)) {
		fault->host = args->host;
	}
}

static const struct member_config *find_member(struct lab *lab, const char *const *name)
{
	const struct pool_config *pools = lab->group.pools.items;
	enum { MOST = 64 };
	const char *names[MOST + 1];
	size_t count = 0;

	for (size_t p = 0; p < lab->group.pools.count; p++) {
		const struct member_config *members = pools[p].members.items;
		for (size_t m = 0; m < pools[p].members.count; m++) {
			if (!members[m].name)
				continue;
			if (!strcmp(members[m].name, *name))
				return &members[m];
			if (count < MOST)
				names[count++] = members[m].name;
		}
	}
	names[count] = NULL;
	cfg_error_at(lab->cfg, name, "the group has no member '%.60s'", *name);
	const char *near = cfg_nearest(*name, names);
	if (near)
		cfg_hint(lab->cfg, "did you mean '%s'?", near);
	return NULL;
}

static void check_controller(struct lab *lab, struct fault_config *fault,
			     const struct fault_args *args, const struct member_config *member)
{
	bool lun = lab->group.style == GROUP_STYLE_LUN;

	fault->controller = cfg_given(lab->cfg, &args->controller) || fault->kind == FAULT_LINK_DOWN
				? (int)args->controller
				: -1;
	if (lun && fault->kind == FAULT_LINK_DOWN)
		cfg_error_at(lab->cfg, &fault->at_ns,
			     "'link-down' is for style equallogic; in style lun use portal-down");
	else if (lun && fault->controller < 0)
		cfg_error_at(lab->cfg, &args->controller,
			     "in style lun a controller failover names its controller, 0 or 1");
	else if (!lun && !args->member)
		cfg_error_at(lab->cfg, &args->member,
			     "in style equallogic controllers are a member's: name the member");
	if (member && member->controllers.count && fault->controller >= 0 &&
	    (uint64_t)fault->controller >= member->controllers.count)
		cfg_error_at(lab->cfg, &args->controller, "member '%.60s' has one controller",
			     args->member);
	if (fault->kind == FAULT_LINK_DOWN && member && cfg_valid(lab->cfg, &args->port) &&
	    args->port >= member->portals.count)
		cfg_error_at(lab->cfg, &args->port,
			     "member '%.60s' has no port %llu: it has %zu, counted from 0",
			     args->member, (unsigned long long)args->port, member->portals.count);
}

static void resolve_member(struct lab *lab, struct fault_config *fault,
			   const struct fault_args *args)
{
	const struct member_config *member = args->member ? find_member(lab, &args->member) : NULL;

	fault->member = args->member;
	fault->drive = args->drive;
	fault->port = args->port;
	fault->factor = args->factor;
	fault->extra_ns = args->extra_ns;
	fault->rate = args->rate;
	if (member && fault_has_drive(fault->kind) && cfg_valid(lab->cfg, &args->drive) &&
	    cfg_valid(lab->cfg, &member->drives.count) && args->drive >= member->drives.count)
		cfg_error_at(lab->cfg, &args->drive,
			     "member '%.60s' has no drive %llu: it has %llu, counted from 0",
			     args->member, (unsigned long long)args->drive,
			     (unsigned long long)member->drives.count);
	if (fault->kind == FAULT_DRIVE_SLOW && args->factor <= 1 && !args->extra_ns &&
	    cfg_valid(lab->cfg, &args->factor) && cfg_valid(lab->cfg, &args->extra_ns))
		cfg_error_at(lab->cfg, &args->factor,
			     "a slow drive needs a factor above 1 or some extra time");
	if (fault->kind == FAULT_BATTERY_LOST && member &&
	    (!member->cache.size_bytes || member->cache.mode == CACHE_NONE))
		cfg_error_at(lab->cfg, &args->member,
			     "member '%.60s' has no cache whose battery could fail", args->member);
	if (fault_has_controller(fault->kind))
		check_controller(lab, fault, args, member);
}

/* ---- the network, the target ---- */

static void check_digests(struct lab *lab, const struct fault_config *fault)
{
	const struct host_config *hosts = lab->hosts.items;

	for (size_t h = 0; h < lab->hosts.count; h++) {
		if (hosts[h].mpio.header_digest ||
		    (fault->host && hosts[h].name && strcmp(fault->host, hosts[h].name) != 0))
			continue;
		cfg_error_at(lab->cfg, &fault->at_ns,
			     "nobody would notice: host '%.60s' uses no digests", hosts[h].name);
		cfg_hint(lab->cfg, "give it mpio: {header-digest: true}");
		return;
	}
}

static void resolve_network(struct lab *lab, struct fault_config *fault,
			    const struct fault_args *args)
{
	fault->above_bytes = args->above_bytes;
	fault->delay_ns = args->delay_ns;
	fault->jitter_ns = args->jitter_ns;
	fault->loss = args->loss;
	fault->count = args->count;
	resolve_place(lab, fault, args);
	if (fault->kind == FAULT_DIGEST_CORRUPTION)
		check_digests(lab, fault);
	if (fault->kind == FAULT_PATH_SLOW && !args->delay_ns && !args->jitter_ns &&
	    args->loss <= 0 && cfg_valid(lab->cfg, &args->loss))
		cfg_error_at(lab->cfg, &args->delay_ns,
			     "a slow path needs some delay, jitter or loss");
}

/* A memory store dies with its process: everything read afterwards would be wrong. */
static void check_crash(struct lab *lab, const struct fault_config *fault)
{
	const struct pool_config *pools = lab->group.pools.items;

	for (size_t p = 0; p < lab->group.pools.count; p++) {
		const struct member_config *members = pools[p].members.items;

		for (size_t m = 0; m < pools[p].members.count; m++) {
			if (members[m].store_kind && strcmp(members[m].store_kind, "file") == 0)
				continue;
			cfg_error_at(lab->cfg, &fault->at_ns,
				     "member '%.60s' loses its data with the target",
				     members[m].name ? members[m].name : "");
			cfg_hint(lab->cfg, "give it store: {file: DIR}");
			return;
		}
	}
}

static void resolve_target(struct lab *lab, struct fault_config *fault,
			   const struct fault_args *args)
{
	const struct volume_config *volumes = lab->group.volumes.items;
	bool found = !args->volume;

	if (fault->kind == FAULT_TARGET_CRASH)
		check_crash(lab, fault);
	fault->user = args->user;
	fault->volume = args->volume;
	fault->transition_ns = args->transition_ns;
	if (fault->kind == FAULT_CHAP_SECRET && !lab->group.chap.secrets)
		cfg_error_at(lab->cfg, &fault->at_ns, "the group has no CHAP secrets to change");
	if (fault->kind != FAULT_ALUA_FLIP)
		return;
	if (lab->group.style != GROUP_STYLE_LUN)
		cfg_error_at(lab->cfg, &fault->at_ns,
			     "'alua-flip' is for style lun: portals of style equallogic are alike");
	for (size_t v = 0; v < lab->group.volumes.count && !found; v++)
		found = volumes[v].name && !strcmp(volumes[v].name, args->volume);
	if (!found)
		cfg_error_at(lab->cfg, &args->volume, "the group has no volume '%.60s'",
			     args->volume);
}

/* ---- the workload ---- */

/* What the workload itself says of it. */
static void check_with_workload(struct lab *lab, const struct fault_config *fault)
{
	const struct workload_ops *ops = lab->workload_ops;
	const struct workload_fault told = {.volume = fault->volume, .to = fault->to};
	struct err err = {0};

	if (!ops || !ops->check_fault || !fault->volume || cfg_error_count(lab->cfg) ||
	    ops->check_fault(lab->workload_config, &told, &err) == 0)
		return;
	cfg_error_raw(lab->cfg, &fault->raw[fault->kind], "%s", err.what);
	cfg_hint(lab->cfg, "%s", err.hint);
}

static void resolve_workload(struct lab *lab, struct fault_config *fault,
			     const struct fault_args *args)
{
	static const uint64_t dial[] = {0, 6, 12}; /* AutoDatabaseMountDial */

	fault->volume = args->volume;
	fault->to = args->to;
	fault->failover = args->mode == 1;
	fault->lost_logs_max = dial[args->dial];
	fault->rate_bytes = args->rate_bytes;
	if (lab->workload_ops && !lab->workload_ops->fault)
		cfg_error_at(lab->cfg, &fault->at_ns, "the workload has no copies of databases");
	check_with_workload(lab, fault);
}

/* ---- when ---- */

static void check_schedule(struct lab *lab, const struct fault_config *fault)
{
	bool lasts = cfg_given(lab->cfg, &fault->for_ns);
	bool repeats = cfg_given(lab->cfg, &fault->every_ns);
	const char *name = fault_kind_names[fault->kind];

	if (fault->kind == FAULT_PATH_RESET && lasts)
		cfg_error_at(lab->cfg, &fault->for_ns,
			     "'path-reset' is an instant and takes no 'for'; use 'path-down'");
	else if (fault_is_instant(fault->kind) && lasts)
		cfg_error_at(lab->cfg, &fault->for_ns, "'%s' is an instant and takes no 'for'",
			     name);
	else if (fault->kind == FAULT_RANDOM &&
		 (lasts || repeats || cfg_given(lab->cfg, &fault->times)))
		cfg_error_at(lab->cfg, &fault->at_ns,
			     "'random' has a schedule of its own: no 'for', 'every' or 'times' "
			     "beside it");
	else if (!repeats && cfg_given(lab->cfg, &fault->times))
		cfg_error_at(lab->cfg, &fault->times, "'times' needs 'every'");
	else if (repeats && !fault_is_instant(fault->kind) && !lasts)
		cfg_error_at(lab->cfg, &fault->every_ns,
			     "a fault that comes again must end: it needs a 'for'");
	else if (repeats && fault->for_ns >= fault->every_ns &&
		 cfg_valid(lab->cfg, &fault->every_ns) && cfg_valid(lab->cfg, &fault->for_ns))
		cfg_error_at(lab->cfg, &fault->for_ns,
			     "'for' is not shorter than 'every': the fault would never end");
}

static void resolve(struct lab *lab, struct fault_config *fault, const struct fault_args *args)
{
	if (is_of_one_path(fault->kind))
		resolve_path(lab, fault, args);
	else if (fault_is_of_network(fault->kind))
		resolve_network(lab, fault, args);
	else if (fault->kind == FAULT_PORTAL_DOWN || fault->kind == FAULT_PORTAL_SILENT)
		resolve_portal(lab, fault, args);
	else if (fault->kind >= FAULT_TARGET_CRASH && fault->kind <= FAULT_CHAP_SECRET)
		resolve_target(lab, fault, args);
	else if (fault->kind == FAULT_RANDOM)
		lab_check_random(lab, fault, args);
	else if (fault_is_of_workload(fault->kind))
		resolve_workload(lab, fault, args);
	else if (fault->kind != FAULT_ALL_PATHS_DOWN)
		resolve_member(lab, fault, args);
	if ((fault->kind == FAULT_ALL_PATHS_DOWN || fault->kind == FAULT_RANDOM) && args->host &&
	    find_host(lab, &args->host))
		fault->host = args->host;
}

static void check_fault(struct lab *lab, struct fault_config *fault)
{
	struct fault_args args = {.host = NULL};
	const struct cfg_raw *raw = fault_kind(lab, fault);

	fault->controller = -1;
	if (cfg_valid(lab->cfg, &fault->at_ns) && cfg_valid(lab->cfg, &lab->run.duration_ns) &&
	    fault->at_ns >= lab->run.duration_ns)
		cfg_error_at(lab->cfg, &fault->at_ns,
			     "the fault begins after the measured window ('duration')");
	if (!raw)
		return;
	if (!lab->has_group && !is_of_paths(fault->kind) && !fault_is_of_workload(fault->kind)) {
		cfg_error_raw(lab->cfg, raw,
			      "'%s' needs a group: the lab's own target carries it out",
			      fault_kind_names[fault->kind]);
		cfg_hint(lab->cfg, "faults of paths work against any target");
		return;
	}
	if (!lab->hosts.count &&
	    (fault_is_of_network(fault->kind) || fault->kind == FAULT_RANDOM)) {
		cfg_error_raw(lab->cfg, raw,
			      "'%s' is a fault of hosts' paths, and the lab has no hosts",
			      fault_kind_names[fault->kind]);
		cfg_hint(lab->cfg, "for initiators of others: portal-silent, portal-down, ...");
		return;
	}
	cfg_decode_raw(lab->cfg, raw, fault_schemas[fault->kind], &args);
	resolve(lab, fault, &args);
	check_schedule(lab, fault);
}

void lab_check_faults(struct lab *lab)
{
	struct fault_config *faults = lab->faults.items;

	for (size_t i = 0; i < lab->faults.count; i++)
		check_fault(lab, &faults[i]);
}
