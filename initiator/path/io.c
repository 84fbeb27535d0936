/* SPDX-License-Identifier: MIT
 *
 * I/O on a path that is up: CDBs, libiscsi's answers, and the ends of an io: answered, refused or
 * lost, each exactly once.
 *
 * Tasks live in a fixed array, one per outstanding command, and data moves straight between the
 * socket and the submitter's iovec.  libiscsi trims the iovec around a partial transfer and puts
 * it back, hence the cast.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "initiator/path/iscsi_path.h"

enum {
	CDB_FUA = 1 << 3,
	KEY_ABORTED = 0x0b,
	ASC_DATA_PHASE_ERROR = 0x4b,
};

static void in_flight_add(struct iscsi_path *p, struct path_io *pio)
{
	pio->next = NULL;
	pio->prev = p->newest;
	if (p->newest)
		p->newest->next = pio;
	else
		p->oldest = pio;
	p->newest = pio;
}

static void in_flight_remove(struct iscsi_path *p, struct path_io *pio)
{
	if (pio->prev)
		pio->prev->next = pio->next;
	else
		p->oldest = pio->next;
	if (pio->next)
		pio->next->prev = pio->prev;
	else
		p->newest = pio->prev;
}

static uint64_t data_bytes(const struct iscsi_path *p, const struct path_io *pio)
{
	if (pio->op != IO_READ && pio->op != IO_WRITE)
		return 0;
	return (uint64_t)pio->blocks * p->path.identity.block_bytes;
}

static void release_slot(struct iscsi_path *p, struct iscsi_slot *slot)
{
	free(slot->task.datain.data); /* sense data; else NULL */
	slot->task.datain.data = NULL;
	slot->pio = NULL;
	SLIST_INSERT_HEAD(&p->free_slots, slot, free_link);
}

static void end_io(struct iscsi_path *p, struct path_io *pio)
{
	assert(p->path.in_flight > 0);
	p->path.in_flight--;
	p->path.in_flight_bytes -= data_bytes(p, pio);
	pio->done(pio);
}

static void put_range(struct iscsi_path *p, struct scsi_task *task, uint8_t opcode10,
		      uint8_t opcode16, uint64_t lba, uint32_t blocks)
{
	if (p->cdb10) {
		task->cdb_size = 10;
		task->cdb[0] = opcode10;
		put_be32(task->cdb + 2, (uint32_t)lba);
		put_be16(task->cdb + 7, (uint16_t)blocks);
	} else {
		task->cdb_size = 16;
		task->cdb[0] = opcode16;
		put_be64(task->cdb + 2, lba);
		put_be32(task->cdb + 10, blocks);
	}
}

static void build_unmap(struct iscsi_slot *slot, const struct path_io *pio)
{
	struct scsi_task *task = &slot->task;

	memset(slot->unmap, 0, sizeof slot->unmap);
	put_be16(slot->unmap, ISCSI_UNMAP_LIST_BYTES - 2);
	put_be16(slot->unmap + 2, ISCSI_UNMAP_LIST_BYTES - 8);
	put_be64(slot->unmap + 8, pio->lba);
	put_be32(slot->unmap + 16, pio->blocks);
	slot->unmap_iov =
	    (struct scsi_iovec){.iov_base = slot->unmap, .iov_len = sizeof slot->unmap};
	task->cdb_size = 10;
	task->cdb[0] = SCSI_OPCODE_UNMAP;
	put_be16(task->cdb + 7, ISCSI_UNMAP_LIST_BYTES);
	task->xfer_dir = SCSI_XFER_WRITE;
	task->expxferlen = ISCSI_UNMAP_LIST_BYTES;
	scsi_task_set_iov_out(task, &slot->unmap_iov, 1);
}

