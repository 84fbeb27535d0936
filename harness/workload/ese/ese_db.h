/* SPDX-License-Identifier: MIT
 *
 * One database: a B+ tree in the server's cache, its pager and its log, on the volumes it is given.
 *
 * Operations are asynchronous: each runs down the tree, waits for the pages that are not cached,
 * and changes the tree in one step once all of its pages are there.  So operations of many
 * sessions interleave at page granularity without latches.  A durable update ends when its log is
 * on the device; a lazy one when it is in the log buffer.
 *
 * Dirty pages are written by the writer (ese_writer.c): victims of the cache, and pages that hold
 * the checkpoint back by more than its depth.
 *
 * Life: new -> create | attach (callback) -> submit... -> detach (callback) -> free.  drop takes
 * the place of detach where a crash is played.  Threading: the loop's thread.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_DB_H
#define SANLAB_HARNESS_WORKLOAD_ESE_DB_H

#include "base/io.h"
#include "base/loop.h"
#include "base/rng.h"
#include "harness/workload/ese/ese_access.h"
#include "harness/workload/ese/ese_cache.h"
#include "harness/workload/ese/ese_constants.h"
#include "harness/workload/ese/ese_file.h"
#include "harness/workload/ese/ese_log.h"
#include "harness/workload/ese/ese_recover.h"
#include "harness/workload/workload.h"

enum ese_op_kind { ESE_OP_INSERT, ESE_OP_DELETE, ESE_OP_REPLACE, ESE_OP_READ, ESE_OP_KINDS };
extern const char *const ese_op_names[];

/* One transaction.  The submitter owns it until `done`, which may come from within
 * ese_db_submit.  Statuses: 0; -ENOENT nothing to delete, replace or read in the leaf; -EEXIST the
 * key is there; -ENOSPC the database is full; -EIO and those of struct io: a page could not be
 * read; -ECANCELED: the database was dropped. */
struct ese_op {
	enum ese_op_kind kind;
	bool lazy;
	/* The key by the access pattern; delete, replace and read then take the nearest record of
	 * the leaf.  Else exactly `key`. */
	bool pick;
	uint64_t key;
	void (*done)(struct ese_op *op, int status);
	void *owner;
	/* Answers, valid in done. */
	struct ese_slot item; /* as found, or as it has become */
	uint64_t dbtime;      /* of the update, 0: none */
	unsigned page_reads;  /* that it had to wait for */
	/* Private. */
	struct ese_db *db;
	struct ese_page_waiter page_waiter;
	struct ese_log_waiter log_waiter;
	struct ese_frame *path[ESE_LEVELS_MAX];
	double chance;	 /* of what it does beside its own */
	uint8_t depth;	 /* frames of the path, pinned */
	uint8_t touched; /* levels that have been counted as a use */
};

/* Where a database lives. */
struct ese_db_place {
	const struct workload_device *device;
	const struct workload_device *log_device; /* the same: behind the database */
	uint64_t log_base_bytes;		  /* on another one: where its log begins */
};

/* Streams that it accounts to, by role; a NULL one is not accounted. */
struct ese_db_streams {
	struct stream *db_read, *db_write, *log_write, *log_read, *fill;
};

struct ese_db_config {
	const char *name;
	uint8_t creation[16];	/* of the run, should it be created */
	uint32_t id;		/* of the database in that run */
	uint64_t seed;		/* of its content, should it be created */
	uint64_t initial_bytes; /* a new database */
	uint64_t max_bytes;	/* what it may grow to */
	bool verified;		/* content: verified; else none */
	uint64_t checkpoint_depth_bytes;
	unsigned log_files;
	bool log_fua;
	uint64_t lazy_flush_ns;
	struct ese_keys_config keys;
	struct ese_constants constants;
};

struct ese_db_env {
	struct loop *loop;
	uint64_t seed; /* of what is drawn while it runs */
	struct ese_cache *cache;
	struct ese_db_place place;
	struct ese_db_streams streams;
	struct workload_check *check;
	void (*mismatch)(void *arg, const struct mismatch *mismatch);
	/* The log: a file is complete; segments were written (block mode).  May be NULL. */
	void (*file_closed)(void *arg, uint64_t generation);
	void (*written)(void *arg, uint64_t lgpos, const void *segments, uint32_t bytes);
	void *arg;
};

