/* SPDX-License-Identifier: MIT
 *
 * Files and lines of trace_text.h.
 */
#include "tests/unit/trace/trace_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs these before it */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

void trace_text_file(const char *text, size_t size, bool gz, char path[64])
{
	int fd;

	snprintf(path, 64, "/tmp/sanlab-trace.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	if (gz) {
		gzFile file = gzdopen(fd, "wb");

		assert_non_null(file);
		assert_int_equal(gzwrite(file, text, (unsigned)size), size);
		assert_int_equal(gzclose(file), Z_OK);
		return;
	}
	assert_int_equal(write(fd, text, size), size);
	close(fd);
}

static void add(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add(char *out, size_t size, const char *format, ...)
{
	size_t used = strlen(out);
	va_list args;

	va_start(args, format);
	vsnprintf(out + used, size - used, format, args);
	va_end(args);
}

static void add_record(const struct trace_set *set, const struct trace_record *record, char *out,
		       size_t size)
{
	static const char *const ops[] = {"read", "write", "flush", "trim"};
	static const char *const classes[] = {"", " database", " log", " checkpoint"};

	add(out, size, "%llu+", (unsigned long long)record->begin_ns);
	if (record->end_ns == TRACE_NEVER)
		add(out, size, "?");
	else
		add(out, size, "%llu", (unsigned long long)(record->end_ns - record->begin_ns));
	add(out, size, " %s %s %llu+%llu%s%s\n", trace_set_names(set)->name[record->device],
	    ops[record->op], (unsigned long long)record->offset_bytes,
	    (unsigned long long)record->length_bytes, record->fua ? " fua" : "",
	    classes[record->class]);
}

void trace_text_read(const struct trace_options *options, char *out, size_t size)
{
	struct trace_record record;
	const struct trace_counts *counts;
	struct trace_set *set = NULL;
	struct err err = {0};
	int r = trace_set_open(options, &set, &err);

	*out = '\0';
	if (r < 0) {
		add(out, size, "! %s", err.what);
		return;
	}
	while ((r = trace_set_next(set, &record, &err)) == 1)
		add_record(set, &record, out, size);
	counts = trace_set_counts(set);
	if (r < 0)
		add(out, size, "! %s", err.what);
	else if (counts->bad || counts->out_of_order)
		add(out, size, "bad %llu, late %llu", (unsigned long long)counts->bad,
		    (unsigned long long)counts->out_of_order);
	for (unsigned i = 0; i < counts->bad_kept; i++)
		add(out, size, "\n%s", strchr(counts->bad_line[i], ':') + 1);
	trace_set_close(set);
}

void trace_text(const char *text, char *out, size_t size)
{
	char path[64];
	const char *files[] = {path};
	struct trace_options options = {.files = files, .file_count = 1, .bad_lines_max = 100};

	trace_text_file(text, strlen(text), false, path);
	trace_text_read(&options, out, size);
	unlink(path);
}
