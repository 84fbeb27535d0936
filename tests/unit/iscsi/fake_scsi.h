/* SPDX-License-Identifier: MIT
 *
 * A device server for tests of the iSCSI room: memory LUNs of 512-byte blocks behind the functions
 * of target/scsi/scsi.h, and knobs to hold, fail and count commands.
 */
#ifndef SANLAB_TESTS_UNIT_ISCSI_FAKE_SCSI_H
#define SANLAB_TESTS_UNIT_ISCSI_FAKE_SCSI_H

#include "target/scsi/scsi.h"

enum { FAKE_BLOCK_BYTES = 512, FAKE_LUNS = 2, FAKE_BLOCKS = 16384 };

/* A target with FAKE_LUNS logical units of FAKE_BLOCKS blocks. */
struct scsi_target *fake_target_new(struct buf_pool *pool, const char *name);
struct scsi_target *fake_target_free(struct scsi_target *target);

uint8_t *fake_disk(struct scsi_target *target, unsigned lun);
/* While held, tasks that execute stay with the "drive"; letting go ends all of them. */
void fake_hold(struct scsi_target *target, bool hold);
unsigned fake_held_count(const struct scsi_target *target);
/* The next command that may report one ends with UNIT ATTENTION 29/00. */
void fake_attention(struct scsi_target *target);
unsigned fake_executed(const struct scsi_target *target);      /* writes that changed the disk */
unsigned fake_resets(const struct scsi_target *target);	       /* logical unit resets */
unsigned fake_target_resets(const struct scsi_target *target); /* of logical units */
unsigned fake_clears(const struct scsi_target *target);	       /* CLEAR TASK SETs */
unsigned fake_nexuses(const struct scsi_target *target);       /* alive */
/* The CDB of the last task prepared. */
const uint8_t *fake_last_cdb(const struct scsi_target *target);

#endif
