/* SPDX-License-Identifier: MIT
 *
 * Sequential streams among the reads of a member, and how far to read ahead of each.
 *
 * A read that begins where one of the last reads ended goes on with that one's stream.  From the
 * third in a row on the stream is taken as sequential: its window doubles with each read up to the
 * limit, and more is asked for when less than half of it is left ahead.  A stream that stops is
 * pushed out of the table by others: nothing more is read for it.
 *
 * Pure.  Bounds: STREAMS_MAX streams.
 */
#ifndef SANLAB_TARGET_ARRAY_CACHE_STREAM_H
#define SANLAB_TARGET_ARRAY_CACHE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

enum {
	STREAMS_MAX = 32,
	STREAM_SEQUENTIAL = 3, /* reads in a row */
};

#define STREAM_WINDOW_BYTES (UINT64_C(1) << 20) /* read ahead at most; assumed */

struct stream {
	uint64_t next_bytes;  /* where the next read is expected */
	uint64_t ahead_bytes; /* up to where was asked for */
	uint64_t window_bytes;
	uint64_t used; /* clock of the table; 0: empty */
	unsigned in_row;
};

struct streams {
	struct stream table[STREAMS_MAX];
	uint64_t clock;
	uint64_t window_max_bytes; /* 0: STREAM_WINDOW_BYTES */
};

struct stream_advice {
	bool sequential;
	uint64_t offset_bytes, length_bytes; /* to read ahead; length 0: nothing */
};

/* A read of [OFFSET, OFFSET + LENGTH) came in; nothing lies beyond SIZE.  Advice is in whole
 * pages of PAGE_BYTES, but for the end. */
struct stream_advice streams_note(struct streams *streams, uint64_t offset, uint64_t length,
				  uint64_t page_bytes, uint64_t size_bytes);

#endif
