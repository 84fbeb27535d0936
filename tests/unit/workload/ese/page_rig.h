/* SPDX-License-Identifier: MIT
 *
 * A small database file on a faulty device, with a model beside it: what each page must hold.  No
 * tree, no log: pages are changed at random and written, which is all that a pager sees.
 */
#ifndef SANLAB_TESTS_UNIT_WORKLOAD_ESE_PAGE_RIG_H
#define SANLAB_TESTS_UNIT_WORKLOAD_ESE_PAGE_RIG_H

#include <stdio.h>

#include "base/rng.h"
#include "harness/workload/ese/ese_checksum.h"
#include "harness/workload/ese/ese_file.h"
#include "tests/unit/workload/fake_device.h"

enum { RIG_VOLUME_BYTES = 48 << 20, RIG_INITIAL_PAGES = 700, RIG_SIGNATURE = 77 };

struct rig {
	struct loop *loop;
	struct fake_device fake;
	struct ese_image_rules rules;
	struct ese_layout layout;
	struct ese_identity identity;
	struct ese_file *file;
	struct ese_image_pool *pool;
	struct ese_image *model; /* by page: what is to be there */
	uint64_t dbtime;
	struct rng rng;
	bool content, known_zero, written_only;
	struct workload_check check;
	uint64_t mismatches;
	struct mismatch last;
	int status; /* of the last operation of the file; 1: not ended */
};

static inline void rig_mismatch(void *arg, const struct mismatch *mismatch)
{
	struct rig *rig = arg;

	rig->mismatches++;
	rig->last = *mismatch;
}

static inline void rig_done(void *arg, int status)
{
	struct rig *rig = arg;

	rig->status = status;
	loop_stop(rig->loop);
}

static inline int rig_wait(struct rig *rig)
{
	while (rig->status == 1)
		if (loop_run_until(rig->loop, loop_now_ns(rig->loop) + NS_PER_S) < 0)
			abort();
	return rig->status;
}

/* A file object anew, as a process that has just begun. */
static inline void rig_open(struct rig *rig)
{
	struct ese_file_config config = {
	    .loop = rig->loop,
	    .layer = &rig->fake.layer,
	    .layout = rig->layout,
	    .rules = &rig->rules,
	    .content = rig->content,
	    .known_zero = rig->known_zero,
	    .host = "h1",
	    .volume = "db1",
	    .check = &rig->check,
	    .mismatch = rig_mismatch,
	    .arg = rig,
	};

	ese_file_free(rig->file);
	rig->file = NULL;
	if (ese_file_new(&config, &rig->file) < 0)
		abort();
}

static inline int rig_create(struct rig *rig)
{
	rig->status = 1;
	ese_file_create(rig->file, &rig->identity, RIG_SIGNATURE, rig_done, rig);
	return rig_wait(rig);
}

static inline int rig_attach(struct rig *rig)
{
	rig->status = 1;
	ese_file_attach(rig->file, rig_done, rig);
	return rig_wait(rig);
}

static inline int rig_use(struct rig *rig)
{
	rig->status = 1;
	ese_file_use(rig->file, 1 << 20, rig_done, rig);
	return rig_wait(rig);
}

static inline int rig_persist(struct rig *rig)
{
	rig->status = 1;
	ese_file_persist_map(rig->file, rig_done, rig);
	return rig_wait(rig);
}

static inline int rig_detach(struct rig *rig)
{
	rig->status = 1;
	ese_file_detach(rig->file, rig->dbtime, rig_done, rig);
	return rig_wait(rig);
}

/* Created, attached, in use. */
static inline void rig_init(struct rig *rig, uint64_t seed, bool content, bool known_zero,
			    uint64_t delay_ns)
{
	struct ese_rules_config config = {.seed = 5,
					  .pages = RIG_INITIAL_PAGES,
					  .record_bytes = 2129,
					  .fanout = 40,
					  .full_leaves = 0.1};
	struct err err = {0};

	*rig = (struct rig){.content = content, .known_zero = known_zero};
	if (loop_new_virtual(1000, &rig->loop) < 0)
		abort();
	fake_init(&rig->fake, rig->loop, "db1", RIG_VOLUME_BYTES, delay_ns);
	rng_init(&rig->rng, seed, 1);
	if (!known_zero)
		memset(rig->fake.memory, 0xa5, RIG_VOLUME_BYTES);
	if (ese_rules_init(&rig->rules, &config, &err) < 0 ||
	    ese_layout_database(RIG_VOLUME_BYTES, 0, rig->rules.pages, 4, &rig->layout, &err) < 0)
		abort();
	rig->identity =
	    (struct ese_identity){.creation = {1, 2, 3, (uint8_t)seed}, .database = 3, .seed = 9};
	rig->pool = ese_image_pool_new();
	rig->model = calloc(rig->layout.pages, sizeof *rig->model);
	for (uint32_t page = ESE_PAGE_FIRST; page < rig->layout.pages; page++) {
		ese_image_init(&rig->model[page], rig->pool, page);
		if (ese_image_initial(&rig->rules, page, &rig->model[page]) < 0)
			abort();
	}
	rig_open(rig);
	if (rig_create(rig) < 0 || (content && (rig_open(rig), false)) || rig_attach(rig) < 0 ||
	    rig_use(rig) < 0)
		abort();
}

