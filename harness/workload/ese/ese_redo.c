/* SPDX-License-Identifier: MIT
 *
 * Redo of records in batches: one is being done while the next one fills.  A batch is what touches
 * at most ESE_PREREAD_MAX pages; they are fetched together, in order of their place, and its
 * records then applied in order of the log.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_recover.h"

enum { BATCH_RECORDS = 64, WRONG_KNOWN = 64 };

struct entry {
	struct ese_record record;
	uint64_t first_lgpos, end_lgpos;
};

struct batch {
	unsigned count;
	struct entry entries[BATCH_RECORDS];
	unsigned page_count;
	uint64_t pages[ESE_PREREAD_MAX]; /* sorted */
	struct ese_slots slots;
};

struct ese_redo {
	struct loop *loop;
	const struct ese_redo_ops *ops;
	void *ops_arg;
	void (*idle)(void *arg);
	void *arg;
	struct ese_redo_counters counters;
	struct batch batches[2];
	struct batch *filling, *doing;
	bool busy;   /* `doing` is being fetched or applied */
	bool pushed; /* `filling` is to be done as it is */
	bool pumping;
	bool fetched; /* the answer has come */
	int fetch_status;
	/* Pages known to be wrong: each is told once. */
	uint64_t wrong[WRONG_KNOWN];
};

int ese_redo_new(struct loop *loop, const struct ese_redo_ops *ops, void *ops_arg,
		 void (*idle)(void *arg), void *arg, struct ese_redo **ret_redo)
{
	struct ese_redo *redo = calloc(1, sizeof *redo);

	if (!redo)
		return -ENOMEM;
	redo->loop = loop;
	redo->ops = ops;
	redo->ops_arg = ops_arg;
	redo->idle = idle;
	redo->arg = arg;
	redo->filling = &redo->batches[0];
	redo->doing = &redo->batches[1];
	*ret_redo = redo;
	return 0;
}

struct ese_redo *ese_redo_free(struct ese_redo *redo)
{
	if (!redo)
		return NULL;
	assert(!redo->busy);
	free(redo);
	return NULL;
}

bool ese_redo_empty(const struct ese_redo *redo)
{
	return !redo->busy && redo->filling->count == 0;
}

const struct ese_redo_counters *ese_redo_counters(const struct ese_redo *redo)
{
	return &redo->counters;
}

/* ---- applying ---- */

static void found_wrong(struct ese_redo *redo, const struct ese_update *update, uint64_t found)
{
	unsigned place = (unsigned)(update->page % WRONG_KNOWN);

	if (redo->wrong[place] == update->page)
		return;
	redo->wrong[place] = update->page;
	redo->counters.pages_wrong++;
	if (redo->ops->lost_flush)
		redo->ops->lost_flush(redo->ops_arg, update->page, found, update->dbtime_before);
}

static int apply_update(struct ese_redo *redo, const struct ese_update *update,
			const struct entry *entry)
{
	uint64_t found = redo->ops->dbtime(redo->ops_arg, update->page);
	bool unreadable = found == ESE_DBTIME_UNREADABLE;
	bool mend = unreadable && update->kind == ESE_UPDATE_IMAGE;
	int r;

	redo->counters.dbtime = MAX_OF(redo->counters.dbtime, update->dbtime_after);
	if (!unreadable && found >= update->dbtime_after) {
		redo->counters.updates_there++;
		return 0;
	}
	/* Of a time when the page was dirty before: its image, logged since, is still to come.  If
	 * it does not come the page stays unreadable, which its owner sees at the end. */
	if (unreadable && !mend)
		return 0;
	if (found != update->dbtime_before && !mend) {
		found_wrong(redo, update, found);
		return 0;
	}
	r = redo->ops->apply(redo->ops_arg, update, entry->first_lgpos, entry->end_lgpos);
	if (r < 0)
		return r;
	redo->counters.pages_mended += mend;
	redo->counters.updates_done++;
	return 0;
}

static void apply_batch(struct ese_redo *redo, struct batch *batch)
{
	for (unsigned i = 0; i < batch->count && redo->counters.status == 0; i++) {
		struct entry *entry = &batch->entries[i];

		for (unsigned u = 0; u < entry->record.update_count; u++) {
			int r = apply_update(redo, &entry->record.updates[u], entry);

			if (r < 0) {
				redo->counters.status = r;
				return;
			}
		}
		redo->counters.records++;
		redo->counters.applied_lgpos = entry->end_lgpos;
	}
}

