/* SPDX-License-Identifier: MIT
 *
 * What a seed makes of a system: its lab file, and the settings of each device's MPIO.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/sim/system/world.h"

struct text {
	char at[4096];
	size_t used;
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text->used +=
	    (size_t)vsnprintf(text->at + text->used, sizeof text->at - text->used, format, args);
	va_end(args);
}

static void add_member(struct world *world, struct text *text, unsigned index, unsigned portals,
		       bool modelled)
{
	static const char *const levels[] = {"raid5", "raid10", "raid6", "raid50"};
	static const unsigned actives[] = {4, 4, 5, 6};
	unsigned level = (unsigned)world_pick(world, 0, ARRAY_SIZE(levels) - 1);
	unsigned spares = (unsigned)world_pick(world, 0, 1);

	add(text, "        - name: m%u\n", index + 1);
	add(text, "          drives: {count: %u, spares: %u, size: 32MiB}\n",
	    actives[level] + spares, spares);
	add(text, "          raid: %s\n          timing: %s\n          spare-delay: 500ms\n",
	    levels[level], modelled ? "modelled" : "none");
	if (world_pick(world, 0, 3) == 0)
		add(text, "          cache: {size: 1MiB, mode: %s}\n",
		    world_pick(world, 0, 2) ? "write-back" : "write-through");
	if (world->dir[0])
		add(text, "          store: {file: %s}\n", world->dir);
	add(text, "          portals: [");
	for (unsigned i = 0; i < portals; i++)
		add(text, "%s127.0.0.1:%u", i ? ", " : "", 3261 + world->portal_count++);
	add(text, "]\n");
}

bool world_shape(struct world *world)
{
	struct text text = {.used = 0};
	bool lun = world_pick(world, 0, 2) == 0;
	unsigned members = lun ? 1 : (unsigned)world_pick(world, 1, WORLD_MEMBERS);
	unsigned volumes = (unsigned)world_pick(world, 1, WORLD_VOLUMES);
	bool modelled = world_pick(world, 0, 3) == 0;

	add(&text, "name: system\nseed: %llu\ngroup:\n  style: %s\n",
	    (unsigned long long)world->seed, lun ? "lun" : "equallogic");
	add(&text, "  portal: 127.0.0.1:3260\n");
	add(&text, "  controllers: {failover: %llums, transition: %llums}\n",
	    (unsigned long long)world_pick(world, 100, 3000),
	    (unsigned long long)world_pick(world, 100, 3000));
	add(&text, "  pools:\n    - name: default\n      members:\n");
	for (unsigned i = 0; i < members; i++)
		add_member(world, &text, i,
			   members > 1 ? WORLD_PORTALS / members
				       : (unsigned)world_pick(world, 2, WORLD_PORTALS),
			   modelled);
	add(&text, "  volumes:\n");
	for (unsigned i = 0; i < volumes; i++)
		add(&text, "    - {name: v%u, size: 4MiB}\n", i + 1);
	/* Only for its settings: which host uses what is our own affair. */
	add(&text, "hosts:\n  - {name: h1, volumes: [v1]}\n");
	if (world->trace)
		fputs(text.at, stdout);
	return lab_parse("system.yaml", text.at, text.used, NULL, 0, stderr, &world->lab) == 0;
}

static uint64_t ms(struct world *world, uint64_t least, uint64_t most)
{
	return world_pick(world, least, most) * NS_PER_MS;
}

static unsigned policy_count(void)
{
	unsigned count = 0;

	while (mpio_policy_names[count])
		count++;
	return count;
}

static uint64_t choose_no_path(struct world *world)
{
	switch (world_pick(world, 0, 7)) {
	case 0:
		return 0; /* fail */
	case 1:
		return MPIO_FOREVER;
	case 2:
		return ms(world, 1, 200);
	default:
		return ms(world, 1000, 30000);
	}
}

void device_shape(struct device *device, const struct mpio_config *preset)
{
	struct world *world = device->world;
	struct mpio_config *config = &device->config;

	*config = *preset;
	config->policy = (int)world_pick(world, 0, policy_count() - 1);
	config->rr_ios = world_pick(world, 1, 4);
	config->preferred_path = world_pick(world, 0, 3);
	config->no_path_ns = choose_no_path(world);
	config->reconnect_min_ns = ms(world, 10, 300);
	config->reconnect_max_ns = config->reconnect_min_ns + ms(world, 0, 4000);
	config->keepalive_ns = ms(world, 100, 1500);
	config->io_timeout_ns = ms(world, 1000, 6000);
	config->tcp_user_timeout_ns = ms(world, 500, 3000);
	config->login_timeout_ns = ms(world, 500, 5000);
	config->queue_depth = world_pick(world, 1, 24);
	config->max_retries = 1000;
	/* A reset of the unit proves nothing where the network may hold bytes for longer. */
	config->fence_hold_ns = world->life_ns + ms(world, 1, 3000);
	config->fence = MPIO_FENCE_STRICT;
	if (world->life_ns > 0 && world_pick(world, 0, 2))
		config->fence = MPIO_FENCE_RESET;
	if (world->mutant == WRAP_NO_FENCE)
		config->fence = MPIO_FENCE_NONE;
	config->fence_limit = world_pick(world, 0, 2) ? 8192 : 24;
	config->alua_explicit = world_pick(world, 0, 1);
	config->alua_poll_ns = ms(world, 500, 10000);
	config->marginal_errors = world_pick(world, 0, 4);
	config->marginal_forget_ns = ms(world, 500, 20000);
	config->failback_delay_ns = world_pick(world, 0, 1) ? ms(world, 0, 3000) : 0;
}
