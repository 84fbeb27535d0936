/* SPDX-License-Identifier: MIT
 *
 * sanlab report DIR: reads run.json and renders every report again.
 */
#include <stdio.h>

#include "base/err.h"
#include "harness/cli/cli.h"
#include "harness/report/report.h"

int cmd_report(const struct cli_args *args)
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
