/* SPDX-License-Identifier: MIT
 *
 * The header of a log segment.  See ese_log.h for the layout.
 */
#include <errno.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "harness/workload/ese/ese_log.h"

#define SEGMENT_MAGIC 0x534c /* "SL" */

enum {
	AT_MAGIC = 4,
	AT_USED = 6,
	AT_LGPOS = 8,
	AT_SIGNATURE = 16,
	AT_EPOCH = 24,
	AT_FIRST = 28,
	AT_BACK = 30
};

static uint32_t sum(const uint8_t *p)
{
	return crc32c(0, p + AT_MAGIC, ESE_SEGMENT_BYTES - AT_MAGIC);
}

void ese_segment_seal(void *bytes, uint64_t signature, const struct ese_segment *segment)
{
	uint8_t *p = bytes;

	put_be16(p + AT_MAGIC, SEGMENT_MAGIC);
	put_be16(p + AT_USED, segment->used);
	put_be64(p + AT_LGPOS, segment->lgpos);
	put_be64(p + AT_SIGNATURE, signature);
	put_be32(p + AT_EPOCH, segment->epoch);
	put_be16(p + AT_FIRST, segment->first_record);
	put_be16(p + AT_BACK, segment->write_back);
	put_be32(p, sum(p));
}

int ese_segment_parse(const void *bytes, uint64_t signature, uint64_t lgpos,
		      struct ese_segment *ret_segment)
{
	const uint8_t *p = bytes;
	struct ese_segment segment = {
	    .lgpos = get_be64(p + AT_LGPOS),
	    .epoch = get_be32(p + AT_EPOCH),
	    .used = get_be16(p + AT_USED),
	    .first_record = get_be16(p + AT_FIRST),
	    .write_back = get_be16(p + AT_BACK),
	};

	if (get_be16(p + AT_MAGIC) != SEGMENT_MAGIC || segment.lgpos != lgpos ||
	    get_be64(p + AT_SIGNATURE) != signature || segment.used < ESE_SEGMENT_HEADER_BYTES ||
	    segment.used > ESE_SEGMENT_BYTES || segment.first_record > segment.used ||
	    get_be32(p) != sum(p))
		return -EBADMSG;
	*ret_segment = segment;
	return 0;
}

uint64_t ese_log_offset(const struct ese_log_area *area, uint64_t lgpos)
{
	return area->ring_offset_bytes + lgpos % ((uint64_t)area->files * ESE_LOG_FILE_BYTES);
}
