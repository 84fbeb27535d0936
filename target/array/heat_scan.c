/* SPDX-License-Identifier: MIT
 *
 * The walk over the page maps.
 */
#include "target/array/heat_scan.h"

#include "target/array/volume.h"

void heat_scan_begin(struct heat_scan *scan, struct pool *pool)
{
	*scan = (struct heat_scan){.pool = pool};
}

static void begin_volume(struct heat_scan *scan, const struct volume *volume)
{
	scan->page = 0;
	scan->volume_heat = 0;
	scan->hot.count = 0;
	scan->cold.count = 0;
	scan->peer = scan->pool->member_count;
	if (scan->swapping && volume->member_pages[scan->slow] > 0)
		scan->peer = balance_peer(scan->loads, scan->pool->member_count, scan->slow,
					  volume->member_pages);
}

static void end_volume(struct heat_scan *scan, struct volume *volume)
{
	volume->heat = scan->volume_heat;
	if (scan->peer < scan->pool->member_count)
		balance_pair(&scan->swaps, &scan->hot, &scan->cold, scan->volume, scan->slow,
			     scan->peer);
	scan->volume++;
	scan->page = 0;
}

static void note_hottest(struct heat_scan *scan, struct hot_page page)
{
	unsigned at = scan->hottest_count;

	if (at == POOL_HOT_PAGES_MAX && page.heat <= scan->hottest[at - 1].heat)
		return;
	at = at == POOL_HOT_PAGES_MAX ? at - 1 : at;
	for (; at > 0 && page.heat > scan->hottest[at - 1].heat; at--)
		scan->hottest[at] = scan->hottest[at - 1];
	scan->hottest[at] = page;
	scan->hottest_count += scan->hottest_count < POOL_HOT_PAGES_MAX;
}

static void look_at(struct heat_scan *scan, const struct volume *volume, uint32_t index,
		    struct page_entry *entry)
{
	struct balance_page page = {.index = index, .heat = entry->heat};

	if (entry->page == PAGE_NONE)
		return;
	scan->volume_heat += entry->heat;
	scan->member_heat[entry->member] += entry->heat;
	if (entry->heat > 0)
		note_hottest(scan, (struct hot_page){volume, index, entry->heat});
	if (scan->peer < scan->pool->member_count && entry->member == scan->slow)
		balance_top_hot(&scan->hot, page);
	else if (entry->member == scan->peer)
		balance_top_cold(&scan->cold, page);
	entry->heat /= 2;
}

bool heat_scan_slice(struct heat_scan *scan)
{
	uint32_t left = HEAT_SLICE_PAGES;

	while (scan->volume < scan->pool->volume_count) {
		struct volume *volume = scan->pool->volumes[scan->volume];
		if (scan->page == 0)
			begin_volume(scan, volume);
		for (; scan->page < volume->map.count; scan->page++, left--) {
			if (left == 0)
				return false;
			look_at(scan, volume, scan->page, &volume->map.entries[scan->page]);
		}
		end_volume(scan, volume);
	}
	return true;
}
