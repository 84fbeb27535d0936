/* SPDX-License-Identifier: MIT
 *
 * Every writer: valid documents of a full record, of one where nothing ran, and of a blank one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "harness/report/writers.h"
#include "tests/unit/report/files.h"
#include "tests/unit/report/fixture.h"
#include "tests/unit/report/markup.h"

static struct record *make_blank(void)
{
	return record_new();
}

static struct record *(*const makers[])(void) = {fixture_full, fixture_empty, make_blank};

static void expect_markup(const struct report_writer *writer, bool html)
{
	for (size_t i = 0; i < ARRAY_SIZE(makers); i++) {
		struct record *record = makers[i]();
		char *text = written_by(writer, record, NULL);
		const char *wrong = markup_check(text, html);

		if (wrong)
			fail_msg("%s of record %zu: %s", writer->file, i, wrong);
		free(text);
		record_free(record);
	}
}

static void junit_is_well_formed(void **state)
{
	expect_markup(&junit_writer, false);
}

static void junit_tells_what_failed(void **state)
{
	struct record *record = fixture_full();
	char *text = written_by(&junit_writer, record, NULL);

	assert_int_equal(count_of(text, "<testcase "), record->verdict_count);
	assert_int_equal(count_of(text, "<failure "), 1);
	assert_int_equal(count_of(text, "<skipped "), 1);
	assert_int_equal(count_of(text, " failures=\"1\" errors=\"0\" skipped=\"1\""), 2);
	assert_int_equal(count_of(text, "mean_ns: 12400000 (12.4 ms)"), 1);
	assert_int_equal(count_of(text, "hint: look at the path to 127.0.0.1:3262 &amp; its"), 1);
	assert_int_equal(count_of(text, "<property name=\"seed\" value=\"18446744073709551615\"/>"),
			 1);
	free(text);
	record_free(record);

	record = fixture_empty();
	text = written_by(&junit_writer, record, NULL);
	assert_int_equal(count_of(text, "<error "), 1);
	assert_int_equal(count_of(text, " tests=\"1\" failures=\"0\" errors=\"1\""), 2);
	free(text);
	record_free(record);
}

static void html_is_balanced(void **state)
{
	expect_markup(&html_writer, true);
}

static void html_stands_alone(void **state)
{
	static const char *const outside[] = {
	    "http:", "https:", "src=", "@import", "url(", "<link rel=\"stylesheet\"",
	    "xlink", "fetch("};
	struct record *record = fixture_full();
	char *text = written_by(&html_writer, record, NULL);

	for (size_t i = 0; i < ARRAY_SIZE(outside); i++) {
		if (strstr(text, outside[i]))
			fail_msg("the page holds %s", outside[i]);
	}
	/* Five over time, the percentiles, the shares. */
	assert_int_equal(count_of(text, "<figure class=\"chart\""), 7);
	assert_int_equal(count_of(text, "<a&b>"), 0);
	assert_true(count_of(text, "db &quot;4&quot; &lt;a&amp;b&gt;") > 3);
	assert_int_equal(count_of(text, "class=\"badge fail\""), 1);
	assert_true(count_of(text, "class=\"flag fault\"") > 0);
	free(text);
	record_free(record);
}

static void chart_data_parses(void **state)
{
	static const char start[] = "<script type=\"application/json\">";
	struct record *record = fixture_full();
	char *text = written_by(&html_writer, record, NULL), *at = text;
	unsigned charts = 0;

	while ((at = strstr(at, start)) != NULL) {
		char *end = strstr(at, "</script>");
		json_t *data, *series;
		json_error_t error;
		size_t i;

		at += strlen(start);
		assert_non_null(end);
		data = json_loadb(at, (size_t)(end - at), JSON_REJECT_DUPLICATES, &error);
		assert_non_null(data);
		json_array_foreach(json_object_get(data, "y"), i, series)
		{
			assert_int_equal(json_array_size(series),
					 json_array_size(json_object_get(data, "x")));
		}
		json_decref(data);
		charts++;
	}
	assert_int_equal(charts, 7);
	free(text);
	record_free(record);
}

/* Name, optional labels, value; HELP and TYPE once a family and before its first sample. */
static void check_prom_line(const char *line, char *family)
{
	const char *p = line;
	char *end;

	if (strncmp(line, "# TYPE ", 7) == 0) {
		snprintf(family, 80, "%.*s", (int)strcspn(line + 7, " "), line + 7);
		return;
	}
	if (*line == '#')
		return;
	assert_memory_equal(line, family, strlen(family));
	p += strcspn(p, "{ ");
	if (*p == '{') {
		bool quoted = false;

		for (p++; *p && (quoted || *p != '}'); p++) {
			if (*p == '\\')
				p++;
			else if (*p == '"')
				quoted = !quoted;
		}
		assert_int_equal(*p, '}');
		p++;
	}
	assert_int_equal(*p, ' ');
	strtod(p + 1, &end);
	assert_true(end > p + 1 && *end == '\0');
}

static void prom_parses(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(makers); i++) {
		struct record *record = makers[i]();
		char *text = written_by(&prom_writer, record, NULL), family[80] = "?";
		char *save, *line;

		assert_int_equal(count_of(text, "\n# TYPE sanlab_run_passed gauge"), 1);
		assert_int_equal(count_of(text, "sanlab_run_passed 1\n"), record_passed(record));
		for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
			check_prom_line(line, family);
		free(text);
		record_free(record);
	}
}

