/* SPDX-License-Identifier: MIT
 *
 * The page map's journal (big-endian fields).
 *
 *   header  0 magic "SANLPGM1"   8 version   12 CRC32C   16 drives   20 spares   24 chunk_bytes
 *           32 drive_bytes   40 RAID level (16)   56 member (64)
 *   record  0 CRC32C   4 generation (2)   6 type (2)   8 number   16 volume
 *           24 volume's page, drive   28 page or slot
 */
#include "target/array/page_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/crc32c.h"

enum {
	HEADER_BYTES = 4096,
	RECORD_BYTES = 32,
	VERSION = 1,
	RAID_BYTES = 16,
	MEMBER_BYTES = 64,
	BATCH = 128,	    /* records read at once */
	HISTORY_MIN = 1024, /* superseded records that are worth a rewrite */
};
static const char magic[8] = {'S', 'A', 'N', 'L', 'P', 'G', 'M', '1'};

enum { SLOTS_MAX = 64, DRIVES_MAX = 255 };
enum record_type {
	RECORD_READY = 1,
	RECORD_TAKE,
	RECORD_GIVE,
	RECORD_STALE,
	RECORD_COMING, /* taken for the copy of a page that moves here */
	RECORD_OWN,    /* the copy is complete */
	RECORD_FRESH,
	RECORD_ASSIGN, /* and stale */
};

struct record {
	enum record_type type;
	uint64_t volume;
	uint32_t volume_page; /* ASSIGN: drive */
	uint32_t page;	      /* or slot */
	uint16_t generation;
};

