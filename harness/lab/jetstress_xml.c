/* SPDX-License-Identifier: MIT
 *
 * Bounded XML on expat.
 */
#include "harness/lab/jetstress_xml.h"

#include <errno.h>
#include <expat.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

struct reader {
	XML_Parser parser;
	const char *name;
	struct xml_element stack[XML_DEPTH_MAX];
	unsigned depth, elements;
	xml_element_fn fn;
	void *arg;
	struct err *err;
	int status;
};

__attribute__((format(printf, 3, 4))) static void refuse(struct reader *reader, int status,
							 const char *format, ...)
{
	char what[300];
	va_list ap;

	if (reader->status < 0)
		return;
	va_start(ap, format);
	vsnprintf(what, sizeof what, format, ap);
	va_end(ap);
	reader->status = err_set(reader->err, status, "%s", what);
	err_where(reader->err, "%s:%lu", reader->name,
		  (unsigned long)XML_GetCurrentLineNumber(reader->parser));
	XML_StopParser(reader->parser, XML_FALSE);
}

static bool take_attributes(struct reader *reader, struct xml_element *element,
			    const XML_Char **pairs)
{
	for (; pairs[0]; pairs += 2) {
		struct xml_attribute *attribute = &element->attributes[element->attribute_count];

		if (element->attribute_count == XML_ATTRIBUTES_MAX ||
		    strlen(pairs[0]) >= sizeof attribute->name ||
		    strlen(pairs[1]) >= sizeof attribute->value) {
			refuse(reader, -E2BIG, "too many or too long attributes");
			return false;
		}
		snprintf(attribute->name, sizeof attribute->name, "%s", pairs[0]);
		snprintf(attribute->value, sizeof attribute->value, "%s", pairs[1]);
		element->attribute_count++;
	}
	return true;
}

static void XMLCALL on_begin(void *arg, const XML_Char *name, const XML_Char **attributes)
{
	struct reader *reader = arg;
	struct xml_element *element = &reader->stack[reader->depth];

	if (reader->status < 0)
		return;
	if (reader->depth == XML_DEPTH_MAX) {
		refuse(reader, -E2BIG, "elements are nested deeper than %d", XML_DEPTH_MAX);
		return;
	}
	if (++reader->elements > XML_ELEMENTS_MAX || strlen(name) >= sizeof element->name) {
		refuse(reader, -E2BIG, "too many elements, or one with too long a name");
		return;
	}
	*element = (struct xml_element){.line = (unsigned)XML_GetCurrentLineNumber(reader->parser),
					.parent = reader->depth ? &reader->stack[reader->depth - 1]
								: NULL};
	snprintf(element->name, sizeof element->name, "%s", name);
	if (!take_attributes(reader, element, attributes))
		return;
	if (reader->depth)
		reader->stack[reader->depth - 1].has_children = true;
	reader->depth++;
	reader->fn(reader->arg, element, true);
}

static void trim(char *text)
{
	static const char space[] = " \t\r\n";
	size_t lead = strspn(text, space), length = strlen(text + lead);

	while (length && strchr(space, text[lead + length - 1]))
		length--;
	memmove(text, text + lead, length);
	text[length] = '\0';
}

static void XMLCALL on_end(void *arg, const XML_Char *name)
{
	struct reader *reader = arg;
	struct xml_element *element;

	if (reader->status < 0)
		return;
	element = &reader->stack[--reader->depth];
	trim(element->text);
	reader->fn(reader->arg, element, false);
}

static void XMLCALL on_text(void *arg, const XML_Char *text, int length)
{
	struct reader *reader = arg;
	struct xml_element *element;
	size_t used;

	if (reader->status < 0 || !reader->depth)
		return;
	element = &reader->stack[reader->depth - 1];
	used = strlen(element->text);
	if (used + (size_t)length >= sizeof element->text)
		refuse(reader, -E2BIG, "text of %s is longer than %d bytes", element->name,
		       XML_TEXT_BYTES - 1);
	else
		memcpy(element->text + used, text, (size_t)length);
}

static void XMLCALL on_doctype(void *arg, const XML_Char *name, const XML_Char *system_id,
			       const XML_Char *public_id, int has_internal_subset)
{
	refuse(arg, -EINVAL, "it declares a document type, which such a file has not");
}

static void parse(struct reader *reader, const char *text, size_t size)
{
	XML_SetUserData(reader->parser, reader);
	XML_SetElementHandler(reader->parser, on_begin, on_end);
	XML_SetCharacterDataHandler(reader->parser, on_text);
	XML_SetStartDoctypeDeclHandler(reader->parser, on_doctype);
	if (XML_Parse(reader->parser, text, (int)size, XML_TRUE) != XML_STATUS_OK)
		refuse(reader, -EINVAL, "not an XML document: %s",
		       XML_ErrorString(XML_GetErrorCode(reader->parser)));
}

int xml_read(const char *name, const char *text, size_t size, xml_element_fn fn, void *arg,
	     struct err *err)
{
	struct reader *reader;
	int r;

	if (size > XML_BYTES_MAX) {
		r = err_set(err, -E2BIG, "larger than %d bytes", XML_BYTES_MAX);
		err_where(err, "%s", name);
		return r;
	}
	reader = calloc(1, sizeof *reader);
	if (!reader)
		return err_set(err, -ENOMEM, "out of memory");
	*reader = (struct reader){.name = name, .fn = fn, .arg = arg, .err = err};
	reader->parser = XML_ParserCreate(NULL);
	if (reader->parser)
		parse(reader, text, size);
	else
		reader->status = err_set(err, -ENOMEM, "out of memory");
	XML_ParserFree(reader->parser);
	r = reader->status;
	free(reader);
	return r;
}

const char *xml_attribute(const struct xml_element *element, const char *name)
{
	for (unsigned i = 0; i < element->attribute_count; i++) {
		if (strcmp(element->attributes[i].name, name) == 0)
			return element->attributes[i].value;
	}
	return NULL;
}

char *xml_path(const struct xml_element *element, char *out, size_t size)
{
	const struct xml_element *chain[XML_DEPTH_MAX];
	unsigned count = 0;
	size_t used = 0;

	out[0] = '\0';
	for (; element->parent; element = element->parent)
		chain[count++] = element;
	while (count && used < size) {
		const char *slash = used ? "/" : "";

		used +=
		    (size_t)snprintf(out + used, size - used, "%s%s", slash, chain[--count]->name);
	}
	return out;
}
