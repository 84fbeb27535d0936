/* SPDX-License-Identifier: MIT
 *
 * SPC trace file format 1.0.1, as of the UMass repository:
 *
 *   ASU,LBA,Size,Opcode,Timestamp[,optional...]
 *   0,20941264,8192,W,0.551706,Alpha/NT
 *
 * LBA counts blocks of the ASU, whose size stands elsewhere (512 bytes unless `spc-block-size` says
 * otherwise); size is in bytes, the time in seconds.  A device is named "asu0".
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "harness/trace/trace_impl.h"

enum { FIELDS = 5 };

static bool find_op(const char *word, uint8_t *ret_op)
{
	if (strcasecmp(word, "r") != 0 && strcasecmp(word, "w") != 0)
		return false;
	*ret_op = strcasecmp(word, "r") == 0 ? TRACE_READ : TRACE_WRITE;
	return true;
}

static bool is_mine(const char *text)
{
	char copy[256], *fields[FIELDS];
	size_t length = strlen(text);
	uint8_t op;

	if (length >= sizeof copy)
		return false;
	memcpy(copy, text, length + 1);
	return trace_split(copy, ',', fields, FIELDS) >= FIELDS && find_op(fields[3], &op);
}

static int line(struct trace_parse *parse, char *text)
{
	uint64_t block = parse->options->spc_block_bytes ? parse->options->spc_block_bytes : 512;
	struct trace_record record = {.end_ns = TRACE_NEVER};
	unsigned count;
	char *field[FIELDS], name[32];
	uint64_t asu, lba;

	count = trace_split(text, ',', field, FIELDS);
	if (count < FIELDS)
		return trace_bad(parse, "%u fields, fewer than %d", count, FIELDS);
	if (!find_op(field[3], &record.op))
		return trace_bad(parse, "the opcode is '%.40s', not R or W", field[3]);
	if (trace_number(parse, "the ASU", field[0], 10, UINT32_MAX, &asu) < 0 ||
	    trace_number(parse, "the LBA", field[1], 10, UINT64_MAX / block, &lba) < 0 ||
	    trace_number(parse, "the size", field[2], 10, UINT64_MAX, &record.length_bytes) < 0 ||
	    trace_seconds(parse, "the timestamp", field[4], &record.begin_ns) < 0)
		return -EINVAL;
	record.offset_bytes = lba * block;
	snprintf(name, sizeof name, "asu%u", (unsigned)asu);
	return trace_emit(parse, name, &record);
}

const struct trace_format trace_spc = {
    .name = "spc",
    .help = "SPC trace file 1.0.1",
    .is_mine = is_mine,
    .line = line,
};
