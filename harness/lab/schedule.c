/* SPDX-License-Identifier: MIT
 *
 * The timeline of faults: entries that repeat, and `random` ones, become single occurrences.
 *
 * Random faults come from the lab's seed alone.  Their beginnings are spread over the time given,
 * one in each equal part of it; none hits a portal that another one holds, nor the last paths of a
 * volume that are to be left.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "harness/lab/lab_impl.h"

static const unsigned random_kinds = 1U << FAULT_PATH_RESET | 1U << FAULT_PATH_DOWN |
				     1U << FAULT_SESSION_RESET | 1U << FAULT_HALF_OPEN |
				     1U << FAULT_BLACK_HOLE | 1U << FAULT_PATH_HOLD;

void lab_check_random(struct lab *lab, struct fault_config *fault, const struct fault_args *args)
{
	const char *const *of = args->of.items;

	for (size_t i = 0; i < args->of.count; i++) {
		size_t kind = 0;

		while (kind < FAULT_KINDS && strcmp(fault_kind_names[kind], of[i]) != 0)
			kind++;
		if (kind < FAULT_KINDS && random_kinds & 1U << kind) {
			fault->random.kinds |= 1U << kind;
			continue;
		}
		cfg_error_at(lab->cfg, &of[i], "'%.60s' is no fault that can be random", of[i]);
		cfg_hint(lab->cfg, "allowed: path-reset, path-down, session-reset, half-open, "
				   "black-hole, path-hold");
	}
	if (!args->of.count && cfg_valid(lab->cfg, &args->of))
		cfg_error_at(lab->cfg, &args->of, "'of' names no kind of fault");
	if (args->shortest_ns > args->longest_ns && cfg_valid(lab->cfg, &args->shortest_ns) &&
	    cfg_valid(lab->cfg, &args->longest_ns))
		cfg_error_at(lab->cfg, &args->shortest_ns, "'shortest' is longer than 'longest'");
	fault->random.times = args->times;
	fault->random.within_ns = args->within_ns;
	fault->random.shortest_ns = args->shortest_ns;
	fault->random.longest_ns = args->longest_ns;
	fault->random.leave = args->leave;
}

static int add_event(struct lab *lab, uint64_t at_ns, uint64_t for_ns,
		     const struct fault_config *fault)
{
	if (at_ns >= lab->run.duration_ns)
		return 0;
	if (lab->timeline_count == LAB_MAX_FAULT_EVENTS)
		return -E2BIG;
	lab->timeline[lab->timeline_count++] =
	    (struct fault_event){.at_ns = at_ns, .for_ns = for_ns, .fault = fault};
	return 0;
}

static int repeat(struct lab *lab, const struct fault_config *fault)
{
	uint64_t times = fault->times ? fault->times : fault->every_ns ? UINT64_MAX : 1;
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < times; i++) {
		uint64_t at_ns = fault->at_ns + i * fault->every_ns;

		if (at_ns >= lab->run.duration_ns)
			break;
		r = add_event(lab, at_ns, fault->for_ns, fault);
	}
	return r;
}

/* ---- random ones ---- */

struct candidate {
	const struct host_config *host;
	const char *volume;
	unsigned path;
	char portal[64];
};

enum { MAX_CANDIDATES = 1024 };

struct draw {
	struct lab *lab;
	const struct fault_config *entry;
	struct rng rng;
	struct candidate candidates[MAX_CANDIDATES];
	size_t count;
	size_t first; /* of its occurrences in the timeline */
};

static void list_paths(struct draw *draw)
{
	const struct host_config *hosts = draw->lab->hosts.items;
	struct lab_path paths[LAB_MAX_PATHS];
	const char *volume;

	for (size_t h = 0; h < draw->lab->hosts.count; h++) {
		if (draw->entry->host && strcmp(draw->entry->host, hosts[h].name) != 0)
			continue;
		for (size_t v = 0; (volume = lab_host_volume(&hosts[h], v)); v++) {
			int count = lab_paths_of(draw->lab, &hosts[h], volume, paths);

			for (int i = 0; i < count && draw->count < MAX_CANDIDATES; i++) {
				struct candidate *to = &draw->candidates[draw->count++];

				*to = (struct candidate){
				    .host = &hosts[h], .volume = volume, .path = (unsigned)i};
				memcpy(to->portal, paths[i].portal, sizeof to->portal);
			}
		}
	}
}

static bool is_held(const struct draw *draw, const char *portal, uint64_t from_ns, uint64_t to_ns)
{
	for (size_t i = draw->first; i < draw->lab->timeline_count; i++) {
		const struct fault_event *event = &draw->lab->timeline[i];

		if (strcmp(event->fault->portal.text, portal) == 0 && event->at_ns < to_ns &&
		    event->at_ns + event->for_ns >= from_ns)
			return true;
	}
	return false;
}

