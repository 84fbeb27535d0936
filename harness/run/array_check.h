/* SPDX-License-Identifier: MIT
 *
 * What the target says of its array at the end of the run, against the expectations `rebuild:` and
 * `scrub:`.
 */
#ifndef SANLAB_HARNESS_RUN_ARRAY_CHECK_H
#define SANLAB_HARNESS_RUN_ARRAY_CHECK_H

#include "harness/lab/lab.h"
#include "harness/report/record.h"

/* Adds a verdict for each such expectation; RECORD->target is the status document. */
void array_check(const struct lab *lab, struct record *record);

#endif