static void build(struct iscsi_path *p, struct iscsi_slot *slot, const struct path_io *pio)
{
	struct scsi_task *task = &slot->task;
	struct scsi_iovec *iov = (struct scsi_iovec *)(uintptr_t)pio->iov;

	memset(task, 0, sizeof *task);
	slot->sync_after = false;
	switch (pio->op) {
	case IO_READ:
		put_range(p, task, SCSI_OPCODE_READ10, SCSI_OPCODE_READ16, pio->lba, pio->blocks);
		task->xfer_dir = SCSI_XFER_READ;
		task->expxferlen = (int)data_bytes(p, pio);
		scsi_task_set_iov_in(task, iov, (int)pio->iov_count);
		break;
	case IO_WRITE:
		put_range(p, task, SCSI_OPCODE_WRITE10, SCSI_OPCODE_WRITE16, pio->lba, pio->blocks);
		if (pio->flags & IO_FUA && p->dpofua)
			task->cdb[1] = CDB_FUA;
		else if (pio->flags & IO_FUA)
			slot->sync_after = true;
		task->xfer_dir = SCSI_XFER_WRITE;
		task->expxferlen = (int)data_bytes(p, pio);
		scsi_task_set_iov_out(task, iov, (int)pio->iov_count);
		break;
	case IO_FLUSH:
		put_range(p, task, SCSI_OPCODE_SYNCHRONIZECACHE10, SCSI_OPCODE_SYNCHRONIZECACHE16,
			  pio->lba, pio->blocks);
		break;
	case IO_UNMAP:
		build_unmap(slot, pio);
		break;
	}
}

static void command_done(struct iscsi_context *ctx, int status, void *command_data, void *arg);

static int queue_command(struct iscsi_path *p, struct iscsi_slot *slot)
{
	if (iscsi_scsi_command_async(p->ctx, p->wire_lun, &slot->task, command_done, NULL, slot) !=
	    0)
		return -EIO;
	p->queued++;
	loop_task_queue(p->path.loop, &p->flush);
	return 0;
}

/* The second half of a FUA write on a unit that does not know the bit. */
static bool continue_with_sync(struct iscsi_path *p, struct iscsi_slot *slot)
{
	struct path_io *pio = slot->pio;

	slot->sync_after = false;
	memset(&slot->task, 0, sizeof slot->task);
	put_range(p, &slot->task, SCSI_OPCODE_SYNCHRONIZECACHE10, SCSI_OPCODE_SYNCHRONIZECACHE16,
		  pio->lba, pio->blocks);
	if (queue_command(p, slot) == 0)
		return true;
	session_lose(p, PATH_DETECT_PROTOCOL, "cannot send a command: %s", iscsi_get_error(p->ctx));
	return true; /* ends as lost */
}

bool iscsi_answer_take(struct iscsi_answer *ret_answer, int status, const struct scsi_task *task)
{
	struct iscsi_answer answer = {.result = PATH_OK, .scsi_status = (uint8_t)status};

	switch (status) {
	case SCSI_STATUS_GOOD:
	case SCSI_STATUS_CONDITION_MET:
		break;
	case SCSI_STATUS_CHECK_CONDITION:
		answer.result = PATH_SENSE;
		answer.sense_key = (uint8_t)task->sense.key;
		answer.asc = (uint8_t)((unsigned)task->sense.ascq >> 8);
		answer.ascq = (uint8_t)task->sense.ascq;
		break;
	case SCSI_STATUS_CANCELLED:
	case SCSI_STATUS_ERROR:
	case SCSI_STATUS_TIMEOUT:
		return false;
	default:
		answer.result = PATH_STATUS;
		break;
	}
	*ret_answer = answer;
	return true;
}

