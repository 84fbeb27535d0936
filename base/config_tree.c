/* SPDX-License-Identifier: MIT
 *
 * The configuration's tree: libyaml events become nodes that know line and column.
 *
 * A strict subset of YAML is read: one document, no anchors, aliases or tags, no duplicate keys;
 * depth, number and length are bounded, so a hostile file costs little and says what is wrong.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/config_impl.h"

struct cfg_block {
	struct cfg_block *next;
	max_align_t data[];
};

/* One open mapping or list while events come in. */
struct level {
	struct cfg_node *node;
	const char *key; /* mapping: the key that waits for its value */
	struct cfg_place key_place;
	bool duplicate; /* that key was there already: its value is read and dropped */
};

struct builder {
	struct cfg *cfg;
	unsigned set;
	struct cfg_node *root;
	struct level levels[CFG_MAX_DEPTH];
	unsigned depth;
	unsigned documents;
	bool failed; /* nothing sensible can follow */
};

void *cfg_alloc(struct cfg *cfg, size_t size)
{
	struct cfg_block *block = calloc(1, sizeof *block + size);
	if (!block) {
		cfg->out_of_memory = true;
		return NULL;
	}
	block->next = cfg->blocks;
	cfg->blocks = block;
	return block->data;
}

char *cfg_strndup(struct cfg *cfg, const char *text, size_t size)
{
	char *copy = cfg_alloc(cfg, size + 1);
	if (copy)
		memcpy(copy, text, size);
	return copy;
}

struct cfg_node *cfg_node_new(struct cfg *cfg, enum cfg_node_kind kind, struct cfg_place place)
{
	if (cfg->node_count >= CFG_MAX_NODES)
		return NULL;
	struct cfg_node *node = cfg_alloc(cfg, sizeof *node);
	if (!node)
		return NULL;
	cfg->node_count++;
	node->kind = kind;
	node->place = place;
	node->text = "";
	return node;
}

bool cfg_node_append(struct cfg *cfg, struct cfg_node *parent, struct cfg_node *child)
{
	if (parent->count == parent->room) {
		size_t room = parent->room ? parent->room * 2 : 8;
		struct cfg_node **items = cfg_alloc(cfg, room * sizeof(struct cfg_node *));
		if (!items)
			return false;
		if (parent->count)
			memcpy(items, parent->items, parent->count * sizeof(struct cfg_node *));
		parent->items = items;
		parent->room = room;
	}
	parent->items[parent->count++] = child;
	return true;
}

struct cfg_node *cfg_node_find(const struct cfg_node *mapping, const char *key)
{
	for (size_t i = 0; i < mapping->count; i++)
		if (mapping->items[i]->key && !strcmp(mapping->items[i]->key, key))
			return mapping->items[i];
	return NULL;
}

static struct cfg_place mark_place(const struct builder *b, const yaml_mark_t *mark)
{
	if (b->set)
		return (struct cfg_place){.set = b->set};
	return (struct cfg_place){.line = (unsigned)mark->line + 1,
				  .column = (unsigned)mark->column + 1};
}

static void fail(struct builder *b, struct cfg_place place, const char *what)
{
	cfg_message(b->cfg, place, "%s", what);
	b->failed = true;
}

static struct level *top(struct builder *b)
{
	return b->depth ? &b->levels[b->depth - 1] : NULL;
}

/* Links NODE under the open mapping or list, or makes it the root. */
static void attach(struct builder *b, struct cfg_node *node)
{
	struct level *level = top(b);
	if (!level) {
		b->root = node;
		return;
	}
	struct cfg_node *parent = level->node;
	if (parent->kind == CFG_NODE_MAPPING) {
		node->key = level->key;
		node->key_place = level->key_place;
		level->key = NULL;
		if (level->duplicate)
			return;
	}
	size_t limit = parent->kind == CFG_NODE_MAPPING ? CFG_MAX_KEYS : CFG_MAX_ITEMS;
	if (parent->count >= limit) {
		cfg_message(b->cfg, node->key ? node->key_place : node->place,
			    "too many entries in one %s (at most %zu)",
			    parent->kind == CFG_NODE_MAPPING ? "mapping" : "list", limit);
		b->failed = true;
		return;
	}
	if (!cfg_node_append(b->cfg, parent, node))
		b->failed = true;
}

static struct cfg_node *new_node(struct builder *b, enum cfg_node_kind kind, struct cfg_place place)
{
	struct cfg_node *node = cfg_node_new(b->cfg, kind, place);
	if (!node && b->cfg->out_of_memory)
		b->failed = true;
	else if (!node)
		fail(b, place, "the file has too many values");
	return node;
}

