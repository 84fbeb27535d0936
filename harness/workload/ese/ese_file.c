/* SPDX-License-Identifier: MIT
 *
 * Creating, attaching and detaching a database: a few I/Os one after another, and the pass that
 * fills a volume which does not read as zeros.  See ese_file.h.
 */
#include "harness/workload/ese/ese_file.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"

enum { FILL_DEPTH = 4, COPIES = 2 };

struct fill_io {
	struct ese_page_io pio;
	struct ese_image images[ESE_RUN_PAGES];
	bool busy;
};

struct ese_file {
	struct ese_file_config config;
	struct ese_file_header header;
	struct ese_pager *pager;
	struct ese_flush_map_io map_io;
	struct ese_image_pool *images;
	/* The operation under way. */
	ese_file_fn done;
	void *arg;
	void (*then)(struct ese_file *file, int status); /* after the header's I/O */
	/* Header. */
	uint8_t *block;
	struct io io;
	struct iovec iov;
	unsigned copy; /* the next one to read or write */
	bool found, anything, damaged;
	struct ese_file_header best;
	/* Fill. */
	struct fill_io fill[FILL_DEPTH];
	uint64_t next;
	unsigned filling;
	bool pumping;
	int status;
};

int ese_file_new(const struct ese_file_config *config, struct ese_file **ret_file)
{
	struct ese_file *file = calloc(1, sizeof *file);

	if (!file)
		return -ENOMEM;
	file->config = *config;
	file->block = aligned_alloc(ESE_FILE_HEADER_BYTES, ESE_FILE_HEADER_BYTES);
	file->images = ese_image_pool_new();
	if (!file->block || !file->images) {
		ese_file_free(file);
		return -ENOMEM;
	}
	*ret_file = file;
	return 0;
}

static void close_pager(struct ese_file *file)
{
	if (!file->pager)
		return;
	ese_flush_map_io_done(&file->map_io);
	file->pager = ese_pager_free(file->pager);
}

struct ese_file *ese_file_free(struct ese_file *file)
{
	if (!file)
		return NULL;
	assert(!file->done);
	close_pager(file);
	if (file->images)
		ese_image_pool_free(file->images);
	free(file->block);
	free(file);
	return NULL;
}

struct ese_pager *ese_file_pager(struct ese_file *file)
{
	return file->pager;
}

const struct ese_file_header *ese_file_header(const struct ese_file *file)
{
	return &file->header;
}

double ese_file_progress(const struct ese_file *file)
{
	if (!file->done)
		return 1;
	if (file->next)
		return (double)file->next / (double)file->header.rules.pages;
	return file->pager && file->map_io.busy
		   ? (double)file->map_io.next / (double)file->map_io.map->map_pages
		   : 0;
}

static int open_pager(struct ese_file *file)
{
	const struct ese_file_config *config = &file->config;
	struct ese_pager_config pager = {
	    .loop = config->loop,
	    .layer = config->layer,
	    .identity = file->header.identity,
	    .pages = file->header.pages,
	    .rules = config->rules,
	    .content = config->content,
	    .unwritten_is_zero = file->header.sparse,
	    .fua = config->fua,
	    .host = config->host,
	    .volume = config->volume,
	    .check = config->check,
	    .first_writes = config->first_writes,
	    .mismatch = config->mismatch,
	    .arg = config->arg,
	};
	int r;

	close_pager(file);
	r = ese_pager_new(&pager, &file->pager);
	if (r < 0)
		return r;
	r = ese_flush_map_io_init(&file->map_io, ese_pager_map(file->pager));
	if (r < 0) {
		file->pager = ese_pager_free(file->pager);
		return r;
	}
	file->map_io.layer = config->layer;
	file->map_io.offset_bytes = config->layout.map_offset_bytes;
	file->map_io.stream = config->map_stream;
	file->map_io.loop = config->loop;
	file->map_io.content = config->content;
	return 0;
}

static void begin(struct ese_file *file, ese_file_fn done, void *arg)
{
	assert(!file->done);
	file->done = done;
	file->arg = arg;
	file->status = 0;
	file->next = 0;
}

static void finish(struct ese_file *file, int status)
{
	ese_file_fn done = file->done;

	file->done = NULL;
	done(file->arg, status);
}

