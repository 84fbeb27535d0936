/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the trace formats: the first byte chooses the format and how it is read, the rest is the
 * file.  Whatever comes, records are in order and within their bounds.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "harness/trace/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct trace_record *record, const struct trace_set *set, uint64_t last_ns)
{
	assert(record->begin_ns >= last_ns);
	assert(record->end_ns >= record->begin_ns);
	assert(record->op < TRACE_OPS && record->class < TRACE_CLASSES);
	assert(record->device < trace_set_names(set)->count);
	assert(record->op == TRACE_FLUSH || record->length_bytes > 0);
	assert(record->length_bytes <= INT64_MAX &&
	       record->offset_bytes <= INT64_MAX - record->length_bytes);
}

static void read_all(struct trace_set *set)
{
	struct trace_record record;
	struct err err = {0};
	uint64_t last_ns = 0;

	while (trace_set_next(set, &record, &err) == 1) {
		check(&record, set, last_ns);
		last_ns = record.begin_ns;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	const char *files[] = {path, path};
	struct trace_options options = {.files = files, .file_count = 1};
	struct trace_set *set;
	struct err err = {0};
	int fd;

	if (size == 0)
		return 0;
	options.format = trace_format_find(trace_format_names[data[0] % 6]);
	options.join = data[0] & 0x40 ? TRACE_APPEND : TRACE_MERGE;
	options.file_count = data[0] & 0x20 ? 2 : 1;
	options.queued = data[0] & 0x10;
	options.bad_lines_max = data[0] & 0x80 ? 1000 : 3;
	fd = memfd_create("trace", MFD_CLOEXEC);
	if (fd < 0)
		return 0;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (write(fd, data + 1, size - 1) == (ssize_t)(size - 1) &&
	    trace_set_open(&options, &set, &err) == 0) {
		read_all(set);
		if (trace_set_rewind(set, &err) == 0)
			read_all(set);
		trace_set_close(set);
	}
	close(fd);
	return 0;
}
