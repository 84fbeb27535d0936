/* SPDX-License-Identifier: MIT
 *
 * The window of I/Os in flight on one path.
 */
#include "initiator/mpio/window.h"

#include "base/bytes.h"

enum {
	ROUNDS = 4,		     /* windows full of success before it grows by one */
	CALM_NS = 100 * 1000 * 1000, /* a burst of refusals has one cause */
};

void window_init(struct window *window, unsigned most)
{
	*window = (struct window){.limit = most, .most = most};
}

static void shrink(struct window *window, unsigned limit, uint64_t now_ns)
{
	window->limit = MAX_OF(MIN_OF(window->limit, limit), 1U);
	window->good = 0;
	window->refused_ns = now_ns;
}

void window_full(struct window *window, unsigned in_flight, uint64_t now_ns)
{
	shrink(window, in_flight, now_ns);
}

void window_busy(struct window *window, uint64_t now_ns)
{
	/* Once for all that were refused together. */
	if (window->refused_ns && now_ns - window->refused_ns < CALM_NS)
		window->refused_ns = now_ns;
	else
		shrink(window, window->limit * 3 / 4, now_ns);
}

void window_good(struct window *window, uint64_t now_ns)
{
	if (window->limit >= window->most || ++window->good < ROUNDS * window->limit ||
	    now_ns - window->refused_ns < CALM_NS)
		return;
	window->limit = MIN_OF(window->limit + 1 + window->limit / 16, window->most);
	window->good = 0;
}
