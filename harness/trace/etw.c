/* SPDX-License-Identifier: MIT
 *
 * The CSV that xperf dumps of disk events, as of the Exchange traces of the SNIA repository:
 *
 *   BeginHeader
 *     DiskRead,  TimeStamp, Process Name ( PID), ThreadID, IrpPtr, ByteOffset, IOSize, ElapsedTime,
 * ... EndHeader DiskRead,  12345, store.exe (1234), 5678, 0xfffffa80, 0x12345000, 0x8000, 1234, 2,
 * ..., "E:\db.edb"
 *
 * The header names the columns of each kind of event; without one those of the line above count.
 * Times are microseconds; that of an event is when the I/O ended, and it began ElapsedTime before.
 * Numbers may be decimal or 0x...  The file's name tells databases (.edb, .stm), logs (.log, .jrs)
 * and checkpoints (.chk) apart.  A device is named "disk2".  Events of other kinds are no I/O of a
 * disk.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/trace/trace_impl.h"

enum { FIELDS = 24 };

enum column { COL_TIME, COL_OFFSET, COL_SIZE, COL_ELAPSED, COL_DISK, COL_FILE, COLUMNS };
static const char *const column_names[COLUMNS] = {"timestamp",	 "byteoffset", "iosize",
						  "elapsedtime", "disknum",    "filename"};

enum kind { KIND_READ, KIND_WRITE, KIND_FLUSH, KINDS };
static const char *const kind_names[KINDS] = {"DiskRead", "DiskWrite", "DiskFlush"};

/* Where a column stands in a kind's lines; 0: it has none. */
static const unsigned char usual[KINDS][COLUMNS] = {
    [KIND_READ] = {1, 5, 6, 7, 8, 14},
    [KIND_WRITE] = {1, 5, 6, 7, 8, 14},
    [KIND_FLUSH] = {1, 0, 0, 5, 6, 0},
};

struct etw_state {
	bool in_header, known;
	unsigned char at[KINDS][COLUMNS];
};

static bool is_header_edge(const char *text, const char *word)
{
	return strncmp(text, word, strlen(word)) == 0;
}

static int find_kind(const char *word)
{
	for (int i = 0; i < KINDS; i++)
		if (strcmp(word, kind_names[i]) == 0)
			return i;
	return -1;
}

static bool is_mine(const char *text)
{
	char copy[64];
	size_t length;

	text += strspn(text, " \t");
	if (is_header_edge(text, "BeginHeader"))
		return true;
	length = strcspn(text, ", \t");
	if (length >= sizeof copy || !strchr(text, ','))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	return find_kind(copy) >= 0 || strcmp(copy, "DiskReadInit") == 0 ||
	       strcmp(copy, "DiskWriteInit") == 0 || is_header_edge(copy, "FileIo");
}

static void learn_columns(struct etw_state *state, int kind, char **field, unsigned count)
{
	memset(state->at[kind], 0, sizeof state->at[kind]);
	for (unsigned i = 1; i < count; i++)
		for (unsigned c = 0; c < COLUMNS; c++)
			if (strcasecmp(field[i], column_names[c]) == 0)
				state->at[kind][c] = (unsigned char)i;
}

/* The file's name is the last column: a comma in it separates nothing. */
static uint8_t classify(const char *file)
{
	static const struct {
		const char *extension;
		enum trace_class class;
	} table[] = {
	    {".edb", TRACE_DATABASE}, {".stm", TRACE_DATABASE},	  {".log", TRACE_LOG},
	    {".jrs", TRACE_LOG},      {".chk", TRACE_CHECKPOINT},
	};
	size_t length = strlen(file);

	while (length > 0 && (file[length - 1] == '"' || isspace((unsigned char)file[length - 1])))
		length--;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (length >= 4 && strncasecmp(file + length - 4, table[i].extension, 4) == 0)
			return (uint8_t)table[i].class;
	return TRACE_PLAIN;
}

static int column(struct trace_parse *parse, int kind, enum column which, char **field,
		  unsigned count, uint64_t limit, uint64_t *ret_value)
{
	static const char *const what[COLUMNS] = {"the time",	      "the offset", "the size",
						  "the elapsed time", "the disk",   "the file"};
	const struct etw_state *state = parse->state;
	unsigned at = state->at[kind][which];

	if (at == 0)
		return trace_bad(parse, "the header names no column %s of %s", column_names[which],
				 kind_names[kind]);
	if (at >= count)
		return trace_bad(parse, "%u fields, %s is missing", count, what[which]);
	return trace_number(parse, what[which], field[at], 0, limit, ret_value);
}

static int event(struct trace_parse *parse, int kind, char **field, unsigned count)
{
	static const uint8_t ops[KINDS] = {TRACE_READ, TRACE_WRITE, TRACE_FLUSH};
	const struct etw_state *state = parse->state;
	const uint64_t us_max = UINT64_MAX / 2 / NS_PER_US;
	struct trace_record record = {.op = ops[kind]};
	uint64_t end_us = 0, elapsed_us = 0, disk = 0;
	unsigned file = state->at[kind][COL_FILE];
	char name[32];

	if (column(parse, kind, COL_TIME, field, count, us_max, &end_us) < 0 ||
	    column(parse, kind, COL_ELAPSED, field, count, us_max, &elapsed_us) < 0 ||
	    column(parse, kind, COL_DISK, field, count, UINT32_MAX, &disk) < 0)
		return -EINVAL;
	if (kind != KIND_FLUSH &&
	    (column(parse, kind, COL_OFFSET, field, count, UINT64_MAX, &record.offset_bytes) < 0 ||
	     column(parse, kind, COL_SIZE, field, count, UINT64_MAX, &record.length_bytes) < 0))
		return -EINVAL;
	record.end_ns = end_us * NS_PER_US;
	/* What had begun before the trace did begins with it. */
	record.begin_ns = elapsed_us < end_us ? (end_us - elapsed_us) * NS_PER_US : 0;
	if (file && count > file)
		record.class = classify(field[MIN_OF(count, (unsigned)FIELDS) - 1]);
	snprintf(name, sizeof name, "disk%u", (unsigned)disk);
	return trace_emit(parse, name, &record);
}

static int line(struct trace_parse *parse, char *text)
{
	struct etw_state *state = parse->state;
	char *field[FIELDS];
	unsigned count;
	int kind;

	if (!state->known)
		memcpy(state->at, usual, sizeof usual);
	state->known = true;
	parse->ignored = true;
	text += strspn(text, " \t");
	if (is_header_edge(text, "BeginHeader") || is_header_edge(text, "EndHeader")) {
		state->in_header = *text == 'B';
		return 0;
	}
	if (!isalpha((unsigned char)*text))
		return trace_bad(parse, "the line begins with '%.20s', not with a kind of event",
				 text);
	count = trace_split(text, ',', field, FIELDS);
	kind = find_kind(field[0]);
	if (kind < 0)
		return 0;
	if (count > 1 && strcasecmp(field[1], column_names[COL_TIME]) == 0) {
		learn_columns(state, kind, field, MIN_OF(count, (unsigned)FIELDS));
		return 0;
	}
	if (state->in_header)
		return 0;
	parse->ignored = false;
	return event(parse, kind, field, count);
}

const struct trace_format trace_etw = {
    .name = "etw",
    .help = "CSV of disk events by xperf, as of the SNIA Exchange traces",
    .state_bytes = sizeof(struct etw_state),
    .has_ends = true,
    .has_classes = true,
    .has_flushes = true,
    .is_mine = is_mine,
    .line = line,
};
