/* SPDX-License-Identifier: MIT
 *
 * The configuration's messages: collected with their places, printed in the order of the file;
 * and the table that knows from where each decoded field was read.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/config_impl.h"

static void add_message(struct cfg *cfg, struct cfg_place place, const char *format, va_list args)
{
	size_t order = cfg->message_count++;
	if (order >= CFG_MAX_MESSAGES)
		return;
	char *text = NULL;
	if (vasprintf(&text, format, args) < 0) {
		cfg->out_of_memory = true;
		text = NULL;
	}
	cfg->messages[order] = (struct cfg_message){
	    .place = place,
	    .order = order,
	    .text = text ? cfg_strndup(cfg, text, strlen(text)) : NULL,
	};
	free(text);
}

void cfg_message(struct cfg *cfg, struct cfg_place place, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	add_message(cfg, place, format, args);
	va_end(args);
}

void cfg_hint(struct cfg *cfg, const char *format, ...)
{
	if (!cfg->message_count || cfg->message_count > CFG_MAX_MESSAGES)
		return;
	struct cfg_message *last = &cfg->messages[cfg->message_count - 1];
	char hint[400], *whole = NULL;
	va_list args;
	va_start(args, format);
	(void)vsnprintf(hint, sizeof hint, format, args);
	va_end(args);
	if (asprintf(&whole, "%s; %s", last->text ? last->text : "", hint) < 0)
		return;
	char *kept = cfg_strndup(cfg, whole, strlen(whole));
	if (kept)
		last->text = kept;
	free(whole);
}

size_t cfg_error_count(const struct cfg *cfg)
{
	return cfg->message_count + cfg->out_of_memory;
}

/* The file from top to bottom, then the --set assignments as they were given. */
static int compare_messages(const void *a, const void *b)
{
	const struct cfg_message *x = a, *y = b;
	if (x->place.set != y->place.set)
		return x->place.set < y->place.set ? -1 : 1;
	if (x->place.line != y->place.line)
		return x->place.line < y->place.line ? -1 : 1;
	if (x->place.column != y->place.column)
		return x->place.column < y->place.column ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

void cfg_print_errors(const struct cfg *cfg, FILE *to)
{
	struct cfg_message sorted[CFG_MAX_MESSAGES];
	size_t kept = cfg->message_count < CFG_MAX_MESSAGES ? cfg->message_count : CFG_MAX_MESSAGES;

	memcpy(sorted, cfg->messages, kept * sizeof sorted[0]);
	qsort(sorted, kept, sizeof sorted[0], compare_messages);
	for (size_t i = 0; i < kept; i++) {
		const struct cfg_place *place = &sorted[i].place;
		const char *text = sorted[i].text ? sorted[i].text : "error";
		if (place->set)
			(void)fprintf(to, "--set %s: %s\n", cfg->sets[place->set - 1], text);
		else if (place->line)
			(void)fprintf(to, "%s:%u:%u: %s\n", cfg->name, place->line, place->column,
				      text);
		else
			(void)fprintf(to, "%s: %s\n", cfg->name, text);
	}
	if (cfg->message_count > kept)
		(void)fprintf(to, "%s: %zu more errors are not shown\n", cfg->name,
			      cfg->message_count - kept);
	if (cfg->out_of_memory)
		(void)fprintf(to, "%s: out of memory\n", cfg->name);
}

/* ---- places of decoded fields ---- */

static size_t slot_of(const struct cfg *cfg, const void *address)
{
	uint64_t hash = (uint64_t)(uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15);
	size_t slot = (size_t)(hash >> 20) & (cfg->field_slots - 1);
	while (cfg->fields[slot].address && cfg->fields[slot].address != address)
		slot = (slot + 1) & (cfg->field_slots - 1);
	return slot;
}

static bool grow_fields(struct cfg *cfg)
{
	struct cfg old = *cfg;
	size_t slots = old.field_slots ? old.field_slots * 2 : 256;
	struct cfg_field_place *fields = calloc(slots, sizeof *fields);
	if (!fields) {
		cfg->out_of_memory = true;
		return false;
	}
	cfg->fields = fields;
	cfg->field_slots = slots;
	for (size_t i = 0; i < old.field_slots; i++)
		if (old.fields[i].address)
			fields[slot_of(cfg, old.fields[i].address)] = old.fields[i];
	free(old.fields);
	return true;
}

/* A structure and its first field share an address: the field, registered after it, wins, but the
 * extent of the structure is kept for find_field. */
void cfg_field_register(struct cfg *cfg, const void *address, size_t size, struct cfg_place place,
			bool given)
{
	assert(address);
	if (cfg->field_count >= CFG_MAX_FIELDS)
		return;
	if (cfg->field_count * 2 >= cfg->field_slots && !grow_fields(cfg))
		return;
	struct cfg_field_place *field = &cfg->fields[slot_of(cfg, address)];
	if (!field->address)
		cfg->field_count++;
	field->address = address;
	field->size = size > field->size ? size : field->size;
	field->place = place;
	field->given = given;
	field->wrong = false;
}

void cfg_field_wrong(struct cfg *cfg, const void *address)
{
	if (cfg->field_slots)
		cfg->fields[slot_of(cfg, address)].wrong = true;
}

/* The field at ADDRESS, else the smallest decoded structure around it, else NULL. */
static const struct cfg_field_place *find_field(const struct cfg *cfg, const void *address,
						bool exact)
{
	if (!cfg->field_slots)
		return NULL;
	const struct cfg_field_place *found = &cfg->fields[slot_of(cfg, address)];
	if (found->address)
		return found;
	found = NULL;
	for (size_t i = 0; i < cfg->field_slots && !exact; i++) {
		const struct cfg_field_place *field = &cfg->fields[i];
		uintptr_t begin = (uintptr_t)field->address, at = (uintptr_t)address;
		if (field->address && at >= begin && at - begin < field->size &&
		    (!found || field->size < found->size))
			found = field;
	}
	return found;
}

bool cfg_given(const struct cfg *cfg, const void *field)
{
	const struct cfg_field_place *found = find_field(cfg, field, true);
	return found && found->given;
}

bool cfg_valid(const struct cfg *cfg, const void *field)
{
	const struct cfg_field_place *found = find_field(cfg, field, true);
	return !found || !found->wrong;
}

void cfg_error_at(struct cfg *cfg, const void *field, const char *format, ...)
{
	const struct cfg_field_place *found = find_field(cfg, field, false);
	va_list args;
	va_start(args, format);
	add_message(cfg, found ? found->place : (struct cfg_place){0}, format, args);
	va_end(args);
}

void cfg_check_name(struct cfg *cfg, const char *const *name)
{
	enum { MOST = 32 };
	if (!cfg_valid(cfg, name) || !*name)
		return;
	size_t length = strspn(*name, "abcdefghijklmnopqrstuvwxyz0123456789-");
	if (!length || length > MOST || (*name)[length])
		cfg_error_at(cfg, name,
			     "the name '%.60s' must be 1 to %d characters of a-z, 0-9 and '-'",
			     *name, MOST);
}

void cfg_error_raw(struct cfg *cfg, const struct cfg_raw *raw, const char *format, ...)
{
	struct cfg_place place = {0};
	if (raw->node)
		place = cfg_node_place(raw->node);
	va_list args;
	va_start(args, format);
	add_message(cfg, place, format, args);
	va_end(args);
}
