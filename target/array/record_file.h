/* SPDX-License-Identifier: MIT
 *
 * An append-only file of small records that knows when it was cut short.
 *
 * Layout: a header of 4 KiB, then blocks of 128 records of 32 bytes, each with a CRC32C and its
 * number.  The file always ends with a whole block in which at least one record is empty (zeros):
 * a file that ends otherwise was truncated, and is refused.  After the last record all is zeros; a
 * bad one there is what a crash in the middle of an append leaves, and is cut off; a bad one before
 * a good one is damage, and is refused.
 *
 * Order: nothing goes into a block before the blocks below it, and the file's size, are on stable
 * storage.  After a failed sync nobody knows what is there: the file takes nothing any more.
 *
 *   record  0 CRC32C   4 the owner's (4)   8 number   16 the owner's (16)
 */
#ifndef SANLAB_TARGET_ARRAY_RECORD_FILE_H
#define SANLAB_TARGET_ARRAY_RECORD_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { RECORD_FILE_HEADER_BYTES = 4096, RECORD_FILE_BLOCK_BYTES = 4096, RECORD_FILE_BYTES = 32 };

struct record_file {
	int fd;
	char path[PATH_MAX];
	uint64_t records; /* in the file, all good */
	bool broken;
};

/* Opens and locks PATH and reads its header. */
int record_file_open(struct record_file *file, const char *path,
		     uint8_t ret_header[RECORD_FILE_HEADER_BYTES], struct err *err);
void record_file_close(struct record_file *file);
/* Hands each record to APPLY, which answers whether it is possible; cuts off what is torn. */
int record_file_replay(struct record_file *file, bool (*apply)(void *arg, const uint8_t *record),
		       void *arg, struct err *err);
/* RECORD's CRC and number are filled in.  Durable after record_file_sync. */
int record_file_append(struct record_file *file, uint8_t record[RECORD_FILE_BYTES]);
int record_file_sync(struct record_file *file);
/* Puts a new file in the place of PATH, whole or not at all: HEADER, and the records that NEXT
 * gives for 0, 1, ... COUNT - 1 where it answers true.  FILE may be closed (fd -1) before; it is
 * open and locked afterwards, and as it was on an error. */
int record_file_replace(struct record_file *file, const char *place, const char *path,
			const uint8_t header[RECORD_FILE_HEADER_BYTES], uint64_t count,
			bool (*next)(void *arg, uint64_t index, uint8_t *record), void *arg);

#endif
