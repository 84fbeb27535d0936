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

static uint8_t shown_rank(const struct mpio *m, const struct mpio_path *p)
{
	unsigned rank = p->rank;

	if (m->config.use_non_optimized && rank & MPIO_RANK_NON_OPTIMIZED)
		rank -= MPIO_RANK_NON_OPTIMIZED;
	if (m->policy->primary_set && !p->primary)
		rank += MPIO_RANK_NOT_PRIMARY;
	return (uint8_t)rank;
}

/* All that sending and answering can change. */
static void refresh_full(struct mpio *m, unsigned path)
{
	struct mpio_path_view *view = &m->views[path];
	bool full = view->in_flight >= m->paths[path]->window.limit;

	if (full == view->full)
		return;
	view->full = full;
	if (view->usable)
		m->available += full ? -1U : 1U;
}

void mpio_view_refresh(struct mpio *m, unsigned path)
{
	struct mpio_path_view *view = &m->views[path];
	const struct mpio_path *p = m->paths[path];
	bool able = mpio_path_usable(p->machine.state) && !p->failing && !p->drop;
	uint8_t rank = shown_rank(m, p);

	if (able != view->able || rank != view->rank) {
		view->able = able;
		view->rank = rank;
		view->full = view->in_flight >= p->window.limit;
		refresh_all(m);
	} else {
		refresh_full(m, path);
	}
}

static uint64_t number_at(const struct cfg_list *list, unsigned index, uint64_t preset)
{
	return index < list->count ? ((const uint64_t *)list->items)[index] : preset;
}

void mpio_view_init(struct mpio *m, unsigned path)
{
	const struct cfg_list *primary = &m->config.primary_paths;
	struct mpio_path *p = m->paths[path];

	m->views[path] = (struct mpio_path_view){
	    .load = p->load,
	    .weight = (uint32_t)number_at(&m->config.weights, path, 0),
	    .throughput = (uint16_t)number_at(&m->config.throughput, path, 1),
	};
	p->primary = primary->count == 0;
	for (unsigned i = 0; i < primary->count; i++)
		p->primary |= number_at(primary, i, 0) == path;
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
	refresh_full(m, path);
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
	refresh_full(m, path);
}
