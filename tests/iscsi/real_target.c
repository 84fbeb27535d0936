/* SPDX-License-Identifier: MIT
 *
 * A group of two pools (drives that answer at once, drives with service times), its exports and a
 * server.
 */
#include "tests/iscsi/real_target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define REAL_BUFFER_BYTES (256 * MIB)

enum { REAL_DRIVES = 2 };

static int level_index(const char *name)
{
	for (int i = 0; raid_level_names[i]; i++) {
		if (strcmp(raid_level_names[i], name) == 0)
			return i;
	}
	return -1;
}

static void pool_fill(struct real_target *target, unsigned index, const char *name,
		      enum drive_timing timing, const char *directory)
{
	if (directory)
		snprintf(target->places[index], sizeof target->places[index], "%s/%s", directory,
			 name);
	target->members[index] = (struct member_config){
	    .name = name,
	    .drives = {.count = REAL_DRIVES, .size_bytes = 4 * REAL_VOLUME_BYTES},
	    .raid = level_index("raid0"),
	    .chunk_bytes = 64 * KIB,
	    .timing = timing,
	    .store_kind = directory ? "file" : "memory",
	    .store_place = directory ? target->places[index] : NULL,
	};
	target->pools[index] =
	    (struct pool_config){.name = name, .members = {&target->members[index], 1}};
}

static void volume_fill(struct real_target *target, enum real_lun lun, const char *name,
			const char *pool, bool thin, uint64_t block_bytes)
{
	target->volumes[lun] = (struct volume_config){.name = name,
						      .pool = pool,
						      .size_bytes = REAL_VOLUME_BYTES,
						      .thin = thin,
						      .block_bytes = block_bytes};
}

int real_target_array_open(struct real_target *target, const char *directory)
{
	struct group_config config = {.style = GROUP_STYLE_LUN};
	struct err err = {0};
	int r;

	memset(target, 0, sizeof *target);
	target->has_files = directory;
	pool_fill(target, 0, "fast", DRIVE_TIMING_NONE, directory);
	pool_fill(target, 1, "slow", DRIVE_TIMING_MODELLED, directory);
	volume_fill(target, REAL_LUN_FAST, "fast0", "fast", true, 512);
	volume_fill(target, REAL_LUN_SLOW, "slow0", "slow", true, 512);
	volume_fill(target, REAL_LUN_THICK, "thick0", "fast", false, 4096);
	config.pools = (struct cfg_list){target->pools, ARRAY_SIZE(target->pools)};
	config.volumes = (struct cfg_list){target->volumes, REAL_LUN_COUNT};
	r = loop_new_virtual(0, &target->loop);
	if (r < 0)
		return r;
	r = group_open(target->loop, &config, "unit", 42, &target->group, &err);
	if (r < 0)
		target->loop = loop_free(target->loop);
	return r;
}

void real_target_array_close(struct real_target *target)
{
	target->group = group_close(target->group);
	target->loop = loop_free(target->loop);
}

struct iscsi_portal *real_target_portal(struct real_target *target, const char *host, uint16_t port,
					uint16_t tag, bool redirects)
{
	struct iscsi_portal_config config = {
	    .group_tag = tag, .target_port_group = 1, .redirects = redirects, .owner = "m1"};
	struct iscsi_portal *portal = NULL;

	snprintf(config.address.host, sizeof config.address.host, "%s", host);
	snprintf(config.address.text, sizeof config.address.text,
		 strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
	config.address.port = port;
	config.address.set = true;
	return iscsi_server_add_portal(target->server, &config, &portal) < 0 ? NULL : portal;
}

static void map_done(struct io *io)
{
	*(bool *)io->owner = true;
}

/* A page that is not mapped costs its drives no time: gives the slow volume its first one. */
static int slow_map(struct real_target *target)
{
	static uint8_t zero[4096];
	struct iovec iov = {zero, sizeof zero};
	bool done = false;
	struct io io = {.op = IO_WRITE,
			.length_bytes = sizeof zero,
			.iov = &iov,
			.iov_count = 1,
			.done = map_done,
			.owner = &done};

	io_submit(volume_layer(group_volume(target->group, REAL_LUN_SLOW)), &io);
	while (!done) {
		if (loop_turn(target->loop, true) < 0)
			return -EIO;
	}
	return io.status;
}

int real_target_serve(struct real_target *target)
{
	int r = slow_map(target);

	if (r < 0)
		return r;
	r = -ENOMEM;

	target->pool = buf_pool_new(REAL_BUFFER_BYTES);
	target->server = target->pool ? iscsi_server_new(target->loop, target->pool) : NULL;
	if (target->server)
		r = exports_open(target->loop, target->pool, target->group, GROUP_STYLE_LUN, "unit",
				 &target->exports);
	if (r == 0 && target->has_files)
		r = scsi_device_restore(target->exports.device, NULL);
	for (size_t i = 0; r == 0 && i < target->exports.count; i++)
		r = iscsi_server_add_target(target->server, target->exports.targets[i]);
	if (r == 0) {
		target->portal = real_target_portal(target, "127.0.0.1", 3260, 1, false);
		r = target->portal ? 0 : -ENOMEM;
	}
	return r;
}

bool real_target_unserve(struct real_target *target)
{
	bool clean;

	target->server = iscsi_server_free(target->server);
	exports_close(&target->exports);
	clean = buf_pool_in_use_bytes(target->pool) == 0;
	target->pool = buf_pool_free(target->pool);
	target->portal = NULL;
	return clean;
}

void real_target_pass(struct real_target *target, uint64_t duration_ns)
{
	loop_run_until(target->loop, loop_now_ns(target->loop) + duration_ns);
}
