/* SPDX-License-Identifier: MIT
 *
 * Slots of the journal: filling, committing, finding.
 */
#include "target/array/stripe_journal.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"

enum {
	HEAD_BYTES = 4096,
	SPARES_AT = 2048,
	ALIGN_BYTES = 4096,
	SLOTS_MIN = 4,
	SLOTS_BYTES = 32 << 20,
	RESERVE_SHARE = 8 /* of the slots, 1 of so many is not for updates that failed */
};

#define JOURNAL_MAGIC UINT64_C(0x53414e4c4a524e31) /* "SANLJRN1" */
#define RECORD_MAGIC  UINT64_C(0x53414e4c55504431) /* "SANLUPD1" */

struct journal_head {
	uint64_t magic;
	uint32_t crc; /* of all that follows */
	uint32_t kind;
	uint64_t drives, sets, width, data, chunk_bytes, stripe_count, slot_bytes, slot_count;
};

static uint64_t head_bytes(const struct stripe_geometry *geometry)
{
	unsigned legs = geometry->width * (1 + (geometry->kind == STRIPE_PERMUTED) * JOURNAL_TWINS);
	return round_up_u64(sizeof(struct journal_record) + legs * sizeof(struct journal_leg),
			    ALIGN_BYTES);
}

static uint64_t slot_bytes(const struct stripe_geometry *geometry)
{
	return head_bytes(geometry) +
	       geometry->width * round_up_u64(geometry->chunk_bytes, ALIGN_BYTES);
}

static unsigned slot_count(const struct stripe_geometry *geometry)
{
	uint64_t count = SLOTS_BYTES / slot_bytes(geometry);
	return (unsigned)MIN_OF(MAX_OF(count, SLOTS_MIN), JOURNAL_SLOTS_MAX);
}

size_t stripe_journal_bytes(const struct stripe_geometry *geometry)
{
	return HEAD_BYTES + STRIPE_MARKS_BYTES + slot_count(geometry) * slot_bytes(geometry);
}

static uint32_t head_crc(const struct journal_head *head)
{
	size_t from = offsetof(struct journal_head, kind);
	return crc32c(0, (const uint8_t *)head + from, sizeof *head - from);
}

static uint8_t *data_of(const struct stripe_journal *journal, const struct journal_record *record)
{
	return (uint8_t *)record + journal->head_bytes;
}

static uint32_t record_crc(const struct stripe_journal *journal,
			   const struct journal_record *record)
{
	size_t from = offsetof(struct journal_record, leg_count);
	size_t to = sizeof *record + record->leg_count * sizeof record->legs[0];
	uint32_t crc = crc32c(0, (const uint8_t *)record + from, to - from);
	return crc32c(crc, data_of(journal, record), record->data_bytes);
}

static bool is_whole(const struct stripe_journal *journal, const struct journal_record *record)
{
	uint64_t legs_max = (journal->head_bytes - sizeof *record) / sizeof(struct journal_leg);
	return record->leg_count <= legs_max &&
	       record->data_bytes <= journal->slot_bytes - journal->head_bytes &&
	       record->crc == record_crc(journal, record);
}

static struct journal_record *record_at(const struct stripe_journal *journal, unsigned slot)
{
	return (void *)(journal->slots + slot * journal->slot_bytes);
}

/* Which slots hold an update that was under way?  One that was not committed never began. */
static void find_records(struct stripe_journal *journal)
{
	for (unsigned slot = 0; slot < journal->slot_count; slot++) {
		struct journal_record *record = record_at(journal, slot);
		if (record->magic == RECORD_MAGIC && is_whole(journal, record)) {
			journal->sequence = MAX_OF(journal->sequence, record->sequence);
			continue;
		}
		record->magic = 0;
		journal->free |= UINT64_C(1) << slot;
	}
}

void *stripe_journal_open(struct stripe_journal *journal, const struct stripe_geometry *geometry,
			  struct nvram *nvram)
{
	*journal = (struct stripe_journal){.nvram = nvram};
	if (!nvram)
		return NULL;
	assert(nvram->bytes >= stripe_journal_bytes(geometry));
	journal->chunk_bytes = geometry->chunk_bytes;
	journal->head_bytes = head_bytes(geometry);
	journal->slot_bytes = slot_bytes(geometry);
	journal->slot_count = slot_count(geometry);
	journal->spare_of = nvram->memory + SPARES_AT;
	journal->slots = nvram->memory + HEAD_BYTES + STRIPE_MARKS_BYTES;
	struct journal_head head = {
	    .magic = JOURNAL_MAGIC,
	    .kind = geometry->kind,
	    .drives = geometry->drives,
	    .sets = geometry->sets,
	    .width = geometry->width,
	    .data = geometry->data,
	    .chunk_bytes = geometry->chunk_bytes,
	    .stripe_count = geometry->stripe_count,
	    .slot_bytes = journal->slot_bytes,
	    .slot_count = journal->slot_count,
	};
	head.crc = head_crc(&head);
	if (memcmp(nvram->memory, &head, sizeof head) != 0) {
		memset(nvram->memory, 0, HEAD_BYTES + STRIPE_MARKS_BYTES);
		for (unsigned slot = 0; slot < journal->slot_count; slot++)
			record_at(journal, slot)->magic = 0;
		nvram_order();
		memcpy(nvram->memory, &head, sizeof head);
	}
	find_records(journal);
	return nvram->memory + HEAD_BYTES;
}

