/* SPDX-License-Identifier: MIT
 *
 * The figures of the engine that do not follow from anything else, with the values that reproduce
 * a published Jetstress report (4 databases of 524.5 GB, 256 MiB of cache each).
 *
 * What emerges: reads per transaction (misses of leaves and of their parents), when and in which
 * order pages are written, splits once leaves are full, runs of new pages, the effect of cache
 * size, database size, checkpoint depth and skew.  What is a constant here: how full leaves are
 * born (thus the rate of splits), updates beyond those of the transactions (extra_dirty), how
 * often a read takes the next page along (read_run) and an update dirties it (write_run), log bytes
 * an update.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_CONSTANTS_H
#define SANLAB_HARNESS_WORKLOAD_ESE_CONSTANTS_H

#include <stdint.h>

struct ese_constants {
	uint32_t record_bytes;
	uint32_t fanout;
	uint32_t children_max; /* of a node; 0: what a page has room for */
	double full_leaves;    /* share of new leaves without room for one more record */
	double extra_dirty;    /* probability that a read also updates its leaf */
	double read_run;       /* probability that a leaf's read goes on to the next page */
	double write_run;      /* probability that an update also dirties the next page */
	uint32_t log_insert_bytes, log_delete_bytes, log_replace_bytes;
	uint32_t coalesce_bytes;  /* longest I/O on the database */
	uint32_t write_gap_bytes; /* clean cached pages between two dirty ones that are rewritten */
	uint32_t extent_pages;	  /* the file grows by */
	uint32_t write_depth;	  /* writes under way, by database */
	uint64_t checkpoint_interval_ns;
};

extern const struct ese_constants ese_constants_default;

#endif