struct page_journal {
	int fd;
	char place[PATH_MAX];
	char path[PATH_MAX];
	uint64_t records; /* in the file, all good */
	uint64_t live;	  /* of them still true */
	bool ready;
	bool broken; /* an append failed and could not be taken back: nothing is added any more */
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

static uint64_t record_at(uint64_t number)
{
	return HEADER_BYTES + number * RECORD_BYTES;
}

static void record_put(uint8_t *out, const struct record *record, uint64_t number)
{
	put_be16(out + 4, record->generation);
	put_be16(out + 6, (uint16_t)record->type);
	put_be64(out + 8, number);
	put_be64(out + 16, record->volume);
	put_be32(out + 24, record->volume_page);
	put_be32(out + 28, record->page);
	put_be32(out, crc32c(0, out + 4, RECORD_BYTES - 4));
}

static bool record_get(const uint8_t *in, uint64_t number, struct record *ret_record)
{
	if (get_be32(in) != crc32c(0, in + 4, RECORD_BYTES - 4) || get_be64(in + 8) != number)
		return false;
	*ret_record = (struct record){
	    .generation = get_be16(in + 4),
	    .type = get_be16(in + 6),
	    .volume = get_be64(in + 16),
	    .volume_page = get_be32(in + 24),
	    .page = get_be32(in + 28),
	};
	return true;
}

/* Does the record fit what is true so far? */
static bool possible(const struct page_journal *journal, const struct record *record)
{
	switch (record->type) {
	case RECORD_READY:
		return true;
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
		    .coming = record->type == RECORD_COMING,
		};
		break;
	case RECORD_OWN:
		journal->owners[record->page].coming = false;
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
	uint8_t out[RECORD_BYTES];
	off_t at = (off_t)record_at(journal->records);

	if (journal->broken)
		return -EIO;
	if (!possible(journal, record))
		return -EUCLEAN;
	record_put(out, record, journal->records);
	if (pwrite(journal->fd, out, sizeof out, at) != (ssize_t)sizeof out) {
		journal->broken = ftruncate(journal->fd, at) != 0;
		return -EIO;
	}
	journal->records++;
	apply(journal, record);
	return 0;
}

int page_journal_sync(struct page_journal *journal)
{
	/* After a failed fdatasync nobody knows what is on the disk. */
	if (!journal->broken && fdatasync(journal->fd))
		journal->broken = true;
	return journal->broken ? -EIO : 0;
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

int page_journal_set_ready(struct page_journal *journal)
{
	return append_durably(journal, &(struct record){.type = RECORD_READY});
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
	put_be32(header + 12, crc32c(0, header + 16, HEADER_BYTES - 16));
}

static int header_check(const struct page_journal *journal, const struct member_shape *shape,
			struct err *err)
{
	uint8_t found[HEADER_BYTES] = {0}, wanted[HEADER_BYTES];
	int rc;

	if (pread(journal->fd, found, sizeof found, 0) < 0)
		return err_set(err, -errno, "cannot read %s: %s", journal->path, strerror(errno));
	header_fill(wanted, shape);
	if (memcmp(found, wanted, sizeof found) == 0)
		return 0;
	if (memcmp(found, magic, sizeof magic) != 0)
		rc = err_set(err, -EMEDIUMTYPE, "%s is not a page map of sanlab", journal->path);
	else if (get_be32(found + 12) != crc32c(0, found + 16, HEADER_BYTES - 16))
		rc = err_set(err, -EUCLEAN, "the header of %s is damaged", journal->path);
	else
		rc = err_set(err, -EMEDIUMTYPE,
			     "%s was made by member %.63s with %.15s over %u drives (%u spares) of "
			     "%llu bytes, chunk %llu; the lab asks for another shape",
			     journal->path, (char *)found + 56, (char *)found + 40,
			     get_be32(found + 16), get_be32(found + 20),
			     (unsigned long long)get_be64(found + 32),
			     (unsigned long long)get_be64(found + 24));
	err_hint(err, "use another directory, or remove this one to begin anew");
	return rc;
}

/* ---- opening ---- */

/* Is there a good record at or after NUMBER? */
static bool good_after(const struct page_journal *journal, uint64_t number, uint64_t count)
{
	uint8_t in[RECORD_BYTES];
	struct record record;
	for (; number < count; number++)
		if (pread(journal->fd, in, sizeof in, (off_t)record_at(number)) ==
			(ssize_t)sizeof in &&
		    record_get(in, number, &record))
			return true;
	return false;
}

static int replay(struct page_journal *journal, struct err *err)
{
	uint8_t batch[BATCH * RECORD_BYTES];
	struct stat status;

	if (fstat(journal->fd, &status))
		return err_set(err, -errno, "cannot read %s: %s", journal->path, strerror(errno));
	uint64_t size = (uint64_t)status.st_size, count = (size - HEADER_BYTES) / RECORD_BYTES;
	bool bad = false;
	while (journal->records < count && !bad) {
		uint64_t want = MIN_OF(BATCH, count - journal->records);
		ssize_t got = pread(journal->fd, batch, want * RECORD_BYTES,
				    (off_t)record_at(journal->records));
		if (got != (ssize_t)(want * RECORD_BYTES))
			return err_set(err, -EIO, "cannot read %s", journal->path);
		for (uint64_t i = 0; i < want; i++) {
			struct record record;
			bad = !record_get(batch + i * RECORD_BYTES, journal->records, &record);
			if (bad)
				break;
			if (!possible(journal, &record))
				return err_set(err, -EUCLEAN,
					       "%s contradicts itself at record %llu",
					       journal->path, (unsigned long long)journal->records);
			apply(journal, &record);
			journal->records++;
		}
	}
	if (bad && good_after(journal, journal->records + 1, count))
		return err_set(err, -EUCLEAN, "%s is damaged at record %llu", journal->path,
			       (unsigned long long)journal->records);
	if (size != record_at(journal->records) &&
	    ftruncate(journal->fd, (off_t)record_at(journal->records)))
		return err_set(err, -errno, "cannot write %s: %s", journal->path, strerror(errno));
	return 0;
}

static int sync_directory(const char *place)
{
	int fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int rc = fsync(fd) ? -errno : 0;
	close(fd);
	return rc;
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
	uint32_t page = (uint32_t)(index - 1);
	const struct page_owner *owner = &journal->owners[page];
	*ret_record = (struct record){
	    .type = owner->coming ? RECORD_COMING : RECORD_TAKE,
	    .volume = owner->volume,
	    .volume_page = owner->page,
	    .page = page,
	    .generation = owner->generation,
	};
	return owner->used;
}

/* Writes header and what is true now to a new file and renames it over the old one. */
static int rewrite(struct page_journal *journal, const char *place,
		   const struct member_shape *shape)
{
	char temporary[PATH_MAX + 8];
	uint8_t header[HEADER_BYTES];
	int old = journal->fd, rc = 0;

	snprintf(temporary, sizeof temporary, "%s.new", journal->path);
	journal->fd = open(temporary, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (journal->fd < 0) {
		rc = -errno;
		journal->fd = old;
		return rc;
	}
	header_fill(header, shape);
	if (flock(journal->fd, LOCK_EX | LOCK_NB) || ftruncate(journal->fd, 0) ||
	    pwrite(journal->fd, header, sizeof header, 0) != (ssize_t)sizeof header)
		rc = -EIO;
	uint64_t records = 0;
	uint8_t out[RECORD_BYTES];
	struct record record;
	uint64_t most = 2 * SLOTS_MAX + 1 + (uint64_t)journal->page_count;
	for (uint64_t i = 0; rc == 0 && i < most; i++) {
		if (!record_of_now(journal, i, &record))
			continue;
		record_put(out, &record, records);
		if (pwrite(journal->fd, out, sizeof out, (off_t)record_at(records)) !=
		    (ssize_t)sizeof out)
			rc = -EIO;
		records++;
	}
	if (rc == 0 && (fsync(journal->fd) || rename(temporary, journal->path)))
		rc = -errno;
	if (rc == 0)
		rc = sync_directory(place);
	if (rc) {
		close(journal->fd);
		journal->fd = old;
		return rc;
	}
	if (old >= 0)
		close(old);
	journal->records = records;
	journal->live = records;
	return 0;
}

static int adopt(struct page_journal *journal, const char *place, const struct member_shape *shape,
		 struct err *err)
{
	journal->fd = open(journal->path, O_RDWR | O_CLOEXEC);
	if (journal->fd < 0)
		return err_set(err, -errno, "cannot open %s: %s", journal->path, strerror(errno));
	if (flock(journal->fd, LOCK_EX | LOCK_NB)) {
		err_set(err, -EBUSY, "%s is in use by another target", journal->path);
		err_hint(err, "stop the other target, or give this one its own directory");
		return -EBUSY;
	}
	int rc = header_check(journal, shape, err);
	if (rc == 0)
		rc = replay(journal, err);
	if (rc == 0 && journal->records > 2 * journal->live + HISTORY_MIN) {
		rc = rewrite(journal, place, shape);
		if (rc)
			err_set(err, rc, "cannot rewrite %s: %s", journal->path, strerror(-rc));
	}
	return rc;
}

int page_journal_open(const char *place, const struct member_shape *shape, uint32_t page_count,
		      struct page_journal **ret_journal, struct err *err)
{
	struct page_journal *journal = calloc(1, sizeof *journal);
	if (!journal)
		return err_set(err, -ENOMEM, "no memory for member %s", shape->member);
	journal->fd = -1;
	journal->page_count = page_count;
	for (unsigned i = 0; i < SLOTS_MAX; i++)
		journal->slot_drive[i] = (uint8_t)i;
	journal->owners = calloc(MAX_OF(page_count, 1), sizeof *journal->owners);
	int rc = 0;
	if (!journal->owners)
		rc = err_set(err, -ENOMEM, "no memory for member %s", shape->member);
	else if (strlen(shape->member) >= MEMBER_BYTES || strlen(shape->raid) >= RAID_BYTES ||
		 journal_path(journal->path, sizeof journal->path, place, shape->member))
		rc = err_set(err, -ENAMETOOLONG, "the name of member %s in %s is too long",
			     shape->member, place);
	else if (mkdir(place, 0700) && errno != EEXIST)
		rc = err_set(err, -errno, "cannot make directory %s: %s", place, strerror(errno));
	else if (access(journal->path, F_OK) == 0)
		rc = adopt(journal, place, shape, err);
	else if ((rc = rewrite(journal, place, shape)))
		err_set(err, rc, "cannot make %s: %s", journal->path, strerror(-rc));
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
	if (journal->fd >= 0)
		close(journal->fd);
	free(journal->owners);
	free(journal);
	return NULL;
}
