/* SPDX-License-Identifier: MIT
 *
 * The life of a database: created, attached (recovered where it was not detached), detached, or
 * dropped as by a crash.  Each is a chain of callbacks; one at a time.
 *
 *   attach: header and flush map -> checkpoint -> [redo -> pages -> checkpoint] -> header says
 *           "in use" -> log opened
 *   detach: operations end -> log -> pages -> flush map, checkpoint -> header says "clean"
 *   drop:   no new I/O; what is under way ends -> everything in memory is forgotten
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_db_impl.h"

static void begin(struct ese_db *db, enum db_state state, workload_fn done, void *arg)
{
	assert(!db->done);
	db->done = done;
	db->arg = arg;
	db->status = 0;
	db->state = state;
}

static void finish(struct ese_db *db, enum db_state state, int status)
{
	workload_fn done = db->done;

	db->done = NULL;
	db->state = state;
	done(db->arg, status);
}

/* Nothing is under way any more: all that was in memory goes. */
static void close_all(struct ese_db *db, int status)
{
	keeper_stop(db);
	loop_timer_cancel(db->env.loop, &db->retry);
	writer_forget(db);
	db->recovery = ese_recovery_free(db->recovery);
	db->log = ese_log_close(db->log);
	ese_cache_drop_db(db->cache, db->number);
	db->pager = NULL;
	db->write_target = 0;
	db->hold_writes_ns = 0;
	db->failing_since_ns = 0;
	db->passive = false;
	db->unreadable = 0;
	db->draining = db->halted = false;
	if (db->config.verified) /* else only memory knows what the volume would hold */
		db->file = ese_file_free(db->file);
	finish(db, DB_CLOSED, status);
}

static int open_file(struct ese_db *db)
{
	const struct workload_device *device = db->env.place.device;
	struct ese_file_config config = {
	    .loop = db->env.loop,
	    .layer = device->layer,
	    .layout = db->layout,
	    .rules = &db->rules,
	    .content = db->config.verified,
	    .known_zero = device->known_zero,
	    .fill_stream = db->env.streams.fill,
	    .host = device->host,
	    .volume = device->volume,
	    .check = db->env.check,
	    .first_writes = &db->first_writes,
	    .mismatch = db->env.mismatch,
	    .arg = db->env.arg,
	};

	return db->file ? 0 : ese_file_new(&config, &db->file);
}

/* ---- create ---- */

static uint64_t signature_of(const struct ese_db *db)
{
	uint64_t signature = db->config.seed ^ (uint64_t)db->config.id << 32;

	for (unsigned i = 0; i < sizeof db->config.creation; i++)
		signature = (signature ^ db->config.creation[i]) * UINT64_C(0x100000001b3);
	return signature | 1;
}

static void created(void *arg, int status)
{
	close_all(arg, status);
}

static void checkpoints_made(void *arg, int status)
{
	struct ese_db *db = arg;
	struct ese_identity identity = {.database = db->config.id, .seed = db->config.seed};

	memcpy(identity.creation, db->config.creation, sizeof identity.creation);
	if (status == 0)
		status = open_file(db);
	if (status < 0)
		close_all(db, status);
	else
		ese_file_create(db->file, &identity, db->area.signature, created, db);
}

static void first_checkpoint_made(void *arg, int status)
{
	struct ese_db *db = arg;

	if (status < 0)
		close_all(db, status);
	else
		ese_checkpoint_write(&db->pointer, &db->checkpoint, checkpoints_made, db);
}

/* The checkpoint comes before the header that says there is a database; both slots, lest one of an
 * earlier life of the same database is the newer. */
void ese_db_create_at(struct ese_db *db, uint64_t lgpos, workload_fn done, void *arg)
{
	ese_db_forget_written(db);
	lgpos = lgpos / ESE_SEGMENT_BYTES * ESE_SEGMENT_BYTES;
	db->log_from = lgpos;
	begin(db, DB_BUSY, done, arg);
	db->area.signature = db->pointer.area.signature = signature_of(db);
	db->pointer.sequence = 0;
	db->checkpoint = (struct ese_checkpoint){
	    .signature = db->area.signature,
	    .clean = true,
	    .redo_lgpos = lgpos,
	    .flushed_lgpos = lgpos,
	    .used_pages = db->rules.pages,
	    .root_page = db->rules.root,
	    .levels = db->rules.levels,
	};
	ese_checkpoint_write(&db->pointer, &db->checkpoint, first_checkpoint_made, db);
}

void ese_db_create(struct ese_db *db, workload_fn done, void *arg)
{
	ese_db_create_at(db, ESE_LOG_FILE_BYTES, done, arg);
}

/* ---- attach ---- */

static void log_flushed(void *arg, uint64_t lgpos)
{
	(void)lgpos;
	writer_kick(arg);
}

static void log_file_closed(void *arg, uint64_t generation)
{
	struct ese_db *db = arg;

	if (db->env.file_closed)
		db->env.file_closed(db->env.arg, generation);
}

