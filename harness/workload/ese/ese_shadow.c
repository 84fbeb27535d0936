/* SPDX-License-Identifier: MIT
 *
 * Differences of images by page number.  See ese_shadow.h.
 *
 * A note begins with struct note; then the slots that are new or other than at birth, in key order;
 * then the places, in the image at birth, of those that are gone or replaced.  A page whose frame
 * has changed (its level, its base range, its left neighbour) is noted whole.
 */
#include "harness/workload/ese/ese_shadow.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

enum {
	FIRST_SIZE = 1024,
	UNIT_BYTES = 16,
	CLASSES = 33, /* notes of up to 32 units come from chunks, larger ones from malloc */
	CHUNK_BYTES = 256 << 10,
	WHOLE = UINT16_MAX, /* in place of `gone` */
};

struct note {
	uint64_t dbtime;
	uint32_t next;
	uint16_t put, gone;
};

/* Follows the note of a page that is noted whole. */
struct whole {
	uint32_t previous, base_first, base_count, level;
};

struct chunk {
	struct chunk *next;
	size_t used;
	_Alignas(UNIT_BYTES) uint8_t bytes[CHUNK_BYTES];
};

struct free_note {
	struct free_note *next;
};

struct place {
	uint32_t page; /* 0: free */
	struct note *note;
};

struct ese_shadow {
	const struct ese_image_rules *rules;
	struct place *places; /* open addressing */
	uint32_t size;	      /* a power of two, or 0 */
	uint32_t used;
	struct chunk *chunks;
	struct free_note *unused[CLASSES];
	size_t bytes;
	struct ese_image_pool *pool;
	struct ese_image born; /* of the page at hand */
	struct ese_slot put[ESE_ITEMS_MAX];
	uint16_t gone[ESE_ITEMS_MAX];
};

int ese_shadow_new(const struct ese_image_rules *rules, struct ese_shadow **ret_shadow)
{
	struct ese_shadow *shadow = calloc(1, sizeof *shadow);

	if (!shadow)
		return -ENOMEM;
	shadow->rules = rules;
	shadow->bytes = sizeof *shadow;
	shadow->pool = ese_image_pool_new();
	if (!shadow->pool) {
		free(shadow);
		return -ENOMEM;
	}
	ese_image_init(&shadow->born, shadow->pool, ESE_PAGE_FIRST);
	*ret_shadow = shadow;
	return 0;
}

/* ---- memory of notes ---- */

static size_t units_of(const struct note *note)
{
	size_t bytes = sizeof *note + note->put * sizeof(struct ese_slot);

	bytes += note->gone == WHOLE ? sizeof(struct whole) : note->gone * sizeof(uint16_t);
	return (bytes + UNIT_BYTES - 1) / UNIT_BYTES;
}

static void *units_new(struct ese_shadow *shadow, size_t units)
{
	struct chunk *chunk = shadow->chunks;
	struct free_note *note;

	if (units >= CLASSES) {
		shadow->bytes += units * UNIT_BYTES;
		return malloc(units * UNIT_BYTES);
	}
	note = shadow->unused[units];
	if (note) {
		shadow->unused[units] = note->next;
		return note;
	}
	if (!chunk || chunk->used + units * UNIT_BYTES > CHUNK_BYTES) {
		chunk = malloc(sizeof *chunk);
		if (!chunk)
			return NULL;
		chunk->next = shadow->chunks;
		chunk->used = 0;
		shadow->chunks = chunk;
		shadow->bytes += sizeof *chunk;
	}
	chunk->used += units * UNIT_BYTES;
	return chunk->bytes + chunk->used - units * UNIT_BYTES;
}

static void note_free(struct ese_shadow *shadow, struct note *note)
{
	size_t units = note ? units_of(note) : 0;
	struct free_note *unused = (struct free_note *)(void *)note;

	if (!note)
		return;
	if (units >= CLASSES) {
		shadow->bytes -= units * UNIT_BYTES;
		free(note);
		return;
	}
	unused->next = shadow->unused[units];
	shadow->unused[units] = unused;
}

struct ese_shadow *ese_shadow_free(struct ese_shadow *shadow)
{
	if (!shadow)
		return NULL;
	for (uint32_t i = 0; i < shadow->size; i++)
		note_free(shadow, shadow->places[i].note);
	while (shadow->chunks) {
		struct chunk *chunk = shadow->chunks;

		shadow->chunks = chunk->next;
		free(chunk);
	}
	ese_image_pool_free(shadow->pool);
	free(shadow->places);
	free(shadow);
	return NULL;
}

/* ---- the table ---- */

