/* SPDX-License-Identifier: MIT
 *
 * Inside of a test: ese_test.c (its phases), ese_test_tune.c (warm-up and tuning), ese_test_scan.c
 * (backup and checksum), ese_test_logs.c (checksum of the log files), ese_test_recover.c (soft
 * recovery), ese_test_window.c (what is counted in the window), ese_test_describe.c (log lines and
 * record->exchange).
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_TEST_IMPL_H
#define SANLAB_HARNESS_WORKLOAD_ESE_TEST_IMPL_H

#include "base/bytes.h"
#include "harness/workload/ese/ese_checksum.h"
#include "harness/workload/ese/ese_db.h"
#include "harness/workload/ese/ese_host_counters.h"
#include "harness/workload/ese/ese_test.h"
#include "harness/workload/ese/ese_testlog.h"
#include "harness/workload/ese/ese_tuning.h"

enum {
	ESE_SCAN_DEPTH = 4, /* reads in flight of a checksum, per database */
};
#define ESE_SAMPLE_NS	(15 * NS_PER_S) /* of Jetstress' performance log */
#define ESE_TUNE_LOG_NS (5 * NS_PER_S)
#define ESE_STRESS_NS	(6 * 3600 * NS_PER_S) /* a longer performance test is a stress test */

/* What became of the newest log files. */
struct ese_test_log_check {
	bool done, good;
	double files;
	uint64_t segments, tip, end_lgpos;
	int status;
};

struct ese_log_reader;

struct ese_test_db {
	struct ese_test_server *server;
	struct ese_db *db;
	struct stream *streams; /* ESE_STREAMS of them */
	char name[32];		/* Instance1.1 */
	struct ese_tuning_sample seen;
	/* Of the window. */
	uint64_t transactions;
	double read_ns, log_write_ns;
	bool has_log_writes;
	/* A pass over all pages. */
	struct ese_checksum *scan;
	struct ese_checksum_result backup, check;
	bool backed_up, checked;
	struct ese_log_reader *log_reader;
	struct ese_test_log_check log_check;
	/* Soft recovery. */
	uint64_t log_from; /* lgpos when the checkpoint was held back */
	uint64_t pages_read, pages_written;
	struct ese_recovery_result recovery;
	bool recovered;
};

struct ese_test_server {
	struct ese_test *test;
	struct ese_server *server;
	const char *host;
	struct ese_test_db *dbs;
	unsigned db_count;
	bool warm, tuned;
	struct ese_tuning *tuning; /* NULL: none */
	uint64_t tuned_transactions;
	/* Of the window. */
	json_t *described; /* at its end, when the databases are still attached */
	struct ese_server_counts begun, ended;
	uint64_t ios;
	uint64_t sampled_stalls;
	double stalls_min_per_s, stalls_max_per_s;
	unsigned samples, samples_with_stalls;
};

enum ese_test_phase {
	ESE_TEST_IDLE,
	ESE_TEST_WARMING, /* until the caches are full */
	ESE_TEST_TUNING,
	ESE_TEST_LOGGING, /* soft recovery: until there are enough log files */
	ESE_TEST_READY,
	ESE_TEST_SCANNING,
	ESE_TEST_READING_LOGS,
	ESE_TEST_RECOVERING,
	ESE_TEST_STOPPING,
};

struct ese_thresholds {
	double avg_db_read_ns, max_db_read_ns, avg_log_write_ns, max_log_write_ns;
};

struct ese_test {
	struct ese_test_setup setup;
	struct loop *loop;
	const struct ese_config *config;
	enum ese_test_kind kind;
	struct ese_thresholds thresholds;
	struct ese_test_server *servers;
	unsigned server_count;
	struct ese_test_db *dbs; /* server by server */
	unsigned db_count;
	struct ese_testlog *log;
	enum ese_test_phase phase;
	struct loop_timer timer; /* of the phase */
	char waits_for[128];
	char failure[400]; /* why the test could not be done; "" */
	bool started;	   /* servers run, or did */
	bool said_end;
	/* Warm-up. */
	workload_fn warmed;
	void *warmed_arg;
	uint64_t warm_begin_ns, warm_end_ns;
	uint64_t warm_bytes, wanted_bytes; /* of all servers */
	bool cache_filled;
	uint64_t moved_ns, moved_files; /* soft recovery: when the slowest got on */
	/* Window. */
	bool in_window;
	uint64_t window_begin_ns, window_end_ns;
	struct loop_timer sample_timer;
	uint64_t sampled_ns;
	struct ese_host_counters host_counters;
	/* What is waited for. */
	unsigned steps;
	int status;
	workload_fn done;
	void *arg;
	bool backup; /* the pass under way is the backup test's */
	workload_fn scanned;
	void *scanned_arg;
	bool stop_wanted;
	workload_fn stop_done;
	void *stop_arg;
};

/* Ends the run with the reason, once. */
void ese_test_fail(struct ese_test *test, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Calls TEST's warm-up back. */
void ese_test_warmed(struct ese_test *test, int status);
/* What was begun while a stop came has ended. */
void ese_test_settled(struct ese_test *test);

/* ese_test_tune.c */
void ese_test_warm(struct ese_test *test);
unsigned ese_test_first_sessions(const struct ese_test *test, const struct ese_test_server *server);
void ese_test_tune_due(struct ese_test *test);

/* ese_test_scan.c: all databases at once; DONE with the first I/O error or -ENOMEM, once. */
void ese_test_scan(struct ese_test *test, bool backup, workload_fn done, void *arg);
void ese_test_scan_due(struct ese_test *test);
void ese_test_scan_stop(struct ese_test *test);

/* ese_test_logs.c: as above. */
void ese_test_check_logs(struct ese_test *test, workload_fn done, void *arg);
void ese_test_check_logs_stop(struct ese_test *test);

/* ese_test_recover.c */
void ese_test_make_logs(struct ese_test *test);
void ese_test_make_logs_due(struct ese_test *test);
void ese_test_recover(struct ese_test *test);
void ese_test_recover_due(struct ese_test *test);

/* ese_test_window.c */
void ese_test_window_begin(struct ese_test *test);
void ese_test_window_end(struct ese_test *test);

/* ese_test_describe.c */
extern const char *const ese_test_names[];
void ese_test_say_settings(struct ese_test *test);
void ese_test_say_mix(struct ese_test *test, const struct ese_test_server *server);
void ese_test_say_cycle(struct ese_test *test, const struct ese_test_server *server,
			const struct ese_tuning_cycle *cycle);
void ese_test_say_end(struct ese_test *test);

#endif
