/* SPDX-License-Identifier: MIT
 *
 * The text that blkparse prints by default, of one device or of several:
 *
 *     8,0    3        1     0.000000000   697  D   W 223490 + 8 [kjournald]
 *   device  cpu  sequence   seconds       pid action RWBS sector + blocks [command, or error]
 *
 * An I/O begins when it is issued to the device (D), or on request when it is queued (Q), which is
 * what the application did before anything was merged.  It ends with the completion (C) that covers
 * it; one whose completion does not come within some thousand lines has no known end.  A requeued
 * request (R) was not carried out: its second D counts.  The other actions, messages and what
 * blkparse sums up at its end are no I/O.
 *
 * RWBS: F before the letter of the operation is a flush before it, F behind it FUA, F alone a
 * flush; D discards.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/trace/trace_impl.h"

enum { WORDS = 10, SECTOR_BYTES = 512, PENDING_MAX = 4096, PATIENCE_LINES = 8192 };

struct pending {
	struct trace_record record;
	uint64_t line;
};

struct blkparse_state {
	bool summary; /* what follows is no event */
	uint64_t line;
	unsigned count;
	struct pending pending[PENDING_MAX]; /* in the order of their begin */
};

struct rwbs {
	bool preflush, fua, has_op;
	uint8_t op; /* enum trace_op */
};

static bool is_device(const char *word)
{
	size_t major = strspn(word, "0123456789");
	size_t minor = word[major] == ',' ? strspn(word + major + 1, "0123456789") : 0;

	return major && minor && word[major + 1 + minor] == '\0';
}

static bool is_mine(const char *text)
{
	char copy[128], *words[WORDS];

	strncpy(copy, text, sizeof copy - 1);
	copy[sizeof copy - 1] = '\0';
	return trace_words(copy, words, WORDS) >= 6 && is_device(words[0]) && strchr(words[3], '.');
}

/* False: of no kind that is known; such requests are no I/O. */
static bool parse_rwbs(const char *text, struct rwbs *ret)
{
	*ret = (struct rwbs){0};
	for (; *text; text++) {
		switch (*text) {
		case 'F':
			ret->fua |= ret->has_op;
			ret->preflush |= !ret->has_op;
			break;
		case 'R':
		case 'W':
		case 'D':
			ret->has_op = true;
			ret->op = *text == 'R'	 ? TRACE_READ
				  : *text == 'W' ? TRACE_WRITE
						 : TRACE_TRIM;
			break;
		case 'A':
		case 'S':
		case 'M':
		case 'E':
			break;
		default:
			return false;
		}
	}
	return ret->has_op || ret->preflush;
}

/* ---- I/Os that have begun ---- */

static void forget(struct blkparse_state *state, unsigned index)
{
	state->count--;
	memmove(&state->pending[index], &state->pending[index + 1],
		(state->count - index) * sizeof state->pending[0]);
}

static int give(struct trace_parse *parse, unsigned index, uint64_t end_ns)
{
	struct blkparse_state *state = parse->state;
	struct trace_record record = state->pending[index].record;

	/* The clocks of two processors need not agree. */
	record.end_ns = MAX_OF(end_ns, record.begin_ns);
	forget(state, index);
	return trace_give(parse, &record);
}

static int begin_io(struct trace_parse *parse, const char *device, struct trace_record *record)
{
	struct blkparse_state *state = parse->state;
	int r = trace_resolve(parse, device, record);

	if (r == 0 && state->count == PENDING_MAX)
		r = give(parse, 0, TRACE_NEVER);
	if (r < 0)
		return r;
	state->pending[state->count++] = (struct pending){*record, state->line};
	return 0;
}

static bool covers(const struct trace_record *whole, const struct trace_record *part)
{
	if (whole->device != part->device || whole->op != part->op)
		return false;
	if (whole->op == TRACE_FLUSH)
		return true;
	return part->offset_bytes >= whole->offset_bytes &&
	       part->offset_bytes + part->length_bytes <= whole->offset_bytes + whole->length_bytes;
}

/* One flush ends one flush; a completion of data all that it covers. */
static int end_io(struct trace_parse *parse, const char *device, struct trace_record *record)
{
	struct blkparse_state *state = parse->state;
	int r = trace_resolve(parse, device, record);
	unsigned i = 0;

	parse->ignored = true;
	while (r == 0 && i < state->count) {
		if (!covers(record, &state->pending[i].record)) {
			i++;
			continue;
		}
		parse->ignored = false;
		r = give(parse, i, record->begin_ns);
		if (record->op == TRACE_FLUSH)
			break;
	}
	return r;
}