static struct place *place_of(struct place *places, uint32_t size, uint32_t page)
{
	uint32_t mask = size - 1;
	uint32_t at = (uint32_t)((page * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & mask;

	while (places[at].page != 0 && places[at].page != page)
		at = (at + 1) & mask;
	return &places[at];
}

static int grow(struct ese_shadow *shadow)
{
	uint32_t size = shadow->size ? shadow->size * 2 : FIRST_SIZE;
	struct place *places = size ? calloc(size, sizeof *places) : NULL;

	if (!places)
		return -ENOMEM;
	for (uint32_t i = 0; i < shadow->size; i++)
		if (shadow->places[i].page != 0)
			*place_of(places, size, shadow->places[i].page) = shadow->places[i];
	shadow->bytes += (size - shadow->size) * sizeof *places;
	free(shadow->places);
	shadow->places = places;
	shadow->size = size;
	return 0;
}

/* ---- images ---- */

static bool same_frame(const struct ese_image *a, const struct ese_image *b)
{
	return a->level == b->level && a->previous == b->previous &&
	       a->base_first == b->base_first && a->base_count == b->base_count;
}

/* What has changed since birth: `put` and `gone`, whose numbers are in the note. */
static void compare(struct ese_shadow *shadow, const struct ese_image *image, struct note *note)
{
	const struct ese_image *born = &shadow->born;
	unsigned old = 0, now = 0;

	while (old < born->count || now < image->count) {
		const struct ese_slot *before = old < born->count ? &born->slots[old] : NULL;
		const struct ese_slot *after = now < image->count ? &image->slots[now] : NULL;

		if (before && after && memcmp(before, after, sizeof *after) == 0) {
			old++;
			now++;
		} else if (before && (!after || before->key <= after->key)) {
			shadow->gone[note->gone++] = (uint16_t)old++;
		} else {
			assert(after);
			shadow->put[note->put++] = *after;
			now++;
		}
	}
}

static struct note *note_new(struct ese_shadow *shadow, const struct ese_image *image)
{
	struct note head = {.dbtime = image->dbtime, .next = image->next};
	bool delta = same_frame(image, &shadow->born);
	const struct ese_slot *slots = delta ? shadow->put : image->slots;
	struct note *note;
	uint8_t *at;

	if (delta) {
		compare(shadow, image, &head);
	} else {
		head.put = image->count;
		head.gone = WHOLE;
	}
	note = units_new(shadow, units_of(&head));
	if (!note)
		return NULL;
	*note = head;
	at = (uint8_t *)(note + 1);
	if (head.put)
		memcpy(at, slots, head.put * sizeof *slots);
	at += head.put * sizeof *slots;
	if (delta)
		memcpy(at, shadow->gone, head.gone * sizeof *shadow->gone);
	else
		*(struct whole *)(void *)at = (struct whole){image->previous, image->base_first,
							     image->base_count, image->level};
	return note;
}

int ese_shadow_put(struct ese_shadow *shadow, const struct ese_image *image)
{
	struct place *place;
	struct note *note;
	int r;

	if (shadow->used >= shadow->size / 4 * 3) {
		r = grow(shadow);
		if (r < 0)
			return r;
	}
	r = ese_image_initial(shadow->rules, image->page, &shadow->born);
	if (r < 0)
		return r;
	note = note_new(shadow, image);
	if (!note)
		return -ENOMEM;
	place = place_of(shadow->places, shadow->size, image->page);
	shadow->used += place->page == 0;
	note_free(shadow, place->note);
	*place = (struct place){image->page, note};
	return 0;
}

static int get_whole(const struct note *note, struct ese_image *image)
{
	const struct ese_slot *put = (const void *)(note + 1);
	const struct whole *whole = (const void *)(put + note->put);
	int r;

	image->count = 0;
	r = ese_image_reserve(image, note->put);
	if (r < 0)
		return r;
	image->level = (uint8_t)whole->level;
	image->previous = whole->previous;
	image->base_first = whole->base_first;
	image->base_count = whole->base_count;
	image->count = note->put;
	if (note->put)
		memcpy(image->slots, put, note->put * sizeof *put);
	return 0;
}

/* IMAGE is as it was born. */
static int get_delta(struct ese_shadow *shadow, const struct note *note, struct ese_image *image)
{
	const struct ese_slot *put = (const void *)(note + 1);
	const uint16_t *gone = (const void *)(put + note->put);
	unsigned count = image->count - note->gone + note->put, puts = 0, gones = 0, out = 0;
	int r;

	if (note->put == 0 && note->gone == 0)
		return 0;
	r = ese_image_copy(&shadow->born, image);
	if (r == 0)
		r = ese_image_reserve(image, count);
	if (r < 0)
		return r;
	for (unsigned old = 0; old < shadow->born.count; old++) {
		const struct ese_slot *slot = &shadow->born.slots[old];

		if (gones < note->gone && gone[gones] == old) {
			gones++;
			continue;
		}
		while (puts < note->put && put[puts].key < slot->key)
			image->slots[out++] = put[puts++];
		image->slots[out++] = *slot;
	}
	while (puts < note->put)
		image->slots[out++] = put[puts++];
	assert(out == count);
	image->count = (uint16_t)count;
	return 0;
}

int ese_shadow_get(struct ese_shadow *shadow, uint32_t page, struct ese_image *image)
{
	const struct note *note = NULL;
	int r = ese_image_initial(shadow->rules, page, image);

	if (shadow->size)
		note = place_of(shadow->places, shadow->size, page)->note;
	if (r < 0 || !note)
		return r;
	r = note->gone == WHOLE ? get_whole(note, image) : get_delta(shadow, note, image);
	if (r < 0)
		return r;
	image->dbtime = note->dbtime;
	image->next = note->next;
	return ese_image_settle(image);
}

uint32_t ese_shadow_pages(const struct ese_shadow *shadow)
{
	return shadow->used;
}

size_t ese_shadow_bytes(const struct ese_shadow *shadow)
{
	return shadow->bytes + ese_image_pool_bytes(shadow->pool);
}
