/* SPDX-License-Identifier: MIT
 *
 * The balancers of a pool at work: rounds on a timer, the plans under way, drains; private to the
 * room.  What is decided, balance_plan.h says; what carries it out, page_move.h.
 *
 * A round: latencies since the last one are averaged, with the ages of requests that hang since
 * before it, all page maps are walked in slices (heat is
 * gathered and halved), then capacity is planned, or, when there is nothing to do for it, swaps. No
 * plan is made while one is under way.
 */
#ifndef SANLAB_TARGET_ARRAY_BALANCER_H
#define SANLAB_TARGET_ARRAY_BALANCER_H

#include "target/array/pool.h"

/* Also opens the pool's mover. */
int balancer_open(struct loop *loop, struct pool *pool, const struct balance_config *config,
		  struct balancer **ret_balancer);
/* The pool serves from now on: drains that a restart has interrupted go on. */
void balancer_start(struct balancer *balancer);
struct balancer *balancer_close(struct balancer *balancer);
void balancer_stop(struct balancer *balancer);
void balancer_page_freed(struct balancer *balancer);

#endif
