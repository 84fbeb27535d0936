/* SPDX-License-Identifier: MIT
 *
 * What a new database consists of, by formula, and the nodes that rest on it.
 *
 * Nothing is stored of a page that has not changed since the database was made: a database of
 * terabytes is there at once.
 */
#include <assert.h>
#include <errno.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_image.h"

#define LEAVES_MAX UINT32_C(0x7fffffff)

/* splitmix64: a hash good enough for chances and keys. */
static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Sets levels, counts and first pages for a tree of LEAVES; pages needed with the header, or
 * UINT64_MAX when it would be too high. */
static uint64_t lay_out(struct ese_image_rules *rules, uint64_t leaves)
{
	uint64_t pages = ESE_PAGE_FIRST, count = leaves;

	for (unsigned level = 0; level < ESE_LEVELS_MAX - 2; level++) {
		rules->first[level] = (uint32_t)pages;
		rules->count[level] = (uint32_t)count;
		pages += count;
		if (count == 1) {
			rules->levels = level + 1;
			return pages;
		}
		count = (count + rules->config.fanout - 1) / rules->config.fanout;
	}
	return UINT64_MAX;
}

static int check_config(const struct ese_rules_config *config, struct err *err)
{
	uint32_t max = config->children_max;

	if (max < 3 || max > ESE_ITEMS_MAX)
		return err_set(err, -EINVAL, "a node cannot have up to %u children: 3 to %d can",
			       max, ESE_ITEMS_MAX);
	if (config->fanout < 2 || config->fanout > max)
		return err_set(err, -EINVAL, "fan-out %u is not within 2 and %u", config->fanout,
			       max);
	if (config->record_bytes < ESE_RECORD_BYTES_MIN ||
	    config->record_bytes + ESE_DIRECTORY_BYTES > ESE_PAGE_ROOM / 2)
		return err_set(err, -EINVAL, "records of %u bytes are not within %d and %d",
			       config->record_bytes, ESE_RECORD_BYTES_MIN,
			       ESE_PAGE_ROOM / 2 - ESE_DIRECTORY_BYTES);
	if (!(config->full_leaves >= 0 && config->full_leaves <= 1))
		return err_set(err, -EINVAL, "the share of full leaves is not within 0 and 1");
	return 0;
}

int ese_rules_init(struct ese_image_rules *rules, const struct ese_rules_config *config,
		   struct err *err)
{
	struct ese_image_rules made = {.config = *config};
	uint64_t pages = MIN_OF(config->pages, UINT32_MAX), low = 1, high;
	int r;

	if (made.config.children_max == 0)
		made.config.children_max = ESE_ITEMS_MAX;
	r = check_config(&made.config, err);
	if (r < 0)
		return r;
	if (pages < ESE_PAGE_FIRST + 1)
		return err_set(err, -EINVAL, "a database has %d pages at least",
			       ESE_PAGE_FIRST + 1);
	high = MIN_OF(pages - ESE_PAGE_FIRST, LEAVES_MAX);
	while (low < high) { /* the most leaves whose tree has room */
		uint64_t middle = (low + high + 1) / 2;

		if (lay_out(&made, middle) <= pages)
			low = middle;
		else
			high = middle - 1;
	}
	made.pages = (uint32_t)lay_out(&made, low);
	made.root = made.first[made.levels - 1];
	made.keys = low << ESE_LEAF_SHIFT;
	made.span[0] = UINT64_C(1) << ESE_LEAF_SHIFT;
	for (unsigned level = 1; level < made.levels; level++)
		if (__builtin_mul_overflow(made.span[level - 1], made.config.fanout,
					   &made.span[level]))
			made.span[level] = UINT64_MAX;
	made.leaf_records_max = ESE_PAGE_ROOM / (made.config.record_bytes + ESE_DIRECTORY_BYTES);
	*rules = made;
	return 0;
}

unsigned ese_rules_level(const struct ese_image_rules *rules, uint32_t page)
{
	unsigned level = rules->levels - 1;

	assert(page >= ESE_PAGE_FIRST && page < rules->pages);
	while (page < rules->first[level])
		level--;
	return level;
}

/* Evenly spaced, each at a place of its own within its share. */
static int born_leaf(const struct ese_image_rules *rules, uint32_t index, struct ese_image *leaf)
{
	uint64_t hash = mix(rules->config.seed ^ mix(index));
	unsigned max = rules->leaf_records_max, count = max / 2;
	uint64_t step;
	int r;

	if ((double)(hash >> 11) * 0x1p-53 < rules->config.full_leaves)
		count = max;
	else if (max > 1)
		count += (unsigned)(mix(hash) % (max - max / 2));
	r = ese_image_reserve(leaf, count);
	if (r < 0)
		return r;
	step = count ? (UINT64_C(1) << ESE_LEAF_SHIFT) / count : 0;
	for (unsigned i = 0; i < count; i++)
		leaf->slots[i] = (struct ese_slot){.key = ((uint64_t)index << ESE_LEAF_SHIFT) +
							  i * step + mix(hash + i) % step,
						   .bytes = rules->config.record_bytes};
	leaf->count = (uint16_t)count;
	leaf->bytes = count * (rules->config.record_bytes + ESE_DIRECTORY_BYTES);
	return 0;
}

