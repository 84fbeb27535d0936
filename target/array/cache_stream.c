/* SPDX-License-Identifier: MIT
 *
 * The table of streams.
 */
#include "target/array/cache_stream.h"

#include "base/bytes.h"

static struct stream *find(struct streams *streams, uint64_t offset)
{
	for (unsigned i = 0; i < STREAMS_MAX; i++)
		if (streams->table[i].used && streams->table[i].next_bytes == offset)
			return &streams->table[i];
	return NULL;
}

static struct stream *oldest(struct streams *streams)
{
	struct stream *best = &streams->table[0];
	for (unsigned i = 1; i < STREAMS_MAX; i++)
		if (streams->table[i].used < best->used)
			best = &streams->table[i];
	return best;
}

struct stream_advice streams_note(struct streams *streams, uint64_t offset, uint64_t length,
				  uint64_t page_bytes, uint64_t size_bytes)
{
	struct stream_advice advice = {0};
	struct stream *stream = find(streams, offset);
	uint64_t most = streams->window_max_bytes ? streams->window_max_bytes : STREAM_WINDOW_BYTES;

	if (!stream) {
		stream = oldest(streams);
		*stream = (struct stream){.window_bytes = length};
	}
	stream->next_bytes = offset + length;
	stream->used = ++streams->clock;
	stream->in_row++;
	advice.sequential = stream->in_row >= STREAM_SEQUENTIAL;
	if (!advice.sequential)
		return advice;
	stream->window_bytes = MIN_OF(stream->window_bytes * 2, most);
	uint64_t from = MAX_OF(stream->ahead_bytes, stream->next_bytes);
	uint64_t upto =
	    MIN_OF(round_up_u64(stream->next_bytes + stream->window_bytes, page_bytes), size_bytes);
	if (from >= upto || from - stream->next_bytes > stream->window_bytes / 2)
		return advice;
	stream->ahead_bytes = upto;
	advice.offset_bytes = from;
	advice.length_bytes = upto - from;
	return advice;
}
