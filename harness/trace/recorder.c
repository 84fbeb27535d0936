/* SPDX-License-Identifier: MIT
 *
 * The recording layer and its writer thread.
 */
#include "harness/trace/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/bytes.h"

enum {
	CHUNK_BYTES = 256 * 1024,
	CHUNKS = 32,
	LINE_MAX_BYTES = 400, /* two names and four numbers */
	FLUSH_NS = 1000000000,
};

struct chunk {
	size_t used;
	uint64_t ios;
	char text[CHUNK_BYTES];
};

struct recording_layer {
	struct io_layer layer;
	struct recorder *recorder;
	struct io_layer *below;
	char name[150];
	struct recording_layer *next;
};

struct recorder {
	struct loop *loop;
	char *file;
	int fd;
	gzFile gz; /* NULL: plain */
	struct recording_layer *layers;
	bool recording, finished;
	uint64_t start_ns, ios, lost;
	struct loop_timer timer; /* what lies there for long is written out, for whoever looks on */

	/* the writer's */
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct chunk *chunks;
	unsigned head, filled; /* of the ring: the first filled one, how many; the one being filled
				* comes after them */
	bool ending;
	int status;
};

/* ---- the writer ---- */

static int write_plain(int fd, const char *text, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, text, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		size -= (size_t)n;
	}
	return 0;
}

static int write_out(struct recorder *recorder, const struct chunk *chunk)
{
	int code;

	if (!recorder->gz)
		return write_plain(recorder->fd, chunk->text, chunk->used);
	errno = 0;
	if (gzwrite(recorder->gz, chunk->text, (unsigned)chunk->used) == (int)chunk->used)
		return 0;
	gzerror(recorder->gz, &code);
	return code == Z_ERRNO && errno ? -errno : -EIO;
}

static void *writer(void *arg)
{
	struct recorder *recorder = arg;

	pthread_mutex_lock(&recorder->lock);
	while (recorder->filled || !recorder->ending) {
		struct chunk *chunk = &recorder->chunks[recorder->head];
		int status = recorder->status;

		if (!recorder->filled) {
			pthread_cond_wait(&recorder->changed, &recorder->lock);
			continue;
		}
		pthread_mutex_unlock(&recorder->lock);
		if (status == 0)
			status = write_out(recorder, chunk);
		pthread_mutex_lock(&recorder->lock);
		recorder->status = status;
		chunk->used = 0;
		recorder->head = (recorder->head + 1) % CHUNKS;
		recorder->filled--;
		pthread_cond_broadcast(&recorder->changed);
	}
	pthread_mutex_unlock(&recorder->lock);
	return NULL;
}

/* ---- lines ---- */

/* The chunk being filled; NULL: the writer has all of them. */
static struct chunk *current(struct recorder *recorder)
{
	return recorder->filled == CHUNKS
		   ? NULL
		   : &recorder->chunks[(recorder->head + recorder->filled) % CHUNKS];
}

/* ... with room for SIZE.  Waiting for the disk does not disturb a virtual clock. */
static struct chunk *room(struct recorder *recorder, size_t size)
{
	struct chunk *chunk;

	pthread_mutex_lock(&recorder->lock);
	chunk = current(recorder);
	if (chunk && chunk->used + size > CHUNK_BYTES) {
		recorder->filled++;
		pthread_cond_broadcast(&recorder->changed);
		chunk = current(recorder);
	}
	while (!chunk && loop_is_virtual(recorder->loop)) {
		pthread_cond_wait(&recorder->changed, &recorder->lock);
		chunk = current(recorder);
	}
	if (recorder->status < 0)
		chunk = NULL;
	pthread_mutex_unlock(&recorder->lock);
	return chunk;
}

static uint64_t now_us(const struct recorder *recorder)
{
	uint64_t us = (loop_now_ns(recorder->loop) - recorder->start_ns) / NS_PER_US;

	return MAX_OF(us, 1U);
}

