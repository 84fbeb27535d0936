/* SPDX-License-Identifier: MIT
 *
 * Scratch directories and whole files, for the report tests.
 */
#ifndef SANLAB_TESTS_UNIT_REPORT_FILES_H
#define SANLAB_TESTS_UNIT_REPORT_FILES_H

#include "harness/report/report.h"

/* Each fails the running test rather than return an error. */
char *scratch_make(void);	/* a new directory; scratch_remove frees the name */
void scratch_remove(char *dir); /* with the files in it and in its directories */
char *file_read(const char *dir, const char *name); /* ended by a zero byte; to be freed */
bool file_exists(const char *dir, const char *name);
void file_write(const char *dir, const char *name, const char *text);
/* What WRITER writes of RECORD, as text; to be freed.  Of those that write several files: the one
 * called NAME, or, if NULL, the first. */
char *written_by(const struct report_writer *writer, const struct record *record, const char *name);

#endif
