/* SPDX-License-Identifier: MIT
 *
 * The records of one file in the order of their begin.
 *
 * Formats that write a line when an I/O ends are not in that order, and those that have several
 * processors' lines are not quite.  So a window of records is kept in a heap, and the earliest
 * leaves when it is full.  One that comes later still is given out at once, with the time of the
 * one before it, and counted.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/trace/trace_impl.h"

struct waiting {
	struct trace_record record;
	uint64_t order; /* of lines: equal times stay as they are in the file */
};

struct trace_reader {
	char *file;
	const struct trace_format *format;
	struct trace_lines *lines;
	struct trace_parse parse;
	struct trace_counts *counts;
	const struct trace_options *options;
	uint64_t line, order, last_ns, records;
	struct waiting *heap;
	unsigned heap_count, heap_size, window;
	bool at_end;
};

/* ---- the window ---- */

static bool is_before(const struct waiting *a, const struct waiting *b)
{
	if (a->record.begin_ns != b->record.begin_ns)
		return a->record.begin_ns < b->record.begin_ns;
	return a->order < b->order;
}

static bool grow(struct trace_reader *reader)
{
	unsigned size = reader->heap_size ? 2 * reader->heap_size : 256;
	struct waiting *heap = realloc(reader->heap, size * sizeof *heap);

	if (!heap)
		return false;
	reader->heap = heap;
	reader->heap_size = size;
	return true;
}

