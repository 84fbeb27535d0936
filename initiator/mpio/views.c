/* SPDX-License-Identifier: MIT
 *
 * What policies see of the paths: kept up to date here, at every change, so that choosing a path
 * for an I/O computes nothing but the choice.
 */
#include "initiator/mpio/device.h"

#include "base/bytes.h"

void mpio_rank_views(struct mpio_path_view *views, unsigned count, bool all_ranks)
{
	uint8_t best = UINT8_MAX;

	for (unsigned i = 0; i < count; i++)
		if (views[i].able)
			best = MIN_OF(best, views[i].rank);
	for (unsigned i = 0; i < count; i++)
		views[i].usable = views[i].able && (all_ranks || views[i].rank == best);
}

static void refresh_all(struct mpio *m)
{
	mpio_rank_views(m->views, m->count, m->policy->all_ranks);
	m->available = 0;
	for (unsigned i = 0; i < m->count; i++)
		m->available += m->views[i].usable && !m->views[i].full;
}

void mpio_view_refresh(struct mpio *m, unsigned path)
{
	struct mpio_path_view *view = &m->views[path];
	const struct mpio_path *p = m->paths[path];
	bool able = p->machine.state == MPIO_PATH_UP && !p->failing && !p->drop;
	bool full = view->in_flight >= p->depth_limit;

	if (able != view->able || p->rank != view->rank) {
		view->able = able;
		view->rank = p->rank;
		view->full = full;
		refresh_all(m);
	} else if (full != view->full) {
		view->full = full;
		if (view->usable)
			m->available += full ? -1U : 1U;
	}
}

void mpio_view_sent(struct mpio *m, unsigned path, uint64_t bytes)
{
	struct mpio_path_view *view = &m->views[path];
	struct mpio_load *load = m->paths[path]->load;

	assert(view->able && !view->full);
	view->in_flight++;
	view->in_flight_bytes += bytes;
	load->in_flight++;
	load->in_flight_bytes += bytes;
	mpio_view_refresh(m, path);
}

void mpio_view_answered(struct mpio *m, unsigned path, uint64_t bytes)
{
	struct mpio_path_view *view = &m->views[path];
	struct mpio_load *load = m->paths[path]->load;

	assert(view->in_flight > 0 && load->in_flight >= view->in_flight);
	view->in_flight--;
	view->in_flight_bytes -= bytes;
	load->in_flight--;
	load->in_flight_bytes -= bytes;
	mpio_view_refresh(m, path);
}