/* ---- batches ---- */

static void pump(struct ese_redo *redo);

static void batch_fetched(void *arg, int status)
{
	struct ese_redo *redo = arg;

	redo->fetched = true;
	redo->fetch_status = status;
	pump(redo);
}

static void begin_batch(struct ese_redo *redo)
{
	struct batch *batch = redo->filling;

	redo->filling = redo->doing;
	redo->doing = batch;
	redo->pushed = false;
	redo->busy = true;
	redo->fetched = false;
	redo->counters.fetches++;
	redo->ops->fetch(redo->ops_arg, batch->pages, batch->page_count, batch_fetched, redo);
}

static void end_batch(struct ese_redo *redo)
{
	struct batch *batch = redo->doing;

	if (redo->fetch_status < 0 && redo->counters.status == 0)
		redo->counters.status = redo->fetch_status;
	if (redo->fetch_status == 0) {
		apply_batch(redo, batch);
		redo->ops->release(redo->ops_arg, batch->pages, batch->page_count);
	}
	batch->count = batch->page_count = batch->slots.used = 0;
	redo->busy = false;
}

/* A fetch may end at once; `idle` comes last, since it may free the redo when it is empty. */
static void pump(struct ese_redo *redo)
{
	bool ended = false;

	if (redo->pumping)
		return;
	redo->pumping = true;
	for (;;) {
		if (redo->busy && redo->fetched) {
			end_batch(redo);
			ended = true;
		} else if (!redo->busy && redo->pushed && redo->filling->count &&
			   redo->counters.status == 0) {
			begin_batch(redo);
		} else {
			break;
		}
	}
	redo->pumping = false;
	if (ended)
		redo->idle(redo->arg);
}

/* Adds PAGE to the sorted list; false: no room. */
static bool add_page(uint64_t *pages, unsigned *count, uint64_t page)
{
	unsigned i = *count;

	for (unsigned k = 0; k < *count; k++)
		if (pages[k] == page)
			return true;
	if (*count == ESE_PREREAD_MAX)
		return false;
	for (; i > 0 && pages[i - 1] > page; i--)
		pages[i] = pages[i - 1];
	pages[i] = page;
	++*count;
	return true;
}

static bool batch_add(struct batch *batch, const struct ese_record *record, uint64_t first_lgpos,
		      uint64_t end_lgpos)
{
	uint64_t pages[ESE_PREREAD_MAX];
	unsigned page_count = batch->page_count, slots = 0;
	struct entry *entry = &batch->entries[batch->count];

	memcpy(pages, batch->pages, sizeof pages);
	for (unsigned i = 0; i < record->update_count; i++) {
		slots += record->updates[i].slot_count;
		if (!add_page(pages, &page_count, record->updates[i].page))
			return false;
	}
	if (batch->count == BATCH_RECORDS || slots > ESE_SLOTS_MAX - batch->slots.used)
		return false;
	memcpy(batch->pages, pages, sizeof pages);
	batch->page_count = page_count;
	*entry = (struct entry){*record, first_lgpos, end_lgpos};
	for (unsigned i = 0; i < record->update_count; i++) {
		struct ese_update *update = &entry->record.updates[i];
		struct ese_slot *to = &batch->slots.slots[batch->slots.used];

		if (!update->slot_count)
			continue;
		memcpy(to, update->slots, update->slot_count * sizeof *to);
		update->slots = to;
		batch->slots.used += update->slot_count;
	}
	batch->count++;
	return true;
}

bool ese_redo_add(struct ese_redo *redo, const struct ese_record *record, uint64_t first_lgpos,
		  uint64_t end_lgpos)
{
	if (redo->counters.status < 0)
		return false;
	if (!redo->pushed && batch_add(redo->filling, record, first_lgpos, end_lgpos))
		return true;
	/* Full: it is done when the one before it is. */
	redo->pushed = true;
	pump(redo);
	return redo->counters.status == 0 && !redo->pushed &&
	       batch_add(redo->filling, record, first_lgpos, end_lgpos);
}

void ese_redo_push(struct ese_redo *redo)
{
	redo->pushed = redo->filling->count > 0;
	pump(redo);
}
