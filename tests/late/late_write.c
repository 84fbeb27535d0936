/* SPDX-License-Identifier: MIT
 *
 * A write that comes late, over real sockets: tests/func/late_write.sh runs this against our target
 * and against tgt.
 *
 *   late_write PORTAL TARGET LUN
 *
 * A relay holds the bytes of a path's connection, among them a write.  The path is found dead, the
 * write is re-issued and ends, and the same block is written anew.  Then the relay delivers what it
 * held.  The block must keep the newer data when the old session has been ended first
 *  - by a login with the lost path's name over another path;
 *  - by the path's own new login, around the relay;
 * and without a fence it loses the newer data, or all this would prove nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/run/relay.h"
#include "initiator/mpio/mpio.h"

enum { BLOCK = 4096, DEADLINE_S = 20, AFTERWARDS_MS = 500 };

struct late {
	const char *portal, *target;
	unsigned lun;
	struct loop *loop;
	struct relay *relay;
	struct relay_line *line;
	bool around; /* new connections do not go through the relay */
	struct mpio *mpio;
	bool ready, lost, fenced;
	enum mpio_proof proof;
};

struct late_io {
	struct io io;
	struct iovec iov;
	uint8_t data[BLOCK];
	bool done;
};

static void die(const char *what)
{
	fprintf(stderr, "late_write: %s\n", what);
	exit(1);
}

static const char *dial(void *arg, const char *portal)
{
	struct late *late = arg;

	return late->around ? portal : relay_dial(late->line, portal);
}

static void on_ready(void *arg, int status, const char *why)
{
	struct late *late = arg;

	if (status < 0)
		die(why);
	late->ready = true;
}

static void on_track(void *arg, const struct mpio_track *track)
{
	struct late *late = arg;

	late->lost |= track->milestone == MPIO_LOST;
	if (track->milestone == MPIO_FENCED) {
		late->fenced = true;
		late->proof = track->proof;
	}
}

static void run_ms(struct late *late, uint64_t ms)
{
	if (loop_run_until(late->loop, loop_now_ns(late->loop) + ms * NS_PER_MS) < 0)
		die("the loop");
}

static void wait_for(struct late *late, const bool *what, const char *name)
{
	for (unsigned i = 0; i < DEADLINE_S * 200 && !*what; i++)
		run_ms(late, 5);
	if (!*what)
		die(name);
}

static void on_done(struct io *io)
{
	struct late_io *lio = io->owner;

	lio->done = true;
	if (io->status < 0)
		die("an I/O has failed");
}

static void submit(struct late *late, struct late_io *lio, enum io_op op, uint8_t fill)
{
	memset(lio->data, fill, sizeof lio->data);
	lio->done = false;
	lio->iov = (struct iovec){lio->data, sizeof lio->data};
	lio->io = (struct io){.op = op,
			      .length_bytes = BLOCK,
			      .iov = &lio->iov,
			      .iov_count = 1,
			      .done = on_done,
			      .owner = lio};
	io_submit(mpio_layer(late->mpio), &lio->io);
}

static uint8_t content(struct late *late)
{
	struct late_io read;

	submit(late, &read, IO_READ, 0xee);
	wait_for(late, &read.done, "a read does not end");
	if (memcmp(read.data, read.data + 1, BLOCK - 1) != 0)
		die("a torn block");
	return read.data[0];
}

static void add_path(struct late *late, const struct mpio_config *config, unsigned index)
{
	struct path_config path_config = {.portal = late->portal,
					  .target = late->target,
					  .lun = late->lun,
					  .isid_qualifier = 0x4000 + index,
					  .dial = index == 0 ? dial : NULL,
					  .dial_arg = late};
	struct path *path;

	mpio_path_config(config, &path_config);
	if (path_new_iscsi(late->loop, &path_config, &path) < 0 ||
	    mpio_add_path(late->mpio, path) < 0)
		die("no path");
}

static void set_up(struct late *late, const struct mpio_config *config, unsigned paths)
{
	struct err err;

	late->ready = late->lost = late->fenced = late->around = false;
	if (relay_new(1, &late->relay, &err) < 0 || relay_add_line(late->relay, &late->line) < 0)
		die("no relay");
	if (loop_new_real(&late->loop) < 0 ||
	    mpio_new(late->loop, config, "late", 1, &late->mpio) < 0)
		die("no device");
	mpio_on_track(late->mpio, on_track, late);
	for (unsigned i = 0; i < paths; i++)
		add_path(late, config, i);
	mpio_start(late->mpio, 10 * NS_PER_S, on_ready, late);
	wait_for(late, &late->ready, "not ready");
}

static int policy_index(const char *name)
{
	int index = 0;

	while (strcmp(mpio_policy_names[index], name) != 0)
		index++;
	return index;
}

/* The block's content in the end: 2 is right. */
static uint8_t run(struct late *late, int fence, unsigned paths)
{
	struct relay_fault hold = {.kind = RELAY_HOLD};
	struct mpio_config config = {
	    .policy = policy_index("failover-only"), /* path 0 first */
	    .no_path_ns = 20 * NS_PER_S,
	    .reconnect_min_ns = (paths > 1 ? 15000 : 100) * NS_PER_MS,
	    .reconnect_max_ns = 15 * NS_PER_S,
	    .io_timeout_ns = 5 * NS_PER_S,
	    .keepalive_ns = 100 * NS_PER_MS,
	    .keepalive_misses = 2,
	    .tcp_user_timeout_ns = 10 * NS_PER_S,
	    .login_timeout_ns = 5 * NS_PER_S,
	    .max_retries = 30,
	    .fence = fence,
	    .fence_unknown_group = true,
	};
	struct late_io older, newer;
	uint8_t found;

	set_up(late, &config, paths);
	relay_set(late->line, &hold, true);
	run_ms(late, 50); /* it is another thread */
	late->around = true;
	submit(late, &older, IO_WRITE, 1);
	wait_for(late, &late->lost, "the loss is not found");
	/* in flight together they would have no order, least of all in a target with threads */
	wait_for(late, &older.done, "the write is not re-issued");
	submit(late, &newer, IO_WRITE, 2);
	wait_for(late, &newer.done, "the newer write does not end");
	if (content(late) != 2)
		die("the newer write has gone");
	relay_set(late->line, &hold, false);
	run_ms(late, AFTERWARDS_MS);
	found = content(late);
	mpio_free(late->mpio);
	loop_free(late->loop);
	relay_free(late->relay);
	return found;
}

int main(int argc, char **argv)
{
	static const char *const words[] = {[1] = "the older", [2] = "the newer"};
	struct late late = {.portal = argc > 3 ? argv[1] : NULL};
	uint8_t found;

	if (argc != 4)
		die("usage: late_write PORTAL TARGET LUN");
	late.target = argv[2];
	late.lun = (unsigned)strtoul(argv[3], NULL, 10);

	found = run(&late, MPIO_FENCE_STRICT, 2);
	printf("another login: %s write is there\n", words[found]);
	if (found != 2 || !late.fenced || late.proof != MPIO_PROOF_OTHER_LOGIN)
		die("a late write after a login over another path");
	found = run(&late, MPIO_FENCE_STRICT, 1);
	printf("own login: %s write is there\n", words[found]);
	if (found != 2 || !late.fenced || late.proof != MPIO_PROOF_LOGIN)
		die("a late write after the path's own login");
	found = run(&late, MPIO_FENCE_NONE, 2);
	printf("no fence: %s write is there\n", words[found]);
	if (found != 1)
		die("without a fence the late write did not come: the test proves nothing");
	return 0;
}