struct ese_db_counters {
	uint64_t ops[ESE_OP_KINDS];
	uint64_t durable; /* updates that waited for their log */
	uint64_t splits, node_splits, touches;
	uint64_t stalls;    /* operations that waited for a free frame */
	uint64_t log_waits; /* updates that waited for room in the log */
	uint64_t read_ios, read_pages;
	uint64_t write_ios, written_pages;
	uint64_t written_evict, written_checkpoint, written_neighbour; /* pages, by the reason */
	uint64_t io_errors;
};

struct ese_db;

int ese_db_new(const struct ese_db_env *env, const struct ese_db_config *config,
	       struct ese_db **ret_db, struct err *err);
struct ese_db *ese_db_free(struct ese_db *db); /* nothing may be under way */

/* A new database at its place. */
void ese_db_create(struct ese_db *db, workload_fn done, void *arg);
/* The one that is there; runs soft recovery first if it was not detached. */
void ese_db_attach(struct ese_db *db, workload_fn done, void *arg); /* -ENOENT: there is none */
/* Takes no more operations, ends those under way, writes everything, marks the database clean. */
void ese_db_detach(struct ese_db *db, workload_fn done, void *arg);
/* Everything in memory is gone, as after a crash: operations end with -ECANCELED, DONE is called
 * when the last I/O under way has ended.  Then attach. */
void ese_db_drop(struct ese_db *db, workload_fn done, void *arg);
double ese_db_progress(const struct ese_db *db); /* of create, attach, detach: 0..1 */

void ese_db_submit(struct ese_db *db, struct ese_op *op);
/* The share of operations of each kind is the server's; keys are drawn here. */
uint64_t ese_db_pick_key(struct ese_db *db);

const struct ese_db_counters *ese_db_counters(const struct ese_db *db);
const struct ese_image_rules *ese_db_rules(const struct ese_db *db);
unsigned ese_db_number(const struct ese_db *db); /* in the cache */
uint64_t ese_db_pages(const struct ese_db *db);	 /* of the file now, in whole extents */
uint64_t ese_db_used_pages(const struct ese_db *db);
struct ese_pager *ese_db_pager(struct ese_db *db); /* NULL while not attached */
struct ese_log *ese_db_log(struct ese_db *db);	   /* NULL while not attached */
const struct ese_log_area *ese_db_log_area(const struct ese_db *db);
/* Of the last attach; NULL: it needed none. */
const struct ese_recovery_result *ese_db_recovery(const struct ese_db *db);
/* Redo on this database (ARG: the database): recovery's, and a passive copy's. */
extern const struct ese_redo_ops ese_db_redo_ops;
/* ---- a passive copy (ese_dag.h) ---- */

/* A copy that is to be seeded: as a new database, but its log begins where the active's stands. */
void ese_db_create_at(struct ese_db *db, uint64_t lgpos, workload_fn done, void *arg);
/* Attached: takes no operations (-EROFS) but redo; what is not replayed yet stays in its log.  The
 * log goes on at ese_log_next_segment, redo at *ret_replayed. */
void ese_db_follow(struct ese_db *db, uint64_t *ret_replayed);
void ese_db_replayed(struct ese_db *db, uint64_t lgpos);
/* All is replayed, up to DBTIME: it takes operations. */
void ese_db_lead(struct ese_db *db, uint64_t dbtime);
void ese_db_set_streams(struct ese_db *db, const struct ese_db_streams *streams);
/* Closed, before ese_db_create_at: the same database as OF, which is attached. */
void ese_db_become_copy(struct ese_db *db, const struct ese_db *of);
/* For the seed: what the cache has of a page, newer than the volume's; NULL: nothing. */
const struct ese_image *ese_db_cached(const struct ese_db *db, uint64_t page);
/* Pages up to USED_PAGES have been written beside the cache. */
void ese_db_seeded(struct ese_db *db, uint64_t used_pages);
/* Where its log begins, as far as it was made in this run; else 0. */
uint64_t ese_db_log_from(const struct ese_db *db);
/* Its pages are lost, or about to be made anew: nobody will read back what was written of them. */
void ese_db_forget_written(struct ese_db *db);
bool ese_db_is_open(const struct ese_db *db);
uint64_t ese_db_dbtime(const struct ese_db *db);

/* The depth can be changed while it runs (a copy becomes active). */
void ese_db_set_checkpoint_depth(struct ese_db *db, uint64_t bytes);
/* Soft recovery's test holds the checkpoint where it is, so that the log grows to its files. */
void ese_db_hold_checkpoint(struct ese_db *db, bool hold);

#endif