/* Every volume that has a path to the portal keeps enough others. */
static bool may_hit(const struct draw *draw, const char *portal, uint64_t from_ns, uint64_t to_ns)
{
	size_t i = 0;

	if (is_held(draw, portal, from_ns, to_ns))
		return false;
	while (i < draw->count) {
		const struct candidate *first = &draw->candidates[i];
		uint64_t spared = 0;
		bool meant = false;

		for (; i < draw->count && draw->candidates[i].host == first->host &&
		       draw->candidates[i].volume == first->volume;
		     i++) {
			const char *other = draw->candidates[i].portal;
			bool hit = strcmp(other, portal) == 0;

			meant |= hit;
			spared += !hit && !is_held(draw, other, from_ns, to_ns);
		}
		if (meant && spared < draw->entry->random.leave)
			return false;
	}
	return true;
}

static int draw_kind(struct draw *draw)
{
	unsigned kinds = draw->entry->random.kinds;
	uint64_t skip = rng_below(&draw->rng, (uint64_t)__builtin_popcount(kinds));
	int kind = 0;

	for (;; kind++)
		if (kinds & 1U << kind && skip-- == 0)
			return kind;
}

static int draw_one(struct draw *draw, uint64_t number, struct fault_config *to)
{
	const struct fault_random *random = &draw->entry->random;
	double part = (double)random->within_ns / (double)random->times;
	uint64_t at_ns =
	    draw->entry->at_ns + (uint64_t)(part * ((double)number + rng_unit(&draw->rng)));
	uint64_t for_ns = random->shortest_ns +
			  rng_below(&draw->rng, random->longest_ns - random->shortest_ns + 1);
	int kind = draw_kind(draw);
	size_t start = (size_t)rng_below(&draw->rng, draw->count);
	char why[100];

	if (fault_is_instant(kind))
		for_ns = 0;
	for (size_t i = 0; i < draw->count; i++) {
		const struct candidate *one = &draw->candidates[(start + i) % draw->count];

		if (!may_hit(draw, one->portal, at_ns, at_ns + for_ns + 1))
			continue;
		*to = (struct fault_config){
		    .at_ns = at_ns,
		    .for_ns = for_ns,
		    .kind = kind,
		    .host = one->host->name,
		    .volume = one->volume,
		    .path = one->path,
		    .has_path = true,
		    .controller = -1,
		};
		(void)cfg_parse_scalar(CFG_PORTAL, one->portal, &to->portal, why, sizeof why);
		return add_event(draw->lab, at_ns, for_ns, to);
	}
	return 0; /* every path is spared or held */
}

static int draw_all(struct lab *lab, const struct fault_config *entry, size_t number,
		    struct fault_config *to)
{
	struct draw *draw = calloc(1, sizeof *draw);
	int r = 0;

	if (!draw)
		return -ENOMEM;
	draw->lab = lab;
	draw->entry = entry;
	draw->first = lab->timeline_count;
	rng_init(&draw->rng, lab->seed, rng_stream_of("random-faults") + number);
	list_paths(draw);
	for (uint64_t i = 0; r == 0 && draw->count && i < entry->random.times; i++)
		r = draw_one(draw, i, &to[i]);
	/* A run that breaks nothing would look well. */
	if (r == 0 && draw->count && lab->timeline_count == draw->first)
		cfg_error_at(lab->cfg, &entry->at_ns,
			     "no random fault comes about: 'leave' spares every path, or they "
			     "begin after the window");
	free(draw);
	return r;
}

/* ---- all ---- */

/* Stable, for equal times: the order of the file. */
static void sort(struct fault_event *events, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct fault_event event = events[i];
		size_t at = i;

		for (; at && events[at - 1].at_ns > event.at_ns; at--)
			events[at] = events[at - 1];
		events[at] = event;
	}
}

int lab_make_timeline(struct lab *lab)
{
	const struct fault_config *faults = lab->faults.items;
	size_t random = 0, at = 0;
	int r = 0;

	if (!lab->faults.count)
		return 0;
	for (size_t i = 0; i < lab->faults.count; i++)
		random += faults[i].kind == FAULT_RANDOM ? (size_t)faults[i].random.times : 0;
	lab->timeline = calloc(LAB_MAX_FAULT_EVENTS, sizeof *lab->timeline);
	lab->random_faults = calloc(random + 1, sizeof *lab->random_faults);
	if (!lab->timeline || !lab->random_faults)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < lab->faults.count; i++) {
		if (faults[i].kind != FAULT_RANDOM) {
			r = repeat(lab, &faults[i]);
			continue;
		}
		r = draw_all(lab, &faults[i], i, lab->random_faults + at);
		at += (size_t)faults[i].random.times;
	}
	sort(lab->timeline, lab->timeline_count);
	return r;
}

void lab_free_timeline(struct lab *lab)
{
	free(lab->timeline);
	free(lab->random_faults);
}
