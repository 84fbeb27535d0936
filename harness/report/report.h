/* SPDX-License-Identifier: MIT
 *
 * Report writers: one file each behind one table; all read a struct record.
 */
#ifndef SANLAB_HARNESS_REPORT_REPORT_H
#define SANLAB_HARNESS_REPORT_REPORT_H

#include <stdio.h>

#include "base/err.h"
#include "harness/report/record.h"

enum { REPORT_NAME_BYTES = 160 };
struct report_writer {
	const char *file; /* "run.json", "junit.xml", ... */
	const char *help;
	int (*write)(const struct record *record, FILE *to);
	/* Instead of write, for writers of any number of files, none included: `file` is a pattern
	 * (fnmatch with FNM_EXTMATCH) that all of them match and nothing else does.  `name` gives
	 * the name of the INDEX-th, -ENOENT beyond the last. */
	int (*name)(const struct record *record, unsigned index, char name[REPORT_NAME_BYTES]);
	int (*write_part)(const struct record *record, unsigned index, FILE *to);
};
extern const struct report_writer *const report_writers[]; /* NULL-terminated */

/* One run has DIR (made when missing) for itself: -EBUSY, ERR naming the holder, while another one
 * writes there.  DIR NULL: nothing to have. */
struct report_dir;
int report_dir_open(const char *dir, struct report_dir **ret_dir, struct err *err);
/* Removes what an earlier run left there. */
void report_dir_clear(struct report_dir *dir);
struct report_dir *report_dir_close(struct report_dir *dir);

/* Writes every report into DIR (made when missing); each file appears whole or not at all
 * (temporary name, then rename). */
int report_write_all(const struct record *record, const char *dir, struct err *err);
/* The summary for the terminal (also summary.txt): 80 columns, answer first. */
int report_summary(const struct record *record, FILE *to, bool colour);
/* The same on stdout, in colour on a terminal unless NO_COLOR is set. */
int report_show(const struct record *record);

/* run.json back into a record, for `sanlab report DIR`. */
int report_load(const char *dir, struct record **ret_record, struct err *err);

/* events.jsonl: one object a line, flushed at once.  DIR NULL: events go nowhere. */
struct event_log;
int event_log_open(const char *dir, struct event_log **ret_log, struct err *err);
/* Takes the reference to EVENT; adds "seq", "t" and "at_ns" as first members. */
void event_log_emit(struct event_log *log, const char *type, uint64_t at_ns, json_t *event);
/* 0, or the first failure to write an event (negative errno). */
int event_log_status(const struct event_log *log);
struct event_log *event_log_close(struct event_log *log);

#endif
