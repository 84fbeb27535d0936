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

enum { SENSE_KEY_UNIT_ATTENTION = 0x06 };

enum sense_code {
	SENSE_NONE = 0x000000,
	SENSE_NOT_READY = 0x020400,
	SENSE_START_REQUIRED = 0x020402,
	SENSE_FORMATTING = 0x020404,
	SENSE_SANITIZING = 0x02041b,
	SENSE_NO_MEDIUM = 0x023a00,
	SENSE_WRITE_ERROR = 0x030c00,
	SENSE_READ_ERROR = 0x031100,
	SENSE_FORMAT_CORRUPTED = 0x033100,
	SENSE_FORMAT_FAILED = 0x033101,
	SENSE_SANITIZE_FAILED = 0x033103,
	SENSE_LU_FAILURE = 0x043e01,
	SENSE_SELF_TEST_FAILED = 0x043e03,
	SENSE_INTERNAL_FAILURE = 0x044400,
	SENSE_PARAMETER_LIST_LENGTH = 0x051a00,
	SENSE_INVALID_OPCODE = 0x052000,
	SENSE_LBA_OUT_OF_RANGE = 0x052100,
	SENSE_INVALID_FIELD_IN_CDB = 0x052400,
	SENSE_LU_NOT_SUPPORTED = 0x052500,
	SENSE_INVALID_FIELD_IN_LIST = 0x052600,
	SENSE_INVALID_RELEASE = 0x052604,
	SENSE_SAVING_NOT_SUPPORTED = 0x053900,
	SENSE_REMOVAL_PREVENTED = 0x055302,
	SENSE_INSUFFICIENT_REGISTRATION = 0x055504,
	SENSE_UA_MEDIUM_CHANGED = 0x062800,
	SENSE_UA_POWER_ON = 0x062900,
	SENSE_UA_BUS_RESET = 0x062902,
	SENSE_UA_DEVICE_RESET = 0x062903,
	SENSE_UA_RESERVATIONS_PREEMPTED = 0x062a03,
	SENSE_UA_RESERVATIONS_RELEASED = 0x062a04,
	SENSE_UA_REGISTRATIONS_PREEMPTED = 0x062a05,
	SENSE_UA_COMMANDS_CLEARED = 0x062f00,
	SENSE_UA_LUNS_CHANGED = 0x063f0e,
	SENSE_UA_MODE_CHANGED = 0x062a01,
	SENSE_UA_ALUA_CHANGED = 0x062a06,
	SENSE_UA_ALUA_FAILED = 0x062a07,
	SENSE_UA_SOFT_THRESHOLD = 0x063807,
	SENSE_UA_REFERRALS = 0x063f15, /* INSPECT REFERRALS SENSE DESCRIPTORS */
	SENSE_ALUA_TRANSITION = 0x02040a,
	SENSE_ALUA_STANDBY = 0x02040b,
	SENSE_ALUA_UNAVAILABLE = 0x02040c,
	SENSE_ALUA_OFFLINE = 0x020412,
	SENSE_SET_GROUPS_FAILED = 0x05670a,
	SENSE_OPERATION_IN_PROGRESS = 0x050016,
	SENSE_TOO_MANY_TARGETS = 0x052606,
	SENSE_TARGET_TYPE = 0x052607,
	SENSE_TOO_MANY_SEGMENTS = 0x052608,
	SENSE_SEGMENT_TYPE = 0x052609,
	SENSE_COPY_INLINE_DATA = 0x05260b,
	SENSE_COPY_ABORTED = 0x0a0000,
	SENSE_COPY_UNREACHABLE = 0x0a0804,
	SENSE_COPY_DEVICE_FAILURE = 0x0a0d01,
	SENSE_COPY_NOT_REACHABLE = 0x0a0d02,
	SENSE_COPY_INEXACT = 0x0a260a,
	SENSE_WRITE_PROTECTED = 0x072700,
	SENSE_SOFTWARE_WRITE_PROTECTED = 0x072702,
	SENSE_SPACE_ALLOCATION = 0x072707,
	SENSE_ABORTED = 0x0b0000,
	SENSE_TIMEOUT = 0x0b2e01,
	SENSE_MISCOMPARE = 0x0e1d00,
};

/* What sense data can carry beside the code. */
struct sense_extra {
	bool has_information, has_command, has_key_specific;
	uint64_t information;	 /* INFORMATION: an LBA, an offset, a segment */
	uint64_t command;	 /* COMMAND-SPECIFIC INFORMATION */
	uint8_t key_specific[3]; /* SENSE KEY SPECIFIC; SKSV is added */
};

/* Current error in fixed (SPC-4 4.5.3) or descriptor format (4.5.2); EXTRA may be NULL.  Returns
 * the length.  Fixed format drops what does not fit its 32-bit fields. */
unsigned scsi_sense_put(uint8_t out[SCSI_SENSE_MAX_BYTES], bool descriptor, uint32_t code,
			const struct sense_extra *extra);
/* The format of sense data that TASK gets: D_SENSE of its logical unit's control mode page. */
bool scsi_sense_is_descriptor(const struct scsi_task *task);

/* CHECK CONDITION with CODE; gives SCSI_ENDED so that a prepare function can return it. */
enum scsi_prepared scsi_sense_fail(struct scsi_task *task, uint32_t code);
enum scsi_prepared scsi_sense_fail_extra(struct scsi_task *task, uint32_t code,
					 const struct sense_extra *extra);
/* INVALID FIELD IN CDB with the byte it is in. */
enum scsi_prepared scsi_sense_fail_cdb(struct scsi_task *task, unsigned cdb_byte);
/* Sets status and sense for the end of an io: OP ended with ERROR (0 or a negative errno). */
void scsi_sense_from_io(struct scsi_task *task, enum io_op op, int error);

#endif
