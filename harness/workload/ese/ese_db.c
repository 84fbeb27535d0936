/* SPDX-License-Identifier: MIT
 *
 * The database object: what it consists of, how operations begin and end.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_db_impl.h"

const char *const ese_op_names[] = {"insert", "delete", "replace", "read"};

static int check_constants(const struct ese_constants *constants, struct err *err)
{
	if (constants->write_depth < 1 || constants->write_depth > ESE_PAGER_WRITES)
		return err_set(err, -EINVAL, "%u writes at a time are not within 1 and %d",
			       constants->write_depth, ESE_PAGER_WRITES);
	if (constants->coalesce_bytes < ESE_PAGE_BYTES)
		return err_set(err, -EINVAL, "I/Os of up to %u bytes are shorter than a page",
			       constants->coalesce_bytes);
	if (constants->extent_pages < 1 || constants->checkpoint_interval_ns < NS_PER_MS)
		return err_set(err, -EINVAL, "an extent or interval is too small");
	return 0;
}

static int lay_out(struct ese_db *db, struct err *err)
{
	const struct ese_db_place *place = &db->env.place;
	bool apart = place->log_device && place->log_device != place->device;
	struct ese_layout log;
	int r;

	r = ese_layout_database(place->device->layer->size_bytes, db->config.max_bytes,
				db->rules.pages, apart ? 0 : db->config.log_files, &db->layout,
				err);
	if (r < 0)
		return r;
	log = db->layout;
	if (apart)
		r = ese_layout_log(place->log_device->layer->size_bytes, place->log_base_bytes,
				   db->config.log_files, &log, err);
	if (r < 0)
		return r;
	db->area = (struct ese_log_area){
	    .layer = (apart ? place->log_device : place->device)->layer,
	    .checkpoint_offset_bytes = log.checkpoint_offset_bytes,
	    .ring_offset_bytes = log.ring_offset_bytes,
	    .files = log.log_files,
	};
	return 0;
}

static int init_parts(struct ese_db *db, struct err *err)
{
	int number, r;

	db->reads = calloc(DB_READS, sizeof *db->reads);
	for (unsigned i = 0; db->reads && i < DB_READS; i++) {
		db->reads[i].db = db;
		db->reads[i].next = db->free_reads;
		db->free_reads = &db->reads[i];
	}
	r = db->reads ? writer_init(db) : -ENOMEM;
	if (r == 0)
		r = ese_checkpointer_init(&db->pointer, &db->area);
	if (r < 0)
		return err_set(err, r, "out of memory");
	db->pointer_made = true;
	number = ese_cache_add_db(db->cache, db);
	if (number < 0)
		return err_set(err, number, "a server cannot have more than %d databases",
			       ESE_CACHE_DATABASES_MAX);
	db->number = (unsigned)number;
	db_scratch_init(db);
	return 0;
}

int ese_db_new(const struct ese_db_env *env, const struct ese_db_config *config,
	       struct ese_db **ret_db, struct err *err)
{
	const struct ese_constants *constants = &config->constants;
	struct ese_rules_config rules = {
	    .seed = config->seed,
	    .pages = config->initial_bytes / ESE_PAGE_BYTES,
	    .record_bytes = constants->record_bytes,
	    .fanout = constants->fanout,
	    .children_max = constants->children_max,
	    .full_leaves = constants->full_leaves,
	};
	struct ese_db *db;
	int r = check_constants(constants, err);

	if (r < 0)
		return r;
	db = calloc(1, sizeof *db);
	if (!db)
		return err_set(err, -ENOMEM, "out of memory");
	db->env = *env;
	db->config = *config;
	snprintf(db->name, sizeof db->name, "%s", config->name);
	db->config.name = db->name;
	db->cache = env->cache;
	rng_init(&db->rng, env->seed, rng_stream_of("ese-db"));
	loop_task_init(&db->chores, db_chores, db);
	db_life_init(db);
	r = ese_rules_init(&db->rules, &rules, err);
	if (r == 0)
		r = lay_out(db, err);
	if (r == 0)
		r = init_parts(db, err);
	if (r < 0) {
		ese_db_free(db);
		return r;
	}
	ese_access_init(&db->access, &config->keys, db->rules.count[0], config->seed);
	*ret_db = db;
	return 0;
}

struct ese_db *ese_db_free(struct ese_db *db)
{
	if (!db)
		return NULL;
	assert(db->state == DB_CLOSED && !db->ops_running);
	loop_task_cancel(db->env.loop, &db->chores);
	loop_task_cancel(db->env.loop, &db->recovered_task);
	loop_task_cancel(db->env.loop, &db->halted_task);
	loop_timer_cancel(db->env.loop, &db->retry);
	ese_file_free(db->file);
	if (db->pointer_made)
		ese_checkpointer_fini(&db->pointer);
	free(db->reads);
	free(db->writes);
	free(db);
	return NULL;
}

/* ---- operations ---- */