int ese_image_initial(const struct ese_image_rules *rules, uint32_t page, struct ese_image *image)
{
	unsigned level;
	uint32_t index;

	image->page = page;
	image->dbtime = 0;
	image->count = 0;
	image->bytes = 0;
	image->level = 0;
	image->previous = image->next = 0;
	image->base_first = image->base_count = 0;
	if (page >= rules->pages)
		return 0;
	level = ese_rules_level(rules, page);
	index = page - rules->first[level];
	image->level = (uint8_t)level;
	image->previous = index ? page - 1 : 0;
	image->next = index + 1 < rules->count[level] ? page + 1 : 0;
	if (level == 0)
		return born_leaf(rules, index, image);
	image->base_first = index * rules->config.fanout;
	image->base_count =
	    MIN_OF(rules->config.fanout, rules->count[level - 1] - image->base_first);
	return 0;
}

/* ---- nodes ---- */

/* Least key of the child that was born as INDEX on LEVEL. */
static uint64_t born_key(const struct ese_image_rules *rules, unsigned level, uint32_t index)
{
	return rules->span[level] * index; /* INDEX 0 where the span is more than a key holds */
}

uint32_t ese_node_child(const struct ese_image_rules *rules, const struct ese_image *node,
			uint64_t key)
{
	unsigned level = node->level - 1u, at = ese_image_find(node, key);
	bool exact = at < node->count && node->slots[at].key == key;
	const struct ese_slot *extra = exact ? &node->slots[at] : at ? &node->slots[at - 1] : NULL;
	uint64_t index;

	assert(node->level && (node->base_count || (node->count && node->slots)));
	if (node->base_count == 0)
		return (uint32_t)(extra ? extra : node->slots)->child;
	index = key / rules->span[level];
	if (index < node->base_first && extra)
		return (uint32_t)extra->child;
	index = MAX_OF(index, node->base_first);
	index = MIN_OF(index, node->base_first + node->base_count - 1);
	if (extra && extra->key > born_key(rules, level, (uint32_t)index))
		return (uint32_t)extra->child;
	return rules->first[level] + (uint32_t)index;
}

void ese_node_list(const struct ese_image_rules *rules, const struct ese_image *node,
		   struct ese_slot *ret_slots)
{
	unsigned level = node->level - 1u, extra = 0, born = 0;

	for (unsigned i = 0; i < ese_node_children(node); i++) {
		uint32_t index = node->base_first + born;
		struct ese_slot slot = {0};

		if (born < node->base_count)
			slot = (struct ese_slot){.key = born_key(rules, level, index),
						 .child = rules->first[level] + index};
		if (born == node->base_count ||
		    (extra < node->count && node->slots[extra].key < slot.key)) {
			slot = node->slots[extra++];
		} else {
			born++;
		}
		ret_slots[i] = slot;
	}
}

static uint64_t middle_key(const struct ese_image_rules *rules, const struct ese_image *image)
{
	struct ese_slot slots[ESE_ITEMS_MAX];

	if (image->level == 0)
		return image->slots[image->count / 2].key;
	ese_node_list(rules, image, slots);
	return slots[ese_node_children(image) / 2].key;
}

void ese_image_split(const struct ese_image_rules *rules, const struct ese_image *left,
		     uint32_t target, struct ese_update ret_updates[2])
{
	uint64_t key = middle_key(rules, left);
	unsigned at = ese_image_find(left, key);
	uint32_t stays = 0;

	assert(left->level ? ese_node_children(left) >= 2 : left->count >= 2);
	while (stays < left->base_count &&
	       born_key(rules, left->level - 1u, left->base_first + stays) < key)
		stays++;
	ret_updates[0] = (struct ese_update){
	    .page = left->page,
	    .kind = ESE_UPDATE_CUT,
	    .key = key,
	    .target = target,
	    .base_count = stays,
	    .dbtime_before = left->dbtime,
	};
	ret_updates[1] = (struct ese_update){
	    .page = target,
	    .kind = ESE_UPDATE_IMAGE,
	    .level = left->level,
	    .previous = left->page,
	    .next = left->next,
	    .base_first = left->base_first + stays,
	    .base_count = left->base_count - stays,
	    .slot_count = left->count - at,
	    .slots = left->slots ? left->slots + at : NULL,
	};
}
