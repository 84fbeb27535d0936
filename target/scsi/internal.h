/* SPDX-License-Identifier: MIT
 *
 * What the files of the device server share: its objects and the shape of a command.
 *
 * A family of commands is one file: functions, a table of struct scsi_command that ends with a
 * row without a name, and one line in commands.c.
 */
#ifndef SANLAB_TARGET_SCSI_INTERNAL_H
#define SANLAB_TARGET_SCSI_INTERNAL_H

#include "base/bytes.h"
#include "target/scsi/scsi.h"
#include "target/scsi/sense.h"

/* Advertised as MAXIMUM TRANSFER LENGTH in VPD b0 and enforced. */
#define SCSI_MAX_TRANSFER_BYTES (8 * MIB)
/* OPTIMAL TRANSFER LENGTH: the largest class buf_pool recycles. */
#define SCSI_OPTIMAL_TRANSFER_BYTES MIB
#define SCSI_PHYSICAL_BLOCK_BYTES   4096U
/* UNMAP frees whole pages of the pool, so limits count in pages; at most 2^20 blocks a
 * command, which iscsi-test-cu insists on. */
#define SCSI_UNMAP_GRANULE_BYTES POOL_PAGE_BYTES
#define SCSI_UNMAP_MAX_GRANULES	 34U

enum {
	SCSI_UNMAP_MAX_DESCRIPTORS = 256,
	SCSI_UA_MAX = 8,	  /* conditions waiting per nexus and logical unit */
	SCSI_LU_MAX_TASKS = 4096, /* beyond: TASK SET FULL */
	SCSI_NAME_BYTES = 224,	  /* iSCSI name with its NUL, RFC 7143 4.2.7.1 */
	SCSI_REPLY_BYTES = 8 + 8 * SCSI_MAX_LUNS, /* the longest parameter data: REPORT LUNS */
};

enum task_phase {
	TASK_IDLE,	/* not accepted, or done */
	TASK_PREPARED,	/* accepted by scsi_prepare, not yet executed */
	TASK_EXECUTING, /* done comes when the volume is through */
};

enum scsi_command_flag {
	SCSI_CMD_PAST_UA = 1 << 0, /* runs although a unit attention waits, and leaves it */
	SCSI_CMD_ANY_LUN = 1 << 1, /* also for a LUN that does not exist (task->lu is NULL) */
	SCSI_CMD_THIN = 1 << 2,	   /* only for thin volumes; invalid opcode on others */
};

struct scsi_command {
	uint8_t opcode;
	int16_t service_action; /* -1: the opcode has none */
	uint8_t cdb_bytes;
	unsigned flags;
	const char *name;
	/* CDB usage map (SPC-4 6.35.3): which bits are looked at; byte 0 is the opcode. */
	uint8_t usage[16];
	/* Decodes and checks; NULL: nothing to check without running the command. */
	enum scsi_prepared (*prepare)(struct scsi_task *task);
	/* Ends with scsi_task_end, now or later. */
	void (*execute)(struct scsi_task *task);
};

struct reset_wait; /* task.c */

struct scsi_lu {
	struct scsi_device *device;
	struct volume *volume;
	uint32_t block_bytes;
	TAILQ_HEAD(task_set, scsi_task) tasks; /* the task set, in order of arrival */
	unsigned task_count;
	uint64_t sequence; /* of the next task */
	TAILQ_HEAD(reset_list, reset_wait) resets;
	TAILQ_ENTRY(scsi_lu) entry;
};

struct ua_queue {
	uint8_t count;
	uint32_t code[SCSI_UA_MAX];
};

struct scsi_nexus {
	struct scsi_target *target;
	char initiator_name[SCSI_NAME_BYTES];
	uint8_t isid[6];
	uint16_t target_port_group, relative_port;
	unsigned task_count;
	struct ua_queue ua[SCSI_MAX_LUNS];
	TAILQ_ENTRY(scsi_nexus) entry;
};

struct scsi_target {
	struct scsi_device *device;
	char name[SCSI_NAME_BYTES];
	struct scsi_lu *luns[SCSI_MAX_LUNS];
	TAILQ_HEAD(nexus_list, scsi_nexus) nexuses;
	TAILQ_ENTRY(scsi_target) entry;
};

struct scsi_device {
	struct loop *loop;
	struct buf_pool *pool;
	const struct scsi_command *by_opcode[256]; /* the first row of the opcode */
	TAILQ_HEAD(lu_list, scsi_lu) lus;
	TAILQ_HEAD(target_list, scsi_target) targets;
};

/* commands.c */
void scsi_commands_index(struct scsi_device *device);
const struct scsi_command *scsi_commands_find(const struct scsi_device *device, const uint8_t *cdb);
extern const struct scsi_command scsi_basic_commands[];
extern const struct scsi_command scsi_capacity_commands[];
extern const struct scsi_command scsi_inquiry_commands[];
extern const struct scsi_command scsi_mode_commands[];
extern const struct scsi_command scsi_readwrite_commands[];
extern const struct scsi_command scsi_unmap_commands[];
extern const struct scsi_command scsi_verify_commands[];

/* device.c, target.c */
static inline uint64_t scsi_lu_blocks(const struct scsi_lu *lu)
{
	return volume_layer(lu->volume)->size_bytes / lu->block_bytes;
}
/* The logical unit number of LUN (peripheral or flat addressing); -1: another method. */
int scsi_lun_decode(const uint8_t lun[8]);
void scsi_lun_encode(unsigned index, uint8_t ret_lun[8]);

/* nexus.c: unit attentions */
void scsi_ua_add(struct scsi_nexus *nexus, unsigned lun, uint32_t code);
uint32_t scsi_ua_take(struct scsi_nexus *nexus,
		      unsigned lun);			    /* the oldest; SENSE_NONE: none waits */
void scsi_ua_drop(struct scsi_nexus *nexus, uint32_t code); /* on every logical unit */
/* On every nexus that sees LU but EXCEPT (may be NULL). */
void scsi_ua_broadcast(struct scsi_lu *lu, const struct scsi_nexus *except, uint32_t code);

/* task.c */
void scsi_task_end(struct scsi_task *task); /* status and results are set */
/* Ends with parameter data: DATA cut to the allocation length. */
void scsi_task_reply(struct scsi_task *task, const void *data, uint32_t data_bytes,
		     uint32_t allocation_bytes);
static inline void scsi_task_fail(struct scsi_task *task, uint32_t code)
{
	scsi_sense_fail(task, code);
	scsi_task_end(task);
}
/* Submits task->io to the volume; FINISH is its done. */
void scsi_task_submit(struct scsi_task *task, enum io_op op, uint64_t offset_bytes,
		      uint64_t length_bytes, void (*finish)(struct io *io));
/* The usual FINISH: status from the io, end. */
void scsi_task_io_done(struct io *io);

/* readwrite.c: the LBA and length of READ, WRITE, VERIFY, SYNCHRONIZE CACHE of any CDB size */
void scsi_rw_decode(const uint8_t *cdb, uint64_t *ret_lba, uint32_t *ret_blocks);
/* Decodes into the task and checks protection bits, transfer limit and range. */
bool scsi_rw_check(struct scsi_task *task);

/* vpd.c */
void scsi_vpd_execute(struct scsi_task *task, uint8_t page, uint32_t allocation_bytes);

#endif
