/* SPDX-License-Identifier: MIT
 *
 * Log records: what one operation changes, page by page, in a form that can be done again.
 *
 * A record is atomic: recovery applies all of its updates or, where the log ends within it, none.
 * An operation (insert, delete, replace) is one record; a split is one record of its own that
 * carries what has moved.  Redo only: an operation is logged when nothing can hinder it any more.
 *
 * The update is the one way to change a page: the tree fills a struct ese_update, applies it to
 * the image (ese_image_apply) and appends the same struct to the log; recovery and replay decode
 * it and call the same function.
 *
 * Coded record, big-endian:
 *   0 bytes in total, padding included (4)   4 kind (1)  5 updates (1)  6 zero (2)
 *   8 bytes without padding (4)  12 zero (4)  16 updates, then the padding up to what a record of
 * its kind takes in the log of the real engine (before and after images: exchange.md 9.5). Each
 * update: page 8, dbtime before 8, dbtime after 8, kind 1, level 1, slots 2, version 4, key 8,
 * target 8, bytes 4, base count 4, previous 8, next 8, base first 8; then 16 bytes a slot.
 *
 * Pure: no state, no time.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_RECORD_H
#define SANLAB_HARNESS_WORKLOAD_ESE_RECORD_H

#include <stddef.h>
#include <stdint.h>

enum {
	ESE_RECORD_HEADER_BYTES = 16,
	ESE_UPDATE_BYTES = 80,
	ESE_SLOT_BYTES = 16,
	ESE_UPDATES_MAX = 8,	/* pages that one record changes */
	ESE_SLOTS_MAX = 3000,	/* in all updates of a record: a split of a full node */
	ESE_RECORD_MAX = 65536, /* bytes of a coded record */
};

enum ese_record_kind {
	ESE_RECORD_INSERT = 1,
	ESE_RECORD_DELETE,
	ESE_RECORD_REPLACE,
	ESE_RECORD_SPLIT, /* of a leaf or of a node; also a root that grows by a level */
	ESE_RECORD_TOUCH, /* pages that an operation dirties beside its own (space, clean-up) */
	ESE_RECORD_KINDS,
};

enum ese_update_kind {
	ESE_UPDATE_PUT = 1, /* leaf: the record {key, version, bytes} is inserted or replaced */
	ESE_UPDATE_DELETE,  /* leaf: the record of `key` goes */
	ESE_UPDATE_CUT,	    /* leaf, node: everything from `key` on has moved to page `target`,
			     * which is the right neighbour from now on */
	ESE_UPDATE_IMAGE,   /* the whole page: a new one, or a root whose content has moved down */
	ESE_UPDATE_ENTRY,   /* node: from `key` on the child is page `target` */
	ESE_UPDATE_LINK,    /* the left neighbour is now page `target` */
	ESE_UPDATE_TOUCH,   /* nothing but its dbtime */
	ESE_UPDATE_KINDS,
};

/* One entry of an image: of a leaf a record, of a node a child. */
struct ese_slot {
	uint64_t key;
	union {
		struct {
			uint32_t version, bytes;
		};
		uint64_t child; /* page number */
	};
};

struct ese_update {
	uint64_t page;
	uint64_t dbtime_before; /* the page's before the update; 0: it was never written */
	uint64_t dbtime_after;
	enum ese_update_kind kind;
	uint8_t level;		 /* IMAGE: 0 leaf, 1 parent of leaves, ... */
	uint64_t key;		 /* PUT, DELETE, CUT, ENTRY */
	uint32_t version, bytes; /* PUT */
	uint64_t target;	 /* CUT, ENTRY, LINK: page number */
	uint64_t previous, next; /* IMAGE: neighbours on its level, 0: none */
	uint64_t base_first;	 /* IMAGE of a node: the range of children by formula */
	uint32_t base_count;
	uint32_t slot_count; /* IMAGE: its entries */
	const struct ese_slot *slots;
};

struct ese_record {
	enum ese_record_kind kind;
	unsigned update_count;
	struct ese_update updates[ESE_UPDATES_MAX];
	uint32_t padded_bytes; /* takes at least so much of the log; 0: as it comes */
};

/* Room for the slots of a decoded record. */
struct ese_slots {
	unsigned used;
	struct ese_slot slots[ESE_SLOTS_MAX];
};

/* Bytes of the coded record, padding included. */
uint32_t ese_record_bytes(const struct ese_record *record);
/* Writes what is not padding into BUF (ESE_RECORD_MAX is enough) and returns its bytes. */
uint32_t ese_record_encode(const struct ese_record *record, void *buf);
/* Bytes in total and without padding from the first ESE_RECORD_HEADER_BYTES; -EBADMSG. */
int ese_record_peek(const void *header, uint32_t *ret_bytes, uint32_t *ret_coded_bytes);
/* SIZE: without padding.  The record's slots lie in SLOTS.  -EBADMSG: not a record. */
int ese_record_decode(const void *buf, size_t size, struct ese_record *ret_record,
		      struct ese_slots *slots);

#endif
