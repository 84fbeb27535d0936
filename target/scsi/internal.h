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
#include "target/scsi/alua.h"
#include "target/scsi/reservation.h"
#include "target/scsi/scsi.h"
#include "target/scsi/sense.h"

/* Advertised as MAXIMUM TRANSFER LENGTH in VPD b0 and enforced.  No less than the OPTIMAL UNMAP
 * GRANULARITY: QEMU aborts when it cannot write zeros to a whole granule at once. */
#define SCSI_MAX_TRANSFER_BYTES (16 * MIB)
/* OPTIMAL TRANSFER LENGTH: the largest class buf_pool recycles. */
#define SCSI_OPTIMAL_TRANSFER_BYTES MIB
/* UNMAP frees whole pages of the pool, so limits count in pages; at most 2^20 blocks a
 * command, which iscsi-test-cu insists on. */
#define SCSI_UNMAP_GRANULE_BYTES POOL_PAGE_BYTES
#define SCSI_UNMAP_MAX_GRANULES	 34U

/* MAXIMUM WRITE SAME LENGTH in VPD b0, in bytes: whole pages for UNMAP, and fewer than 65536
 * blocks, beyond which iscsi-test-cu writes more at once than MAXIMUM TRANSFER LENGTH allows. */
#define SCSI_WRITE_SAME_MAX_BYTES (2 * POOL_PAGE_BYTES)
#define SCSI_ATOMIC_MAX_BYTES	  MIB /* MAXIMUM ATOMIC TRANSFER LENGTH in VPD b0 */

enum {
	SCSI_COMPARE_WRITE_MAX_BLOCKS = 128, /* MAXIMUM COMPARE AND WRITE LENGTH in VPD b0 */
	SCSI_UNMAP_MAX_DESCRIPTORS = 256,
	SCSI_UA_MAX = 8,	  /* conditions waiting per nexus and logical unit */
	SCSI_LU_MAX_TASKS = 4096, /* beyond: TASK SET FULL */
	SCSI_NAME_BYTES = 224,	  /* iSCSI name with its NUL, RFC 7143 4.2.7.1 */
	SCSI_REPLY_BYTES = 8 + 8 * SCSI_MAX_LUNS, /* the longest parameter data: REPORT LUNS */
};

enum task_phase {
	TASK_IDLE,	/* not accepted, or done */
	TASK_PREPARED,	/* accepted by scsi_prepare, not yet executed */
	TASK_DORMANT,	/* executed by the transport, waits for other tasks (ordering.c) */
	TASK_EXECUTING, /* done comes when the volume is through */
};

enum scsi_command_flag {
	SCSI_CMD_PAST_UA = 1 << 0,   /* runs although a unit attention waits, and leaves it */
	SCSI_CMD_ANY_LUN = 1 << 1,   /* also for a LUN that does not exist (task->lu is NULL) */
	SCSI_CMD_THIN = 1 << 2,	     /* only for thin volumes; invalid opcode on others */
	SCSI_CMD_REMOVABLE = 1 << 3, /* only for removable volumes; invalid opcode on others */
	/* medium.c */
	SCSI_CMD_MEDIUM = 1 << 4,    /* needs a medium that is present and started */
	SCSI_CMD_WRITES = 1 << 5,    /* changes the medium: not while it is write-protected */
	SCSI_CMD_PAST_WIPE = 1 << 6, /* runs while the medium is being sanitized or formatted */
	/* range.c: what the command touches, valid from the end of prepare */
	SCSI_CMD_RANGE = 1 << 7,    /* task->blocks blocks from task->lba on */
	SCSI_CMD_WHOLE_LU = 1 << 8, /* all blocks */
	SCSI_CMD_ATOMIC = 1 << 9,   /* no other command's access to them comes in between */
};