static void log_written(void *arg, uint64_t lgpos, const void *segments, uint32_t bytes)
{
	struct ese_db *db = arg;

	if (db->env.written)
		db->env.written(db->env.arg, lgpos, segments, bytes);
}

static void in_use(void *arg, int status)
{
	struct ese_db *db = arg;
	struct ese_log_config config = {
	    .loop = db->env.loop,
	    .area = db->area,
	    .start_lgpos = round_up_u64(db->checkpoint.flushed_lgpos, ESE_SEGMENT_BYTES),
	    .needed_lgpos = db->checkpoint.redo_lgpos,
	    .epoch = db->epoch,
	    .lazy_flush_ns = db->config.lazy_flush_ns,
	    .fua = db->config.log_fua,
	    .stream = db->env.streams.log_write,
	    .flushed = log_flushed,
	    .file_closed = log_file_closed,
	    .written = log_written,
	    .arg = db,
	};

	if (status == 0)
		status = ese_log_open(&config, &db->log, NULL);
	if (status < 0) {
		close_all(db, status);
		return;
	}
	db->write_target = 0;
	keeper_start(db);
	finish(db, DB_OPEN, 0);
}

/* The checkpoint says where the log goes on. */
static void use(void *arg, int status)
{
	struct ese_db *db = arg;

	if (status < 0) {
		close_all(db, status);
		return;
	}
	db->epoch = db->checkpoint.epoch + 1;
	db->state = DB_BUSY;
	ese_file_use(db->file, db->checkpoint.flushed_lgpos, in_use, db);
}

/* ---- recovery ---- */

static void map_of_recovered(void *arg, int status)
{
	struct ese_db *db = arg;

	if (status < 0)
		close_all(db, status);
	else
		ese_checkpoint_write(&db->pointer, &db->checkpoint, use, db);
}

static void pages_recovered(struct ese_db *db)
{
	const struct ese_log_read_result *log = &db->recovered.log;

	ese_pager_recovering(db->pager, UINT64_MAX);
	db->checkpoint = (struct ese_checkpoint){
	    .signature = db->area.signature,
	    .epoch = log->epoch,
	    .redo_lgpos = log->next_lgpos,
	    .flushed_lgpos = log->next_lgpos,
	    .dbtime = db->dbtime,
	    .used_pages = db->used_pages,
	    .root_page = db->rules.root,
	};
	db->state = DB_BUSY;
	ese_file_persist_map(db->file, map_of_recovered, db);
}

static void report_unreadable(struct ese_db *db)
{
	uint32_t page = ESE_PAGE_FIRST;
	enum mismatch_kind kind;

	for (; db->unreadable && page < db->layout.pages; page++) {
		struct ese_frame *frame = ese_cache_find(db->cache, db->number, page);

		if (!frame || !frame->unreadable)
			continue;
		/* Other kinds have been told when they were read. */
		kind = (enum mismatch_kind)(frame->unreadable - 1);
		if (kind == MISMATCH_TORN || kind == MISMATCH_CORRUPT)
			db_report(db, kind, page, 0, 0);
		db->recovered.pages_wrong++;
		db->recovered.status = -EUCLEAN;
		db->unreadable--;
	}
}

static void recovery_over(void *arg)
{
	struct ese_db *db = arg;

	db->recovery = ese_recovery_free(db->recovery);
	if (db->state == DB_DROPPING) {
		db_goes_on(db);
		return;
	}
	report_unreadable(db);
	db->was_recovered = true;
	db->dbtime = MAX_OF(db->dbtime, db->recovered.dbtime);
	if (db->recovered.status < 0) {
		db->status = db->recovered.status;
		db->state = DB_DROPPING;
	} else {
		db->state = DB_FLUSHING;
		db->write_target = UINT64_MAX;
		writer_kick(db);
	}
	db_goes_on(db);
}

static void recovered(void *arg, const struct ese_recovery_result *result)
{
	struct ese_db *db = arg;

	db->recovered = *result;
	loop_task_queue(db->env.loop, &db->recovered_task); /* it cannot be freed in here */
}

static void recover(struct ese_db *db)
{
	struct ese_recovery_config config = {
	    .loop = db->env.loop,
	    .area = db->area,
	    .checkpoint = db->checkpoint,
	    .stream = db->env.streams.log_read,
	    .ops = &ese_db_redo_ops,
	    .ops_arg = db,
	    .done = recovered,
	    .arg = db,
	};
	int r;

	db->state = DB_RECOVERING;
	ese_pager_recovering(db->pager, db->checkpoint.dbtime);
	r = ese_recover(&config, &db->recovery, NULL);
	if (r < 0)
		close_all(db, r);
}

static void checkpoint_read(void *arg, int status)
{
	struct ese_db *db = arg;
	bool clean = ese_file_header(db->file)->state == ESE_FILE_CLEAN;

	if (status < 0) {
		close_all(db, status == -ENOENT ? -EUCLEAN : status);
		return;
	}
	db->pager = ese_file_pager(db->file);
	db->dbtime = db->checkpoint.dbtime;
	db->used_pages = (uint32_t)db->checkpoint.used_pages;
	db->was_recovered = false;
	if (clean)
		use(db, 0);
	else
		recover(db);
}

