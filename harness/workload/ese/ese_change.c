/* SPDX-License-Identifier: MIT
 *
 * One change of a database: into the log, then into the images, in one step.
 *
 * The first update of a page that is clean is logged as the page as it becomes (its image), so that
 * recovery can make a page whole whose write a crash has torn.
 */
#include <assert.h>
#include <errno.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_db_impl.h"

int db_scratch_init(struct ese_db *db)
{
	for (unsigned i = 0; i < ESE_UPDATES_MAX; i++)
		ese_image_init(&db->scratch[i], ese_cache_images(db->cache), 0);
	return 0;
}

/* What UPDATE makes of FRAME's image, as an update that says so. */
static int as_image(struct ese_image *scratch, const struct ese_frame *frame,
		    struct ese_update *update)
{
	struct ese_update whole = *update;
	int r = ese_image_copy(scratch, &frame->image);

	if (r == 0)
		r = ese_image_apply(scratch, update);
	if (r < 0)
		return r;
	whole.kind = ESE_UPDATE_IMAGE;
	whole.level = scratch->level;
	whole.previous = scratch->previous;
	whole.next = scratch->next;
	whole.base_first = scratch->base_first;
	whole.base_count = scratch->base_count;
	whole.slot_count = scratch->count;
	whole.slots = scratch->slots;
	*update = whole;
	return 0;
}

/* Nothing may fail once the record is in the log. */
static int make_room(struct ese_frame *frame, const struct ese_update *update)
{
	unsigned count = frame->image.count;

	if (update->kind == ESE_UPDATE_IMAGE)
		count = MAX_OF(count, update->slot_count);
	else if (update->kind == ESE_UPDATE_PUT || update->kind == ESE_UPDATE_ENTRY)
		count++;
	return ese_image_reserve(&frame->image, MIN_OF(count, ESE_ITEMS_MAX));
}

static int prepare(struct ese_db *db, struct ese_record *record, struct ese_frame *const *frames)
{
	for (unsigned i = 0; i < record->update_count; i++) {
		struct ese_update *update = &record->updates[i];
		int r;

		update->page = frames[i]->page;
		update->dbtime_before = frames[i]->image.dbtime;
		update->dbtime_after = db->dbtime + i + 1;
		r = update->kind != ESE_UPDATE_IMAGE && !frames[i]->dirty
			? as_image(&db->scratch[i], frames[i], update)
			: 0;
		if (r == 0)
			r = make_room(frames[i], update);
		if (r < 0)
			return r;
	}
	return 0;
}

int db_change(struct ese_db *db, struct ese_record *record, struct ese_frame *const *frames,
	      uint64_t *ret_end)
{
	uint64_t first, end;
	int r = prepare(db, record, frames);

	if (r == 0)
		r = ese_log_append(db->log, record, &first, &end);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < record->update_count; i++) {
		r = ese_image_apply(&frames[i]->image, &record->updates[i]);
		assert(r == 0);
		if (!frames[i]->present) /* a new page */
			db_arrived(db, frames[i]);
		ese_cache_dirty(db->cache, frames[i], first, end);
	}
	db->dbtime += record->update_count;
	*ret_end = end;
	return 0;
}
