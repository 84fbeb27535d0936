/* SPDX-License-Identifier: MIT
 *
 * Inside of a database; used by these only:
 *   ese_db.c     the object, its operations' ends
 *   ese_life.c   create, attach, detach, drop
 *   ese_fetch.c  pages that are not cached
 *   ese_tree.c   operations on the tree
 *   ese_change.c updates: log, images, dirt
 *   ese_writer.c dirty pages to the volume
 *   ese_keeper.c once a second: checkpoint depth and checkpoint
 *   ese_db_redo.c what redo needs of a database
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_DB_IMPL_H
#define SANLAB_HARNESS_WORKLOAD_ESE_DB_IMPL_H

#include "harness/workload/ese/ese_db.h"

enum {
	DB_READS = 128,	       /* reads under way */
	DB_GIVE_UP_MS = 30000, /* of failing writes, when nothing goes on without them */
	DB_RETRY_MS = 100,     /* after a write that failed */
};

enum db_state {
	DB_CLOSED,
	DB_BUSY,       /* being created, attached or recovered */
	DB_RECOVERING, /* redo runs: pages, but no operations */
	DB_OPEN,
	DB_CLOSING,  /* detach: operations under way end */
	DB_FLUSHING, /* all dirty pages are being written: recovery's end, or detach */
	DB_DROPPING,
};

struct db_read {
	struct ese_page_io pio;
	struct ese_db *db;
	struct ese_frame *frames[ESE_RUN_PAGES];
	struct db_read *next;
};

struct db_write {
	struct ese_page_io pio;
	struct ese_db *db;
	struct ese_frame *frames[ESE_RUN_PAGES];
	struct ese_dirt dirt[ESE_RUN_PAGES];
	bool checkpoint, busy;
	struct db_write *next;
};

struct ese_db {
	struct ese_db_env env;
	struct ese_db_config config;
	char name[64];
	struct ese_image_rules rules;
	struct ese_access access;
	struct rng rng;
	struct ese_cache *cache;
	unsigned number;
	enum db_state state;
	struct ese_db_counters counters;

	/* Its parts. */
	struct ese_layout layout;
	struct ese_file *file;
	struct ese_pager *pager;
	struct ese_log_area area;
	struct ese_checkpointer pointer;
	bool pointer_made;
	struct ese_log *log;
	struct ese_recovery *recovery;
	struct ese_recovery_result recovered;
	bool was_recovered;
	unsigned unreadable; /* pages that redo has not made whole yet */
	struct loop_task recovered_task, halted_task;
	struct db_redo_fetch {
		struct ese_page_waiter waiter;
		const uint64_t *pages;
		unsigned count, pinned;
		void (*done)(void *arg, int status);
		void *arg;
	} fetch;

	/* The tree. */
	uint64_t dbtime;
	uint32_t used_pages;
	uint64_t ops_running;
	struct ese_image scratch[ESE_UPDATES_MAX]; /* first updates of clean pages, as images */

	/* Pages in and out. */
	struct db_read *reads, *free_reads;
	struct db_write *writes, *free_writes;
	unsigned reads_out, writes_out, checkpoint_out;
	struct ese_frame *queue_first, *queue_last; /* victims to be written */
	unsigned queue_count;
	bool writing_now;	   /* writer_kick is running */
	uint64_t write_target;	   /* pages whose lgpos_first is below are to be written */
	uint64_t failing_since_ns; /* writes of pages; 0: the last one succeeded */
	uint64_t hold_writes_ns;   /* after an error: not before */
	struct loop_task chores;   /* victims, stalls */
	struct loop_timer tick, retry;

	/* A passive copy: redo stands at `replayed`. */
	bool passive;
	uint64_t replayed;
	uint64_t log_from;     /* of one that was made (again) in this run */
	uint64_t first_writes; /* its part of env.check->pages_written */

	/* Checkpoint. */
	struct ese_checkpoint checkpoint;      /* the last one on the volume */
	struct ese_checkpoint checkpoint_next; /* being written */
	uint32_t epoch;
	bool checkpoint_busy, checkpoint_held;

	/* create, attach, detach, drop */
	workload_fn done;
	void *arg;
	int status;
	bool draining, ending, halted;
};

/* ese_db.c */
void db_end_op(struct ese_op *op, int status);
void db_unpin(struct ese_op *op);
/* A page was found wrong by other than the pager. */
void db_report(struct ese_db *db, enum mismatch_kind kind, uint64_t page, uint64_t expected,
	       uint64_t found);
uint64_t db_flushed_lgpos(const struct ese_db *db); /* pages up to there may be written */

/* ese_fetch.c */
/* The frame of PAGE if it is there.  NULL: WAITER will be stepped when it is, or when there is a
 * frame to be had; *ret_hold: it may keep what it has pinned until then. */
struct ese_frame *db_fetch(struct ese_db *db, uint32_t page, struct ese_page_waiter *waiter,
			   bool *ret_hold);
/* WAITER found no free frame: into the line.  True: it may keep what it has pinned. */
bool db_stall(struct ese_db *db, struct ese_page_waiter *waiter);
/* WAITER has ended. */
void db_waiter_ends(struct ese_db *db, const struct ese_page_waiter *waiter);
/* Begins to read PAGE if it is not there; nobody waits for it yet. */
void db_preread(struct ese_db *db, uint32_t page);
/* A frame for a page that is not there; NULL: none is free, or it is not WAITER's turn. */
struct ese_frame *db_take_frame(struct ese_db *db, uint32_t page,
				const struct ese_page_waiter *waiter);
bool db_keeps(const struct ese_db *db, const struct ese_frame *frame);
void db_arrived(struct ese_db *db, struct ese_frame *frame);
void db_chores(void *arg);

/* ese_tree.c */
void db_op_begin(struct ese_op *op);

/* ese_change.c */
/* Logs RECORD and applies it to FRAMES (one an update).  0, *ret_end set; -EAGAIN: no room in the
 * log; other errors.  On errors nothing has changed. */
int db_change(struct ese_db *db, struct ese_record *record, struct ese_frame *const *frames,
	      uint64_t *ret_end);
int db_scratch_init(struct ese_db *db);

/* ese_writer.c */
int writer_init(struct ese_db *db);
void writer_add_victim(struct ese_db *db, struct ese_frame *frame);
void writer_kick(struct ese_db *db);
/* The oldest update that is in no page on the volume; false: there is none. */
bool writer_oldest(const struct ese_db *db, struct ese_dirt *ret_oldest);
void writer_forget(struct ese_db *db); /* the queue */

/* ese_life.c */
void db_life_init(struct ese_db *db);
void db_give_up(struct ese_db *db, int status); /* while flushing: pages cannot be written */
void db_goes_on(struct ese_db *db); /* an I/O or operation has ended: detach and drop go on */

/* ese_keeper.c */
uint64_t db_depth(const struct ese_db *db); /* of the checkpoint, as far as the ring allows */
void keeper_start(struct ese_db *db);
void keeper_stop(struct ese_db *db);
void keeper_urge(struct ese_db *db); /* the log is full */
/* What a checkpoint taken now says. */
void keeper_state(const struct ese_db *db, struct ese_checkpoint *ret_checkpoint);

#endif
