/* SPDX-License-Identifier: MIT
 *
 * Inside of the log; used by ese_log.c (what is appended and who waits) and ese_log_write.c (how
 * it gets to the device) only.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_LOG_IMPL_H
#define SANLAB_HARNESS_WORKLOAD_ESE_LOG_IMPL_H

#include "harness/workload/ese/ese_log.h"

/* A list in order of arrival. */
struct ese_log_waiters {
	struct ese_log_waiter *first, **last;
};

/* Why a flush begins; the counters are kept by it. */
enum ese_flush_reason { ESE_FLUSH_DURABLE, ESE_FLUSH_LAZY, ESE_FLUSH_CAPACITY };

struct ese_log {
	struct ese_log_config config;
	struct ese_log_counters counters;
	uint8_t *buffer; /* of the segment at lgpos: byte lgpos % buffer_bytes */
	uint8_t *coded;	 /* of the record being appended */
	uint64_t tip;	 /* where the next record's bytes go */
	uint64_t flushed;
	uint64_t target; /* the flush under way goes up to here */
	uint64_t needed; /* the checkpoint's */
	uint64_t held[ESE_LOG_HOLDERS];
	uint32_t epoch_seen; /* of segments that were put */
	int status;

	/* What is asked for. */
	uint64_t want_durable; /* commits wait for all before it */
	uint64_t want_now;     /* as above, without gathering */
	uint64_t gather_until_ns;
	bool lazy_due;
	struct loop_timer gather_timer, lazy_timer;

	struct ese_log_waiters commits, room;

	/* The write under way. */
	struct io io;
	struct iovec iov[2];
	struct stream *stream; /* of the write under way */
	bool writing, kicking;
	uint64_t write_end;
	uint64_t submitted_ns, failing_since_ns; /* 0: the last write succeeded */
	struct loop_timer retry_timer;

	void (*drained)(void *arg, int status);
	void *drained_arg;
};

/* The oldest position whose file may not be overwritten. */
uint64_t ese_log_oldest_needed(const struct ese_log *log);
/* ese_log_write.c: begins what is due; safe to call at any time. */
void ese_log_kick(struct ese_log *log);
void ese_log_write_init(struct ese_log *log);
/* ese_log.c: FLUSHED has moved, or the log has gone down. */
void ese_log_progress(struct ese_log *log);
/* Ends the segment that is being filled: the next record begins a new one. */
void ese_log_pad(struct ese_log *log);

#endif
