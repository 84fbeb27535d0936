/* SPDX-License-Identifier: MIT
 *
 * Mode pages as MODE SENSE and MODE SELECT share them (SPC-4 7.5, SBC-3 6.5).
 *
 * Pure: pages are built from the logical unit's values; nothing is kept here.
 */
#ifndef SANLAB_TARGET_SCSI_MODE_H
#define SANLAB_TARGET_SCSI_MODE_H

#include "target/scsi/internal.h"

enum { MODE_PAGE_MAX_BYTES = 64 };

enum page_control { PC_CURRENT, PC_CHANGEABLE, PC_DEFAULT, PC_SAVED };

struct mode_page {
	uint8_t code, subpage;			   /* a subpage other than 0 has a 4-byte header */
	uint8_t bytes;				   /* with its header */
	bool (*present)(const struct scsi_lu *lu); /* NULL: always */
	/* Fills what follows the header, zeroed before. */
	void (*build)(const struct scsi_lu *lu, enum page_control control, uint8_t *body);
	/* Takes what may be changed from a checked page; NULL: nothing may. */
	void (*apply)(const uint8_t *body, struct mode_values *values);
};

/* The page; NULL when LU has none. */
const struct mode_page *scsi_mode_page_find(const struct scsi_lu *lu, uint8_t code,
					    uint8_t subpage);
static inline unsigned scsi_mode_page_header_bytes(const struct mode_page *page)
{
	return page->subpage == 0 ? 2 : 4;
}
/* The whole page into OUT; returns its length. */
unsigned scsi_mode_page_build(const struct mode_page *page, const struct scsi_lu *lu,
			      enum page_control control, uint8_t *out);

#endif
