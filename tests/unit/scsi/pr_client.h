/* SPDX-License-Identifier: MIT
 *
 * PERSISTENT RESERVE commands as the tests send them, on the thin logical unit of the fixture.
 */
#ifndef SANLAB_TESTS_UNIT_SCSI_PR_CLIENT_H
#define SANLAB_TESTS_UNIT_SCSI_PR_CLIENT_H

#include "target/scsi/internal.h"
#include "tests/unit/scsi/fixture.h"

#define CONFLICT UINT32_C(0x18) /* the status; else 0 for GOOD, or a sense code */

enum { PR_FLAG_APTPL = 0x01, PR_FLAG_ALL_TG_PT = 0x04, PR_FLAG_SPEC_I_PT = 0x08 };

uint32_t outcome(const struct request *request);

/* With the basic parameter list of 24 bytes. */
uint32_t pr_out(struct scsi_nexus *nexus, enum pr_action action, uint8_t type, uint64_t key,
		uint64_t service_key, uint8_t flags);
/* With any list; LENGTH is the CDB's, of which EDTL bytes come. */
uint32_t pr_out_list(struct scsi_nexus *nexus, enum pr_action action, uint8_t scope_type,
		     const void *list, uint32_t length, uint32_t edtl_bytes);
void pr_list(uint8_t list[24], uint64_t key, uint64_t service_key, uint8_t flags);

/* Reads parameter data into OUT; returns what came. */
uint32_t pr_in(struct scsi_nexus *nexus, uint8_t action, uint8_t *out, uint16_t allocation_bytes);
void expect_keys(struct scsi_nexus *nexus, uint32_t generation, unsigned count,
		 const uint64_t *keys);
#define KEYS(...)                                                       \
	sizeof((const uint64_t[]){__VA_ARGS__}) / 8, (const uint64_t[]) \
	{                                                               \
		__VA_ARGS__                                             \
	}
void expect_reservation(struct scsi_nexus *nexus, uint8_t type, uint64_t key);

/* TEST UNIT READY and its outcome. */
uint32_t tur(struct scsi_nexus *nexus);
/* One 6, 10, 12 or 16-byte command without data-out. */
uint32_t run_cdb(struct scsi_nexus *nexus, const uint8_t *cdb, size_t cdb_bytes);

#endif
