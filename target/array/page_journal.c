/* SPDX-License-Identifier: MIT
 *
 * The page map's journal (big-endian fields; the file itself: record_file.h).
 *
 *   header  0 magic "SANLPGM1"   8 version   12 CRC32C   16 drives   20 spares   24 chunk_bytes
 *           32 drive_bytes   40 RAID level (16)   56 member (64)   120 pool UUID   136 member UUID
 *   record  4 generation (2)   6 type (2)   16 volume, number of a start
 *           24 volume's page, drive, 1: drains   28 page or slot
 */
#include "target/array/page_journal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "target/array/record_file.h"

enum {
	HEADER_BYTES = RECORD_FILE_HEADER_BYTES,
	VERSION = 2,
	RAID_BYTES = 16,
	MEMBER_BYTES = 64,
	HISTORY_MIN = 1024, /* superseded records that are worth a rewrite */
};
static const char magic[8] = {'S', 'A', 'N', 'L', 'P', 'G', 'M', '1'};

enum { SLOTS_MAX = 64, DRIVES_MAX = 255 };
enum { NOW_RECORDS = 2 * SLOTS_MAX + 3 }; /* besides those of pages, at most */
enum record_type {
	RECORD_READY = 1,
	RECORD_TAKE,
	RECORD_GIVE,
	RECORD_STALE,
	RECORD_COMING, /* taken for the copy of a page that moves here */
	RECORD_OWN,    /* the copy is complete */
	RECORD_FRESH,
	RECORD_ASSIGN, /* and stale */
	RECORD_LEFT,   /* the content is elsewhere */
	RECORD_DRAIN,  /* begins or ends */
	RECORD_START = 16,
};

struct record {
	enum record_type type;
	uint64_t volume;      /* START: its number */
	uint32_t volume_page; /* ASSIGN: drive; DRAIN: 1, or 0 at its end */
	uint32_t page;	      /* or slot */
	uint16_t generation;
};

struct page_journal {
	struct record_file file;
	char place[PATH_MAX];
	uint64_t live; /* records that are still true */
	bool ready, drains;
	uint64_t start; /* the last one that was noted; 0: none */
	uint64_t stale_mask;
	uint8_t slot_drive[SLOTS_MAX];
	uint32_t page_count;
	struct page_owner *owners;
};

static int journal_path(char *out, size_t size, const char *place, const char *member)
{
	int length = snprintf(out, size, "%s/%s.pagemap", place, member);
	return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : 0;
}

bool page_journal_exists(const char *place, const char *member)
{
	char path[PATH_MAX];
	return journal_path(path, sizeof path, place, member) == 0 && access(path, F_OK) == 0;
}

/* ---- records ---- */

static void record_put(uint8_t *out, const struct record *record)
{
	put_be16(out + 4, record->generation);
	put_be16(out + 6, (uint16_t)record->type);
	put_be64(out + 16, record->volume);
	put_be32(out + 24, record->volume_page);
	put_be32(out + 28, record->page);
}

static struct record record_get(const uint8_t *in)
{
	return (struct record){
	    .generation = get_be16(in + 4),
	    .type = get_be16(in + 6),
	    .volume = get_be64(in + 16),
	    .volume_page = get_be32(in + 24),
	    .page = get_be32(in + 28),
	};
}

/* Does the record fit what is true so far? */
static bool possible(const struct page_journal *journal, const struct record *record)
{
	switch (record->type) {
	case RECORD_READY:
		return true;
	case RECORD_DRAIN:
		return record->volume_page <= 1;
	case RECORD_START:
		return record->volume > journal->start;
	case RECORD_STALE:
	case RECORD_FRESH:
		return record->page < SLOTS_MAX;
	case RECORD_ASSIGN:
		return record->page < SLOTS_MAX && record->volume_page <= DRIVES_MAX;
	case RECORD_TAKE:
	case RECORD_COMING:
		return record->page < journal->page_count && !journal->owners[record->page].used;
	case RECORD_GIVE:
	case RECORD_OWN:
	case RECORD_LEFT:
		return record->page < journal->page_count && journal->owners[record->page].used;
	}
	return false;
}

