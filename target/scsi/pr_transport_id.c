/* SPDX-License-Identifier: MIT
 *
 * Reading and writing iSCSI TransportIDs.
 */
#include "target/scsi/pr_transport_id.h"

#include <ctype.h>
#include <stdio.h>

#include "base/bytes.h"

enum { HEADER_BYTES = 4, MIN_TEXT_BYTES = 20, PROTOCOL_ISCSI = 5, ISID_DIGITS = 12 };

static const char separator[] = ",i,0x";

unsigned pr_transport_id_put(uint8_t *out, const struct pr_initiator *initiator)
{
	char text[PR_NAME_BYTES + sizeof separator + ISID_DIGITS];
	const uint8_t *isid = initiator->isid;
	unsigned bytes =
	    (unsigned)snprintf(text, sizeof text, "%s%s%02x%02x%02x%02x%02x%02x", initiator->name,
			       separator, isid[0], isid[1], isid[2], isid[3], isid[4], isid[5]);
	unsigned padded = MAX_OF((unsigned)round_up_u64(bytes + 1, 4), MIN_TEXT_BYTES);

	memset(out, 0, HEADER_BYTES + padded);
	out[0] = 0x40 | PROTOCOL_ISCSI;
	put_be16(out + 2, (uint16_t)padded);
	memcpy(out + HEADER_BYTES, text, bytes);
	return HEADER_BYTES + padded;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool isid_get(const char *text, uint8_t isid[PR_ISID_BYTES])
{
	if (strlen(text) != ISID_DIGITS)
		return false;
	for (unsigned i = 0; i < PR_ISID_BYTES; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		isid[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

/* TEXT ends with a NUL. */
static bool text_get(const char *text, bool is_port, struct pr_initiator *initiator)
{
	const char *end = is_port ? strstr(text, separator) : text + strlen(text);

	if (!end || end == text || end - text >= (ptrdiff_t)sizeof initiator->name)
		return false;
	memset(initiator, 0, sizeof *initiator);
	for (const char *at = text; at < end; at++)
		initiator->name[at - text] = (char)tolower((unsigned char)*at);
	return !is_port || isid_get(end + strlen(separator), initiator->isid);
}

bool pr_transport_id_get(const uint8_t *data, size_t size, struct pr_initiator *ret_initiator,
			 bool *ret_is_device, size_t *ret_bytes)
{
	unsigned format = size > 0 ? data[0] >> 6 : 0;
	struct pr_initiator initiator;
	size_t bytes;

	if (size < HEADER_BYTES + MIN_TEXT_BYTES || format > 1 ||
	    (data[0] & 0x0f) != PROTOCOL_ISCSI)
		return false;
	bytes = get_be16(data + 2);
	if (bytes < MIN_TEXT_BYTES || bytes % 4 != 0 || bytes > size - HEADER_BYTES)
		return false;
	if (!memchr(data + HEADER_BYTES, '\0', bytes) ||
	    !text_get((const char *)data + HEADER_BYTES, format == 1, &initiator))
		return false;
	*ret_initiator = initiator;
	*ret_is_device = format == 0;
	*ret_bytes = HEADER_BYTES + bytes;
	return true;
}
