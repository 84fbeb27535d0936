/* SPDX-License-Identifier: MIT
 *
 * Filling and printing of user-facing failures.
 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

int err_set(struct err *err, int code, const char *format, ...)
{
	va_list args;

	if (!err || err->code != 0)
		return code;
	err->code = code;
	va_start(args, format);
	vsnprintf(err->what, sizeof err->what, format, args);
	va_end(args);
	return code;
}

void err_where(struct err *err, const char *format, ...)
{
	va_list args;

	if (!err)
		return;
	va_start(args, format);
	vsnprintf(err->where, sizeof err->where, format, args);
	va_end(args);
}

void err_hint(struct err *err, const char *format, ...)
{
	va_list args;

	if (!err)
		return;
	va_start(args, format);
	vsnprintf(err->hint, sizeof err->hint, format, args);
	va_end(args);
}

void err_print(const struct err *err)
{
	if (err->where[0])
		fprintf(stderr, "sanlab: %s: %s\n", err->where, err->what);
	else
		fprintf(stderr, "sanlab: %s\n", err->what);
	if (err->hint[0])
		fprintf(stderr, "hint: %s\n", err->hint);
}
