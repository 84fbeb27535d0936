/* SPDX-License-Identifier: MIT
 *
 * The reference of all keys, printed from the same schemas that read them.
 */
#include <stdio.h>

#include "base/config_impl.h"

static const char *const type_names[] = {
    [CFG_STRING] = "text",
    [CFG_BOOL] = "true or false",
    [CFG_UINT] = "whole number",
    [CFG_SIZE] = "size",
    [CFG_DURATION] = "duration",
    [CFG_PERCENT] = "percentage",
    [CFG_REAL] = "number",
    [CFG_ENUM] = "one of",
    [CFG_PORTAL] = "portal",
    [CFG_STRUCT] = "mapping",
    [CFG_LIST] = "list of mappings",
    [CFG_STRINGS] = "list of texts",
    [CFG_UINTS] = "list of whole numbers",
    [CFG_PORTALS] = "list of portals",
    [CFG_UNION] = "value or mapping",
};

static void print_preset(const struct cfg_field *field, FILE *to)
{
	union {
		uint64_t number;
		double real;
		struct cfg_portal portal;
	} value;
	char text[80], why[8];

	if (field->type != CFG_BOOL && field->type != CFG_ENUM && field->type != CFG_STRING &&
	    field->type != CFG_UNION &&
	    !cfg_parse_scalar(field->type, field->preset, &value, why, sizeof why)) {
		cfg_format_scalar(field->type, &value, text, sizeof text);
		(void)fprintf(to, ", default %s", text);
	} else {
		(void)fprintf(to, ", default %s", field->preset);
	}
}

static void print_field(const struct cfg_field *field, const char *prefix, FILE *to)
{
	char limits[160];

	(void)fprintf(to, "%s%s%s: %s", prefix, field->key, field->type == CFG_LIST ? "[]" : "",
		      type_names[field->type]);
	for (size_t i = 0; field->type == CFG_ENUM && field->names[i]; i++)
		(void)fprintf(to, "%s %s", i ? "," : "", field->names[i]);
	if (cfg_limits_text(field, limits, sizeof limits))
		(void)fprintf(to, " %s", limits);
	if (field->required)
		(void)fprintf(to, ", required");
	if (field->preset)
		print_preset(field, to);
	(void)fprintf(to, "\n    %s\n", field->help ? field->help : "");
}

/* Schemas are trees, a few levels deep. */
void cfg_print_reference(const struct cfg_schema *schema, const char *prefix, FILE *to)
{
	for (size_t i = 0; i < schema->field_count; i++) {
		const struct cfg_field *field = &schema->fields[i];
		char deeper[200];
		print_field(field, prefix, to);
		if (!field->sub)
			continue;
		(void)snprintf(deeper, sizeof deeper, "%s%s%s.", prefix, field->key,
			       field->type == CFG_LIST ? "[]" : "");
		cfg_print_reference(field->sub, deeper, to);
	}
}