/* Anchors and tags would let a small file stand for a huge or a foreign tree. */
static bool refuse_extras(struct builder *b, struct cfg_place place, const yaml_char_t *anchor,
			  const yaml_char_t *tag, bool implicit_tag)
{
	if (anchor)
		cfg_message(b->cfg, place,
			    "anchors (&%.60s) are not supported; write the value out",
			    (const char *)anchor);
	if (tag && !implicit_tag)
		cfg_message(b->cfg, place, "tags (%.60s) are not supported; leave the tag out",
			    (const char *)tag);
	return anchor || (tag && !implicit_tag);
}

static void take_key(struct builder *b, struct level *level, const char *text,
		     struct cfg_place place)
{
	level->key = text;
	level->key_place = place;
	struct cfg_node *earlier = cfg_node_find(level->node, text);
	level->duplicate = earlier != NULL;
	if (!earlier)
		return;
	if (b->set)
		cfg_message(b->cfg, place, "duplicate key '%.60s'", text);
	else
		cfg_message(b->cfg, place, "duplicate key '%.60s'; first given at line %u", text,
			    earlier->key_place.line);
}

static void on_scalar(struct builder *b, const yaml_event_t *event)
{
	struct cfg_place place = mark_place(b, &event->start_mark);
	const char *value = (const char *)event->data.scalar.value;
	size_t length = event->data.scalar.length;

	if (length > CFG_MAX_SCALAR_BYTES) {
		fail(b, place, "a value is longer than 4096 bytes");
		return;
	}
	if (memchr(value, 0, length)) {
		fail(b, place, "a value contains a NUL character");
		return;
	}
	bool broken =
	    refuse_extras(b, place, event->data.scalar.anchor, event->data.scalar.tag,
			  event->data.scalar.plain_implicit || event->data.scalar.quoted_implicit);
	char *text = cfg_strndup(b->cfg, value, length);
	if (!text) {
		b->failed = true;
		return;
	}
	struct level *level = top(b);
	if (level && level->node->kind == CFG_NODE_MAPPING && !level->key) {
		take_key(b, level, text, place);
		return;
	}
	struct cfg_node *node = new_node(b, CFG_NODE_SCALAR, place);
	if (!node)
		return;
	node->text = text;
	node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	node->broken = broken;
	attach(b, node);
}

static void on_open(struct builder *b, enum cfg_node_kind kind, const yaml_event_t *event)
{
	struct cfg_place place = mark_place(b, &event->start_mark);
	struct level *level = top(b);
	bool mapping = kind == CFG_NODE_MAPPING;

	if (level && level->node->kind == CFG_NODE_MAPPING && !level->key) {
		fail(b, place, "a key must be a single word");
		return;
	}
	if (b->depth == CFG_MAX_DEPTH) {
		fail(b, place, "nested too deeply (at most 32 levels)");
		return;
	}
	if (mapping)
		refuse_extras(b, place, event->data.mapping_start.anchor,
			      event->data.mapping_start.tag, event->data.mapping_start.implicit);
	else
		refuse_extras(b, place, event->data.sequence_start.anchor,
			      event->data.sequence_start.tag, event->data.sequence_start.implicit);
	struct cfg_node *node = new_node(b, kind, place);
	if (!node)
		return;
	attach(b, node);
	b->levels[b->depth++] = (struct level){.node = node};
}

static void on_alias(struct builder *b, const yaml_event_t *event)
{
	struct cfg_place place = mark_place(b, &event->start_mark);
	struct level *level = top(b);
	cfg_message(b->cfg, place, "aliases (*%.60s) are not supported; write the value out",
		    (const char *)event->data.alias.anchor);
	if (level && level->node->kind == CFG_NODE_MAPPING && !level->key) {
		b->failed = true;
		return;
	}
	struct cfg_node *node = new_node(b, CFG_NODE_SCALAR, place);
	if (!node)
		return;
	node->broken = true;
	attach(b, node);
}

static void on_event(struct builder *b, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (b->documents++)
			fail(b, mark_place(b, &event->start_mark),
			     "a second document begins here; a file holds one");
		break;
	case YAML_ALIAS_EVENT:
		on_alias(b, event);
		break;
	case YAML_SCALAR_EVENT:
		on_scalar(b, event);
		break;
	case YAML_SEQUENCE_START_EVENT:
		on_open(b, CFG_NODE_SEQUENCE, event);
		break;
	case YAML_MAPPING_START_EVENT:
		on_open(b, CFG_NODE_MAPPING, event);
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		b->depth--;
		break;
	default:
		break;
	}
}

