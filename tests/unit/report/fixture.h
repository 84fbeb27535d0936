/* SPDX-License-Identifier: MIT
 *
 * A run that never ran: every feature of a record, the same at each call.
 */
#ifndef SANLAB_TESTS_UNIT_REPORT_FIXTURE_H
#define SANLAB_TESTS_UNIT_REPORT_FIXTURE_H

#include "harness/report/record.h"

/* Five volumes over four portals, a path fault in the middle, a failed and a skipped check,
 * names with quotes, angle brackets, ampersands and UTF-8. */
struct record *fixture_full(void);
/* A run that ended before anything happened. */
struct record *fixture_empty(void);

#endif
