/* SPDX-License-Identifier: MIT
 *
 * A database as a passive copy, and its way between passive and active.
 */
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_db_impl.h"

void ese_db_follow(struct ese_db *db, uint64_t *ret_replayed)
{
	assert(db->state == DB_OPEN && db->ops_running == 0);
	db->passive = true;
	/* A record that the end of the log cut off is replayed when the rest of it has come. */
	db->replayed = ese_log_next_segment(db->log);
	if (db->was_recovered && db->recovered.log.next_lgpos == db->replayed)
		db->replayed = db->recovered.log.end_lgpos;
	*ret_replayed = db->replayed;
}

void ese_db_replayed(struct ese_db *db, uint64_t lgpos)
{
	db->replayed = MAX_OF(db->replayed, lgpos);
}

void ese_db_lead(struct ese_db *db, uint64_t dbtime)
{
	assert(db->passive);
	db->passive = false;
	db->dbtime = MAX_OF(db->dbtime, dbtime);
	db->epoch = ese_log_lead(db->log);
}

void ese_db_set_streams(struct ese_db *db, const struct ese_db_streams *streams)
{
	db->env.streams = *streams;
	if (db->log)
		ese_log_set_stream(db->log, streams->log_write);
}

void ese_db_become_copy(struct ese_db *db, const struct ese_db *of)
{
	const struct ese_identity *identity = &ese_file_header(of->file)->identity;

	assert(db->state == DB_CLOSED);
	memcpy(db->config.creation, identity->creation, sizeof db->config.creation);
	db->config.id = identity->database;
	db->config.seed = identity->seed;
}

const struct ese_image *ese_db_cached(const struct ese_db *db, uint64_t page)
{
	const struct ese_frame *frame = ese_cache_find(db->cache, db->number, (uint32_t)page);

	return frame && frame->present ? &frame->image : NULL;
}

void ese_db_seeded(struct ese_db *db, uint64_t used_pages)
{
	db->used_pages = MAX_OF(db->used_pages, (uint32_t)used_pages);
}

uint64_t ese_db_log_from(const struct ese_db *db)
{
	return db->log_from;
}

void ese_db_forget_written(struct ese_db *db)
{
	if (db->env.check)
		db->env.check->pages_written -= db->first_writes;
	db->first_writes = 0;
}

bool ese_db_is_open(const struct ese_db *db)
{
	return db->state == DB_OPEN;
}

uint64_t ese_db_dbtime(const struct ese_db *db)
{
	return db->dbtime;
}
