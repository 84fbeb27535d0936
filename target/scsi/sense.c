/* SPDX-License-Identifier: MIT
 *
 * Sense formats and the table from an io's status to a SCSI status and sense.
 */
#include <errno.h>

#include "target/scsi/internal.h"

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

static unsigned put_fixed(uint8_t *out, uint32_t code, const struct sense_extra *extra)
{
	memset(out, 0, SCSI_SENSE_BYTES);
	out[0] = 0x70;
	out[2] = (uint8_t)(code >> 16);
	out[7] = SCSI_SENSE_BYTES - 8;
	out[12] = (uint8_t)(code >> 8);
	out[13] = (uint8_t)code;
	if (!extra)
		return SCSI_SENSE_BYTES;
	if (extra->has_information && extra->information <= UINT32_MAX) {
		out[0] |= 0x80; /* VALID */
		put_be32(out + 3, (uint32_t)extra->information);
	}
	if (extra->has_command && extra->command <= UINT32_MAX)
		put_be32(out + 8, (uint32_t)extra->command);
	if (extra->has_key_specific) {
		memcpy(out + 15, extra->key_specific, 3);
		out[15] |= 0x80; /* SKSV */
	}
	return SCSI_SENSE_BYTES;
}

enum sense_descriptor { DESCRIPTOR_INFORMATION, DESCRIPTOR_COMMAND, DESCRIPTOR_KEY_SPECIFIC };

static uint8_t *put_value(uint8_t *at, enum sense_descriptor type, uint64_t value)
{
	memset(at, 0, 12);
	at[0] = (uint8_t)type;
	at[1] = 10;
	at[2] = type == DESCRIPTOR_INFORMATION ? 0x80 : 0; /* VALID */
	put_be64(at + 4, value);
	return at + 12;
}

static unsigned put_descriptor(uint8_t *out, uint32_t code, const struct sense_extra *extra)
{
	uint8_t *at = out + 8;

	memset(out, 0, 8);
	out[0] = 0x72;
	out[1] = (uint8_t)(code >> 16);
	out[2] = (uint8_t)(code >> 8);
	out[3] = (uint8_t)code;
	if (extra && extra->has_information)
		at = put_value(at, DESCRIPTOR_INFORMATION, extra->information);
	if (extra && extra->has_command)
		at = put_value(at, DESCRIPTOR_COMMAND, extra->command);
	if (extra && extra->has_key_specific) {
		memset(at, 0, 8);
		at[0] = DESCRIPTOR_KEY_SPECIFIC;
		at[1] = 6;
		memcpy(at + 4, extra->key_specific, 3);
		at[4] |= 0x80; /* SKSV */
		at += 8;
	}
	out[7] = (uint8_t)(at - out - 8);
	return (unsigned)(at - out);
}

unsigned scsi_sense_put(uint8_t out[SCSI_SENSE_MAX_BYTES], bool descriptor, uint32_t code,
			const struct sense_extra *extra)
{
	return descriptor ? put_descriptor(out, code, extra) : put_fixed(out, code, extra);
}

bool scsi_sense_is_descriptor(const struct scsi_task *task)
{
	return task->lu && task->lu->mode.descriptor_sense;
}

enum scsi_prepared scsi_sense_fail_extra(struct scsi_task *task, uint32_t code,
					 const struct sense_extra *extra)
{
	task->status = SCSI_CHECK_CONDITION;
	task->sense_bytes =
	    (uint8_t)scsi_sense_put(task->sense, scsi_sense_is_descriptor(task), code, extra);
	return SCSI_ENDED;
}

enum scsi_prepared scsi_sense_fail(struct scsi_task *task, uint32_t code)
{
	return scsi_sense_fail_extra(task, code, NULL);
}

enum scsi_prepared scsi_sense_fail_cdb(struct scsi_task *task, unsigned cdb_byte)
{
	struct sense_extra extra = {.has_key_specific = true, .key_specific = {0x40}}; /* C/D */

	put_be16(extra.key_specific + 1, (uint16_t)cdb_byte);
	return scsi_sense_fail_extra(task, SENSE_INVALID_FIELD_IN_CDB, &extra);
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

void scsi_task_fault(struct scsi_task *task, uint8_t asc, uint8_t ascq)
{
	scsi_sense_fail(task, SENSE_ABORTED | (uint32_t)asc << 8 | ascq);
}
