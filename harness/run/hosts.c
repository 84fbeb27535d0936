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
#include "base/log.h"
#include "base/rng.h"
#include "initiator/mpio/host_load.h"
#include "initiator/net/link_watch.h"
#include "target/export.h"
#include "target/iscsi/secrets.h"

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

static void dial_through(struct path_config *path, struct relay_line *line)
{
	path->dial = line ? relay_dial : NULL;
	path->dial_arg = line;
}

int host_add_url_path(struct loop *loop, struct mpio *mpio, const struct mpio_config *config,
		      const char *initiator, const char *url, uint32_t isid_qualifier,
		      struct relay_line *line, struct err *err)
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
	dial_through(&path, line);
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

/* What the paths of a lab are made from. */
struct maker {
	struct loop *loop;
	const struct lab *lab;
	const struct relay_faults *relay;
	struct chap_secrets *secrets; /* NULL: no host has a CHAP user */
	struct hosts *hosts;
	/* of the host at hand */
	const struct host_config *host;
	char initiator[224];
	char password[CHAP_SECRET_MAX_BYTES + 1];
	uint32_t isid_qualifier;
};

static int add_group_path(struct maker *maker, const char *volume, struct mpio *mpio,
			  const char *portal, struct relay_line *line, struct err *err)
{
	const struct lab *lab = maker->lab;
	struct path_config path = {0};
	char iqn[224];

	export_iqn(iqn, sizeof iqn, (enum group_style)lab->group.style, lab->name, volume);
	mpio_path_config(&maker->host->mpio, &path);
	path.portal = portal;
	path.target = iqn;
	path.lun = lun_of(lab, volume);
	path.initiator_name = maker->initiator;
	path.isid_qualifier = maker->isid_qualifier++;
	path.user = maker->host->chap_user;
	path.password = path.user ? maker->password : NULL;
	dial_through(&path, line);
	return add_path(maker->loop, mpio, &path, err);
}

static int add_device(struct maker *maker, const char *volume, struct err *err)
{
	const struct host_config *host = maker->host;
	struct run_device *device = &maker->hosts->devices[maker->hosts->count];
	struct mpio_config config;
	struct lab_path paths[LAB_MAX_PATHS];
	char name[200];
	int count, r;

	snprintf(name, sizeof name, "%s/%s", host->name, volume);
	mpio_config_for(&host->mpio, volume, &config);
	r = mpio_new(maker->loop, &config, name, maker->lab->seed ^ rng_stream_of(name),
		     &device->mpio);
	if (r < 0)
		return err_set(err, r, "cannot make a device for %s: %s", name, strerror(-r));
	maker->hosts->count++;
	mpio_watch_links(device->mpio, maker->hosts->links);
	mpio_share_loads(device->mpio, maker->hosts->loads[maker->hosts->load_count - 1]);
	device->host = host->name;
	device->volume = volume;
	device->known_zero = maker->lab->has_group && lab_volume_is_fresh(maker->lab, volume);
	count = lab_paths_of(maker->lab, host, volume, paths);
	if (count <= 0)
		return err_set(err, count < 0 ? count : -ENOENT, "%s has no paths", name);
	for (int i = 0; r == 0 && i < count; i++) {
		struct relay_line *line =
		    relay_faults_line(maker->relay, host->name, volume, (unsigned)i);

		r = paths[i].url
			? host_add_url_path(maker->loop, device->mpio, &host->mpio,
					    maker->initiator, paths[i].url, maker->isid_qualifier++,
					    line, err)
			: add_group_path(maker, volume, device->mpio, paths[i].portal, line, err);
	}
	return r;
}

/* Who the host is to a target that asks. */
static int take_secret(struct maker *maker, struct err *err)
{
	const struct chap_config *chap = &maker->lab->group.chap;
	const char *user = maker->host->chap_user;
	const struct chap_secret *secret;
	int r = 0;

	if (!user)
		return 0;
	if (!maker->secrets)
		r = chap_secrets_load(chap->secrets, &maker->secrets, err);
	if (r < 0)
		return r;
	secret = chap_secrets_find(maker->secrets, user);
	if (!secret)
		return err_set(err, -EINVAL, "CHAP secrets: %s has no line for '%s' of host '%s'",
			       chap->secrets, user, maker->host->name);
	memcpy(maker->password, secret->bytes, secret->size);
	maker->password[secret->size] = '\0';
	return 0;
}

static int add_host(struct maker *maker, const struct host_config *host, struct err *err)
{
	const char *volume;
	int r;

	maker->host = host;
	maker->isid_qualifier = 1;
	snprintf(maker->initiator, sizeof maker->initiator, HOST_IQN_PREFIX "%s", host->name);
	r = take_secret(maker, err);
	if (r == 0)
		r = host_load_new(&maker->hosts->loads[maker->hosts->load_count++]);
	for (size_t v = 0; r == 0 && (volume = lab_host_volume(host, v)); v++)
		r = add_device(maker, volume, err);
	explicit_bzero(maker->password, sizeof maker->password);
	return r;
}

int hosts_open(struct loop *loop, const struct lab *lab, const struct relay_faults *relay,
	       struct hosts *ret_hosts, struct err *err)
{
	struct maker maker = {.loop = loop, .lab = lab, .relay = relay, .hosts = ret_hosts};
	const struct host_config *configs = lab->hosts.items;
	size_t count = 0;
	int r = 0;

	*ret_hosts = (struct hosts){0};
	for (size_t h = 0; h < lab->hosts.count; h++)
		count += configs[h].volumes.count + configs[h].luns.count;
	ret_hosts->devices = calloc(count + 1, sizeof *ret_hosts->devices);
	ret_hosts->loads = calloc(lab->hosts.count + 1, sizeof(struct host_load *));
	if (!ret_hosts->devices || !ret_hosts->loads)
		return err_set(err, -ENOMEM, "no memory for %zu volumes", count);
	if (link_watch_new(loop, &ret_hosts->links) < 0)
		log_debug("no netlink: lost links are found by timeouts only");
	for (size_t h = 0; r == 0 && h < lab->hosts.count; h++)
		r = add_host(&maker, &configs[h], err);
	chap_secrets_free(maker.secrets);
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
	for (size_t i = 0; i < hosts->load_count; i++)
		host_load_free(hosts->loads[i]);
	link_watch_free(hosts->links);
	free(hosts->loads);
	free(hosts->devices);
	*hosts = (struct hosts){0};
}
