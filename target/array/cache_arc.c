/* SPDX-License-Identifier: MIT
 *
 * ARC: lists of frames, ghosts, the target.
 */
#include "target/array/cache_arc.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"

/* ---- ghosts ---- */

static uint32_t *bucket_of(const struct arc *arc, const struct arc_ghosts *ghosts, uint64_t page)
{
	uint64_t hash = page * UINT64_C(0x9e3779b97f4a7c15);
	return &ghosts->buckets[(uint32_t)(hash >> 32) & arc->bucket_mask];
}

static void ghost_forget(struct arc *arc, struct arc_ghosts *ghosts, uint32_t index)
{
	uint32_t *link = bucket_of(arc, ghosts, ghosts->ring[index].page);
	while (*link != index)
		link = &ghosts->ring[*link].hash_next;
	*link = ghosts->ring[index].hash_next;
	ghosts->ring[index].used = false;
	ghosts->count--;
}

static bool ghost_take(struct arc *arc, struct arc_ghosts *ghosts, uint64_t page)
{
	uint32_t index = *bucket_of(arc, ghosts, page);
	while (index != ARC_NONE && ghosts->ring[index].page != page)
		index = ghosts->ring[index].hash_next;
	if (index == ARC_NONE)
		return false;
	ghost_forget(arc, ghosts, index);
	return true;
}

static void ghost_add(struct arc *arc, struct arc_ghosts *ghosts, uint64_t page)
{
	uint32_t index = ghosts->next, *bucket = bucket_of(arc, ghosts, page);
	ghosts->next = index + 1 == arc->capacity ? 0 : index + 1;
	if (ghosts->ring[index].used)
		ghost_forget(arc, ghosts, index);
	ghosts->ring[index] = (struct arc_ghost){.page = page, .hash_next = *bucket, .used = true};
	*bucket = index;
	ghosts->count++;
}

/* ---- frames ---- */

void arc_unlink(struct arc *arc, uint32_t frame)
{
	struct arc_node *node = &arc->nodes[frame];
	if (!node->linked)
		return;
	struct arc_list *list = &arc->lists[node->list];
	*(node->newer == ARC_NONE ? &list->head : &arc->nodes[node->newer].older) = node->older;
	*(node->older == ARC_NONE ? &list->tail : &arc->nodes[node->older].newer) = node->newer;
	node->linked = false;
}

void arc_link(struct arc *arc, uint32_t frame, bool cold)
{
	struct arc_node *node = &arc->nodes[frame];
	assert(node->list != ARC_LISTS);
	struct arc_list *list = &arc->lists[node->list];

	arc_unlink(arc, frame);
	node->newer = cold ? list->tail : ARC_NONE;
	node->older = cold ? ARC_NONE : list->head;
	*(node->newer == ARC_NONE ? &list->head : &arc->nodes[node->newer].older) = frame;
	*(node->older == ARC_NONE ? &list->tail : &arc->nodes[node->older].newer) = frame;
	node->linked = true;
}

void arc_enter(struct arc *arc, uint32_t frame, uint64_t page)
{
	struct arc_node *node = &arc->nodes[frame];
	struct arc_ghosts *once = &arc->ghosts[ARC_ONCE], *often = &arc->ghosts[ARC_OFTEN];
	uint32_t once_count = once->count, often_count = often->count;

	assert(node->list == ARC_LISTS);
	node->list = ARC_ONCE;
	if (ghost_take(arc, once, page)) {
		uint32_t step = MAX_OF(1U, often_count / MAX_OF(once_count, 1U));
		arc->target = MIN_OF(arc->target + step, arc->capacity);
		node->list = ARC_OFTEN;
	} else if (ghost_take(arc, often, page)) {
		uint32_t step = MAX_OF(1U, once_count / MAX_OF(often_count, 1U));
		arc->target -= MIN_OF(arc->target, step);
		node->list = ARC_OFTEN;
	}
	arc->lists[node->list].count++;
}

void arc_hit(struct arc *arc, uint32_t frame)
{
	struct arc_node *node = &arc->nodes[frame];
	bool linked = node->linked;

	assert(node->list != ARC_LISTS);
	arc_unlink(arc, frame);
	arc->lists[node->list].count--;
	node->list = ARC_OFTEN;
	arc->lists[ARC_OFTEN].count++;
	if (linked)
		arc_link(arc, frame, false);
}

uint32_t arc_victim(const struct arc *arc)
{
	const struct arc_list *once = &arc->lists[ARC_ONCE], *often = &arc->lists[ARC_OFTEN];
	bool from_once = once->count > arc->target || often->tail == ARC_NONE;
	if (from_once && once->tail != ARC_NONE)
		return once->tail;
	return often->tail != ARC_NONE ? often->tail : once->tail;
}

void arc_leave(struct arc *arc, uint32_t frame, uint64_t page, bool remember)
{
	struct arc_node *node = &arc->nodes[frame];
	assert(node->list != ARC_LISTS);
	arc_unlink(arc, frame);
	arc->lists[node->list].count--;
	if (remember)
		ghost_add(arc, &arc->ghosts[node->list], page);
	node->list = ARC_LISTS;
}

int arc_init(struct arc *arc, uint32_t capacity)
{
	uint32_t buckets = 16;
	while (buckets < capacity)
		buckets *= 2;
	*arc = (struct arc){.capacity = capacity, .bucket_mask = buckets - 1};
	arc->nodes = calloc(capacity, sizeof *arc->nodes);
	bool made = arc->nodes;
	for (unsigned k = 0; k < ARC_LISTS; k++) {
		struct arc_ghosts *ghosts = &arc->ghosts[k];
		arc->lists[k] = (struct arc_list){ARC_NONE, ARC_NONE, 0};
		ghosts->ring = calloc(capacity, sizeof *ghosts->ring);
		ghosts->buckets = malloc(buckets * sizeof *ghosts->buckets);
		made = made && ghosts->ring && ghosts->buckets;
		for (uint32_t i = 0; ghosts->buckets && i < buckets; i++)
			ghosts->buckets[i] = ARC_NONE;
	}
	if (!made) {
		arc_done(arc);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < capacity; i++)
		arc->nodes[i].list = ARC_LISTS;
	return 0;
}

void arc_done(struct arc *arc)
{
	free(arc->nodes);
	for (unsigned k = 0; k < ARC_LISTS; k++) {
		free(arc->ghosts[k].ring);
		free(arc->ghosts[k].buckets);
	}
	*arc = (struct arc){0};
}
