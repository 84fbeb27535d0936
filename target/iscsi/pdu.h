/* SPDX-License-Identifier: MIT
 *
 * The wire layout of RFC 7143 section 11: opcodes, flags, where each field of the 48-byte basic
 * header segment (BHS) stands, and accessors.  Numbers on the wire are big-endian, except the
 * digests, whose bytes are sent least significant first.
 */
#ifndef SANLAB_TARGET_ISCSI_PDU_H
#define SANLAB_TARGET_ISCSI_PDU_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum {
	BHS_BYTES = 48,
	AHS_MAX_BYTES = 255 * 4,
	DIGEST_BYTES = 4,
};

#define ISCSI_NO_TAG UINT32_C(0xffffffff)

enum iscsi_opcode {
	OP_NOP_OUT = 0x00,
	OP_SCSI_COMMAND = 0x01,
	OP_TASK_MANAGEMENT = 0x02,
	OP_LOGIN = 0x03,
	OP_TEXT = 0x04,
	OP_DATA_OUT = 0x05,
	OP_LOGOUT = 0x06,
	OP_SNACK = 0x10,

	OP_NOP_IN = 0x20,
	OP_SCSI_RESPONSE = 0x21,
	OP_TASK_MANAGEMENT_RESPONSE = 0x22,
	OP_LOGIN_RESPONSE = 0x23,
	OP_TEXT_RESPONSE = 0x24,
	OP_DATA_IN = 0x25,
	OP_LOGOUT_RESPONSE = 0x26,
	OP_R2T = 0x31,
	OP_ASYNC = 0x32,
	OP_REJECT = 0x3f,

	OP_MASK = 0x3f,
	OP_IMMEDIATE = 0x40,
};

/* Byte 1. */
enum iscsi_flag {
	FLAG_FINAL = 0x80,
	FLAG_CONTINUE = 0x40, /* login and text: C */
	FLAG_READ = 0x40,     /* SCSI command */
	FLAG_WRITE = 0x20,
	FLAG_ATTRIBUTE = 0x07, /* enum scsi_attribute */
	FLAG_OVERFLOW = 0x04,  /* SCSI response and Data-In */
	FLAG_UNDERFLOW = 0x02,
	FLAG_STATUS = 0x01,  /* Data-In carries the status */
	FLAG_TRANSIT = 0x80, /* login: T */
};

/* Where fields begin.  Several share a place: which one counts depends on the opcode. */
enum bhs_field {
	BHS_OPCODE = 0,
	BHS_FLAGS = 1,
	BHS_RESPONSE = 2, /* SCSI, task management and logout response; Reject reason */
	BHS_STATUS = 3,
	BHS_AHS_WORDS = 4,
	BHS_DATA_BYTES = 5,
	BHS_LUN = 8,
	BHS_ITT = 16,
	BHS_EDTL = 20,
	BHS_TTT = 20,
	BHS_REFERENCED_TAG = 20,
	BHS_CMD_SN = 24,
	BHS_STAT_SN = 24,
	BHS_EXP_STAT_SN = 28,
	BHS_EXP_CMD_SN = 28,
	BHS_CDB = 32,
	BHS_REF_CMD_SN = 32,
	BHS_MAX_CMD_SN = 32,
	BHS_DATA_SN = 36, /* also R2TSN and ExpDataSN */
	BHS_OFFSET = 40,
	BHS_DESIRED_BYTES = 44,
	BHS_RESIDUAL = 44,
	/* login */
	BHS_VERSION_MAX = 2,
	BHS_VERSION_MIN = 3,
	BHS_ISID = 8,
	BHS_TSIH = 14,
	BHS_CID = 20,
	BHS_STATUS_CLASS = 36,
	BHS_STATUS_DETAIL = 37,
	/* asynchronous message */
	BHS_ASYNC_EVENT = 36,
	BHS_ASYNC_PARAMETERS = 38, /* three of 16 bits */
	/* logout response */
	BHS_TIME2WAIT = 40,
	BHS_TIME2RETAIN = 42,
};

/* The fixed part once more as a structure, so that the compiler checks the offsets. */
struct bhs_layout {
	uint8_t opcode, flags, specific[2], ahs_words, data_bytes[3];
	uint8_t lun[8], itt[4], ttt_or_edtl[4], sn[4], expected_sn[4];
	uint8_t cdb[16];
};
_Static_assert(sizeof(struct bhs_layout) == BHS_BYTES, "the BHS has 48 bytes");
_Static_assert(offsetof(struct bhs_layout, data_bytes) == BHS_DATA_BYTES, "DataSegmentLength");
_Static_assert(offsetof(struct bhs_layout, lun) == BHS_LUN, "LUN");
_Static_assert(offsetof(struct bhs_layout, itt) == BHS_ITT, "initiator task tag");
_Static_assert(offsetof(struct bhs_layout, ttt_or_edtl) == BHS_TTT, "target transfer tag");
_Static_assert(offsetof(struct bhs_layout, sn) == BHS_CMD_SN, "CmdSN");
_Static_assert(offsetof(struct bhs_layout, cdb) == BHS_CDB, "CDB");