static void file_attached(void *arg, int status)
{
	struct ese_db *db = arg;

	if (status < 0) {
		close_all(db, status);
		return;
	}
	db->area.signature = db->pointer.area.signature = ese_file_header(db->file)->log_signature;
	if (!db->config.verified && db->checkpoint.signature == db->area.signature)
		checkpoint_read(db, 0); /* the volume may keep nothing */
	else
		ese_checkpoint_read(&db->pointer, &db->checkpoint, checkpoint_read, db);
}

void ese_db_attach(struct ese_db *db, workload_fn done, void *arg)
{
	int r;

	begin(db, DB_BUSY, done, arg);
	r = open_file(db);
	if (r < 0)
		close_all(db, r);
	else
		ese_file_attach(db->file, file_attached, db);
}

/* ---- detach ---- */

static void file_detached(void *arg, int status)
{
	close_all(arg, status);
}

static void clean_checkpoint_written(void *arg, int status)
{
	struct ese_db *db = arg;

	if (status < 0)
		close_all(db, status);
	else
		ese_file_detach(db->file, db->dbtime, file_detached, db);
}

static void map_of_clean(void *arg, int status)
{
	struct ese_db *db = arg;

	if (status < 0)
		close_all(db, status);
	else
		ese_checkpoint_write(&db->pointer, &db->checkpoint, clean_checkpoint_written, db);
}

static void pages_flushed(struct ese_db *db)
{
	keeper_state(db, &db->checkpoint);
	db->checkpoint.clean = true;
	db->state = DB_BUSY;
	ese_file_persist_map(db->file, map_of_clean, db);
}

static void log_drained(void *arg, int status)
{
	struct ese_db *db = arg;

	if (status < 0) { /* what is in memory only cannot be written: as after a crash */
		db->status = status;
		db->state = DB_DROPPING;
		loop_task_queue(db->env.loop, &db->halted_task);
		return;
	}
	db->state = DB_FLUSHING;
	db->write_target = UINT64_MAX;
	writer_kick(db);
	db_goes_on(db);
}

void ese_db_detach(struct ese_db *db, workload_fn done, void *arg)
{
	assert(db->state == DB_OPEN);
	begin(db, DB_CLOSING, done, arg);
	keeper_stop(db);
	db_goes_on(db);
}

/* ---- drop ---- */

static void log_halted(void *arg, int status)
{
	struct ese_db *db = arg;

	(void)status;
	loop_task_queue(db->env.loop, &db->halted_task); /* it cannot be closed in here */
}

void db_give_up(struct ese_db *db, int status)
{
	db->status = status;
	db->state = DB_DROPPING;
	if (db->log)
		ese_log_halt(db->log, log_halted, db);
}

static void halted(void *arg)
{
	struct ese_db *db = arg;

	db->halted = true;
	db_goes_on(db);
}

/* Ours in the line end; the others look again. */
static void clear_line(struct ese_db *db)
{
	struct ese_page_waiters all = ese_cache_line(db->cache)->waiters;
	struct ese_page_waiter *waiter;

	ese_cache_line(db->cache)->waiters = (struct ese_page_waiters){0};
	while ((waiter = ese_page_wake(&all)))
		waiter->step(waiter, 0);
}

void ese_db_drop(struct ese_db *db, workload_fn done, void *arg)
{
	assert(db->state == DB_OPEN);
	begin(db, DB_DROPPING, done, arg);
	keeper_stop(db);
	db->ending = true; /* not before all of this has been done */
	clear_line(db);
	db->ending = false;
	ese_log_halt(db->log, log_halted, db);
}

/* ---- where they wait for I/O ---- */

static bool idle(const struct ese_db *db)
{
	return !db->reads_out && !db->writes_out && !db->checkpoint_busy && !db->recovery;
}

void db_goes_on(struct ese_db *db)
{
	if (db->ending || db->writing_now)
		return;
	switch (db->state) {
	case DB_CLOSING:
		if (db->ops_running || db->draining)
			return;
		db->draining = true;
		ese_log_drain(db->log, log_drained, db);
		return;
	case DB_FLUSHING:
		if (!idle(db) || ese_cache_counters(db->cache, db->number)->dirty)
			return;
		if (db->log)
			pages_flushed(db);
		else
			pages_recovered(db);
		return;
	case DB_DROPPING:
		if (!idle(db) || db->ops_running || (db->log && !db->halted))
			return;
		close_all(db, db->status);
		return;
	default:
		return;
	}
}

void db_life_init(struct ese_db *db)
{
	loop_task_init(&db->recovered_task, recovery_over, db);
	loop_task_init(&db->halted_task, halted, db);
}

double ese_db_progress(const struct ese_db *db)
{
	if (!db->done)
		return 1;
	return db->file ? ese_file_progress(db->file) : 0;
}
