/* SPDX-License-Identifier: MIT
 *
 * Inside of the Exchange workload; used by exchange*.c and their tests only.
 *
 * One database a volume: pages of 32 KiB from offset 0, then a ring of 1 MiB log files of 4 KiB
 * segments.  Five streams run side by side on it.  Each has its own seeded random numbers, so
 * that the load does not depend on how fast the devices are.
 *
 * Arrivals are not queued: a stream knows when the next one is due and stays at it while it
 * cannot be issued; what is late keeps the time it was due.  So nothing grows however long
 * the devices stall.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_EXCHANGE_H
#define SANLAB_HARNESS_WORKLOAD_EXCHANGE_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/rng.h"
#include "harness/workload/exchange_profile.h"
#include "harness/workload/page.h"
#include "harness/workload/page_set.h"
#include "harness/workload/workload.h"

#define PAGES_PER_IO	  (EXCHANGE_IO_BYTES_MAX / EXCHANGE_PAGE_BYTES)
#define SEGMENTS_PER_IO	  (EXCHANGE_IO_BYTES_MAX / EXCHANGE_SEGMENT_BYTES)
#define SEGMENTS_PER_FILE (EXCHANGE_LOG_FILE_BYTES / EXCHANGE_SEGMENT_BYTES)

enum exchange_kind { DB_READ, DB_WRITE, LOG_WRITE, BDM_READ, LOG_READ, EXCHANGE_KINDS };
enum { BULK_DEPTH = 4 };

struct exchange;
struct exchange_db;

/* One part of a volume and all that is known of its pages. */
struct exchange_part {
	struct page_area area;
	struct page_set set;
	uint64_t base_bytes; /* where on the volume */
	uint32_t page_bytes;
};

struct exchange_stream {
	struct exchange_db *db;
	struct stream *stream;
	struct rng gaps;  /* when: independent of how the I/O goes */
	struct rng place; /* where and how long */
	struct loop_timer timer;
	uint64_t next_ns; /* when the next I/O is due */
	double mean_gap_ns;
	unsigned limit; /* in flight together */
	bool paced;	/* even gaps rather than Poisson arrivals */
	bool driven;	/* no arrivals of its own: reads what the log leaves */
	bool pumping, blocked;
	/* Issues one I/O that was due at INTENDED_NS; false: not now (pages or buffers busy). */
	bool (*issue)(struct exchange_stream *stream, uint64_t intended_ns);
};

struct exchange_io {
	struct io io;
	struct iovec iov;
	struct exchange_db *db;
	struct exchange_part *part;
	struct exchange_stream *stream; /* NULL: prefill or read-back */
	struct buf *buf;
	uint64_t intended_ns, submitted_ns;
	uint64_t first; /* page or segment */
	uint32_t count;
	struct exchange_io *next; /* free list */
};

/* Prefill and read-back: every page in order, some I/Os in flight. */
enum bulk_step { BULK_IDLE, BULK_FILL, BULK_CHECK_PAGES, BULK_CHECK_LOG };
struct exchange_bulk {
	enum bulk_step step;
	uint64_t next; /* page or segment */
	unsigned in_flight;
	bool pumping, gone;
	int status;
};

struct exchange_db {
	struct exchange *exchange;
	const struct workload_device *device;
	struct exchange_part pages, log;
	uint64_t used_pages; /* the database as it is now: pages.set.pages at most */
	uint64_t prefill_pages;
	uint64_t bdm_next;
	uint64_t log_next;    /* segment the next log write begins at */
	uint32_t log_carried; /* segments cut off at the end of the ring */
	/* Closed log files still to be read by the other copies: numbers count on for ever. */
	uint64_t files_closed, file_reading;
	uint32_t file_pass, file_segment;
	uint64_t log_reads_skipped; /* overwritten before they were read */
	struct exchange_stream streams[EXCHANGE_KINDS];
	struct exchange_bulk bulk;
};

struct exchange {
	struct workload base;
	struct workload_env env;
	struct exchange_config config;
	struct exchange_rates rates;
	struct exchange_day day;
	uint64_t started_ns;
	struct buf_pool *pool;
	struct exchange_io *ios, *free_ios;
	struct exchange_db *dbs;
	unsigned db_count;
	char summary[160];
	bool running, stopping;
	uint64_t in_flight;
	workload_fn drained, bulk_done;
	void *drained_arg, *bulk_arg;
	unsigned bulk_active;
	uint64_t bulk_total, bulk_ended;
};

/* exchange.c */
/* NULL: too much is in flight already. */
struct exchange_io *exchange_io_get(struct exchange_db *db, struct exchange_part *part,
				    uint64_t bytes);
void exchange_io_put(struct exchange_io *xio);
/* Locks COUNT pages from FIRST on and sends the I/O; a write is filled first. */
void exchange_submit(struct exchange_io *xio, enum io_op op, uint64_t first, uint32_t count);
/* Judges what was read, or notes how the write ended; unlocks. */
void exchange_settle(struct exchange_io *xio);
void exchange_pump(struct exchange_stream *stream);
/* 1 + a geometric number of continuations, at most MAX. */
uint32_t exchange_run_length(struct rng *rng, double continuation, uint32_t max);

/* exchange_streams.c: the five issue functions. */
extern bool (*const exchange_issue[EXCHANGE_KINDS])(struct exchange_stream *stream,
						    uint64_t intended_ns);
/* A log write has ended: closes the files it filled and wakes their readers. */
void exchange_log_written(struct exchange_io *xio);

/* exchange_bulk.c */
void exchange_prepare(struct workload *workload, workload_fn done, void *arg);
void exchange_verify(struct workload *workload, workload_fn done, void *arg);
void exchange_bulk_ended(struct exchange_io *xio);

#endif
