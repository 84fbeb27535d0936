/* SPDX-License-Identifier: MIT
 *
 * Images: their lists, and the updates that change them.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_image.h"

enum {
	SLOTS_LEAST = 16, /* a leaf of 2,129 B records has 15 */
	CLASSES = 8,	  /* 16, 32, ... 1,024, ESE_ITEMS_MAX */
	CHUNK_BYTES = 256 * 1024,
};

struct chunk {
	struct chunk *next;
	size_t used;
	_Alignas(16) uint8_t bytes[CHUNK_BYTES];
};

struct free_list {
	struct free_list *next;
};

struct ese_image_pool {
	struct chunk *chunks;
	struct free_list *lists[CLASSES];
	size_t bytes;
};

struct ese_image_pool *ese_image_pool_new(void)
{
	return calloc(1, sizeof(struct ese_image_pool));
}

struct ese_image_pool *ese_image_pool_free(struct ese_image_pool *pool)
{
	if (!pool)
		return NULL;
	for (struct chunk *chunk = pool->chunks, *next; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(pool);
	return NULL;
}

size_t ese_image_pool_bytes(const struct ese_image_pool *pool)
{
	return pool->bytes;
}

static unsigned class_of(unsigned count, unsigned *ret_room)
{
	unsigned class = 0, room = SLOTS_LEAST;

	while (room < count) {
		room *= 2;
		class ++;
	}
	*ret_room = MIN_OF(room, ESE_ITEMS_MAX);
	return class;
}

static struct ese_slot *slots_new(struct ese_image_pool *pool, unsigned count, unsigned *ret_room)
{
	unsigned room, class = class_of(count, &room);
	size_t bytes = room * sizeof(struct ese_slot);
	struct free_list *list = pool->lists[class];
	struct chunk *chunk = pool->chunks;

