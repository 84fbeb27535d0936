/* SPDX-License-Identifier: MIT
 *
 * The open loop from inside: paced.c (arrivals, I/Os, verification), paced_open.c (setting up).
 */
#ifndef SANLAB_HARNESS_WORKLOAD_PACED_IMPL_H
#define SANLAB_HARNESS_WORKLOAD_PACED_IMPL_H

#include "base/bytes.h"
#include "base/rng.h"
#include "harness/workload/paced.h"
#include "harness/workload/page.h"
#include "harness/workload/page_set.h"
#include "harness/workload/raw_mix.h"
#include "harness/workload/raw_sweep.h"

struct paced_io {
	struct io io;
	struct iovec iov;
	struct paced_device *device;
	struct stream *stream; /* NULL: read-back */
	uint64_t intended_ns, submitted_ns;
	uint64_t page, count;  /* units of the mix */
	struct paced_io *next; /* free list */
};

struct paced_device {
	struct paced *paced;
	const struct workload_device *device;
	struct page_area area;
	struct page_set set;
	struct stream *streams[2]; /* reads, writes; NULL: there are none */
	struct rng place, mix;
	struct raw_place at;
	/* arrivals */
	struct loop_timer timer;
	uint64_t start_ns, arrivals;
	bool write, pumping; /* the kind of the next one */
	uint64_t next_bytes; /* and its size */
	struct paced_io *free_ios;
	uint64_t in_flight;
	/* read-back */
	uint64_t next_page;
	bool reading_back, gone;
};

struct paced {
	struct workload base;
	struct workload_env env;
	struct raw_config config;
	struct raw_mix mix;
	struct raw_sweep sweep;
	uint64_t unit_bytes;
	bool verified;
	double gap_ns; /* between two arrivals */
	struct paced_device *devices;
	struct paced_io *ios;
	uint8_t *memory;
	uint64_t in_flight, read_back_active;
	bool running, stopping;
	char summary[260];
	workload_fn drained, read_back_done;
	void *drained_arg, *read_back_arg;
};

/* ---- paced.c ---- */
extern const struct workload_ops paced_ops;
void paced_io_ended(struct io *io);
void paced_arrival_due(void *arg); /* the device */
/* What the next arrival is. */
void paced_draw(struct paced_device *device);
/* Of a sweep; ARG: the struct paced. */
void paced_stepped(void *arg, double level);
uint64_t paced_late(void *arg);
void paced_sweep_ended(void *arg);

#endif
