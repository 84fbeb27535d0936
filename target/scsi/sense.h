/* SPDX-License-Identifier: MIT
 *
 * Sense data: the codes the device server reports, and the one table that maps the internal
 * status of an io (negative errno, base/io.h) to a SCSI status and sense.
 *
 * A code is key << 16 | ASC << 8 | ASCQ; 0 means "no sense".
 */
#ifndef SANLAB_TARGET_SCSI_SENSE_H
#define SANLAB_TARGET_SCSI_SENSE_H

#include <stdint.h>

#include "base/bytes.h"
#include "target/scsi/scsi.h"

enum sense_code {
	SENSE_NONE = 0x000000,
	SENSE_NOT_READY = 0x020400,
	SENSE_WRITE_ERROR = 0x030c00,
	SENSE_READ_ERROR = 0x031100,
	SENSE_LU_FAILURE = 0x043e01,
	SENSE_INTERNAL_FAILURE = 0x044400,
	SENSE_PARAMETER_LIST_LENGTH = 0x051a00,
	SENSE_INVALID_OPCODE = 0x052000,
	SENSE_LBA_OUT_OF_RANGE = 0x052100,
	SENSE_INVALID_FIELD_IN_CDB = 0x052400,
	SENSE_LU_NOT_SUPPORTED = 0x052500,
	SENSE_INVALID_FIELD_IN_LIST = 0x052600,
	SENSE_SAVING_NOT_SUPPORTED = 0x053900,
	SENSE_UA_POWER_ON = 0x062900,
	SENSE_UA_DEVICE_RESET = 0x062903,
	SENSE_UA_LUNS_CHANGED = 0x063f0e,
	SENSE_WRITE_PROTECTED = 0x072700,
	SENSE_SPACE_ALLOCATION = 0x072707,
	SENSE_ABORTED = 0x0b0000,
	SENSE_TIMEOUT = 0x0b2e01,
	SENSE_MISCOMPARE = 0x0e1d00,
};

/* Fixed format (SPC-4 4.5.3), current error. */
void scsi_sense_put_fixed(uint8_t out[SCSI_SENSE_BYTES], uint32_t code);
/* Descriptor format without descriptors (SPC-4 4.5.2). */
void scsi_sense_put_descriptor(uint8_t out[8], uint32_t code);

/* CHECK CONDITION with CODE; gives SCSI_ENDED so that a prepare function can return it. */
enum scsi_prepared scsi_sense_fail(struct scsi_task *task, uint32_t code);
/* Sets status and sense for the end of an io: OP ended with ERROR (0 or a negative errno). */
void scsi_sense_from_io(struct scsi_task *task, enum io_op op, int error);

#endif
