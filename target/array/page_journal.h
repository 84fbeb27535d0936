/* SPDX-License-Identifier: MIT
 *
 * The durable half of the page map: which volume has which page of a member with a file store,
 * which of its drives has which slot of the RAID set, which slots are stale, and whether the member
 * is being drained.  One append-only file a member, PLACE/MEMBER.pagemap.
 *
 * Layout: a header that names the member, its pool and its shape (a lab that changes the RAID level
 * or the number of drives would read garbage, so it is refused), then records (record_file.h says
 * what of a crash is repaired and what is refused).  Opening rewrites the file when most of it is
 * history, so it does not grow without end.
 *
 * A page of a volume moves to another member in this order: the new page is noted there as coming;
 * the content is copied and flushed; the new page is noted as owner with the next generation; the
 * old one as left; it is unmapped and given back.  Between own and left both claim the same place,
 * and the newer generation is right: it was noted after its content was complete, and the old one
 * has not been written since.  What opening finds as coming, as left or as the older claim is
 * unmapped and given back.
 *
 * Order: a record is on stable storage before the write that needed the page goes out, and a page
 * is given back only after its content is gone.  Allocation is rare (15 MiB pages), so the
 * synchronous fdatasync is paid seldom.
 */
#ifndef SANLAB_TARGET_ARRAY_PAGE_JOURNAL_H
#define SANLAB_TARGET_ARRAY_PAGE_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "target/drive/store_super.h"

struct page_journal;

/* What must be as it was when the member was made. */
struct member_shape {
	const char *member;
	const char *raid;
	unsigned drives, spares;
	uint64_t chunk_bytes, drive_bytes;
	uint8_t pool_uuid[STORE_UUID_BYTES], member_uuid[STORE_UUID_BYTES];
};

struct page_owner {
	uint64_t volume; /* stable hash of the volume's name */
	uint32_t page;	 /* of the volume */
	uint16_t generation;
	bool used;
	bool homeless; /* a move's copy that is not complete, or a place that was left */
};

/* Of two pages that claim the same place of a volume, the one the volume moved to last. */
static inline bool page_generation_newer(uint16_t a, uint16_t b)
{
	return (int16_t)(uint16_t)(a - b) > 0;
}

/* Opens or makes the file; makes PLACE if only its last component is missing. */
int page_journal_open(const char *place, const struct member_shape *shape, uint32_t page_count,
		      struct page_journal **ret_journal, struct err *err);
struct page_journal *page_journal_close(struct page_journal *journal);
const char *page_journal_place(const struct page_journal *journal);

/* Is there a file already? */
bool page_journal_exists(const char *place, const char *member);
/* Ready: all drives were made once, so a missing one is a lost one. */
bool page_journal_is_ready(const struct page_journal *journal);
int page_journal_set_ready(struct page_journal *journal);
/* The member takes part in the start of that number (pool_identity.h), which is larger than all
 * before; durable at once. */
int page_journal_start(struct page_journal *journal, uint64_t start);
uint64_t page_journal_last_start(const struct page_journal *journal); /* 0: none */

struct page_owner page_journal_owner(const struct page_journal *journal, uint32_t page);
int page_journal_take(struct page_journal *journal, uint32_t page, uint64_t volume,
		      uint32_t volume_page);
int page_journal_give(struct page_journal *journal, uint32_t page);
/* A page for a move's copy; when it is complete and on stable storage, it becomes the owner of its
 * place in the volume (of a page that owns its place already, only the generation is raised). */
int page_journal_reserve(struct page_journal *journal, uint32_t page, uint64_t volume,
			 uint32_t volume_page, uint16_t generation);
int page_journal_own(struct page_journal *journal, uint32_t page, uint16_t generation);
/* The page's content has moved: it claims its place in the volume no more. */
int page_journal_leave(struct page_journal *journal, uint32_t page);
int page_journal_sync(struct page_journal *journal); /* the above is durable after it */

/* Slots of the RAID set: which of the member's drives has one (at first slot N drive N), and which
 * are stale.  What changes them is durable at once. */
uint64_t page_journal_stale_mask(const struct page_journal *journal);
unsigned page_journal_slot_drive(const struct page_journal *journal, unsigned slot);
int page_journal_stale(struct page_journal *journal, unsigned slot);
int page_journal_fresh(struct page_journal *journal, unsigned slot);
/* SLOT is stale, and has DRIVE from now on. */
int page_journal_assign(struct page_journal *journal, unsigned slot, unsigned drive);

/* Is the member to give all its pages away?  Durable at once. */
bool page_journal_drains(const struct page_journal *journal);
int page_journal_set_drains(struct page_journal *journal, bool drains);

#endif
