/* SPDX-License-Identifier: MIT
 *
 * Two simulated paths to one logical unit on the virtual loop, and transfers that know what became
 * of them.
 */
#ifndef SANLAB_TESTS_SIM_LAB_H
#define SANLAB_TESTS_SIM_LAB_H

#include "harness/sim/sim.h"
#include "target/iscsi/server.h"
#include "tests/unit/scsi/fake_volume.h"

#define DELAY_NS     NS_PER_MS
#define UP_NS	     (UP_TRIPS * 2 * DELAY_NS)
#define VOLUME_BYTES (4 * MIB)

/* Connection, login, eight commands, one unit attention. */
enum { PATHS = 2, BLOCK = 512, UP_TRIPS = 11 };

struct lab;

struct side {
	struct lab *lab;
	struct sim_link *link;
	struct path *path;
	unsigned ups, downs;
	uint64_t event_ns;
	char why[160];
	bool disconnect_on_up, free_on_done;
};

struct lab {
	struct loop *loop;
	struct buf_pool *pool;
	struct volume volume;
	struct scsi_device *device;
	struct scsi_target *target;
	struct iscsi_server *server;
	struct side sides[PATHS];
	unsigned ended; /* path_ios, in all */
	char trace[16384];
	size_t traced;
};

struct transfer {
	struct path_io pio;
	struct iovec iov[2];
	uint8_t *data;
	struct side *side;
	unsigned index, done_count, order;
	uint64_t done_ns;
};

extern const struct sim_link_config lab_plain_link; /* DELAY_NS each way, nothing else */

/* TIMEOUTS: what the paths are configured with, NULL: all defaults. */
void lab_init(struct lab *lab, const struct sim_link_config *link,
	      const struct path_config *timeouts);
void lab_done(struct lab *lab);
void lab_run_for(struct lab *lab, uint64_t ns);
void lab_connect_all(struct lab *lab); /* until all paths are up */

/* The data of a transfer are BLOCKS times FILL, in two iovec entries. */
void transfer_start(struct transfer *transfer, struct side *side, enum io_op op, uint64_t lba,
		    uint32_t blocks, uint8_t fill);
/* It must have ended, once. */
void transfer_finish(struct transfer *transfer);

#endif