/* ---- the header ---- */

static void header_io(struct ese_file *file, enum io_op op, void (*done)(struct io *io))
{
	file->iov = (struct iovec){file->block, ESE_FILE_HEADER_BYTES};
	file->io = (struct io){
	    .op = op,
	    .flags = op == IO_WRITE ? IO_FUA : 0,
	    .offset_bytes = (uint64_t)file->copy * ESE_PAGE_BYTES,
	    .length_bytes = ESE_FILE_HEADER_BYTES,
	    .iov = &file->iov,
	    .iov_count = 1,
	    .done = done,
	    .owner = file,
	};
	io_submit(file->config.layer, &file->io);
}

static void header_written(struct io *io)
{
	struct ese_file *file = io->owner;

	if (io->status < 0 || file->copy == 0) {
		file->then(file, io->status);
		return;
	}
	file->copy--;
	header_io(file, IO_WRITE, header_written);
}

/* The shadow, then the header. */
static void write_header(struct ese_file *file, enum ese_file_state state,
			 void (*then)(struct ese_file *file, int status))
{
	file->header.state = state;
	file->header.sequence++;
	file->then = then;
	file->copy = COPIES - 1;
	ese_file_header_encode(&file->header, file->block);
	header_io(file, IO_WRITE, header_written);
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i])
			return false;
	return true;
}

static void header_read(struct io *io)
{
	struct ese_file *file = io->owner;
	struct ese_file_header header;
	int r;

	if (io->status < 0) {
		file->then(file, io->status);
		return;
	}
	file->anything |= !is_zero(file->block, ESE_FILE_HEADER_BYTES);
	r = ese_file_header_decode(file->block, &header);
	file->damaged |= r == -EBADMSG;
	if (r == 0 && (!file->found || header.sequence > file->best.sequence)) {
		file->found = true;
		file->best = header;
	}
	if (++file->copy == COPIES)
		file->then(file, 0);
	else
		header_io(file, IO_READ, header_read);
}

static void read_header(struct ese_file *file, void (*then)(struct ese_file *file, int status))
{
	file->then = then;
	file->copy = 0;
	file->found = file->anything = file->damaged = false;
	header_io(file, IO_READ, header_read);
}

/* ---- create ---- */

static void fill_pump(struct ese_file *file);

static void clean_written(struct ese_file *file, int status)
{
	finish(file, status);
}

static void map_written(void *arg, int status)
{
	struct ese_file *file = arg;

	if (status < 0)
		finish(file, status);
	else
		write_header(file, ESE_FILE_CLEAN, clean_written);
}

static void fill_ended(struct ese_page_io *pio)
{
	struct ese_file *file = pio->owner;
	struct fill_io *fill = container_of(pio, struct fill_io, pio);

	for (unsigned i = 0; i < pio->count; i++)
		ese_image_clear(&fill->images[i]);
	fill->busy = false;
	file->filling--;
	if (pio->status < 0 && file->status == 0)
		file->status = pio->status;
	fill_pump(file);
}

static void fill_one(struct ese_file *file, struct fill_io *fill)
{
	uint64_t count = MIN_OF(ESE_RUN_PAGES, file->header.rules.pages - file->next);
	int r = 0;

	fill->pio = (struct ese_page_io){
	    .first = file->next,
	    .count = (unsigned)count,
	    .born = true,
	    .stream = file->config.fill_stream,
	    .done = fill_ended,
	    .owner = file,
	};
	for (unsigned i = 0; i < count && r == 0; i++) {
		uint32_t page = (uint32_t)(file->next + i);

		ese_image_init(&fill->images[i], file->images, page);
		fill->pio.images[i] = &fill->images[i];
		r = ese_image_initial(file->config.rules, page, &fill->images[i]);
	}
	file->next += count;
	file->filling++;
	fill->busy = true;
	if (r == 0) {
		ese_pager_write(file->pager, &fill->pio);
	} else {
		fill->pio.status = r;
		fill_ended(&fill->pio);
	}
}