static void apply(struct page_journal *journal, const struct record *record)
{
	switch (record->type) {
	case RECORD_READY:
		journal->live += !journal->ready;
		journal->ready = true;
		break;
	case RECORD_DRAIN:
		journal->live += record->volume_page;
		journal->live -= journal->drains;
		journal->drains = record->volume_page;
		break;
	case RECORD_START:
		journal->live += !journal->start;
		journal->start = record->volume;
		break;
	case RECORD_STALE:
		journal->live += !(journal->stale_mask >> record->page & 1);
		journal->stale_mask |= UINT64_C(1) << record->page;
		break;
	case RECORD_FRESH:
		journal->live -= journal->stale_mask >> record->page & 1;
		journal->stale_mask &= ~(UINT64_C(1) << record->page);
		break;
	case RECORD_ASSIGN:
		journal->live += !(journal->stale_mask >> record->page & 1);
		journal->stale_mask |= UINT64_C(1) << record->page;
		journal->slot_drive[record->page] = (uint8_t)record->volume_page;
		break;
	case RECORD_TAKE:
	case RECORD_COMING:
		journal->live++;
		journal->owners[record->page] = (struct page_owner){
		    .volume = record->volume,
		    .page = record->volume_page,
		    .generation = record->generation,
		    .used = true,
		    .homeless = record->type == RECORD_COMING,
		};
		break;
	case RECORD_LEFT:
		journal->owners[record->page].homeless = true;
		break;
	case RECORD_OWN:
		journal->owners[record->page].homeless = false;
		journal->owners[record->page].generation = record->generation;
		break;
	case RECORD_GIVE:
		journal->live--;
		journal->owners[record->page].used = false;
		break;
	}
}

static int append(struct page_journal *journal, const struct record *record)
{
	uint8_t out[RECORD_FILE_BYTES];

	if (!possible(journal, record))
		return -EUCLEAN;
	record_put(out, record);
	int rc = record_file_append(&journal->file, out);
	if (rc == 0)
		apply(journal, record);
	return rc;
}

int page_journal_sync(struct page_journal *journal)
{
	return record_file_sync(&journal->file);
}

int page_journal_take(struct page_journal *journal, uint32_t page, uint64_t volume,
		      uint32_t volume_page)
{
	return append(journal, &(struct record){.type = RECORD_TAKE,
						.volume = volume,
						.volume_page = volume_page,
						.page = page});
}

int page_journal_give(struct page_journal *journal, uint32_t page)
{
	return append(journal, &(struct record){.type = RECORD_GIVE, .page = page});
}

int page_journal_reserve(struct page_journal *journal, uint32_t page, uint64_t volume,
			 uint32_t volume_page, uint16_t generation)
{
	return append(journal, &(struct record){.type = RECORD_COMING,
						.volume = volume,
						.volume_page = volume_page,
						.page = page,
						.generation = generation});
}

int page_journal_own(struct page_journal *journal, uint32_t page, uint16_t generation)
{
	return append(journal,
		      &(struct record){.type = RECORD_OWN, .page = page, .generation = generation});
}

int page_journal_leave(struct page_journal *journal, uint32_t page)
{
	return append(journal, &(struct record){.type = RECORD_LEFT, .page = page});
}

static int append_durably(struct page_journal *journal, const struct record *record)
{
	int rc = append(journal, record);
	return rc ? rc : page_journal_sync(journal);
}

int page_journal_stale(struct page_journal *journal, unsigned slot)
{
	return append_durably(journal, &(struct record){.type = RECORD_STALE, .page = slot});
}

int page_journal_fresh(struct page_journal *journal, unsigned slot)
{
	return append_durably(journal, &(struct record){.type = RECORD_FRESH, .page = slot});
}

int page_journal_assign(struct page_journal *journal, unsigned slot, unsigned drive)
{
	return append_durably(
	    journal, &(struct record){.type = RECORD_ASSIGN, .volume_page = drive, .page = slot});
}

unsigned page_journal_slot_drive(const struct page_journal *journal, unsigned slot)
{
	return journal->slot_drive[slot];
}

bool page_journal_drains(const struct page_journal *journal)
{
	return journal->drains;
}

int page_journal_set_drains(struct page_journal *journal, bool drains)
{
	return append_durably(journal,
			      &(struct record){.type = RECORD_DRAIN, .volume_page = drains});
}

