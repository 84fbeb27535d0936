/* SPDX-License-Identifier: MIT
 *
 * What a result depends on besides the lab: kernel, processor, memory, versions.
 */
#ifndef SANLAB_HARNESS_RUN_ENVIRONMENT_H
#define SANLAB_HARNESS_RUN_ENVIRONMENT_H

#include <jansson.h>

json_t *environment_json(void);

#endif
