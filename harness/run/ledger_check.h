/* SPDX-License-Identifier: MIT
 *
 * Two independent counts of one thing: what the initiator's ledger says it sent through each portal
 * and what the target says it has served there.
 */
#ifndef SANLAB_HARNESS_RUN_LEDGER_CHECK_H
#define SANLAB_HARNESS_RUN_LEDGER_CHECK_H

#include "harness/run/run.h"

/* Adds the verdict "target-ledger" to RECORD from record->target and the engine's path totals. */
void ledger_check(const struct run_engine *engine, struct record *record);

#endif
