/* SPDX-License-Identifier: MIT
 *
 * Jetstress' forms: names of tests, instants, lines of the test log.
 */
#ifndef SANLAB_HARNESS_REPORT_JETSTRESS_H
#define SANLAB_HARNESS_REPORT_JETSTRESS_H

#include <stdio.h>

#include "harness/report/exchange_view.h"

/* "Performance", "Stress", "DatabaseBackup", "SoftRecovery"; by enum exchange_test. */
extern const char *const jetstress_types[];

/* "11/30/2026 8:35:39 PM", in UTC. */
char *jetstress_time(char *out, size_t size, uint64_t wall_ns);
/* "1024.0 MB"; below 1 MB "0.5 MB". */
char *jetstress_megabytes(char *out, size_t size, double bytes);

/* Calls LINE for each line of the test log that is SERVER's (NULL: of all servers):
 * "11/30/2026 8:35:39 PM -- text". */
typedef void (*jetstress_line_fn)(void *arg, const char *line);
void jetstress_log_each(const struct exchange_view *view, const struct exchange_server_view *server,
			jetstress_line_fn line, void *arg);

/* The pieces of the page; jetstress_sections.c.  VALUE is escaped. */
void jetstress_begin(FILE *to, const char *legend);
void jetstress_end(FILE *to);
/* A label, and its value in the cell of the next line: what scripts look for. */
void jetstress_row(FILE *to, const char *label, const char *value);
/* Names with '|' between. */
void jetstress_columns(FILE *to, const char *names);
void jetstress_label(FILE *to, const char *label); /* begins a row of cells */
void jetstress_cell(FILE *to, double value);	   /* three decimals */
void jetstress_text_cell(FILE *to, const char *text);

/* What sanlab adds after Jetstress' own sections; jetstress_added.c. */
void jetstress_added(const struct exchange_view *view, const struct exchange_server_view *server,
		     FILE *to);
/* The sections with the I/O of each database, Jetstress' names and order; jetstress_sections.c. */
void jetstress_io_sections(const struct exchange_view *view,
			   const struct exchange_server_view *server, FILE *to);

#endif