static void hgrm_ends_at_the_maximum(void **state)
{
	struct record *record = fixture_full();
	char *text = written_by(&hgrm_writer, record, "latency-db-read.hgrm"), *line, *save;
	double value, quantile, last_value = -1, last_quantile = -1;
	unsigned long long count, last_count = 0, total = 0;
	unsigned lines = 0;

	for (unsigned i = 0; i < record->stream_count; i++) {
		if (strcmp(record->streams[i].name, "db-read") == 0)
			total += record->streams[i].ios;
	}
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		/* NOLINTNEXTLINE(cert-err34-c): a test of our own output */
		if (sscanf(line, "%lf %lf %llu", &value, &quantile, &count) != 3)
			continue;
		assert_true(value >= last_value && quantile > last_quantile && count >= last_count);
		last_value = value;
		last_quantile = quantile;
		last_count = count;
		lines++;
	}
	assert_true(lines > 20);
	assert_true(last_quantile == 1);
	assert_true(last_count == total);
	free(text);
	record_free(record);
}

static unsigned entries_of(const char *dir)
{
	DIR *handle = opendir(dir);
	const struct dirent *entry;
	unsigned count = 0;

	assert_non_null(handle);
	while ((entry = readdir(handle)) != NULL) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			count++;
	}
	closedir(handle);
	return count;
}

static void all_files_and_no_others(void **state)
{
	char *scratch = scratch_make(), *dir;
	struct record *record = fixture_full();
	struct err err = {0};

	/* A kind that must not leave the directory. */
	free(record->streams[0].name);
	record->streams[0].name = strdup("../../evil \"kind\"");
	assert_true(asprintf(&dir, "%s/deep/er", scratch) > 0);
	assert_int_equal(report_write_all(record, dir, &err), 0);
	for (size_t i = 0; report_writers[i]; i++) {
		if (report_writers[i]->write)
			assert_true(file_exists(dir, report_writers[i]->file));
		assert_non_null(report_writers[i]->help);
	}
	assert_true(file_exists(dir, "latency-log-write.hgrm"));
	assert_true(file_exists(dir, "latency-.._.._evil__kind_.hgrm"));
	assert_int_equal(entries_of(dir), 6 + 6);
	assert_int_equal(report_write_all(record, dir, &err), 0);
	assert_int_equal(entries_of(dir), 6 + 6);
	free(dir);
	record_free(record);
	scratch_remove(scratch);
}

static void a_file_in_the_way_is_named(void **state)
{
	char *scratch = scratch_make(), *dir;
	struct record *record = fixture_empty();
	struct err err = {0};

	file_write(scratch, "taken", "");
	assert_true(asprintf(&dir, "%s/taken/out", scratch) > 0);
	assert_int_equal(report_write_all(record, dir, &err), -ENOTDIR);
	assert_non_null(strstr(err.where, "taken/out"));
	free(dir);
	record_free(record);
	scratch_remove(scratch);
}

/* A target that cannot be replaced: the others are still written, nothing is left over. */
static void one_failure_spares_the_others(void **state)
{
	char *scratch = scratch_make(), *blocker;
	struct record *record = fixture_empty();
	struct err err = {0};

	assert_true(asprintf(&blocker, "%s/junit.xml", scratch) > 0);
	assert_int_equal(mkdir(blocker, 0777), 0);
	assert_int_equal(report_write_all(record, scratch, &err), -EISDIR);
	assert_non_null(strstr(err.where, "junit.xml"));
	assert_true(file_exists(scratch, "report.html"));
	assert_true(file_exists(scratch, "config.effective.yaml"));
	assert_int_equal(entries_of(scratch), 6);
	free(blocker);
	record_free(record);
	scratch_remove(scratch);
}

static void a_full_disk_is_reported(void **state)
{
	struct record *record = fixture_full();

	for (size_t i = 0; report_writers[i]; i++) {
		FILE *to = fopen("/dev/full", "we");

		if (!to) {
			record_free(record);
			skip();
		}
		setvbuf(to, NULL, _IONBF, 0);
		if (report_writers[i]->write_part)
			assert_true(report_writers[i]->write_part(record, 0, to) < 0);
		else
			assert_true(report_writers[i]->write(record, to) < 0);
		fclose(to);
	}
	record_free(record);
}

/* The limit of a file's size stands for the full disk: it needs no file system of its own. */
static void the_cause_of_a_failed_write_is_told(void **state)
{
	struct record *record = fixture_full();
	char *scratch = scratch_make();
	struct rlimit before, small;
	struct err err = {0};
	int r;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = (struct rlimit){.rlim_cur = 64, .rlim_max = before.rlim_max};
	setrlimit(RLIMIT_FSIZE, &small);
	r = report_write_all(record, scratch, &err);
	setrlimit(RLIMIT_FSIZE, &before);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(r, -EFBIG);
	assert_non_null(strstr(err.what, strerror(EFBIG)));
	assert_int_equal(entries_of(scratch), 0);
	record_free(record);
	scratch_remove(scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(junit_is_well_formed),
	    cmocka_unit_test(junit_tells_what_failed),
	    cmocka_unit_test(html_is_balanced),
	    cmocka_unit_test(html_stands_alone),
	    cmocka_unit_test(chart_data_parses),
	    cmocka_unit_test(prom_parses),
	    cmocka_unit_test(hgrm_ends_at_the_maximum),
	    cmocka_unit_test(all_files_and_no_others),
	    cmocka_unit_test(a_file_in_the_way_is_named),
	    cmocka_unit_test(one_failure_spares_the_others),
	    cmocka_unit_test(a_full_disk_is_reported),
	    cmocka_unit_test(the_cause_of_a_failed_write_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
