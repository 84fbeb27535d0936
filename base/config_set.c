/* SPDX-License-Identifier: MIT
 *
 * `--set key.path=value`: changes the tree before it is decoded, so that an assignment is checked
 * by the same schema as the file.  Likewise cfg_supply, which fills in what one key stands for.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/config_impl.h"

static bool is_index(const char *segment, size_t *ret_index)
{
	size_t length = strlen(segment);
	if (length < 1 || length > 5 || strspn(segment, "0123456789") != length)
		return false;
	*ret_index = strtoul(segment, NULL, 10);
	return true;
}

static struct cfg_node *append_null(struct cfg *cfg, struct cfg_node *parent, const char *key,
				    struct cfg_place place)
{
	size_t limit = key ? CFG_MAX_KEYS : CFG_MAX_ITEMS;
	struct cfg_node *child =
	    parent->count < limit ? cfg_node_new(cfg, CFG_NODE_SCALAR, place) : NULL;
	if (child) {
		child->key = key;
		child->key_place = place;
	}
	if (!child || !cfg_node_append(cfg, parent, child)) {
		cfg_message(cfg, place, "too many entries");
		return NULL;
	}
	return child;
}

static struct cfg_node *step_list(struct cfg *cfg, struct cfg_node *list, const char *segment,
				  struct cfg_place place)
{
	size_t index;

	for (size_t i = 0; i < list->count; i++) {
		struct cfg_node *item = list->items[i];
		struct cfg_node *name =
		    item->kind == CFG_NODE_MAPPING ? cfg_node_find(item, "name") : NULL;
		if (name && name->kind == CFG_NODE_SCALAR && !strcmp(name->text, segment))
			return item;
	}
	if (!is_index(segment, &index))
		cfg_message(cfg, place, "no element named '%.60s' in this list of %zu", segment,
			    list->count);
	else if (index < list->count)
		return list->items[index];
	else if (index == list->count)
		return append_null(cfg, list, NULL, place);
	else
		cfg_message(cfg, place, "no element %zu: the list has %zu (counted from 0)", index,
			    list->count);
	return NULL;
}

/* The child SEGMENT of NODE, made when it is missing; NULL after an error. */
static struct cfg_node *step(struct cfg *cfg, struct cfg_node *node, const char *segment,
			     struct cfg_place place)
{
	size_t index;

	if (node->kind == CFG_NODE_SCALAR && cfg_node_is_null(node)) {
		node->kind = is_index(segment, &index) ? CFG_NODE_SEQUENCE : CFG_NODE_MAPPING;
		node->place = place;
	}
	if (node->kind == CFG_NODE_SEQUENCE)
		return step_list(cfg, node, segment, place);
	if (node->kind == CFG_NODE_SCALAR) {
		cfg_message(cfg, place, "'%.60s' is inside a single value ('%.60s'), not a mapping",
			    segment, node->text);
		return NULL;
	}
	struct cfg_node *child = cfg_node_find(node, segment);
	return child ? child : append_null(cfg, node, segment, place);
}

/* `[a, b]`, `{a: 1}` and quoted text are YAML; anything else is the text as it stands, so that
 * `[::1]:3260` needs no quoting. */
static bool is_flow(const char *value)
{
	size_t length = strlen(value);
	if (length < 2)
		return false;
	char first = value[0], last = value[length - 1];
	return (first == '[' && last == ']') || (first == '{' && last == '}') ||
	       ((first == '"' || first == '\'') && last == first);
}

static void assign(struct cfg *cfg, struct cfg_node *node, const char *value,
		   struct cfg_place place)
{
	struct cfg_node given = {.kind = CFG_NODE_SCALAR, .place = place, .text = value};
	if (is_flow(value)) {
		struct cfg_node *parsed = cfg_tree_parse(cfg, value, strlen(value), place.set);
		if (!parsed) {
			node->broken = true;
			return;
		}
		given = *parsed;
	} else if (strlen(value) > CFG_MAX_SCALAR_BYTES) {
		cfg_message(cfg, place, "the value is longer than 4096 bytes");
		return;
	}
	given.key = node->key;
	given.key_place = place;
	*node = given;
}

void cfg_set(struct cfg *cfg, const char *assignment)
{
	if (cfg->set_count == CFG_MAX_SETS) {
		cfg_message(cfg, (struct cfg_place){0}, "more than %d --set assignments",
			    CFG_MAX_SETS);
		return;
	}
	char *shown = cfg_strndup(cfg, assignment, strlen(assignment));
	char *path = cfg_strndup(cfg, assignment, strlen(assignment));
	if (!shown || !path)
		return;
	cfg->sets[cfg->set_count++] = shown;
	struct cfg_place place = {.set = cfg->set_count};
	char *equals = strchr(path, '=');
	if (!equals || equals == path) {
		cfg_message(cfg, place, "not an assignment; write it as KEY.PATH=VALUE");
		return;
	}
	*equals = 0;
	struct cfg_node *node = cfg->root; /* NULL: the file has a syntax error, told already */
	unsigned depth = 0;
	for (char *segment = path; node && segment;) {
		char *dot = strchr(segment, '.');
		if (dot)
			*dot = 0;
		if (!*segment || ++depth > CFG_MAX_DEPTH) {
			cfg_message(cfg, place,
				    *segment ? "the key path is too long"
					     : "the key path has an empty part");
			return;
		}
		node = step(cfg, node, segment, place);
		segment = dot ? dot + 1 : NULL;
	}
	if (node)
		assign(cfg, node, equals + 1, place);
}

/* Cuts the first part of *PATH off into SEGMENT; false when it does not fit. */
static bool next_segment(const char **path, char *segment, size_t size)
{
	size_t length = strcspn(*path, ".");

	if (length >= size)
		return false;
	memcpy(segment, *path, length);
	segment[length] = 0;
	*path += length + ((*path)[length] == '.');
	return true;
}

bool cfg_raw_find(const struct cfg_raw *mapping, const char *path, struct cfg_raw *ret_value)
{
	const struct cfg_node *node = mapping->node;
	char segment[64];

	while (*path && node) {
		if (node->kind != CFG_NODE_MAPPING || !next_segment(&path, segment, sizeof segment))
			return false;
		node = cfg_node_find(node, segment);
	}
	ret_value->node = node;
	return node;
}

void cfg_supply(struct cfg *cfg, const struct cfg_raw *mapping, const char *path, const char *text,
		const struct cfg_raw *because)
{
	struct cfg_node *node = (struct cfg_node *)(uintptr_t)mapping->node;
	struct cfg_place place = ((const struct cfg_node *)because->node)->place;
	char segment[64];
	bool made = false;

	while (*path && node) {
		struct cfg_node *child;
		char *key;

		if (node->kind == CFG_NODE_SCALAR && cfg_node_is_null(node)) {
			node->kind = CFG_NODE_MAPPING;
			node->place = place;
		}
		/* What is wrong there is the decoder's to tell. */
		if (node->kind != CFG_NODE_MAPPING || !next_segment(&path, segment, sizeof segment))
			return;
		child = cfg_node_find(node, segment);
		made = !child;
		if (made) {
			key = cfg_strndup(cfg, segment, strlen(segment));
			child = key ? append_null(cfg, node, key, place) : NULL;
		}
		node = child;
	}
	if (!node || !made)
		return;
	text = cfg_strndup(cfg, text, strlen(text));
	if (text)
		node->text = text;
}
