/* SPDX-License-Identifier: MIT
 *
 * What the configuration's files share: the node tree, places, messages and the table that finds
 * the place of a decoded field by its address.  Private to base/config_*.c.
 *
 * Ownership: nodes, texts and decoded memory come from cfg_alloc and die with the cfg.
 */
#ifndef SANLAB_BASE_CONFIG_IMPL_H
#define SANLAB_BASE_CONFIG_IMPL_H

#include "base/config.h"

/* Bounds: a lab file is a page or two; these stop hostile ones without limiting real ones. */
enum {
	CFG_MAX_FILE_BYTES = 1 << 20,
	CFG_MAX_DEPTH = 32,
	CFG_MAX_NODES = 32768,
	CFG_MAX_KEYS = 512,   /* in one mapping */
	CFG_MAX_ITEMS = 4096, /* in one list */
	CFG_MAX_SCALAR_BYTES = 4096,
	CFG_MAX_SETS = 256,
	CFG_MAX_MESSAGES = 100, /* kept; more are only counted */
	CFG_MAX_FIELDS = 1 << 20,
};

/* Where something was read: line and column from 1 (line 0: the file as a whole), or the
 * number, from 1, of the --set it came from. */
struct cfg_place {
	unsigned line, column;
	unsigned set;
};

enum cfg_node_kind { CFG_NODE_SCALAR, CFG_NODE_MAPPING, CFG_NODE_SEQUENCE };

struct cfg_node {
	enum cfg_node_kind kind;
	bool quoted;		    /* scalar in quotes: never null */
	bool broken;		    /* an error about it has been reported already */
	const char *key;	    /* of a mapping's entry, else NULL */
	const char *text;	    /* scalar */
	struct cfg_place place;	    /* of the value */
	struct cfg_place key_place; /* valid with a key */
	struct cfg_node **items;    /* mapping: entries; sequence: elements */
	size_t count, room;
	const struct cfg_schema *schema; /* set when a raw node was decoded with it */
};

struct cfg_message {
	struct cfg_place place;
	size_t order;
	char *text;
};

struct cfg_field_place {
	const void *address; /* NULL: free slot */
	size_t size;
	struct cfg_place place;
	bool given;
	bool wrong; /* decoding it has reported an error */
};

struct cfg_block;

struct cfg {
	const char *name;
	struct cfg_block *blocks;
	struct cfg_node *root; /* NULL after a syntax error */
	size_t node_count;
	const char *sets[CFG_MAX_SETS];
	unsigned set_count;

	struct cfg_message messages[CFG_MAX_MESSAGES];
	size_t message_count; /* all, also those not kept */
	bool out_of_memory;   /* counts as one more error */

	struct cfg_field_place *fields; /* open addressing; a power of two of slots */
	size_t field_count, field_slots;
};

/* config_tree.c.  cfg_alloc gives zeroed memory; NULL sets out_of_memory. */
void *cfg_alloc(struct cfg *cfg, size_t size);
char *cfg_strndup(struct cfg *cfg, const char *text, size_t size);
struct cfg_node *cfg_node_new(struct cfg *cfg, enum cfg_node_kind kind, struct cfg_place place);
bool cfg_node_append(struct cfg *cfg, struct cfg_node *parent, struct cfg_node *child);
struct cfg_node *cfg_node_find(const struct cfg_node *mapping, const char *key);
/* Parses TEXT; with SET not 0 every node's place is that --set.  NULL after errors. */
struct cfg_node *cfg_tree_parse(struct cfg *cfg, const char *text, size_t size, unsigned set);

static inline bool cfg_node_is_null(const struct cfg_node *node)
{
	return node->kind == CFG_NODE_SCALAR && !node->quoted &&
	       (!node->text[0] || (node->text[0] == '~' && !node->text[1]));
}

/* Where to point at for a whole node: a value itself, but the key of a mapping or list. */
static inline struct cfg_place cfg_node_place(const struct cfg_node *node)
{
	return node->kind != CFG_NODE_SCALAR && node->key ? node->key_place : node->place;
}

/* config_error.c */
void cfg_message(struct cfg *cfg, struct cfg_place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void cfg_field_register(struct cfg *cfg, const void *address, size_t size, struct cfg_place place,
			bool given);

void cfg_field_wrong(struct cfg *cfg, const void *address);

/* config_decode.c.  The limits of FIELD as words; false when it has none. */
/* Of the elements of a list of scalars. */
enum cfg_type cfg_item_type(const struct cfg_field *field);
bool cfg_limits_text(const struct cfg_field *field, char *out, size_t size);

/* config_value.c.  The canonical text of a value, which cfg_parse_scalar reads back. */
void cfg_format_scalar(enum cfg_type type, const void *value, char *out, size_t size);
/* As cfg_format_scalar for a limit of a field. */
void cfg_format_limit(enum cfg_type type, double limit, char *out, size_t size);
bool cfg_parse_bool(const char *text, bool *ret_value);

#endif
