/* SPDX-License-Identifier: MIT
 *
 * Objects of one size from a free list, so that the data path never calls malloc: slabs are
 * allocated as the number of objects in use grows and kept until freelist_done.
 *
 * Bounds: at most `limit` objects; beyond it freelist_take gives NULL and counts a refusal, which
 * the caller passes upwards as -EBUSY.  Objects are not cleared.
 * Threading: one thread.
 */
#ifndef SANLAB_TARGET_DRIVE_FREELIST_H
#define SANLAB_TARGET_DRIVE_FREELIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct freelist_object {
	struct freelist_object *next;
};

struct freelist_slab;

struct freelist {
	struct freelist_object *head;
	struct freelist_slab *slabs;
	size_t object_bytes;
	unsigned made, limit;
	unsigned out; /* objects handed out */
	uint64_t refusals;
};

void freelist_init(struct freelist *list, size_t object_bytes, unsigned limit);
void freelist_done(struct freelist *list); /* every object must be back */
bool freelist_grow(struct freelist *list); /* private: one more slab, false at the limit */
/* True when COUNT objects can be taken at once.  False counts a refusal. */
bool freelist_reserve(struct freelist *list, unsigned count);

static inline void *freelist_take(struct freelist *list)
{
	if (!list->head && !freelist_grow(list)) {
		list->refusals++;
		return NULL;
	}
	struct freelist_object *object = list->head;
	list->head = object->next;
	list->out++;
	return object;
}

static inline void freelist_give(struct freelist *list, void *memory)
{
	struct freelist_object *object = memory;
	object->next = list->head;
	list->head = object;
	list->out--;
}

#endif
