/* SPDX-License-Identifier: MIT
 *
 * The files of one trace, merged on one clock or one after the other.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/trace/trace_impl.h"

enum { WINDOW = 32768, WINDOW_MIN = 1024, MERGE_MAX = 64 };

#define LONGEST_NS (UINT64_C(1) << 62) /* 146 years */

struct source {
	struct trace_reader *reader; /* NULL: not open yet, or read to its end */
	struct trace_record next;
	bool has_next;
};

struct trace_set {
	struct trace_options options;
	const struct trace_format *format;
	struct trace_names names;
	struct trace_counts counts, first_pass;
	bool rewound;
	struct source *sources;	   /* merged: one a file; appended: one */
	size_t source_count, file; /* appended: which is being read */
	unsigned window;
	/* appended: each file's clock goes on where the one before has ended */
	uint64_t first_ns, shift_ns, last_ns, records;
	bool begun;
};

static int open_source(struct trace_set *set, struct source *source, size_t file, struct err *err)
{
	const char *name = set->options.files[file];
	int r = trace_reader_open(name, &set->options, set->options.format, &set->names,
				  &set->counts, set->window, &source->reader, err);

	if (r < 0)
		return r;
	if (!set->format)
		set->format = trace_reader_format(source->reader);
	if (trace_reader_format(source->reader) == set->format)
		return 0;
	return err_set(err, -EINVAL, "trace '%.150s' is of format %s, '%.150s' of format %s", name,
		       trace_reader_format(source->reader)->name, set->options.files[0],
		       set->format->name);
}

static int advance(struct source *source, struct err *err)
{
	int r = trace_reader_next(source->reader, &source->next, err);

	source->has_next = r == 1;
	if (r == 0)
		source->reader = trace_reader_close(source->reader);
	return r;
}

static void close_all(struct trace_set *set)
{
	for (size_t i = 0; i < set->source_count; i++) {
		trace_reader_close(set->sources[i].reader);
		set->sources[i] = (struct source){0};
	}
}

/* Opens what is read at the same time. */
static int begin(struct trace_set *set, struct err *err)
{
	int r = 0;

	close_all(set);
	set->file = 0;
	set->shift_ns = set->last_ns = set->records = 0;
	set->begun = false;
	for (size_t i = 0; r >= 0 && i < set->source_count; i++) {
		r = open_source(set, &set->sources[i], i, err);
		if (r == 0)
			r = advance(&set->sources[i], err);
	}
	return r < 0 ? r : 0;
}

int trace_set_open(const struct trace_options *options, struct trace_set **ret_set, struct err *err)
{
	struct trace_set *set = calloc(1, sizeof *set);
	int r = 0;

	if (!set)
		return err_set(err, -ENOMEM, "no memory to read a trace");
	set->options = *options;
	set->source_count = options->join == TRACE_MERGE ? options->file_count : 1;
	set->window = (unsigned)MAX_OF(WINDOW / MAX_OF(set->source_count, 1U), (size_t)WINDOW_MIN);
	set->sources = calloc(set->source_count + 1, sizeof *set->sources);
	if (!set->sources || trace_names_init(&set->names) < 0)
		r = err_set(err, -ENOMEM, "no memory to read a trace");
	else if (options->file_count == 0)
		r = err_set(err, -EINVAL, "there is no trace to read");
	else if (set->source_count > MERGE_MAX)
		r = err_set(err, -EINVAL, "%zu traces are more than the %d that can be merged",
			    set->source_count, MERGE_MAX);
	if (r == 0)
		r = begin(set, err);
	if (r < 0) {
		trace_set_close(set);
		return r;
	}
	*ret_set = set;
	return 0;
}

struct trace_set *trace_set_close(struct trace_set *set)
{
	if (!set)
		return NULL;
	if (set->sources)
		close_all(set);
	free(set->sources);
	trace_names_done(&set->names);
	free(set);
	return NULL;
}

int trace_set_rewind(struct trace_set *set, struct err *err)
{
	if (!set->rewound)
		set->first_pass = set->counts;
	set->rewound = true;
	set->counts = (struct trace_counts){0};
	return begin(set, err);
}

/* Appended: the next file, whose clock goes on from where the last one stands. */
static int next_file(struct trace_set *set, struct err *err)
{
	struct source *source = &set->sources[0];
	int r;

	while (!source->has_next) {
		if (++set->file >= set->options.file_count)
			return 0;
		r = open_source(set, source, set->file, err);
		if (r == 0)
			r = advance(source, err);
		if (r < 0)
			return r;
		set->begun = false;
	}
	return 1;
}

/* On the clock that goes on; times that no trace has do not wrap around. */
static uint64_t shifted(const struct trace_set *set, uint64_t ns)
{
	uint64_t since_ns = ns - set->first_ns;

	return since_ns < LONGEST_NS - set->shift_ns ? set->shift_ns + since_ns : LONGEST_NS;
}

static int next_appended(struct trace_set *set, struct trace_record *ret_record, struct err *err)
{
	struct source *source = &set->sources[0];
	int r = source->has_next ? 1 : next_file(set, err);

	if (r <= 0)
		return r;
	if (!set->begun) {
		set->begun = true;
		set->first_ns = source->next.begin_ns;
		set->shift_ns = set->last_ns;
	}
	*ret_record = source->next;
	ret_record->begin_ns = shifted(set, ret_record->begin_ns);
	if (ret_record->end_ns != TRACE_NEVER)
		ret_record->end_ns = shifted(set, ret_record->end_ns);
	set->last_ns = ret_record->begin_ns;
	r = advance(source, err);
	return r < 0 ? r : 1;
}

static int next_merged(struct trace_set *set, struct trace_record *ret_record, struct err *err)
{
	struct source *first = NULL;
	int r;

	for (size_t i = 0; i < set->source_count; i++) {
		struct source *source = &set->sources[i];

		if (source->has_next && (!first || source->next.begin_ns < first->next.begin_ns))
			first = source;
	}
	if (!first)
		return 0;
	*ret_record = first->next;
	r = advance(first, err);
	return r < 0 ? r : 1;
}

int trace_set_next(struct trace_set *set, struct trace_record *ret_record, struct err *err)
{
	return set->options.join == TRACE_MERGE ? next_merged(set, ret_record, err)
						: next_appended(set, ret_record, err);
}

const struct trace_format *trace_set_format(const struct trace_set *set)
{
	return set->format;
}

const struct trace_names *trace_set_names(const struct trace_set *set)
{
	return &set->names;
}

const struct trace_counts *trace_set_counts(const struct trace_set *set)
{
	return set->rewound ? &set->first_pass : &set->counts;
}
