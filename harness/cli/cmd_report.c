/* SPDX-License-Identifier: MIT
 *
 * sanlab report DIR: reads run.json and renders every report again.
 * sanlab report --esrp DIR...: one summary of several runs.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "harness/cli/cli.h"
#include "harness/report/esrp.h"
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

static int render_again(const struct cli_args *args)
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

static int write_summary(const struct cli_args *args, const struct esrp_run *runs, unsigned count)
{
	struct err err = {0};
	int r = 0;

	if (!args->quiet)
		r = esrp_write(runs, count, false, stdout);
	if (r == 0 && args->out_dir)
		r = esrp_write_files(runs, count, args->out_dir, &err);
	if (r == 0)
		return EXIT_PASS;
	if (r == -ENOENT) {
		err_set(&err, r, "none of these runs was a test of Jetstress' kind");
		err_hint(&err, "those are runs with `workload: {type: exchange, engine: ese}`");
	}
	err_set(&err, r, "%s", strerror(-r));
	err_print(&err);
	return r == -ENOENT ? EXIT_USAGE : EXIT_ENVIRONMENT;
}

static int sum_up(const struct cli_args *args)
{
	struct record *records[CLI_MAX_RUNS];
	struct esrp_run runs[CLI_MAX_RUNS];
	int count = 0, code = EXIT_PASS;
	struct err err = {0};
	bool passed = true;

	for (; count < args->word_count; count++) {
		if (report_load(args->words[count], &records[count], &err) < 0) {
			err_print(&err);
			code = EXIT_USAGE;
			break;
		}
		passed = passed && record_passed(records[count]);
		runs[count] = (struct esrp_run){args->words[count], records[count]};
	}
	if (code == EXIT_PASS)
		code = write_summary(args, runs, (unsigned)count);
	while (count)
		record_free(records[--count]);
	return code == EXIT_PASS && !passed ? EXIT_EXPECTATION : code;
}

int cmd_report(const struct cli_args *args)
{
	if (args->esrp)
		return sum_up(args);
	if (args->word_count == 1 && !args->out_dir)
		return render_again(args);
	fprintf(stderr,
		"sanlab: %s\nhint: several runs, and --out, go with --esrp: sanlab report --help\n",
		args->out_dir ? "a run is rendered where it is"
			      : "one run at a time is rendered again");
	return EXIT_USAGE;
}
