/* SPDX-License-Identifier: MIT
 *
 * Filling C structures from the configuration's tree by their schemas: defaults, types, ranges,
 * unknown and missing keys.  An error never ends the decoding: what is wrong stays zero, the rest
 * is read, so that one run shows everything that needs fixing.
 */
#include <assert.h>
#include <string.h>

#include "base/config_impl.h"

static void decode_mapping(struct cfg *cfg, const struct cfg_node *node,
			   const struct cfg_schema *schema, char *base, struct cfg_place place,
			   bool raw);

static size_t type_size(const struct cfg_field *field)
{
	switch (field->type) {
	case CFG_STRING:
		return sizeof(const char *);
	case CFG_BOOL:
		return sizeof(bool);
	case CFG_UINT:
	case CFG_SIZE:
	case CFG_DURATION:
		return sizeof(uint64_t);
	case CFG_PERCENT:
	case CFG_REAL:
		return sizeof(double);
	case CFG_ENUM:
		return sizeof(int);
	case CFG_PORTAL:
		return sizeof(struct cfg_portal);
	case CFG_STRUCT:
		return field->sub->size;
	case CFG_LIST:
	case CFG_STRINGS:
	case CFG_UINTS:
	case CFG_PORTALS:
		return sizeof(struct cfg_list);
	case CFG_UNION:
		return sizeof(struct cfg_raw);
	}
	return 0;
}

/* "a, b, c" into OUT, cut short with "..." when it does not fit. */
static void append_name(char *out, size_t size, const char *name)
{
	size_t used = strlen(out);
	if (used + strlen(name) + 8 < size)
		(void)snprintf(out + used, size - used, "%s%s", used ? ", " : "", name);
	else if (used < 3 || strcmp(out + used - 3, "..."))
		(void)snprintf(out + used, size - used, ", ...");
}

/* ---- scalars ---- */

bool cfg_limits_text(const struct cfg_field *field, char *out, size_t size)
{
	char low[64], high[64];
	if (field->min == 0 && field->max == 0)
		return false;
	cfg_format_limit(field->type, field->min, low, sizeof low);
	cfg_format_limit(field->type, field->max, high, sizeof high);
	if (field->max == 0)
		(void)snprintf(out, size, "at least %s", low);
	else if (field->min == 0)
		(void)snprintf(out, size, "at most %s", high);
	else
		(void)snprintf(out, size, "from %s to %s", low, high);
	return true;
}

static void check_range(struct cfg *cfg, const struct cfg_field *field, const char *text,
			const void *value, struct cfg_place place)
{
	char limits[160];
	double number;

	if (!cfg_limits_text(field, limits, sizeof limits))
		return;
	if (field->type == CFG_PERCENT || field->type == CFG_REAL) {
		memcpy(&number, value, sizeof number);
		if (field->type == CFG_PERCENT)
			number *= 100;
	} else {
		uint64_t whole;
		memcpy(&whole, value, sizeof whole);
		number = (double)whole;
	}
	/* Percent: 0.07 * 100 is a little more than 7. */
	double slack = field->type == CFG_PERCENT ? 1e-9 : 0;
	if (number < field->min - slack || (field->max != 0 && number > field->max + slack))
		cfg_message(cfg, place, "'%s' is %.60s; it must be %s", field->key, text, limits);
}

static void decode_enum(struct cfg *cfg, const struct cfg_field *field, const char *text, int *out,
			struct cfg_place place)
{
	char allowed[400] = "";

	for (int i = 0; field->names[i]; i++) {
		if (!strcmp(field->names[i], text)) {
			*out = i;
			return;
		}
		append_name(allowed, sizeof allowed, field->names[i]);
	}
	const char *near = cfg_nearest(text, field->names);
	if (near)
		cfg_message(cfg, place,
			    "'%s' has the unknown value '%.60s'; did you mean '%s'? allowed: %s",
			    field->key, text, near, allowed);
	else
		cfg_message(cfg, place, "'%s' has the unknown value '%.60s'; allowed: %s",
			    field->key, text, allowed);
}

static void decode_text(struct cfg *cfg, const struct cfg_field *field, enum cfg_type type,
			const char *text, void *out, struct cfg_place place)
{
	char why[300];

	switch (type) {
	case CFG_STRING:
		memcpy(out, &text, sizeof text);
		break;
	case CFG_BOOL:
		if (!cfg_parse_bool(text, out))
			cfg_message(cfg, place, "'%s' is '%.60s'; it must be true or false",
				    field->key, text);
		break;
	case CFG_ENUM:
		decode_enum(cfg, field, text, out, place);
		break;
	default:
		if (cfg_parse_scalar(type, text, out, why, sizeof why))
			cfg_message(cfg, place, "'%s': %s", field->key, why);
		else if (type != CFG_PORTAL)
			check_range(cfg, field, text, out, place);
		break;
	}
}

