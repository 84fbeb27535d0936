/* SPDX-License-Identifier: MIT
 *
 * Sense formats and the table from an io's status to a SCSI status and sense.
 */
#include "target/scsi/sense.h"

#include <errno.h>

struct io_sense {
	int error;
	uint8_t status;
	uint32_t read_code; /* for data read from the medium */
	uint32_t code;	    /* for everything else */
};

/* BUSY rather than sense where coming again is all the initiator has to do. */
static const struct io_sense io_sense_table[] = {
    {-EIO, SCSI_CHECK_CONDITION, SENSE_READ_ERROR, SENSE_WRITE_ERROR},
    {-ENODEV, SCSI_CHECK_CONDITION, SENSE_LU_FAILURE, SENSE_LU_FAILURE},
    {-ENOSPC, SCSI_CHECK_CONDITION, SENSE_SPACE_ALLOCATION, SENSE_SPACE_ALLOCATION},
    {-ERANGE, SCSI_CHECK_CONDITION, SENSE_LBA_OUT_OF_RANGE, SENSE_LBA_OUT_OF_RANGE},
    {-EROFS, SCSI_CHECK_CONDITION, SENSE_WRITE_PROTECTED, SENSE_WRITE_PROTECTED},
    {-ETIMEDOUT, SCSI_CHECK_CONDITION, SENSE_TIMEOUT, SENSE_TIMEOUT},
    {-ECANCELED, SCSI_CHECK_CONDITION, SENSE_ABORTED, SENSE_ABORTED},
    {-EBUSY, SCSI_BUSY, SENSE_NONE, SENSE_NONE},
    {-ENOMEM, SCSI_BUSY, SENSE_NONE, SENSE_NONE},
};

void scsi_sense_put_fixed(uint8_t out[SCSI_SENSE_BYTES], uint32_t code)
{
	memset(out, 0, SCSI_SENSE_BYTES);
	out[0] = 0x70;
	out[2] = (uint8_t)(code >> 16);
	out[7] = SCSI_SENSE_BYTES - 8;
	out[12] = (uint8_t)(code >> 8);
	out[13] = (uint8_t)code;
}

void scsi_sense_put_descriptor(uint8_t out[8], uint32_t code)
{
	memset(out, 0, 8);
	out[0] = 0x72;
	out[1] = (uint8_t)(code >> 16);
	out[2] = (uint8_t)(code >> 8);
	out[3] = (uint8_t)code;
}

enum scsi_prepared scsi_sense_fail(struct scsi_task *task, uint32_t code)
{
	task->status = SCSI_CHECK_CONDITION;
	scsi_sense_put_fixed(task->sense, code);
	task->sense_bytes = SCSI_SENSE_BYTES;
	return SCSI_ENDED;
}

void scsi_sense_from_io(struct scsi_task *task, enum io_op op, int error)
{
	if (error == 0) {
		task->status = SCSI_GOOD;
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(io_sense_table); i++) {
		const struct io_sense *row = &io_sense_table[i];

		if (row->error != error)
			continue;
		if (row->status != SCSI_CHECK_CONDITION)
			task->status = row->status;
		else
			scsi_sense_fail(task, op == IO_READ ? row->read_code : row->code);
		return;
	}
	scsi_sense_fail(task, SENSE_INTERNAL_FAILURE);
}
