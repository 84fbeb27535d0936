/* SPDX-License-Identifier: MIT
 *
 * The test log; bounded, as a test may last for days.
 */
#include "harness/workload/ese/ese_testlog.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"

struct ese_testlog {
	struct loop *loop;
	json_t *lines;
};

int ese_testlog_new(struct loop *loop, struct ese_testlog **ret_log)
{
	struct ese_testlog *log = calloc(1, sizeof *log);

	if (!log)
		return -ENOMEM;
	log->loop = loop;
	log->lines = json_array();
	if (!log->lines) {
		free(log);
		return -ENOMEM;
	}
	*ret_log = log;
	return 0;
}

struct ese_testlog *ese_testlog_free(struct ese_testlog *log)
{
	if (!log)
		return NULL;
	json_decref(log->lines);
	free(log);
	return NULL;
}

void ese_testlog_add(struct ese_testlog *log, const char *host, const char *format, ...)
{
	char text[ESE_TESTLOG_LINE_BYTES];
	size_t count = json_array_size(log->lines);
	va_list args;

	if (count >= ESE_TESTLOG_LINES_MAX)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (count == ESE_TESTLOG_LINES_MAX - 1) {
		snprintf(text, sizeof text, "The test log is full: nothing more is written.");
		host = NULL;
	}
	json_array_append_new(log->lines, json_pack("{s:I, s:s?, s:s}", "wall_ns",
						    (json_int_t)loop_wall_ns(log->loop), "host",
						    host, "text", text));
}

json_t *ese_testlog_json(const struct ese_testlog *log)
{
	return json_incref(log->lines);
}

const char *ese_testlog_size(uint64_t bytes, char *out, size_t size)
{
	if (bytes >= GIB)
		snprintf(out, size, "%.1f GB", (double)bytes / (double)GIB);
	else
		snprintf(out, size, "%.1f MB", (double)bytes / (double)MIB);
	return out;
}
