/* SPDX-License-Identifier: MIT
 *
 * Images and the rules of a new database: a tree made of images alone (a map of pages, no cache, no
 * I/O) must behave like a sorted list whatever is inserted, deleted and split, and the updates that
 * made it must make it again.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "harness/workload/ese/ese_access.h"
#include "harness/workload/ese/ese_image.h"

enum { PAGES_MAX = 20000, KEYS_MAX = 100000 };

struct world {
	struct ese_image_rules rules;
	struct ese_image_pool *pool;
	struct ese_image *pages;
	uint32_t used;
	uint64_t dbtime;
	struct ese_slot *list; /* sorted: what must be there */
	unsigned count;
};

static struct world *world_new(const struct ese_rules_config *config)
{
	struct world *world = calloc(1, sizeof *world);
	struct err err = {0};

	assert_non_null(world);
	world->pool = ese_image_pool_new();
	world->pages = calloc(PAGES_MAX, sizeof *world->pages);
	world->list = calloc(KEYS_MAX, sizeof *world->list);
	assert_int_equal(ese_rules_init(&world->rules, config, &err), 0);
	world->used = world->rules.pages;
	for (uint32_t page = ESE_PAGE_FIRST; page < world->used; page++) {
		struct ese_image *image = &world->pages[page], copy;

		ese_image_init(image, world->pool, page);
		assert_int_equal(ese_image_initial(&world->rules, page, image), 0);
		ese_image_init(&copy, world->pool, page);
		assert_int_equal(ese_image_copy(&copy, image), 0);
		assert_int_equal(ese_image_settle(&copy), 0);
		assert_int_equal(copy.bytes, image->bytes);
		ese_image_clear(&copy);
		for (unsigned i = 0; image->level == 0 && i < image->count; i++)
			world->list[world->count++] = image->slots[i];
	}
	return world;
}

static void world_free(struct world *world)
{
	ese_image_pool_free(world->pool);
	free(world->pages);
	free(world->list);
	free(world);
}

static struct ese_image *leaf_of(struct world *world, uint64_t key, uint32_t *path, unsigned *depth)
{
	struct ese_image *image = &world->pages[world->rules.root];

	*depth = 0;
	for (;;) {
		unsigned level = image->level;

		path[(*depth)++] = image->page;
		if (level == 0)
			return image;
		image = &world->pages[ese_node_child(&world->rules, image, key)];
		assert_int_equal(image->level, level - 1);
	}
}

static void apply(struct world *world, struct ese_update *update)
{
	struct ese_image *image = &world->pages[update->page], copy;

	update->dbtime_before = image->dbtime;
	update->dbtime_after = ++world->dbtime;
	assert_int_equal(ese_image_apply(image, update), 0);
	ese_image_init(&copy, world->pool, image->page);
	assert_int_equal(ese_image_copy(&copy, image), 0);
	assert_int_equal(ese_image_settle(&copy), 0);
	assert_true(ese_image_equal(&copy, image));
	assert_int_equal(copy.bytes, image->bytes);
	ese_image_clear(&copy);
}

static struct ese_image *page_new(struct world *world)
{
	struct ese_image *image = &world->pages[world->used];

	assert_true(world->used < PAGES_MAX);
	ese_image_init(image, world->pool, world->used++);
	return image;
}

/* Splits PATH[AT], whose parent has room. */
static void split(struct world *world, const uint32_t *path, unsigned at)
{
	struct ese_update updates[2], entry;
	struct ese_image *left = &world->pages[path[at]], *right = page_new(world);

	ese_image_split(&world->rules, left, right->page, updates);
	entry = (struct ese_update){.page = path[at - 1],
				    .kind = ESE_UPDATE_ENTRY,
				    .key = updates[0].key,
				    .target = right->page};
	apply(world, &updates[1]);
	apply(world, &updates[0]);
	apply(world, &entry);
}

static void grow(struct world *world)
{
	struct ese_image *root = &world->pages[world->rules.root], *below = page_new(world);
	struct ese_update down = {.page = below->page,
				  .kind = ESE_UPDATE_IMAGE,
				  .level = root->level,
				  .base_first = root->base_first,
				  .base_count = root->base_count,
				  .slot_count = root->count,
				  .slots = root->slots};
	struct ese_slot child = {.child = below->page};
	struct ese_update up = {.page = root->page,
				.kind = ESE_UPDATE_IMAGE,
				.level = (uint8_t)(root->level + 1),
				.slot_count = 1,
				.slots = &child};

	apply(world, &down);
	apply(world, &up);
}

static void insert(struct world *world, uint64_t key)
{
	uint32_t path[ESE_LEVELS_MAX];
	unsigned depth;
	struct ese_image *leaf = leaf_of(world, key, path, &depth);
	struct ese_update put = {
	    .kind = ESE_UPDATE_PUT, .key = key, .bytes = world->rules.config.record_bytes};

	while (!ese_leaf_fits(leaf, put.bytes)) {
		unsigned at = depth - 1;

		while (at && ese_node_children(&world->pages[path[at - 1]]) >=
				 world->rules.config.children_max)
			at--;
		if (at == 0)
			grow(world);
		else
			split(world, path, at);
		leaf = leaf_of(world, key, path, &depth);
	}
	put.page = leaf->page;
	apply(world, &put);
}

