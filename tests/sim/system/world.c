/* SPDX-License-Identifier: MIT
 *
 * A whole system of one seed: built, connected, watched and taken down.
 */
#include "tests/sim/system/world.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "target/iscsi/server.h"
#include "tests/sim/array/crash.h"

#define SETTLE_NS (60 * NS_PER_S)

void world_fault(struct world *world, const char *format, ...)
{
	va_list args;

	if (world->fault[0])
		return; /* the first one counts */
	va_start(args, format);
	(void)vsnprintf(world->fault, sizeof world->fault, format, args);
	va_end(args);
	world_trace(world, "FAULT %s", world->fault);
}

void world_trace(struct world *world, const char *format, ...)
{
	va_list args;

	if (!world->trace)
		return;
	printf("%12.6f ", (double)loop_now_ns(world->loop) / (double)NS_PER_S);
	va_start(args, format);
	(void)vprintf(format, args);
	va_end(args);
	putchar('\n');
}

uint64_t world_pick(struct world *world, uint64_t least, uint64_t most)
{
	return least + rng_below(&world->rng, most - least + 1);
}

void world_note(struct world *world, uint64_t what)
{
	world->hash =
	    (world->hash ^ what ^ loop_now_ns(world->loop)) * UINT64_C(0x9e3779b97f4a7c15);
}

/* From the moment of a crash on nobody hears of the target any more. */
static void on_crash(void *arg)
{
	struct world *world = arg;

	for (unsigned i = 0; i < world->link_count; i++)
		sim_link_stall_lane(world->links[i].link, SIM_TO_INITIATOR, true);
}

/* The process is gone: its connections are reset. */
static void take_down(struct world *world)
{
	world_trace(world, "THE TARGET HAS CRASHED");
	world->crashes++;
	for (unsigned i = 0; i < world->link_count; i++)
		sim_link_cut(world->links[i].link, true);
	world_stop_target(world);
	crash_recover();
	for (unsigned i = 0; i < world->link_count; i++) {
		sim_link_stall(world->links[i].link, false);
		sim_link_cut(world->links[i].link, false);
	}
}

void world_pass(struct world *world, uint64_t ns)
{
	(void)loop_run_until(world->loop, loop_now_ns(world->loop) + ns);
	if (world->dir[0] && crash_happened())
		take_down(world);
}

/* ---- the target ---- */

static struct iscsi_portal *portal_at(struct iscsi_server *server, const char *address)
{
	for (size_t i = 0; i < iscsi_server_portal_count(server); i++) {
		struct iscsi_portal *portal = iscsi_server_portal(server, i);

		if (strcmp(iscsi_portal_config(portal)->address.text, address) == 0)
			return portal;
	}
	return NULL;
}

static void portal_address(unsigned portal, char *out, size_t size)
{
	snprintf(out, size, "127.0.0.1:%u", 3261 + portal);
}

void world_lead(struct world *world, struct net_link *at, bool impostor)
{
	struct iscsi_server *server = NULL;
	char address[32];

	portal_address(at->portal, address, sizeof address);
	at->impostor = impostor && world->impostor.server;
	at->led_ns = loop_now_ns(world->loop);
	if (world->target)
		server = at->impostor ? world->impostor.server : target_server(world->target);
	sim_link_lead_to(at->link, server ? portal_at(server, address) : NULL);
}

/* The same names and ports, but each logical unit number is another volume's. */
static bool open_impostor(struct world *world)
{
	const struct exports *exports = target_exports(world->target);
	struct iscsi_server *real = target_server(world->target), *server;
	size_t volumes = world->lab->group.volumes.count;

	if (volumes < 2)
		return true;
	server = iscsi_server_new(world->loop, target_buffers(world->target));
	if (!server)
		return false;
	world->impostor.server = server;
	for (size_t i = 0; i < exports->count; i++) {
		const char *name = scsi_target_name(exports->targets[i]);
		struct scsi_target *target = scsi_target_new(exports->device, name);
		size_t luns = exports->style == GROUP_STYLE_LUN ? volumes : 1;

		if (!target || iscsi_server_add_target(server, target) < 0)
			return false;
		world->impostor.targets[i] = target;
		for (size_t lun = 0; lun < luns; lun++) {
			struct volume *other =
			    group_volume(target_group(world->target), (i + lun + 1) % volumes);

			if (scsi_target_add_lun(target, (unsigned)lun,
						scsi_device_add(exports->device, other)) < 0)
				return false;
		}
	}
	for (size_t i = 0; i < iscsi_server_portal_count(real); i++) {
		struct iscsi_portal *portal;

		if (iscsi_server_add_portal(server, &iscsi_server_portal(real, i)->config,
					    &portal) < 0)
			return false;
	}
	return true;
}