struct journal_record *stripe_journal_take(struct stripe_journal *journal)
{
	if (!journal->free)
		return NULL;
	/* The lowest one: its memory is still in the processor's cache. */
	unsigned slot = (unsigned)__builtin_ctzll(journal->free);
	struct journal_record *record = record_at(journal, slot);
	journal->free &= journal->free - 1;
	*record = (struct journal_record){.sequence = ++journal->sequence};
	return record;
}

void stripe_journal_add(struct stripe_journal *journal, struct journal_record *record,
			const struct journal_leg *leg, const struct iovec *iov, unsigned iov_count,
			int copy_of)
{
	struct journal_leg *to = &record->legs[record->leg_count++];

	assert(sizeof *record + record->leg_count * sizeof *to <= journal->head_bytes);
	*to = *leg;
	if (copy_of >= 0) {
		to->data_at = record->legs[copy_of].data_at;
		return;
	}
	to->data_at = record->data_bytes;
	if (record->unmap)
		return;
	assert(journal->head_bytes + to->data_at + leg->length_bytes <= journal->slot_bytes);
	iov_to_mem(iov, iov_count, 0, data_of(journal, record) + to->data_at, leg->length_bytes);
	record->data_bytes += leg->length_bytes;
}

void stripe_journal_commit(struct stripe_journal *journal, struct journal_record *record)
{
	record->crc = record_crc(journal, record);
	nvram_order();
	record->magic = RECORD_MAGIC;
	nvram_order();
}

static unsigned slot_of(const struct stripe_journal *journal, const struct journal_record *record)
{
	return (unsigned)((uint64_t)((const uint8_t *)record - journal->slots) /
			  journal->slot_bytes);
}

void stripe_journal_release(struct stripe_journal *journal, struct journal_record *record)
{
	nvram_order();
	record->magic = 0;
	nvram_order();
	journal->free |= UINT64_C(1) << slot_of(journal, record);
}

/* ---- updates that failed ---- */

void stripe_journal_span(const struct stripe_journal *journal, const struct journal_record *record,
			 uint64_t *ret_lo, uint64_t *ret_hi)
{
	uint64_t lo = journal->chunk_bytes, hi = 0;

	for (unsigned i = 0; i < record->leg_count; i++) {
		const struct journal_leg *leg = &record->legs[i];
		uint64_t at = leg->offset_bytes % journal->chunk_bytes;
		lo = MIN_OF(lo, at);
		hi = MAX_OF(hi, at + leg->length_bytes);
	}
	*ret_lo = lo;
	*ret_hi = hi;
}

bool stripe_journal_keep(struct stripe_journal *journal, struct journal_record *record, int status,
			 bool again)
{
	unsigned count = (unsigned)__builtin_popcountll(journal->kept) + journal->retaken;
	unsigned reserve = MAX_OF(journal->slot_count / RESERVE_SHARE, 1U);
	unsigned slot = slot_of(journal, record);

	if (!again && count >= journal->slot_count - reserve)
		return false;
	journal->kept |= UINT64_C(1) << slot;
	journal->kept_status[slot] = status;
	return true;
}

bool stripe_journal_make_due(struct stripe_journal *journal, const struct journal_record *record)
{
	uint64_t bit = UINT64_C(1) << slot_of(journal, record);
	bool was = journal->due & bit;

	journal->due |= bit;
	return !was;
}

void stripe_journal_not_due(struct stripe_journal *journal, const struct journal_record *record)
{
	journal->due &= ~(UINT64_C(1) << slot_of(journal, record));
}

void stripe_journal_retake(struct stripe_journal *journal, const struct journal_record *record)
{
	uint64_t bit = UINT64_C(1) << slot_of(journal, record);

	assert(journal->kept & journal->due & bit);
	journal->kept &= ~bit;
	journal->due &= ~bit;
	journal->retaken++;
}

int stripe_journal_kept_status(const struct stripe_journal *journal,
			       const struct journal_record *record)
{
	return journal->kept_status[slot_of(journal, record)];
}

struct journal_record *stripe_journal_kept(const struct stripe_journal *journal, uint64_t after,
					   bool (*wanted)(const void *arg,
							  const struct journal_record *record),
					   const void *arg)
{
	struct journal_record *best = NULL;
	for (uint64_t left = journal->kept; left; left &= left - 1) {
		struct journal_record *record = record_at(journal, (unsigned)__builtin_ctzll(left));
		if (record->sequence > after && (!best || record->sequence < best->sequence) &&
		    wanted(arg, record))
			best = record;
	}
	return best;
}

uint8_t *stripe_journal_data(const struct stripe_journal *journal,
			     const struct journal_record *record, unsigned leg)
{
	return data_of(journal, record) + record->legs[leg].data_at;
}

struct journal_record *stripe_journal_next(const struct stripe_journal *journal, uint64_t after)
{
	struct journal_record *best = NULL;
	for (unsigned i = 0; i < journal->slot_count; i++) {
		struct journal_record *record = record_at(journal, i);
		if (!(journal->free >> i & 1) && record->sequence > after &&
		    (!best || record->sequence < best->sequence))
			best = record;
	}
	return best;
}