/* A line gives few records: the heap may be that much above its window for a moment. */
static bool push(void *arg, const struct trace_record *record)
{
	struct trace_reader *reader = arg;
	struct waiting one = {*record, reader->order++};
	unsigned at = reader->heap_count;

	if (at == reader->heap_size && !grow(reader))
		return false;
	reader->heap_count++;
	while (at > 0 && is_before(&one, &reader->heap[(at - 1) / 2])) {
		reader->heap[at] = reader->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	reader->heap[at] = one;
	return true;
}

static void pop(struct trace_reader *reader, struct trace_record *ret_record)
{
	struct waiting last = reader->heap[--reader->heap_count];
	unsigned at = 0, child;

	*ret_record = reader->heap[0].record;
	while ((child = 2 * at + 1) < reader->heap_count) {
		if (child + 1 < reader->heap_count &&
		    is_before(&reader->heap[child + 1], &reader->heap[child]))
			child++;
		if (!is_before(&reader->heap[child], &last))
			break;
		reader->heap[at] = reader->heap[child];
		at = child;
	}
	reader->heap[at] = last;
}

/* ---- lines ---- */

static int bad_line(struct trace_reader *reader, const char *why, struct err *err)
{
	struct trace_counts *counts = reader->counts;
	char text[sizeof counts->bad_line[0]];

	snprintf(text, sizeof text, "%.200s:%llu: %s", reader->file,
		 (unsigned long long)reader->line, why);
	counts->bad++;
	if (counts->bad_kept < TRACE_BAD_KEPT)
		memcpy(counts->bad_line[counts->bad_kept++], text, sizeof text);
	if (counts->bad <= reader->options->bad_lines_max)
		return 0;
	if (counts->bad == 1)
		err_set(err, -EINVAL, "%s", text);
	else
		err_set(err, -EINVAL, "%s; it is the %llu. malformed line, the first was %s", text,
			(unsigned long long)counts->bad, counts->bad_line[0]);
	err_hint(err, "max-bad-lines says how many may be left out");
	return -EINVAL;
}

static bool is_blank(const char *line)
{
	return line[strspn(line, " \t")] == '\0';
}

/* 1: a line was read, malformed or not; 0: the file is at its end. */
static int read_line(struct trace_reader *reader, struct err *err)
{
	const char *why = NULL;
	char *line;
	int r = trace_lines_next(reader->lines, &line, &why);

	if (r == 0)
		return 0;
	reader->line++;
	if (r < 0 && r != -EINVAL)
		return err_set(err, r, "%s:%llu: cannot be read any further: %s", reader->file,
			       (unsigned long long)reader->line, why);
	reader->counts->lines++;
	if (r > 0) {
		if (reader->line == 1 && strncmp(line, "\xef\xbb\xbf", 3) == 0)
			line += 3;
		if (is_blank(line))
			return 1;
		reader->parse.ignored = false;
		r = reader->format->line(&reader->parse, line);
		reader->counts->ignored += r == 0 && reader->parse.ignored;
		why = reader->parse.why;
	}
	if (r == -ENOMEM)
		return err_set(err, r, "no memory to read trace '%s'", reader->file);
	if (r < 0)
		r = bad_line(reader, why, err);
	return r < 0 ? r : 1;
}

static int end_file(struct trace_reader *reader, struct err *err)
{
	int r = reader->format->end ? reader->format->end(&reader->parse) : 0;

	reader->at_end = true;
	if (r == -ENOMEM)
		return err_set(err, r, "no memory to read trace '%s'", reader->file);
	return r < 0 ? bad_line(reader, reader->parse.why, err) : 0;
}

int trace_reader_next(struct trace_reader *reader, struct trace_record *ret_record, struct err *err)
{
	while (!reader->at_end && reader->heap_count < reader->window) {
		int r = read_line(reader, err);

		if (r == 0)
			r = end_file(reader, err);
		if (r < 0)
			return r;
	}
	if (reader->heap_count == 0)
		return 0;
	pop(reader, ret_record);
	if (reader->records++ && ret_record->begin_ns < reader->last_ns) {
		reader->counts->out_of_order++;
		ret_record->begin_ns = reader->last_ns;
		if (ret_record->end_ns < ret_record->begin_ns)
			ret_record->end_ns = ret_record->begin_ns;
	}
	reader->last_ns = ret_record->begin_ns;
	reader->counts->records++;
	return 1;
}

/* ---- open ---- */

static int unknown_format(const char *file, struct err *err)
{
	err_set(err, -EINVAL, "the first line of trace '%.200s' is of no format known here", file);
	err_hint(err, "formats: fio, blkparse, msr, spc, etw; `format` names one");
	return -EINVAL;
}

/* By the first line with anything on it; the file is then opened anew. */
static int find_format(const char *file, const struct trace_format **ret_format, struct err *err)
{
	const struct trace_format *format = NULL;
	struct trace_lines *lines;
	const char *why = "";
	char *line = NULL;
	int r = trace_lines_open(file, &lines, err);

	if (r < 0)
		return r;
	do {
		r = trace_lines_next(lines, &line, &why);
		if (r == 1 && strncmp(line, "\xef\xbb\xbf", 3) == 0)
			line += 3;
	} while (r == 1 && is_blank(line));
	if (r == 1)
		format = trace_format_of(line);
	trace_lines_close(lines);
	if (r == 0)
		return err_set(err, -EINVAL, "trace '%.200s' is empty", file);
	if (r < 0 && r != -EINVAL)
		return err_set(err, r, "trace '%.200s' cannot be read: %s", file, why);
	if (!format)
		return unknown_format(file, err);
	*ret_format = format;
	return 0;
}

int trace_reader_open(const char *file, const struct trace_options *options,
		      const struct trace_format *format, struct trace_names *names,
		      struct trace_counts *counts, unsigned window,
		      struct trace_reader **ret_reader, struct err *err)
{
	struct trace_reader *reader;
	int r = format ? 0 : find_format(file, &format, err);

	if (r < 0)
		return r;
	assert(format);
	reader = calloc(1, sizeof *reader);
	if (!reader)
		return err_set(err, -ENOMEM, "no memory to read trace '%.200s'", file);
	reader->format = format;
	reader->options = options;
	reader->counts = counts;
	reader->window = window;
	reader->file = strdup(file);
	reader->parse = (struct trace_parse){
	    .options = options,
	    .names = names,
	    .state = calloc(1, format->state_bytes + 1),
	    .emit = push,
	    .arg = reader,
	};
	if (!reader->file || !reader->parse.state)
		r = err_set(err, -ENOMEM, "no memory to read trace '%.200s'", file);
	else
		r = trace_lines_open(file, &reader->lines, err);
	if (r < 0) {
		trace_reader_close(reader);
		return r;
	}
	*ret_reader = reader;
	return 0;
}

struct trace_reader *trace_reader_close(struct trace_reader *reader)
{
	if (!reader)
		return NULL;
	trace_lines_close(reader->lines);
	free(reader->parse.state);
	free(reader->heap);
	free(reader->file);
	free(reader);
	return NULL;
}

const struct trace_format *trace_reader_format(const struct trace_reader *reader)
{
	return reader->format;
}
