/* SPDX-License-Identifier: MIT
 *
 * Fields of a line.  Strict: what strtoull would skip or guess at is malformed here.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/trace/trace_impl.h"

int trace_bad(struct trace_parse *parse, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(parse->why, sizeof parse->why, format, args);
	va_end(args);
	/* It is shown on a terminal: nothing of the line may act there. */
	for (char *p = parse->why; *p; p++)
		if (!isprint((unsigned char)*p))
			*p = '?';
	return -EINVAL;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

int trace_number(struct trace_parse *parse, const char *what, const char *text, int base,
		 uint64_t limit, uint64_t *ret_value)
{
	const char *p = text;
	uint64_t value = 0;

	if (base == 0 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
		base = 16;
		p += 2;
	} else if (base == 0) {
		base = 10;
	}
	if (!*p)
		return trace_bad(parse, "%s is '%.40s', not a number", what, text);
	for (; *p; p++) {
		int digit = digit_of(*p);

		if (digit >= base)
			return trace_bad(parse, "%s is '%.40s', not a number", what, text);
		if (value > (UINT64_MAX - (uint64_t)digit) / (uint64_t)base)
			return trace_bad(parse, "%s is '%.40s', too large", what, text);
		value = value * (uint64_t)base + (uint64_t)digit;
	}
	if (value > limit)
		return trace_bad(parse, "%s is '%.40s', too large", what, text);
	*ret_value = value;
	return 0;
}

int trace_seconds(struct trace_parse *parse, const char *what, const char *text, uint64_t *ret_ns)
{
	const char *point = strchr(text, '.');
	size_t whole = point ? (size_t)(point - text) : strlen(text);
	uint64_t seconds = 0, ns = 0, unit = NS_PER_S / 10;
	char digits[24];
	int r;

	if (whole >= sizeof digits || (point && !point[1]))
		return trace_bad(parse, "%s is '%.40s', not seconds", what, text);
	memcpy(digits, text, whole);
	digits[whole] = '\0';
	r = trace_number(parse, what, digits, 10, UINT64_MAX / NS_PER_S - 1, &seconds);
	if (r < 0)
		return r;
	for (const char *p = point ? point + 1 : ""; *p; p++) {
		if (*p < '0' || *p > '9')
			return trace_bad(parse, "%s is '%.40s', not seconds", what, text);
		ns += (uint64_t)(*p - '0') * unit;
		unit /= 10;
	}
	*ret_ns = seconds * NS_PER_S + ns;
	return 0;
}

static char *trim(char *text)
{
	size_t length;

	text += strspn(text, " \t");
	length = strlen(text);
	while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
		text[--length] = '\0';
	return text;
}

unsigned trace_split(char *line, char separator, char **fields, unsigned max)
{
	unsigned count = 0;

	for (char *next; line; line = next) {
		next = strchr(line, separator);
		if (next)
			*next++ = '\0';
		if (count < max)
			fields[count] = trim(line);
		count++;
	}
	return count;
}

unsigned trace_words(char *line, char **words, unsigned max)
{
	unsigned count = 0;

	while (*(line += strspn(line, " \t"))) {
		size_t length = strcspn(line, " \t");
		char *end = line + length;

		if (count < max)
			words[count] = line;
		count++;
		if (!*end)
			break;
		*end = '\0';
		line = end + 1;
	}
	return count;
}

int trace_resolve(struct trace_parse *parse, const char *device, struct trace_record *record)
{
	bool data = record->op == TRACE_READ || record->op == TRACE_WRITE;
	int index;

	if (record->op != TRACE_FLUSH && record->length_bytes == 0)
		return trace_bad(parse, "the size is 0");
	if (data && record->length_bytes > TRACE_IO_MAX_BYTES)
		return trace_bad(parse, "the size is %llu bytes, more than %llu",
				 (unsigned long long)record->length_bytes,
				 (unsigned long long)TRACE_IO_MAX_BYTES);
	if (record->offset_bytes > INT64_MAX - record->length_bytes ||
	    record->length_bytes > INT64_MAX)
		return trace_bad(parse, "the place is beyond 8 EiB");
	index = trace_names_index(parse->names, device);
	if (index == -ENOSPC)
		return trace_bad(parse, "device '%.40s' is one more than %d", device,
				 TRACE_DEVICES_MAX);
	if (index < 0)
		return trace_bad(parse, "the device's name is longer than %d characters",
				 TRACE_NAME_MAX - 1);
	record->device = (uint16_t)index;
	return 0;
}

int trace_emit(struct trace_parse *parse, const char *device, struct trace_record *record)
{
	int r = trace_resolve(parse, device, record);

	return r < 0 ? r : trace_give(parse, record);
}
