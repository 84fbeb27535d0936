/* SPDX-License-Identifier: MIT
 *
 * The sequential pass over all pages.  See ese_checksum.h.
 */
#include "harness/workload/ese/ese_checksum.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"

struct ese_checksum {
	struct ese_checksum_config config;
	struct ese_checksum_result result;
	struct ese_page_io ios[ESE_CHECKSUM_DEPTH_MAX];
	bool busy[ESE_CHECKSUM_DEPTH_MAX];
	uint64_t next;
	uint64_t started_ns;
	unsigned in_flight;
	bool pumping, stopped, ended;
};

static void pump(struct ese_checksum *checksum);

static void count(struct ese_checksum_result *result, const struct ese_page_io *pio)
{
	const struct ese_flush_map *map = ese_pager_map(pio->pager);

	if (pio->status < 0 && !pio->bad) {
		result->unreadable += pio->count;
		if (result->status == 0)
			result->status = pio->status;
		return;
	}
	result->pages += pio->count;
	result->bytes += (uint64_t)pio->count * ESE_PAGE_BYTES;
	for (unsigned i = 0; i < pio->count; i++) {
		result->written += ese_flush_map_get(map, pio->first + i) != ESE_FLUSH_NEVER;
		result->unsure += pio->unsure >> i & 1;
		if (!(pio->bad >> i & 1))
			continue;
		result->bad++;
		result->of_kind[pio->kind[i]]++;
	}
}

static bool is_wanted(const struct ese_checksum *checksum, uint64_t page)
{
	return !checksum->config.written_only ||
	       ese_flush_map_get(ese_pager_map(checksum->config.pager), page) != ESE_FLUSH_NEVER;
}

/* The device is gone: waiting for every I/O to fail would take for ever. */
static void give_up(struct ese_checksum *checksum)
{
	for (; checksum->next < checksum->config.end; checksum->next++)
		checksum->result.unreadable += is_wanted(checksum, checksum->next);
}

/* The next run of pages to be read, from `next` on; false: there is none. */
static bool next_run(struct ese_checksum *checksum, uint64_t *ret_first, unsigned *ret_count)
{
	uint64_t end = checksum->config.end;
	unsigned count = 0;

	while (checksum->next < end && !is_wanted(checksum, checksum->next))
		checksum->next++;
	*ret_first = checksum->next;
	while (checksum->next < end && count < ESE_RUN_PAGES &&
	       is_wanted(checksum, checksum->next)) {
		checksum->next++;
		count++;
	}
	*ret_count = count;
	return count > 0;
}

static void io_ended(struct ese_page_io *pio)
{
	struct ese_checksum *checksum = pio->owner;

	count(&checksum->result, pio);
	if (pio->status == -ENODEV)
		give_up(checksum);
	checksum->busy[pio - checksum->ios] = false;
	checksum->in_flight--;
	pump(checksum);
}

static void read_run(struct ese_checksum *checksum, unsigned index, uint64_t first, unsigned count)
{
	struct ese_page_io *pio = &checksum->ios[index];

	*pio = (struct ese_page_io){
	    .first = first,
	    .count = count,
	    .stream = checksum->config.stream,
	    .done = io_ended,
	    .owner = checksum,
	};
	checksum->busy[index] = true;
	checksum->in_flight++;
	ese_pager_read(checksum->config.pager, pio);
}

static void pump(struct ese_checksum *checksum)
{
	uint64_t first;
	unsigned count;

	if (checksum->pumping)
		return;
	checksum->pumping = true;
	for (unsigned i = 0; i < checksum->config.depth; i++)
		while (!checksum->busy[i] && !checksum->stopped &&
		       next_run(checksum, &first, &count))
			read_run(checksum, i, first, count);
	checksum->pumping = false;
	if (checksum->in_flight > 0)
		return;
	checksum->ended = true;
	checksum->result.duration_ns = loop_now_ns(checksum->config.loop) - checksum->started_ns;
	checksum->config.done(checksum->config.arg);
}

int ese_checksum_start(const struct ese_checksum_config *config, struct ese_checksum **ret_checksum)
{
	struct ese_checksum *checksum = calloc(1, sizeof *checksum);

	assert(config->depth >= 1 && config->depth <= ESE_CHECKSUM_DEPTH_MAX);
	assert(config->first >= ESE_PAGE_FIRST);
	if (!checksum)
		return -ENOMEM;
	checksum->config = *config;
	checksum->next = config->first;
	checksum->started_ns = loop_now_ns(config->loop);
	*ret_checksum = checksum;
	pump(checksum);
	return 0;
}

void ese_checksum_stop(struct ese_checksum *checksum)
{
	checksum->stopped = true;
}

const struct ese_checksum_result *ese_checksum_result(const struct ese_checksum *checksum)
{
	return &checksum->result;
}

double ese_checksum_progress(const struct ese_checksum *checksum)
{
	uint64_t all = checksum->config.end - checksum->config.first;

	return all ? (double)(checksum->next - checksum->config.first) / (double)all : 1;
}

struct ese_checksum *ese_checksum_free(struct ese_checksum *checksum)
{
	assert(!checksum || checksum->ended);
	free(checksum);
	return NULL;
}
