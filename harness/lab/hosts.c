/* SPDX-License-Identifier: MIT
 *
 * Hosts and their paths: which volumes a host may use, and in which order its paths are counted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/lab/lab_impl.h"

enum { MAX_HOSTS = 64, MAX_DEVICES = 256 };

const struct host_config *lab_find_host(const struct lab *lab, const char *name)
{
	const struct host_config *hosts = lab->hosts.items;
	for (size_t i = 0; i < lab->hosts.count; i++)
		if (hosts[i].name && !strcmp(hosts[i].name, name))
			return &hosts[i];
	return NULL;
}

const char *lab_host_volume(const struct host_config *host, size_t index)
{
	const char *const *volumes = host->volumes.items;
	const struct lun_config *luns = host->luns.items;
	if (index < host->volumes.count)
		return volumes[index];
	index -= host->volumes.count;
	return index < host->luns.count ? luns[index].name : NULL;
}

static const struct volume_config *find_volume(const struct lab *lab, const char *name)
{
	const struct volume_config *volumes = lab->group.volumes.items;
	for (size_t i = 0; i < lab->group.volumes.count; i++)
		if (volumes[i].name && !strcmp(volumes[i].name, name))
			return &volumes[i];
	return NULL;
}

bool lab_volume_is_fresh(const struct lab *lab, const char *volume)
{
	const struct volume_config *volumes = lab->group.volumes.items;
	const struct pool_config *pools = lab->group.pools.items;
	const char *pool = NULL;
	bool fresh = false;

	for (size_t i = 0; i < lab->group.volumes.count; i++)
		if (strcmp(volumes[i].name, volume) == 0)
			pool = volumes[i].pool;
	for (size_t i = 0; pool && i < lab->group.pools.count; i++) {
		const struct member_config *members = pools[i].members.items;

		if (strcmp(pools[i].name, pool) != 0)
			continue;
		fresh = pools[i].members.count > 0;
		for (size_t m = 0; m < pools[i].members.count; m++)
			fresh = fresh && members[m].store_kind &&
				strcmp(members[m].store_kind, "file") != 0;
	}
	return fresh;
}

static int add_path(struct lab_path *paths, int count, const char *portal, const char *url,
		    int member)
{
	if (count == LAB_MAX_PATHS)
		return -E2BIG;
	(void)snprintf(paths[count].portal, sizeof paths[count].portal, "%s", portal);
	paths[count].url = url;
	paths[count].member = member;
	return count + 1;
}

static int group_paths(const struct lab *lab, const struct volume_config *volume,
		       struct lab_path *paths)
{
	const struct pool_config *pools = lab->group.pools.items;
	int count = 0;

	if (lab->group.style == GROUP_STYLE_LUN && lab->group.portal.set)
		count = add_path(paths, count, lab->group.portal.text, NULL, -1);
	for (size_t p = 0; p < lab->group.pools.count; p++) {
		const struct member_config *members = pools[p].members.items;
		if (!pools[p].name || !volume->pool || strcmp(pools[p].name, volume->pool))
			continue;
		for (size_t m = 0; m < pools[p].members.count; m++) {
			const struct cfg_portal *portals = members[m].portals.items;
			for (size_t i = 0; i < members[m].portals.count && count >= 0; i++)
				if (portals[i].set)
					count =
					    add_path(paths, count, portals[i].text, NULL, (int)m);
		}
		break;
	}
	return count;
}

static int limited_paths(const struct lab *lab, const struct host_config *host,
			 const struct volume_config *volume, struct lab_path *paths)
{
	const struct volume_config *volumes = lab->group.volumes.items;
	int count = group_paths(lab, volume, paths);

	return lab_limit_sessions(&host->mpio, (size_t)(volume - volumes), paths, count);
}

static int lun_paths(const struct lun_config *lun, struct lab_path *paths)
{
	const char *const *urls = lun->urls.items;
	int count = 0;
	for (size_t i = 0; i < lun->urls.count && count >= 0; i++) {
		struct path_url url = {.lun = 0};
		if (path_url_parse(urls[i], &url, NULL) == 0)
			count = add_path(paths, count, url.portal, urls[i], -1);
	}
	return count;
}

int lab_paths_of(const struct lab *lab, const struct host_config *host, const char *volume,
		 struct lab_path paths[LAB_MAX_PATHS])
{
	const char *const *volumes = host->volumes.items;
	const struct lun_config *luns = host->luns.items;

	for (size_t i = 0; i < host->volumes.count; i++) {
		const struct volume_config *config = find_volume(lab, volume);
		if (!strcmp(volumes[i], volume))
			return config ? limited_paths(lab, host, config, paths) : -ENOENT;
	}
	for (size_t i = 0; i < host->luns.count; i++)
		if (luns[i].name && !strcmp(luns[i].name, volume))
			return lun_paths(&luns[i], paths);
	return -ENOENT;
}

bool lab_volume_is_used(const struct lab *lab, const char *volume)
{
	const struct host_config *hosts = lab->hosts.items;

	for (size_t h = 0; h < lab->hosts.count; h++) {
		const char *const *volumes = hosts[h].volumes.items;

		for (size_t v = 0; v < hosts[h].volumes.count; v++)
			if (!strcmp(volumes[v], volume))
				return true;
	}
	return false;
}

/* ---- checks ---- */