static void close_impostor(struct world *world)
{
	struct impostor *impostor = &world->impostor;

	iscsi_server_free(impostor->server);
	for (unsigned i = 0; i < WORLD_VOLUMES; i++)
		scsi_target_free(impostor->targets[i]);
	*impostor = (struct impostor){.server = NULL};
}

void world_stop_target(struct world *world)
{
	struct target *target = world->target;

	world->target = NULL;
	for (unsigned i = 0; i < world->link_count; i++)
		world_lead(world, &world->links[i], false);
	close_impostor(world);
	target_stop(target);
}

bool world_start_target(struct world *world)
{
	const struct lab *lab = world->lab;
	struct err err = {0};

	crash_disarm();
	if (crash_happened()) /* in the middle of its orderly end */
		crash_recover();
	if (target_start_inside(world->loop, &lab->group, lab->name, lab->seed, &world->target,
				&err) < 0) {
		world_fault(world, "the target does not start: %s", err.what);
		return false;
	}
	if (!open_impostor(world)) {
		world_fault(world, "no memory for a second target");
		return false;
	}
	for (unsigned i = 0; i < world->link_count; i++)
		world_lead(world, &world->links[i], false);
	return true;
}

/* ---- hosts ---- */

static void on_event(void *arg, const struct mpio_event *event)
{
	struct device *device = arg;
	struct world *world = device->world;
	const struct net_link *link = device->links[event->path];

	world_trace(world, "device %u path %u: %s -> %s, %u reissued: %s", device->index,
		    event->path, mpio_path_state_names[event->from],
		    mpio_path_state_names[event->to], event->reissued, event->why);
	world_note(world, device->index * 4096 + event->path * 64 + event->to * 8 + event->from);
	if (mpio_path_usable(event->from) && !mpio_path_usable(event->to))
		world->losses++;
	/* At the very instant of the change it may still be the right unit's answer. */
	if (!mpio_path_usable(event->from) && mpio_path_usable(event->to) && link->impostor &&
	    event->at_ns > link->led_ns)
		world_fault(world, "device %u: path %u leads to another unit and is reported %s",
			    device->index, event->path, mpio_path_state_names[event->to]);
}

static void on_ready(void *arg, int status, const char *why)
{
	struct device *device = arg;

	device->ready = status;
	if (status)
		world_fault(device->world, "device %u does not connect: %s", device->index,
			    why ? why : "");
}

static struct net_link *link_of(struct world *world, unsigned host, unsigned portal)
{
	for (unsigned i = 0; i < world->link_count; i++)
		if (world->links[i].host == host && world->links[i].portal == portal)
			return &world->links[i];
	return NULL;
}

bool world_add_link(struct world *world, unsigned host, unsigned portal)
{
	struct sim_link_config config = {
	    .delay_ns = world_pick(world, 20, 500) * NS_PER_US,
	    .jitter_ns = world_pick(world, 0, 200) * NS_PER_US,
	    .rate_bytes_per_s = world_pick(world, 0, 1) ? 125000000 : 0,
	    .loss = world_pick(world, 0, 3) ? 0 : 0.001,
	    .life_ns = world->life_ns,
	    .seed = world->seed * 16 + world->link_count,
	};
	struct net_link *link = &world->links[world->link_count];

	link->host = host;
	link->portal = portal;
	if (sim_link_new(world->loop, &config, NULL, &link->link) < 0)
		return false;
	world->link_count++;
	world_lead(world, link, false);
	return true;
}

static bool add_path(struct device *device, unsigned path, unsigned portal)
{
	struct world *world = device->world;
	const struct volume_config *volumes = world->lab->group.volumes.items;
	const char *volume = volumes[device->volume].name;
	struct wrap *wrap = &device->wraps[path];
	struct path_config config = {.lun = 0};
	char address[32], host[64];
	struct scsi_target *target;
	struct path *made;

	target = exports_find(target_exports(world->target), target_group(world->target),
			      world->lab->name, volume, &config.lun);
	portal_address(portal, address, sizeof address);
	snprintf(host, sizeof host, "iqn.2026-11.test.sanlab:host:h%u", device->host + 1);
	mpio_path_config(&device->config, &config);
	config.portal = address;
	config.target = scsi_target_name(target);
	config.initiator_name = host;
	config.isid_qualifier = path + 1;
	device->links[path] = link_of(world, device->host, portal);
	/* In style lun the devices of a host share a target: an I_T nexus each. */
	config.isid_qualifier += device->index * 100;
	if (path_new_sim(world->loop, &config, device->links[path]->link, &made) < 0)
		return false;
	wrap_begin(wrap, made, world->mutant, &world->trouble);
	if (mpio_add_path(device->mpio, made) < 0)
		return false;
	wrap_events(wrap);
	device->path_count++;
	return true;
}

