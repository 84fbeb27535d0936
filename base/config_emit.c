/* SPDX-License-Identifier: MIT
 *
 * The effective configuration as YAML: the tree after --set with every default written out, in
 * the order of the schema and with canonical units, so that it loads again to the same values.
 */
#include <errno.h>
#include <string.h>
#include <yaml.h>

#include "base/config_impl.h"
#include "base/text.h"

/* Longer than any URL that is accepted: names of 223 characters, CHAP user and password. */
enum { CFG_URL_BYTES = 1024 };

struct out {
	yaml_emitter_t emitter;
	int rc; /* the first failure */
};

static void emit_mapping(struct out *out, const struct cfg_node *node,
			 const struct cfg_schema *schema, bool raw);

/* Takes the event (libyaml frees it); OK is what its initialiser returned. */
static void emit(struct out *out, int ok, yaml_event_t *event)
{
	if (!ok)
		out->rc = out->rc ? out->rc : -ENOMEM;
	else if (out->rc)
		yaml_event_delete(event);
	else if (!yaml_emitter_emit(&out->emitter, event))
		out->rc = out->emitter.error == YAML_MEMORY_ERROR ? -ENOMEM : -EIO;
}

/* Quotes are kept only where they tell a text from null; the emitter adds those that syntax needs.
 * So the same value is always printed the same way; and lines stay lines of the file. */
static void emit_text(struct out *out, const char *text, bool quoted)
{
	yaml_event_t event;
	quoted = strchr(text, '\n') || (quoted && (!*text || !strcmp(text, "~")));
	emit(out,
	     yaml_scalar_event_initialize(
		 &event, NULL, NULL, (const yaml_char_t *)text, (int)strlen(text), 1, 1,
		 quoted ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_ANY_SCALAR_STYLE),
	     &event);
}

static void emit_open(struct out *out, enum cfg_node_kind kind, bool flow)
{
	yaml_event_t event;
	if (kind == CFG_NODE_MAPPING)
		emit(out,
		     yaml_mapping_start_event_initialize(&event, NULL, NULL, 1,
							 flow ? YAML_FLOW_MAPPING_STYLE
							      : YAML_BLOCK_MAPPING_STYLE),
		     &event);
	else
		emit(out,
		     yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
							  flow ? YAML_FLOW_SEQUENCE_STYLE
							       : YAML_BLOCK_SEQUENCE_STYLE),
		     &event);
}

static void emit_close(struct out *out, enum cfg_node_kind kind)
{
	yaml_event_t event;
	if (kind == CFG_NODE_MAPPING)
		emit(out, yaml_mapping_end_event_initialize(&event), &event);
	else
		emit(out, yaml_sequence_end_event_initialize(&event), &event);
}

/* A part whose schema is not known here, as it was read. */
static void emit_node(struct out *out, const struct cfg_node *node)
{
	if (node->kind == CFG_NODE_SCALAR) {
		emit_text(out, node->text, node->quoted);
		return;
	}
	emit_open(out, node->kind, true);
	for (size_t i = 0; i < node->count; i++) {
		if (node->items[i]->key)
			emit_text(out, node->items[i]->key, false);
		emit_node(out, node->items[i]);
	}
	emit_close(out, node->kind);
}

/* The canonical form of TEXT, or TEXT itself for strings, names and what cannot be read. */
static void emit_value(struct out *out, enum cfg_type type, const char *text, bool quoted)
{
	union {
		uint64_t number;
		double real;
		struct cfg_portal portal;
	} value;
	char canonical[80], why[8];
	bool truth;

	if (type == CFG_BOOL && cfg_parse_bool(text, &truth))
		emit_text(out, truth ? "true" : "false", false);
	else if (type != CFG_STRING && type != CFG_BOOL && type != CFG_ENUM &&
		 !cfg_parse_scalar(type, text, &value, why, sizeof why)) {
		cfg_format_scalar(type, &value, canonical, sizeof canonical);
		emit_text(out, canonical, false);
	} else {
		emit_text(out, text, quoted);
	}
}

static void emit_url(struct out *out, const struct cfg_node *item)
{
	char shown[CFG_URL_BYTES];

	emit_text(out, text_url(shown, sizeof shown, item->text), item->quoted);
}