static void syntax_error(struct builder *b, const yaml_parser_t *parser)
{
	const yaml_mark_t *mark = &parser->problem_mark;
	struct cfg_place place = mark_place(b, mark);

	if (parser->error == YAML_MEMORY_ERROR)
		b->cfg->out_of_memory = true;
	else if (parser->error == YAML_READER_ERROR)
		cfg_message(b->cfg, (struct cfg_place){.set = b->set},
			    "not readable as text: %s at byte %zu", parser->problem,
			    parser->problem_offset);
	else if (parser->context)
		cfg_message(b->cfg, place, "not valid YAML: %s (%s)", parser->problem,
			    parser->context);
	else
		cfg_message(b->cfg, place, "not valid YAML: %s", parser->problem);
	b->failed = true;
}

struct cfg_node *cfg_tree_parse(struct cfg *cfg, const char *text, size_t size, unsigned set)
{
	struct builder b = {.cfg = cfg, .set = set};
	yaml_parser_t parser;

	if (!yaml_parser_initialize(&parser)) {
		cfg->out_of_memory = true;
		return NULL;
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
	for (bool end = false; !end && !b.failed;) {
		yaml_event_t event;
		if (!yaml_parser_parse(&parser, &event)) {
			syntax_error(&b, &parser);
			break;
		}
		on_event(&b, &event);
		end = event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	if (b.failed)
		return NULL;
	if (!b.root || cfg_node_is_null(b.root)) /* an empty file is an empty mapping */
		b.root = new_node(&b, CFG_NODE_MAPPING,
				  (struct cfg_place){.line = 1, .column = 1, .set = set});
	return b.root;
}

int cfg_parse(const char *name, const char *text, size_t size, struct cfg **ret_cfg)
{
	struct cfg *cfg = calloc(1, sizeof *cfg);
	if (!cfg)
		return -ENOMEM;
	cfg->name = cfg_strndup(cfg, name, strlen(name));
	if (!cfg->name) {
		cfg_free(cfg);
		return -ENOMEM;
	}
	if (size > CFG_MAX_FILE_BYTES)
		cfg_message(cfg, (struct cfg_place){0}, "the file is larger than 1 MiB");
	else
		cfg->root = cfg_tree_parse(cfg, text, size, 0);
	if (cfg->root && cfg->root->kind != CFG_NODE_MAPPING) {
		cfg_message(cfg, cfg->root->place,
			    "the file must be a mapping (`key: value` lines)");
		cfg->root = NULL;
	}
	if (cfg->out_of_memory) {
		cfg_free(cfg);
		return -ENOMEM;
	}
	*ret_cfg = cfg;
	return 0;
}

int cfg_open(const char *file, struct cfg **ret_cfg, struct err *err)
{
	FILE *from = fopen(file, "re");
	if (!from)
		return err_set(err, -errno, "cannot read %s: %s", file, strerror(errno));

	/* One byte more than allowed tells a file that is too large from one that just fits. */
	char *text = malloc(CFG_MAX_FILE_BYTES + 1);
	if (!text) {
		(void)fclose(from);
		return err_set(err, -ENOMEM, "cannot read %s: out of memory", file);
	}
	int rc = 0;
	errno = 0;
	size_t size = fread(text, 1, CFG_MAX_FILE_BYTES + 1, from);
	if (ferror(from)) {
		int why = errno ? errno : EIO;
		rc = err_set(err, -why, "cannot read %s: %s", file, strerror(why));
	} else if (size > CFG_MAX_FILE_BYTES) {
		rc = err_set(err, -EFBIG, "%s is larger than 1 MiB: not a lab file", file);
	} else {
		rc = cfg_parse(file, text, size, ret_cfg);
		if (rc)
			err_set(err, rc, "cannot read %s: %s", file, strerror(-rc));
	}
	free(text);
	(void)fclose(from);
	return rc;
}

const char *cfg_name(const struct cfg *cfg)
{
	return cfg->name;
}

struct cfg *cfg_free(struct cfg *cfg)
{
	if (!cfg)
		return NULL;
	while (cfg->blocks) {
		struct cfg_block *next = cfg->blocks->next;
		free(cfg->blocks);
		cfg->blocks = next;
	}
	free(cfg->fields);
	free(cfg);
	return NULL;
}
