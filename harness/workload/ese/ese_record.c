/* SPDX-License-Identifier: MIT
 *
 * Log records to bytes and back.  See ese_record.h for the layout.
 */
#include "harness/workload/ese/ese_record.h"

#include <assert.h>
#include <errno.h>

#include "base/bytes.h"

static uint32_t coded_bytes(const struct ese_record *record)
{
	uint32_t bytes = ESE_RECORD_HEADER_BYTES + record->update_count * ESE_UPDATE_BYTES;

	for (unsigned i = 0; i < record->update_count; i++)
		bytes += record->updates[i].slot_count * ESE_SLOT_BYTES;
	return bytes;
}

uint32_t ese_record_bytes(const struct ese_record *record)
{
	return MAX_OF(coded_bytes(record), record->padded_bytes);
}

static uint8_t *encode_update(const struct ese_update *update, uint8_t *p)
{
	put_be64(p, update->page);
	put_be64(p + 8, update->dbtime_before);
	put_be64(p + 16, update->dbtime_after);
	p[24] = (uint8_t)update->kind;
	p[25] = update->level;
	put_be16(p + 26, (uint16_t)update->slot_count);
	put_be32(p + 28, update->version);
	put_be64(p + 32, update->key);
	put_be64(p + 40, update->target);
	put_be32(p + 48, update->bytes);
	put_be32(p + 52, update->base_count);
	put_be64(p + 56, update->previous);
	put_be64(p + 64, update->next);
	put_be64(p + 72, update->base_first);
	p += ESE_UPDATE_BYTES;
	for (uint32_t i = 0; i < update->slot_count; i++) {
		const struct ese_slot *slot = &update->slots[i];

		/* A child is coded as the two halves it is made of. */
		put_be64(p, slot->key);
		put_be64(p + 8, slot->child);
		p += ESE_SLOT_BYTES;
	}
	return p;
}

uint32_t ese_record_encode(const struct ese_record *record, void *buf)
{
	uint32_t coded = coded_bytes(record);
	uint8_t *p = buf;

	assert(record->kind > 0 && record->kind < ESE_RECORD_KINDS);
	assert(record->update_count > 0 && record->update_count <= ESE_UPDATES_MAX);
	assert(ese_record_bytes(record) <= ESE_RECORD_MAX);
	memset(p, 0, ESE_RECORD_HEADER_BYTES);
	put_be32(p, ese_record_bytes(record));
	p[4] = (uint8_t)record->kind;
	p[5] = (uint8_t)record->update_count;
	put_be32(p + 8, coded);
	p += ESE_RECORD_HEADER_BYTES;
	for (unsigned i = 0; i < record->update_count; i++)
		p = encode_update(&record->updates[i], p);
	assert(p == (uint8_t *)buf + coded);
	return coded;
}

int ese_record_peek(const void *header, uint32_t *ret_bytes, uint32_t *ret_coded_bytes)
{
	const uint8_t *p = header;
	uint32_t bytes = get_be32(p), coded = get_be32(p + 8);

	if (bytes > ESE_RECORD_MAX || coded > bytes ||
	    coded < ESE_RECORD_HEADER_BYTES + ESE_UPDATE_BYTES || p[4] == 0 ||
	    p[4] >= ESE_RECORD_KINDS || p[5] == 0 || p[5] > ESE_UPDATES_MAX)
		return -EBADMSG;
	*ret_bytes = bytes;
	*ret_coded_bytes = coded;
	return 0;
}

static int decode_slots(const uint8_t *p, struct ese_update *update, struct ese_slots *slots)
{
	struct ese_slot *to = &slots->slots[slots->used];

	if (update->slot_count > ESE_SLOTS_MAX - slots->used)
		return -EBADMSG;
	update->slots = update->slot_count ? to : NULL;
	slots->used += update->slot_count;
	for (uint32_t i = 0; i < update->slot_count; i++, p += ESE_SLOT_BYTES) {
		to[i].key = get_be64(p);
		to[i].child = get_be64(p + 8);
	}
	return 0;
}

static int decode_update(const uint8_t *p, struct ese_update *update)
{
	*update = (struct ese_update){
	    .page = get_be64(p),
	    .dbtime_before = get_be64(p + 8),
	    .dbtime_after = get_be64(p + 16),
	    .kind = p[24],
	    .level = p[25],
	    .slot_count = get_be16(p + 26),
	    .version = get_be32(p + 28),
	    .key = get_be64(p + 32),
	    .target = get_be64(p + 40),
	    .bytes = get_be32(p + 48),
	    .base_count = get_be32(p + 52),
	    .previous = get_be64(p + 56),
	    .next = get_be64(p + 64),
	    .base_first = get_be64(p + 72),
	};
	return p[24] == 0 || p[24] >= ESE_UPDATE_KINDS ? -EBADMSG : 0;
}

int ese_record_decode(const void *buf, size_t size, struct ese_record *ret_record,
		      struct ese_slots *slots)
{
	const uint8_t *p = buf, *end = p + size;
	struct ese_record record = {0};
	uint32_t bytes, coded;

	if (size < ESE_RECORD_HEADER_BYTES || ese_record_peek(buf, &bytes, &coded) < 0 ||
	    coded != size)
		return -EBADMSG;
	record.kind = p[4];
	record.update_count = p[5];
	record.padded_bytes = bytes;
	slots->used = 0;
	p += ESE_RECORD_HEADER_BYTES;
	for (unsigned i = 0; i < record.update_count; i++) {
		struct ese_update *update = &record.updates[i];

		if (end - p < ESE_UPDATE_BYTES || decode_update(p, update) < 0)
			return -EBADMSG;
		p += ESE_UPDATE_BYTES;
		if (end - p < (ptrdiff_t)update->slot_count * ESE_SLOT_BYTES ||
		    decode_slots(p, update, slots) < 0)
			return -EBADMSG;
		p += (size_t)update->slot_count * ESE_SLOT_BYTES;
	}
	if (p != end)
		return -EBADMSG;
	*ret_record = record;
	return 0;
}
