/* SPDX-License-Identifier: MIT
 *
 * A device with three logical units and two nexuses, and a transport that runs one command.
 */
#ifndef SANLAB_TESTS_UNIT_SCSI_FIXTURE_H
#define SANLAB_TESTS_UNIT_SCSI_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "target/scsi/scsi.h"
#include "tests/unit/scsi/fake_volume.h"

enum { LUN_THIN = 0, LUN_THICK = 1, LUN_HUGE = 2, LUN_NONE = 9 };

#define THIN_BYTES (4 * MIB)
#define HUGE_BYTES (UINT64_C(1) << 52)

struct fixture {
	struct loop *loop;
	struct buf_pool *pool;
	struct scsi_device *device;
	struct scsi_target *target;
	struct scsi_nexus *a, *b;
	struct volume thin;  /* 512-byte blocks */
	struct volume thick; /* 4 KiB blocks */
	struct volume huge;  /* 512-byte blocks, thin, more than 2^32 of them */
};

/* A task with what the transport keeps beside it. */
struct request {
	struct scsi_task task;
	enum scsi_prepared prepared;
	struct iovec iov[3];
	unsigned done_count;
};

int fixture_setup(void **state); /* power-on unit attentions are already consumed */
int fixture_teardown(void **state);

/* Prepares only; `lun` in peripheral addressing. */
void request_prepare(struct request *request, struct scsi_nexus *nexus, unsigned lun,
		     const uint8_t *cdb, size_t cdb_bytes, uint32_t edtl_bytes);
/* Hands over MIN(out_bytes, edtl) bytes of OUT in three uneven pieces and executes. */
void request_execute(struct request *request, const void *out);
/* Both; afterwards the task has ended (no deferred volume). */
void request_run(struct request *request, struct scsi_nexus *nexus, unsigned lun,
		 const uint8_t *cdb, size_t cdb_bytes, const void *out, uint32_t edtl_bytes);
void request_release(struct request *request);

/* Key << 16 | ASC << 8 | ASCQ of the sense; asserts CHECK CONDITION. */
uint32_t request_sense_code(const struct request *request);

/* Runs a command that must end GOOD and have data-in; returns it. */
const uint8_t *request_good_in(struct request *request, struct scsi_nexus *nexus, unsigned lun,
			       const uint8_t *cdb, size_t cdb_bytes);
/* Runs a command, with OUT_BYTES of data-out, that must end with CODE (0: GOOD). */
void request_expect(struct scsi_nexus *nexus, unsigned lun, const uint8_t *cdb, size_t cdb_bytes,
		    const void *out, uint32_t out_bytes, uint32_t code);

#define CDB(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

/* READ/WRITE/VERIFY/SYNCHRONIZE CACHE (16). */
void cdb16(uint8_t cdb[16], uint8_t opcode, uint8_t flags, uint64_t lba, uint32_t blocks);

#endif
