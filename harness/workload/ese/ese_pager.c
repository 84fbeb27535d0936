/* SPDX-License-Identifier: MIT
 *
 * Runs of pages to and from the volume.  See ese_pager.h.
 */
#include "harness/workload/ese/ese_pager.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "harness/workload/ese/ese_image.h"
#include "harness/workload/ese/ese_shadow.h"

struct ese_pager {
	struct ese_pager_config config;
	struct ese_flush_map map;
	struct ese_pager_counters counters;
	struct buf_pool *pool;
	uint64_t newer_dbtime;			    /* UINT64_MAX: not recovering */
	struct ese_page_io *active;		    /* on their way, both kinds */
	struct ese_page_io *waiting, *waiting_last; /* reads */
	unsigned reads, writes;			    /* on their way */
	/* content: none */
	struct ese_shadow *shadow;
	uint8_t *nothing; /* what all I/Os carry */
};

#define RUN_BYTES ((size_t)ESE_RUN_PAGES * ESE_PAGE_BYTES)

int ese_pager_new(const struct ese_pager_config *config, struct ese_pager **ret_pager)
{
	struct ese_pager *pager = calloc(1, sizeof *pager);

	if (!pager)
		return -ENOMEM;
	assert(config->pages <= config->layer->size_bytes / ESE_PAGE_BYTES);
	pager->config = *config;
	pager->newer_dbtime = UINT64_MAX;
	if (ese_flush_map_init(&pager->map, &config->identity, config->pages) < 0)
		goto fail;
	pager->pool = buf_pool_new((ESE_PAGER_READS + ESE_PAGER_WRITES) * RUN_BYTES);
	if (!pager->pool)
		goto fail;
	if (!config->content) {
		pager->nothing = calloc(1, RUN_BYTES);
		if (!pager->nothing || ese_shadow_new(config->rules, &pager->shadow) < 0)
			goto fail;
	}
	*ret_pager = pager;
	return 0;
fail:
	ese_pager_free(pager);
	return -ENOMEM;
}

struct ese_pager *ese_pager_free(struct ese_pager *pager)
{
	if (!pager)
		return NULL;
	assert(!pager->active && !pager->waiting);
	ese_flush_map_done(&pager->map);
	ese_shadow_free(pager->shadow);
	buf_pool_free(pager->pool);
	free(pager->nothing);
	free(pager);
	return NULL;
}

void ese_pager_recovering(struct ese_pager *pager, uint64_t dbtime)
{
	pager->newer_dbtime = dbtime;
	pager->map.stride = dbtime == UINT64_MAX ? ESE_FLUSH_STRIDE : ESE_FLUSH_STRIDE_REDO;
}

struct ese_flush_map *ese_pager_map(struct ese_pager *pager)
{
	return &pager->map;
}

const struct ese_pager_counters *ese_pager_counters(const struct ese_pager *pager)
{
	return &pager->counters;
}

/* ---- what is on its way ---- */

static void link_active(struct ese_pager *pager, struct ese_page_io *pio)
{
	pio->prev = NULL;
	pio->next = pager->active;
	if (pager->active)
		pager->active->prev = pio;
	pager->active = pio;
}

static void unlink_active(struct ese_pager *pager, struct ese_page_io *pio)
{
	if (pio->prev)
		pio->prev->next = pio->next;
	else
		pager->active = pio->next;
	if (pio->next)
		pio->next->prev = pio->prev;
}

/* What a read under way returns of these pages may be old or new. */
static void disturb_reads(struct ese_pager *pager, const struct ese_page_io *write)
{
	for (struct ese_page_io *pio = pager->active; pio; pio = pio->next) {
		uint64_t first = MAX_OF(pio->first, write->first);
		uint64_t end = MIN_OF(pio->first + pio->count, write->first + write->count);

		assert(first >= end || pio->io.op == IO_READ);
		for (uint64_t page = first; page < end; page++)
			pio->unsure |= 1U << (page - pio->first);
	}
}

static unsigned flags_of(const struct ese_pager *pager, enum io_op op)
{
	if (op == IO_READ)
		return pager->config.content ? 0 : IO_BLIND;
	return pager->config.fua ? IO_FUA : 0;
}

