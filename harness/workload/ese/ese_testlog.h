/* SPDX-License-Identifier: MIT
 *
 * The test log: what Jetstress tells of a test, line by line, with the time of day.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_TESTLOG_H
#define SANLAB_HARNESS_WORKLOAD_ESE_TESTLOG_H

#include <jansson.h>

#include "base/loop.h"

enum { ESE_TESTLOG_LINES_MAX = 10000, ESE_TESTLOG_LINE_BYTES = 512 };

struct ese_testlog;

int ese_testlog_new(struct loop *loop, struct ese_testlog **ret_log);
struct ese_testlog *ese_testlog_free(struct ese_testlog *log); /* NULL is fine; returns NULL */

/* HOST: the server that the line is about; NULL: all of them.  Beyond the last line there is room
 * for it says so once. */
void ese_testlog_add(struct ese_testlog *log, const char *host, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* [{"wall_ns", "host", "text"}], a new reference. */
json_t *ese_testlog_json(const struct ese_testlog *log);
/* 968945700 -> "924.1 MB": sizes as the test log prints them.  Returns OUT. */
const char *ese_testlog_size(uint64_t bytes, char *out, size_t size);

#endif
