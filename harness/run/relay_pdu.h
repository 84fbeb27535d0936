/* SPDX-License-Identifier: MIT
 *
 * Where the PDUs of an iSCSI connection begin and how large they are, from its bytes alone: for
 * faults that hit large PDUs, or the header of one.  Works against any initiator and target.
 *
 * Digests change the framing once the login has ended; what was negotiated is read from the login
 * responses.  Pure.
 */
#ifndef SANLAB_HARNESS_RUN_RELAY_PDU_H
#define SANLAB_HARNESS_RUN_RELAY_PDU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RELAY_BHS_BYTES = 48, RELAY_LOGIN_TEXT_BYTES = 2048 };

/* Of one connection; both directions use it. */
struct relay_digests {
	bool header, data;		 /* in use */
	bool header_agreed, data_agreed; /* in use from the full feature phase on */
};

/* One direction. */
struct relay_pdu {
	uint8_t bhs[RELAY_BHS_BYTES];
	unsigned have;	/* bytes of the header so far */
	uint64_t left;	/* bytes of the PDU after the header */
	bool login;	/* a login response: its text is kept */
	bool lost_sync; /* no iSCSI: everything after is one endless PDU */
	char text[RELAY_LOGIN_TEXT_BYTES];
	size_t text_bytes, text_wanted;
};

struct relay_pdu_seen {
	bool header;	     /* a header has just become complete */
	uint8_t opcode;	     /* of it */
	uint64_t wire_bytes; /* the whole PDU, digests and padding included */
};

/* Takes bytes up to the end of a header, the end of a PDU, or all; returns how many (at least one
 * of SIZE > 0). */
size_t relay_pdu_step(struct relay_pdu *pdu, struct relay_digests *digests, const uint8_t *bytes,
		      size_t size, struct relay_pdu_seen *ret_seen);

#endif