static const char *kind_name(const struct cfg_node *node)
{
	if (node->kind == CFG_NODE_MAPPING)
		return "a mapping";
	return node->kind == CFG_NODE_SEQUENCE ? "a list" : "a single value";
}

/* A value that must be a scalar: its text, or NULL with the error reported. */
static const char *scalar_text(struct cfg *cfg, const char *key, const struct cfg_node *node)
{
	if (node->broken)
		return NULL;
	if (node->kind != CFG_NODE_SCALAR)
		cfg_message(cfg, cfg_node_place(node), "'%s' must be a single value, not %s", key,
			    kind_name(node));
	else if (cfg_node_is_null(node))
		cfg_message(cfg, node->key && node->place.line ? node->key_place : node->place,
			    "'%s' has no value", key);
	else
		return node->text;
	return NULL;
}

/* ---- lists ---- */

enum cfg_type cfg_item_type(const struct cfg_field *field)
{
	if (field->type == CFG_UINTS)
		return CFG_UINT;
	return field->type == CFG_PORTALS ? CFG_PORTAL : CFG_STRING;
}

static void decode_items(struct cfg *cfg, const struct cfg_field *field,
			 const struct cfg_node *node, struct cfg_list *list)
{
	size_t item_size = field->type == CFG_LIST	? field->sub->size
			   : field->type == CFG_PORTALS ? sizeof(struct cfg_portal)
			   : field->type == CFG_UINTS	? sizeof(uint64_t)
							: sizeof(const char *);
	if (!node->count)
		return;
	char *items = cfg_alloc(cfg, node->count * item_size);
	if (!items)
		return;
	*list = (struct cfg_list){.items = items, .count = node->count};
	for (size_t i = 0; i < node->count; i++) {
		const struct cfg_node *item = node->items[i];
		char *out = items + i * item_size;
		if (field->type == CFG_LIST) {
			decode_mapping(cfg, item, field->sub, out, cfg_node_place(item), false);
			continue;
		}
		/* A list of strings has no NULL in it, whatever was wrong with the file. */
		if (field->type == CFG_STRINGS)
			*(const char **)(void *)out = "";
		cfg_field_register(cfg, out, item_size, cfg_node_place(item), true);
		const char *text = scalar_text(cfg, field->key, item);
		if (text)
			decode_text(cfg, field, cfg_item_type(field), text, out, item->place);
	}
}

static void decode_list(struct cfg *cfg, const struct cfg_field *field, const struct cfg_node *node,
			struct cfg_list *list)
{
	if (node->kind == CFG_NODE_SEQUENCE)
		decode_items(cfg, field, node, list);
	else if (!node->broken && !cfg_node_is_null(node)) /* `volumes:` alone is an empty list */
		cfg_message(cfg, cfg_node_place(node), "'%s' must be a list, not %s", field->key,
			    kind_name(node));
}

/* ---- fields and mappings ---- */

static void decode_given(struct cfg *cfg, const struct cfg_field *field,
			 const struct cfg_node *node, char *out)
{
	size_t before = cfg->message_count;
	cfg_field_register(cfg, out, type_size(field), cfg_node_place(node), true);
	switch (field->type) {
	case CFG_STRUCT:
		decode_mapping(cfg, node, field->sub, out, cfg_node_place(node), false);
		return;
	case CFG_LIST:
	case CFG_STRINGS:
	case CFG_UINTS:
	case CFG_PORTALS:
		decode_list(cfg, field, node, (struct cfg_list *)(void *)out);
		break;
	case CFG_UNION:
		((struct cfg_raw *)(void *)out)->node = node;
		break;
	default: {
		const char *text = scalar_text(cfg, field->key, node);
		if (text)
			decode_text(cfg, field, field->type, text, out, node->place);
		break;
	}
	}
	if (node->broken || (cfg->message_count != before && field->type != CFG_LIST))
		cfg_field_wrong(cfg, out);
}

static void decode_absent(struct cfg *cfg, const struct cfg_field *field,
			  const struct cfg_schema *schema, bool complain, char *out,
			  struct cfg_place place)
{
	cfg_field_register(cfg, out, type_size(field), place, false);
	if (field->required) {
		cfg_field_wrong(cfg, out);
		if (!complain)
			return;
		cfg_message(cfg, place, "missing key '%s' in %s", field->key, schema->name);
		if (field->help)
			cfg_hint(cfg, "%s: %s", field->key, field->help);
		return;
	}
	if (field->type == CFG_STRUCT) {
		decode_mapping(cfg, NULL, field->sub, out, place, false);
	} else if (field->type == CFG_UNION && field->preset) {
		struct cfg_node *node = cfg_node_new(cfg, CFG_NODE_SCALAR, place);
		if (node)
			node->text = field->preset;
		((struct cfg_raw *)(void *)out)->node = node;
	} else if (field->preset) {
		size_t before = cfg->message_count;
		decode_text(cfg, field, field->type, field->preset, out, place);
		assert(cfg->message_count == before); /* a schema's default fits its own rules */
	}
}