struct scsi_command {
	uint8_t opcode;
	int16_t service_action; /* -1: the opcode has none */
	uint8_t cdb_bytes;
	unsigned flags;
	uint8_t access; /* enum scsi_access: what reservations it conflicts with */
	const char *name;
	/* CDB usage map (SPC-4 6.35.3): which bits are looked at; byte 0 is the opcode. */
	uint8_t usage[16];
	/* Decodes and checks; NULL: nothing to check without running the command. */
	enum scsi_prepared (*prepare)(struct scsi_task *task);
	/* Ends with scsi_task_end, now or later. */
	void (*execute)(struct scsi_task *task);
	/* The executing task has just been aborted.  Only for commands that wait for something
	 * other than their own io and can end at once. */
	void (*abort)(struct scsi_task *task);
};

struct reset_wait; /* task.c */

/* Current values of the mode parameters that can be changed (mode.c); one set for all nexuses. */
struct mode_values {
	bool write_cache;	     /* WCE; without it every write is stable before its status */
	bool descriptor_sense;	     /* D_SENSE */
	bool software_write_protect; /* SWP */
};

/* What keeps commands from the medium (medium.c). */
enum lu_condition {
	LU_READ_ONLY = 1 << 0, /* the volume is; software write protection is a mode parameter */
	LU_STOPPED = 1 << 1,
	LU_EJECTED = 1 << 2,
	LU_SANITIZING = 1 << 3,
	LU_SANITIZE_FAILED = 1 << 4,
	LU_SANITIZE_RESTRICTED = 1 << 5, /* ... and only another SANITIZE helps */
	LU_FORMATTING = 1 << 6,
	LU_FORMAT_FAILED = 1 << 7,
};

struct wipe; /* wipe.c */

struct scsi_lu {
	struct scsi_device *device;
	struct volume *volume;
	uint32_t block_bytes;
	struct mode_values mode;
	struct alua_lu alua;
	bool reserved; /* some reservation is held: ask scsi_reservation_conflicts */
	struct scsi_reservations reservations;
	uint64_t slice_changes; /* of the volume, as told by referrals.c */
	bool threshold_reached; /* thin_threshold.c: told, and use has not fallen since */
	TAILQ_HEAD(task_set, scsi_task) tasks; /* the task set, in order of arrival */
	unsigned task_count;
	uint64_t sequence; /* of the next task */
	/* ordering.c */
	unsigned barrier_count; /* tasks of the set that are not simple */
	unsigned dormant_count;
	bool order_running;
	TAILQ_HEAD(reset_list, reset_wait) resets;
	unsigned conditions; /* enum lu_condition */
	struct wipe *wipe;   /* NULL before the first */
	/* range.c */
	unsigned atomic_count; /* atomic ranges, held or waited for */
	bool range_running;
	TAILQ_HEAD(range_list, scsi_range) ranges; /* in the order in which they were asked for */
	TAILQ_HEAD(range_queue, scsi_range) range_ready;
	TAILQ_ENTRY(scsi_lu) entry;
};

/* There is one for each LUN of each nexus: it had better be small. */
struct ua_queue {
	uint8_t count;
	uint16_t code[SCSI_UA_MAX]; /* ASC << 8 | ASCQ; the key is UNIT ATTENTION */
};

struct scsi_nexus {
	struct scsi_target *target;
	char initiator_name[SCSI_NAME_BYTES];
	uint8_t isid[6];
	uint16_t target_port_group, relative_port;
	uint8_t alua_index; /* of the group, see scsi_port_add */
	TAILQ_HEAD(copy_record_list, copy_record) copy_records; /* third_party_copy.h */
	unsigned copy_record_count;
	unsigned task_count;
	uint32_t reservation_hash; /* pr_hash */
	struct ua_queue ua[SCSI_MAX_LUNS];
	uint8_t hidden[SCSI_MAX_LUNS / 8];   /* scsi_nexus_hide, a bit for each LUN */
	uint8_t prevents[SCSI_MAX_LUNS / 8]; /* PREVENT ALLOW MEDIUM REMOVAL, a bit for each LUN */
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
	struct alua_device alua;
	unsigned copies; /* EXTENDED COPY commands under way */
	TAILQ_HEAD(lu_list, scsi_lu) lus;
	TAILQ_HEAD(target_list, scsi_target) targets;
};

