/* SPDX-License-Identifier: MIT
 *
 * Persistence of registrations and reservation through the end of the target (APTPL, SPC-4
 * 5.13.4): one small file a volume, DIRECTORY/VOLUME.NAA.reservations.
 *
 * The file is there exactly while APTPL is active.  It is written whole under a temporary name,
 * synced, and renamed, so that one finds the old state or the new one after a crash.  A file that
 * is damaged is refused: hosts rely on reservations for the integrity of their data.
 *
 *   0 magic "SANLPRS1"   8 version   12 CRC32C of the rest   16 NAA   32 count
 *   36 holder   40 type   41-47 zero   48 registrations:
 *     0 key   8 ISID   14 target port   16 length of the name   18-19 zero   20 name
 */
#ifndef SANLAB_TARGET_SCSI_PR_PERSIST_H
#define SANLAB_TARGET_SCSI_PR_PERSIST_H

#include "base/err.h"
#include "target/scsi/pr_state.h"

enum { PR_NAA_BYTES = 16 };

struct pr_file {
	const char *directory;
	const char *volume;
	const uint8_t *naa; /* PR_NAA_BYTES */
};

/* Writes STATE, or removes the file when the state does not persist. */
int pr_file_save(const struct pr_file *file, const struct pr_state *state);
/* Fills STATE, which is empty; a file that does not exist leaves it so. */
int pr_file_load(const struct pr_file *file, struct pr_state *state, struct err *err);

#endif
