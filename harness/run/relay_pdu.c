/* SPDX-License-Identifier: MIT
 *
 * Framing of PDUs (RFC 7143 11.2) on a stream that is only watched.
 */
#include "harness/run/relay_pdu.h"

#include <string.h>

#include "base/bytes.h"

enum {
	OPCODE_MASK = 0x3f,
	OPCODE_LOGIN_RESPONSE = 0x23,
	AT_FLAGS = 1,
	AT_AHS_WORDS = 4,
	AT_DATA_BYTES = 5,
	AT_LOGIN_STATUS = 36,
	LOGIN_TRANSIT = 0x80,
	LOGIN_NEXT_STAGE = 0x03,
	STAGE_FULL_FEATURE = 3,
	DIGEST_BYTES = 4,
};

/* The initiator's opcodes are below 20h, the target's from 20h to 3Fh; bit 7 is reserved. */
static bool plausible(const uint8_t *bhs)
{
	return !(bhs[0] & 0x80);
}

static void header_complete(struct relay_pdu *pdu, const struct relay_digests *digests,
			    struct relay_pdu_seen *seen)
{
	uint64_t ahs = pdu->bhs[AT_AHS_WORDS] * UINT64_C(4);
	uint64_t data = get_be24(pdu->bhs + AT_DATA_BYTES);

	pdu->left = ahs + (digests->header ? DIGEST_BYTES : 0) + round_up_u64(data, 4) +
		    (digests->data && data ? DIGEST_BYTES : 0);
	pdu->login = (pdu->bhs[0] & OPCODE_MASK) == OPCODE_LOGIN_RESPONSE;
	pdu->text_bytes = 0;
	pdu->text_wanted = pdu->login ? (size_t)data : 0;
	if (!plausible(pdu->bhs)) {
		pdu->lost_sync = true;
		return;
	}
	*seen = (struct relay_pdu_seen){
	    .header = true,
	    .opcode = pdu->bhs[0] & OPCODE_MASK,
	    .wire_bytes = RELAY_BHS_BYTES + pdu->left,
	};
}

static bool has_pair(const struct relay_pdu *pdu, const char *pair)
{
	/* The final zero belongs to it: "CRC32C" alone was chosen, not offered. */
	return memmem(pdu->text, pdu->text_bytes, pair, strlen(pair) + 1) != NULL;
}

static void login_complete(const struct relay_pdu *pdu, struct relay_digests *digests)
{
	if (has_pair(pdu, "HeaderDigest=CRC32C"))
		digests->header_agreed = true;
	if (has_pair(pdu, "DataDigest=CRC32C"))
		digests->data_agreed = true;
	if (pdu->bhs[AT_LOGIN_STATUS] != 0 || !(pdu->bhs[AT_FLAGS] & LOGIN_TRANSIT) ||
	    (pdu->bhs[AT_FLAGS] & LOGIN_NEXT_STAGE) != STAGE_FULL_FEATURE)
		return;
	digests->header = digests->header_agreed;
	digests->data = digests->data_agreed;
}

static void keep_text(struct relay_pdu *pdu, const uint8_t *bytes, size_t size)
{
	size_t room = MIN_OF(pdu->text_wanted, sizeof pdu->text) - pdu->text_bytes;
	size_t n = MIN_OF(size, room);

	memcpy(pdu->text + pdu->text_bytes, bytes, n);
	pdu->text_bytes += n;
}

size_t relay_pdu_step(struct relay_pdu *pdu, struct relay_digests *digests, const uint8_t *bytes,
		      size_t size, struct relay_pdu_seen *ret_seen)
{
	size_t n;

	*ret_seen = (struct relay_pdu_seen){.header = false};
	if (pdu->lost_sync)
		return size;
	if (pdu->have < RELAY_BHS_BYTES) {
		n = MIN_OF(size, (size_t)RELAY_BHS_BYTES - pdu->have);
		memcpy(pdu->bhs + pdu->have, bytes, n);
		pdu->have += (unsigned)n;
		if (pdu->have == RELAY_BHS_BYTES)
			header_complete(pdu, digests, ret_seen);
	} else {
		n = (size_t)MIN_OF((uint64_t)size, pdu->left);
		if (pdu->login)
			keep_text(pdu, bytes, n);
		pdu->left -= n;
	}
	if (pdu->have == RELAY_BHS_BYTES && pdu->left == 0 && !pdu->lost_sync) {
		if (pdu->login)
			login_complete(pdu, digests);
		pdu->have = 0;
	}
	return n;
}
