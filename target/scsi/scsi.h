/* SPDX-License-Identifier: MIT
 *
 * The SCSI device server (SPC-4, SBC-3): what a transport hands over and what it gets back.
 *
 * A `struct scsi_target` is what one iSCSI target name shows: a set of logical units, each on a
 * volume.  A `struct scsi_nexus` is one I_T nexus (an initiator port logged in to a target port);
 * unit attentions are kept per nexus and logical unit.
 *
 * Life of a command
 *   1. the transport fills cdb, lun, nexus, edtl and calls scsi_prepare.  It decodes and checks
 *      everything that can be checked without data.  Result:
 *        SCSI_NEEDS_DATA  a data-out command: fetch MIN(task->out_bytes, edtl) bytes, point
 *                         task->out_iov at them, then call scsi_execute;
 *        SCSI_READY       call scsi_execute;
 *        SCSI_ENDED       status and sense are already set (checks failed, a unit attention was
 *                         reported): answer, and drop data that comes.
 *   2. scsi_execute ends with task->done, possibly before it returns.
 *   3. the transport sends task->in_buf (task->in_bytes of it, cut to edtl) and status, then
 *      calls scsi_task_release.
 *
 * Abort: scsi_abort marks the task; its done still comes, with task->aborted set, once the
 * volume has let go of the buffers; no status is sent then.  A task that was prepared but not
 * yet executed is done within scsi_abort; it must not be executed any more.  Tasks that were
 * never accepted (SCSI_ENDED) or are done already are left alone: no further done comes.
 *
 * Threading: the loop's thread.  Ownership: tasks belong to the transport, which zeroes their
 * memory before the first use and keeps it as it is between uses; in_buf belongs to the task.
 */
#ifndef SANLAB_TARGET_SCSI_SCSI_H
#define SANLAB_TARGET_SCSI_SCSI_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/loop.h"
#include "target/array/array.h"

enum scsi_status {
	SCSI_GOOD = 0x00,
	SCSI_CHECK_CONDITION = 0x02,
	SCSI_BUSY = 0x08,
	SCSI_RESERVATION_CONFLICT = 0x18,
	SCSI_TASK_SET_FULL = 0x28,
	SCSI_TASK_ABORTED = 0x40,
};

/* Task attributes, numbered as iSCSI does (RFC 7143 11.3.1).  Untagged counts as simple. */
enum scsi_attribute {
	SCSI_UNTAGGED,
	SCSI_SIMPLE,
	SCSI_ORDERED,
	SCSI_HEAD_OF_QUEUE,
	SCSI_ACA, /* refused, as everything above: NormACA is 0 */
};

enum scsi_prepared { SCSI_ENDED, SCSI_READY, SCSI_NEEDS_DATA };

enum {
	SCSI_SENSE_BYTES = 18,	   /* fixed format */
	SCSI_SENSE_MAX_BYTES = 40, /* descriptor format with all descriptors we send */
	SCSI_MAX_CDB_BYTES = 32,
	SCSI_MAX_LUNS = 256,
};

struct scsi_target;
struct scsi_lu;
struct scsi_nexus;

/* Blocks of a logical unit that somebody is about to touch (range.c; private to target/scsi). */
struct scsi_range {
	struct scsi_lu *lu;
	uint64_t lba, blocks; /* blocks UINT64_MAX: all */
	bool atomic;	      /* nobody else's access may come in between */
	/* Called when a range that had to wait has its turn. */
	void (*ready)(struct scsi_range *range);
	uint8_t state; /* enum range_state; 0 while it is not in use */
	uint32_t waits;
	TAILQ_ENTRY(scsi_range) entry, queue_entry;
};

struct scsi_task {
	/* filled by the transport before scsi_prepare */
	struct scsi_nexus *nexus;
	uint8_t lun[8];
	uint8_t cdb[SCSI_MAX_CDB_BYTES];
	uint32_t edtl_bytes; /* expected data transfer length, RFC 7143 11.3.4 */
	uint8_t attribute;   /* enum scsi_attribute */
	void (*done)(struct scsi_task *task);
	void *owner;

	/* filled by scsi_prepare */
	uint32_t out_bytes; /* data-out the command wants */
	/* filled by the transport before scsi_execute when SCSI_NEEDS_DATA */
	const struct iovec *out_iov;
	unsigned out_iov_count;
	uint32_t out_got_bytes;