static void submit(struct ese_page_io *pio, enum io_op op, void (*done)(struct io *io))
{
	struct ese_pager *pager = pio->pager;
	uint64_t bytes = (uint64_t)pio->count * ESE_PAGE_BYTES;

	pio->iov = (struct iovec){pio->buf ? pio->buf->data : pager->nothing, bytes};
	pio->io = (struct io){
	    .op = op,
	    .flags = flags_of(pager, op),
	    .offset_bytes = pio->first * ESE_PAGE_BYTES,
	    .length_bytes = bytes,
	    .iov = &pio->iov,
	    .iov_count = 1,
	    .done = done,
	    .owner = pio,
	};
	link_active(pager, pio);
	pio->submitted_ns = loop_now_ns(pager->config.loop);
	if (pio->intended_ns == 0)
		pio->intended_ns = pio->submitted_ns;
	if (pio->stream)
		stream_begin(pio->stream, pio->intended_ns);
	io_submit(pager->config.layer, &pio->io);
}

/* The I/O has ended, or never was for want of memory. */
static void settle(struct ese_page_io *pio, int status)
{
	struct ese_pager *pager = pio->pager;

	unlink_active(pager, pio);
	if (pio->stream)
		stream_account(pio->stream, pio->intended_ns, pio->submitted_ns,
			       loop_now_ns(pager->config.loop), pio->io.length_bytes, status);
	pager->counters.errors += status < 0;
	pio->status = status;
}

static bool begin(struct ese_pager *pager, struct ese_page_io *pio)
{
	assert(pio->count >= 1 && pio->count <= ESE_RUN_PAGES);
	assert(pio->first >= ESE_PAGE_FIRST && pio->first <= pager->config.pages &&
	       pio->count <= pager->config.pages - pio->first);
	pio->pager = pager;
	pio->status = 0;
	pio->bad = pio->unsure = 0;
	pio->buf = NULL;
	if (!pager->config.content)
		return true;
	pio->buf = buf_new(pager->pool, (size_t)pio->count * ESE_PAGE_BYTES);
	return pio->buf;
}

/* ---- reading ---- */

/* A write that a crash has torn is nobody's fault: redo makes the page whole.  If it does not, the
 * next reader reports it. */
static bool is_of_the_crash(const struct ese_pager *pager, int kind)
{
	return pager->newer_dbtime != UINT64_MAX &&
	       (kind == MISMATCH_TORN || kind == MISMATCH_CORRUPT);
}

static void report(struct ese_page_io *pio, unsigned index, int kind, uint8_t expected,
		   const struct ese_page_found *found)
{
	const struct ese_pager_config *config = &pio->pager->config;
	struct mismatch mismatch = {
	    .kind = (enum mismatch_kind)kind,
	    .host = config->host,
	    .volume = config->volume,
	    .offset_bytes = (pio->first + index) * ESE_PAGE_BYTES,
	    .at_ns = loop_now_ns(config->loop),
	    .expected_generation = expected,
	    .found_generation = found->flush,
	};

	pio->bad |= 1U << index;
	pio->kind[index] = mismatch.kind;
	pio->status = -EUCLEAN;
	if (is_of_the_crash(pio->pager, kind))
		return;
	if (config->check)
		config->check->mismatches[kind]++;
	if (config->mismatch)
		config->mismatch(config->arg, &mismatch);
}

/* The page of BYTES is what was written last, or it is reported. */
static void take_page(struct ese_page_io *pio, unsigned index, uint8_t *bytes)
{
	struct ese_pager *pager = pio->pager;
	struct ese_image *image = pio->images[index];
	uint64_t page = pio->first + index;
	struct ese_page_expect expect = {
	    .flush = ese_flush_map_get(&pager->map, page),
	    .newer_dbtime = pager->newer_dbtime,
	    .unwritten_is_zero = pager->config.unwritten_is_zero,
	};
	struct ese_page_found found;
	int kind = ese_page_check(&pager->config.identity, bytes, page, &expect, &found);
	int r = 0;

	pager->counters.verified++;
	if (kind < 0 && image)
		r = found.unwritten ? ese_image_initial(pager->config.rules, (uint32_t)page, image)
				    : ese_page_decode(bytes, image);
	if (r == -EBADMSG)
		kind = MISMATCH_CORRUPT;
	if (kind >= 0)
		report(pio, index, kind, expect.flush, &found);
	else if (r < 0)
		pio->status = r;
	else if (!found.unwritten && found.flush != expect.flush)
		ese_flush_map_adopt(&pager->map, page, found.flush);
}

static void take_shadow(struct ese_page_io *pio, unsigned index)
{
	struct ese_pager *pager = pio->pager;
	struct ese_image *image = pio->images[index];
	int r = 0;

	pager->counters.verified++;
	if (image)
		r = ese_shadow_get(pager->shadow, (uint32_t)(pio->first + index), image);
	if (r < 0)
		pio->status = r;
}

