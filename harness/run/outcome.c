/* SPDX-License-Identifier: MIT
 *
 * Reports and exit code.
 */
#include "harness/run/outcome.h"

#include <stdio.h>

char *outcome_config(const struct lab *lab)
{
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		return NULL;
	lab_emit(lab, to);
	fclose(to);
	return text;
}

int outcome_report(const struct record *record, const struct run_options *options)
{
	struct err err = {0};
	int code = record_passed(record) ? EXIT_PASS : EXIT_EXPECTATION;

	if (!options->quiet)
		report_show(record);
	if (options->out_dir && report_write_all(record, options->out_dir, &err) < 0) {
		err_print(&err);
		return EXIT_ENVIRONMENT;
	}
	return code;
}