int page_journal_set_ready(struct page_journal *journal)
{
	return append_durably(journal, &(struct record){.type = RECORD_READY});
}

int page_journal_start(struct page_journal *journal, uint64_t start)
{
	return append_durably(journal, &(struct record){.type = RECORD_START, .volume = start});
}

uint64_t page_journal_last_start(const struct page_journal *journal)
{
	return journal->start;
}

bool page_journal_is_ready(const struct page_journal *journal)
{
	return journal->ready;
}

uint64_t page_journal_stale_mask(const struct page_journal *journal)
{
	return journal->stale_mask;
}

struct page_owner page_journal_owner(const struct page_journal *journal, uint32_t page)
{
	return page < journal->page_count ? journal->owners[page] : (struct page_owner){0};
}

/* ---- the header ---- */

static void header_fill(uint8_t *header, const struct member_shape *shape)
{
	memset(header, 0, HEADER_BYTES);
	memcpy(header, magic, sizeof magic);
	put_be32(header + 8, VERSION);
	put_be32(header + 16, shape->drives);
	put_be32(header + 20, shape->spares);
	put_be64(header + 24, shape->chunk_bytes);
	put_be64(header + 32, shape->drive_bytes);
	strncpy((char *)header + 40, shape->raid, RAID_BYTES - 1);
	strncpy((char *)header + 56, shape->member, MEMBER_BYTES - 1);
	memcpy(header + 120, shape->pool_uuid, STORE_UUID_BYTES);
	memcpy(header + 136, shape->member_uuid, STORE_UUID_BYTES);
	put_be32(header + 12, crc32c(0, header + 16, HEADER_BYTES - 16));
}

static int header_check(const uint8_t *found, const char *path, const struct member_shape *shape,
			struct err *err)
{
	uint8_t wanted[HEADER_BYTES];
	int rc;

	header_fill(wanted, shape);
	if (memcmp(found, wanted, sizeof wanted) == 0)
		return 0;
	if (memcmp(found, magic, sizeof magic) != 0)
		rc = err_set(err, -EMEDIUMTYPE, "%s is not a page map of sanlab", path);
	else if (get_be32(found + 8) != VERSION)
		rc = err_set(err, -ENOTSUP, "%s has version %u, this program knows %d", path,
			     get_be32(found + 8), VERSION);
	else if (get_be32(found + 12) != crc32c(0, found + 16, HEADER_BYTES - 16))
		rc = err_set(err, -EUCLEAN, "the header of %s is damaged", path);
	else if (memcmp(found, wanted, 12) == 0 && memcmp(found + 16, wanted + 16, 104) == 0)
		rc = err_set(err, -EMEDIUMTYPE, "%s belongs to another member or pool", path);
	else
		rc = err_set(err, -EMEDIUMTYPE,
			     "%s was made by member %.63s with %.15s over %u drives (%u spares) of "
			     "%llu bytes, chunk %llu; the lab asks for another shape",
			     path, (const char *)found + 56, (const char *)found + 40,
			     get_be32(found + 16), get_be32(found + 20),
			     (unsigned long long)get_be64(found + 32),
			     (unsigned long long)get_be64(found + 24));
	err_hint(err, "use another directory, or remove this one to begin anew");
	return rc;
}

/* ---- opening ---- */

static bool replay_record(void *arg, const uint8_t *in)
{
	struct page_journal *journal = arg;
	struct record record = record_get(in);

	if (!possible(journal, &record))
		return false;
	apply(journal, &record);
	return true;
}

/* The INDEX-th of the records that may be needed to say what is true now; false: it is not. */
static bool record_of_now(const struct page_journal *journal, uint64_t index,
			  struct record *ret_record)
{
	uint32_t slot = (uint32_t)(index / 2);

