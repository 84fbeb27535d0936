/* SPDX-License-Identifier: MIT
 *
 * Reads a log from some position on: for recovery (records), for log shipping and for the check of
 * the log files (segments).
 *
 * The log ends at the first segment that is not of this log at this place.  One log write is out
 * at a time, so a segment of a later write behind the gap proves that the gap is damage:
 * ESE_LOG_END_CORRUPT, not an end.
 *
 * Threading: the loop's thread.  The reader may be freed from within its callbacks only in `ended`.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_LOG_READ_H
#define SANLAB_HARNESS_WORKLOAD_ESE_LOG_READ_H

#include "harness/workload/ese/ese_log.h"

enum ese_log_end {
	ESE_LOG_END_UNTIL,   /* until_lgpos is reached */
	ESE_LOG_END_REACHED, /* nothing more was written */
	ESE_LOG_END_CORRUPT, /* a damaged segment with later ones behind it */
	ESE_LOG_END_ERROR,   /* a read failed */
	ESE_LOG_END_STOPPED,
};

struct ese_log_read_result {
	enum ese_log_end end;
	int status;	     /* of END_ERROR; -EBADMSG of END_CORRUPT */
	uint64_t end_lgpos;  /* end of the last whole record */
	uint64_t next_lgpos; /* the first segment that is not valid: a new log goes on here */
	uint32_t epoch;	     /* the largest one seen, beyond the end included */
	uint64_t segments, records, reads, read_bytes;
};

struct ese_log_reader;

struct ese_log_read_config {
	struct loop *loop;
	struct ese_log_area area;
	uint64_t from_lgpos;   /* where a record begins, or a segment */
	uint64_t until_lgpos;  /* 0: to the end */
	struct stream *stream; /* "log-read"; may be NULL */
	/* A whole record.  False: stop calling until ese_log_reader_resume (this one is taken). */
	bool (*record)(void *arg, const struct ese_record *record, uint64_t first_lgpos,
		       uint64_t end_lgpos);
	/* Valid segments that follow each other (before their records are handed out); may be NULL.
	 */
	void (*segments)(void *arg, uint64_t lgpos, const void *bytes, uint32_t size);
	void (*ended)(void *arg, const struct ese_log_read_result *result);
	void *arg;
};

int ese_log_reader_new(const struct ese_log_read_config *config, struct ese_log_reader **ret_reader,
		       struct err *err);
void ese_log_reader_start(struct ese_log_reader *reader);
void ese_log_reader_resume(struct ese_log_reader *reader);
void ese_log_reader_stop(struct ese_log_reader *reader); /* ends with END_STOPPED */
struct ese_log_reader *ese_log_reader_free(struct ese_log_reader *reader); /* ended or not begun */

#endif
