/* SPDX-License-Identifier: MIT
 *
 * The report writers, one file each; the table is in report.c.
 */
#ifndef SANLAB_HARNESS_REPORT_WRITERS_H
#define SANLAB_HARNESS_REPORT_WRITERS_H

#include <stdio.h>

#include "harness/report/record.h"
#include "harness/report/report.h"

/* "pass", "fail", "skip", by enum verdict_status; NULL-terminated. */
extern const char *const verdict_names[];

/* DIR/NAME appears whole or not at all; FILL writes it and returns 0 or a negative errno. */
typedef int (*report_fill_fn)(const void *arg, FILE *to);
int report_write_file(const char *dir, const char *name, report_fill_fn fill, const void *arg,
		      struct err *err);

/* Replaces in NAME what is not safe in the name of a file. */
void report_safe_name(char *name);

extern const struct report_writer run_json_writer;
extern const struct report_writer summary_writer;
extern const struct report_writer junit_writer;
extern const struct report_writer html_writer;
extern const struct report_writer prom_writer;
extern const struct report_writer hgrm_writer;
extern const struct report_writer config_writer;
extern const struct report_writer curve_writer;
extern const struct report_writer esrp_writer;
extern const struct report_writer jetstress_html_writer;
extern const struct report_writer jetstress_log_writer;

#endif