	if (list) {
		pool->lists[class] = list->next;
		*ret_room = room;
		return (struct ese_slot *)(void *)list;
	}
	if (!chunk || chunk->used + bytes > CHUNK_BYTES) {
		chunk = malloc(sizeof *chunk);
		if (!chunk)
			return NULL;
		chunk->used = 0;
		chunk->next = pool->chunks;
		pool->chunks = chunk;
		pool->bytes += sizeof *chunk;
	}
	chunk->used += bytes;
	*ret_room = room;
	return (struct ese_slot *)(void *)(chunk->bytes + chunk->used - bytes);
}

static void slots_free(struct ese_image_pool *pool, struct ese_slot *slots, unsigned room)
{
	unsigned same;
	struct free_list *list = (struct free_list *)(void *)slots;
	unsigned class = class_of(room, &same);

	assert(same == room);
	list->next = pool->lists[class];
	pool->lists[class] = list;
}

void ese_image_init(struct ese_image *image, struct ese_image_pool *pool, uint32_t page)
{
	*image = (struct ese_image){.pool = pool, .page = page};
}

void ese_image_clear(struct ese_image *image)
{
	if (image->slots)
		slots_free(image->pool, image->slots, image->room);
	ese_image_init(image, image->pool, image->page);
}

int ese_image_reserve(struct ese_image *image, unsigned count)
{
	struct ese_slot *slots;
	unsigned room;

	assert(count <= ESE_ITEMS_MAX);
	if (count <= image->room)
		return 0;
	slots = slots_new(image->pool, count, &room);
	if (!slots)
		return -ENOMEM;
	if (image->slots) {
		memcpy(slots, image->slots, image->count * sizeof *slots);
		slots_free(image->pool, image->slots, image->room);
	}
	image->slots = slots;
	image->room = (uint16_t)room;
	return 0;
}

/* Replaces the list; FROM may be part of another image's. */
static int take_slots(struct ese_image *image, const struct ese_slot *from, unsigned count)
{
	int r;

	image->count = 0;
	r = ese_image_reserve(image, count);
	if (r < 0)
		return r;
	if (count)
		memcpy(image->slots, from, count * sizeof *from);
	image->count = (uint16_t)count;
	return 0;
}

int ese_image_copy(struct ese_image *to, const struct ese_image *from)
{
	struct ese_image copy;
	int r = take_slots(to, from->slots, from->count);

	if (r < 0)
		return r;
	copy = *from;
	copy.pool = to->pool;
	copy.slots = to->slots;
	copy.room = to->room;
	*to = copy;
	return 0;
}

bool ese_image_equal(const struct ese_image *a, const struct ese_image *b)
{
	return a->page == b->page && a->level == b->level && a->dbtime == b->dbtime &&
	       a->count == b->count && a->previous == b->previous && a->next == b->next &&
	       a->base_first == b->base_first && a->base_count == b->base_count &&
	       (a->count == 0 || memcmp(a->slots, b->slots, a->count * sizeof *a->slots) == 0);
}

int ese_image_settle(struct ese_image *image)
{
	uint32_t bytes = 0;

	for (unsigned i = 0; i < image->count; i++) {
		if (i && image->slots[i].key <= image->slots[i - 1].key)
			return -EBADMSG;
		if (image->level == 0 && image->slots[i].bytes > ESE_PAGE_ROOM)
			return -EBADMSG;
		bytes +=
		    image->level ? ESE_CHILD_BYTES : image->slots[i].bytes + ESE_DIRECTORY_BYTES;
	}
	if (bytes > ESE_PAGE_ROOM || image->base_count > (uint32_t)(ESE_ITEMS_MAX - image->count) ||
	    (image->level == 0 && image->base_count))
		return -EBADMSG;
	image->bytes = bytes;
	return 0;
}

unsigned ese_image_find(const struct ese_image *image, uint64_t key)
{
	unsigned low = 0, high = image->count;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (image->slots[middle].key < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int insert_at(struct ese_image *image, unsigned at, const struct ese_slot *slot)
{
	int r;

	if (image->count + image->base_count >= ESE_ITEMS_MAX)
		return -EBADMSG;
	r = ese_image_reserve(image, image->count + 1u);
	if (r < 0)
		return r;
	memmove(image->slots + at + 1, image->slots + at,
		(image->count - at) * sizeof *image->slots);
	image->slots[at] = *slot;
	image->count++;
	return 0;
}

static bool has(const struct ese_image *image, unsigned at, uint64_t key)
{
	return at < image->count && image->slots[at].key == key;
}

static int put(struct ese_image *leaf, const struct ese_update *update)
{
	unsigned at = ese_image_find(leaf, update->key);
	struct ese_slot slot = {
	    .key = update->key, .version = update->version, .bytes = update->bytes};
	bool there = has(leaf, at, update->key);
	uint32_t before = there ? leaf->slots[at].bytes + ESE_DIRECTORY_BYTES : 0;
	int r = 0;

	if (leaf->level || update->bytes > ESE_PAGE_ROOM ||
	    leaf->bytes - before + update->bytes + ESE_DIRECTORY_BYTES > (uint32_t)ESE_PAGE_ROOM)
		return -EBADMSG;
	if (there)
		leaf->slots[at] = slot;
	else
		r = insert_at(leaf, at, &slot);
	if (r == 0)
		leaf->bytes += update->bytes + ESE_DIRECTORY_BYTES - before;
	return r;
}

static int take_out(struct ese_image *leaf, uint64_t key)
{
	unsigned at = ese_image_find(leaf, key);

	if (leaf->level || !has(leaf, at, key))
		return -EBADMSG;
	leaf->bytes -= leaf->slots[at].bytes + ESE_DIRECTORY_BYTES;
	leaf->count--;
	memmove(leaf->slots + at, leaf->slots + at + 1, (leaf->count - at) * sizeof *leaf->slots);
	return 0;
}

static int cut(struct ese_image *image, const struct ese_update *update)
{
	if (update->base_count > image->base_count)
		return -EBADMSG;
	image->count = (uint16_t)ese_image_find(image, update->key);
	image->base_count = update->base_count;
	image->next = (uint32_t)update->target;
	return ese_image_settle(image);
}

static int replace_all(struct ese_image *image, const struct ese_update *update)
{
	int r;

	if (update->slot_count > ESE_ITEMS_MAX || update->level >= ESE_LEVELS_MAX)
		return -EBADMSG;
	r = take_slots(image, update->slots, update->slot_count);
	if (r < 0)
		return r;
	image->level = update->level;
	image->previous = (uint32_t)update->previous;
	image->next = (uint32_t)update->next;
	image->base_first = (uint32_t)update->base_first;
	image->base_count = update->base_count;
	return ese_image_settle(image);
}

static int add_child(struct ese_image *node, const struct ese_update *update)
{
	unsigned at = ese_image_find(node, update->key);
	struct ese_slot slot = {.key = update->key, .child = update->target};
	int r;

	if (node->level == 0 || has(node, at, update->key))
		return -EBADMSG;
	r = insert_at(node, at, &slot);
	if (r == 0)
		node->bytes += ESE_CHILD_BYTES;
	return r;
}

int ese_image_apply(struct ese_image *image, const struct ese_update *update)
{
	int r = 0;

	assert(update->page == image->page);
	switch (update->kind) {
	case ESE_UPDATE_PUT:
		r = put(image, update);
		break;
	case ESE_UPDATE_DELETE:
		r = take_out(image, update->key);
		break;
	case ESE_UPDATE_CUT:
		r = cut(image, update);
		break;
	case ESE_UPDATE_IMAGE:
		r = replace_all(image, update);
		break;
	case ESE_UPDATE_ENTRY:
		r = add_child(image, update);
		break;
	case ESE_UPDATE_LINK:
		image->previous = (uint32_t)update->target;
		break;
	case ESE_UPDATE_TOUCH:
		break;
	default:
		return -EBADMSG;
	}
	if (r == 0)
		image->dbtime = update->dbtime_after;
	return r;
}
