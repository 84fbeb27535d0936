/* SPDX-License-Identifier: MIT
 *
 * Choice of the method of a write, by the number of chunk reads.
 */
#include "target/array/stripe_plan.h"

#include <errno.h>

#include "base/bytes.h"

#define BIT(column) (UINT64_C(1) << (column))

struct stripe_span stripe_hull(uint64_t chunk_bytes, uint64_t lo, uint64_t hi)
{
	uint64_t first = lo / chunk_bytes, last = (hi - 1) / chunk_bytes;
	if (first != last)
		return (struct stripe_span){0, chunk_bytes};
	return (struct stripe_span){lo - first * chunk_bytes, hi - first * chunk_bytes};
}

struct stripe_span stripe_written(uint64_t chunk_bytes, uint64_t lo, uint64_t hi, unsigned column)
{
	uint64_t begin = column * chunk_bytes, end = begin + chunk_bytes;
	uint64_t first = MAX_OF(begin, lo), last = MIN_OF(end, hi);
	if (first >= last)
		return (struct stripe_span){0, 0};
	return (struct stripe_span){first - begin, last - begin};
}

static unsigned count_of(uint64_t mask)
{
	return (unsigned)__builtin_popcountll(mask);
}

/* The LEAST set bits of MASK, as many as COUNT. */
static uint64_t lowest(uint64_t mask, unsigned count)
{
	uint64_t taken = 0;
	for (; count > 0; count--) {
		taken |= mask & -mask;
		mask &= mask - 1;
	}
	return taken;
}

/* What the write does to the columns, as masks. */
struct cover {
	uint64_t touched; /* data */
	uint64_t whole;	  /* data: the hull is overwritten altogether */
	uint64_t renewed; /* all of the chunk is: afterwards it can be read, unless it is absent */
};

static struct cover cover_of(const struct stripe_shape *shape, uint64_t lo, uint64_t hi,
			     struct stripe_span hull)
{
	struct cover cover = {0};
	unsigned first = (unsigned)(lo / shape->chunk_bytes);
	unsigned last = (unsigned)((hi - 1) / shape->chunk_bytes);
	for (unsigned column = first; column <= last; column++) {
		struct stripe_span span = stripe_written(shape->chunk_bytes, lo, hi, column);
		cover.touched |= BIT(column);
		if (span.lo == hull.lo && span.hi == hull.hi)
			cover.whole |= BIT(column);
	}
	if (hull.hi - hull.lo == shape->chunk_bytes)
		cover.renewed = cover.whole | (stripe_all_mask(shape) & ~stripe_data_mask(shape));
	return cover;
}

/* Everything that can be read, and what is worked out from it. */
static int plan_all(const struct stripe_shape *shape, const struct stripe_state *state,
		    struct stripe_plan *plan)
{
	uint64_t data = stripe_data_mask(shape), good = stripe_all_mask(shape) & ~state->unreadable;
	uint64_t lost = data & state->unreadable;

	if (shape->copies) {
		/* One copy is as good as another, and a dirty mirror's first one is it. */
		plan->read_mask = good & -good;
		plan->lost = lost;
		return good ? 0 : -EIO;
	}
	if (lost && (state->dirty || count_of(lost) > count_of(good & ~data)))
		return -EIO;
	plan->read_mask = (good & data) | lowest(good & ~data, count_of(lost));
	plan->lost = lost;
	return 0;
}

int stripe_plan_read(const struct stripe_shape *shape, uint64_t wanted,
		     const struct stripe_state *state, struct stripe_plan *ret_plan)
{
	struct stripe_plan plan = *ret_plan;
	int rc = 0;

	plan.read_mask = wanted;
	plan.lost = 0;
	if (wanted & state->unreadable)
		rc = plan_all(shape, state, &plan);
	if (rc)
		return rc;
	*ret_plan = plan;
	return 0;
}

/* Can what is written be had again, when only the columns RENEWED become readable by it? */
static bool lasting(const struct stripe_shape *shape, const struct cover *cover,
		    const struct stripe_state *state, uint64_t renewed)
{
	uint64_t after = state->unreadable & ~(renewed & ~state->absent);
	if (state->dirty && !shape->copies && !renewed)
		return !(cover->touched & after); /* it stays dirty */
	return !(cover->touched & after) || count_of(after) <= shape->parities;
}

/* Without parity: what is not written is not made worse, it is lost already or can be read. */
static int choose_data_only(const struct cover *cover, const struct stripe_state *state,
			    struct stripe_plan *plan)
{
	if (cover->touched & state->unreadable & ~(cover->renewed & ~state->absent))
		return -EIO;
	plan->method = STRIPE_DATA_ONLY;
	return 0;
}

/* The cheapest way that STATE leaves, or -EIO. */
static int choose(const struct stripe_shape *shape, const struct cover *cover,
		  const struct stripe_state *state, struct stripe_plan *plan)
{
	uint64_t data = stripe_data_mask(shape), parity = stripe_all_mask(shape) & ~data;
	uint64_t reconstruct = data & ~cover->whole;
	uint64_t modify = cover->touched | (parity & ~state->out);
	bool can_reconstruct =
	    !(reconstruct & state->unreadable) && lasting(shape, cover, state, cover->renewed);
	bool can_modify = !shape->copies && !state->dirty && !(modify & state->unreadable);
	bool can_rebuild = !shape->copies && plan_all(shape, state, plan) == 0;
	if (can_rebuild && count_of(modify) > count_of(plan->read_mask))
		can_modify = false;

	uint64_t lost = plan->lost;
	plan->lost = 0;
	if ((parity & ~state->out) == 0) {
		plan->read_mask = 0;
		return choose_data_only(cover, state, plan);
	}
	if (can_reconstruct && (!can_modify || count_of(reconstruct) <= count_of(modify))) {
		plan->method = STRIPE_RECONSTRUCT_WRITE;
		plan->read_mask = reconstruct;
		return 0;
	}
	if (can_modify) {
		plan->method = STRIPE_READ_MODIFY_WRITE;
		plan->read_mask = modify;
		return 0;
	}
	if (can_rebuild) {
		plan->method = STRIPE_REBUILD_WRITE;
		plan->lost = lost;
		return 0;
	}
	plan->spoils = true;
	plan->read_mask = 0;
	plan->lost = 0;
	plan->write_mask = cover->touched;
	return shape->copies ? -EIO : choose_data_only(cover, state, plan);
}

int stripe_plan_write(const struct stripe_shape *shape, uint64_t lo, uint64_t hi,
		      struct stripe_span hull, const struct stripe_state *state,
		      struct stripe_plan *ret_plan)
{
	struct stripe_plan plan = {.hull = hull};
	struct cover cover = cover_of(shape, lo, hi, hull);

	if (count_of(state->absent) > shape->parities)
		return -EIO;
	plan.write_mask = cover.touched | (stripe_all_mask(shape) & ~stripe_data_mask(shape));
	int rc = choose(shape, &cover, state, &plan);
	if (rc)
		return rc;
	*ret_plan = plan;
	return 0;
}
