/* SPDX-License-Identifier: MIT
 *
 * Escaping, numbers for people, evidence lines, wrapped text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/report/format.h"

static void escape_cases(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
	    {NULL, ""},
	    {"plain", "plain"},
	    {"<a href=\"x\">&'", "&lt;a href=&quot;x&quot;&gt;&amp;&#39;"},
	    {"gr\303\266\303\237e \xf0\x9f\x92\xbe", "gr\303\266\303\237e \xf0\x9f\x92\xbe"},
	    {"tab\tline\n", "tab\tline\n"},
	    {"bell\a", "bell\xef\xbf\xbd"},
	    {"cut \xc3", "cut \xef\xbf\xbd"},	      /* a string cut inside a character */
	    {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"}, /* overlong */
	    {"\xed\xa0\x80x", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx"}, /* surrogate */
	    {"\xef\xbf\xbf", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},	/* not a character of XML */
	    {"\xf5\x80\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *text = NULL;
		size_t size = 0;
		FILE *to = open_memstream(&text, &size);

		assert_non_null(to);
		escape_xml(to, cases[i].text);
		fclose(to);
		assert_string_equal(text, cases[i].want);
		free(text);
	}
}

static void clean_keeps_valid_text(void **state)
{
	char *clean = utf8_clean("\xc3\xb6 \xc3 \x01");

	assert_string_equal(clean, "\xc3\xb6 ? \x01");
	free(clean);
}

static void number_cases(void **state)
{
	static const struct {
		double value;
		const char *want;
	} reals[] = {
	    {0, "0"},	     {0.456, "0.46"}, {9.994, "9.99"}, {9.996, "10.0"},
	    {99.94, "99.9"}, {99.96, "100"},  {999.4, "999"},  {1234567, "1,234,567"},
	    {NAN, "-"},	     {INFINITY, "-"}, {-3.5, "-3.5"},  {1e19, "1e+19"},
	};
	char out[32];

	for (size_t i = 0; i < ARRAY_SIZE(reals); i++)
		assert_string_equal(format_real(out, sizeof out, reals[i].value), reals[i].want);
	assert_string_equal(format_count(out, sizeof out, 0), "0");
	assert_string_equal(format_count(out, sizeof out, 999), "999");
	assert_string_equal(format_count(out, sizeof out, 1000), "1,000");
	assert_string_equal(format_count(out, sizeof out, UINT64_MAX),
			    "18,446,744,073,709,551,615");
	assert_string_equal(format_share(out, sizeof out, 0.2512), "25.1 %");
	assert_string_equal(format_share(out, sizeof out, NAN), "-");
	assert_string_equal(format_latency(out, sizeof out, 1500000, 0), "-");
	assert_string_equal(format_latency(out, sizeof out, 1500000, 1), "1.50 ms");
	assert_string_equal(format_mib(out, sizeof out, 3.0 * (double)MIB), "3.00");
	assert_string_equal(format_clock(out, sizeof out, 12345600000), "12.346 s");
	assert_string_equal(format_clock(out, sizeof out, 61 * NS_PER_S), "1:01.000");
	assert_string_equal(format_clock(out, sizeof out, 3723 * NS_PER_S + 456 * NS_PER_MS),
			    "1:02:03.456");
}

static void collect(void *arg, const char *key, const char *value)
{
	fprintf(arg, "%s=%s;", key, value);
}

static char *evidence_text(json_t *evidence)
{
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);

	assert_non_null(to);
	evidence_each(evidence, collect, to);
	fclose(to);
	json_decref(evidence);
	return text;
}

static void evidence_lines(void **state)
{
	char *text = evidence_text(json_pack(
	    "{s:i, s:i, s:f, s:b, s:n, s:s, s:{s:[i,s]}}", "gap_ns", 1840000000, "size_bytes", 4096,
	    "share", 0.25, "met", 1, "none", "name", "a<b", "deep", "list", 7, "x"));

	assert_string_equal(text, "gap_ns=1840000000 (1.84 s);size_bytes=4096 (4.0 KiB);share=0.25;"
				  "met=yes;none=none;name=a<b;deep.list.0=7;deep.list.1=x;");
	free(text);
	text = evidence_text(NULL);
	assert_string_equal(text, "");
	free(text);
}

static void evidence_is_bounded(void **state)
{
	json_t *list = json_array();
	char *text;
	unsigned lines = 0;

	for (int i = 0; i < 1000; i++)
		json_array_append_new(list, json_integer(i));
	text = evidence_text(list);
	for (const char *p = text; *p; p++)
		lines += *p == ';';
	assert_int_equal(lines, EVIDENCE_LINES_MAX);
	free(text);
}

static void columns_and_wrapping(void **state)
{
	char *text = NULL, *line, *rest;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);

	put_column(to, "gr\303\266\303\237e", 7);
	put_column(to, "much too long", 5);
	fputc('\n', to);
	for (unsigned column = 0; column < 40; column++)
		put_wrapped(to,
			    "words with 5 % and 95 % that need more than one line of eighty "
			    "columns, and 12 % of them do not even fit in that",
			    column, 4);
	fclose(to);
	assert_memory_equal(text, "gr\303\266\303\237e  much\xe2\x80\xa6\n", 17);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		assert_true(strlen(line) <= 80);
		assert_true(line[strspn(line, " ")] != '%');
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(escape_cases),	   cmocka_unit_test(clean_keeps_valid_text),
	    cmocka_unit_test(number_cases),	   cmocka_unit_test(evidence_lines),
	    cmocka_unit_test(evidence_is_bounded), cmocka_unit_test(columns_and_wrapping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
