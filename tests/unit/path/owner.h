/* SPDX-License-Identifier: MIT
 *
 * What owns a path in these tests: counts events and completions, and waits for them.
 */
#ifndef SANLAB_TESTS_OWNER_H
#define SANLAB_TESTS_OWNER_H

#include "base/loop.h"
#include "initiator/path/path.h"

struct owner {
	struct loop *loop;
	struct path *path;
	unsigned ups, downs;
	char why[256];
	unsigned done, ok, lost, not_sent, other;
	bool completed_before_down; /* no completion may come after DOWN */
	bool disconnect_in_done, free_in_done;
};

struct owner_io {
	struct path_io pio;
	struct iovec iov;
	struct owner *owner;
	unsigned ends;
};

struct raw_command {
	struct path_command command;
	struct owner *owner;
	unsigned ends;
};

struct path_config owner_config(struct owner *owner, const char *portal);
int owner_open(struct owner *owner, struct loop *loop, const struct path_config *config);
void owner_submit(struct owner *owner, struct owner_io *oio, enum io_op op, uint64_t lba,
		  uint32_t blocks, void *data);
void owner_submit_iov(struct owner *owner, struct owner_io *oio, enum io_op op, uint64_t lba,
		      uint32_t blocks, const struct iovec *iov, unsigned iov_count);
/* The command is filled in but for its end. */
void raw_submit(struct owner *owner, struct raw_command *raw);
/* Turns the loop until *COUNT reaches WANT; false after SECONDS. */
bool owner_wait(struct owner *owner, const unsigned *count, unsigned want, unsigned seconds);

#endif
