/* SPDX-License-Identifier: MIT
 *
 * Tables that are written as text or as HTML: filled cell by cell, put as a whole.
 */
#ifndef SANLAB_HARNESS_REPORT_SHEET_H
#define SANLAB_HARNESS_REPORT_SHEET_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct sheet {
	const char *title;
	const char *columns; /* '|' between; '>' before those of figures; NULL: no head */
	json_t *rows;	     /* arrays of strings */
	bool failed;	     /* out of memory: nothing will be put */
};

void sheet_begin(struct sheet *sheet, const char *title, const char *columns);
void sheet_row(struct sheet *sheet); /* begins one */
void sheet_cell(struct sheet *sheet, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes it (without rows: NOTHING instead) and frees it. */
int sheet_put(struct sheet *sheet, const char *nothing, bool html, FILE *to);

#endif