static unsigned place_of(const struct world *world, uint64_t key)
{
	unsigned low = 0, high = world->count;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (world->list[middle].key < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void check(struct world *world)
{
	uint32_t path[ESE_LEVELS_MAX];
	unsigned depth, at = 0;
	struct ese_image *leaf = leaf_of(world, 0, path, &depth);

	for (;;) { /* along the leaves */
		for (unsigned i = 0; i < leaf->count; i++, at++) {
			assert_true(at < world->count);
			assert_true(leaf->slots[i].key == world->list[at].key);
			assert_ptr_equal(leaf_of(world, leaf->slots[i].key, path, &depth), leaf);
		}
		if (!leaf->next)
			break;
		leaf = &world->pages[leaf->next];
	}
	assert_int_equal(at, world->count);
}

static void run(uint64_t seed, uint32_t pages, uint32_t fanout, uint32_t children, uint32_t record)
{
	struct ese_rules_config config = {.seed = seed,
					  .pages = pages,
					  .record_bytes = record,
					  .fanout = fanout,
					  .children_max = children,
					  .full_leaves = 0.1};
	struct world *world = world_new(&config);
	struct rng rng;
	uint64_t hot;

	print_message("# seed %llu: %u pages, fan-out %u (most: %u), records of %u\n",
		      (unsigned long long)seed, pages, fanout, children, record);
	rng_init(&rng, seed, 1);
	check(world);
	hot = rng_below(&rng, world->rules.keys);
	for (unsigned i = 0; i < 3000; i++) {
		/* Half of all fall on a narrow range: many splits of few nodes. */
		uint64_t key = i & 1 ? rng_below(&rng, world->rules.keys)
				     : (hot + rng_below(&rng, 1000000)) % world->rules.keys;
		unsigned at = place_of(world, key);
		bool there = at < world->count && world->list[at].key == key;

		if (rng_below(&rng, 4) == 0 && world->count) {
			struct ese_update out = {.kind = ESE_UPDATE_DELETE};
			uint32_t path[ESE_LEVELS_MAX];
			unsigned depth;

			at = MIN_OF(at, world->count - 1);
			out.key = world->list[at].key;
			out.page = leaf_of(world, out.key, path, &depth)->page;
			apply(world, &out);
			memmove(world->list + at, world->list + at + 1,
				(--world->count - at) * sizeof *world->list);
		} else if (!there) {
			insert(world, key);
			memmove(world->list + at + 1, world->list + at,
				(world->count++ - at) * sizeof *world->list);
			world->list[at] = (struct ese_slot){.key = key};
		}
	}
	check(world);
	world_free(world);
}

static void test_tree_of_images(void **state)
{
	(void)state;
	run(1, 3, 2, 3, 2129);
	run(2, 20, 2, 3, 2129);
	run(3, 300, 4, 5, 2129);
	run(4, 1000, 8, 9, 8000);
	run(5, 2000, 40, 60, 1000);
	run(6, 2000, 1334, 0, 2129);
	run(7, 300, 16, 17, 16000);
}

static void test_rules_of_a_large_one(void **state)
{
	struct ese_rules_config config = {.seed = 1,
					  .pages = 16007000,
					  .record_bytes = 2129,
					  .fanout = 1334,
					  .full_leaves = 0.065};
	struct ese_image_rules rules;
	struct ese_image_pool *pool = ese_image_pool_new();
	struct ese_image image;
	unsigned full = 0;

	(void)state;
	assert_int_equal(ese_rules_init(&rules, &config, NULL), 0);
	assert_true(rules.pages <= config.pages && rules.pages > config.pages - 1334);
	assert_int_equal(rules.levels, 4);
	assert_in_range(rules.count[1], 11985, 11995);
	assert_int_equal(rules.leaf_records_max, 15);
	ese_image_init(&image, pool, 0);
	for (uint32_t i = 0; i < 20000; i++) {
		assert_int_equal(ese_image_initial(&rules, 1000000 + i, &image), 0);
		full += !ese_leaf_fits(&image, config.record_bytes);
		if (image.count)
			assert_true(image.slots[0].key >> 32 == 1000000 + i - ESE_PAGE_FIRST);
	}
	assert_in_range(full, 1100, 1500);
	/* Every key finds its leaf. */
	for (uint64_t leaf = 0; leaf < rules.count[0]; leaf += 99991) {
		uint32_t page = rules.root;

		do {
			assert_int_equal(ese_image_initial(&rules, page, &image), 0);
			page = ese_node_child(&rules, &image, leaf << 32 | 12345);
		} while (image.level > 1);
		assert_int_equal(page, rules.first[0] + leaf);
	}
	ese_image_pool_free(pool);
}

static void test_bad_updates_are_refused(void **state)
{
	struct ese_rules_config config = {
	    .seed = 1, .pages = 100, .record_bytes = 2129, .fanout = 10, .full_leaves = 1};
	struct world *world = world_new(&config);
	struct ese_image *leaf = &world->pages[ESE_PAGE_FIRST];
	struct ese_image *root = &world->pages[world->rules.root];
	struct ese_update put = {
	    .page = leaf->page, .kind = ESE_UPDATE_PUT, .key = 1, .bytes = 2129};
	struct ese_update out = {.page = leaf->page, .kind = ESE_UPDATE_DELETE, .key = 1};
	struct ese_update entry = {
	    .page = leaf->page, .kind = ESE_UPDATE_ENTRY, .key = 1, .target = 7};
	struct ese_slot wrong[2] = {{.key = 5, .bytes = 1}, {.key = 5, .bytes = 1}};
	struct ese_update image = {
	    .page = leaf->page, .kind = ESE_UPDATE_IMAGE, .slot_count = 2, .slots = wrong};

	(void)state;
	assert_int_equal(ese_image_apply(leaf, &put), -EBADMSG); /* full */
	assert_int_equal(ese_image_apply(leaf, &out), -EBADMSG);
	assert_int_equal(ese_image_apply(leaf, &entry), -EBADMSG);
	assert_int_equal(ese_image_apply(leaf, &image), -EBADMSG);
	put.page = root->page;
	assert_int_equal(ese_image_apply(root, &put), -EBADMSG);
	world_free(world);
}

static void test_impossible_rules(void **state)
{
	struct ese_rules_config good = {
	    .seed = 1, .pages = 100, .record_bytes = 2129, .fanout = 10, .full_leaves = 0.5};
	struct ese_rules_config bad[] = {good, good, good, good, good};
	struct ese_image_rules rules;

	(void)state;
	bad[0].pages = 2;
	bad[1].record_bytes = 20000;
	bad[2].fanout = 1;
	bad[3].children_max = 5000;
	bad[4].full_leaves = 1.5;
	assert_int_equal(ese_rules_init(&rules, &good, NULL), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err err = {0};

		assert_int_equal(ese_rules_init(&rules, &bad[i], &err), -EINVAL);
		assert_true(err.what[0]);
	}
}

static double share_of_hottest(const struct ese_keys_config *config, uint64_t leaves, unsigned top)
{
	enum { DRAWS = 200000 };
	struct ese_access access;
	struct rng rng;
	unsigned *hits = calloc(leaves, sizeof *hits);
	unsigned sum = 0;

	assert_non_null(hits);
	rng_init(&rng, 7, 7);
	ese_access_init(&access, config, leaves, 12345);
	for (unsigned i = 0; i < DRAWS; i++) {
		uint64_t leaf = ese_access_key(&access, &rng) >> ESE_LEAF_SHIFT;

		assert_true(leaf < leaves);
		hits[leaf]++;
	}
	for (unsigned i = 0; i < top; i++) {
		uint64_t best = 0;

		for (uint64_t leaf = 1; leaf < leaves; leaf++)
			if (hits[leaf] > hits[best])
				best = leaf;
		sum += hits[best];
		hits[best] = 0;
	}
	free(hits);
	return sum / (double)DRAWS;
}

static void test_where_keys_fall(void **state)
{
	struct ese_keys_config uniform = {.kind = ESE_KEYS_UNIFORM};
	struct ese_keys_config hot = {.kind = ESE_KEYS_HOT, .hot_share = 0.1, .hot_hits = 0.8};
	struct ese_keys_config zipf = {.kind = ESE_KEYS_ZIPF, .theta = 0.9};
	double sum = 0, top = 0;

	(void)state;
	assert_true(share_of_hottest(&uniform, 100, 10) < 0.11);
	assert_true(share_of_hottest(&hot, 100, 10) > 0.79);
	assert_true(share_of_hottest(&hot, 100, 10) < 0.81);
	for (unsigned i = 1; i <= 1000; i++) {
		sum += pow(i, -0.9);
		if (i <= 10)
			top = sum;
	}
	assert_true(share_of_hottest(&zipf, 1000, 10) > top / sum - 0.03);
	assert_true(share_of_hottest(&zipf, 1000, 10) < top / sum + 0.03);
	assert_true(share_of_hottest(&zipf, 1, 1) == 1);
	assert_true(share_of_hottest(&zipf, 2, 2) == 1);
	assert_true(share_of_hottest(&hot, 1, 1) == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_tree_of_images),
	    cmocka_unit_test(test_rules_of_a_large_one),
	    cmocka_unit_test(test_bad_updates_are_refused),
	    cmocka_unit_test(test_impossible_rules),
	    cmocka_unit_test(test_where_keys_fall),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
