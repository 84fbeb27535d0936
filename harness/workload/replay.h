/* SPDX-License-Identifier: MIT
 *
 * The replay workload: the I/Os of a trace (harness/trace), on the lab's volumes.
 *
 * When an I/O is sent is the `mode`:
 *  timed       at the trace's own instants, times `scale-time`.  These are deadlines counted from
 *              the start, so that nothing drifts; how late each I/O was sent is told (lateness).
 *  afap        as fast as possible: `queue-depth` in flight, in the order of the trace.
 *  dependency  keeps what the trace shows of causes.  An I/O that had ended before another began
 * may have caused it; one that had not cannot have.  So an I/O is sent when all that had ended
 * before it began in the trace have ended in the replay, too, and as long after the last of these
 * ends as it was in the trace (times `scale-time`): the application thinks as long as it did,
 * whatever the storage's speed.  The order of the trace stays.  Needs a trace that tells when I/Os
 * have ended; those it does not tell it of are waited for by nobody.
 *
 * Written data carry an identity a sector (replay_sectors.h), reads are checked against it, unless
 * a write was on its way to the same sectors meanwhile; what was written is read back at the end.
 * What no I/O of the replay has written is not checked, but on volumes that are known to be zero.
 * Of a write that failed, of writes to the same sectors at the same time and of trims
 * nothing is known until the next write.
 *
 * record->replay is, as an example:
 * {
 *   "mode": "timed", "format": "msr", "files": ["hm_0.csv.gz"],
 *   "scale_time": 1.0, "scale_space": 1.0, "passes": 1, "finished": true,
 *   "trace": {"lines", "records", "ignored_lines", "malformed_lines", "out_of_order",
 *             "malformed": ["hm_0.csv.gz:17: the size is 'x', not a number", at most 10]},
 *   "sent": I/Os, "trace_ns": span of the trace that was replayed,
 *   "left_out": {"unmapped", "beyond_the_end", "trims_unsupported"},
 *   "changed": {"wrapped", "rounded", "parts"}: records that were folded back into the volume, that
 *             were widened to whole blocks; I/Os sent for records that went out in parts
 *   "devices": [{"trace": "hm.0", "volumes": ["mbx1/db1"] or [], "ios": 12, "bytes": 49152}],
 *   "verified": {"unit_bytes": 512, "reads_checked", "reads_unchecked"} or null,
 *   "lateness": {"ios", "mean_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns", "late",
 *             "limit_ns", "buckets": [{"up_to_ns": 10000, "ios": 9}, ..., {"up_to_ns": null, "ios":
 * 1}]} of the measured window; null with mode: afap
 * }
 */
#ifndef SANLAB_HARNESS_WORKLOAD_REPLAY_H
#define SANLAB_HARNESS_WORKLOAD_REPLAY_H

#include "harness/workload/workload.h"

enum replay_mode { REPLAY_TIMED, REPLAY_AFAP, REPLAY_DEPENDENCY };
enum replay_beyond { REPLAY_WRAP, REPLAY_SKIP, REPLAY_FAIL };
enum replay_files { REPLAY_ALL, REPLAY_DATABASES, REPLAY_LOGS, REPLAY_CHECKPOINTS, REPLAY_OTHERS };
extern const char *const replay_mode_names[];

/* What becomes of the trace's devices that FROM (a shell pattern) matches. */
struct replay_map_config {
	const char *from;
	int files;			   /* enum replay_files: only I/Os of these */
	struct cfg_list to;		   /* const char *: volumes, "db1" or "mbx1/db1" */
	uint64_t offset_bytes, size_bytes; /* of the region, on each; 0: to the end */
	uint64_t stripe_bytes;		   /* of several volumes */
};

struct replay_config {
	const char *type;
	struct cfg_list traces; /* const char * */
	int format, join, mode, beyond;
	struct cfg_list map; /* struct replay_map_config */
	double scale_time, scale_space;
	uint64_t loops, queue_depth, max_io_bytes, max_bad_lines, late_limit_ns, spc_block_bytes;
	int blkparse_begin; /* 0: D, 1: Q */
	bool verify, whole;
	const char *lab_file; /* beside it are traces that the working directory lacks */
};

extern const struct workload_ops replay_workload_ops;

/* FILE is one of the traces. */
bool replay_reads(const struct replay_config *config, const char *file);

#endif
