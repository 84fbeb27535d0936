/* SPDX-License-Identifier: MIT
 *
 * fio's iolog, versions 2 and 3, as fio reads and writes it.
 *
 *   fio version 3 iolog                 fio version 2 iolog
 *   100 /dev/sdb add                    /dev/sdb add              add, open, close: no I/O
 *   120 /dev/sdb read 4096 512          /dev/sdb read 4096 512    offset and bytes
 *   130 /dev/sdb sync 0 0               /dev/sdb wait 250 0       offset: microseconds
 *
 * Version 3 begins each line with microseconds.  Version 2 has no time but that of `wait`, which
 * fio's documentation gives in microseconds since the wait before (fio 3.33 itself waits until so
 * many milliseconds have passed since its start); fio writes none, so all of a log that it wrote is
 * due at once.  In version 3 fio skips `wait` with a message, here it is malformed.
 *
 * fio has no FUA.  A recorder of ours writes it as the write and a datasync of the same file at the
 * same microsecond, which fio carries out as something stronger; that pair is read as FUA again.
 */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/trace/trace_impl.h"

enum { WORDS = 5 };

struct fio_state {
	unsigned version; /* 0: its line has not come yet */
	uint64_t wait_ns; /* version 2 */
	/* the last write, which a datasync may make FUA */
	struct trace_record held;
	bool has_held;
};

static bool is_mine(const char *line)
{
	return strncmp(line, "fio version ", 12) == 0;
}

static int release(struct trace_parse *parse)
{
	struct fio_state *state = parse->state;

	if (!state->has_held)
		return 0;
	state->has_held = false;
	return trace_give(parse, &state->held);
}

static int head(struct trace_parse *parse, const char *line)
{
	struct fio_state *state = parse->state;

	parse->ignored = true;
	if (strcmp(line, "fio version 2 iolog") == 0)
		state->version = 2;
	else if (strcmp(line, "fio version 3 iolog") == 0)
		state->version = 3;
	else
		return trace_bad(
		    parse, "'%.40s' is not 'fio version 2 iolog' or 'fio version 3 iolog'", line);
	return 0;
}

static bool is_file_action(const char *word)
{
	return strcmp(word, "add") == 0 || strcmp(word, "open") == 0 || strcmp(word, "close") == 0;
}

static int find_op(struct trace_parse *parse, const char *word, uint8_t *ret_op)
{
	static const struct {
		const char *word;
		enum trace_op op;
	} ops[] = {
	    {"read", TRACE_READ},  {"write", TRACE_WRITE},    {"trim", TRACE_TRIM},
	    {"sync", TRACE_FLUSH}, {"datasync", TRACE_FLUSH},
	};

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		if (strcmp(word, ops[i].word) == 0) {
			*ret_op = (uint8_t)ops[i].op;
			return 0;
		}
	return trace_bad(parse, "the action is '%.40s'", word);
}

/* A datasync right behind its write, at the same time. */
static bool makes_fua(const struct fio_state *state, const char *action,
		      const struct trace_record *record)
{
	return state->version == 3 && state->has_held && strcmp(action, "datasync") == 0 &&
	       state->held.begin_ns == record->begin_ns && state->held.device == record->device;
}

static int io(struct trace_parse *parse, const char *name, const char *action,
	      struct trace_record *record)
{
	struct fio_state *state = parse->state;
	int r = find_op(parse, action, &record->op);

	if (record->op == TRACE_FLUSH)
		record->offset_bytes = record->length_bytes = 0;
	if (r == 0)
		r = trace_resolve(parse, name, record);
	if (r < 0)
		return r;
	if (makes_fua(state, action, record)) {
		state->held.fua = true;
		return release(parse);
	}
	r = release(parse);
	if (r < 0)
		return r;
	if (record->op != TRACE_WRITE)
		return trace_give(parse, record);
	state->held = *record;
	state->has_held = true;
	return 0;
}

static int line(struct trace_parse *parse, char *text)
{
	struct fio_state *state = parse->state;
	struct trace_record record = {.end_ns = TRACE_NEVER};
	char *words[WORDS], **rest = words;
	unsigned count, skip;
	uint64_t us = 0;
	int r;

	if (!state->version || is_mine(text))
		return head(parse, text);
	count = trace_words(text, words, WORDS);
	skip = state->version == 3;
	if (count != 2 + skip && count != 4 + skip)
		return trace_bad(parse, "%u fields; %s", count,
				 skip ? "an I/O has 5, a file's add, open and close 3"
				      : "an I/O has 4, a file's add, open and close 2");
	if (skip) {
		r = trace_number(parse, "the time", *rest++, 10, UINT64_MAX / NS_PER_US, &us);
		if (r < 0)
			return r;
	}
	record.begin_ns = skip ? us * NS_PER_US : state->wait_ns;
	if (count == 2 + skip) {
		parse->ignored = true;
		return is_file_action(rest[1]) ? 0
					       : trace_bad(parse, "the action is '%.40s'", rest[1]);
	}
	if (trace_number(parse, "the offset", rest[2], 10, UINT64_MAX, &record.offset_bytes) < 0 ||
	    trace_number(parse, "the size", rest[3], 10, UINT64_MAX, &record.length_bytes) < 0)
		return -EINVAL;
	if (strcmp(rest[1], "wait") != 0)
		return io(parse, rest[0], rest[1], &record);
	if (skip)
		return trace_bad(parse, "version 3 has no 'wait'");
	if (record.offset_bytes > UINT64_MAX / 2 / NS_PER_US ||
	    state->wait_ns > UINT64_MAX / 2 - record.offset_bytes * NS_PER_US)
		return trace_bad(parse, "the wait is too long");
	state->wait_ns += record.offset_bytes * NS_PER_US;
	parse->ignored = true;
	return 0;
}

const struct trace_format trace_fio_iolog = {
    .name = "fio",
    .help = "fio's iolog, versions 2 and 3",
    .state_bytes = sizeof(struct fio_state),
    .has_flushes = true,
    .has_trims = true,
    .is_mine = is_mine,
    .line = line,
    .end = release,
};
