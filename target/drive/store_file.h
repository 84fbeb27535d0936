/* SPDX-License-Identifier: MIT
 *
 * The file store, for the owner of a set of drives: which files there are, whose they are, and
 * what becomes of one that is missing.  Private to target/.
 *
 * A store whose file could not be synced, or was never there, is dead: it answers -ENODEV to
 * everything until store_file_insert gives it a file anew.
 *
 * Threading: the loop's thread.
 */
#ifndef SANLAB_TARGET_DRIVE_STORE_FILE_H
#define SANLAB_TARGET_DRIVE_STORE_FILE_H

#include "target/drive/drive.h"
#include "target/drive/store_super.h"

/* Reads the superblock of the drive NAME in PLACE.  -ENOENT: there is no file; else as
 * store_super_read, and -EMEDIUMTYPE when it is another drive's file, -EUCLEAN when it is cut
 * short. */
int store_file_probe(const char *place, const char *name, struct store_super *ret_super,
		     struct err *err);
/* Makes an empty drive file for SUPER->name, in place of one that is there; fills the drive's
 * UUID.  On stable storage when it returns 0. */
int store_file_make(const char *place, struct store_super *super, struct err *err);
/* The drive file takes part in the start GENERATION.  It must not be open. */
int store_file_stamp(const char *place, struct store_super *super, uint64_t generation,
		     struct err *err);
/* The same for a store that is open and idle, whose content is on stable storage afterwards.  It is
 * dead if that fails. */
int store_file_restamp(struct io_layer *layer, uint64_t generation);

/* Opens a dead store: a slot without a drive. */
extern const struct store_ops store_absent_ops;
/* Gives the store of a drive, dead or not, the file of NAME in PLACE. */
int store_file_insert(struct io_layer *layer, const char *place, const char *name, struct err *err);

#endif
