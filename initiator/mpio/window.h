/* SPDX-License-Identifier: MIT
 *
 * How many I/Os a path may have in flight: shrinks to what the target has shown to take, grows
 * again with success.  Pure.
 */
#ifndef SANLAB_INITIATOR_MPIO_WINDOW_H
#define SANLAB_INITIATOR_MPIO_WINDOW_H

#include <stdint.h>

struct window {
	unsigned limit, most;
	unsigned good;	     /* successes since it last changed */
	uint64_t refused_ns; /* the last time it shrank */
};

void window_init(struct window *window, unsigned most);
/* TASK SET FULL with IN_FLIGHT others outstanding: they are what fits. */
void window_full(struct window *window, unsigned in_flight, uint64_t now_ns);
/* BUSY: the target has too much to do; how much is too much it does not say. */
void window_busy(struct window *window, uint64_t now_ns);
/* A success.  A little more after a while without a refusal and some windows full of success. */
void window_good(struct window *window, uint64_t now_ns);

#endif
