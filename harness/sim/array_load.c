/* SPDX-License-Identifier: MIT
 *
 * Open request streams to an array.
 */
#include "harness/sim/array_load.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/rng.h"

enum { STREAMS_MAX = 256, MOST_UNITS = 64, DATA_BYTES = 16 << 20 };

struct request {
	struct io io;
	struct iovec iov;
	struct array_stream *stream;
	uint64_t due_ns;
	bool counts;
	struct request *next; /* idle ones */
};

struct array_stream {
	struct array_load *load;
	struct array_stream_config config;
	struct array_stream_result result;
	struct rng rng;
	struct loop_timer timer;
	uint64_t due_ns;
	uint64_t cursor_bytes; /* of a sequential one, within the region */
};

struct array_load {
	struct loop *loop;
	uint64_t seed;
	struct array_stream *streams[STREAMS_MAX];
	unsigned stream_count;
	struct request *idle;
	unsigned outstanding;
	bool counting;
	uint8_t *data; /* what all write and read: nobody looks at it */
};

static void request_done(struct io *io)
{
	struct request *request = container_of(io, struct request, io);
	struct array_stream *stream = request->stream;
	struct array_load *load = stream->load;

	load->outstanding--;
	if (request->counts) {
		stream->result.requests++;
		stream->result.bytes += io->length_bytes;
		stream->result.errors += io->status != 0;
		hist_record(&stream->result.latency, loop_now_ns(load->loop) - request->due_ns);
	}
	request->next = load->idle;
	load->idle = request;
}

/* A whole number of units, between whose two nearest values the mean decides. */
static uint64_t draw_bytes(struct array_stream *stream)
{
	double units = stream->config.mean_bytes / (double)stream->config.unit_bytes;
	uint64_t whole = (uint64_t)units;

	whole += rng_unit(&stream->rng) < units - (double)whole;
	return MIN_OF(MAX_OF(whole, 1), MOST_UNITS) * stream->config.unit_bytes;
}

static uint64_t draw_offset(struct array_stream *stream, uint64_t bytes)
{
	const struct array_stream_config *config = &stream->config;
	uint64_t units = (config->region_bytes - bytes) / config->unit_bytes + 1;

	if (config->pattern == ARRAY_STREAM_RANDOM)
		return config->from_bytes + rng_below(&stream->rng, units) * config->unit_bytes;
	if (stream->cursor_bytes > config->region_bytes - bytes)
		stream->cursor_bytes = 0;
	stream->cursor_bytes += bytes;
	return config->from_bytes + stream->cursor_bytes - bytes;
}

static void submit_one(struct array_stream *stream)
{
	struct array_load *load = stream->load;
	struct request *request = load->idle;
	uint64_t bytes = draw_bytes(stream);

	if (request) {
		load->idle = request->next;
	} else {
		request = malloc(sizeof *request);
		if (!request) {
			stream->result.errors++;
			return;
		}
	}
	request->stream = stream;
	request->due_ns = stream->due_ns;
	request->counts = load->counting;
	request->iov = (struct iovec){load->data, bytes};
	request->io = (struct io){
	    .op = stream->config.op,
	    .flags = stream->config.flags,
	    .offset_bytes = draw_offset(stream, bytes),
	    .length_bytes = bytes,
	    .iov = &request->iov,
	    .iov_count = 1,
	    .done = request_done,
	};
	load->outstanding++;
	io_submit(volume_layer(stream->config.volume), &request->io);
}

static uint64_t draw_gap_ns(struct array_stream *stream)
{
	double mean_ns = (double)NS_PER_S * stream->config.burst / stream->config.per_second;

	return (uint64_t)(stream->config.pace == ARRAY_STREAM_POISSON
			      ? rng_exponential(&stream->rng, mean_ns)
			      : mean_ns);
}

static void catch_up(struct array_stream *stream)
{
	const struct array_stream *leader = stream->load->streams[stream->config.behind - 1];
	uint64_t mibs = leader->cursor_bytes / MIB;

	stream->cursor_bytes = mibs > 1 ? (mibs - 2) * MIB : 0;
}

static void stream_due(void *arg)
{
	struct array_stream *stream = arg;

	if (stream->config.behind)
		catch_up(stream);
	for (unsigned i = 0; i < stream->config.burst; i++)
		submit_one(stream);
	stream->due_ns += draw_gap_ns(stream);
	loop_timer_set(stream->load->loop, &stream->timer, stream->due_ns);
}

int array_load_new(struct loop *loop, uint64_t seed, struct array_load **ret_load)
{
	struct array_load *load = calloc(1, sizeof *load);

	if (!load)
		return -ENOMEM;
	load->loop = loop;
	load->seed = seed;
	load->data = calloc(1, DATA_BYTES);
	if (!load->data) {
		free(load);
		return -ENOMEM;
	}
	*ret_load = load;
	return 0;
}

int array_load_add(struct array_load *load, const struct array_stream_config *config)
{
	struct array_stream *stream;

	assert(config->per_second > 0 && config->region_bytes >= MOST_UNITS * config->unit_bytes);
	assert(config->behind <= load->stream_count);
	assert(config->unit_bytes > 0 && MOST_UNITS * config->unit_bytes <= DATA_BYTES);
	stream = load->stream_count < STREAMS_MAX ? calloc(1, sizeof *stream) : NULL;
	if (!stream)
		return -ENOMEM;
	stream->load = load;
	stream->config = *config;
	stream->config.burst = MAX_OF(config->burst, 1U);
	hist_reset(&stream->result.latency);
	rng_init(&stream->rng, load->seed, load->stream_count);
	loop_timer_init(&stream->timer, stream_due, stream);
	/* Anywhere in its first period: streams of one kind do not march in step. */
	stream->due_ns = loop_now_ns(load->loop) +
			 (uint64_t)(rng_unit(&stream->rng) * (double)draw_gap_ns(stream));
	loop_timer_set(load->loop, &stream->timer, stream->due_ns);
	load->streams[load->stream_count] = stream;
	return (int)load->stream_count++;
}

void array_load_begin_window(struct array_load *load)
{
	load->counting = true;
	for (unsigned i = 0; i < load->stream_count; i++) {
		struct array_stream_result *result = &load->streams[i]->result;

		result->requests = result->bytes = result->errors = 0;
		hist_reset(&result->latency);
	}
}

void array_load_stop(struct array_load *load)
{
	for (unsigned i = 0; i < load->stream_count; i++)
		loop_timer_cancel(load->loop, &load->streams[i]->timer);
}

unsigned array_load_outstanding(const struct array_load *load)
{
	return load->outstanding;
}

const struct array_stream_result *array_load_result(const struct array_load *load, unsigned stream)
{
	return &load->streams[stream]->result;
}

struct array_load *array_load_free(struct array_load *load)
{
	if (!load)
		return NULL;
	assert(load->outstanding == 0);
	array_load_stop(load);
	for (unsigned i = 0; i < load->stream_count; i++)
		free(load->streams[i]);
	while (load->idle) {
		struct request *request = load->idle;

		load->idle = request->next;
		free(request);
	}
	free(load->data);
	free(load);
	return NULL;
}