static void add_line(struct chunk *chunk, uint64_t us, const char *name, const char *action,
		     uint64_t offset, uint64_t length)
{
	chunk->used += (size_t)snprintf(chunk->text + chunk->used, LINE_MAX_BYTES,
					"%" PRIu64 " %s %s %" PRIu64 " %" PRIu64 "\n", us, name,
					action, offset, length);
}

static void push(struct recorder *recorder)
{
	struct chunk *chunk;

	pthread_mutex_lock(&recorder->lock);
	chunk = current(recorder);
	if (chunk && chunk->used > 0) {
		recorder->filled++;
		pthread_cond_broadcast(&recorder->changed);
	}
	pthread_mutex_unlock(&recorder->lock);
}

static void timer_due(void *arg)
{
	struct recorder *recorder = arg;

	push(recorder);
	loop_timer_set(recorder->loop, &recorder->timer, loop_now_ns(recorder->loop) + FLUSH_NS);
}

static void file_lines(struct recorder *recorder, const char *action)
{
	struct chunk *chunk;

	for (struct recording_layer *one = recorder->layers; one; one = one->next) {
		chunk = room(recorder, LINE_MAX_BYTES);
		if (chunk)
			chunk->used += (size_t)snprintf(chunk->text + chunk->used, LINE_MAX_BYTES,
							"%" PRIu64 " %s %s\n", now_us(recorder),
							one->name, action);
	}
}

/* ---- the layer ---- */

static void write_down(struct recording_layer *one, const struct io *io)
{
	static const char *const actions[] = {
	    [IO_READ] = "read",
	    [IO_WRITE] = "write",
	    [IO_FLUSH] = "sync",
	    [IO_UNMAP] = "trim",
	};
	struct recorder *recorder = one->recorder;
	struct chunk *chunk = room(recorder, 2 * (size_t)LINE_MAX_BYTES);
	bool data = io->op != IO_FLUSH;
	uint64_t us = now_us(recorder);

	if (!chunk) {
		recorder->lost++;
		return;
	}
	recorder->ios++;
	add_line(chunk, us, one->name, actions[io->op], data ? io->offset_bytes : 0,
		 data ? io->length_bytes : 0);
	if (io->op == IO_WRITE && (io->flags & IO_FUA))
		add_line(chunk, us, one->name, "datasync", io->offset_bytes, 0);
}

static void submit(struct io_layer *layer, struct io *io)
{
	struct recording_layer *one = container_of(layer, struct recording_layer, layer);

	if (one->recorder->recording)
		write_down(one, io);
	io_submit(one->below, io);
}

static const struct io_layer_ops recording_ops = {.name = "recorder", .submit = submit};

struct io_layer *recorder_wrap(struct recorder *recorder, struct io_layer *below, const char *host,
			       const char *volume)
{
	struct recording_layer *one = calloc(1, sizeof *one);

	if (!one)
		return NULL;
	one->layer = (struct io_layer){.ops = &recording_ops, .size_bytes = below->size_bytes};
	one->recorder = recorder;
	one->below = below;
	snprintf(one->name, sizeof one->name, "%s.%s", host, volume);
	one->next = recorder->layers;
	recorder->layers = one;
	return &one->layer;
}

/* ---- life ---- */

static int open_file(struct recorder *recorder, const char *file, struct err *err)
{
	size_t length = strlen(file);
	int r = 0;

	/* A pipe that nobody reads is refused, not waited for. */
	recorder->fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
	if (recorder->fd < 0) {
		r = -errno;
		return err_set(err, r, "cannot record into '%.200s': %s", file, strerror(-r));
	}
	fcntl(recorder->fd, F_SETFL, 0);
	if (length > 3 && strcmp(file + length - 3, ".gz") == 0) {
		recorder->gz = gzdopen(recorder->fd, "wb1");
		if (!recorder->gz)
			return err_set(err, -ENOMEM, "no memory for the recording");
	}
	return 0;
}

