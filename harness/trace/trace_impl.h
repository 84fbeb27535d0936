/* SPDX-License-Identifier: MIT
 *
 * What the files of harness/trace share; private to them.
 */
#ifndef SANLAB_HARNESS_TRACE_TRACE_IMPL_H
#define SANLAB_HARNESS_TRACE_TRACE_IMPL_H

#include <errno.h>

#include "harness/trace/trace.h"

/* ---- names.c ---- */

int trace_names_init(struct trace_names *names); /* -ENOMEM */
void trace_names_done(struct trace_names *names);
/* The index of NAME, which is added when it is new; -ENOSPC: too many; -ENAMETOOLONG. */
int trace_names_index(struct trace_names *names, const char *name);

/* ---- fields.c: strict numbers, words and the end of a record ---- */

/* Fills `why`; returns -EINVAL. */
int trace_bad(struct trace_parse *parse, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A whole number of at most LIMIT, digits only; with BASE 0 also 0x...  WHAT is for `why`. */
int trace_number(struct trace_parse *parse, const char *what, const char *text, int base,
		 uint64_t limit, uint64_t *ret_value);
/* "12.000345" in seconds, as ns; digits beyond them are cut off. */
int trace_seconds(struct trace_parse *parse, const char *what, const char *text, uint64_t *ret_ns);
/* Cuts LINE into at most MAX fields at each SEPARATOR, blanks around them cut off; returns how many
 * there would be. */
unsigned trace_split(char *line, char separator, char **fields, unsigned max);
/* ... at blanks. */
unsigned trace_words(char *line, char **words, unsigned max);
/* Checks RECORD's range and completes its device. */
int trace_resolve(struct trace_parse *parse, const char *device, struct trace_record *record);
/* Hands a record that is complete to the reader. */
static inline int trace_give(struct trace_parse *parse, const struct trace_record *record)
{
	return parse->emit(parse->arg, record) ? 0 : -ENOMEM;
}
/* Both. */
int trace_emit(struct trace_parse *parse, const char *device, struct trace_record *record);

/* ---- lines.c: the lines of a file, plain or gzip ---- */

struct trace_lines;
int trace_lines_open(const char *file, struct trace_lines **ret_lines, struct err *err);
struct trace_lines *trace_lines_close(struct trace_lines *lines);
/* 1: *RET_LINE, without its end, until the next call; 0: no more; -EINVAL: not text or too long,
 * and the next call goes on after it; else the file cannot be read any further. */
int trace_lines_next(struct trace_lines *lines, char **ret_line, const char **ret_why);

/* ---- reader.c: the records of one file, in order ---- */

struct trace_reader;
/* FORMAT NULL: found out.  WINDOW records are kept to put them into order. */
int trace_reader_open(const char *file, const struct trace_options *options,
		      const struct trace_format *format, struct trace_names *names,
		      struct trace_counts *counts, unsigned window,
		      struct trace_reader **ret_reader, struct err *err);
struct trace_reader *trace_reader_close(struct trace_reader *reader);
int trace_reader_next(struct trace_reader *reader, struct trace_record *ret_record,
		      struct err *err);
const struct trace_format *trace_reader_format(const struct trace_reader *reader);

#endif
