/* SPDX-License-Identifier: MIT
 *
 * What the policies' keys have to say to each other, and which policy a unit gets.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "initiator/mpio/policy.h"

enum { VOLUME_SESSIONS = 6, SLICE_SESSIONS = 2 }; /* EqualLogic's defaults */

static bool in_use(const struct mpio_config *config, const struct mpio_policy *policy)
{
	const struct mpio_override *overrides = config->overrides.items;

	if (mpio_policy_at(config->policy) == policy)
		return true;
	for (size_t i = 0; i < config->overrides.count; i++)
		if (mpio_policy_at(overrides[i].policy) == policy)
			return true;
	return false;
}

static void check_overrides(struct cfg *cfg, const struct mpio_config *config)
{
	const struct mpio_override *overrides = config->overrides.items;

	for (size_t i = 0; i < config->overrides.count; i++) {
		const struct mpio_override *one = &overrides[i];

		if (!one->volume == !one->hardware && cfg_valid(cfg, &one->volume))
			cfg_error_at(cfg, &one->volume,
				     "an entry of 'policies' has either 'volume' or 'hardware'");
		for (size_t j = 0; j < i && one->volume; j++)
			if (overrides[j].volume && strcmp(overrides[j].volume, one->volume) == 0)
				cfg_error_at(cfg, &one->volume,
					     "volume '%.60s' has a policy already", one->volume);
	}
}

static void check_sessions(struct cfg *cfg, struct mpio_config *config)
{
	if (!config->volume_sessions && !config->slice_sessions)
		return;
	if (!config->volume_sessions)
		config->volume_sessions = VOLUME_SESSIONS;
	if (!config->slice_sessions)
		config->slice_sessions = MIN_OF(config->volume_sessions, (uint64_t)SLICE_SESSIONS);
	if (config->slice_sessions > config->volume_sessions) {
		cfg_error_at(cfg, &config->slice_sessions,
			     "'sessions-per-slice' is more than 'sessions-per-volume'");
		cfg_hint(cfg, "a volume has at least one slice");
	}
}

void mpio_policy_check(struct cfg *cfg, struct mpio_config *config)
{
	check_overrides(cfg, config);
	check_sessions(cfg, config);
	if (!config->weights.count && cfg_valid(cfg, &config->weights) &&
	    in_use(config, &mpio_policy_weighted_paths)) {
		cfg_error_at(cfg, &config->policy, "policy 'weighted-paths' needs 'weights'");
		cfg_hint(cfg, "one number a path, in their order: weights: [0, 0, 10, 10]");
	}
}

static bool one_each(struct cfg *cfg, const struct cfg_list *list, const char *key,
		     const char *volume, unsigned paths)
{
	if (!list->count || list->count == paths || !cfg_valid(cfg, list))
		return true;
	cfg_error_at(cfg, list, "'%s' has %zu numbers; volume '%.60s' has %u paths", key,
		     list->count, volume, paths);
	return false;
}

static bool check_primary(struct cfg *cfg, const struct cfg_list *primary, const char *volume,
			  unsigned paths)
{
	const uint64_t *list = primary->items;

	for (size_t i = 0; i < primary->count; i++) {
		if (!cfg_valid(cfg, primary))
			break;
		if (list[i] >= paths) {
			cfg_error_at(cfg, &list[i],
				     "'primary-paths' names path %llu; volume '%.60s' has %u "
				     "paths, counted from 0",
				     (unsigned long long)list[i], volume, paths);
			return false;
		}
		for (size_t j = 0; j < i; j++) {
			if (list[j] != list[i])
				continue;
			cfg_error_at(cfg, &list[i], "'primary-paths' names path %llu twice",
				     (unsigned long long)list[i]);
			return false;
		}
	}
	return true;
}

bool mpio_policy_check_paths(struct cfg *cfg, const struct mpio_config *config, const char *volume,
			     unsigned paths)
{
	if (config->preferred_path >= paths && cfg_valid(cfg, &config->preferred_path)) {
		cfg_error_at(
		    cfg, &config->preferred_path,
		    "'preferred-path' is %llu; volume '%.60s' has %u paths, counted from 0",
		    (unsigned long long)config->preferred_path, volume, paths);
		return false;
	}
	return one_each(cfg, &config->weights, "weights", volume, paths) &&
	       one_each(cfg, &config->throughput, "throughput", volume, paths) &&
	       check_primary(cfg, &config->primary_paths, volume, paths);
}

void mpio_config_for(const struct mpio_config *config, const char *volume,
		     struct mpio_config *ret_config)
{
	const struct mpio_override *overrides = config->overrides.items;

	*ret_config = *config;
	for (size_t i = 0; i < config->overrides.count; i++) {
		if (!overrides[i].volume || strcmp(overrides[i].volume, volume) != 0)
			continue;
		ret_config->policy = overrides[i].policy;
		ret_config->overrides = (struct cfg_list){0};
		break;
	}
}

const struct mpio_policy *mpio_policy_of_make(const struct mpio_config *config, const char *vendor,
					      const char *product)
{
	const struct mpio_override *overrides = config->overrides.items;
	char make[32];

	/* As the 24 bytes of INQUIRY stand: the vendor is filled up with blanks. */
	(void)snprintf(make, sizeof make, "%-8s%s", vendor, product);
	for (size_t i = 0; i < config->overrides.count; i++) {
		const char *hardware = overrides[i].hardware;

		if (hardware && strncmp(make, hardware, strlen(hardware)) == 0)
			return mpio_policy_at(overrides[i].policy);
	}
	return NULL;
}