static int start_writer(struct recorder *recorder)
{
	sigset_t all, old;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&recorder->thread, NULL, writer, recorder);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	recorder->has_thread = r == 0;
	return -r;
}

int recorder_open(const char *file, struct loop *loop, struct recorder **ret_recorder,
		  struct err *err)
{
	struct recorder *recorder = calloc(1, sizeof *recorder);
	int r = 0;

	if (!recorder)
		return err_set(err, -ENOMEM, "no memory for the recording");
	recorder->loop = loop;
	recorder->fd = -1;
	pthread_mutex_init(&recorder->lock, NULL);
	pthread_cond_init(&recorder->changed, NULL);
	loop_timer_init(&recorder->timer, timer_due, recorder);
	recorder->file = strdup(file);
	recorder->chunks = calloc(CHUNKS, sizeof *recorder->chunks);
	if (!recorder->file || !recorder->chunks)
		r = err_set(err, -ENOMEM, "no memory for the recording");
	if (r == 0)
		r = open_file(recorder, file, err);
	if (r == 0 && start_writer(recorder) < 0)
		r = err_set(err, -EAGAIN, "cannot start a thread for the recording");
	if (r < 0) {
		recorder_close(recorder);
		return r;
	}
	*ret_recorder = recorder;
	return 0;
}

void recorder_start(struct recorder *recorder)
{
	struct chunk *chunk;

	if (recorder->recording || recorder->finished)
		return;
	recorder->recording = true;
	recorder->start_ns = loop_now_ns(recorder->loop);
	chunk = room(recorder, LINE_MAX_BYTES);
	if (chunk)
		chunk->used += (size_t)snprintf(chunk->text + chunk->used, LINE_MAX_BYTES,
						"fio version 3 iolog\n");
	file_lines(recorder, "add");
	file_lines(recorder, "open");
	loop_timer_set(recorder->loop, &recorder->timer, recorder->start_ns + FLUSH_NS);
}

void recorder_stop(struct recorder *recorder)
{
	if (!recorder->recording)
		return;
	recorder->recording = false;
	file_lines(recorder, "close");
	loop_timer_cancel(recorder->loop, &recorder->timer);
}

/* The writer writes what there is, and ends. */
static void join(struct recorder *recorder)
{
	if (!recorder->has_thread)
		return;
	push(recorder);
	pthread_mutex_lock(&recorder->lock);
	recorder->ending = true;
	pthread_cond_broadcast(&recorder->changed);
	pthread_mutex_unlock(&recorder->lock);
	pthread_join(recorder->thread, NULL);
	recorder->has_thread = false;
}

static void close_file(struct recorder *recorder)
{
	int r = 0;

	if (recorder->gz)
		r = gzclose(recorder->gz) == Z_OK ? 0 : -EIO;
	else if (recorder->fd >= 0)
		r = close(recorder->fd) < 0 ? -errno : 0;
	recorder->gz = NULL;
	recorder->fd = -1;
	if (recorder->status == 0)
		recorder->status = r;
}

void recorder_finish(struct recorder *recorder, struct recorder_result *ret_result)
{
	recorder_stop(recorder);
	recorder->finished = true;
	join(recorder);
	close_file(recorder);
	*ret_result = (struct recorder_result){
	    .file = recorder->file,
	    .ios = recorder->ios,
	    .lost = recorder->lost,
	    .status = recorder->status,
	};
}

struct recorder *recorder_close(struct recorder *recorder)
{
	struct recording_layer *next;

	if (!recorder)
		return NULL;
	if (recorder->recording)
		loop_timer_cancel(recorder->loop, &recorder->timer);
	join(recorder);
	close_file(recorder);
	for (struct recording_layer *one = recorder->layers; one; one = next) {
		next = one->next;
		free(one);
	}
	pthread_cond_destroy(&recorder->changed);
	pthread_mutex_destroy(&recorder->lock);
	free(recorder->chunks);
	free(recorder->file);
	free(recorder);
	return NULL;
}
