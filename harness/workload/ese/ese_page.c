/* SPDX-License-Identifier: MIT
 *
 * Pages of a database: bytes from images, images from bytes, and the names of faults.  See
 * ese_page.h for the layout.
 */
#include "harness/workload/ese/ese_page.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <isa-l/mem_routines.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/simd.h"
#include "harness/workload/ese/ese_fill.h"
#include "harness/workload/ese/ese_image.h"
#include "harness/workload/workload.h"

#define PAGE_MAGIC UINT32_C(0x45534550) /* "ESEP" */

enum {
	AT_CRC = 0,
	AT_MAGIC = 4,
	AT_CREATION = 8,
	AT_DATABASE = 24,
	AT_FLUSH = 28,
	AT_LEVEL = 29,
	AT_SLOTS = 30,
	AT_PAGE = 32,
	AT_DBTIME = 40,
	AT_PREVIOUS = 48,
	AT_NEXT = 52,
	AT_BASE_FIRST = 56,
	AT_BASE_COUNT = 60,
	AT_STAMPED = 72,
	CREATION_BYTES = 16,
	KEY_BYTES = 8,
	CHILD_BYTES = 16, /* of a node, coded */
};

/* The finaliser of splitmix64. */
static uint64_t mix(uint64_t v)
{
	v = (v ^ (v >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	v = (v ^ (v >> 27)) * UINT64_C(0x94d049bb133111eb);
	return v ^ (v >> 31);
}

/* Directory and records of a leaf; returns where they end. */
static size_t put_records(const struct ese_identity *identity, const struct ese_image *leaf,
			  uint8_t flush, uint8_t *page)
{
	uint8_t *place = page + ESE_PAGE_HEADER_BYTES;
	size_t at = ESE_PAGE_HEADER_BYTES + (size_t)leaf->count * ESE_DIRECTORY_BYTES;

	for (unsigned i = 0; i < leaf->count; i++, place += ESE_DIRECTORY_BYTES) {
		const struct ese_slot *slot = &leaf->slots[i];

		assert(slot->bytes >= KEY_BYTES && slot->bytes <= ESE_PAGE_BYTES - at);
		put_be16(place, (uint16_t)at);
		put_be16(place + 2, (uint16_t)slot->bytes);
		put_be32(place + 4, slot->version);
		put_be64(page + at, slot->key);
		ese_fill(page + at + KEY_BYTES, slot->bytes - KEY_BYTES,
			 mix(identity->seed ^ slot->key) +
			     mix((uint64_t)slot->version << 8 | flush));
		at += slot->bytes;
	}
	return at;
}

static size_t put_children(const struct ese_image *node, uint8_t *page)
{
	uint8_t *place = page + ESE_PAGE_HEADER_BYTES;

	for (unsigned i = 0; i < node->count; i++, place += CHILD_BYTES) {
		put_be64(place, node->slots[i].key);
		put_be64(place + 8, node->slots[i].child);
	}
	return (size_t)(place - page);
}

static uint8_t *last_of_unit(void *buf, unsigned unit)
{
	return (uint8_t *)buf + (size_t)(unit + 1) * ESE_PAGE_UNIT_BYTES - 1;
}

/* Of a page that stands where its own header says. */
static uint32_t checksum(const uint8_t *page)
{
	uint32_t crc = crc32c(0, page + AT_CREATION, CREATION_BYTES + 4);

	crc = crc32c(crc, page + AT_PAGE, 8);
	return crc32c(crc, page + AT_MAGIC, ESE_PAGE_BYTES - AT_MAGIC);
}

void ese_page_encode(const struct ese_identity *identity, uint64_t page, uint8_t flush,
		     const struct ese_image *image, void *buf)
{
	uint8_t *bytes = buf;
	size_t at;

	assert(flush != ESE_FLUSH_NEVER && flush != ESE_FLUSH_UNKNOWN && image->page == page);
	memset(bytes, 0, ESE_PAGE_HEADER_BYTES);
	put_be32(bytes + AT_MAGIC, PAGE_MAGIC);
	memcpy(bytes + AT_CREATION, identity->creation, CREATION_BYTES);
	put_be32(bytes + AT_DATABASE, identity->database);
	bytes[AT_FLUSH] = flush;
	bytes[AT_LEVEL] = image->level;
	put_be16(bytes + AT_SLOTS, image->count);
	put_be64(bytes + AT_PAGE, page);
	put_be64(bytes + AT_DBTIME, image->dbtime);
	put_be32(bytes + AT_PREVIOUS, image->previous);
	put_be32(bytes + AT_NEXT, image->next);
	put_be32(bytes + AT_BASE_FIRST, image->base_first);
	put_be32(bytes + AT_BASE_COUNT, image->base_count);
	at = image->level == 0 ? put_records(identity, image, flush, bytes)
			       : put_children(image, bytes);
	assert(at <= ESE_PAGE_BYTES);
	ese_fill(bytes + at, ESE_PAGE_BYTES - at,
		 mix(mix(identity->seed + page) + image->dbtime) + flush);
	for (unsigned i = 0; i < ESE_PAGE_UNITS; i++) {
		bytes[AT_STAMPED + i] = *last_of_unit(buf, i);
		*last_of_unit(buf, i) = flush;
	}
	put_be32(bytes + AT_CRC, checksum(bytes));
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
	bool zero;

	if (get_be64(bytes) != 0)
		return false; /* as most are that are not */
	/* The parameter is not const, but nothing is written. */
	zero = isal_zero_detect((uint8_t *)(uintptr_t)bytes, size) == 0;
	simd_done();
	return zero;
}

/* The flush numbers of a page: in its header and in each unit. */
enum { WITNESSES = 1 + ESE_PAGE_UNITS };

static uint8_t *witness(uint8_t *page, unsigned i)
{
	return i == 0 ? page + AT_FLUSH : last_of_unit(page, i - 1);
}

/* The checksum is wrong.  A page of several flushes is torn, unless a flipped bit has only hit one
 * of the flush numbers (each unit's content depends on the number as well). */
static int name_damage(const uint8_t *page)
{
	uint8_t copy[ESE_PAGE_BYTES];
	unsigned odd[2] = {0, 0}; /* how many differ from the first or from the last witness */
	uint8_t usual, first, last;

	if (is_zero(page, ESE_PAGE_UNIT_BYTES))
		return MISMATCH_TORN; /* not all of it is zero */
	if (get_be32(page + AT_MAGIC) != PAGE_MAGIC)
		return MISMATCH_CORRUPT;
	memcpy(copy, page, sizeof copy);
	first = *witness(copy, 0);
	last = *witness(copy, WITNESSES - 1);
	for (unsigned i = 0; i < WITNESSES; i++) {
		odd[0] += *witness(copy, i) != first;
		odd[1] += *witness(copy, i) != last;
	}
	if (odd[0] == 0)
		return MISMATCH_CORRUPT;
	if (odd[0] != 1 && odd[1] != 1)
		return MISMATCH_TORN;
	usual = odd[0] == 1 ? first : last;
	for (unsigned i = 0; i < WITNESSES; i++)
		*witness(copy, i) = usual;
	return get_be32(copy + AT_CRC) == checksum(copy) ? MISMATCH_CORRUPT : MISMATCH_TORN;
}

/* A good page of this place. */
static int judge_ours(const struct ese_page_expect *expect, const struct ese_page_found *found)
{
	if (expect->flush == found->flush || expect->flush == ESE_FLUSH_UNKNOWN)
		return -1;
	if (found->dbtime > expect->newer_dbtime)
		return -1;
	if (expect->flush == ESE_FLUSH_NEVER)
		/* As created, and written all the same to join two others. */
		return found->dbtime == 0 ? -1 : MISMATCH_NEVER_WRITTEN;
	return MISMATCH_STALE;
}

int ese_page_check(const struct ese_identity *identity, const void *buf, uint64_t page,
		   const struct ese_page_expect *expect, struct ese_page_found *ret_found)
{
	const uint8_t *bytes = buf;
	bool anything = expect->flush == ESE_FLUSH_NEVER && !expect->unwritten_is_zero;

	*ret_found = (struct ese_page_found){0};
	if (is_zero(bytes, ESE_PAGE_BYTES)) {
		ret_found->unwritten = true;
		return expect->flush == ESE_FLUSH_NEVER || expect->flush == ESE_FLUSH_UNKNOWN
			   ? -1
			   : MISMATCH_NEVER_WRITTEN;
	}
	if (get_be32(bytes + AT_MAGIC) != PAGE_MAGIC ||
	    get_be32(bytes + AT_CRC) != checksum(bytes)) {
		ret_found->unwritten = anything;
		if (anything)
			return -1;
		return expect->flush == ESE_FLUSH_NEVER && expect->newer_dbtime == UINT64_MAX
			   ? MISMATCH_NEVER_WRITTEN
			   : name_damage(bytes);
	}
	ret_found->flush = bytes[AT_FLUSH];
	ret_found->dbtime = get_be64(bytes + AT_DBTIME);
	ret_found->page = get_be64(bytes + AT_PAGE);
	if (memcmp(bytes + AT_CREATION, identity->creation, CREATION_BYTES) != 0) {
		ret_found->unwritten = anything;
		return anything ? -1 : MISMATCH_FOREIGN;
	}
	if (ret_found->page != page || get_be32(bytes + AT_DATABASE) != identity->database)
		return MISMATCH_MISDIRECTED;
	return judge_ours(expect, ret_found);
}

static int get_records(const uint8_t *page, struct ese_image *leaf)
{
	const uint8_t *place = page + ESE_PAGE_HEADER_BYTES;
	size_t least = ESE_PAGE_HEADER_BYTES + (size_t)leaf->count * ESE_DIRECTORY_BYTES;

	for (unsigned i = 0; i < leaf->count; i++, place += ESE_DIRECTORY_BYTES) {
		size_t at = get_be16(place), bytes = get_be16(place + 2);

		if (at < least || at > ESE_PAGE_BYTES || bytes < KEY_BYTES ||
		    bytes > ESE_PAGE_BYTES - at)
			return -EBADMSG;
		leaf->slots[i].key = get_be64(page + at);
		leaf->slots[i].version = get_be32(place + 4);
		leaf->slots[i].bytes = (uint32_t)bytes;
	}
	return 0;
}

static int get_children(const uint8_t *page, struct ese_image *node)
{
	const uint8_t *place = page + ESE_PAGE_HEADER_BYTES;

	for (unsigned i = 0; i < node->count; i++, place += CHILD_BYTES) {
		node->slots[i].key = get_be64(place);
		node->slots[i].child = get_be64(place + 8);
	}
	return 0;
}

int ese_page_decode(void *buf, struct ese_image *image)
{
	uint8_t *bytes = buf;
	unsigned count = get_be16(bytes + AT_SLOTS);
	int r;

	if (count > ESE_ITEMS_MAX || get_be64(bytes + AT_PAGE) > UINT32_MAX)
		return -EBADMSG;
	for (unsigned i = 0; i < ESE_PAGE_UNITS; i++)
		*last_of_unit(buf, i) = bytes[AT_STAMPED + i];
	r = ese_image_reserve(image, count);
	if (r < 0)
		return r;
	image->page = (uint32_t)get_be64(bytes + AT_PAGE);
	image->dbtime = get_be64(bytes + AT_DBTIME);
	image->level = bytes[AT_LEVEL];
	image->count = (uint16_t)count;
	image->previous = get_be32(bytes + AT_PREVIOUS);
	image->next = get_be32(bytes + AT_NEXT);
	image->base_first = get_be32(bytes + AT_BASE_FIRST);
	image->base_count = get_be32(bytes + AT_BASE_COUNT);
	r = image->level == 0 ? get_records(bytes, image) : get_children(bytes, image);
	return r < 0 ? r : ese_image_settle(image);
}
