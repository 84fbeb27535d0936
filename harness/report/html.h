/* SPDX-License-Identifier: MIT
 *
 * The parts of report.html: html.c is the page, html_charts.c, html_failovers.c
 * and html_tables.c its sections.
 */
#ifndef SANLAB_HARNESS_REPORT_HTML_H
#define SANLAB_HARNESS_REPORT_HTML_H

#include <stdio.h>

#include "harness/report/view.h"

/* report.css and report.js, embedded at build time. */
extern const char report_css[], report_js[];

int html_time_charts(const struct view *view, FILE *to); /* 0 or -ENOMEM */
int html_latency_chart(const struct view *view, FILE *to);
int html_share_chart(const struct view *view, FILE *to);

/* The test of Jetstress' kind that the run was; nothing for other runs.  0 or -ENOMEM. */
int html_exchange(const struct view *view, FILE *to);
/* The curve of a sweep, of a record that has one.  0 or -ENOMEM. */
int html_curve(const struct view *view, FILE *to);
void html_failovers(const struct view *view, FILE *to);
void html_checks(const struct view *view, FILE *to);
void html_kinds(const struct view *view, FILE *to);
void html_paths(const struct view *view, FILE *to);
void html_volumes(const struct view *view, FILE *to);
void html_events(const struct view *view, FILE *to);
void html_data_check(const struct view *view, FILE *to);
void html_documents(const struct view *view, FILE *to); /* configuration, environment, target */

#endif
