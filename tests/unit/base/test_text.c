/* SPDX-License-Identifier: MIT
 *
 * What people read: scaled numbers, timestamps, errors and log lines.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"

struct row {
	double value;
	const char *text;
};

static void durations(void **state)
{
	static const struct row rows[] = {
	    {0, "0 ns"},	 {842, "842 ns"},	{999.4, "999 ns"},   {999.6, "1.00 us"},
	    {1000, "1.00 us"},	 {9994, "9.99 us"},	{9996, "10.0 us"},   {12.3e6, "12.3 ms"},
	    {99.96e6, "100 ms"}, {999.4e6, "999 ms"},	{999.6e6, "1.00 s"}, {1.84e9, "1.84 s"},
	    {3600e9, "3600 s"},	 {-12.3e6, "-12.3 ms"}, {NAN, "-"},	     {INFINITY, "-"},
	};
	char out[32];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(text_duration(out, sizeof out, rows[i].value), rows[i].text);
}

static void byte_counts(void **state)
{
	static const struct row rows[] = {
	    {0, "0 B"},
	    {512, "512 B"},
	    {1023.6, "1.0 KiB"},
	    {4096, "4.0 KiB"},
	    {1023.96 * 1024, "1.0 MiB"},
	    {31.2 * 1024 * 1024, "31.2 MiB"},
	    {1.2 * 1024 * 1024 * 1024, "1.2 GiB"},
	    {1e18, "888.2 PiB"},
	    {1e19, "8881.8 PiB"},
	    {NAN, "-"},
	};
	char out[32], rate[34];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_string_equal(text_bytes(out, sizeof out, rows[i].value), rows[i].text);
		if (!isfinite(rows[i].value))
			continue;
		snprintf(rate, sizeof rate, "%s/s", rows[i].text);
		assert_string_equal(text_rate(out, sizeof out, rows[i].value), rate);
	}
}

static void timestamps(void **state)
{
	char out[32], tiny[5];

	assert_string_equal(text_utc(out, sizeof out, 0), "1970-01-01T00:00:00.000Z");
	assert_string_equal(text_utc(out, sizeof out, UINT64_C(1796033079123999999)),
			    "2026-11-30T10:04:39.123Z");
	assert_string_equal(text_utc(out, sizeof out, UINT64_MAX), "2554-07-21T23:34:33.709Z");
	assert_string_equal(text_utc(tiny, sizeof tiny, 0), "1970"); /* cut, never overrun */
}

static void first_error_counts(void **state)
{
	struct err err = {0};

	assert_int_equal(err_set(&err, -EADDRINUSE, "cannot listen on %s", "127.0.0.1:3260"),
			 -EADDRINUSE);
	err_where(&err, "%s:%d", "lab.yaml", 12);
	err_hint(&err, "choose another port");
	assert_int_equal(err_set(&err, -EIO, "later"), -EIO);
	assert_int_equal(err.code, -EADDRINUSE);
	assert_string_equal(err.what, "cannot listen on 127.0.0.1:3260");
	assert_string_equal(err.where, "lab.yaml:12");
	assert_string_equal(err.hint, "choose another port");
}

static void error_without_a_reader(void **state)
{
	assert_int_equal(err_set(NULL, -EIO, "%s", "x"), -EIO);
	err_where(NULL, "x");
	err_hint(NULL, "x");
}

static void long_error_is_cut(void **state)
{
	struct err err = {0};
	char text[2000];

	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	err_set(&err, -EIO, "%s", text);
	err_where(&err, "%s", text);
	err_hint(&err, "%s", text);
	assert_int_equal(strlen(err.what), sizeof err.what - 1);
	assert_int_equal(strlen(err.where), sizeof err.where - 1);
	assert_int_equal(strlen(err.hint), sizeof err.hint - 1);
}

/* Stderr into a pipe while FN runs; what it wrote, without the last newline's terminator. */
static void captured(void (*fn)(void), char *out, size_t size)
{
	int fds[2], saved = dup(STDERR_FILENO);
	ssize_t got;

	assert_true(saved >= 0);
	assert_int_equal(pipe(fds), 0);
	fflush(stderr);
	assert_true(dup2(fds[1], STDERR_FILENO) >= 0);
	fn();
	fflush(stderr);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	close(fds[1]);
	got = read(fds[0], out, size - 1);
	close(fds[0]);
	assert_true(got >= 0);
	out[got] = '\0';
}

static void print_errors(void)
{
	struct err bare = {.code = -EIO, .what = "it broke"};
	struct err full = {-EIO, "it broke", "lab.yaml:1:2", "mend it"};

	err_print(&bare);
	err_print(&full);
}

static void error_text(void **state)
{
	char out[400];

	captured(print_errors, out, sizeof out);
	assert_string_equal(out, "sanlab: it broke\n"
				 "sanlab: lab.yaml:1:2: it broke\n"
				 "hint: mend it\n");
}

static void log_lines(void)
{
	char text[3000];

	log_set_level(LOG_LEVEL_WARN);
	log_info("not seen");
	log_debug("not seen %d", 1);
	errno = EDOM;
	log_warn("path %d lost", 2);
	assert_int_equal(errno, EDOM);
	log_error("name '%s'", "a\x1b[2J\n\x7f\xc3\xa9");
	log_set_level(LOG_LEVEL_DEBUG);
	log_debug("seen");
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	log_info("%s", text);
	log_set_level(LOG_LEVEL_WARN);
}

static void log_text(void **state)
{
	static const char begin[] = "sanlab: warning: path 2 lost\n"
				    "sanlab: error: name 'a?[2J??\xc3\xa9'\n"
				    "sanlab: debug: seen\n"
				    "sanlab: xxx";
	char out[4000];

	captured(log_lines, out, sizeof out);
	assert_memory_equal(out, begin, sizeof begin - 1);
	assert_in_range(strlen(out), 1000, 1200); /* the long line is cut */
	assert_int_equal(out[strlen(out) - 1], '\n');
	assert_int_equal(log_get_level(), LOG_LEVEL_WARN);
}

static void urls_without_their_password(void **state)
{
	static const char *const cases[][2] = {
	    {"iscsi://127.0.0.1/iqn.x:a/0", "iscsi://127.0.0.1/iqn.x:a/0"},
	    {"iscsi://joe%secret@127.0.0.1/iqn.x:a/0", "iscsi://joe%***@127.0.0.1/iqn.x:a/0"},
	    {"iscsi://joe%a%b@127.0.0.1/iqn.x:a/0", "iscsi://joe%***@127.0.0.1/iqn.x:a/0"},
	    {"iscsi://joe@127.0.0.1/iqn%25/0", "iscsi://joe@127.0.0.1/iqn%25/0"},
	    {"no url", "no url"},
	};
	char out[100];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(text_url(out, sizeof out, cases[i][0]), cases[i][1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(durations),	  cmocka_unit_test(byte_counts),
	    cmocka_unit_test(timestamps),	  cmocka_unit_test(urls_without_their_password),
	    cmocka_unit_test(first_error_counts), cmocka_unit_test(error_without_a_reader),
	    cmocka_unit_test(long_error_is_cut),  cmocka_unit_test(error_text),
	    cmocka_unit_test(log_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
