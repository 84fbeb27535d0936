/* SPDX-License-Identifier: MIT
 *
 * The parts of the summary: summary.c is the page, summary_exchange.c and curve.c sections.
 */
#ifndef SANLAB_HARNESS_REPORT_SUMMARY_H
#define SANLAB_HARNESS_REPORT_SUMMARY_H

#include <stdio.h>

#include "harness/report/record.h"

/* Begins a section. */
typedef void (*summary_title_fn)(const void *arg, const char *title);
/* Nothing, when the run was no test of Jetstress' kind.  0 or -ENOMEM. */
int summary_exchange(const struct record *record, summary_title_fn title, const void *arg,
		     FILE *to);

/* The curve of a sweep; nothing, when there was none. */
void summary_curve(const struct record *record, summary_title_fn title, const void *arg, FILE *to);

#endif