static bool add_device(struct world *world, unsigned host, unsigned volume, bool second)
{
	const struct host_config *hosts = world->lab->hosts.items;
	struct device *device = &world->devices[world->device_count];
	char name[32];

	device->world = world;
	device->index = world->device_count;
	device->host = host;
	device->volume = volume;
	device->first_byte = second ? WORLD_SHARED_BYTES : 0;
	device->ready = 1;
	device_shape(device, &hosts[0].mpio);
	snprintf(name, sizeof name, "h%uv%u", host + 1, volume + 1);
	if (!load_init(device) || mpio_new(world->loop, &device->config, name,
					   world->seed + device->index, &device->mpio) < 0)
		return false;
	world->device_count++;
	mpio_share_loads(device->mpio, world->loads[host]);
	mpio_on_event(device->mpio, on_event, device);
	for (unsigned i = 0; i < world->portal_count; i++)
		if (!add_path(device, i, i))
			return false;
	return true;
}

/* Volumes take turns; the first one may be used by both hosts, each in its place. */
static bool add_hosts(struct world *world)
{
	unsigned hosts = (unsigned)world_pick(world, 1, WORLD_HOSTS);
	unsigned volumes = (unsigned)world->lab->group.volumes.count;

	for (unsigned h = 0; h < hosts; h++)
		if (host_load_new(&world->loads[h]) < 0)
			return false;
	for (unsigned h = 0; h < hosts; h++)
		for (unsigned p = 0; p < world->portal_count; p++)
			if (!world_add_link(world, h, p))
				return false;
	for (unsigned v = 0; v < volumes; v++)
		if (!add_device(world, v % hosts, v, false))
			return false;
	return hosts == 1 || (volumes > 1 && world_pick(world, 0, 1)) ||
	       add_device(world, 1, 0, true);
}

bool world_make(struct world *world, uint64_t seed, enum wrap_mutant mutant, const char *parent)
{
	world->seed = seed;
	world->mutant = mutant;
	world->next_id = 1;
	rng_init(&world->rng, seed, rng_stream_of("system"));
	rng_init(&world->trouble.rng, seed, rng_stream_of("trouble"));
	/* Mutants of the fence show best where bytes are kept for long. */
	if (world_pick(world, 0, 2) && mutant == WRAP_NONE)
		world->life_ns = world_pick(world, 100, 2000) * NS_PER_MS;
	if (world_pick(world, 0, 3) == 0) {
		snprintf(world->dir, sizeof world->dir, "%s/system-%llx-%d", parent,
			 (unsigned long long)seed, (int)getpid());
		if (mkdir(world->dir, 0700))
			return false;
		crash_begin(world->dir, seed, false, MUTANT_NONE);
		crash_tell(on_crash, world);
	}
	return loop_new_virtual(0, &world->loop) == 0 && world_shape(world) &&
	       world_start_target(world) && add_hosts(world);
}

bool world_connect(struct world *world)
{
	bool waiting = true;

	for (unsigned i = 0; i < world->device_count; i++)
		mpio_start(world->devices[i].mpio, SETTLE_NS, on_ready, &world->devices[i]);
	for (uint64_t at = 0; waiting && at <= SETTLE_NS; at += NS_PER_S / 10) {
		world_pass(world, NS_PER_S / 10);
		waiting = false;
		for (unsigned i = 0; i < world->device_count; i++)
			waiting |= world->devices[i].ready > 0;
	}
	if (waiting)
		world_fault(world, "a device does not get ready");
	return !world->fault[0];
}

/* ---- the end ---- */

static void remove_tree(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		char inner[512];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
		if (unlink(inner))
			remove_tree(inner);
	}
	closedir(dir);
	(void)rmdir(path);
}

void world_remove(struct world *world)
{
	world->load = false;
	for (unsigned i = 0; i < world->device_count; i++) {
		mpio_free(world->devices[i].mpio);
		load_done(&world->devices[i]);
	}
	for (unsigned i = 0; i < WORLD_HOSTS; i++)
		host_load_free(world->loads[i]);
	if (world->target)
		world_stop_target(world);
	for (unsigned i = 0; i < world->link_count; i++)
		sim_link_free(world->links[i].link);
	lab_free(world->lab);
	loop_free(world->loop);
	if (world->dir[0]) {
		crash_end();
		remove_tree(world->dir);
	}
}
