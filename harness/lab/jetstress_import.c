/* SPDX-License-Identifier: MIT
 *
 * Reading of a JetstressConfig.xml: presets, the document, notes.
 */
#include "harness/lab/jetstress_import.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/lab/jetstress_xml.h"

/* What Jetstress 2013 writes itself. */
static const struct jetstress_design presets = {
    .duration_s = 7200,
    .interval_ms = 15000,
    .bdm = true,
    .new_databases = true,
    .insert = 40,
    .remove = 20,
    .replace = 5,
    .lazy = 70,
    .copies = 1,
    .record_pad_bytes = 2000,
    .throughput_percent = 100,
    .capacity_percent = 100,
    .reserved_percent = 25,
    .margin_iops = 0.05,
    .preload = 0.9,
    .replay_files = 500,
    .latency_errors = 6,
    .dbm_throttle_ms = 100,
    .strict = {20, 100, 10, 100},
    .lenient = {20, 200, 10, 200},
};

struct import {
	struct jetstress_design *design;
	char root[XML_NAME_BYTES];
};

void jetstress_note(struct jetstress_design *design, unsigned line, const char *element,
		    const char *format, ...)
{
	struct jetstress_note *note = &design->notes[design->note_count];
	va_list ap;

	if (design->note_count == JETSTRESS_NOTES_MAX) {
		design->notes_lost++;
		return;
	}
	design->note_count++;
	note->line = line;
	snprintf(note->element, sizeof note->element, "%s", element);
	va_start(ap, format);
	vsnprintf(note->why, sizeof note->why, format, ap);
	va_end(ap);
}

static void on_element(void *arg, const struct xml_element *element, bool begins)
{
	struct import *import = arg;

	if (!element->parent)
		snprintf(import->root, sizeof import->root, "%s", element->name);
	jetstress_element(import->design, element, begins);
}

int jetstress_read(const char *name, const char *text, size_t size,
		   struct jetstress_design *ret_design, struct err *err)
{
	struct jetstress_design *design = malloc(sizeof *design);
	struct import import = {.design = design};
	int r;

	if (!design)
		return err_set(err, -ENOMEM, "out of memory");
	*design = presets;
	r = xml_read(name, text, size, on_element, &import, err);
	if (r == 0 && strcmp(import.root, "configuration") != 0) {
		r = err_set(err, -EINVAL, "the document's element is %s, not configuration",
			    import.root);
		err_where(err, "%s", name);
		err_hint(err, "a JetstressConfig.xml is wanted, as Jetstress saves it");
	}
	if (r == 0)
		*ret_design = *design;
	free(design);
	return r;
}

int jetstress_load(const char *file, struct jetstress_design *ret_design, struct err *err)
{
	FILE *from = fopen(file, "re");
	char *text = NULL;
	size_t size = 0;
	int r = 0;

	if (!from) {
		r = err_set(err, -errno, "cannot read it: %s", strerror(errno));
		err_where(err, "%s", file);
		return r;
	}
	text = malloc(XML_BYTES_MAX + 1);
	if (!text)
		r = err_set(err, -ENOMEM, "out of memory");
	else
		/* One byte more than is taken tells that there is more. */
		size = fread(text, 1, XML_BYTES_MAX + 1, from);
	if (r == 0 && ferror(from)) {
		r = err_set(err, -EIO, "cannot read it");
		err_where(err, "%s", file);
	}
	fclose(from);
	if (r == 0)
		r = jetstress_read(file, text, size, ret_design, err);
	free(text);
	return r;
}
