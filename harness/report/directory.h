/* SPDX-License-Identifier: MIT
 *
 * The directory reports are written to.
 */
#ifndef SANLAB_HARNESS_REPORT_DIRECTORY_H
#define SANLAB_HARNESS_REPORT_DIRECTORY_H

#include "base/err.h"

/* Makes DIR and what is missing above it; one that exists is fine. */
int directory_make(const char *dir, struct err *err);

#endif
