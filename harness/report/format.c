/* SPDX-License-Identifier: MIT
 *
 * Text of the report writers: escaping, numbers for people, evidence as lines.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "harness/report/format.h"

static bool is_continuation(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

unsigned utf8_length(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	uint32_t rune;

	if (p[0] < 0x80)
		return p[0] >= 0x20 || p[0] == '\t' || p[0] == '\n' || p[0] == '\r';
	if (p[0] >= 0xc2 && p[0] < 0xe0)
		return is_continuation(p[1]) ? 2 : 0;
	if (p[0] >= 0xe0 && p[0] < 0xf0) {
		if (!is_continuation(p[1]) || !is_continuation(p[2]))
			return 0;
		rune = (uint32_t)(p[0] & 0xf) << 12 | (uint32_t)(p[1] & 0x3f) << 6 | (p[2] & 0x3f);
		if (rune < 0x800 || (rune >= 0xd800 && rune < 0xe000) || rune >= 0xfffe)
			return 0;
		return 3;
	}
	if (p[0] >= 0xf0 && p[0] < 0xf5) {
		if (!is_continuation(p[1]) || !is_continuation(p[2]) || !is_continuation(p[3]))
			return 0;
		rune = (uint32_t)(p[0] & 0x7) << 18 | (uint32_t)(p[1] & 0x3f) << 12;
		return rune >= 0x10000 && rune < 0x110000 ? 4 : 0;
	}
	return 0;
}

static const char *entity(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

void escape_xml(FILE *to, const char *text)
{
	while (text && *text) {
		unsigned length = utf8_length(text);
		const char *name = entity(*text);

		if (name)
			fputs(name, to);
		else if (length)
			fwrite(text, 1, length, to);
		else
			fputs("\xef\xbf\xbd", to);
		text += length ? length : 1;
	}
}

char *utf8_clean(const char *text)
{
	char *clean = strdup(text), *p = clean;

	while (p && *p) {
		unsigned length = utf8_length(p);

		/* JSON can hold control characters; only broken sequences go. */
		if (!length && (unsigned char)*p >= 0x80)
			*p = '?';
		p += length ? length : 1;
	}
	return clean;
}

static unsigned columns_of(const char *text)
{
	unsigned columns = 0;

	for (; *text; text++)
		columns += !is_continuation((unsigned char)*text);
	return columns;
}

void put_column(FILE *to, const char *text, unsigned width)
{
	unsigned columns = columns_of(text);
	unsigned keep = columns > width ? width - 1 : columns;
	unsigned put = 0;

	for (; *text; text++) {
		if (!is_continuation((unsigned char)*text) && ++put > keep)
			break;
		fputc((unsigned char)*text < 0x20 ? ' ' : *text, to);
	}
	if (keep < columns) {
		fputs("\xe2\x80\xa6", to);
		keep++;
	}
	fprintf(to, "%*s", (int)(width - keep), "");
}

void put_wrapped(FILE *to, const char *text, unsigned column, unsigned indent)
{
	bool first = true;

	while (*text) {
		size_t bytes = strcspn(text, " \n\t");
		unsigned columns = 0;

		/* "95 %" stays together. */
		if (text[bytes] == ' ' && text[bytes + 1] == '%')
			bytes += 1 + strcspn(text + bytes + 1, " \n\t");

		for (size_t i = 0; i < bytes; i++)
			columns += !is_continuation((unsigned char)text[i]);
		if (!first && column + 1 + columns > 80) {
			fprintf(to, "\n%*s", (int)indent, "");
			column = indent;
		} else if (!first) {
			fputc(' ', to);
			column++;
		}
		for (size_t i = 0; i < bytes; i++)
			fputc((unsigned char)text[i] < 0x20 ? ' ' : text[i], to);
		column += columns;
		first = false;
		text += bytes;
		text += strspn(text, " \n\t");
	}
	fputc('\n', to);
}

/* Writes DIGITS ("1234567") with a comma between thousands. */
static void group_thousands(char *out, size_t size, const char *digits)
{
	size_t length = strlen(digits), used = 0;

	for (size_t i = 0; i < length && used + 2 < size; i++) {
		if (i && (length - i) % 3 == 0)
			out[used++] = ',';
		out[used++] = digits[i];
	}
	out[used] = '\0';
}

char *format_count(char *out, size_t size, uint64_t count)
{
	char digits[24];

	snprintf(digits, sizeof digits, "%" PRIu64, count);
	group_thousands(out, size, digits);
	return out;
}

