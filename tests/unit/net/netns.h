/* SPDX-License-Identifier: MIT
 *
 * Two network namespaces of an unprivileged user, joined by a virtual Ethernet: "near" (v0,
 * 10.99.0.1/24), where tests run, and "far" (v1, 10.99.0.2/24).
 */
#ifndef SANLAB_TESTS_NETNS_H
#define SANLAB_TESTS_NETNS_H

#include <stdbool.h>

#define NETNS_NEAR "10.99.0.1"
#define NETNS_FAR  "10.99.0.2"

/* Once a program, before any thread; false: refused, and WHY says what. */
bool netns_open(const char **ret_why);
void netns_enter(bool far); /* the calling thread */
void netns_far_link(bool up);
void netns_far_address(bool there);
void netns_near_delete(void); /* the whole virtual Ethernet */

#endif