static void fill_pump(struct ese_file *file)
{
	if (file->pumping)
		return;
	file->pumping = true;
	for (unsigned i = 0; i < FILL_DEPTH; i++)
		while (!file->fill[i].busy && file->status == 0 &&
		       file->next < file->header.rules.pages)
			fill_one(file, &file->fill[i]);
	file->pumping = false;
	if (file->filling > 0)
		return;
	if (file->status < 0)
		finish(file, file->status);
	else
		ese_flush_map_persist(&file->map_io, /* all= */ true, map_written, file);
}

static void creating_written(struct ese_file *file, int status)
{
	if (status < 0) {
		finish(file, status);
		return;
	}
	file->next = ESE_PAGE_FIRST;
	fill_pump(file);
}

static void create_looked(struct ese_file *file, int status)
{
	if (status < 0) {
		finish(file, status);
		return;
	}
	/* A header on a volume that was zero: somebody has used it since. */
	file->header.sparse = file->config.known_zero && !file->anything;
	file->header.sequence = file->found ? file->best.sequence : 0;
	status = open_pager(file);
	if (status < 0)
		finish(file, status);
	else if (file->header.sparse || !file->config.content)
		write_header(file, ESE_FILE_CLEAN, clean_written);
	else
		write_header(file, ESE_FILE_CREATING, creating_written);
}

void ese_file_create(struct ese_file *file, const struct ese_identity *identity,
		     uint64_t log_signature, ese_file_fn done, void *arg)
{
	begin(file, done, arg);
	file->header = (struct ese_file_header){
	    .identity = *identity,
	    .pages = file->config.layout.pages,
	    .rules = file->config.rules->config,
	    .log_signature = log_signature,
	};
	file->header.rules.pages = file->config.rules->pages;
	read_header(file, create_looked);
}

/* ---- attach ---- */

static void map_loaded(void *arg, int status)
{
	finish(arg, status);
}

static int accept_header(struct ese_file *file)
{
	struct ese_rules_config rules = file->config.rules->config;

	if (!file->found)
		return file->damaged ? -EUCLEAN : -ENOENT;
	if (file->best.state == ESE_FILE_CREATING)
		return -ENOENT; /* what was being created was never ready */
	rules.pages = file->config.rules->pages;
	if (file->best.pages != file->config.layout.pages ||
	    !ese_file_same_rules(&file->best.rules, &rules))
		return -EMEDIUMTYPE;
	file->header = file->best;
	return 0;
}

static void attach_looked(struct ese_file *file, int status)
{
	bool fresh;

	if (status == 0)
		status = accept_header(file);
	if (status == 0)
		status = open_pager(file);
	if (status < 0) {
		finish(file, status);
		return;
	}
	/* Nobody has used it since it was created on zeros: the map is as it was born. */
	fresh = file->header.sparse && file->header.clean_dbtime == 0 &&
		file->header.state == ESE_FILE_CLEAN;
	if (fresh)
		finish(file, 0);
	else
		ese_flush_map_load(&file->map_io, map_loaded, file);
}

/* Nothing is on the volume: what was in memory counts, header, map and images. */
static void attach_nothing(struct ese_file *file, int status)
{
	if (status == 0 && !file->pager)
		status = -ENOENT;
	finish(file, status);
}

void ese_file_attach(struct ese_file *file, ese_file_fn done, void *arg)
{
	begin(file, done, arg);
	read_header(file, file->config.content ? attach_looked : attach_nothing);
}

void ese_file_use(struct ese_file *file, uint64_t lgpos, ese_file_fn done, void *arg)
{
	begin(file, done, arg);
	file->header.attach_lgpos = lgpos;
	write_header(file, ESE_FILE_DIRTY, clean_written);
}

static void map_persisted(void *arg, int status)
{
	finish(arg, status);
}

void ese_file_persist_map(struct ese_file *file, ese_file_fn done, void *arg)
{
	begin(file, done, arg);
	ese_flush_map_persist(&file->map_io, /* all= */ false, map_persisted, file);
}

void ese_file_detach(struct ese_file *file, uint64_t dbtime, ese_file_fn done, void *arg)
{
	begin(file, done, arg);
	file->header.clean_dbtime = dbtime;
	ese_flush_map_persist(&file->map_io, /* all= */ false, map_written, file);
}
