/* SPDX-License-Identifier: MIT
 *
 * What MPIO costs: a closed loop of 4 KiB reads over paths that answer in the same turn of the loop
 * and do nothing else, with MPIO in between and without.  The difference is MPIO's own.
 *
 * usage: mpio_cost direct|POLICY PATHS DEPTH IOS    prints {"ios": ..., "ns_per_io": ...}
 *        mpio_cost policies                         prints the names of the policies
 * Under `valgrind --tool=callgrind` the difference of two runs is its instructions.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/config.h"
#include "base/loop.h"
#include "initiator/mpio/mpio.h"
#include "initiator/path/path.h"

enum { BLOCK_BYTES = 512, IO_BYTES = 4096, BLOCKS = 2097152, MAX_PATHS = 64, MAX_DEPTH = 1024 };

/* ---- a kind of path that answers at the end of the turn ---- */
struct null_path {
	struct path path; /* first */
	struct loop_task task;
	struct path_io *first, **last;
	bool connecting;
};

static void null_due(void *arg)
{
	struct null_path *p = arg;
	struct path_io *pio = p->first;

	if (p->connecting) {
		p->connecting = false;
		p->path.up = true;
		p->path.config.event(p->path.config.arg, &p->path, PATH_EVENT_UP, "");
	}
	p->first = NULL;
	p->last = &p->first;
	while (pio) {
		struct path_io *next = pio->next;

		p->path.in_flight--;
		pio->result = PATH_OK;
		pio->done(pio);
		pio = next;
	}
}

static int null_connect(struct path *path)
{
	struct null_path *p = container_of(path, struct null_path, path);

	p->connecting = true;
	loop_task_queue(path->loop, &p->task);
	return 0;
}

static void null_submit(struct path *path, struct path_io *pio)
{
	struct null_path *p = container_of(path, struct null_path, path);

	path->in_flight++;
	pio->submit_ns = loop_now_ns(path->loop);
	pio->next = NULL;
	*p->last = pio;
	p->last = &pio->next;
	loop_task_queue(path->loop, &p->task);
}

/* Nothing is ever in flight when it is called here. */
static void null_disconnect(struct path *path)
{
	path->up = false;
}

static void null_free(struct path *path)
{
	struct null_path *p = container_of(path, struct null_path, path);

	loop_task_cancel(path->loop, &p->task);
	free(p);
}

static const struct path_ops null_ops = {
    .name = "null",
    .connect = null_connect,
    .submit = null_submit,
    .disconnect = null_disconnect,
    .free = null_free,
};

static struct path *null_new(struct loop *loop)
{
	struct null_path *p = calloc(1, sizeof *p);

	if (!p)
		abort();
	p->path.ops = &null_ops;
	p->path.loop = loop;
	p->path.config.portal = "null";
	p->path.identity = (struct path_identity){.designator = {0x60},
						  .designator_bytes = 16,
						  .block_bytes = BLOCK_BYTES,
						  .blocks = BLOCKS};
	p->last = &p->first;
	loop_task_init(&p->task, null_due, p);
	return &p->path;
}

/* ---- the closed loop ---- */
struct load {
	struct loop *loop;
	struct mpio *mpio; /* NULL: direct */
	struct path *path;
	uint64_t left, ended, target, begin_ns, end_ns;
	uint64_t lba;
	unsigned errors;
};

union slot {
	struct io io;
	struct path_io pio;
};

static uint8_t memory[IO_BYTES];
static struct iovec iov = {memory, sizeof memory};

static uint64_t next_lba(struct load *load)
{
	load->lba = (load->lba + IO_BYTES / BLOCK_BYTES * 7919) % (BLOCKS - 8);
	return load->lba / 8 * 8;
}

/* One more has ended; true: another is wanted. */
static bool go_on(struct load *load, bool good)
{
	load->errors += !good;
	if (++load->ended == load->target) {
		load->end_ns = loop_now_ns(load->loop);
		loop_stop(load->loop);
	}
	if (load->left == 0)
		return false;
	load->left--;
	return true;
}

static void io_ended(struct io *io)
{
	struct load *load = io->owner;

	if (!go_on(load, io->status == 0))
		return;
	io->offset_bytes = next_lba(load) * BLOCK_BYTES;
	io_submit(mpio_layer(load->mpio), io);
}

