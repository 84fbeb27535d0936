/* SPDX-License-Identifier: MIT
 *
 * Reads an XML document of settings, element by element, within bounds: no document type and so no
 * entities of its own, limited size, depth, number and length of everything.  A hostile document is
 * refused; it cannot make the program read other files, grow or run long.
 */
#ifndef SANLAB_HARNESS_LAB_JETSTRESS_XML_H
#define SANLAB_HARNESS_LAB_JETSTRESS_XML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum {
	XML_BYTES_MAX = 1 << 20,
	XML_ELEMENTS_MAX = 20000,
	XML_DEPTH_MAX = 12,
	XML_NAME_BYTES = 64,
	XML_TEXT_BYTES = 2048,
	XML_ATTRIBUTES_MAX = 16,
};

struct xml_attribute {
	char name[XML_NAME_BYTES], value[256];
};

struct xml_element {
	char name[XML_NAME_BYTES];
	char text[XML_TEXT_BYTES]; /* directly in it, white space at both ends cut off */
	bool has_children;
	unsigned line; /* where it begins */
	struct xml_attribute attributes[XML_ATTRIBUTES_MAX];
	unsigned attribute_count;
	const struct xml_element *parent; /* NULL: the root */
};

/* Called for each element when it BEGINS (attributes known, text not) and when it ends. */
typedef void (*xml_element_fn)(void *arg, const struct xml_element *element, bool begins);

/* TEXT of SIZE bytes, called NAME in errors.  -EINVAL: not well-formed; -E2BIG: beyond a bound. */
int xml_read(const char *name, const char *text, size_t size, xml_element_fn fn, void *arg,
	     struct err *err);
/* The value of an attribute; NULL: it has none of that name. */
const char *xml_attribute(const struct xml_element *element, const char *name);
/* "a/b/c" from below the root; "" for the root itself. */
char *xml_path(const struct xml_element *element, char *out, size_t size);

#endif
