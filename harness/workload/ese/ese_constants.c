/* SPDX-License-Identifier: MIT
 *
 * The constants' default values (exchange.md 9).
 */
#include "harness/workload/ese/ese_constants.h"
#include "base/bytes.h"

const struct ese_constants ese_constants_default = {
    .record_bytes = 2129,
    .fanout = 1334,
    .full_leaves = 0.065,
    .extra_dirty = 0.17,
    .read_run = 0.0174,
    .write_run = 0.08,
    .log_insert_bytes = 7600,
    .log_delete_bytes = 1200,
    .log_replace_bytes = 4000,
    .coalesce_bytes = 256 * KIB,
    .write_gap_bytes = 256 * KIB,
    .extent_pages = 256,
    .write_depth = 16,
    .checkpoint_interval_ns = NS_PER_S,
};
