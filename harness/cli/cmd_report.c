/* SPDX-License-Identifier: MIT
 *
 * sanlab report DIR: reads run.json and renders every report again.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "base/err.h"
#include "harness/cli/cli.h"
#include "harness/report/report.h"

static int render(const struct cli_args *args)
{
	struct record *record;
	struct err err = {0};
	int code;

	if (report_load(args->words[0], &record, &err) < 0) {
		err_print(&err);
		return EXIT_USAGE;
	}
	if (report_write_all(record, args->words[0], &err) < 0) {
		err_print(&err);
		record_free(record);
		return EXIT_ENVIRONMENT;
	}
	if (!args->quiet)
		report_show(record);
	code = record_passed(record) ? EXIT_PASS : EXIT_EXPECTATION;
	record_free(record);
	return code;
}

int cmd_report(const struct cli_args *args)
{
	const char *dir = args->words[0];
	struct report_dir *held;
	struct err err = {0};
	struct stat st;
	int code;

	/* Held before it is read: a run that begins meanwhile would clear it.  One that is missing
	 * must not be made: report_load says so. */
	if (stat(dir, &st) < 0)
		return render(args);
	if (report_dir_open(dir, &held, &err) < 0) {
		err_print(&err);
		return EXIT_ENVIRONMENT;
	}
	code = render(args);
	report_dir_close(held);
	return code;
}
