/* SPDX-License-Identifier: MIT
 *
 * The log of one database: an endless stream of records in segments of 4 KiB, kept in a ring of
 * 1 MiB files.
 *
 * lgpos: byte position in the stream, headers of segments included.  File generation =
 * lgpos / 1 MiB; its place in the ring = generation % files; the segment begins at a multiple of
 * 4 KiB.  Position 0 is never used (the stream begins with generation 1).
 *
 * Rules (exchange.md 2 and 9.5)
 *  - A durable commit pads the current segment and writes all that is buffered; who commits while
 *    that goes on shares the next write.  One log write is out at a time.  A write is at most
 *    256 KiB and does not cross the end of a file.
 *  - A lazy commit waits for nothing; it is written with the next durable one, or when half of the
 *    buffer is full (whole segments only), at the latest LAZY_FLUSH_NS after its append.
 *  - Every segment is written once: a padded one is never taken up again.
 *  - Files that recovery still needs (ese_log_checkpoint_at) or that somebody holds are not
 *    overwritten: append says -EAGAIN until there is room.
 *  - A write that fails is tried again (same bytes, same place) for RETRY_NS; then the log is down
 *    for good and says so to everybody.
 *
 * Segment, big-endian: 0 CRC32C of the rest, 4 magic "SL", 6 bytes used (header included), 8 lgpos,
 * 16 signature, 24 epoch, 28 where the first record begins (0: none does), 30 segments since the
 * write began; 32 records.  A segment of an earlier round of the ring has another lgpos, one of an
 * earlier database another signature, and what a torn write left beyond the end of the log that
 * was recovered an earlier epoch.
 *
 * Threading: the loop's thread.  Callbacks come from within calls or from the loop.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_LOG_H
#define SANLAB_HARNESS_WORKLOAD_ESE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/io.h"
#include "base/loop.h"
#include "harness/workload/ese/ese_record.h"
#include "harness/workload/workload.h"

enum {
	ESE_SEGMENT_BYTES = 4096,
	ESE_SEGMENT_HEADER_BYTES = 32,
	ESE_LOG_FILE_BYTES = 1 << 20,
	ESE_LOG_WRITE_MAX = 256 << 10,
	ESE_LOG_HOLDERS = 16, /* copies */
};

/* Where the log of a database lies: on its own volume or behind the database's pages. */
struct ese_log_area {
	struct io_layer *layer;
	uint64_t checkpoint_offset_bytes; /* two slots of 4 KiB */
	uint64_t ring_offset_bytes;
	uint32_t files; /* of 1 MiB; at least 4 */
	uint64_t signature;
};

/* Waits for a durable commit or for room; embedded in the caller's object. */
struct ese_log_waiter {
	void (*done)(struct ese_log_waiter *waiter, int status);
	uint64_t lgpos;		     /* private */
	struct ese_log_waiter *next; /* private */
};

struct ese_log_config {
	struct loop *loop;
	struct ese_log_area area;
	uint64_t start_lgpos;	/* multiple of a segment; ESE_LOG_FILE_BYTES for a new database */
	uint64_t needed_lgpos;	/* the oldest one that recovery needs; 0: start_lgpos */
	uint32_t epoch;		/* larger than that of any segment in the ring */
	uint32_t buffer_bytes;	/* multiple of a segment; default ESE_LOG_BUFFER_BYTES */
	uint64_t lazy_flush_ns; /* default ESE_LAZY_FLUSH_NS */
	uint64_t gather_ns; /* a durable commit waits so long for others to share its write with */
	uint64_t retry_ns;  /* default ESE_LOG_RETRY_NS */
	bool fua;
	struct stream *stream; /* "log-write"; may be NULL */
	/* All may be NULL. */
	void (*flushed)(void *arg, uint64_t lgpos);	     /* the WAL rule: what is durable now */
	void (*file_closed)(void *arg, uint64_t generation); /* its last segment is written */
	/* Block mode: what has been written, whole segments, valid during the call. */
	void (*written)(void *arg, uint64_t lgpos, const void *segments, uint32_t bytes);
	void (*down)(void *arg, int status);
	void *arg;
};

#define ESE_LOG_BUFFER_BYTES (1u << 20)
#define ESE_LAZY_FLUSH_NS    UINT64_C(1000000000)
/* Fitted: a durable commit in ten or so shares the write of another (9.2 a and the writes that the
 * ends of files cut in two).  Nothing gathers unless it is asked for. */
#define ESE_GATHER_NS	 UINT64_C(11500000)
#define ESE_LOG_RETRY_NS UINT64_C(30000000000)

