/* SPDX-License-Identifier: MIT
 *
 * An initiator for tests that speaks raw PDUs to a connection of the server, in memory: any field
 * can be wrong, any byte boundary can be a read boundary.
 *
 * The client keeps what a correct initiator would (CmdSN, ITT, ExpStatSN) and fills it in where
 * the caller has not.  Digests are added and checked once `header_digest`/`data_digest` are set.
 */
#ifndef SANLAB_TESTS_UNIT_ISCSI_PDU_CLIENT_H
#define SANLAB_TESTS_UNIT_ISCSI_PDU_CLIENT_H

#include "target/iscsi/conn.h"

enum { PDU_CLIENT_WIRE_BYTES = 8 << 20 };

/* A received PDU; data belongs to the client and lives until the next receive. */
struct pdu {
	uint8_t bhs[BHS_BYTES];
	const uint8_t *data;
	uint32_t data_bytes;
};

struct pdu_client {
	struct iscsi_server *server;
	struct iscsi_conn *conn; /* NULL: closed by the server */
	bool closed, was_reset;
	size_t read_split;  /* the server reads at most so many bytes at once; 0: any */
	size_t write_split; /* the client takes at most so many at once; 0: any */
	bool header_digest, data_digest;
	uint32_t cmd_sn, itt, exp_stat_sn, exp_cmd_sn, max_cmd_sn;
	uint8_t isid[6];
	uint16_t tsih, cid;
	const char *initiator_name;
	uint16_t login_status;	/* of the last login response */
	char login_text[32768]; /* all keys answered, with their NULs */
	size_t login_text_bytes;
	uint8_t *to_server; /* on its way: [sent, filled) */
	size_t sent, filled;
	uint8_t *from_server;
	size_t got, taken;
};

void pdu_client_init(struct pdu_client *client, struct iscsi_server *server);
void pdu_client_open(struct pdu_client *client, struct iscsi_portal *portal);
/* Closes as a peer that has gone away would. */
void pdu_client_close(struct pdu_client *client);
void pdu_client_done(struct pdu_client *client);

/* Moves bytes both ways until nothing moves any more; lets the loop do what is queued. */
void pdu_client_pump(struct pdu_client *client);
/* The same without taking output: an initiator that does not read. */
void pdu_client_push(struct pdu_client *client);

/* Header with opcode and flags; everything else zero. */
void pdu_begin(uint8_t bhs[BHS_BYTES], unsigned opcode, unsigned flags);
/* Sends; DATA may be NULL.  Sets the data segment length unless `raw_length` is what is wanted. */
void pdu_send(struct pdu_client *client, uint8_t *bhs, const void *data, uint32_t data_bytes);
void pdu_send_ahs(struct pdu_client *client, uint8_t *bhs, const void *ahs, uint32_t ahs_bytes,
		  const void *data, uint32_t data_bytes);
/* Puts bytes on the wire as they are. */
void pdu_send_raw(struct pdu_client *client, const void *bytes, size_t size);
/* The next PDU of the server; false: none. */
bool pdu_receive(struct pdu_client *client, struct pdu *ret_pdu);
/* The next one must be there and have OPCODE. */
struct pdu pdu_expect(struct pdu_client *client, unsigned opcode);
void pdu_expect_nothing(struct pdu_client *client);

/* Sends one Login Request; KEYS as "A=b\0C=d\0" with its size. */
void pdu_login_send(struct pdu_client *client, unsigned flags, const char *keys, size_t size);
/* Sends one and takes its answer into login_status and login_text (appended). */
void pdu_login_step(struct pdu_client *client, unsigned flags, const char *keys, size_t size);
/* Security stage, then operational stage with the keys of EXTRA after the usual ones; the
 * defaults are those of open-iscsi.  Returns the status. */
uint16_t pdu_login(struct pdu_client *client, const char *target, const char *extra,
		   size_t extra_size);
uint16_t pdu_login_discovery(struct pdu_client *client, const char *extra, size_t extra_size);
/* The value the server answered for KEY, or NULL. */
const char *pdu_login_value(const struct pdu_client *client, const char *key);
#define PDU_KEYS(text) (text), sizeof(text)

/* SCSI commands: LUN 0 unless set in the returned header.  Flags: FLAG_READ, FLAG_WRITE, plus
 * FLAG_FINAL.  CmdSN and ITT are taken from the client and counted on. */
void pdu_command(struct pdu_client *client, uint8_t bhs[BHS_BYTES], unsigned flags,
		 const uint8_t *cdb, uint32_t edtl);
void pdu_read10(struct pdu_client *client, uint8_t bhs[BHS_BYTES], uint32_t lba, uint16_t blocks);
void pdu_write10(struct pdu_client *client, uint8_t bhs[BHS_BYTES], uint32_t lba, uint16_t blocks,
		 unsigned flags);
void pdu_data_out(uint8_t bhs[BHS_BYTES], uint32_t itt, uint32_t ttt, uint32_t data_sn,
		  uint32_t offset, bool final);
/* TEST UNIT READY; the status of its answer.  A quick sign of life. */
uint8_t pdu_test_unit_ready(struct pdu_client *client);
/* A task management request, immediate. */
void pdu_tmf(struct pdu_client *client, uint8_t bhs[BHS_BYTES], unsigned function,
	     uint32_t referenced_itt, uint32_t ref_cmd_sn);

#endif
