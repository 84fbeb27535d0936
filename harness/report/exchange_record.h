/* SPDX-License-Identifier: MIT
 *
 * The shape of record->exchange: what a test of the database engine (`engine: ese`) has to say
 * beside the streams, the samples and the verdicts of every run.  The engine makes it
 * (workload_ops.describe), run.json keeps it under "exchange", the reports in Jetstress' manner
 * read it.  NULL: the workload was another one.
 *
 * Latencies, rates and sizes of I/O per database are not repeated here: they are those of the
 * record's streams (totals of the window, exact means and percentiles) whose host and volume are
 * the database's `host` (of its server) and `volume`, or `log_volume` for log-write and log-read;
 * its samples are the record's samples.  Every key is there unless marked "may be absent"; a
 * figure that was not measured is null.
 *
 * {
 *   "engine": "ese",
 *   "test": "performance" | "stress" | "database-backup" | "soft-recovery",
 *   "description": "text",                -- may be absent
 *   "sample_ns": integer,                 -- may be absent: samples of which the largest mean is
 * the "maximum" are that long; else 15 s "error": null | "why the test could not be done: its
 * prerequisites were not met, ...", "thresholds": {                       -- Jetstress' set Strict,
 * or Lenient of a stress test "avg_db_read_ns", "max_db_read_ns", "avg_log_write_ns",
 * "max_log_write_ns": integers, "max_latency_samples": 6,           -- samples above a maximum that
 * are forgiven "iops_margin": 0.05,                -- what may be missing of the target
 *     "stalls_per_s": 1.0                 -- mean page fault stalls a second, a server
 *   },
 *   "warm_up": {"seconds": 286.0, "met": true,
 *               "why": null | "what was waited for in vain",
 *               "cache_bytes": 968945700, "cache_wanted_bytes": 966367641},
 *   "servers": [{                         -- one a host of the lab, in its order
 *     "host": "mbx1",
 *     "sessions": 5 | 0 in an open loop, "loop": "closed" | "open",
 *     "cache_min_bytes", "cache_max_bytes", "flush_start_bytes", "flush_stop_bytes": integers,
 *     "target_iops": real (0: none), "achieved_iops": real,
 *     "mailboxes": integer,                                        -- may be absent
 *     "mix": {"insert", "delete", "replace", "read", "lazy"},      -- percent
 *     "bdm": bool, "copies": integer,
 *     "stalls": integer in the window, "stalls_max_per_s": largest of a sample,
 *     "transactions", "failed_transactions": integers in the window,
 *     "databases": [{
 *       "name": "Instance1.1", "volume": "db1", "log_volume": "db1",
 *       "file": "path of the .edb as a report prints it", "log_path": "...",
 *       "role": "active" | "passive",
 *       "initial_bytes", "final_bytes": integers, "transactions": integer,
 *       "splits", "cached_pages", "log_files": integers,
 *       "backup": {"bytes", "seconds", "bytes_per_s",              -- may be absent
 *                  "pages", "bad", "not_readable"},
 *       "recovery": {"files", "seconds", "seconds_per_file",       -- may be absent
 *                    "records", "pages_read", "pages_written"},
 *       "checksum": {"pages", "bad", "not_readable",               -- may be absent
 *                    "seconds", "bytes_per_s"}
 *       "log_checksum": {"files", "segments", "good": bool}        -- may be absent
 *     }],
 *     "host_counters": [{"name": "% Processor Time", "average", "minimum", "maximum"}]
 *   }],
 *   "tuning": {
 *     "result": "succeeded" | "failed" | "not run", "why": null | "reason of a failure",
 *     "cycles": [{"host": "mbx1", "sessions", "iops", "target_iops", "batch_per_s", "seconds",
 *                 "read_ns": [one a database], "log_write_ns": [...],
 *                 "slope_ms_per_s": [...],
 *                 "verdict": "accepted" | "latency too high" | "too few I/Os" | "slope unstable",
 *                 "next_sessions": integer (0: none)}]
 *   },
 *   "checksum": null | {"pages", "bad", "not_readable",           -- all databases together
 *                       "seconds", "bytes_per_s"},
 *   "log": [{"wall_ns": integer, "host": null (all servers) | "mbx1",
 *            "text": "Preparing for testing ..."}]
 * }
 */
#ifndef SANLAB_HARNESS_REPORT_EXCHANGE_RECORD_H
#define SANLAB_HARNESS_REPORT_EXCHANGE_RECORD_H

#include <jansson.h>

/* The test's kind, "" of a record without one. */
static inline const char *exchange_test(const json_t *exchange)
{
	const char *test = json_string_value(json_object_get(exchange, "test"));

	return test ? test : "";
}

#endif
