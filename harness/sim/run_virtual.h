/* SPDX-License-Identifier: MIT
 *
 * `sanlab run --virtual`: a lab without sockets, processes and waiting, with the reports and exit
 * codes of a real run.  Equal labs and seeds give equal files, to the byte.
 */
#ifndef SANLAB_HARNESS_SIM_RUN_VIRTUAL_H
#define SANLAB_HARNESS_SIM_RUN_VIRTUAL_H

#include "harness/run/run.h"

/* Returns the exit code; everything has been said.  `control` of the options is not looked at. */
int run_virtual(const struct lab *lab, const struct run_options *options);

#endif
