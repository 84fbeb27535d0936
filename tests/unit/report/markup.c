/* SPDX-License-Identifier: MIT
 *
 * A checker of markup.
 */
#include "tests/unit/report/markup.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/report/format.h"

enum { DEPTH_MAX = 64, NAME_MAX_BYTES = 32, ATTRIBUTES_MAX = 32 };

struct markup {
	const char *text, *at;
	bool html;
	unsigned depth;
	char open[DEPTH_MAX][NAME_MAX_BYTES];
	unsigned elements;
};

static char complaint[200];

__attribute__((format(printf, 2, 3))) static bool wrong(const struct markup *markup,
							const char *format, ...)
{
	int used =
	    snprintf(complaint, sizeof complaint, "at byte %td: ", markup->at - markup->text);
	va_list ap;

	va_start(ap, format);
	vsnprintf(complaint + used, sizeof complaint - (size_t)used, format, ap);
	va_end(ap);
	return false;
}

static bool take_entity(struct markup *markup)
{
	static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (strncmp(markup->at, known[i], strlen(known[i])) == 0) {
			markup->at += strlen(known[i]);
			return true;
		}
	}
	return wrong(markup, "unknown entity %.10s", markup->at);
}

static bool take_name(struct markup *markup, char *name)
{
	size_t length = strspn(markup->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					   "0123456789-:_");

	if (length == 0 || length >= NAME_MAX_BYTES)
		return wrong(markup, "no name");
	snprintf(name, NAME_MAX_BYTES, "%.*s", (int)length, markup->at);
	markup->at += length;
	return true;
}

static bool take_value(struct markup *markup)
{
	if (strncmp(markup->at, "=\"", 2) != 0)
		return wrong(markup, "attribute without a quoted value");
	markup->at += 2;
	while (*markup->at != '"') {
		unsigned length = utf8_length(markup->at);

		if (*markup->at == '<' || !length)
			return wrong(markup, "character not allowed in an attribute");
		if (*markup->at == '&' && !take_entity(markup))
			return false;
		else if (*markup->at != '"')
			markup->at += utf8_length(markup->at);
	}
	markup->at++;
	return true;
}

static bool take_attributes(struct markup *markup)
{
	char names[ATTRIBUTES_MAX][NAME_MAX_BYTES];
	unsigned count = 0;

	for (;;) {
		markup->at += strspn(markup->at, " \n\t");
		if (*markup->at == '>' || *markup->at == '/' || *markup->at == '?')
			return true;
		if (count == ATTRIBUTES_MAX || !take_name(markup, names[count]))
			return wrong(markup, "bad attribute");
		for (unsigned i = 0; i < count; i++) {
			if (strcmp(names[i], names[count]) == 0)
				return wrong(markup, "attribute %s twice", names[i]);
		}
		count++;
		/* HTML: <details open> */
		if (!(markup->html && strchr(" >", *markup->at)) && !take_value(markup))
			return false;
	}
}

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++) {
		if (strcmp(name, *names) == 0)
			return true;
	}
	return false;
}

static bool take_start(struct markup *markup)
{
	static const char *const voids[] = {"meta", "link", "br", NULL};
	static const char *const raw[] = {"script", "style", NULL};
	char name[NAME_MAX_BYTES], end[NAME_MAX_BYTES + 4];
	const char *close;

	markup->at++;
	if (!take_name(markup, name) || !take_attributes(markup))
		return false;
	markup->elements++;
	if (*markup->at == '/') {
		markup->at++;
		if (*markup->at++ != '>')
			return wrong(markup, "no > after /");
		return true;
	}
	markup->at++;
	if (markup->html && is_one_of(name, voids))
		return true;
	if (markup->html && is_one_of(name, raw)) {
		snprintf(end, sizeof end, "</%s>", name);
		close = strstr(markup->at, end);
		if (!close)
			return wrong(markup, "%s without an end", name);
		markup->at = close + strlen(end);
		return true;
	}
	if (markup->depth == DEPTH_MAX)
		return wrong(markup, "too deep");
	snprintf(markup->open[markup->depth++], NAME_MAX_BYTES, "%s", name);
	return true;
}

static bool take_end(struct markup *markup)
{
	char name[NAME_MAX_BYTES];

	markup->at += 2;
	if (!take_name(markup, name))
		return false;
	if (*markup->at++ != '>')
		return wrong(markup, "no > after the name");
	if (!markup->depth || strcmp(markup->open[markup->depth - 1], name) != 0)
		return wrong(markup, "</%s> closes <%s>", name,
			     markup->depth ? markup->open[markup->depth - 1] : "nothing");
	markup->depth--;
	return true;
}

static bool take_text(struct markup *markup)
{
	unsigned length = utf8_length(markup->at);

	if (*markup->at == '&')
		return take_entity(markup);
	if (!length)
		return wrong(markup, "character not allowed");
	if (!markup->depth && !isspace((unsigned char)*markup->at))
		return wrong(markup, "text outside the document");
	markup->at += length;
	return true;
}

static bool take_prologue(struct markup *markup)
{
	const char *want = markup->html ? "<!DOCTYPE html>\n" : "<?xml version=\"1.0\"";

	if (strncmp(markup->at, want, strlen(want)) != 0)
		return wrong(markup, "does not begin with %s", want);
	markup->at = strchr(markup->at, '>') + 1;
	return true;
}

const char *markup_check(const char *text, bool html)
{
	struct markup markup = {.text = text, .at = text, .html = html};
	bool fine = take_prologue(&markup);

	while (fine && *markup.at) {
		if (strncmp(markup.at, "</", 2) == 0)
			fine = take_end(&markup);
		else if (*markup.at == '<')
			fine = take_start(&markup);
		else
			fine = take_text(&markup);
	}
	if (fine && markup.depth)
		fine = wrong(&markup, "<%s> is never closed", markup.open[markup.depth - 1]);
	if (fine && !markup.elements)
		fine = wrong(&markup, "no element");
	return fine ? NULL : complaint;
}

unsigned count_of(const char *text, const char *needle)
{
	unsigned count = 0;

	while ((text = strstr(text, needle)) != NULL) {
		text += strlen(needle);
		count++;
	}
	return count;
}
