/* SPDX-License-Identifier: MIT
 *
 * The status document of a target as an administrator reads it: what is wrong first, then members,
 * drives, volumes and portals.
 */
#ifndef SANLAB_HARNESS_CLI_STATUS_TEXT_H
#define SANLAB_HARNESS_CLI_STATUS_TEXT_H

#include <jansson.h>
#include <stdio.h>

/* Parts that STATUS lacks are left out. */
void status_text(const json_t *status, FILE *to);

#endif