/* commands.c */
void scsi_commands_index(struct scsi_device *device);
const struct scsi_command *scsi_commands_find(const struct scsi_device *device, const uint8_t *cdb);
/* The INDEX-th row of all families; NULL at the end. */
const struct scsi_command *scsi_commands_row(unsigned index);
/* Does LU (may be NULL) have the command? */
bool scsi_command_present(const struct scsi_command *command, const struct scsi_lu *lu);
extern const struct scsi_command scsi_basic_commands[];
extern const struct scsi_command scsi_capacity_commands[];
extern const struct scsi_command scsi_inquiry_commands[];
extern const struct scsi_command scsi_mode_commands[];
extern const struct scsi_command scsi_pr_in_commands[];
extern const struct scsi_command scsi_pr_out_commands[];
extern const struct scsi_command scsi_readwrite_commands[];
extern const struct scsi_command scsi_reserve_commands[];
extern const struct scsi_command scsi_unmap_commands[];
extern const struct scsi_command scsi_verify_commands[];
extern const struct scsi_command scsi_mode_select_commands[];
extern const struct scsi_command scsi_log_commands[];
extern const struct scsi_command scsi_opcode_commands[];
extern const struct scsi_command scsi_port_group_commands[];
extern const struct scsi_command scsi_referral_commands[];
extern const struct scsi_command scsi_extended_copy_commands[];
extern const struct scsi_command scsi_receive_copy_commands[];
extern const struct scsi_command scsi_compare_write_commands[];
extern const struct scsi_command scsi_defect_commands[];
extern const struct scsi_command scsi_lba_status_commands[];
extern const struct scsi_command scsi_medium_commands[];
extern const struct scsi_command scsi_orwrite_commands[];
extern const struct scsi_command scsi_prefetch_commands[];
extern const struct scsi_command scsi_sanitize_commands[];
extern const struct scsi_command scsi_format_commands[];
extern const struct scsi_command scsi_diagnostic_commands[];
extern const struct scsi_command scsi_write_atomic_commands[];
extern const struct scsi_command scsi_write_same_commands[];
extern const struct scsi_command scsi_write_verify_commands[];

/* Logical blocks of one physical block: the unit of alignment. */
static inline uint32_t scsi_lu_physical_blocks(const struct scsi_lu *lu)
{
	return MAX_OF(1U, volume_physical_block_bytes(lu->volume) / lu->block_bytes);
}

/* The logical unit at INDEX as NEXUS sees it; NULL: none. */
static inline struct scsi_lu *scsi_nexus_lu(const struct scsi_nexus *nexus, unsigned index)
{
	if (index >= SCSI_MAX_LUNS || (nexus->hidden[index / 8] >> index % 8 & 1))
		return NULL;
	return nexus->target->luns[index];
}

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
uint32_t scsi_ua_take_reset(struct scsi_nexus *nexus, unsigned lun); /* the oldest with ASC 29h */
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

/* The scratch buffer as the io's only iovec; false: no buffer, and the task has ended BUSY. */
bool scsi_task_scratch(struct scsi_task *task, uint32_t bytes);

/* Begins what scsi_execute was called for: TASK is prepared or dormant. */
void scsi_task_start(struct scsi_task *task);

/* ordering.c.  Must TASK wait for other tasks of its set? */
bool scsi_order_waits(const struct scsi_task *task);
/* Begins the dormant tasks of LU that need wait no longer. */
void scsi_order_run(struct scsi_lu *lu);
static inline bool scsi_is_barrier(const struct scsi_task *task)
{
	return task->attribute > SCSI_SIMPLE;
}

/* range.c.  True: RANGE (lu, lba, blocks, atomic, ready are set) may be used at once.  False: ready
 * is called when its turn has come. */
