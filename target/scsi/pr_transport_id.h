/* SPDX-License-Identifier: MIT
 *
 * iSCSI TransportIDs (SPC-4 7.6.4.6): how reservations name initiator ports.
 *
 *   0     format code (bits 7, 6): 00b an initiator device, its name; 01b an initiator port, its
 *         "NAME,i,0xISID"; protocol identifier (bits 3-0) 5
 *   2     additional length, at least 20 and a multiple of 4
 *   4...  the text with its NUL, padded with NULs
 */
#ifndef SANLAB_TARGET_SCSI_PR_TRANSPORT_ID_H
#define SANLAB_TARGET_SCSI_PR_TRANSPORT_ID_H

#include "target/scsi/pr_state.h"

enum { PR_TRANSPORT_ID_MAX_BYTES = 4 + 244 }; /* a 223-byte name, ",i,0x", 12 digits, NUL, padded */

/* Writes format 01b; returns its length. */
unsigned pr_transport_id_put(uint8_t *out, const struct pr_initiator *initiator);

/* Reads one from the SIZE bytes at DATA; false: malformed.  *ret_is_device: format 00b, no ISID.
 * On success *ret_bytes is where the next one begins. */
bool pr_transport_id_get(const uint8_t *data, size_t size, struct pr_initiator *ret_initiator,
			 bool *ret_is_device, size_t *ret_bytes);

#endif
