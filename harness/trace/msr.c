/* SPDX-License-Identifier: MIT
 *
 * The CSV of the MSR Cambridge traces (SNIA IOTTA 388):
 *
 *   Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime
 *   128166372003061629,hm,0,Write,7014912,4096,26
 *
 * Times are Windows FILETIMEs, 100 ns each, since 1601; offset and size are bytes.  A device is
 * named "hm.0".  The first line may name the columns.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "harness/trace/trace_impl.h"

enum { FIELDS = 7, TICK_NS = 100 };

static bool is_head(const char *line)
{
	return strncasecmp(line, "timestamp,hostname", 18) == 0;
}

static bool is_mine(const char *text)
{
	char copy[256], *fields[FIELDS];
	size_t length = strlen(text);

	if (is_head(text))
		return true;
	if (length >= sizeof copy)
		return false;
	memcpy(copy, text, length + 1);
	return trace_split(copy, ',', fields, FIELDS) == FIELDS &&
	       (strcasecmp(fields[3], "read") == 0 || strcasecmp(fields[3], "write") == 0);
}

static int line(struct trace_parse *parse, char *text)
{
	struct trace_record record = {0};
	char *field[FIELDS], name[TRACE_NAME_MAX];
	uint64_t begin, disk, response;
	unsigned count;

	if (is_head(text)) {
		parse->ignored = true;
		return 0;
	}
	count = trace_split(text, ',', field, FIELDS);
	if (count != FIELDS)
		return trace_bad(parse, "%u fields, not %d", count, FIELDS);
	if (strcasecmp(field[3], "read") == 0)
		record.op = TRACE_READ;
	else if (strcasecmp(field[3], "write") == 0)
		record.op = TRACE_WRITE;
	else
		return trace_bad(parse, "the type is '%.40s', not Read or Write", field[3]);
	if (!*field[1])
		return trace_bad(parse, "the host has no name");
	if (trace_number(parse, "the timestamp", field[0], 10, UINT64_MAX / TICK_NS, &begin) < 0 ||
	    trace_number(parse, "the disk", field[2], 10, UINT32_MAX, &disk) < 0 ||
	    trace_number(parse, "the offset", field[4], 10, UINT64_MAX, &record.offset_bytes) < 0 ||
	    trace_number(parse, "the size", field[5], 10, UINT64_MAX, &record.length_bytes) < 0 ||
	    trace_number(parse, "the response time", field[6], 10, UINT64_MAX / TICK_NS - begin,
			 &response) < 0)
		return -EINVAL;
	record.begin_ns = begin * TICK_NS;
	record.end_ns = record.begin_ns + response * TICK_NS;
	snprintf(name, sizeof name, "%.200s.%u", field[1], (unsigned)disk);
	return trace_emit(parse, name, &record);
}

const struct trace_format trace_msr = {
    .name = "msr",
    .help = "CSV of the MSR Cambridge traces",
    .has_ends = true,
    .is_mine = is_mine,
    .line = line,
};