bool scsi_range_enter(struct scsi_range *range);
/* Gives it back: who waited only for it becomes ready. */
void scsi_range_leave(struct scsi_range *range);
/* Calls the ready ones; after scsi_range_leave, when the caller has nothing half done. */
void scsi_range_run(struct scsi_lu *lu);

/* medium.c.  False: the medium is not in the condition the command needs; sense is set. */
bool scsi_medium_check(struct scsi_task *task);
static inline bool scsi_medium_is_ready(struct scsi_task *task)
{
	const struct scsi_lu *lu = task->lu;

	return (lu->conditions == 0 && !lu->mode.software_write_protect) || scsi_medium_check(task);
}
bool scsi_lu_is_write_protected(const struct scsi_lu *lu);
/* A reset, or the end of a nexus, allows medium removal again; the latter happens by itself. */
void scsi_medium_reset(struct scsi_lu *lu);

/* wipe.c */
void scsi_wipe_free(struct scsi_lu *lu);
static inline bool scsi_lu_is_wiped(const struct scsi_lu *lu) /* just now */
{
	return lu->conditions & (LU_SANITIZING | LU_FORMATTING);
}
/* What is going on, and the progress in units of 1/65536 as sense key specific information (SPC-4
 * 4.5.2.4.4). */
uint32_t scsi_wipe_sense(const struct scsi_lu *lu, struct sense_extra *ret_extra);

/* readwrite.c: the LBA and length of READ, WRITE, VERIFY, SYNCHRONIZE CACHE of any CDB size */
void scsi_rw_decode(const uint8_t *cdb, uint64_t *ret_lba, uint32_t *ret_blocks);
/* Decodes into the task and checks protection bits, transfer limit and range. */
bool scsi_rw_check(struct scsi_task *task);
/* The same without decoding: is the range within the logical unit? */
bool scsi_range_check(struct scsi_task *task);
/* A write's data-out: the blocks of task->blocks, and its execution. */
enum scsi_prepared scsi_write_needs_data(struct scsi_task *task);
void scsi_write_execute(struct scsi_task *task);

/* verify.c: the first byte of FLAT that differs from the data-out at SKIP; BYTES: none. */
size_t scsi_data_mismatch(const struct scsi_task *task, size_t skip, const uint8_t *flat,
			  size_t bytes);

/* alua.c */
enum alua_status { ALUA_STATUS_NONE, ALUA_STATUS_EXPLICIT, ALUA_STATUS_IMPLICIT };
int scsi_alua_index(const struct scsi_device *device, uint16_t group); /* -ENOENT */
void scsi_alua_begin(struct scsi_lu *lu);
void scsi_alua_end(struct scsi_lu *lu);
/* Changes the state and tells every nexus but EXCEPT (may be NULL), if it is a change. */
void scsi_alua_put(struct scsi_lu *lu, unsigned index, enum alua_state state, uint8_t status,
		   const struct scsi_nexus *except);
/* Why LU is not ready through NEXUS's port; SENSE_NONE: it is. */
uint32_t scsi_alua_sense_of(const struct scsi_lu *lu, const struct scsi_nexus *nexus);
uint32_t scsi_alua_sense(const struct scsi_task *task);
/* As scsi_alua_sense, but SENSE_NONE for commands that the state lets through. */
uint32_t scsi_alua_check(const struct scsi_task *task);

/* third_party_copy.c */
void scsi_copy_records_end(struct scsi_nexus *nexus);

/* mode.c: the values after power-on and after a reset */
void scsi_mode_reset(struct scsi_lu *lu);

/* thin_threshold.c: tells all nexuses once when the pool's use has passed the volume's threshold */
void scsi_threshold_check(struct scsi_lu *lu);
/* referrals.c: tells all nexuses when pages of the volume have moved to other members */
void scsi_referrals_check(struct scsi_lu *lu);
/* LBA mapping resources are counted in threshold sets of this many bytes. */
#define SCSI_THRESHOLD_SET_BYTES MIB

/* vpd.c */
void scsi_vpd_execute(struct scsi_task *task, uint8_t page, uint32_t allocation_bytes);

#endif
