/* SPDX-License-Identifier: MIT
 *
 * A host's device without a network: the volume itself, below a floor of time.
 *
 * What a layer answers at once (a read of space that no page stands for) takes no virtual time, and
 * a closed loop on it would never let the clock go on: so every request takes at least the floor.
 */
#ifndef SANLAB_HARNESS_SIM_DIRECT_H
#define SANLAB_HARNESS_SIM_DIRECT_H

#include "base/io.h"
#include "base/loop.h"

/* BELOW is borrowed.  FLOOR_NS is not 0.  Requests beyond 65,536 at a time end with -EBUSY. */
int sim_direct_new(struct loop *loop, struct io_layer *below, uint64_t floor_ns,
		   struct io_layer **ret_layer);
/* Nothing may be in flight below; what only waits for the floor ends now.  NULL is fine. */
struct io_layer *sim_direct_free(struct io_layer *layer);

#endif
