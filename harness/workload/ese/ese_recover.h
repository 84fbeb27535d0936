/* SPDX-License-Identifier: MIT
 *
 * Soft recovery: from the checkpoint through the log to its end, each update done again on pages
 * that do not have it yet.  The same redo runs, without end, on a passive copy.
 *
 * A page with dbtime >= the update's after-time has it; one with exactly the before-time gets it;
 * any other one missed a write that was acknowledged: a lost flush, named with its page.
 *
 * Pages come and go through the cache of the database (struct ese_redo_ops), so memory is bounded
 * by it; those of several records are read ahead in sorted batches of 8 (JET_paramPrereadIOMax).
 *
 * Threading: the loop's thread.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_RECOVER_H
#define SANLAB_HARNESS_WORKLOAD_ESE_RECOVER_H

#include "harness/workload/ese/ese_checkpoint.h"
#include "harness/workload/ese/ese_log_read.h"

enum { ESE_PREREAD_MAX = 8 };

/* The dbtime of a page that is there and cannot be read: the crash tore its write.  An update of
 * kind IMAGE makes it whole again, so the first update of a page that was clean is logged as one
 * (the image as the update leaves it); a page that stays unreadable is damaged: whoever keeps
 * the pages reports it when redo has ended. */
#define ESE_DBTIME_UNREADABLE UINT64_MAX

/* What redo needs of a database; provided by it (ese_db) and by tests. */
struct ese_redo_ops {
	/* Brings the pages (sorted, no duplicates, at most ESE_PREREAD_MAX) into the cache and
	 * keeps them there until release; done may be called from within. */
	void (*fetch)(void *arg, const uint64_t *pages, unsigned count,
		      void (*done)(void *done_arg, int status), void *done_arg);
	void (*release)(void *arg, const uint64_t *pages, unsigned count);
	/* dbtime of a fetched page; 0: as created; ESE_DBTIME_UNREADABLE. */
	uint64_t (*dbtime)(void *arg, uint64_t page);
	/* Applies UPDATE to its (fetched) page, which becomes dirty with the log position of the
	 * record: [first, end).  Negative: the update does not fit the page. */
	int (*apply)(void *arg, const struct ese_update *update, uint64_t first_lgpos,
		     uint64_t end_lgpos);
	/* A page that redo found wrong; FOUND and EXPECTED are dbtimes. */
	void (*lost_flush)(void *arg, uint64_t page, uint64_t found, uint64_t expected);
};

struct ese_recovery_result {
	int status; /* 0; -EUCLEAN: pages were found wrong; -EBADMSG: the log is damaged; I/O errors
		     */
	struct ese_checkpoint checkpoint; /* where it began */
	struct ese_log_read_result log;
	uint64_t records, updates_done, updates_there; /* done again; found done already */
	uint64_t pages_mended;			       /* torn by the crash, made whole */
	uint64_t pages_wrong;
	double files;	      /* of log replayed */
	uint64_t duration_ns; /* of the redo */
	uint64_t dbtime;      /* the largest one in the log; the checkpoint's when it is larger */
};

struct ese_recovery;

struct ese_recovery_config {
	struct loop *loop;
	struct ese_log_area area;
	struct ese_checkpoint checkpoint; /* redo from its redo_lgpos */
	struct stream *stream;		  /* "log-read"; may be NULL */
	const struct ese_redo_ops *ops;
	void *ops_arg;
	void (*done)(void *arg, const struct ese_recovery_result *result);
	void *arg;
};

/* Redoes the whole log.  The caller then writes its dirty pages, writes a checkpoint, and goes on
 * with a log that starts at result->log.next_lgpos with epoch result->log.epoch + 1. */
int ese_recover(const struct ese_recovery_config *config, struct ese_recovery **ret_recovery,
		struct err *err);
void ese_recovery_stop(struct ese_recovery *recovery); /* done says -ECANCELED */
struct ese_recovery *ese_recovery_free(struct ese_recovery *recovery);

/* Redo of single records, for recovery and for passive copies: RECORDS are kept (copied) up to a
 * bound, their pages fetched in batches, then applied in order. */
struct ese_redo;
struct ese_redo_counters {
	uint64_t records, updates_done, updates_there, pages_mended, pages_wrong, fetches;
	uint64_t applied_lgpos; /* everything before it has been done */
	uint64_t dbtime;
	int status; /* the first error; redo stands still then */
};
int ese_redo_new(struct loop *loop, const struct ese_redo_ops *ops, void *ops_arg,
		 void (*idle)(void *arg), void *arg, struct ese_redo **ret_redo);
/* Takes a record; false: full now (it is not taken).  `idle` is called when a batch has been done:
 * there is room again, or nothing left.  It may come from within add and push. */
bool ese_redo_add(struct ese_redo *redo, const struct ese_record *record, uint64_t first_lgpos,
		  uint64_t end_lgpos);
/* Does what has been taken without waiting for a batch to become full. */
void ese_redo_push(struct ese_redo *redo);
bool ese_redo_empty(const struct ese_redo *redo);
const struct ese_redo_counters *ese_redo_counters(const struct ese_redo *redo);
struct ese_redo *ese_redo_free(struct ese_redo *redo); /* no fetch in flight */

#endif