	if (index < 2 * (uint64_t)SLOTS_MAX) {
		bool stale = journal->stale_mask >> slot & 1;
		bool moved = journal->slot_drive[slot] != slot;
		*ret_record = (struct record){
		    .type = RECORD_ASSIGN, .volume_page = journal->slot_drive[slot], .page = slot};
		if (index % 2 == 0 && !moved)
			ret_record->type = RECORD_STALE;
		if (index % 2 == 1)
			ret_record->type = RECORD_FRESH;
		return index % 2 == 0 ? stale || moved : moved && !stale;
	}
	index -= 2 * (uint64_t)SLOTS_MAX;
	if (index == 0) {
		*ret_record = (struct record){.type = RECORD_READY};
		return journal->ready;
	}
	if (index == 1) {
		*ret_record = (struct record){.type = RECORD_START, .volume = journal->start};
		return journal->start > 0;
	}
	if (index == 2) {
		*ret_record = (struct record){.type = RECORD_DRAIN, .volume_page = 1};
		return journal->drains;
	}
	uint32_t page = (uint32_t)(index - 3);
	const struct page_owner *owner = &journal->owners[page];
	*ret_record = (struct record){
	    .type = owner->homeless ? RECORD_COMING : RECORD_TAKE,
	    .volume = owner->volume,
	    .volume_page = owner->page,
	    .page = page,
	    .generation = owner->generation,
	};
	return owner->used;
}

static bool next_record(void *arg, uint64_t index, uint8_t *out)
{
	struct record record;
	if (!record_of_now(arg, index, &record))
		return false;
	record_put(out, &record);
	return true;
}

/* Writes header and what is true now to a new file and renames it over the old one. */
static int rewrite(struct page_journal *journal, const char *place, const char *path,
		   const struct member_shape *shape)
{
	uint8_t header[HEADER_BYTES];

	header_fill(header, shape);
	int rc =
	    record_file_replace(&journal->file, place, path, header,
				NOW_RECORDS + (uint64_t)journal->page_count, next_record, journal);
	if (rc == 0)
		journal->live = journal->file.records;
	return rc;
}

static int adopt(struct page_journal *journal, const char *place, const char *path,
		 const struct member_shape *shape, struct err *err)
{
	uint8_t header[HEADER_BYTES];

	int rc = record_file_open(&journal->file, path, header, err);
	if (rc == 0)
		rc = header_check(header, path, shape, err);
	if (rc == 0)
		rc = record_file_replay(&journal->file, replay_record, journal, err);
	if (rc == 0 && journal->file.records > 2 * journal->live + HISTORY_MIN) {
		rc = rewrite(journal, place, path, shape);
		if (rc)
			err_set(err, rc, "cannot rewrite %s: %s", path, strerror(-rc));
	}
	return rc;
}

int page_journal_open(const char *place, const struct member_shape *shape, uint32_t page_count,
		      struct page_journal **ret_journal, struct err *err)
{
	char path[PATH_MAX];
	int rc = 0;

	struct page_journal *journal = calloc(1, sizeof *journal);
	if (!journal)
		return err_set(err, -ENOMEM, "no memory for member %s", shape->member);
	journal->file.fd = -1;
	journal->page_count = page_count;
	for (unsigned i = 0; i < SLOTS_MAX; i++)
		journal->slot_drive[i] = (uint8_t)i;
	journal->owners = calloc(MAX_OF(page_count, 1), sizeof *journal->owners);
	if (!journal->owners)
		rc = err_set(err, -ENOMEM, "no memory for member %s", shape->member);
	else if (strlen(shape->member) >= MEMBER_BYTES || strlen(shape->raid) >= RAID_BYTES ||
		 journal_path(path, sizeof path, place, shape->member))
		rc = err_set(err, -ENAMETOOLONG, "the name of member %s in %s is too long",
			     shape->member, place);
	else if (mkdir(place, 0700) && errno != EEXIST)
		rc = err_set(err, -errno, "cannot make directory %s: %s", place, strerror(errno));
	else if (access(path, F_OK) == 0)
		rc = adopt(journal, place, path, shape, err);
	else if ((rc = rewrite(journal, place, path, shape)))
		err_set(err, rc, "cannot make %s: %s", path, strerror(-rc));
	if (rc) {
		page_journal_close(journal);
		return rc;
	}
	snprintf(journal->place, sizeof journal->place, "%s", place);
	*ret_journal = journal;
	return 0;
}

const char *page_journal_place(const struct page_journal *journal)
{
	return journal->place;
}

struct page_journal *page_journal_close(struct page_journal *journal)
{
	if (!journal)
		return NULL;
	record_file_close(&journal->file);
	free(journal->owners);
	free(journal);
	return NULL;
}