enum iscsi_stage { STAGE_SECURITY = 0, STAGE_OPERATIONAL = 1, STAGE_FULL_FEATURE = 3 };

/* Login status, class in the high byte (RFC 7143 11.13.5). */
enum iscsi_login_status {
	LOGIN_SUCCESS = 0x0000,
	LOGIN_MOVED_TEMPORARILY = 0x0101,
	LOGIN_INITIATOR_ERROR = 0x0200,
	LOGIN_AUTHENTICATION_FAILED = 0x0201,
	LOGIN_NOT_AUTHORISED = 0x0202,
	LOGIN_NOT_FOUND = 0x0203,
	LOGIN_UNSUPPORTED_VERSION = 0x0205,
	LOGIN_TOO_MANY_CONNECTIONS = 0x0206,
	LOGIN_MISSING_PARAMETER = 0x0207,
	LOGIN_CANNOT_INCLUDE = 0x0208,
	LOGIN_SESSION_TYPE_UNSUPPORTED = 0x0209,
	LOGIN_NO_SUCH_SESSION = 0x020a,
	LOGIN_INVALID_DURING_LOGIN = 0x020b,
	LOGIN_TARGET_ERROR = 0x0300,
	LOGIN_SERVICE_UNAVAILABLE = 0x0301,
	LOGIN_OUT_OF_RESOURCES = 0x0302,
};

/* RFC 7143 11.17.1 */
enum iscsi_reject_reason {
	REJECT_DATA_DIGEST = 0x02,
	REJECT_SNACK = 0x03,
	REJECT_PROTOCOL_ERROR = 0x04,
	REJECT_NOT_SUPPORTED = 0x05,
	REJECT_TOO_MANY_IMMEDIATE = 0x06,
	REJECT_TASK_IN_PROGRESS = 0x07,
	REJECT_INVALID_FIELD = 0x09,
	REJECT_OUT_OF_RESOURCES = 0x0a,
};

/* RFC 7143 11.5.1 and 11.6.1 */
enum iscsi_tmf_function {
	TMF_ABORT_TASK = 1,
	TMF_ABORT_TASK_SET = 2,
	TMF_CLEAR_ACA = 3,
	TMF_CLEAR_TASK_SET = 4,
	TMF_LU_RESET = 5,
	TMF_TARGET_WARM_RESET = 6,
	TMF_TARGET_COLD_RESET = 7,
	TMF_TASK_REASSIGN = 8,
};

enum iscsi_tmf_response {
	TMF_COMPLETE = 0,
	TMF_NO_TASK = 1,
	TMF_NO_LUN = 2,
	TMF_NO_REASSIGN = 4,
	TMF_NOT_SUPPORTED = 5,
	TMF_REJECTED = 255,
};

enum iscsi_logout_reason { LOGOUT_SESSION = 0, LOGOUT_CONNECTION = 1, LOGOUT_RECOVERY = 2 };
enum iscsi_logout_response { LOGOUT_CLOSED = 0, LOGOUT_NO_CID = 1, LOGOUT_NO_RECOVERY = 2 };

/* RFC 7143 11.9.1 */
enum iscsi_async_event {
	ASYNC_SCSI = 0,
	ASYNC_LOGOUT_REQUEST = 1,
	ASYNC_DROP_CONNECTION = 2,
	ASYNC_DROP_SESSION = 3,
};

enum iscsi_ahs_type { AHS_EXTENDED_CDB = 1, AHS_BIDIRECTIONAL_LENGTH = 2 };

static inline enum iscsi_opcode bhs_opcode(const uint8_t *bhs)
{
	return (enum iscsi_opcode)(bhs[BHS_OPCODE] & OP_MASK);
}

static inline bool bhs_immediate(const uint8_t *bhs)
{
	return bhs[BHS_OPCODE] & OP_IMMEDIATE;
}

static inline bool bhs_final(const uint8_t *bhs)
{
	return bhs[BHS_FLAGS] & FLAG_FINAL;
}

static inline uint32_t bhs_data_bytes(const uint8_t *bhs)
{
	return get_be24(bhs + BHS_DATA_BYTES);
}

static inline uint32_t bhs_ahs_bytes(const uint8_t *bhs)
{
	return bhs[BHS_AHS_WORDS] * UINT32_C(4);
}

static inline uint32_t bhs_itt(const uint8_t *bhs)
{
	return get_be32(bhs + BHS_ITT);
}

static inline uint32_t bhs_ttt(const uint8_t *bhs)
{
	return get_be32(bhs + BHS_TTT);
}

static inline uint32_t bhs_cmd_sn(const uint8_t *bhs)
{
	return get_be32(bhs + BHS_CMD_SN);
}

static inline uint32_t pdu_pad_bytes(uint32_t data_bytes)
{
	return -data_bytes & 3;
}

/* A digest on the wire. */
static inline void put_digest(uint8_t *p, uint32_t crc)
{
	p[0] = (uint8_t)crc;
	p[1] = (uint8_t)(crc >> 8);
	p[2] = (uint8_t)(crc >> 16);
	p[3] = (uint8_t)(crc >> 24);
}

static inline uint32_t get_digest(const uint8_t *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

#endif
