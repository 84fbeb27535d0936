/* SPDX-License-Identifier: MIT
 *
 * A device over fake paths on the virtual loop, and ios that know what became of them.
 */
#ifndef SANLAB_TESTS_RIG_H
#define SANLAB_TESTS_RIG_H

#include "fake_path.h"
#include "initiator/mpio/mpio.h"

enum { RIG_PATHS_MAX = 8, RIG_BLOCKS = 4096, RIG_EVENTS_MAX = 512 };

/* States of target port groups, as REPORT TARGET PORT GROUPS has them. */
enum { AO = 0, ANO = 1, STANDBY = 2, GONE = 3, MOVING = 0xf };

struct rig {
	struct loop *loop;
	struct mpio *mpio;
	struct io_layer *layer;
	struct fake_disk disk;
	struct fake_path *fakes[RIG_PATHS_MAX];
	unsigned paths;
	int ready_calls, ready_status;
	char ready_why[256];
	struct mpio_event events[RIG_EVENTS_MAX];
	char event_whys[RIG_EVENTS_MAX][96];
	unsigned event_count;
};

struct rig_io {
	struct io io;
	struct iovec iov[2];
	uint8_t *data;
	unsigned done;
	uint64_t done_ns;
	struct rig *rig;
};

void rig_open(struct rig *rig, const struct mpio_config *config, unsigned paths, uint64_t seed);
void rig_start(struct rig *rig); /* until ready */
void rig_close(struct rig *rig);
void rig_run_for(struct rig *rig, uint64_t ns);

/* Two iovec entries, so that slices have something to cut. */
struct rig_io *rig_io_new(struct rig *rig, enum io_op op, uint64_t block, uint64_t blocks,
			  uint8_t fill);
void rig_io_free(struct rig_io *rio);
/* Submits, runs until done, frees; returns the status. */
int rig_do(struct rig *rig, enum io_op op, uint64_t block, uint64_t blocks, uint8_t fill);

const struct mpio_ledger *rig_ledger(struct rig *rig, unsigned path);
enum mpio_path_state rig_state(struct rig *rig, unsigned path);
/* The first such change of PATH's state, or NULL. */
const struct mpio_event *rig_find_event(const struct rig *rig, unsigned path,
					enum mpio_path_state from, enum mpio_path_state to);

/* Two groups of two paths each, in states A and B; started. */
void rig_open_groups(struct rig *rig, const struct mpio_config *config, uint8_t a, uint8_t b);
/* Zeroes the ledgers, then one I/O after the other, all with success. */
void rig_do_some(struct rig *rig, unsigned ios);
/* So many have gone to each group of two. */
void rig_expect_ios(struct rig *rig, unsigned a, unsigned b);

#endif