static void take_in(struct ese_page_io *pio)
{
	struct ese_pager *pager = pio->pager;

	pager->counters.reads++;
	pager->counters.pages_read += pio->count;
	for (unsigned i = 0; i < pio->count; i++) {
		if (pio->unsure >> i & 1) {
			pager->counters.unsure++;
			continue;
		}
		if (pager->config.check && pio->buf)
			pager->config.check->pages_checked++;
		if (pio->buf)
			take_page(pio, i, pio->buf->data + (size_t)i * ESE_PAGE_BYTES);
		else
			take_shadow(pio, i);
	}
}

static void read_ended(struct io *io);

static void start_read(struct ese_pager *pager, struct ese_page_io *pio)
{
	if (!begin(pager, pio)) {
		pio->status = -ENOMEM;
		pio->done(pio);
		return;
	}
	for (unsigned i = 0; i < pio->count; i++)
		if (ese_flush_map_unsure(&pager->map, pio->first + i))
			pio->unsure |= 1U << i;
	pager->reads++;
	submit(pio, IO_READ, read_ended);
}

static void start_waiting(struct ese_pager *pager)
{
	while (pager->waiting && pager->reads < ESE_PAGER_READS) {
		struct ese_page_io *pio = pager->waiting;

		pager->waiting = pio->next;
		start_read(pager, pio);
	}
}

static void read_ended(struct io *io)
{
	struct ese_page_io *pio = io->owner;
	struct ese_pager *pager = pio->pager;

	settle(pio, io->status);
	if (pio->status == 0)
		take_in(pio);
	pio->buf = buf_unref(pio->buf);
	pager->reads--;
	start_waiting(pager);
	pio->done(pio);
}

void ese_pager_read(struct ese_pager *pager, struct ese_page_io *pio)
{
	if (pager->reads < ESE_PAGER_READS) {
		start_read(pager, pio);
		return;
	}
	pager->counters.waits++;
	pio->next = NULL;
	if (pager->waiting)
		pager->waiting_last->next = pio;
	else
		pager->waiting = pio;
	pager->waiting_last = pio;
}

/* ---- writing ---- */

static void count_written(struct ese_pager *pager, uint64_t page)
{
	if (!pager->config.check || !pager->config.content ||
	    ese_flush_map_get(&pager->map, page) != ESE_FLUSH_NEVER)
		return;
	pager->config.check->pages_written++;
	if (pager->config.first_writes)
		(*pager->config.first_writes)++;
}

static void write_ended(struct io *io)
{
	struct ese_page_io *pio = io->owner;
	struct ese_pager *pager = pio->pager;

	settle(pio, io->status);
	for (unsigned i = 0; i < pio->count; i++) {
		if (pio->status == 0)
			count_written(pager, pio->first + i);
		ese_flush_map_end(&pager->map, pio->first + i, pio->flush[i], pio->status == 0);
	}
	if (pio->status == 0) {
		pager->counters.writes++;
		pager->counters.pages_written += pio->count;
	}
	pio->buf = buf_unref(pio->buf);
	pager->writes--;
	pio->done(pio);
}

/* A page rewritten as it is keeps its number: after a crash the map that was written back must
 * still agree with it. */
static uint8_t number_for(struct ese_pager *pager, const struct ese_page_io *pio, unsigned index)
{
	uint64_t page = pio->first + index;
	uint8_t last = ese_flush_map_get(&pager->map, page);
	bool kept = pio->clean >> index & 1 && !ese_flush_map_unsure(&pager->map, page) &&
		    last != ESE_FLUSH_NEVER && last != ESE_FLUSH_UNKNOWN;
	uint8_t next = ese_flush_map_begin(&pager->map, page);

	if (pio->born)
		return ESE_FLUSH_BORN;
	return kept ? last : next;
}

void ese_pager_write(struct ese_pager *pager, struct ese_page_io *pio)
{
	int r = begin(pager, pio) ? 0 : -ENOMEM;

	assert(pager->writes < ESE_PAGER_WRITES);
	for (unsigned i = 0; i < pio->count && r == 0 && !pager->config.content; i++)
		r = ese_shadow_put(pager->shadow, pio->images[i]);
	if (r < 0) {
		pio->buf = buf_unref(pio->buf);
		pio->status = r;
		pio->done(pio);
		return;
	}
	disturb_reads(pager, pio);
	for (unsigned i = 0; i < pio->count; i++) {
		pio->flush[i] = number_for(pager, pio, i);
		if (pio->buf)
			ese_page_encode(&pager->config.identity, pio->first + i, pio->flush[i],
					pio->images[i],
					pio->buf->data + (size_t)i * ESE_PAGE_BYTES);
	}
	pager->writes++;
	submit(pio, IO_WRITE, write_ended);
}
