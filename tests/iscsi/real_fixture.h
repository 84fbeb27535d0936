/* SPDX-License-Identifier: MIT
 *
 * The whole target and raw-PDU clients: what the tests of faults that other targets had begin with.
 */
#ifndef SANLAB_TESTS_ISCSI_REAL_FIXTURE_H
#define SANLAB_TESTS_ISCSI_REAL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/iscsi/real_target.h"
#include "tests/unit/iscsi/pdu_client.h"

enum { REAL_CLIENTS = 4, REAL_MOST_BYTES = 1 << 20 };

struct real_fixture {
	struct real_target target;
	/* Each is another initiator port: the same name, ISIDs that differ in the last byte. */
	struct pdu_client client[REAL_CLIENTS];
	uint8_t *pattern, *back; /* REAL_MOST_BYTES each */
};

int real_setup(void **state);
int real_teardown(void **state);
#define REAL_TEST(name) cmocka_unit_test_setup_teardown(name, real_setup, real_teardown)

/* Opens CLIENT on the portal and logs it in with EXTRA keys; then reports and so clears the unit
 * attentions of a new nexus. */
struct pdu_client *real_login(struct real_fixture *f, unsigned client, const char *extra,
			      size_t extra_size);
struct pdu_client *real_login_at(struct real_fixture *f, unsigned client,
				 struct iscsi_portal *portal, const char *extra, size_t extra_size);
/* The same without touching the unit attentions. */
struct pdu_client *real_login_only(struct real_fixture *f, unsigned client, const char *extra,
				   size_t extra_size);

/* A command to LUN, sent with no data; ITT in BHS. */
void real_command(struct pdu_client *c, uint8_t bhs[BHS_BYTES], unsigned lun, unsigned flags,
		  const uint8_t *cdb, size_t cdb_bytes, uint32_t edtl, const void *data,
		  uint32_t data_bytes);
#define CDB(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

/* The end of a command: its data-in goes to BACK (may be NULL). */
struct real_answer {
	uint8_t status;
	uint32_t sense; /* key << 16 | ASC << 8 | ASCQ; 0: none */
	const uint8_t *sense_data;
	uint32_t sense_bytes;
	uint32_t data_bytes;
	uint32_t data_pdus;
	uint32_t overflow, underflow; /* residual counts */
	uint8_t bhs[BHS_BYTES];
};
/* Takes PDUs until the command ITT has its status: Data-In and status are checked in passing, a
 * R2T is answered with the fixture's pattern. */
struct real_answer real_finish(struct real_fixture *f, struct pdu_client *c, uint32_t itt);
/* real_command and real_finish. */
struct real_answer real_run(struct real_fixture *f, struct pdu_client *c, unsigned lun,
			    unsigned flags, const uint8_t *cdb, size_t cdb_bytes, uint32_t edtl,
			    const void *data, uint32_t data_bytes);
/* Writes or reads BLOCKS of 512 bytes of LUN as a sane initiator would. */
void real_write(struct real_fixture *f, struct pdu_client *c, unsigned lun, uint32_t lba,
		uint16_t blocks, const uint8_t *data);
const uint8_t *real_read(struct real_fixture *f, struct pdu_client *c, unsigned lun, uint32_t lba,
			 uint16_t blocks);
/* TEST UNIT READY until it is GOOD (at most a few unit attentions). */
void real_settle_attentions(struct real_fixture *f, struct pdu_client *c, unsigned lun);
/* TEST UNIT READY on LUN: its sense, or 0 when GOOD. */
uint32_t real_attention(struct real_fixture *f, struct pdu_client *c, unsigned lun);
/* The session works: TEST UNIT READY is answered GOOD. */
void real_alive(struct real_fixture *f, struct pdu_client *c);

/* Bytes that tell where they belong. */
void real_pattern(uint8_t *to, size_t bytes, unsigned seed);

#endif
