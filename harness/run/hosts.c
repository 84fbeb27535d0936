/* SPDX-License-Identifier: MIT
 *
 * Devices and paths of the lab's hosts.
 */
#include "harness/run/hosts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "target/export.h"

/* All paths of a volume should be up before the load begins; one that is not within this time is
 * left to come later. */
#define SETTLE_NS (10 * NS_PER_S)

static int add_path(struct loop *loop, struct mpio *mpio, const struct path_config *config,
		    struct err *err)
{
	struct path *path;
	int r = path_new_iscsi(loop, config, &path);

	if (r == 0) {
		r = mpio_add_path(mpio, path);
		if (r < 0)
			path_free(path);
	}
	if (r < 0)
		err_set(err, r, "cannot make a path to %s: %s", config->portal, strerror(-r));
	return r;
}

int host_add_url_path(struct loop *loop, struct mpio *mpio, const struct mpio_config *config,
		      const char *initiator, const char *url, uint32_t isid_qualifier,
		      struct err *err)
{
	struct path_config path = {0};
	struct path_url parts;
	int r = path_url_parse(url, &parts, err);

	if (r < 0)
		return r;
	mpio_path_config(config, &path);
	path.portal = parts.portal;
	path.target = parts.target;
	path.lun = parts.lun;
	path.user = parts.user[0] ? parts.user : NULL;
	path.password = parts.password[0] ? parts.password : NULL;
	path.initiator_name = initiator;
	path.isid_qualifier = isid_qualifier;
	return add_path(loop, mpio, &path, err);
}

static unsigned lun_of(const struct lab *lab, const char *volume)
{
	const struct volume_config *volumes = lab->group.volumes.items;

	if (lab->group.style != GROUP_STYLE_LUN)
		return 0;
	for (unsigned i = 0; i < lab->group.volumes.count; i++)
		if (strcmp(volumes[i].name, volume) == 0)
			return i;
	return 0;
}

static int add_group_path(struct loop *loop, const struct lab *lab, const struct host_config *host,
			  const char *volume, struct mpio *mpio, const char *initiator,
			  const char *portal, uint32_t isid_qualifier, struct err *err)
{
	struct path_config path = {0};
	char iqn[224];

	export_iqn(iqn, sizeof iqn, (enum group_style)lab->group.style, lab->name, volume);
	mpio_path_config(&host->mpio, &path);
	path.portal = portal;
	path.target = iqn;
	path.lun = lun_of(lab, volume);
	path.initiator_name = initiator;
	path.isid_qualifier = isid_qualifier;
	return add_path(loop, mpio, &path, err);
}

/* Never-written parts of a volume read as zeros when nothing is older than this run: when every
 * member that may hold a part of it has its store in memory. */
static bool is_fresh(const struct lab *lab, const char *volume)
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
				strcmp(members[m].store_kind, "memory") == 0;
	}
	return fresh;
}

static int add_device(struct loop *loop, const struct lab *lab, const struct host_config *host,
		      const char *volume, uint32_t *isid_qualifier, struct hosts *hosts,
		      struct err *err)
{
	struct run_device *device = &hosts->devices[hosts->count];
	struct lab_path paths[LAB_MAX_PATHS];
	char initiator[224], name[200];
	int count, r;

	snprintf(name, sizeof name, "%s/%s", host->name, volume);
	snprintf(initiator, sizeof initiator, HOST_IQN_PREFIX "%s", host->name);
	r = mpio_new(loop, &host->mpio, name, lab->seed ^ rng_stream_of(name), &device->mpio);
	if (r < 0)
		return err_set(err, r, "cannot make a device for %s: %s", name, strerror(-r));
	hosts->count++;
	device->host = host->name;
	device->volume = volume;
	device->known_zero = lab->has_group && is_fresh(lab, volume);
	count = lab_paths_of(lab, host, volume, paths);
	if (count <= 0)
		return err_set(err, count < 0 ? count : -ENOENT, "%s has no paths", name);
	for (int i = 0; r == 0 && i < count; i++) {
		uint32_t qualifier = (*isid_qualifier)++;

		r = paths[i].url ? host_add_url_path(loop, device->mpio, &host->mpio, initiator,
						     paths[i].url, qualifier, err)
				 : add_group_path(loop, lab, host, volume, device->mpio, initiator,
						  paths[i].portal, qualifier, err);
	}
	return r;
}

int hosts_open(struct loop *loop, const struct lab *lab, struct hosts *ret_hosts, struct err *err)
{
	const struct host_config *configs = lab->hosts.items;
	size_t count = 0;
	int r = 0;

	*ret_hosts = (struct hosts){0};
	for (size_t h = 0; h < lab->hosts.count; h++)
		count += configs[h].volumes.count + configs[h].luns.count;
	ret_hosts->devices = calloc(count + 1, sizeof *ret_hosts->devices);
	if (!ret_hosts->devices)
		return err_set(err, -ENOMEM, "no memory for %zu volumes", count);
	for (size_t h = 0; r == 0 && h < lab->hosts.count; h++) {
		uint32_t isid_qualifier = 1;
		const char *volume;

		for (size_t v = 0; r == 0 && (volume = lab_host_volume(&configs[h], v)); v++)
			r = add_device(loop, lab, &configs[h], volume, &isid_qualifier, ret_hosts,
				       err);
	}
	return r;
}

static void device_ready(void *arg, int status, const char *why)
{
	struct hosts *hosts = arg;

	if (status < 0 && hosts->status == 0) {
		hosts->status = status;
		snprintf(hosts->why, sizeof hosts->why, "%s",
			 why && *why ? why : strerror(-status));
	}
	if (--hosts->waited == 0)
		hosts->ready(hosts->arg);
}

void hosts_connect(struct hosts *hosts, loop_fn ready, void *arg)
{
	hosts->ready = ready;
	hosts->arg = arg;
	hosts->waited = hosts->count;
	for (unsigned i = 0; i < hosts->count; i++)
		mpio_start(hosts->devices[i].mpio, SETTLE_NS, device_ready, hosts);
}

void hosts_close(struct hosts *hosts)
{
	for (unsigned i = 0; i < hosts->count; i++)
		mpio_free(hosts->devices[i].mpio);
	free(hosts->devices);
	*hosts = (struct hosts){0};
}