/* Fills PIO's result; false when there is none because the session ended. */
static bool take_status(struct path_io *pio, int status, const struct scsi_task *task)
{
	bool other_length = task->residual_status != SCSI_RESIDUAL_NO_RESIDUAL && task->residual;
	struct iscsi_answer answer;

	if (!iscsi_answer_take(&answer, status, task))
		return false;
	/* GOOD for less than was asked is no success; nothing says which part came.  One for more
	 * means that the target counts in blocks of another size. */
	if (answer.result == PATH_OK && other_length &&
	    (pio->op == IO_READ || pio->op == IO_WRITE)) {
		answer.result = PATH_SENSE;
		answer.sense_key = KEY_ABORTED;
		answer.asc = ASC_DATA_PHASE_ERROR;
	}
	pio->result = answer.result;
	pio->scsi_status = answer.scsi_status;
	pio->sense_key = answer.sense_key;
	pio->asc = answer.asc;
	pio->ascq = answer.ascq;
	return true;
}

/* COMMAND_DATA may be NULL; the slot has all that is needed. */
static void command_done(struct iscsi_context *ctx, int status, void *command_data, void *arg)
{
	struct iscsi_slot *slot = arg;
	struct iscsi_path *p = slot->owner;
	struct path_io *pio = slot->pio;

	if (p->tearing)
		return; /* iscsi_path_end_lost ends it */
	assert(pio && pio->task == slot);
	if (p->aborting)
		status = SCSI_STATUS_TASK_ABORTED;
	if (!take_status(pio, status, &slot->task)) {
		session_lose_failed(p, errno);
		return;
	}
	p->heard = true;
	if (slot->sync_after && pio->result == PATH_OK && continue_with_sync(p, slot))
		return;
	in_flight_remove(p, pio);
	release_slot(p, slot);
	pio->task = NULL;
	pio->next = NULL;
	*p->answered_tail = pio;
	p->answered_tail = &pio->next;
}

static void refuse(struct iscsi_path *p, struct path_io *pio)
{
	pio->task = NULL;
	pio->next = NULL;
	*p->refused_tail = pio;
	p->refused_tail = &pio->next;
	loop_task_queue(p->path.loop, &p->later);
}

void iscsi_path_submit(struct path *path, struct path_io *pio)
{
	struct iscsi_path *p = container_of(path, struct iscsi_path, path);
	struct iscsi_slot *slot = SLIST_FIRST(&p->free_slots);

	if (!path->up || p->lost || !slot || data_bytes(p, pio) > INT_MAX ||
	    (p->cdb10 && (pio->blocks > UINT16_MAX || pio->lba > UINT32_MAX))) {
		refuse(p, pio);
		return;
	}
	build(p, slot, pio);
	if (queue_command(p, slot) < 0) {
		refuse(p, pio);
		return;
	}
	SLIST_REMOVE_HEAD(&p->free_slots, free_link);
	slot->pio = pio;
	pio->task = slot;
	/* One look at the clock for all that is written together. */
	if (!p->stamped) {
		p->stamp_ns = loop_now_ns(path->loop);
		p->stamped = true;
	}
	pio->submit_ns = p->stamp_ns;
	in_flight_add(p, pio);
	path->in_flight++;
	path->in_flight_bytes += data_bytes(p, pio);
}

void iscsi_path_deliver(struct iscsi_path *p)
{
	struct path_io *pio;

	while ((pio = p->answered)) {
		p->answered = pio->next;
		if (!p->answered)
			p->answered_tail = &p->answered;
		end_io(p, pio);
	}
}

void iscsi_path_end_refused(struct iscsi_path *p)
{
	struct path_io *pio = p->refused;

	/* One round: what is refused from within done waits for the next. */
	p->refused = NULL;
	p->refused_tail = &p->refused;
	while (pio) {
		struct path_io *next = pio->next;

		pio->result = PATH_NOT_SENT;
		pio->done(pio);
		pio = next;
	}
}

/* The context is gone: nothing refers to a buffer any more. */
void iscsi_path_end_lost(struct iscsi_path *p)
{
	struct path_io *pio;

	assert(!p->ctx);
	while ((pio = p->oldest)) {
		in_flight_remove(p, pio);
		release_slot(p, pio->task);
		pio->task = NULL;
		pio->result = PATH_LOST;
		end_io(p, pio);
	}
}
