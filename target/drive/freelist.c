/* SPDX-License-Identifier: MIT
 *
 * The slow half of the free lists: making slabs and giving them back.
 */
#include "target/drive/freelist.h"

#include <assert.h>
#include <stdalign.h>
#include <stdlib.h>

#include "base/bytes.h"

enum { SLAB_OBJECTS = 64 };

struct freelist_slab {
	alignas(max_align_t) struct freelist_slab *next;
};

void freelist_init(struct freelist *list, size_t object_bytes, unsigned limit)
{
	size_t bytes = MAX_OF(object_bytes, sizeof(struct freelist_object));
	*list = (struct freelist){
	    .object_bytes = round_up_u64(bytes, alignof(max_align_t)),
	    .limit = limit,
	};
}

void freelist_done(struct freelist *list)
{
	assert(list->out == 0);
	while (list->slabs) {
		struct freelist_slab *slab = list->slabs;
		list->slabs = slab->next;
		free(slab);
	}
	list->head = NULL;
	list->made = 0;
}

bool freelist_grow(struct freelist *list)
{
	unsigned count = MIN_OF((unsigned)SLAB_OBJECTS, list->limit - list->made);
	if (count == 0)
		return false;
	struct freelist_slab *slab = malloc(sizeof *slab + count * list->object_bytes);
	if (!slab)
		return false;
	slab->next = list->slabs;
	list->slabs = slab;
	list->made += count;
	char *memory = (char *)(slab + 1);
	for (unsigned i = count; i > 0; i--) {
		struct freelist_object *object = (void *)(memory + (i - 1) * list->object_bytes);
		object->next = list->head;
		list->head = object;
	}
	return true;
}

bool freelist_reserve(struct freelist *list, unsigned count)
{
	while (list->made - list->out < count) {
		if (!freelist_grow(list)) {
			list->refusals++;
			return false;
		}
	}
	return true;
}
