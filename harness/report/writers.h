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

/* Replaces in NAME what is not safe in the name of a file. */
void report_safe_name(char *name);

extern const struct report_writer run_json_writer;
extern const struct report_writer summary_writer;
extern const struct report_writer junit_writer;
extern const struct report_writer html_writer;
extern const struct report_writer prom_writer;
extern const struct report_writer hgrm_writer;
extern const struct report_writer config_writer;

#endif