void db_unpin(struct ese_op *op)
{
	while (op->depth)
		op->path[--op->depth]->pins--;
}

void db_end_op(struct ese_op *op, int status)
{
	struct ese_db *db = op->db;

	db_unpin(op);
	db_waiter_ends(db, &op->page_waiter);
	assert(db->ops_running);
	db->ops_running--;
	db->counters.ops[op->kind]++;
	op->done(op, status);
	db_goes_on(db);
}

uint64_t ese_db_pick_key(struct ese_db *db)
{
	return ese_access_key(&db->access, &db->rng);
}

void ese_db_submit(struct ese_db *db, struct ese_op *op)
{
	op->db = db;
	op->depth = op->touched = 0;
	op->page_reads = 0;
	op->dbtime = 0;
	if (op->pick)
		op->key = ese_db_pick_key(db);
	op->chance = rng_unit(&db->rng);
	db->ops_running++;
	if (db->state != DB_OPEN || db->passive) {
		db_end_op(op, db->state == DB_OPEN ? -EROFS : -ECANCELED);
		return;
	}
	db_op_begin(op);
}

/* ---- what others ask ---- */

uint64_t db_flushed_lgpos(const struct ese_db *db)
{
	return db->log ? ese_log_flushed(db->log) : UINT64_MAX;
}

void db_report(struct ese_db *db, enum mismatch_kind kind, uint64_t page, uint64_t expected,
	       uint64_t found)
{
	struct mismatch mismatch = {
	    .kind = kind,
	    .host = db->env.place.device->host,
	    .volume = db->env.place.device->volume,
	    .offset_bytes = page * ESE_PAGE_BYTES,
	    .at_ns = loop_now_ns(db->env.loop),
	    .expected_generation = expected,
	    .found_generation = found,
	};

	if (db->env.check)
		db->env.check->mismatches[kind]++;
	if (db->env.mismatch)
		db->env.mismatch(db->env.arg, &mismatch);
}

const struct ese_db_counters *ese_db_counters(const struct ese_db *db)
{
	return &db->counters;
}

const struct ese_image_rules *ese_db_rules(const struct ese_db *db)
{
	return &db->rules;
}

unsigned ese_db_number(const struct ese_db *db)
{
	return db->number;
}

uint64_t ese_db_used_pages(const struct ese_db *db)
{
	return db->used_pages;
}

uint64_t ese_db_pages(const struct ese_db *db)
{
	uint64_t grown = db->used_pages > db->rules.pages ? db->used_pages - db->rules.pages : 0;

	return MIN_OF(db->rules.pages + round_up_u64(grown, db->config.constants.extent_pages),
		      db->layout.pages);
}

struct ese_pager *ese_db_pager(struct ese_db *db)
{
	return db->pager;
}

struct ese_log *ese_db_log(struct ese_db *db)
{
	return db->log;
}

const struct ese_log_area *ese_db_log_area(const struct ese_db *db)
{
	return &db->area;
}

const struct ese_recovery_result *ese_db_recovery(const struct ese_db *db)
{
	return db->was_recovered ? &db->recovered : NULL;
}
