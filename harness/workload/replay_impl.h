/* SPDX-License-Identifier: MIT
 *
 * The replay from inside: replay.c (life, what comes next), replay_io.c (one I/O), replay_map.c
 * (where to), replay_pace.c (when), replay_verify.c (read-back), replay_describe.c (what is said).
 */
#ifndef SANLAB_HARNESS_WORKLOAD_REPLAY_IMPL_H
#define SANLAB_HARNESS_WORKLOAD_REPLAY_IMPL_H

#include "base/buf.h"
#include "harness/trace/trace.h"
#include "harness/workload/replay.h"
#include "harness/workload/replay_sectors.h"

enum { REPLAY_PATH_MAX = 4096, REPLAY_VOLUMES_MAX = 256, REPLAY_DEPTH_MAX = 4096 };

struct replay;
struct replay_device;

struct replay_io {
	struct io io;
	struct iovec iov;
	struct replay_device *device;
	struct stream *stream; /* NULL: read-back */
	struct buf *buf;       /* NULL: the shared memory of what is not verified, or no data */
	uint64_t intended_ns, submitted_ns;
	uint64_t first_sector, sectors;
	uint32_t generation;
	bool mixed;    /* something else was on its way to these sectors */
	unsigned slot; /* in device->active */
	unsigned open; /* in pace.open; UINT_MAX: nowhere */
	struct replay_io *next;
};

/* One volume of the lab. */
struct replay_device {
	struct replay *replay;
	const struct workload_device *device;
	struct sector_area area;
	struct sector_map map;
	uint32_t writes; /* generations given */
	struct stream *streams[TRACE_CLASSES][TRACE_OPS];
	struct replay_io **active; /* in flight */
	unsigned active_count;
	/* read-back */
	uint64_t next_sector;
	bool gone; /* -ENODEV: nothing more can be read */
};

/* Where one device of the trace goes: a region of one or several volumes. */
struct replay_region {
	bool known;			     /* looked up already */
	uint16_t device[REPLAY_VOLUMES_MAX]; /* of the lab */
	unsigned device_count;
	uint64_t offset_bytes, each_bytes, stripe_bytes, size_bytes;
	uint32_t block_bytes;
	uint64_t ios, bytes;
};

/* What is left to send of one record. */
struct replay_parts {
	const struct replay_region *region;
	struct trace_record record;
	uint64_t at, left;  /* in the region; bytes */
	unsigned flush;	    /* the next volume to be flushed */
	bool first, active; /* nothing of it has been sent; there is something to send */
};
struct replay_part {
	unsigned device;
	uint64_t offset_bytes, length_bytes;
};

/* An I/O of the trace that the dependency mode has not done with. */
struct replay_open {
	uint64_t trace_end_ns, end_ns;
	bool used, ended;
};

struct replay_pace {
	uint64_t start_ns;	    /* of the replay */
	uint64_t base_ns, shift_ns; /* trace's first instant; what passes before have added */
	uint64_t last_ns,
	    last_due_ns; /* of the record before, on the replay's axis; when it was due */
	/* dependency */
	struct replay_open *open;
	unsigned open_size;
	uint64_t cause_trace_ns, cause_ns; /* the last end waited for so far: trace, replay */
	bool has_cause;
};

struct replay {
	struct workload base;
	struct workload_env env;
	struct replay_config config;
	char **files;
	struct trace_options options;
	struct trace_set *trace;
	struct replay_device *devices;
	struct replay_region *regions;	/* of the trace's devices */
	unsigned *spread, spread_count; /* without a map: a device's turn, from 1 */
	struct replay_io *ios, *free_ios;
	struct buf_pool *pool;
	uint8_t *shared; /* not verified: one half is written, the other read into */
	unsigned depth;
	uint64_t in_flight;

	struct replay_pace pace;
	struct replay_parts parts;
	uint64_t due_ns;
	bool has_due;
	struct loop_timer timer, heartbeat;
	uint64_t steps; /* signs of life, for progress */
	bool running, stopping, pumping, exhausted, ended, waited;

	/* told at the end */
	uint64_t passes, pass_records, pass_used, sent, unmapped, beyond, no_trims, wrapped,
	    rounded, part_ios;
	uint64_t reads_checked, reads_unchecked, late;
	struct hist lateness;

	workload_fn drained, verified;
	void *drained_arg, *verified_arg;
	bool reading;
	char summary[300];
};

/* replay_config.c */
extern const struct cfg_schema replay_schema;
void replay_configure(struct cfg *cfg, void *config);
/* The INDEX-th trace as it can be opened. */
void replay_trace_path(const struct replay_config *config, size_t index, char *out, size_t size);
void replay_trace_options(const struct replay_config *config, const char *const *files,
			  struct trace_options *ret_options);

/* replay_map.c */
int replay_check_names(const void *config, const char *const *names, size_t count, struct err *err);
/* Checks the map against the volumes there are. */
int replay_map_check(const struct replay *replay, struct err *err);
/* The region of the trace's DEVICE for I/O of CLASS; NULL: it has none. */
struct replay_region *replay_region_of(struct replay *replay, unsigned device, unsigned class);
/* Sets up replay->parts for RECORD.  1: there is something to send; 0: it is left out; -ERANGE. */
int replay_parts_begin(struct replay *replay, struct replay_region *region,
		       const struct trace_record *record);
/* What is to be sent next; replay_parts_sent goes on to the one after it. */
void replay_parts_next(const struct replay *replay, struct replay_part *ret_part);
void replay_parts_sent(struct replay *replay, const struct replay_part *part);

/* replay_pace.c */
int replay_pace_init(struct replay *replay);
void replay_pace_done(struct replay *replay);
/* When RECORD is due; false: not before another I/O has ended. */
bool replay_pace_due(struct replay *replay, const struct trace_record *record,
		     uint64_t *ret_due_ns);
void replay_pace_sent(struct replay *replay, struct replay_io *rio,
		      const struct trace_record *record);
void replay_pace_ended(struct replay *replay, struct replay_io *rio);
/* The trace begins again. */
void replay_pace_again(struct replay *replay);

/* replay_io.c */
int replay_io_init(struct replay *replay, struct err *err);
void replay_io_done(struct replay *replay);
/* False: too much is in flight; try again when something has ended. */
bool replay_send(struct replay *replay, const struct replay_part *part,
		 const struct trace_record *record, uint64_t intended_ns);
bool replay_read_back(struct replay_device *device, uint64_t first_sector, uint64_t sectors);

/* replay.c: an I/O has ended. */
void replay_pump(struct replay *replay);
void replay_tell_drained(struct replay *replay);

/* replay_verify.c */
void replay_verify(struct workload *workload, workload_fn done, void *arg);
void replay_verify_go_on(struct replay *replay);

/* replay_describe.c */
json_t *replay_describe(struct workload *workload);

#endif
