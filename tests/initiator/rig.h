/* SPDX-License-Identifier: MIT
 *
 * What the tests of prior bugs share: an iSCSI path, or MPIO over several, against scripted
 * targets on one loop.
 */
#ifndef SANLAB_TESTS_INITIATOR_RIG_H
#define SANLAB_TESTS_INITIATOR_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "initiator/mpio/mpio.h"
#include "tests/unit/path/owner.h"
#include "tests/unit/path/peer.h"

enum { RIG_PEERS = 2, RIG_WAIT_S = 10 };

/* One path. */
struct rig {
	struct loop *loop;
	struct peer peer;
	struct owner owner;
	struct path_config config;
};

void rig_open(struct rig *rig); /* target and configuration; change it before rig_up */
void rig_make_path(struct rig *rig);
void rig_connect(struct rig *rig);
void rig_up(struct rig *rig);
void rig_close(struct rig *rig);
void rig_expect_down(struct rig *rig, unsigned downs, const char *why);
void rig_expect(struct rig *rig, const unsigned *count, unsigned want);

/* A device over a path to each of COUNT peers, which have one disk. */
struct device_rig {
	struct loop *loop;
	struct peer peers[RIG_PEERS];
	unsigned count;
	struct mpio_config config;
	struct mpio *mpio;
	unsigned ready, ups, downs, done;
	int ready_status;
	void *arg; /* of the peers' scripts, whose own argument is this rig */
};

struct device_io {
	struct io io;
	struct iovec iov;
	struct device_rig *rig;
	unsigned ends;
	void (*then)(struct device_io *dio); /* called when it has ended */
};

void device_open(struct device_rig *rig, unsigned count);
void device_start(struct device_rig *rig);
void device_submit(struct device_rig *rig, struct device_io *dio, enum io_op op,
		   uint64_t offset_bytes, uint64_t length_bytes, void *data);
void device_expect(struct device_rig *rig, const unsigned *count, unsigned want);
void device_run_ms(struct device_rig *rig, unsigned milliseconds);
void device_close(struct device_rig *rig);

/* Is it a READ or WRITE that came? */
bool rig_is_write(const struct peer_pdu *pdu);
bool rig_is_read(const struct peer_pdu *pdu);
uint64_t rig_lba(const struct peer_pdu *pdu);
void rig_fill(uint8_t *data, size_t size, unsigned seed);

#endif