char *format_real(char *out, size_t size, double value)
{
	if (!isfinite(value))
		snprintf(out, size, "-");
	else if (value >= 1e18 || value < 0)
		snprintf(out, size, "%.4g", value);
	else if (value >= 1000)
		format_count(out, size, (uint64_t)llround(value));
	else if (value >= 99.95)
		snprintf(out, size, "%.0f", value);
	else if (value >= 9.995 || value == 0)
		snprintf(out, size, "%.*f", value == 0 ? 0 : 1, value);
	else
		snprintf(out, size, "%.2f", value);
	return out;
}

char *format_share(char *out, size_t size, double share)
{
	if (!isfinite(share))
		snprintf(out, size, "-");
	else
		snprintf(out, size, "%.1f %%", share * 100);
	return out;
}

char *format_latency(char *out, size_t size, double ns, uint64_t count)
{
	if (count == 0 || !isfinite(ns))
		snprintf(out, size, "-");
	else
		text_duration(out, size, ns);
	return out;
}

char *format_mib(char *out, size_t size, double bytes_per_s)
{
	return format_real(out, size, bytes_per_s / (double)MIB);
}

char *format_clock(char *out, size_t size, uint64_t at_ns)
{
	uint64_t ms = (at_ns + NS_PER_MS / 2) / NS_PER_MS, s = ms / 1000;

	ms %= 1000;
	if (s >= 3600)
		snprintf(out, size, "%" PRIu64 ":%02u:%02u.%03u", s / 3600, (unsigned)(s / 60 % 60),
			 (unsigned)(s % 60), (unsigned)ms);
	else if (s >= 60)
		snprintf(out, size, "%u:%02u.%03u", (unsigned)(s / 60), (unsigned)(s % 60),
			 (unsigned)ms);
	else
		snprintf(out, size, "%u.%03u s", (unsigned)s, (unsigned)ms);
	return out;
}

struct evidence_walk {
	evidence_fn line;
	void *arg;
	unsigned lines;
};

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	return length >= tail && strcmp(text + length - tail, end) == 0;
}

static void number_text(char *out, size_t size, const char *key, const json_t *value)
{
	char scaled[64] = "";
	double number = json_number_value(value);

	if (ends_with(key, "_ns"))
		text_duration(scaled, sizeof scaled, number);
	else if (ends_with(key, "_bytes"))
		text_bytes(scaled, sizeof scaled, number);
	if (json_is_integer(value))
		snprintf(out, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else
		snprintf(out, size, "%.6g", number);
	if (scaled[0]) {
		size_t used = strlen(out);

		snprintf(out + used, size - used, " (%s)", scaled);
	}
}

static void evidence_leaf(struct evidence_walk *walk, const char *key, const json_t *value)
{
	char text[400];

	switch (json_typeof(value)) {
	case JSON_STRING:
		snprintf(text, sizeof text, "%s", json_string_value(value));
		break;
	case JSON_INTEGER:
	case JSON_REAL:
		number_text(text, sizeof text, key, value);
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		snprintf(text, sizeof text, "%s", json_is_true(value) ? "yes" : "no");
		break;
	default:
		snprintf(text, sizeof text, "none");
	}
	walk->line(walk->arg, key, text);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the document, which jansson bounds */
static void evidence_walk(struct evidence_walk *walk, const char *prefix, const json_t *value)
{
	char key[160];
	const char *name;
	json_t *child;
	size_t index;

	if (walk->lines >= EVIDENCE_LINES_MAX)
		return;
	if (json_is_object(value)) {
		/* jansson's iteration takes a non-const object but does not change it */
		json_object_foreach((json_t *)(uintptr_t)value, name, child)
		{
			snprintf(key, sizeof key, "%s%s%s", prefix, *prefix ? "." : "", name);
			evidence_walk(walk, key, child);
		}
	} else if (json_is_array(value)) {
		json_array_foreach(value, index, child)
		{
			snprintf(key, sizeof key, "%s%s%zu", prefix, *prefix ? "." : "", index);
			evidence_walk(walk, key, child);
		}
	} else {
		walk->lines++;
		evidence_leaf(walk, prefix, value);
	}
}

void evidence_each(const json_t *evidence, evidence_fn line, void *arg)
{
	struct evidence_walk walk = {.line = line, .arg = arg};

	if (evidence)
		evidence_walk(&walk, "", evidence);
}
