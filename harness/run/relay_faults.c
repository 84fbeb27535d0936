/* SPDX-License-Identifier: MIT
 *
 * The lab's faults of paths, carried out by the relay.
 */
#include "harness/run/relay_faults.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct relayed_path {
	const char *host, *volume, *url;
	unsigned index;
	char portal[64];
	struct relay_line *line;
};

struct relay_faults {
	const struct lab *lab;
	struct relay *relay;
	struct relayed_path paths[RELAY_LINES_MAX];
	size_t count;
};

static bool hits(const struct lab *lab, const struct fault_config *fault,
		 const struct relayed_path *path)
{
	return fault_needs_relay(lab, fault, path->url) &&
	       lab_fault_hits(lab, fault, path->host, path->volume, path->index, path->portal);
}

static bool is_needed(const struct lab *lab, const struct relayed_path *path)
{
	for (size_t i = 0; i < lab->timeline_count; i++)
		if (hits(lab, lab->timeline[i].fault, path))
			return true;
	return false;
}

static int add_path(struct relay_faults *faults, const struct relayed_path *path, struct err *err)
{
	struct relayed_path *to = &faults->paths[faults->count];
	int r = 0;

	if (!is_needed(faults->lab, path))
		return 0;
	if (faults->count == RELAY_LINES_MAX)
		return err_set(err, -E2BIG, "faults on more than %d paths", RELAY_LINES_MAX);
	if (!faults->relay)
		r = relay_new(faults->lab->seed, &faults->relay, err);
	*to = *path;
	if (r == 0)
		r = relay_add_line(faults->relay, &to->line);
	if (r == 0)
		faults->count++;
	return r;
}

static int add_host(struct relay_faults *faults, const struct host_config *host, struct err *err)
{
	struct lab_path paths[LAB_MAX_PATHS];
	const char *volume;
	int r = 0;

	for (size_t v = 0; r == 0 && (volume = lab_host_volume(host, v)); v++) {
		int count = lab_paths_of(faults->lab, host, volume, paths);

		for (int i = 0; r == 0 && i < count; i++) {
			struct relayed_path path = {.host = host->name,
						    .volume = volume,
						    .url = paths[i].url,
						    .index = (unsigned)i};

			memcpy(path.portal, paths[i].portal, sizeof path.portal);
			r = add_path(faults, &path, err);
		}
	}
	return r;
}

int relay_faults_open(const struct lab *lab, struct relay_faults **ret_faults, struct err *err)
{
	const struct host_config *hosts = lab->hosts.items;
	struct relay_faults *faults = calloc(1, sizeof *faults);
	int r = 0;

	if (!faults)
		return err_set(err, -ENOMEM, "no memory for the relay");
	faults->lab = lab;
	for (size_t h = 0; r == 0 && h < lab->hosts.count; h++)
		r = add_host(faults, &hosts[h], err);
	if (r < 0 || !faults->relay)
		faults = relay_faults_close(faults);
	if (r == 0)
		*ret_faults = faults;
	return r;
}

struct relay_faults *relay_faults_close(struct relay_faults *faults)
{
	if (!faults)
		return NULL;
	relay_free(faults->relay);
	free(faults);
	return NULL;
}

struct relay_line *relay_faults_line(const struct relay_faults *faults, const char *host,
				     const char *volume, unsigned index)
{
	for (size_t i = 0; faults && i < faults->count; i++) {
		const struct relayed_path *path = &faults->paths[i];

		if (path->index == index && strcmp(path->host, host) == 0 &&
		    strcmp(path->volume, volume) == 0)
			return path->line;
	}
	return NULL;
}

static const enum relay_fault_kind kinds[FAULT_KINDS] = {
    [FAULT_PATH_RESET] = RELAY_RESET,
    [FAULT_PATH_DOWN] = RELAY_REFUSE,
    [FAULT_ALL_PATHS_DOWN] = RELAY_REFUSE,
    [FAULT_SESSION_RESET] = RELAY_RESET,
    [FAULT_HALF_OPEN] = RELAY_HALF_OPEN,
    [FAULT_BLACK_HOLE] = RELAY_BLACK_HOLE,
    [FAULT_PATH_HOLD] = RELAY_HOLD,
    [FAULT_PATH_SLOW] = RELAY_SLOW,
    [FAULT_DIGEST_CORRUPTION] = RELAY_CORRUPT,
};

int relay_faults_apply(struct relay_faults *faults, const struct fault_config *fault, bool begin)
{
	struct relay_fault what = {
	    .kind = kinds[fault->kind],
	    .above_bytes = fault->above_bytes,
	    .delay_ns = fault->delay_ns,
	    .jitter_ns = fault->jitter_ns,
	    .loss = fault->loss,
	    .count = (uint32_t)fault->count,
	};
	int hit = 0, r = 0;

	for (size_t i = 0; faults && i < faults->count; i++) {
		if (!hits(faults->lab, fault, &faults->paths[i]))
			continue;
		r = relay_set(faults->paths[i].line, &what, begin);
		if (r < 0)
			return r;
		hit++;
	}
	return hit;
}