static const struct cfg_field *schema_field(const struct cfg_schema *schema, const char *key)
{
	for (size_t i = 0; i < schema->field_count; i++)
		if (!strcmp(schema->fields[i].key, key))
			return &schema->fields[i];
	return NULL;
}

static void unknown_key(struct cfg *cfg, const struct cfg_schema *schema,
			const struct cfg_node *node)
{
	enum { MOST = 64 };
	const char *names[MOST + 1];
	size_t count = 0;
	char allowed[600] = "";

	for (size_t i = 0; i < schema->field_count; i++) {
		if (count < MOST)
			names[count++] = schema->fields[i].key;
		append_name(allowed, sizeof allowed, schema->fields[i].key);
	}
	names[count] = NULL;
	if (schema->sibling && schema_field(schema->sibling, node->key)) {
		cfg_message(cfg, node->key_place, "'%.60s' is a key of %s; allowed here: %s",
			    node->key, schema->sibling_name, allowed);
		return;
	}
	const char *near = cfg_nearest(node->key, names);
	if (near)
		cfg_message(cfg, node->key_place,
			    "unknown key '%.60s' in %s; did you mean '%s'? allowed: %s", node->key,
			    schema->name, near, allowed);
	else
		cfg_message(cfg, node->key_place, "unknown key '%.60s' in %s; allowed: %s",
			    node->key, schema->name, allowed);
}

/* NODE NULL: the mapping is absent; defaults apply and nothing is missed.  RAW: `type` chose the
 * schema and need not be in it. */
static void decode_mapping(struct cfg *cfg, const struct cfg_node *node,
			   const struct cfg_schema *schema, char *base, struct cfg_place place,
			   bool raw)
{
	bool wrong =
	    node && (node->broken || (node->kind != CFG_NODE_MAPPING && !cfg_node_is_null(node)));
	bool complain = node && !wrong;

	cfg_field_register(cfg, base, schema->size, place, node != NULL);
	if (wrong && !node->broken)
		cfg_message(cfg, place, "%s must be a mapping (`key: value`), not %s", schema->name,
			    kind_name(node));
	if (node && node->kind != CFG_NODE_MAPPING)
		node = NULL;
	if (node && schema->expand)
		schema->expand(cfg, &(struct cfg_raw){node});
	for (size_t i = 0; i < schema->field_count; i++) {
		const struct cfg_field *field = &schema->fields[i];
		const struct cfg_node *value = node ? cfg_node_find(node, field->key) : NULL;
		char *out = base + field->offset;
		assert(field->offset + type_size(field) <= schema->size);
		if (value)
			decode_given(cfg, field, value, out);
		else
			decode_absent(cfg, field, schema, complain, out, place);
		if (wrong)
			cfg_field_wrong(cfg, out);
	}
	for (size_t i = 0; node && i < node->count; i++) {
		const char *key = node->items[i]->key;
		if (!schema_field(schema, key) && !(raw && !strcmp(key, "type")))
			unknown_key(cfg, schema, node->items[i]);
	}
}

void cfg_decode(struct cfg *cfg, const struct cfg_schema *schema, void *out)
{
	memset(out, 0, schema->size);
	struct cfg_place place = {.line = 1, .column = 1};
	decode_mapping(cfg, cfg->root, schema, out, cfg->root ? cfg->root->place : place, false);
}

void cfg_decode_raw(struct cfg *cfg, const struct cfg_raw *raw, const struct cfg_schema *schema,
		    void *out)
{
	struct cfg_node *node = (struct cfg_node *)(uintptr_t)raw->node;
	struct cfg_place place = {0};

	memset(out, 0, schema->size);
	if (node) {
		node->schema = schema;
		place = cfg_node_place(node);
	}
	decode_mapping(cfg, node, schema, out, place, true);
}

const char *cfg_raw_scalar(const struct cfg_raw *raw)
{
	const struct cfg_node *node = raw->node;
	return node && node->kind == CFG_NODE_SCALAR && !node->broken ? node->text : NULL;
}

bool cfg_raw_entry(const struct cfg_raw *raw, size_t index, const char **ret_key,
		   struct cfg_raw *ret_value)
{
	const struct cfg_node *node = raw->node;
	if (!node || node->kind == CFG_NODE_SCALAR || index >= node->count)
		return false;
	*ret_key = node->items[index]->key;
	ret_value->node = node->items[index];
	return true;
}
