/* SPDX-License-Identifier: MIT
 *
 * A whole system of one seed: hosts with MPIO devices, links, and a target over an array with its
 * drives, on a virtual loop.  All of it is the production code; only TCP and the initiator's PDUs
 * are the simulation's.
 */
#ifndef SANLAB_TESTS_SIM_SYSTEM_WORLD_H
#define SANLAB_TESTS_SIM_SYSTEM_WORLD_H

#include "harness/lab/lab.h"
#include "harness/sim/sim.h"
#include "initiator/mpio/host_load.h"
#include "target/target.h"
#include "tests/sim/array/shadow.h"
#include "tests/sim/system/wrap.h"

enum {
	WORLD_HOSTS = 2,
	WORLD_PORTALS = 4,
	WORLD_LINKS = WORLD_HOSTS * WORLD_PORTALS + 1, /* ... and another initiator's */
	WORLD_VOLUMES = 3,
	WORLD_DEVICES = 4,
	WORLD_MEMBERS = 2,
	WORLD_SHARED_BYTES = 1 << 20, /* where the second device of a volume begins */
	DEVICE_SECTORS = 512,	      /* of a volume are used by one device */
	DEVICE_FLIGHTS = 12,
	FLIGHT_SECTORS = 96,
	FLIGHT_RIVALS = 24,
};

struct world;

/* From a host to a portal, for all devices of the host. */
struct net_link {
	struct sim_link *link;
	unsigned host, portal;
	bool impostor;	 /* leads to a target whose logical units are mixed up */
	uint64_t led_ns; /* since then */
};

/* A change of the same blocks that was under way at the same time. */
struct rival {
	uint64_t number, sector, count;
	uint32_t id;
	bool failed;
};

struct flight {
	struct io io;
	struct iovec iov;
	struct device *device;
	uint64_t sector, count;
	uint32_t id;
	uint64_t number;
	bool busy;
	struct rival rivals[FLIGHT_RIVALS];
	unsigned rival_count;
	uint8_t *data;
};

struct device {
	struct world *world;
	unsigned index, host, volume;
	uint64_t first_byte; /* of the volume */
	struct mpio *mpio;
	struct mpio_config config;
	struct net_link *links[WORLD_PORTALS]; /* by path */
	struct wrap wraps[WORLD_PORTALS];
	unsigned path_count;
	int ready;     /* 1: not yet */
	bool overlaps; /* its changes may overlap each other */
	struct shadow shadow;
	struct flight flights[DEVICE_FLIGHTS];
	unsigned busy;
	struct loop_timer next; /* request */
};

struct impostor {
	struct iscsi_server *server;
	struct scsi_target *targets[WORLD_VOLUMES];
};

struct world {
	uint64_t seed;
	struct rng rng;
	enum wrap_mutant mutant;
	char dir[128]; /* of the file stores, "": drives in memory */
	struct lab *lab;
	struct loop *loop;
	struct target *target; /* NULL while it is down */
	struct impostor impostor;
	struct host_load *loads[WORLD_HOSTS];
	uint64_t life_ns; /* of what a network holds back; 0: without end */
	struct net_link links[WORLD_LINKS];
	unsigned link_count, portal_count;
	struct device devices[WORLD_DEVICES];
	unsigned device_count;
	uint32_t next_id;
	bool load; /* requests are made */
	bool calm; /* faults are over, and what they have done: errors count */
	struct wrap_trouble trouble;
	uint64_t requests, errors, losses, crashes;
	uint64_t hash; /* of all that has happened and when: equal seeds, equal hashes */
	bool trace;
	char fault[400]; /* what went wrong, "": nothing so far */
};

bool world_make(struct world *world, uint64_t seed, enum wrap_mutant mutant, const char *parent);
void world_remove(struct world *world);
bool world_connect(struct world *world);
/* The target goes and comes back, with what its stores hold.  It goes by itself, and is taken
 * down in world_pass, when crash.h has been armed. */
void world_stop_target(struct world *world);
bool world_start_target(struct world *world);
bool world_add_link(struct world *world, unsigned host, unsigned portal);
/* Who answers at a link from now on. */
void world_lead(struct world *world, struct net_link *at, bool impostor);
uint64_t world_pick(struct world *world, uint64_t least, uint64_t most);
void world_pass(struct world *world, uint64_t ns);
void world_note(struct world *world, uint64_t what);
void world_fault(struct world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void world_trace(struct world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* shape.c: what the seed makes of it */
bool world_shape(struct world *world);
void device_shape(struct device *device, const struct mpio_config *preset);

/* load.c */
bool load_init(struct device *device);
void load_done(struct device *device);
void load_start(struct device *device);
/* Until nothing is under way; false: not within LIMIT_NS. */
bool load_wait(struct world *world, uint64_t limit_ns);
/* Reads all there is. */
bool load_verify(struct device *device);

#endif