/* Two writers without a cluster between them would corrupt a volume: it has one host. */
static void check_owner(struct lab *lab, size_t host_index, size_t volume_index)
{
	const struct host_config *hosts = lab->hosts.items;
	const char *const *mine = hosts[host_index].volumes.items;
	const char *volume = mine[volume_index];

	for (size_t h = 0; h <= host_index; h++) {
		const char *const *theirs = hosts[h].volumes.items;
		size_t until = h == host_index ? volume_index : hosts[h].volumes.count;
		for (size_t v = 0; v < until; v++) {
			if (strcmp(theirs[v], volume))
				continue;
			cfg_error_at(lab->cfg, &mine[volume_index],
				     "volume '%.60s' is used by host '%.60s' already", volume,
				     hosts[h].name ? hosts[h].name : "");
			cfg_hint(lab->cfg, "two writers would corrupt it; give each its own");
			return;
		}
	}
}

static void unknown_volume(struct lab *lab, const char *const *volume)
{
	const struct volume_config *volumes = lab->group.volumes.items;
	const char *names[MAX_DEVICES + 1];
	size_t count = 0;

	for (size_t i = 0; i < lab->group.volumes.count && count < MAX_DEVICES; i++)
		if (volumes[i].name)
			names[count++] = volumes[i].name;
	names[count] = NULL;
	cfg_error_at(lab->cfg, volume, "the group has no volume '%.60s'", *volume);
	const char *near = cfg_nearest(*volume, names);
	if (near)
		cfg_hint(lab->cfg, "did you mean '%s'?", near);
}

static void check_volumes(struct lab *lab, size_t host_index)
{
	const struct host_config *host =
	    &((const struct host_config *)lab->hosts.items)[host_index];
	const char *const *volumes = host->volumes.items;

	if (host->volumes.count && !lab->has_group) {
		cfg_error_at(lab->cfg, &host->volumes,
			     "the lab has no group whose volumes a host could use");
		cfg_hint(lab->cfg, "add a group, or give the host luns with urls");
		return;
	}
	for (size_t v = 0; v < host->volumes.count; v++) {
		if (!*volumes[v])
			continue; /* reported by the decoder */
		if (!find_volume(lab, volumes[v]))
			unknown_volume(lab, &volumes[v]);
		else
			check_owner(lab, host_index, v);
	}
}

/* True when another lun before this one, of any host, is the same logical unit. */
static bool lun_seen(const struct lab *lab, const struct lun_config *lun,
		     const struct path_url *url)
{
	const struct host_config *hosts = lab->hosts.items;
	for (size_t h = 0; h < lab->hosts.count; h++) {
		const struct lun_config *luns = hosts[h].luns.items;
		for (size_t l = 0; l < hosts[h].luns.count; l++) {
			const char *const *urls = luns[l].urls.items;
			struct path_url other = {.lun = 0};
			if (&luns[l] == lun)
				return false;
			if (luns[l].urls.count && !path_url_parse(urls[0], &other, NULL) &&
			    !strcmp(other.target, url->target) && other.lun == url->lun)
				return true;
		}
	}
	return false;
}

static void check_lun(struct lab *lab, const struct host_config *host, const struct lun_config *lun)
{
	const char *const *urls = lun->urls.items;

	cfg_check_name(lab->cfg, &lun->name);
	for (size_t i = 0; lun->name; i++) {
		const char *other = lab_host_volume(host, i);
		if (!other || other == lun->name)
			break;
		if (!strcmp(other, lun->name)) {
			cfg_error_at(lab->cfg, &lun->name, "the host has a volume '%.60s' already",
				     lun->name);
			break;
		}
	}
	if (!lun->urls.count && cfg_valid(lab->cfg, &lun->urls))
		cfg_error_at(lab->cfg, &lun->urls, "a lun needs at least one url");
	for (size_t i = 0; i < lun->urls.count; i++) {
		struct path_url url = {.lun = 0};
		struct err err = {0};
		if (!*urls[i])
			continue;
		if (path_url_parse(urls[i], &url, &err)) {
			cfg_error_at(lab->cfg, &urls[i], "%s", err.what);
			if (err.hint[0])
				cfg_hint(lab->cfg, "%s", err.hint);
		} else if (!i && lun_seen(lab, lun, &url)) {
			cfg_error_at(lab->cfg, &urls[i],
				     "another lun of this lab is the same logical unit");
			cfg_hint(lab->cfg, "two writers would corrupt it; paths of one lun belong "
					   "into one list of urls");
		}
	}
}

