/* SPDX-License-Identifier: MIT
 *
 * Faults of the target and its array as commands of its control socket.
 */
#ifndef SANLAB_HARNESS_RUN_FAULT_COMMAND_H
#define SANLAB_HARNESS_RUN_FAULT_COMMAND_H

#include <jansson.h>

#include "harness/lab/lab.h"

/* The target itself has commands for faults of this kind. */
bool fault_has_command(int kind);
/* The request that begins FAULT or ends it; the caller's. */
json_t *fault_command(const struct fault_config *fault, bool begin);

#endif
