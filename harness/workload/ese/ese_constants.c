/* SPDX-License-Identifier: MIT
 *
 * The constants' default values (exchange.md 9), fitted together with a think time of 26.9 ms so
 * that tests/sim/test_ese_qnap.c comes out.  The report's transactions a second are not known; at
 * 107 (not 113.7) its log writes are one for each durable update, with no grouping, and the log's
 * bytes, the parents of leaves and the dirty pages of a transaction are 3 to 6 % above those of
 * exchange.md.
 */
#include "harness/workload/ese/ese_constants.h"
#include "base/bytes.h"

const struct ese_constants ese_constants_default = {
    .record_bytes = 2129,
    .fanout = 1280,
    .full_leaves = 0.069,
    .extra_dirty = 0.22,
    .read_run = 0.0174,
    .write_run = 0.12,
    .log_insert_bytes = 8050,
    .log_delete_bytes = 1250,
    .log_replace_bytes = 4050,
    .coalesce_bytes = 256 * KIB,
    .write_gap_bytes = 256 * KIB,
    .extent_pages = 256,
    .write_depth = 16,
    .checkpoint_interval_ns = NS_PER_S,
};
