/* SPDX-License-Identifier: MIT
 *
 * The section of a replay in the summary and in report.html.
 */
#ifndef SANLAB_HARNESS_REPORT_REPLAY_REPORT_H
#define SANLAB_HARNESS_REPORT_REPLAY_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "harness/report/record.h"

/* Nothing when no trace was replayed.  0 or a negative errno. */
int replay_report(const struct record *record, bool html, FILE *to);

#endif
