/* SPDX-License-Identifier: MIT
 *
 * Summaries, JUnit documents and charts against golden files.
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
#include "harness/report/chart.h"
#include "harness/report/writers.h"
#include "tests/unit/report/files.h"
#include "tests/unit/report/fixture.h"
#include "tests/unit/report/golden.h"
#include "tests/unit/report/markup.h"

static void summary_as_written(void **state)
{
	struct record *record = fixture_full();

	golden_compare("report-summary.txt", written_by(&summary_writer, record, NULL));
	record_free(record);
}

static void summary_of_nothing_as_written(void **state)
{
	struct record *record = fixture_empty();

	golden_compare("report-summary-empty.txt", written_by(&summary_writer, record, NULL));
	record_free(record);
}

static void summary_fits_eighty_columns(void **state)
{
	struct record *record = fixture_full();
	char *text = written_by(&summary_writer, record, NULL), *save, *line;

	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		unsigned columns = 0;

		for (const char *p = line; *p; p++)
			columns += ((unsigned char)*p & 0xc0) != 0x80;
		if (columns > 80)
			fail_msg("%u columns: %s", columns, line);
		assert_true(line[strlen(line) - 1] != ' ');
	}
	free(text);
	record_free(record);
}

static void colour_only_when_asked(void **state)
{
	struct record *record = fixture_full();

	for (int colour = 0; colour <= 1; colour++) {
		char *text = NULL;
		size_t size = 0;
		FILE *to = open_memstream(&text, &size);

		assert_int_equal(report_summary(record, to, colour), 0);
		fclose(to);
		assert_int_equal(strchr(text, '\033') != NULL, colour);
		free(text);
	}
	record_free(record);
}

static void junit_as_written(void **state)
{
	struct record *record = fixture_full();

	golden_compare("report-junit.xml", written_by(&junit_writer, record, NULL));
	record_free(record);
}

static char *chart_text(const struct chart *chart)
{
	char *text = NULL, *page;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	const char *wrong;

	chart_write(chart, to);
	fclose(to);
	assert_true(asprintf(&page, "<!DOCTYPE html>\n%s", text) > 0);
	wrong = markup_check(page, true);
	if (wrong)
		fail_msg("%s", wrong);
	free(page);
	return text;
}

static void line_chart_as_written(void **state)
{
	static const double x[] = {0.5, 1.5, 2.5, 3.5, 4.5, 5.5};
	static const double fast[] = {1.1e6, 1.3e6, 9e5, NAN, 2.2e8, NAN};
	static const double slow[] = {NAN, 5e6, 0, 7e6, 6e6, 4e6};
	static const struct chart_series series[] = {
	    {.name = "fast <&>", .colour = 0, .y = fast},
	    {.name = "slow", .colour = 9, .dashed = true, .y = slow},
	};
	static const struct chart_mark marks[] = {
	    {.x = 2, .number = 1, .fault = true, .text = "down & out"},
	    {.x = 2.05, .number = 2, .text = "lost"},
	    {.x = 4, .number = 3, .text = "up"},
	};
	struct chart chart = {
	    .title = "Response \"time\"",
	    .note = "log scale",
	    .unit = CHART_NS,
	    .log_scale = true,
	    .height = 200,
	    .x_min = 0,
	    .x_max = 6,
	    .shade_below = 1,
	    .shade_above = 5,
	    .x = x,
	    .point_count = ARRAY_SIZE(x),
	    .series = series,
	    .series_count = ARRAY_SIZE(series),
	    .marks = marks,
	    .mark_count = ARRAY_SIZE(marks),
	};

	golden_compare("report-chart-lines.svg.html", chart_text(&chart));
}

static void area_chart_as_written(void **state)
{
	static const double x[] = {1, 2, 3}, a[] = {50, 25, 75}, b[] = {50, 75, 25};
	static const struct chart_series series[] = {
	    {.name = "a", .colour = 0, .y = a},
	    {.name = "b", .colour = 1, .y = b},
	};
	struct chart chart = {
	    .title = "Shares",
	    .unit = CHART_PERCENT,
	    .stacked = true,
	    .height = 180,
	    .x_min = 0.5,
	    .x_max = 3.5,
	    .shade_above = 4,
	    .x = x,
	    .point_count = ARRAY_SIZE(x),
	    .series = series,
	    .series_count = ARRAY_SIZE(series),
	};

	golden_compare("report-chart-areas.svg.html", chart_text(&chart));
}

/* Whatever the numbers, the drawing is finite and well-formed. */
static void odd_charts_stay_valid(void **state)
{
	static const double x[] = {0, 1},
			    tops[] = {0, 1e-9, 1, 4999, 1e12, 1e300, INFINITY, NAN, -5};
	static const enum chart_unit units[] = {CHART_PER_S, CHART_MIB, CHART_NS, CHART_PERCENT};

	for (unsigned i = 0; i < ARRAY_SIZE(tops) * ARRAY_SIZE(units) * 2; i++) {
		double y[] = {0, tops[i % ARRAY_SIZE(tops)]};
		struct chart_series series = {.name = "s", .y = y};
		struct chart chart = {
		    .title = "t",
		    .unit = units[i / ARRAY_SIZE(tops) % ARRAY_SIZE(units)],
		    .log_scale = i >= ARRAY_SIZE(tops) * ARRAY_SIZE(units),
		    .height = 200,
		    .x_max = i % 2 ? 1 : 0,
		    .x = x,
		    .point_count = i % 3,
		    .series = &series,
		    .series_count = 1,
		};
		char *text = chart_text(&chart);

		assert_null(strstr(text, "nan"));
		assert_null(strstr(text, "inf"));
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(summary_as_written),
	    cmocka_unit_test(summary_of_nothing_as_written),
	    cmocka_unit_test(summary_fits_eighty_columns),
	    cmocka_unit_test(colour_only_when_asked),
	    cmocka_unit_test(junit_as_written),
	    cmocka_unit_test(line_chart_as_written),
	    cmocka_unit_test(area_chart_as_written),
	    cmocka_unit_test(odd_charts_stay_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
