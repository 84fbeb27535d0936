/* SPDX-License-Identifier: MIT
 *
 * Checksums: a CRC32C for every 512-byte sector, kept beside the data, verified on every read.  A
 * read with a sector that does not fit ends with -EILSEQ; the RAID set above then takes the content
 * from elsewhere and writes it anew, which also renews the checksum.
 *
 * Kept is the CRC32C exclusive-or that of a sector of zeros: a sector that was never written (or
 * was unmapped) reads as zeros, and its checksum is the zero that a sparse table has there.
 *
 * Where: for a store with a PLACE in the sparse file PLACE/NAME.sums, else in sparse memory; 4
 * bytes a sector, 0.8 % of what was written.  Data is written first, then the sums: a process that
 * is killed between the two leaves a sector that does not fit.  The RAID set's journal rewrites
 * what was under way, and with it both.  A .sums file that is missing beside a drive (checksums
 * were off, or it was lost) is made anew from what the drive holds; opening a drive without
 * checksums removes it, as it would soon be wrong.
 *
 * The store below must complete within submit.
 */
#ifndef SANLAB_TARGET_DRIVE_INTEGRITY_H
#define SANLAB_TARGET_DRIVE_INTEGRITY_H

#include "target/drive/drive.h"

/* Puts the layer above STORE, which it then owns (on failure it does not).  OPS is STORE's kind. */
int integrity_open(const struct store_ops *ops, const char *place, const char *name,
		   struct io_layer *store, struct io_layer **ret_layer, struct err *err);
/* The store below has another file now, of the kind OPS. */
int integrity_reopen(struct io_layer *layer, const struct store_ops *ops, const char *place,
		     const char *name, struct err *err);
/* Removes what integrity_open keeps at PLACE; 0 also when there is nothing. */
int integrity_forget(const char *place, const char *name, struct err *err);

#endif
