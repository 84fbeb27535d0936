/* SPDX-License-Identifier: MIT
 *
 * The owner of the path under test.
 */
#include "owner.h"

#include <stdio.h>

#include "base/bytes.h"

static void on_event(void *arg, struct path *path, enum path_event event, const char *why)
{
	struct owner *owner = arg;

	if (event == PATH_EVENT_UP) {
		owner->ups++;
		return;
	}
	owner->downs++;
	owner->completed_before_down = path->in_flight == 0;
	snprintf(owner->why, sizeof owner->why, "%s", why);
}

struct path_config owner_config(struct owner *owner, const char *portal)
{
	return (struct path_config){
	    .portal = portal,
	    .target = "iqn.2026-11.test.sanlab:peer",
	    .isid_qualifier = 0x12345678,
	    .event = on_event,
	    .arg = owner,
	};
}

int owner_open(struct owner *owner, struct loop *loop, const struct path_config *config)
{
	*owner = (struct owner){.loop = loop};
	return path_new_iscsi(loop, config, &owner->path);
}

static void on_done(struct path_io *pio)
{
	struct owner_io *oio = pio->owner;
	struct owner *owner = oio->owner;

	oio->ends++;
	owner->done++;
	if (pio->result == PATH_OK)
		owner->ok++;
	else if (pio->result == PATH_LOST)
		owner->lost++;
	else if (pio->result == PATH_NOT_SENT)
		owner->not_sent++;
	else
		owner->other++;
	if (owner->disconnect_in_done) {
		owner->disconnect_in_done = false;
		path_disconnect(owner->path);
	}
	if (owner->free_in_done) {
		owner->free_in_done = false;
		owner->path = path_free(owner->path);
	}
}

void owner_submit_iov(struct owner *owner, struct owner_io *oio, enum io_op op, uint64_t lba,
		      uint32_t blocks, const struct iovec *iov, unsigned iov_count)
{
	unsigned flags = oio->pio.flags;
	unsigned before = owner->done;

	oio->owner = owner;
	oio->ends = 0;
	oio->pio = (struct path_io){
	    .op = op,
	    .flags = flags,
	    .lba = lba,
	    .blocks = blocks,
	    .iov = iov,
	    .iov_count = iov_count,
	    .done = on_done,
	    .owner = oio,
	};
	path_submit(owner->path, &oio->pio);
	if (owner->done != before)
		owner->done = 1000000; /* from within submit: no count will match */
}

void owner_submit(struct owner *owner, struct owner_io *oio, enum io_op op, uint64_t lba,
		  uint32_t blocks, void *data)
{
	bool moves = op == IO_READ || op == IO_WRITE;

	oio->iov = (struct iovec){data, (size_t)blocks * owner->path->identity.block_bytes};
	owner_submit_iov(owner, oio, op, lba, blocks, moves ? &oio->iov : NULL, moves);
}

static void on_raw(struct path_command *command)
{
	struct raw_command *raw = command->owner;

	raw->ends++;
}

void raw_submit(struct owner *owner, struct raw_command *raw)
{
	raw->owner = owner;
	raw->ends = 0;
	raw->command.done = on_raw;
	raw->command.owner = raw;
	path_command(owner->path, &raw->command);
	if (raw->ends)
		raw->ends = 1000000; /* from within */
}

bool owner_wait(struct owner *owner, const unsigned *count, unsigned want, unsigned seconds)
{
	uint64_t deadline = loop_now_ns(owner->loop) + seconds * NS_PER_S;

	while (*count < want && loop_now_ns(owner->loop) < deadline) {
		uint64_t step = loop_now_ns(owner->loop) + NS_PER_MS;

		if (loop_run_until(owner->loop, MIN_OF(step, deadline)) < 0)
			return false;
	}
	return *count == want;
}