static void check_paths(struct lab *lab, const struct host_config *host, struct lab_path *paths)
{
	const struct mpio_config *mpio = &host->mpio;
	const char *volume;

	for (size_t i = 0; (volume = lab_host_volume(host, i)); i++) {
		int count = lab_paths_of(lab, host, volume, paths);
		if (count == -E2BIG)
			cfg_error_at(lab->cfg, &host->name, "volume '%.60s' has more than %d paths",
				     volume, LAB_MAX_PATHS);
		else if (count <= 0 ||
			 mpio_policy_check_paths(lab->cfg, mpio, volume, (unsigned)count))
			continue;
		break;
	}
}

/* Policies of single volumes, which must be the host's. */
static void check_overrides(struct lab *lab, const struct host_config *host)
{
	const struct mpio_override *overrides = host->mpio.overrides.items;
	const char *names[MAX_DEVICES + 1] = {NULL};

	for (size_t v = 0; v < MAX_DEVICES && lab_host_volume(host, v); v++)
		names[v] = lab_host_volume(host, v);
	for (size_t i = 0; i < host->mpio.overrides.count; i++) {
		const char *volume = overrides[i].volume, *near;
		size_t v = 0;

		while (volume && names[v] && strcmp(names[v], volume) != 0)
			v++;
		if (!volume || names[v])
			continue;
		cfg_error_at(lab->cfg, &overrides[i].volume, "the host has no volume '%.60s'",
			     volume);
		near = cfg_nearest(volume, names);
		if (near)
			cfg_hint(lab->cfg, "did you mean '%s'?", near);
	}
}

static void check_mpio(struct lab *lab, struct host_config *host)
{
	struct mpio_config *mpio = &host->mpio;
	const uint64_t *limit =
	    mpio->volume_sessions ? &mpio->volume_sessions : &mpio->slice_sessions;

	if (*limit && (!lab->has_group || lab->group.style == GROUP_STYLE_LUN)) {
		cfg_error_at(lab->cfg, limit, "sessions are limited in style equallogic only");
		cfg_hint(lab->cfg, "elsewhere every portal or url listed is one path");
	}
	check_overrides(lab, host);
	mpio_policy_check(lab->cfg, mpio);
}

static void check_host(struct lab *lab, size_t index, struct lab_path *paths)
{
	struct host_config *hosts = lab->hosts.items, *host = &hosts[index];
	const struct lun_config *luns = host->luns.items;

	cfg_check_name(lab->cfg, &host->name);
	for (size_t h = 0; host->name && h < index; h++)
		if (hosts[h].name && !strcmp(hosts[h].name, host->name)) {
			cfg_error_at(lab->cfg, &host->name, "there is a host '%.60s' already",
				     host->name);
			break;
		}
	if (host->volumes.count + host->luns.count > MAX_DEVICES) {
		cfg_error_at(lab->cfg, &host->name, "a host has at most %d volumes", MAX_DEVICES);
		return;
	}
	if (!host->volumes.count && !host->luns.count && cfg_valid(lab->cfg, &host->volumes))
		cfg_error_at(lab->cfg, &host->name, "host '%.60s' has neither volumes nor luns",
			     host->name ? host->name : "");
	if (cfg_valid(lab->cfg, &host->mpio.reconnect_min_ns) &&
	    host->mpio.reconnect_min_ns > host->mpio.reconnect_max_ns)
		cfg_error_at(lab->cfg, &host->mpio.reconnect_min_ns,
			     "'reconnect-min' is longer than 'reconnect-max'");
	if (host->chap_user && !lab->group.chap.secrets)
		cfg_error_at(lab->cfg, &host->chap_user,
			     "'chap-user' is one of group.chap.secrets, and there are none");
	check_mpio(lab, host);
	mpio_config_check(lab->cfg, &host->mpio);
	check_volumes(lab, index);
	for (size_t l = 0; l < host->luns.count; l++)
		check_lun(lab, host, &luns[l]);
	check_paths(lab, host, paths);
}

void lab_check_hosts(struct lab *lab)
{
	if (lab->hosts.count > MAX_HOSTS) {
		cfg_error_at(lab->cfg, &lab->hosts, "a lab has at most %d hosts", MAX_HOSTS);
		return;
	}
	struct lab_path paths[LAB_MAX_PATHS];
	for (size_t h = 0; h < lab->hosts.count; h++)
		check_host(lab, h, paths);
}