static void pio_ended(struct path_io *pio)
{
	struct load *load = pio->owner;

	if (!go_on(load, pio->result == PATH_OK))
		return;
	pio->lba = next_lba(load);
	path_submit(load->path, pio);
}

static void begin(struct load *load, union slot *slots, unsigned depth)
{
	load->begin_ns = loop_now_ns(load->loop);
	for (unsigned i = 0; i < depth && load->left; i++) {
		load->left--;
		if (load->mpio) {
			slots[i].io = (struct io){.op = IO_READ,
						  .length_bytes = IO_BYTES,
						  .iov = &iov,
						  .iov_count = 1,
						  .done = io_ended,
						  .owner = load};
			io_submit(mpio_layer(load->mpio), &slots[i].io);
		} else {
			slots[i].pio = (struct path_io){.op = IO_READ,
							.blocks = IO_BYTES / BLOCK_BYTES,
							.iov = &iov,
							.iov_count = 1,
							.done = pio_ended,
							.owner = load};
			path_submit(load->path, &slots[i].pio);
		}
	}
}

static void on_ready(void *arg, int status, const char *why)
{
	struct load *load = arg;

	if (status < 0)
		abort();
	loop_stop(load->loop);
}

static int open_device(struct load *load, const char *policy, unsigned paths, struct cfg **ret_cfg)
{
	struct mpio_config config;
	int at = 0;

	while (mpio_policy_names[at] && strcmp(mpio_policy_names[at], policy) != 0)
		at++;
	if (!mpio_policy_names[at] || cfg_parse("cost", "{}", 2, ret_cfg) < 0)
		return -EINVAL;
	cfg_decode(*ret_cfg, &mpio_schema, &config);
	config.policy = at;
	config.queue_depth = MAX_DEPTH;
	if (mpio_new(load->loop, &config, "cost", 1, &load->mpio) < 0)
		return -ENOMEM;
	for (unsigned i = 0; i < paths; i++)
		if (mpio_add_path(load->mpio, null_new(load->loop)) < 0)
			return -ENOMEM;
	mpio_start(load->mpio, NS_PER_S, on_ready, load);
	return loop_run(load->loop);
}

static int run(const char *how, unsigned paths, unsigned depth, uint64_t ios)
{
	static union slot slots[MAX_DEPTH];
	struct load load = {.left = ios, .target = ios};
	struct cfg *cfg = NULL;
	int r = loop_new_real(&load.loop);

	if (r < 0)
		return r;
	if (strcmp(how, "direct") == 0) {
		load.path = null_new(load.loop);
		load.path->up = true;
	} else {
		r = open_device(&load, how, paths, &cfg);
	}
	if (r == 0) {
		begin(&load, slots, depth);
		r = loop_run(load.loop);
		printf("{\"how\": \"%s\", \"paths\": %u, \"ios\": %llu, \"errors\": %u, "
		       "\"ns_per_io\": %.1f}\n",
		       how, paths, (unsigned long long)ios, load.errors,
		       (double)(load.end_ns - load.begin_ns) / (double)ios);
	}
	mpio_free(load.mpio);
	path_free(load.path);
	cfg_free(cfg);
	loop_free(load.loop);
	return r < 0 ? r : load.errors ? -EIO : 0;
}

int main(int argc, char **argv)
{
	unsigned long paths = argc == 5 ? strtoul(argv[2], NULL, 10) : 0;
	unsigned long depth = argc == 5 ? strtoul(argv[3], NULL, 10) : 0;
	unsigned long long ios = argc == 5 ? strtoull(argv[4], NULL, 10) : 0;

	if (argc == 2 && strcmp(argv[1], "policies") == 0) {
		for (unsigned i = 0; mpio_policy_names[i]; i++)
			puts(mpio_policy_names[i]);
		return 0;
	}
	if (paths < 1 || paths > MAX_PATHS || depth < 1 || depth > MAX_DEPTH || ios < depth) {
		fprintf(stderr, "usage: mpio_cost direct|POLICY PATHS DEPTH IOS\n");
		return 2;
	}
	return run(argv[1], (unsigned)paths, (unsigned)depth, ios) < 0;
}