static int requeue(struct trace_parse *parse, const char *device, struct trace_record *record)
{
	struct blkparse_state *state = parse->state;
	int r = trace_resolve(parse, device, record);

	parse->ignored = true;
	for (unsigned i = state->count; r == 0 && i-- > 0;)
		if (covers(record, &state->pending[i].record)) {
			forget(state, i);
			break;
		}
	return r;
}

/* ---- lines ---- */

static int act(struct trace_parse *parse, const char *device, char action, const struct rwbs *rwbs,
	       struct trace_record *record)
{
	struct trace_record flush = *record;
	int r;

	if (action == 'C')
		return end_io(parse, device, record);
	if (action == 'R')
		return requeue(parse, device, record);
	if (rwbs->preflush && record->op != TRACE_FLUSH) {
		flush.op = TRACE_FLUSH;
		flush.fua = false;
		flush.offset_bytes = flush.length_bytes = 0;
		r = trace_emit(parse, device, &flush);
		if (r < 0)
			return r;
	}
	return begin_io(parse, device, record);
}

static int event(struct trace_parse *parse, char **word, unsigned count)
{
	char action = word[5][1] ? 'm' : word[5][0];
	struct trace_record record = {.end_ns = TRACE_NEVER};
	bool has_range = count >= WORDS && strcmp(word[8], "+") == 0;
	uint64_t sector = 0, blocks = 0;
	struct rwbs rwbs;

	parse->ignored = true;
	if (action != 'C' && action != 'R' && action != (parse->options->queued ? 'Q' : 'D'))
		return 0;
	if (count < 7)
		return trace_bad(parse, "%u fields, fewer than 7", count);
	if (!parse_rwbs(word[6], &rwbs))
		return 0;
	if (trace_seconds(parse, "the time", word[3], &record.begin_ns) < 0)
		return -EINVAL;
	if (has_range && (trace_number(parse, "the sector", word[7], 10, INT64_MAX / SECTOR_BYTES,
				       &sector) < 0 ||
			  trace_number(parse, "the number of blocks", word[9], 10,
				       INT64_MAX / SECTOR_BYTES, &blocks) < 0))
		return -EINVAL;
	if (!blocks) { /* a command of its own ("36 (12 00 ...)") or without data, else a flush */
		bool command = count <= 8 || strchr("([", word[7][0]) || strchr("([", word[8][0]);

		if (!rwbs.preflush && !has_range && !command)
			return trace_bad(parse, "no range of sectors follows '%.8s'", word[6]);
		if (!rwbs.preflush)
			return 0;
		rwbs.op = TRACE_FLUSH;
		rwbs.fua = false;
	}
	parse->ignored = false;
	record.op = rwbs.op;
	record.fua = rwbs.fua && rwbs.op == TRACE_WRITE;
	record.offset_bytes = blocks ? sector * SECTOR_BYTES : 0;
	record.length_bytes = blocks * SECTOR_BYTES;
	return act(parse, word[0], action, &rwbs, &record);
}

static int line(struct trace_parse *parse, char *text)
{
	struct blkparse_state *state = parse->state;
	char *word[WORDS];
	unsigned count;

	state->line++;
	if (state->count && state->line - state->pending[0].line > PATIENCE_LINES) {
		int r = give(parse, 0, TRACE_NEVER);

		if (r < 0)
			return r;
	}
	text += strspn(text, " \t");
	if (strncmp(text, "CPU", 3) == 0 || strncmp(text, "Total", 5) == 0)
		state->summary = true;
	if (state->summary && !isdigit((unsigned char)*text)) {
		parse->ignored = true;
		return 0;
	}
	count = trace_words(text, word, WORDS);
	if (count < 6)
		return trace_bad(parse, "%u fields, fewer than 6", count);
	if (!is_device(word[0]))
		return trace_bad(parse, "the device is '%.40s', not major,minor", word[0]);
	return event(parse, word, count);
}

static int end(struct trace_parse *parse)
{
	struct blkparse_state *state = parse->state;
	int r = 0;

	while (r == 0 && state->count)
		r = give(parse, 0, TRACE_NEVER);
	return r;
}

const struct trace_format trace_blkparse = {
    .name = "blkparse",
    .help = "text of blkparse",
    .state_bytes = sizeof(struct blkparse_state),
    .has_ends = true,
    .has_flushes = true,
    .has_trims = true,
    .is_mine = is_mine,
    .line = line,
    .end = end,
};
