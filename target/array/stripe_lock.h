/* SPDX-License-Identifier: MIT
 *
 * Serialises updates that overlap: a lock covers bytes [lo, hi) of the columns of one stripe (or
 * of one mirrored chunk).  Locks that overlap are granted in the order of asking; others pass.
 *
 * Without it two writes to one block could reach the halves of a mirror in different order and
 * leave them different for ever, and two parity updates could each miss the other's change.
 *
 * A lock that is free is granted from within stripe_lock_acquire (it returns true); a later grant
 * calls `granted` from within stripe_lock_release, one after the other and never nested, however
 * long the chain of waiters.
 *
 * Ownership: locks are embedded in the caller's requests.  Bounds: those of the requests.
 */
#ifndef SANLAB_TARGET_ARRAY_STRIPE_LOCK_H
#define SANLAB_TARGET_ARRAY_STRIPE_LOCK_H

#include <stdbool.h>
#include <stddef.h> /* for sys/queue.h */
#include <stdint.h>
#include <sys/queue.h>

enum { STRIPE_LOCK_BUCKETS = 1024 };

struct stripe_lock {
	TAILQ_ENTRY(stripe_lock) entry; /* the bucket's, in order of asking */
	STAILQ_ENTRY(stripe_lock) ready_entry;
	uint64_t stripe;
	uint64_t lo, hi;
	bool held;
	void (*granted)(struct stripe_lock *lock);
};

TAILQ_HEAD(stripe_bucket, stripe_lock);
STAILQ_HEAD(stripe_ready, stripe_lock);

struct stripe_locks {
	struct stripe_bucket buckets[STRIPE_LOCK_BUCKETS];
	struct stripe_ready ready;
	bool running;
};

void stripe_locks_init(struct stripe_locks *locks);
/* stripe, lo, hi and granted are set by the caller. */
bool stripe_lock_acquire(struct stripe_locks *locks, struct stripe_lock *lock);
void stripe_lock_release(struct stripe_locks *locks, struct stripe_lock *lock);

#endif
