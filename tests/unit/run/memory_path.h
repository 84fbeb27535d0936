/* SPDX-License-Identifier: MIT
 *
 * A path for engine tests: a disk in memory behind a delay, which can be cut or go silent.
 */
#ifndef SANLAB_TESTS_UNIT_RUN_MEMORY_PATH_H
#define SANLAB_TESTS_UNIT_RUN_MEMORY_PATH_H

#include "initiator/path/path.h"

/* Shared by all paths to one volume. */
struct memory_disk {
	uint8_t *memory;
	uint64_t size_bytes;
	uint64_t delay_ns;
	uint8_t id; /* its identity */
};

struct memory_path {
	struct path base;
	struct memory_disk *disk;
	struct path_io *pending; /* by ->next, oldest first */
	struct path_io **pending_end;
	struct loop_timer io_timer, connect_timer;
	bool cut;    /* logins fail */
	bool silent; /* nothing is answered any more */
	char portal[64];
};

int memory_path_new(struct loop *loop, const struct path_config *config, struct memory_disk *disk,
		    struct memory_path **ret_path);
/* True: the connection is lost now and cannot come back until it is mended. */
void memory_path_cut(struct memory_path *path, bool cut);

#endif
