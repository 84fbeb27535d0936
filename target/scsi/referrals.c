/* SPDX-License-Identifier: MIT
 *
 * REPORT REFERRALS (SBC-3 5.27): the slice map.  A run of blocks on one member is a user data
 * segment; the target port groups that lead to that member without a hop come with it.
 *
 * Space that is not mapped yet has no member: any group serves it as well, and all are listed.
 */
#include "target/array/pool_status.h"
#include "target/scsi/internal.h"

enum {
	SEGMENT_BYTES = 20,
	SEGMENTS_MAX = 1024, /* per command; the initiator asks again from where the list ends */
	GROUP_BYTES = 4,
};

/* Does group INDEX lead to MEMBER without a hop?  Where groups are controllers rather than members,
 * each leads to every member. */
static bool group_serves(const struct alua_device *alua, unsigned index,
			 const struct member *member)
{
	bool known = false;

	for (unsigned i = 0; i < alua->group_count && member; i++)
		known = known || alua->member[i] == member;
	return !known || alua->member[index] == member;
}

/* Do groups lead to different members, so that it matters where a block is? */
static bool refers(const struct alua_device *alua)
{
	const struct member *first = NULL;

	for (unsigned i = 0; i < alua->group_count; i++) {
		if (!alua->member[i])
			continue;
		if (first && alua->member[i] != first)
			return true;
		first = alua->member[i];
	}
	return false;
}

/* Told once for a whole plan of moves.  The segments themselves would need a sense descriptor for
 * each, which the fixed format has no room for: the initiator asks REPORT REFERRALS again. */
void scsi_referrals_check(struct scsi_lu *lu)
{
	uint64_t changes = volume_slice_changes(lu->volume);

	if (changes == lu->slice_changes)
		return;
	lu->slice_changes = changes;
	if (refers(&lu->device->alua))
		scsi_ua_broadcast(lu, NULL, SENSE_UA_REFERRALS);
}

static unsigned put_segment(const struct scsi_lu *lu, uint64_t first, uint64_t last,
			    const struct member *member, uint8_t *out)
{
	const struct alua_device *alua = &lu->device->alua;
	unsigned bytes = SEGMENT_BYTES;

	memset(out, 0, SEGMENT_BYTES);
	put_be64(out + 4, first);
	put_be64(out + 12, last);
	for (unsigned i = 0; i < alua->group_count; i++) {
		if (!group_serves(alua, i, member))
			continue;
		out[bytes] = lu->alua.group[i].state;
		out[bytes + 1] = 0;
		put_be16(out + bytes + 2, alua->group[i]);
		bytes += GROUP_BYTES;
		out[3]++;
	}
	return bytes;
}

static enum scsi_prepared referrals_prepare(struct scsi_task *task)
{
	task->lba = get_be64(task->cdb + 2);
	if (task->lba >= scsi_lu_blocks(task->lu))
		return scsi_sense_fail(task, SENSE_LBA_OUT_OF_RANGE);
	return SCSI_READY;
}

/* The run of blocks from LBA on that is on one member. */
static uint64_t slice_blocks(const struct scsi_lu *lu, uint64_t lba,
			     const struct member **ret_member)
{
	uint64_t run_bytes, left = scsi_lu_blocks(lu) - lba;

	volume_slice(lu->volume, lba * lu->block_bytes, ret_member, &run_bytes);
	return MIN_OF(left, MAX_OF(1, run_bytes / lu->block_bytes));
}

static void referrals_execute(struct scsi_task *task)
{
	const struct scsi_lu *lu = task->lu;
	size_t size = 4 + (size_t)SEGMENTS_MAX * (SEGMENT_BYTES + GROUP_BYTES * ALUA_GROUPS_MAX);
	uint32_t allocation_bytes = get_be32(task->cdb + 10);
	bool one_segment = task->cdb[14] & 0x01;
	struct buf *buf = buf_new(lu->device->pool, size);
	uint32_t bytes = 4;

	if (!buf) {
		task->status = SCSI_BUSY;
		scsi_task_end(task);
		return;
	}
	for (unsigned i = 0; i < SEGMENTS_MAX && task->lba < scsi_lu_blocks(lu); i++) {
		const struct member *member;
		uint64_t blocks = slice_blocks(lu, task->lba, &member);

		bytes +=
		    put_segment(lu, task->lba, task->lba + blocks - 1, member, buf->data + bytes);
		task->lba += blocks;
		if (one_segment)
			break;
	}
	put_be32(buf->data, bytes - 4);
	task->in_buf = buf;
	task->in_bytes = MIN_OF(bytes, allocation_bytes);
	task->transfer_bytes = task->in_bytes;
	scsi_task_end(task);
}

const struct scsi_command scsi_referral_commands[] = {
    {.opcode = 0x9e,
     .service_action = 0x13,
     .cdb_bytes = 16,
     .access = SCSI_ACCESS_FREE,
     .name = "REPORT REFERRALS",
     .usage = {0x9e, 0x13, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	       0x01, 0x04},
     .prepare = referrals_prepare,
     .execute = referrals_execute},
    {0},
};
