/* SPDX-License-Identifier: MIT
 *
 * I/O traces of other systems, read as a stream of records in the order of their begin.
 *
 * A format is one file with one table row (struct trace_format): it turns lines into records and
 * knows nothing of files.  A reader (reader.c) takes the lines of one file, plain or gzip, puts the
 * records into order with a window of bounded size, and names what is malformed by file and line. A
 * set (set.c) joins the files of one trace.  Memory does not depend on the length of a trace.
 *
 * Threading: one thread at a time.  Reading may wait for the disk the trace is on.
 */
#ifndef SANLAB_HARNESS_TRACE_TRACE_H
#define SANLAB_HARNESS_TRACE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum {
	TRACE_DEVICES_MAX = 256,
	TRACE_NAME_MAX = 256,
	TRACE_LINE_MAX = 8192,
	TRACE_FILES_MAX = 1024,
	TRACE_BAD_KEPT = 10, /* malformed lines that are named */
};
#define TRACE_IO_MAX_BYTES (UINT64_C(1) << 30) /* what one read or write may have */
#define TRACE_NEVER	   UINT64_MAX

enum trace_op { TRACE_READ, TRACE_WRITE, TRACE_FLUSH, TRACE_TRIM, TRACE_OPS };

/* What the file an I/O went to is to Exchange; TRACE_PLAIN where the format does not tell. */
enum trace_class { TRACE_PLAIN, TRACE_DATABASE, TRACE_LOG, TRACE_CHECKPOINT, TRACE_CLASSES };

struct trace_record {
	uint64_t begin_ns; /* on the trace's own clock */
	uint64_t end_ns;   /* TRACE_NEVER: the trace does not tell */
	uint64_t offset_bytes;
	uint64_t length_bytes; /* 0 for flushes */
	uint16_t device;       /* index into the set's names */
	uint8_t op;	       /* enum trace_op */
	uint8_t class;	       /* enum trace_class */
	bool fua;
};

/* The devices a trace names, in the order of their appearance. */
struct trace_names {
	char (*name)[TRACE_NAME_MAX];
	unsigned count, last;
};

/* What a format's code works with while it reads one file. */
struct trace_parse {
	const struct trace_options *options;
	struct trace_names *names;
	void *state; /* state_bytes of it, zeroed when the file is opened */
	bool (*emit)(void *arg, const struct trace_record *record); /* false: no memory */
	void *arg;
	bool ignored;  /* set by the format: the line is none of an I/O's */
	char why[160]; /* what is wrong with the line */
};

struct trace_format {
	const char *name; /* as in the lab file: "msr" */
	const char *help;
	size_t state_bytes;
	bool has_ends;	  /* tells when I/Os have ended */
	bool has_classes; /* ... and to which kind of file they went */
	bool has_flushes, has_trims;
	/* LINE, the first with anything on it, can only be of this format. */
	bool (*is_mine)(const char *line);
	/* One line without its end; may be changed.  0, or -EINVAL with `why` filled in; records
	 * are given to emit. */
	int (*line)(struct trace_parse *parse, char *line);
	/* The file is at its end: what was held back.  NULL: nothing ever is. */
	int (*end)(struct trace_parse *parse);
};

/* The formats by name, NULL-terminated; "auto" first stands for none of them. */
extern const char *const trace_format_names[];
extern const struct trace_format trace_fio_iolog, trace_blkparse, trace_msr, trace_spc, trace_etw;
const struct trace_format *trace_format_find(const char *name); /* NULL: auto, or none of ours */
const struct trace_format *trace_format_of(const char *line);	/* NULL: of none that is known */

enum trace_join { TRACE_MERGE, TRACE_APPEND };

struct trace_options {
	const char *const *files;
	size_t file_count;
	const struct trace_format *format; /* NULL: found out */
	enum trace_join join;
	uint64_t bad_lines_max; /* beyond: an error */
	uint64_t spc_block_bytes;
	bool queued; /* blkparse: an I/O begins when it is queued (Q), not when it is issued (D) */
};

struct trace_set;

/* What has been read so far; once the trace has been begun again, what its first pass gave. */
struct trace_counts {
	uint64_t lines, records, ignored, bad, out_of_order;
	unsigned bad_kept;
	char bad_line[TRACE_BAD_KEPT][400]; /* "hm.csv:17: the size is 'x'" */
};

/* Opens the first or all of the files and finds out their format.  -EINVAL, -ENOENT, ... */
int trace_set_open(const struct trace_options *options, struct trace_set **ret_set,
		   struct err *err);
struct trace_set *trace_set_close(struct trace_set *set); /* NULL is fine; returns NULL */
/* 1: the next record is in *RET_RECORD; 0: the trace is at its end; else a negative errno. */
int trace_set_next(struct trace_set *set, struct trace_record *ret_record, struct err *err);
/* Begins again.  Names stay. */
int trace_set_rewind(struct trace_set *set, struct err *err);
const struct trace_format *trace_set_format(const struct trace_set *set);
const struct trace_names *trace_set_names(const struct trace_set *set);
const struct trace_counts *trace_set_counts(const struct trace_set *set);

#endif