static inline void rig_free(struct rig *rig)
{
	ese_file_free(rig->file);
	ese_image_pool_free(rig->pool);
	free(rig->model);
	fake_done(&rig->fake);
	loop_free(rig->loop);
}

/* ---- pages ---- */

static inline uint64_t rig_pick(struct rig *rig)
{
	return ESE_PAGE_FIRST + rng_below(&rig->rng, rig->rules.pages - ESE_PAGE_FIRST);
}

/* One update of PAGE: new content where it is a leaf, and a dbtime. */
static inline void rig_change(struct rig *rig, uint64_t page)
{
	struct ese_image *image = &rig->model[page];

	image->dbtime = ++rig->dbtime;
	if (image->level == 0 && image->count)
		image->slots[rng_below(&rig->rng, image->count)].version++;
}

static inline void rig_pio_done(struct ese_page_io *pio)
{
	struct rig *rig = pio->owner;

	rig->status = pio->status;
	loop_stop(rig->loop);
}

static inline int rig_write(struct rig *rig, uint64_t first, unsigned count, uint32_t clean)
{
	struct ese_page_io pio = {
	    .first = first, .count = count, .clean = clean, .done = rig_pio_done, .owner = rig};

	for (unsigned i = 0; i < count; i++) {
		pio.images[i] = &rig->model[first + i];
		if (!(clean >> i & 1))
			rig_change(rig, first + i);
	}
	rig->status = 1;
	ese_pager_write(ese_file_pager(rig->file), &pio);
	return rig_wait(rig);
}

/* Reads and compares; returns the status; *RET_DIFFERENT counts good pages of another content than
 * the model's. */
static inline int rig_read(struct rig *rig, uint64_t first, unsigned count, struct ese_page_io *pio,
			   unsigned *ret_different)
{
	struct ese_image images[ESE_RUN_PAGES];

	*pio = (struct ese_page_io){
	    .first = first, .count = count, .done = rig_pio_done, .owner = rig};
	*ret_different = 0;
	for (unsigned i = 0; i < count; i++) {
		ese_image_init(&images[i], rig->pool, (uint32_t)(first + i));
		pio->images[i] = &images[i];
	}
	rig->status = 1;
	ese_pager_read(ese_file_pager(rig->file), pio);
	rig_wait(rig);
	for (unsigned i = 0; i < count; i++) {
		if (!((pio->bad | pio->unsure) >> i & 1) && pio->status != -EIO)
			*ret_different += !ese_image_equal(&images[i], &rig->model[first + i]);
		ese_image_clear(&images[i]);
	}
	return pio->status;
}

static inline void rig_checksum_done(void *arg)
{
	rig_done(arg, 0);
}

static inline struct ese_checksum_result rig_checksum(struct rig *rig)
{
	struct ese_checksum_config config = {
	    .loop = rig->loop,
	    .pager = ese_file_pager(rig->file),
	    .first = ESE_PAGE_FIRST,
	    .end = rig->rules.pages,
	    .written_only = rig->written_only,
	    .depth = 4,
	    .done = rig_checksum_done,
	    .arg = rig,
	};
	struct ese_checksum_result result;
	struct ese_checksum *checksum;

	rig->status = 1;
	if (ese_checksum_start(&config, &checksum) < 0)
		abort();
	rig_wait(rig);
	result = *ese_checksum_result(checksum);
	ese_checksum_free(checksum);
	return result;
}

/* COUNT reads and writes at random, one after the other; returns the pages moved. */
static inline uint64_t rig_load(struct rig *rig, uint64_t count, uint64_t *ret_different)
{
	struct ese_page_io pio;
	uint64_t pages = 0;
	unsigned different;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t first = rig_pick(rig);
		unsigned run = (unsigned)MIN_OF(1 + rng_below(&rig->rng, ESE_RUN_PAGES),
						rig->rules.pages - first);

		pages += run;
		if (rng_below(&rig->rng, 5) < 2) {
			rig_write(rig, first, run, (uint32_t)rng_u64(&rig->rng) & 0x24);
		} else {
			rig_read(rig, first, run, &pio, &different);
			*ret_different += different;
		}
	}
	return pages;
}

#endif
