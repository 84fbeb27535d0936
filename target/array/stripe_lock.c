/* SPDX-License-Identifier: MIT
 *
 * The table of stripe locks: buckets in order of asking.
 */
#include "target/array/stripe_lock.h"

#include <assert.h>
#include <stddef.h>

static struct stripe_bucket *bucket_of(struct stripe_locks *locks, uint64_t stripe)
{
	uint64_t hash = stripe * UINT64_C(0x9e3779b97f4a7c15);
	return &locks->buckets[hash >> 54];
}

_Static_assert(STRIPE_LOCK_BUCKETS == 1 << (64 - 54), "the hash gives ten bits");

static bool overlap(const struct stripe_lock *a, const struct stripe_lock *b)
{
	return a->stripe == b->stripe && a->lo < b->hi && b->lo < a->hi;
}

/* Does any lock asked for before LOCK stand in its way?  A waiting one does too: first come,
 * first served, so that a long wait ends. */
static bool blocked(struct stripe_bucket *bucket, const struct stripe_lock *lock)
{
	struct stripe_lock *earlier = TAILQ_FIRST(bucket);
	while (earlier && earlier != lock && !overlap(earlier, lock))
		earlier = TAILQ_NEXT(earlier, entry);
	return earlier && earlier != lock;
}

void stripe_locks_init(struct stripe_locks *locks)
{
	for (unsigned i = 0; i < STRIPE_LOCK_BUCKETS; i++)
		TAILQ_INIT(&locks->buckets[i]);
	STAILQ_INIT(&locks->ready);
	locks->running = false;
}

bool stripe_lock_acquire(struct stripe_locks *locks, struct stripe_lock *lock)
{
	struct stripe_bucket *bucket = bucket_of(locks, lock->stripe);
	assert(lock->lo < lock->hi);
	TAILQ_INSERT_TAIL(bucket, lock, entry);
	lock->held = !blocked(bucket, lock);
	return lock->held;
}

void stripe_lock_release(struct stripe_locks *locks, struct stripe_lock *lock)
{
	struct stripe_bucket *bucket = bucket_of(locks, lock->stripe);
	struct stripe_lock *waiting;

	assert(lock->held);
	TAILQ_REMOVE(bucket, lock, entry);
	for (waiting = TAILQ_FIRST(bucket); waiting; waiting = TAILQ_NEXT(waiting, entry)) {
		if (waiting->held || !overlap(waiting, lock) || blocked(bucket, waiting))
			continue;
		waiting->held = true;
		STAILQ_INSERT_TAIL(&locks->ready, waiting, ready_entry);
	}
	if (locks->running)
		return;
	locks->running = true;
	while (!STAILQ_EMPTY(&locks->ready)) {
		waiting = STAILQ_FIRST(&locks->ready);
		STAILQ_REMOVE_HEAD(&locks->ready, ready_entry);
		waiting->granted(waiting);
	}
	locks->running = false;
}
