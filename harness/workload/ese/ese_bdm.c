/* SPDX-License-Identifier: MIT
 *
 * Background database maintenance: one batch of pages, a pause, the next batch, for ever around
 * the database (ESE's dbscan).  A cached page is left out, so it parts its batch into two reads or
 * makes it shorter: that is why Jetstress' mean is a little below 256 KiB.
 */
#include "harness/workload/ese/ese_server_impl.h"

static void batch(struct ese_bdm *bdm);

static uint64_t tick_after(const struct ese_config *config, uint64_t at_ns)
{
	return config->bdm_tick_ns ? round_up_u64(at_ns, config->bdm_tick_ns) : at_ns;
}

static void pause_then_batch(struct ese_bdm *bdm)
{
	struct ese_server *server = bdm->db->server;
	const struct ese_config *config = server->config;
	uint64_t now_ns = loop_now_ns(server->loop);

	if (config->bdm_per_s > 0)
		bdm->due_ns =
		    MAX_OF(now_ns, bdm->due_ns + (uint64_t)((double)NS_PER_S / config->bdm_per_s));
	else
		bdm->due_ns =
		    tick_after(config, now_ns + MAX_OF(config->bdm_throttle_ns, NS_PER_US));
	loop_timer_set(server->loop, &bdm->timer, bdm->due_ns);
}

static void run_read(struct ese_page_io *pio)
{
	struct ese_bdm *bdm = pio->owner;

	if (--bdm->in_flight)
		return;
	if (bdm->running)
		pause_then_batch(bdm);
	ese_server_unbusy(bdm->db->server);
}

static bool cached(struct ese_bdm *bdm, uint64_t page)
{
	return ese_cache_find(bdm->db->server->cache, ese_db_number(bdm->db->db), (uint32_t)page);
}

/* Reads what is not cached of [first, end). */
static void read_batch(struct ese_bdm *bdm, uint64_t first, uint64_t end)
{
	unsigned runs = 0;

	while (first < end) {
		struct ese_page_io *pio = &bdm->runs[runs];
		uint64_t from = first;

		while (first < end && !cached(bdm, first))
			first++;
		if (first > from) {
			*pio = (struct ese_page_io){
			    .first = from,
			    .count = (unsigned)(first - from),
			    .stream = &ese_server_streams(bdm->db)[ESE_BDM_READ],
			    .done = run_read,
			    .owner = bdm,
			};
			runs++;
		}
		while (first < end && cached(bdm, first))
			first++;
	}
	/* One more than there are, until all have been sent: a read may end at once. */
	bdm->in_flight = runs + 1;
	for (unsigned i = 0; i < runs; i++)
		ese_pager_read(ese_db_pager(bdm->db->db), &bdm->runs[i]);
	run_read(&(struct ese_page_io){.owner = bdm});
}

static void batch(struct ese_bdm *bdm)
{
	uint64_t pages = ese_db_used_pages(bdm->db->db);
	uint64_t first = bdm->next < pages ? bdm->next : ESE_PAGE_FIRST;
	uint64_t end = MIN_OF(first + ESE_RUN_PAGES, pages);

	bdm->next = end;
	bdm->db->server->busy++;
	read_batch(bdm, first, end);
}

static void due(void *arg)
{
	batch(arg);
}

void ese_bdm_open(struct ese_bdm *bdm, struct ese_server_db *db)
{
	bdm->db = db;
	bdm->next = ESE_PAGE_FIRST;
	loop_timer_init(&bdm->timer, due, bdm);
}

/* Databases begin at even distances, so that their reads do not come together. */
void ese_bdm_start(struct ese_bdm *bdm)
{
	struct ese_server *server = bdm->db->server;
	uint64_t index = (uint64_t)(bdm->db - server->dbs);

	if (!server->config->bdm || bdm->running)
		return;
	bdm->running = true;
	bdm->due_ns = loop_now_ns(server->loop) +
		      server->config->bdm_throttle_ns * (index + 1) / server->db_count;
	loop_timer_set(server->loop, &bdm->timer, bdm->due_ns);
}

void ese_bdm_stop(struct ese_bdm *bdm)
{
	bdm->running = false;
	loop_timer_cancel(bdm->db->server->loop, &bdm->timer);
}
