/* SPDX-License-Identifier: MIT
 *
 * FORMAT UNIT, SBC-3 5.3: with a short or a long parameter list header, with an initialization
 * pattern, immediate or not.  The operation itself is in wipe.c.
 *
 * An array has no defects to certify and no protection information to lay out: what asks for a
 * layout we have not got is refused, and so is a defect list.  Without an initialization pattern
 * the blocks are deallocated, and read as zeros.
 *
 * The CDB does not tell how long the list is: as much as the initiator has is taken, up to the
 * longest list there can be, and what the list does not need is a residual.
 */
#include "target/scsi/wipe.h"

enum {
	SHORT_HEADER_BYTES = 4,
	LONG_HEADER_BYTES = 8,
	PATTERN_HEADER_BYTES = 4, /* of the initialization pattern descriptor */
};

enum cdb_bit {
	CDB_PROTECTION = 0xc0, /* FMTPINFO */
	CDB_LONG_LIST = 0x20,
	CDB_DATA = 0x10,	/* FMTDATA: there is a list */
	CDB_COMPLETE = 0x08,	/* CMPLST: forget older defect lists, of which there are none */
	CDB_LIST_FORMAT = 0x07, /* of a defect list */
	CDB_FAST = 0x03,	/* FFMT, in byte 4 */
};

enum list_bit {
	LIST_FOV = 0x80, /* the four that follow are valid */
	LIST_DPRY = 0x40,
	LIST_DCRT = 0x20,
	LIST_STPF = 0x10,
	LIST_IP = 0x08, /* an initialization pattern descriptor follows */
	LIST_IMMED = 0x02,
	LIST_OBSOLETE = 0x05, /* DSP, and a vendor's bit */
};

struct format {
	bool immediate;
	uint32_t pattern_at, pattern_bytes; /* pattern_bytes 0: none */
	uint32_t list_bytes;		    /* what the list needs */
};

static uint32_t list_max_bytes(const struct scsi_lu *lu)
{
	return LONG_HEADER_BYTES + PATTERN_HEADER_BYTES + lu->block_bytes;
}

static enum scsi_prepared format_prepare(struct scsi_task *task)
{
	unsigned bits = task->cdb[1];

	if (!scsi_wipe_ready(task))
		return SCSI_ENDED;
	if (task->lu->conditions & LU_SANITIZE_FAILED)
		return scsi_sense_fail(task, SENSE_SANITIZE_FAILED);
	if ((bits & (CDB_PROTECTION | CDB_LIST_FORMAT)) ||
	    ((bits & CDB_COMPLETE) && !(bits & CDB_DATA)))
		return scsi_sense_fail_cdb(task, 1);
	if (task->cdb[4] & CDB_FAST)
		return scsi_sense_fail_cdb(task, 4);
	if (bits & CDB_DATA)
		task->out_bytes = MIN_OF(task->edtl_bytes, list_max_bytes(task->lu));
	task->transfer_bytes = task->out_bytes;
	return task->out_bytes > 0 ? SCSI_NEEDS_DATA : SCSI_READY;
}

/* The initialization pattern descriptor at AT of the BYTES of LIST. */
static uint32_t take_pattern(const uint8_t *list, uint32_t bytes, uint32_t at, uint32_t block_bytes,
			     struct format *format)
{
	const uint8_t *descriptor = list + at;
	uint32_t pattern_bytes;

	if (bytes - at < PATTERN_HEADER_BYTES)
		return SENSE_PARAMETER_LIST_LENGTH;
	pattern_bytes = get_be16(descriptor + 2);
	/* SI, a security initialization, is what SANITIZE does better.  Types: 0 our default, 1 the
	 * pattern that follows. */
	if (descriptor[0] != 0 || descriptor[1] > 1 || pattern_bytes > block_bytes ||
	    (descriptor[1] == 0) != (pattern_bytes == 0))
		return SENSE_INVALID_FIELD_IN_LIST;
	if (pattern_bytes > bytes - at - PATTERN_HEADER_BYTES)
		return SENSE_PARAMETER_LIST_LENGTH;
	format->pattern_at = at + PATTERN_HEADER_BYTES;
	format->pattern_bytes = pattern_bytes;
	format->list_bytes = format->pattern_at + pattern_bytes;
	return SENSE_NONE;
}

static uint32_t take_list(const uint8_t *list, uint32_t bytes, bool long_header,
			  uint32_t block_bytes, struct format *format)
{
	uint32_t header_bytes = long_header ? LONG_HEADER_BYTES : SHORT_HEADER_BYTES;
	uint8_t bits;

	if (bytes < header_bytes)
		return SENSE_PARAMETER_LIST_LENGTH;
	bits = list[1];
	/* PROTECTION FIELDS USAGE, P_I_INFORMATION and PROTECTION INTERVAL EXPONENT; the length of
	 * the defect list */
	if (list[0] != 0 || (long_header ? get_be16(list + 2) != 0 || get_be32(list + 4) != 0
					 : get_be16(list + 2) != 0))
		return SENSE_INVALID_FIELD_IN_LIST;
	if ((bits & LIST_OBSOLETE) ||
	    (!(bits & LIST_FOV) && (bits & (LIST_DPRY | LIST_DCRT | LIST_STPF | LIST_IP))))
		return SENSE_INVALID_FIELD_IN_LIST;
	format->immediate = bits & LIST_IMMED;
	format->list_bytes = header_bytes;
	if (!(bits & LIST_IP))
		return SENSE_NONE;
	return take_pattern(list, bytes, header_bytes, block_bytes, format);
}

/* False: the task has ended. */
static bool format_list(struct scsi_task *task, struct format *format)
{
	uint8_t list[LONG_HEADER_BYTES + PATTERN_HEADER_BYTES];
	uint32_t bytes = MIN_OF(task->out_bytes, task->out_got_bytes);
	uint32_t code;

	iov_to_mem(task->out_iov, task->out_iov_count, 0, list,
		   MIN_OF(bytes, (uint32_t)sizeof list));
	code = take_list(list, bytes, task->cdb[1] & CDB_LONG_LIST, task->lu->block_bytes, format);
	if (code != SENSE_NONE) {
		scsi_task_fail(task, code);
		return false;
	}
	task->transfer_bytes = format->list_bytes;
	return true;
}

static void format_execute(struct scsi_task *task)
{
	struct format format = {0};
	struct wipe_plan plan = {.passes = 1,
				 .running = LU_FORMATTING,
				 .failed = LU_FORMAT_FAILED,
				 .failed_code = SENSE_FORMAT_FAILED};

	if ((task->cdb[1] & CDB_DATA) && !format_list(task, &format))
		return;
	if (format.pattern_bytes > 0) {
		plan.pattern = scsi_wipe_pattern(task, format.pattern_at, format.pattern_bytes);
		if (!plan.pattern)
			return;
	}
	scsi_wipe_begin(task, &plan, format.immediate);
}

const struct scsi_command scsi_format_commands[] = {
    {.opcode = 0x04,
     .service_action = -1,
     .cdb_bytes = 6,
     .flags = SCSI_CMD_WRITES | SCSI_CMD_RANGE | SCSI_CMD_WHOLE_LU | SCSI_CMD_ATOMIC,
     .name = "FORMAT UNIT",
     .usage = {0x04, 0xff, 0x00, 0x00, 0x03, 0x04},
     .prepare = format_prepare,
     .execute = format_execute,
     .abort = scsi_wipe_abort},
    {0},
};
