/* SPDX-License-Identifier: MIT
 *
 * A test of Jetstress' kind as its reports need it: servers, their databases, and of each database
 * the streams of the record that are its own.
 *
 * What the streams do not tell is in record->exchange, whose shape is in exchange_record.h.
 * Whatever is missing counts as zero, or as not told.  Latencies and rates are those of the
 * record's streams, so every mean is weighted by the number of I/Os.
 *
 * Ownership: the view owns its tables and borrows the rest from the record, which must outlive it.
 */
#ifndef SANLAB_HARNESS_REPORT_EXCHANGE_VIEW_H
#define SANLAB_HARNESS_REPORT_EXCHANGE_VIEW_H

#include "harness/report/exchange_record.h"
#include "harness/report/record.h"

enum exchange_test_kind {
	EXCHANGE_PERFORMANCE,
	EXCHANGE_STRESS,
	EXCHANGE_BACKUP,
	EXCHANGE_RECOVERY,
	EXCHANGE_TESTS
};

enum exchange_stream_kind {
	EXCHANGE_DB_READ,
	EXCHANGE_DB_WRITE,
	EXCHANGE_LOG_READ,
	EXCHANGE_LOG_WRITE,
	EXCHANGE_BDM_READ,
	EXCHANGE_STREAM_KINDS
};
extern const char *const exchange_stream_names[]; /* "db-read", ... */

/* I/O of one kind on one database, in the measured window.  All zero: there was none. */
struct exchange_io_view {
	const struct record_stream *stream; /* NULL: the database has none */
	uint64_t ios, bytes, errors;
	double latency_sum_ns;
	uint64_t max_sample_ns; /* the largest mean of a sample */
};

struct exchange_database_view {
	const char *name, *volume, *log_volume, *file, *log_path; /* "": not told */
	bool passive; /* a copy of another server's, at the end */
	uint64_t initial_bytes, final_bytes, transactions, splits, cached_pages, log_files;
	double backup_bytes, backup_seconds, backup_bytes_per_s; /* 0: none was made */
	double recovery_files, recovery_seconds;		 /* 0: none was made */
	struct exchange_io_view io[EXCHANGE_STREAM_KINDS];
};

struct exchange_server_view {
	const char *host;
	const json_t *json;
	double sessions, target_iops, achieved_iops;
	/* Those that were active in the window, if only for a part of it, come first. */
	struct exchange_database_view *databases;
	unsigned database_count, active_count;
};

struct exchange_view {
	const struct record *record;
	const json_t *json;
	enum exchange_test_kind test;
	double window_s; /* 0: nothing was measured */
	uint64_t sample_ns;
	double avg_db_read_ns, max_db_read_ns, avg_log_write_ns, max_log_write_ns; /* 0: none */
	struct exchange_server_view *servers;
	unsigned server_count;
};

/* 0, -ENOENT (the run was no such test) or -ENOMEM. */
int exchange_view_new(const struct record *record, struct exchange_view **ret_view);
struct exchange_view *exchange_view_free(struct exchange_view *view);

/* NaN where the member is missing or no number. */
double exchange_number(const json_t *object, const char *key);
/* "" where it is missing or no text. */
const char *exchange_text(const json_t *object, const char *key);

/* Mean over all A and B (may be NULL), weighted by count; 0 without I/O. */
double exchange_mean_ns(const struct exchange_io_view *a, const struct exchange_io_view *b);
double exchange_mean_bytes(const struct exchange_io_view *a, const struct exchange_io_view *b);
double exchange_rate(const struct exchange_view *view, uint64_t count);
/* The active databases of SERVER gathered. */
struct exchange_io_view exchange_total(const struct exchange_server_view *server,
				       enum exchange_stream_kind kind);

/* False: the verdict is about another server alone, which its id names ("db-read-latency
 * mbx2/db1").
 */
bool exchange_concerns(const struct exchange_view *view, const struct exchange_server_view *server,
		       const struct record_verdict *verdict);
/* No error, and no failed verdict that concerns the server. */
bool exchange_server_passed(const struct exchange_view *view,
			    const struct exchange_server_view *server);

/* The largest mean latency of measured samples of SAMPLE_NS each at least (the last may be
 * shorter), put together from the record's. */
uint64_t exchange_max_sample_ns(const struct record *record, unsigned stream, uint64_t sample_ns);

#endif
