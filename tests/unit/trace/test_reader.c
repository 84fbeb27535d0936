/* SPDX-License-Identifier: MIT
 *
 * Files: gzip, order, limits of malformed lines, several files, hostile ones, the excerpts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs these before it */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "tests/unit/trace/trace_text.h"

#define MSR "7,h,0,Read,0,512,1\n9,h,1,Write,512,512,1\n"

static void read_with(const char *text, size_t size, bool gz, struct trace_options options,
		      char *out, size_t out_size)
{
	char path[64];
	const char *files[] = {path};

	trace_text_file(text, size, gz, path);
	options.files = files;
	options.file_count = 1;
	trace_text_read(&options, out, out_size);
	unlink(path);
}

static void test_gzip(void **state)
{
	char out[1024], path[64];
	const char *files[] = {path};
	struct trace_options options = {.files = files, .file_count = 1};
	struct stat st;

	read_with(MSR, strlen(MSR), true, (struct trace_options){0}, out, sizeof out);
	assert_string_equal(out, "700+100 h.0 read 0+512\n900+100 h.1 write 512+512\n");
	/* cut off: what is there is read, then the damage is told */
	trace_text_file(MSR, strlen(MSR), true, path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size - 6), 0);
	trace_text_read(&options, out, sizeof out);
	assert_non_null(strstr(out, "the gzip file is cut off"));
	unlink(path);
}

static void test_order(void **state)
{
	char out[1024];

	trace_text("3,h,0,Read,0,512,1\n1,h,0,Read,512,512,1\n2,h,0,Read,1024,512,1\n"
		   "1,h,0,Read,1536,512,1\n",
		   out, sizeof out);
	assert_string_equal(out, "100+100 h.0 read 512+512\n100+100 h.0 read 1536+512\n"
				 "200+100 h.0 read 1024+512\n300+100 h.0 read 0+512\n");
}

/* Farther apart than the window: it keeps its place in the file, and is counted. */
static void test_late_record(void **state)
{
	enum { LINES = 33000 };
	size_t room = LINES * 40, used = 0;
	char *text = malloc(room), path[64];
	const char *files[] = {path};
	struct trace_options options = {.files = files, .file_count = 1};
	struct trace_record record;
	struct trace_set *set;

	assert_non_null(text);
	for (unsigned i = 0; i < LINES; i++)
		used += (size_t)snprintf(text + used, room - used, "%u,h,0,Read,0,512,1\n", 10 + i);
	used += (size_t)snprintf(text + used, room - used, "5,h,0,Write,0,512,1\n");
	trace_text_file(text, used, false, path);
	free(text);
	assert_int_equal(trace_set_open(&options, &set, NULL), 0);
	for (unsigned i = 0;; i++) {
		assert_int_equal(trace_set_next(set, &record, NULL), 1);
		if (record.op == TRACE_WRITE) {
			assert_in_range(i, 200, LINES);
			break;
		}
	}
	/* At the time of the one before it, which is all that is left of its own. */
	assert_true(record.begin_ns > 1000);
	while (trace_set_next(set, &record, NULL) == 1)
		;
	assert_int_equal(trace_set_counts(set)->records, LINES + 1);
	assert_int_equal(trace_set_counts(set)->out_of_order, 1);
	trace_set_close(set);
	unlink(path);
}

static void test_limit(void **state)
{
	static const char text[] = "1,h,0,Read,0,512,1\nx\ny\nz\n9,h,0,Read,0,512,1\n";
	char out[2048];

	read_with(text, strlen(text), false, (struct trace_options){.bad_lines_max = 3}, out,
		  sizeof out);
	assert_non_null(strstr(out, "900+100 h.0 read 0+512\nbad 3"));
	read_with(text, strlen(text), false, (struct trace_options){.bad_lines_max = 2}, out,
		  sizeof out);
	assert_int_equal(out[0], '!');
	assert_non_null(
	    strstr(out, ":4: 1 fields, not 7; it is the 3. malformed line, the first was"));
	read_with(text, strlen(text), false, (struct trace_options){0}, out, sizeof out);
	assert_non_null(strstr(out, ":2: 1 fields, not 7"));
}

static void test_hostile(void **state)
{
	static const char zeros[] = "1,h,0,Read,0,512,1\n\0\0\0\n2,h,0,Read,0,512,1";
	static const char escape[] = "1,h,0,Read,0,512,1\n1,h,0,\x1b[31m,0,512,1\n";
	struct trace_options options = {.bad_lines_max = 10};
	char out[4096], *text = malloc(300000);

	read_with(zeros, sizeof zeros - 1, false, options, out, sizeof out);
	assert_non_null(strstr(out, "bad 1, late 0\n2: the line holds bytes that are no text"));
	/* lines without an end, one of them the last */
	memset(text, 'a', 300000);
	for (unsigned i = 0; MSR[i] != '9'; i++)
		text[i] = MSR[i];
	text[150000] = '\n';
	read_with(text, 300000, false, options, out, sizeof out);
	assert_non_null(
	    strstr(out, "bad 2, late 0\n2: the line is longer than 8191 characters\n3: "));
	memset(text, '\n', 300000);
	read_with(text, 300000, false, options, out, sizeof out);
	assert_non_null(strstr(out, "is empty"));
	read_with("", 0, false, options, out, sizeof out);
	assert_non_null(strstr(out, "is empty"));
	read_with("hello\n", 6, false, options, out, sizeof out);
	assert_non_null(strstr(out, "of no format known here"));
	read_with("\xef\xbb\xbf\n" MSR, strlen(MSR) + 4, false, options, out, sizeof out);
	assert_non_null(strstr(out, "900+100 h.1"));
	/* its escapes do not reach a terminal */
	read_with(escape, sizeof escape - 1, false, options, out, sizeof out);
	assert_non_null(strstr(out, "the type is '?[31m', not Read or Write"));
	free(text);
}

