/* SPDX-License-Identifier: MIT
 *
 * The end of a run, on real time or virtual: what is written, shown and returned.
 */
#ifndef SANLAB_HARNESS_RUN_OUTCOME_H
#define SANLAB_HARNESS_RUN_OUTCOME_H

#include "harness/run/run.h"

/* The lab with every default filled in, as YAML; the caller's.  NULL: out of memory. */
char *outcome_config(const struct lab *lab);
/* Shows RECORD and writes its files, as the options say; returns the exit code. */
int outcome_report(const struct record *record, const struct run_options *options);

#endif