	/* results */
	uint8_t status;
	uint8_t sense[SCSI_SENSE_MAX_BYTES];
	uint8_t sense_bytes; /* 0: none */
	/* Data-in, NULL when none: its memory, or a struct io_lent in it when in_lent is set. */
	struct buf *in_buf;
	bool in_lent;
	uint32_t in_bytes; /* data-in the command has; may exceed edtl (overflow residual) */
	/* What the command transfers for the residual count: in_bytes or out_bytes. */
	uint32_t transfer_bytes;
	bool aborted;

	/* private to target/scsi */
	struct scsi_lu *lu;
	const struct scsi_command *command;
	uint64_t lba;
	uint32_t blocks;
	struct io io;
	struct iovec in_iov;
	TAILQ_ENTRY(scsi_task) entry; /* the logical unit's task set */
	bool in_task_set;
	uint8_t preempt_waiters; /* PREEMPT AND ABORTs that wait for its end, a bit each */
	uint8_t phase;		 /* enum task_phase */
	uint16_t lun_index;	 /* decoded LUN, valid when lu is set */
	uint32_t step;		 /* UNMAP: the next descriptor */
	uint8_t pump;		 /* UNMAP: whether its io is under way */
	uint64_t sequence;	 /* order of entry into the task set */
	struct buf *scratch;
	struct scsi_range range; /* what it touches while it executes */
};

/* One target name.  A volume can be a LUN of several targets, but shares one scsi_lu. */
struct scsi_device; /* all logical units of the group, shared by its targets */

struct scsi_device *scsi_device_new(struct loop *loop, struct buf_pool *pool);
struct scsi_device *scsi_device_free(struct scsi_device *device);
/* Adds the logical unit of VOLUME once; returns it (NULL: out of memory). */
struct scsi_lu *scsi_device_add(struct scsi_device *device, struct volume *volume);
/* Brings back, for all logical units, what outlives a target with a file store: persistent
 * reservations.  -EBADMSG: damaged. */
int scsi_device_restore(struct scsi_device *device, struct err *err);

struct scsi_target *scsi_target_new(struct scsi_device *device, const char *name);
struct scsi_target *scsi_target_free(struct scsi_target *target);
int scsi_target_add_lun(struct scsi_target *target, unsigned lun, struct scsi_lu *lu);
const char *scsi_target_name(const struct scsi_target *target);

/* A nexus begins with the POWER ON unit attention (29/00) pending, once per logical unit: what
 * initiators expect of an array (see nexus.c). */
struct scsi_nexus *scsi_nexus_new(struct scsi_target *target, const char *initiator_name,
				  const uint8_t isid[6], uint16_t target_port_group,
				  uint16_t relative_port);
/* The logical unit LUN of its target is not there for this nexus (access rules). */
void scsi_nexus_hide(struct scsi_nexus *nexus, unsigned lun);
/* Is there a logical unit at LUN for NEXUS? */
bool scsi_nexus_has(const struct scsi_nexus *nexus, const uint8_t lun[8]);
/* Ends the nexus: its tasks must have been aborted and done. */
struct scsi_nexus *scsi_nexus_free(struct scsi_nexus *nexus);

enum scsi_prepared scsi_prepare(struct scsi_task *task);
void scsi_execute(struct scsi_task *task);
/* Would scsi_execute leave it waiting for other tasks, because of somebody's task attribute? */
bool scsi_must_wait(const struct scsi_task *task);
void scsi_task_release(struct scsi_task *task);

void scsi_abort(struct scsi_task *task);
/* For a task that the transport has aborted because of a fault of its own: CHECK CONDITION, ABORTED
 * COMMAND with ASC and ASCQ, in the format its logical unit reports sense in.  After done. */
void scsi_task_fault(struct scsi_task *task, uint8_t asc, uint8_t ascq);
/* Task management beyond single tasks: resets every nexus' tasks of the LU (each task's done comes
 * with `aborted`), queues unit attention 29/03 for all of them.  FINISHED is called when
 * all affected tasks have ended, possibly before scsi_reset_lu returns.  Returns -ENXIO when the
 * LUN does not exist, -ENOMEM when nothing could be reset; FINISHED is not called then. */
int scsi_reset_lu(struct scsi_nexus *nexus, const uint8_t lun[8], loop_fn finished, void *arg);
/* The same as a part of a target reset, which nexuses are told by unit attention 29/02. */
int scsi_reset_target_lu(struct scsi_nexus *nexus, const uint8_t lun[8], loop_fn finished,
			 void *arg);
/* CLEAR TASK SET: aborts the tasks of all nexuses; those of them that lose any but NEXUS are told
 * by unit attention 2F/00.  Otherwise as scsi_reset_lu. */
int scsi_clear_task_set(struct scsi_nexus *nexus, const uint8_t lun[8], loop_fn finished,
			void *arg);

#endif
