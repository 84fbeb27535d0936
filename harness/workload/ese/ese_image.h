/* SPDX-License-Identifier: MIT
 *
 * What a page of the engine holds, without its 32 KiB: an image.  The cache, the log's split
 * records and the in-memory store of `content: none` keep images; bytes exist only on their way to
 * and from a volume (ese_page.h).
 *
 * A leaf is a sorted list of records (struct ese_slot).  A node maps keys to children: a *base
 * range* of the children it was born with, which follow from the rules of the database by formula,
 * and extra entries (slots), which came of splits.  So a node of 1,334 children costs some dozens
 * of bytes.
 *
 * A new database follows from its rules alone: leaf i holds records of keys
 * [i << 32, (i + 1) << 32), nodes stand above them in levels until there is one root.  Pages:
 * 0 and 1 are the file's header, then all leaves in key order, then each level upwards.
 *
 * `next` is the right neighbour on the level; `previous` the left one at the time of the page's
 * birth only (a split does not touch the right neighbour).
 *
 * Ownership: the list of an image comes from a pool and goes back to it with ese_image_clear; an
 * image is moved by plain assignment, copied by ese_image_copy.  Bounds: ESE_ITEMS_MAX.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_IMAGE_H
#define SANLAB_HARNESS_WORKLOAD_ESE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "harness/workload/ese/ese_page.h"
#include "harness/workload/ese/ese_record.h"

enum {
	ESE_PAGE_ROOM = ESE_PAGE_BYTES - ESE_PAGE_HEADER_BYTES, /* for records, their directory */
	ESE_DIRECTORY_BYTES = 8,				/* a record's place in it */
	ESE_CHILD_BYTES = 24,					/* a node's entry in a page */
	ESE_ITEMS_MAX = ESE_PAGE_ROOM / ESE_CHILD_BYTES,	/* of any list: 1,362 */
	ESE_RECORD_BYTES_MIN = ESE_CHILD_BYTES - ESE_DIRECTORY_BYTES,
	ESE_LEVELS_MAX = 12,
	ESE_LEAF_SHIFT = 32, /* a new leaf's share of the keys */
};

struct ese_image_pool;

struct ese_image {
	struct ese_image_pool *pool;
	struct ese_slot *slots; /* leaf: records; node: children beside the base range */
	uint64_t dbtime;	/* of the last update; 0: as created */
	uint32_t page;
	uint32_t previous, next;	 /* neighbours on the level; 0: none */
	uint32_t base_first, base_count; /* node: children by their index on the level below */
	uint32_t bytes;			 /* leaf: of the records with their directory */
	uint16_t count;			 /* slots in use */
	uint16_t room;			 /* slots allocated */
	uint8_t level;			 /* 0: leaf */
};

/* Lists of images, so that no operation calls malloc once the cache has warmed up.  One a loop;
 * one thread. */
struct ese_image_pool *ese_image_pool_new(void);
struct ese_image_pool *ese_image_pool_free(struct ese_image_pool *pool); /* with every list */
size_t ese_image_pool_bytes(const struct ese_image_pool *pool);

/* An empty image of PAGE without a list. */
void ese_image_init(struct ese_image *image, struct ese_image_pool *pool, uint32_t page);
void ese_image_clear(struct ese_image *image); /* gives the list back */
/* Room for COUNT slots, at most ESE_ITEMS_MAX; keeps what is there.  -ENOMEM. */
int ese_image_reserve(struct ese_image *image, unsigned count);
/* TO must be initialised (its list is used again or given back). */
int ese_image_copy(struct ese_image *to, const struct ese_image *from);
bool ese_image_equal(const struct ese_image *a, const struct ese_image *b);
/* 0, or -EBADMSG: the order of the keys or a bound is broken.  Sets `bytes`. */
int ese_image_settle(struct ese_image *image);

/* The one way to change a page: doing, redoing and replaying an update.  Sets the image's dbtime to
 * the update's; whoever calls compares dbtime_before.  IMAGE as a whole (ESE_UPDATE_IMAGE) is
 * replaced.  -EBADMSG: the update does not fit what the page holds; -ENOMEM. */
int ese_image_apply(struct ese_image *image, const struct ese_update *update);

/* ---- a leaf ---- */

/* The place of the first slot whose key is at least KEY; count when there is none. */
unsigned ese_image_find(const struct ese_image *image, uint64_t key);
static inline bool ese_leaf_fits(const struct ese_image *leaf, uint32_t bytes)
{
	return leaf->bytes + bytes + ESE_DIRECTORY_BYTES <= ESE_PAGE_ROOM;
}

/* ---- the rules of a new database ---- */

struct ese_rules_config {
	uint64_t seed;
	uint64_t pages;	       /* of the new database, header included: a tree of at most so many */
	uint32_t record_bytes; /* 2,129 */
	uint32_t fanout;       /* 1,334: of new nodes */
	uint32_t children_max; /* of any node; 0: ESE_ITEMS_MAX */
	double full_leaves;    /* share of the leaves that are born full: the next insert splits */
};

struct ese_image_rules {
	struct ese_rules_config config;
	unsigned levels; /* root's level + 1 */
	uint32_t root;	 /* page; stays the root for ever, at first on level levels - 1 */
	uint32_t pages;	 /* header + tree: where the database ends at first */
	uint32_t leaf_records_max;
	uint32_t first[ESE_LEVELS_MAX]; /* page of each level */
	uint32_t count[ESE_LEVELS_MAX];
	uint64_t span[ESE_LEVELS_MAX]; /* keys below one page of a level */
	uint64_t keys;		       /* end of the key space: leaves << 32 */
};

/* -EINVAL with ERR: a size or constant that cannot be. */
int ese_rules_init(struct ese_image_rules *rules, const struct ese_rules_config *config,
		   struct err *err);
/* The level PAGE was born on (ESE_PAGE_FIRST <= PAGE < rules->pages). */
unsigned ese_rules_level(const struct ese_image_rules *rules, uint32_t page);
/* What PAGE was born with.  IMAGE must be initialised.  A page beyond rules->pages is born as an
 * empty leaf.  -ENOMEM. */
int ese_image_initial(const struct ese_image_rules *rules, uint32_t page, struct ese_image *image);

/* ---- a node ---- */

/* The child that KEY belongs to. */
uint32_t ese_node_child(const struct ese_image_rules *rules, const struct ese_image *node,
			uint64_t key);
static inline unsigned ese_node_children(const struct ese_image *node)
{
	return node->base_count + node->count;
}
/* The children in key order, as entries {key, child}; ROOM for ese_node_children(). */
void ese_node_list(const struct ese_image_rules *rules, const struct ese_image *node,
		   struct ese_slot *ret_slots);

/* ---- splits ---- */

/* How LEFT is split in halves, its upper one moving to page TARGET: fills [0] with the CUT of LEFT
 * and [1] with the IMAGE of TARGET, but for the dbtimes.  The slots are LEFT's own: valid until it
 * changes, so the new page is made first.  LEFT has at least two slots or children. */
void ese_image_split(const struct ese_image_rules *rules, const struct ese_image *left,
		     uint32_t target, struct ese_update ret_updates[2]);

#endif
