/* SPDX-License-Identifier: MIT
 *
 * The checkpoint: once a second the pages are found that hold it back by more than its depth, and
 * it is put on the volume when it has moved on far enough.
 *
 * A checkpoint says where redo must begin and, for the flush map that is written with it, up to
 * which dbtime pages are known: a page with a later one may have been flushed since.  So the dbtime
 * is the one before the oldest update that is in no page on the volume.
 */
#include <errno.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_db_impl.h"

enum { STEPS = 8 }; /* a checkpoint is written when it has moved on by this part of its depth */

uint64_t db_depth(const struct ese_db *db)
{
	uint64_t ring = (uint64_t)db->area.files * ESE_LOG_FILE_BYTES;

	return MIN_OF(db->config.checkpoint_depth_bytes, ring / 2);
}

void keeper_state(const struct ese_db *db, struct ese_checkpoint *ret_checkpoint)
{
	uint64_t tip = ese_log_tip(db->log);
	struct ese_dirt oldest;
	bool dirty = writer_oldest(db, &oldest);

	*ret_checkpoint = (struct ese_checkpoint){
	    .signature = db->area.signature,
	    .epoch = db->epoch,
	    .redo_lgpos = dirty ? MIN_OF(oldest.lgpos_first, tip) : tip,
	    .flushed_lgpos = ese_log_flushed(db->log),
	    .dbtime = db->dbtime,
	    .used_pages = db->used_pages,
	    .root_page = db->rules.root,
	};
	if (db->passive)
		ret_checkpoint->redo_lgpos = MIN_OF(ret_checkpoint->redo_lgpos, db->replayed);
	/* Other updates of its record, whose pages may be dirty too, come a little earlier. */
	if (dirty)
		ret_checkpoint->dbtime =
		    oldest.dbtime_first > ESE_UPDATES_MAX
			? MIN_OF(oldest.dbtime_first - ESE_UPDATES_MAX, db->dbtime)
			: 0;
}

static void written(void *arg, int status)
{
	struct ese_db *db = arg;

	db->checkpoint_busy = false;
	if (status == 0) {
		db->checkpoint = db->checkpoint_next;
		ese_log_checkpoint_at(db->log, db->checkpoint.redo_lgpos);
	}
	db_goes_on(db);
}

static void map_written(void *arg, int status)
{
	struct ese_db *db = arg;

	if (status < 0 || db->state != DB_OPEN) {
		db->checkpoint_busy = false;
		db_goes_on(db);
		return;
	}
	ese_checkpoint_write(&db->pointer, &db->checkpoint_next, written, db);
}

static void maybe_write(struct ese_db *db)
{
	struct ese_checkpoint state;
	bool short_of_room = ese_log_short_of_room(db->log);
	uint64_t step = short_of_room ? 0 : db_depth(db) / STEPS;

	if (db->checkpoint_busy || db->checkpoint_held || db->state != DB_OPEN)
		return;
	keeper_state(db, &state);
	if (state.redo_lgpos <= db->checkpoint.redo_lgpos + step)
		return;
	db->checkpoint_next = state;
	db->checkpoint_busy = true;
	ese_file_persist_map(db->file, map_written, db);
}

static void tick(void *arg)
{
	struct ese_db *db = arg;
	uint64_t tip = ese_log_tip(db->log), depth = db_depth(db);

	if (!db->checkpoint_held && db->write_target != UINT64_MAX) {
		if (ese_log_short_of_room(db->log))
			db->write_target = tip;
		else if (tip > depth)
			db->write_target = MAX_OF(db->write_target, tip - depth);
	}
	writer_kick(db);
	maybe_write(db);
	loop_timer_set(db->env.loop, &db->tick,
		       loop_now_ns(db->env.loop) + db->config.constants.checkpoint_interval_ns);
}

void keeper_urge(struct ese_db *db)
{
	if (loop_timer_pending(&db->tick) &&
	    db->tick.deadline_ns > loop_now_ns(db->env.loop) + NS_PER_MS)
		loop_timer_set(db->env.loop, &db->tick, loop_now_ns(db->env.loop) + NS_PER_MS);
}

void keeper_start(struct ese_db *db)
{
	loop_timer_init(&db->tick, tick, db);
	loop_timer_set(db->env.loop, &db->tick,
		       loop_now_ns(db->env.loop) + db->config.constants.checkpoint_interval_ns);
}

void keeper_stop(struct ese_db *db)
{
	loop_timer_cancel(db->env.loop, &db->tick);
}

void ese_db_set_checkpoint_depth(struct ese_db *db, uint64_t bytes)
{
	db->config.checkpoint_depth_bytes = bytes;
}

void ese_db_hold_checkpoint(struct ese_db *db, bool hold)
{
	db->checkpoint_held = hold;
}
