/* SPDX-License-Identifier: MIT
 *
 * A set that only pretends, below the background work of a member: units take their time, and what
 * is done to which slot is counted.
 */
#ifndef TESTS_UNIT_ARRAY_SWEEP_FAKE_H
#define TESTS_UNIT_ARRAY_SWEEP_FAKE_H

#include "base/bytes.h"
#include "target/array/member.h"

enum { DRIVES = 12, UNITS = 100, PENDING = 64, DRIVE_BYTES = 10 << 20 };
#define DELAY_NS (2 * NS_PER_S)
#define UNIT_NS	 (10 * NS_PER_MS)

struct pending {
	struct loop_timer timer;
	struct raid_unit *unit;
	struct fake *fake;
};

/* One set at a time: two groups of four slots, two of each may be out. */
struct fake {
	struct io_layer set;
	struct loop *loop;
	struct member member;
	struct drive *drives[DRIVES];
	struct pending pending[PENDING];
	unsigned in_flight, most_in_flight, verified, rebuilt[DRIVES];
	unsigned order[UNITS * 8], order_count; /* slots of the rebuild units, as begun */
	struct drive *in_slot[8];
	uint64_t good, assigned, fresh;
	int unit_status[UNITS];
	int busy;		       /* so many units find no memory */
	unsigned repaired_at, lost_at; /* units that VERIFY repairs or cannot, UNITS: none */
	uint64_t used_from;
	unsigned dirty; /* units 0, 1, ... below it are dirty */
};

struct knobs_of_test {
	unsigned drives, distributed;
	uint64_t rate, scrub_every_ns, stale_mask;
};

void fake_open(struct fake *fake, struct knobs_of_test knobs);
void fake_close(struct fake *fake);
void run_for(struct fake *fake, uint64_t ns);
void expect_state(struct fake *fake, enum member_state state);
void expect_drive(struct fake *fake, unsigned drive, enum member_drive_state state);
uint64_t rebuilds(struct fake *fake);

#endif
