/* SPDX-License-Identifier: MIT
 *
 * A hash map from page numbers to images.
 */
#include "harness/workload/ese/ese_shadow.h"

#include <errno.h>
#include <stdlib.h>

enum { FIRST_SIZE = 1024 };

static uint32_t place_of(const struct ese_shadow *shadow, uint32_t page)
{
	uint32_t mask = shadow->size - 1;
	uint32_t at = (uint32_t)((page * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & mask;

	while (shadow->slots[at].page != 0 && shadow->slots[at].page != page)
		at = (at + 1) & mask;
	return at;
}

void ese_shadow_done(struct ese_shadow *shadow)
{
	for (uint32_t i = 0; i < shadow->size; i++)
		if (shadow->slots[i].page != 0)
			ese_image_clear(&shadow->slots[i]);
	free(shadow->slots);
	*shadow = (struct ese_shadow){0};
}

static int grow(struct ese_shadow *shadow)
{
	struct ese_shadow larger = {.size = shadow->size ? shadow->size * 2 : FIRST_SIZE,
				    .used = shadow->used};

	if (larger.size == 0)
		return -ENOMEM;
	larger.slots = calloc(larger.size, sizeof *larger.slots);
	if (!larger.slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < shadow->size; i++)
		if (shadow->slots[i].page != 0)
			larger.slots[place_of(&larger, shadow->slots[i].page)] = shadow->slots[i];
	free(shadow->slots);
	*shadow = larger;
	return 0;
}

int ese_shadow_put(struct ese_shadow *shadow, const struct ese_image *image)
{
	struct ese_image *slot;
	int r;

	if (shadow->used >= shadow->size / 4 * 3) {
		r = grow(shadow);
		if (r < 0)
			return r;
	}
	slot = &shadow->slots[place_of(shadow, image->page)];
	if (slot->page == 0) {
		ese_image_init(slot, image->pool, image->page);
		shadow->used++;
	}
	return ese_image_copy(slot, image);
}

const struct ese_image *ese_shadow_get(const struct ese_shadow *shadow, uint32_t page)
{
	const struct ese_image *slot;

	if (shadow->size == 0)
		return NULL;
	slot = &shadow->slots[place_of(shadow, page)];
	return slot->page == 0 ? NULL : slot;
}
