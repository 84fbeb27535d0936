/* SPDX-License-Identifier: MIT
 *
 * Diagnostics: formats a line in one buffer and writes it with one system call, so that lines of
 * different threads and processes do not mix.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LOG_LINE_BYTES = 1024 };

static _Atomic(int) log_level = LOG_LEVEL_WARN;

static const char *const level_prefix[] = {
    [LOG_LEVEL_ERROR] = "sanlab: error: ",
    [LOG_LEVEL_WARN] = "sanlab: warning: ",
    [LOG_LEVEL_INFO] = "sanlab: ",
    [LOG_LEVEL_DEBUG] = "sanlab: debug: ",
};

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&log_level, (int)level, memory_order_relaxed);
}

enum log_level log_get_level(void)
{
	return (enum log_level)atomic_load_explicit(&log_level, memory_order_relaxed);
}

void log_at(enum log_level level, const char *format, ...)
{
	char line[LOG_LINE_BYTES];
	int saved_errno = errno;
	size_t used, room;
	va_list args;
	int length;

	if (level > log_get_level())
		return;
	used = strlen(level_prefix[level]);
	memcpy(line, level_prefix[level], used);
	room = sizeof line - used - 1; /* a byte is kept for the newline */
	va_start(args, format);
	length = vsnprintf(line + used, room, format, args);
	va_end(args);
	if (length > 0) {
		size_t end = used + ((size_t)length < room ? (size_t)length : room - 1);

		/* Names and text from the wire end up here: no escape sequences on terminals. */
		for (; used < end; used++)
			if ((unsigned char)line[used] < 0x20 || line[used] == 0x7f)
				line[used] = '?';
	}
	line[used++] = '\n';
	if (write(STDERR_FILENO, line, used) < 0) {
		/* Nobody left to tell. */
	}
	errno = saved_errno;
}
