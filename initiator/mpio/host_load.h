/* SPDX-License-Identifier: MIT
 *
 * What is on its way over each portal from one host, whichever of its devices sent it.  Microsoft's
 * least queue depth counts that: one I/O to each of two volumes on one path makes the other path
 * the better one for either volume.
 *
 * A portal is told by its address as configured, not by where a login was redirected to.
 * Threading: one loop's thread; all devices that share it run there.
 */
#ifndef SANLAB_INITIATOR_MPIO_HOST_LOAD_H
#define SANLAB_INITIATOR_MPIO_HOST_LOAD_H

#include "initiator/mpio/mpio.h"

int host_load_new(struct host_load **ret_loads);
struct host_load *host_load_free(struct host_load *loads);

/* The load of PORTAL, the same for everybody who asks; NULL without memory. */
struct mpio_load *host_load_of(struct host_load *loads, const char *portal);

#endif