static void emit_list(struct out *out, const struct cfg_field *field, const struct cfg_node *node)
{
	bool empty = node->kind != CFG_NODE_SEQUENCE || !node->count;

	emit_open(out, CFG_NODE_SEQUENCE, field->type != CFG_LIST || empty);
	for (size_t i = 0; !empty && i < node->count; i++) {
		const struct cfg_node *item = node->items[i];
		if (field->type == CFG_LIST)
			emit_mapping(out, item, field->sub, false);
		else if (field->urls && item->text)
			emit_url(out, item);
		else
			emit_value(out, cfg_item_type(field), item->text, item->quoted);
	}
	emit_close(out, CFG_NODE_SEQUENCE);
}

static void emit_given(struct out *out, const struct cfg_field *field, const struct cfg_node *node)
{
	emit_text(out, field->key, false);
	switch (field->type) {
	case CFG_STRUCT:
		emit_mapping(out, node, field->sub, false);
		break;
	case CFG_LIST:
	case CFG_STRINGS:
	case CFG_UINTS:
	case CFG_PORTALS:
		emit_list(out, field, node);
		break;
	case CFG_UNION:
		if (node->schema)
			emit_mapping(out, node, node->schema, true);
		else
			emit_node(out, node);
		break;
	default:
		emit_value(out, field->type, node->text, node->quoted);
		break;
	}
}

/* An absent part is written out only where its defaults make a valid one. */
static bool has_required(const struct cfg_schema *schema)
{
	for (size_t i = 0; i < schema->field_count; i++)
		if (schema->fields[i].required)
			return true;
	return false;
}

static bool has_preset(const struct cfg_schema *schema)
{
	for (size_t i = 0; i < schema->field_count; i++) {
		const struct cfg_field *field = &schema->fields[i];
		if (field->preset || (field->type == CFG_STRUCT && !has_required(field->sub) &&
				      has_preset(field->sub)))
			return true;
	}
	return false;
}

static void emit_mapping(struct out *out, const struct cfg_node *node,
			 const struct cfg_schema *schema, bool raw)
{
	if (node && node->kind != CFG_NODE_MAPPING)
		node = NULL;
	emit_open(out, CFG_NODE_MAPPING, false);
	const struct cfg_node *type = raw && node ? cfg_node_find(node, "type") : NULL;
	if (type) {
		emit_text(out, "type", false);
		emit_node(out, type);
	}
	for (size_t i = 0; i < schema->field_count; i++) {
		const struct cfg_field *field = &schema->fields[i];
		const struct cfg_node *value = node ? cfg_node_find(node, field->key) : NULL;
		if (type && value == type)
			continue;
		if (value) {
			emit_given(out, field, value);
		} else if (field->type == CFG_STRUCT && !has_required(field->sub) &&
			   has_preset(field->sub)) {
			emit_text(out, field->key, false);
			emit_mapping(out, NULL, field->sub, false);
		} else if (field->type != CFG_STRUCT && field->preset) {
			emit_text(out, field->key, false);
			if (field->type == CFG_UNION)
				emit_text(out, field->preset, false);
			else
				emit_value(out, field->type, field->preset, false);
		}
	}
	emit_close(out, CFG_NODE_MAPPING);
}

int cfg_emit(const struct cfg *cfg, const struct cfg_schema *schema, FILE *to)
{
	struct out out = {.rc = 0};
	yaml_event_t event;

	if (!yaml_emitter_initialize(&out.emitter))
		return -ENOMEM;
	yaml_emitter_set_output_file(&out.emitter, to);
	yaml_emitter_set_unicode(&out.emitter, 1);
	yaml_emitter_set_width(&out.emitter, -1);
	emit(&out, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING), &event);
	emit(&out, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1), &event);
	emit_mapping(&out, cfg->root, schema, false);
	emit(&out, yaml_document_end_event_initialize(&event, 1), &event);
	emit(&out, yaml_stream_end_event_initialize(&event), &event);
	yaml_emitter_delete(&out.emitter);
	if (!out.rc && (fflush(to) || ferror(to)))
		out.rc = -EIO;
	return out.rc;
}