static void test_files(void **state)
{
	char a[64], b[64], c[64], out[2048];
	const char *files[] = {a, b};
	struct trace_options options = {.files = files, .file_count = 2};

	trace_text_file("10,a,0,Read,0,512,1\n30,a,0,Read,0,512,1\n", 40, false, a);
	trace_text_file("5,b,0,Read,0,512,1\n20,b,0,Read,0,512,1\n", 39, true, b);
	trace_text_file("fio version 2 iolog\n", 20, false, c);
	trace_text_read(&options, out, sizeof out);
	assert_string_equal(out, "500+100 b.0 read 0+512\n1000+100 a.0 read 0+512\n"
				 "2000+100 b.0 read 0+512\n3000+100 a.0 read 0+512\n");
	options.join = TRACE_APPEND;
	trace_text_read(&options, out, sizeof out);
	assert_string_equal(out, "0+100 a.0 read 0+512\n2000+100 a.0 read 0+512\n"
				 "2000+100 b.0 read 0+512\n3500+100 b.0 read 0+512\n");
	options.join = TRACE_MERGE;
	files[1] = c;
	trace_text_read(&options, out, sizeof out);
	assert_non_null(strstr(out, "is of format fio, "));
	files[1] = "/nowhere/at/all";
	trace_text_read(&options, out, sizeof out);
	assert_non_null(strstr(out, "cannot open trace '/nowhere/at/all': No such file"));
	files[1] = "/tmp";
	trace_text_read(&options, out, sizeof out);
	assert_non_null(strstr(out, "'/tmp' is not a regular file"));
	unlink(a);
	unlink(b);
	unlink(c);
}

static void test_rewind(void **state)
{
	char path[64];
	const char *files[] = {path};
	struct trace_options options = {.files = files, .file_count = 1, .bad_lines_max = 1};
	struct trace_record record;
	struct trace_set *set;

	trace_text_file(MSR "bad\n", strlen(MSR) + 4, false, path);
	assert_int_equal(trace_set_open(&options, &set, NULL), 0);
	for (unsigned pass = 0; pass < 3; pass++) {
		/* The limit is for a pass. */
		assert_int_equal(trace_set_next(set, &record, NULL), 1);
		assert_int_equal(record.begin_ns, 700);
		assert_int_equal(trace_set_next(set, &record, NULL), 1);
		assert_int_equal(trace_set_next(set, &record, NULL), 0);
		assert_int_equal(trace_set_rewind(set, NULL), 0);
	}
	assert_int_equal(trace_set_counts(set)->records, 2);
	assert_int_equal(trace_set_counts(set)->bad, 1);
	assert_int_equal(trace_set_names(set)->count, 2);
	trace_set_close(set);
	unlink(path);
}

/* The excerpts that labs and other tests use, each found by its first line. */
static void test_excerpts(void **state)
{
	static const struct {
		const char *file, *format;
		unsigned records;
	} excerpts[] = {
	    {"fio-v3.log", "fio", 34}, {"fio-v2.log", "fio", 24}, {"blkparse.txt", "blkparse", 16},
	    {"msr.csv", "msr", 36},    {"spc.csv", "spc", 33},	  {"exchange-etw.csv", "etw", 43},
	};

	for (size_t i = 0; i < ARRAY_SIZE(excerpts); i++) {
		char path[400];
		const char *files[] = {path};
		struct trace_options options = {.files = files, .file_count = 1};
		struct trace_record record;
		struct trace_set *set;
		unsigned records = 0;

		snprintf(path, sizeof path, "%s/tests/traces/%s", SOURCE_ROOT, excerpts[i].file);
		assert_int_equal(trace_set_open(&options, &set, NULL), 0);
		assert_string_equal(trace_set_format(set)->name, excerpts[i].format);
		while (trace_set_next(set, &record, NULL) == 1)
			records++;
		assert_int_equal(trace_set_counts(set)->bad, 0);
		assert_int_equal(trace_set_counts(set)->out_of_order, 0);
		assert_int_equal(records, excerpts[i].records);
		trace_set_close(set);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_gzip),   cmocka_unit_test(test_order),
	    cmocka_unit_test(test_limit),  cmocka_unit_test(test_late_record),
	    cmocka_unit_test(test_files),  cmocka_unit_test(test_hostile),
	    cmocka_unit_test(test_rewind), cmocka_unit_test(test_excerpts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
