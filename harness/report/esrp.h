/* SPDX-License-Identifier: MIT
 *
 * A summary in the manner of ESRP (Exchange Solution Reviewed Program) papers: what was simulated,
 * and results by chapter, over any number of runs and servers.
 */
#ifndef SANLAB_HARNESS_REPORT_ESRP_H
#define SANLAB_HARNESS_REPORT_ESRP_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "harness/report/record.h"

struct esrp_run {
	const char *name; /* tells runs apart: the directory; NULL: there is only one */
	const struct record *record;
};

/* As a page or as text.  Runs that are no tests of Jetstress' kind are left out and counted.
 * 0, -ENOENT (none of them is one), -ENOMEM or -EIO. */
int esrp_write(const struct esrp_run *runs, unsigned count, bool html, FILE *to);

/* esrp.html and esrp.txt in DIR (made when missing). */
int esrp_write_files(const struct esrp_run *runs, unsigned count, const char *dir, struct err *err);

#endif