struct ese_log_counters {
	uint64_t records, record_bytes; /* appended, padding of records included */
	uint64_t commits_durable, commits_lazy;
	uint64_t writes, write_bytes, errors;
	uint64_t flushes_durable, flushes_lazy, flushes_capacity; /* why they began */
	uint64_t waits_ring, waits_buffer;			  /* appends that were refused */
	uint64_t files_closed;
};

struct ese_log;

int ese_log_open(const struct ese_log_config *config, struct ese_log **ret_log, struct err *err);
/* Nothing may be in flight: ese_log_drain first.  Waiters are told -ECANCELED.  Returns NULL. */
struct ese_log *ese_log_close(struct ese_log *log);

/* Appends a record.  [*ret_first, *ret_end) is its place: a page that it changes may be written
 * when ese_log_flushed() >= *ret_end.  -EAGAIN: no room, try again after ese_log_wait_room;
 * other errors: the log is down. */
int ese_log_append(struct ese_log *log, const struct ese_record *record, uint64_t *ret_first,
		   uint64_t *ret_end);
/* A passive copy's log: whole SEGMENTS of the active's log, as they were written there, go on where
 * this one ends; they are written at once.  -EAGAIN as above; -ESTALE: LGPOS is not the end of this
 * log; -EBADMSG: not segments of it (nothing is taken then). */
int ese_log_put(struct ese_log *log, uint64_t lgpos, const void *segments, uint32_t bytes);
/* From now on records are appended here: the copy has become the active one.  Returns the epoch of
 * its segments. */
uint32_t ese_log_lead(struct ese_log *log);
uint64_t ese_log_oldest(const struct ese_log *log); /* what is before may be overwritten */
/* Who is told of the log's writes from now on. */
void ese_log_set_stream(struct ese_log *log, struct stream *stream);
/* Where the next segment begins: a copy goes on from there. */
uint64_t ese_log_next_segment(const struct ese_log *log);
void ese_log_wait_room(struct ese_log *log, struct ese_log_waiter *waiter);
/* The caller gives up waiting (either kind of wait). */
void ese_log_forget(struct ese_log *log, struct ese_log_waiter *waiter);

/* Commits what ends at LGPOS.  WAITER is told when it is on the device, 0 or why not; NULL: a lazy
 * commit, which nobody waits for. */
void ese_log_commit(struct ese_log *log, uint64_t lgpos, struct ese_log_waiter *waiter);
/* Asks for everything up to LGPOS to be written soon: the page writer is short of pages that the
 * WAL rule lets it write. */
void ese_log_flush(struct ese_log *log, uint64_t lgpos);
/* Everything appended is on the device and nothing in flight: done(0), or the log's error. */
void ese_log_drain(struct ese_log *log, void (*done)(void *arg, int status), void *arg);

/* No more writes, as after a crash: what is in memory only is lost.  done when none is in flight;
 * then ese_log_close. */
void ese_log_halt(struct ese_log *log, void (*done)(void *arg, int status), void *arg);

uint64_t ese_log_tip(const struct ese_log *log);       /* where the next record begins */
uint64_t ese_log_flushed(const struct ese_log *log);   /* everything before it is on the device */
int ese_log_status(const struct ese_log *log);	       /* 0, or why it is down */
bool ese_log_short_of_room(const struct ese_log *log); /* appends wait for a checkpoint */
const struct ese_log_counters *ese_log_counters(const struct ese_log *log);

/* Recovery begins at LGPOS now (the checkpoint is on the device): older files may be reused. */
void ese_log_checkpoint_at(struct ese_log *log, uint64_t lgpos);
/* HOLDER (0..ESE_LOG_HOLDERS-1, a copy) still reads from LGPOS on; UINT64_MAX: nothing. */
void ese_log_hold(struct ese_log *log, unsigned holder, uint64_t lgpos);

/* Where LGPOS lies on the layer. */
uint64_t ese_log_offset(const struct ese_log_area *area, uint64_t lgpos);

/* What a segment says of itself; ese_segment_parse gives -EBADMSG when it is none of this log at
 * LGPOS (torn, of an earlier round, never written). */
struct ese_segment {
	uint64_t lgpos;
	uint32_t epoch;
	uint16_t used, first_record, write_back;
};
int ese_segment_parse(const void *bytes, uint64_t signature, uint64_t lgpos,
		      struct ese_segment *ret_segment);
/* Writes header and CRC; the records are there already. */
void ese_segment_seal(void *bytes, uint64_t signature, const struct ese_segment *segment);

#endif
