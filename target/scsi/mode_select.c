/* SPDX-License-Identifier: MIT
 *
 * MODE SELECT (6) and (10), SPC-4 6.9: the whole list is checked before any of it takes effect.
 *
 * Values are shared by all nexuses and not saved: SP is refused, and a reset brings the defaults
 * back.
 */
#include "target/scsi/mode.h"

enum { SELECT_LIST_MAX_BYTES = 512 };

static bool is_ten(const struct scsi_task *task)
{
	return task->cdb[0] == 0x55;
}

static enum scsi_prepared mode_select_prepare(struct scsi_task *task)
{
	uint8_t bits = task->cdb[1] & 0x13; /* PF, RTD, SP */

	task->out_bytes = is_ten(task) ? get_be16(task->cdb + 7) : task->cdb[4];
	if (bits != 0x10 && !(bits == 0 && task->out_bytes == 0))
		return scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
	if (task->out_bytes > SELECT_LIST_MAX_BYTES)
		return scsi_sense_fail(task, SENSE_PARAMETER_LIST_LENGTH);
	task->transfer_bytes = task->out_bytes;
	return task->out_bytes > 0 ? SCSI_NEEDS_DATA : SCSI_READY;
}

/* The parameter list while it is read. */
struct select_list {
	const struct scsi_lu *lu;
	const uint8_t *data;
	unsigned bytes, at;
	struct mode_values values; /* as they will be */
};

/* A block descriptor may repeat what is there; nothing in it can be changed. */
static uint32_t take_descriptor(struct select_list *list, unsigned bytes, bool long_lba)
{
	const uint8_t *at = list->data + list->at;
	uint64_t capacity = scsi_lu_blocks(list->lu), blocks;
	uint32_t block_bytes;

	if (bytes == 0)
		return SENSE_NONE;
	if (bytes != (long_lba ? 16U : 8U))
		return SENSE_INVALID_FIELD_IN_LIST;
	if (bytes > list->bytes - list->at)
		return SENSE_PARAMETER_LIST_LENGTH;
	blocks = long_lba ? get_be64(at) : get_be32(at);
	block_bytes = long_lba ? get_be32(at + 12) : get_be24(at + 5);
	if (block_bytes != list->lu->block_bytes)
		return SENSE_INVALID_FIELD_IN_LIST;
	if (blocks != 0 && blocks != capacity && (long_lba || blocks != UINT32_MAX))
		return SENSE_INVALID_FIELD_IN_LIST;
	list->at += bytes;
	return SENSE_NONE;
}

static uint32_t take_header(struct select_list *list, bool ten)
{
	const uint8_t *data = list->data;
	bool long_lba;
	unsigned descriptor;

	if (list->bytes < (ten ? 8U : 4U))
		return SENSE_PARAMETER_LIST_LENGTH;
	list->at = ten ? 2 : 1;
	if (data[list->at] != 0) /* medium type */
		return SENSE_INVALID_FIELD_IN_LIST;
	long_lba = ten && (data[4] & 0x01);
	descriptor = ten ? get_be16(data + 6) : data[3];
	list->at = ten ? 8 : 4;
	return take_descriptor(list, descriptor, long_lba);
}

/* Finds the page at list->at and checks its length. */
static uint32_t find_page(const struct select_list *list, const struct mode_page **ret_page)
{
	const uint8_t *at = list->data + list->at;
	unsigned left = list->bytes - list->at, length;
	bool sub = at[0] & 0x40; /* SPF */
	const struct mode_page *page;

	if (left < (sub ? 4U : 2U))
		return SENSE_PARAMETER_LIST_LENGTH;
	page = scsi_mode_page_find(list->lu, at[0] & 0x3f, sub ? at[1] : 0);
	if (!page || (sub && at[1] == 0))
		return SENSE_INVALID_FIELD_IN_LIST;
	length = sub ? get_be16(at + 2) + 4U : at[1] + 2U;
	if (length != page->bytes)
		return SENSE_INVALID_FIELD_IN_LIST;
	if (length > left)
		return SENSE_PARAMETER_LIST_LENGTH;
	*ret_page = page;
	return SENSE_NONE;
}

/* Leaves list->at at the byte that is wrong. */
static uint32_t take_page(struct select_list *list)
{
	uint8_t current[MODE_PAGE_MAX_BYTES], mask[MODE_PAGE_MAX_BYTES];
	const uint8_t *at = list->data + list->at;
	const struct mode_page *page;
	uint32_t code = find_page(list, &page);
	unsigned header;

	if (code != SENSE_NONE)
		return code;
	header = scsi_mode_page_header_bytes(page);
	scsi_mode_page_build(page, list->lu, PC_CURRENT, current);
	scsi_mode_page_build(page, list->lu, PC_CHANGEABLE, mask);
	for (unsigned i = header; i < page->bytes; i++) {
		if ((at[i] ^ current[i]) & ~mask[i]) {
			list->at += i;
			return SENSE_INVALID_FIELD_IN_LIST;
		}
	}
	if (page->apply)
		page->apply(at + header, &list->values);
	list->at += page->bytes;
	return SENSE_NONE;
}

static void fail_at(struct scsi_task *task, uint32_t code, unsigned at)
{
	struct sense_extra extra = {.has_key_specific = code == SENSE_INVALID_FIELD_IN_LIST};

	put_be16(extra.key_specific + 1, (uint16_t)at); /* FIELD POINTER, in the parameter list */
	scsi_sense_fail_extra(task, code, &extra);
	scsi_task_end(task);
}

static void mode_select_execute(struct scsi_task *task)
{
	uint8_t data[SELECT_LIST_MAX_BYTES];
	struct scsi_lu *lu = task->lu;
	struct select_list list = {.lu = lu,
				   .data = data,
				   .bytes = MIN_OF(task->out_bytes, task->out_got_bytes),
				   .values = lu->mode};
	uint32_t code;
	bool changed;

	if (task->out_bytes == 0) {
		scsi_task_end(task);
		return;
	}
	iov_to_mem(task->out_iov, task->out_iov_count, 0, data, list.bytes);
	code = take_header(&list, is_ten(task));
	while (code == SENSE_NONE && list.at < list.bytes)
		code = take_page(&list);
	if (code != SENSE_NONE) {
		fail_at(task, code, list.at);
		return;
	}
	changed = list.values.write_cache != lu->mode.write_cache ||
		  list.values.descriptor_sense != lu->mode.descriptor_sense ||
		  list.values.software_write_protect != lu->mode.software_write_protect;
	lu->mode = list.values;
	if (changed)
		scsi_ua_broadcast(lu, task->nexus, SENSE_UA_MODE_CHANGED);
	scsi_task_end(task);
}

const struct scsi_command scsi_mode_select_commands[] = {
    {.opcode = 0x15,
     .service_action = -1,
     .cdb_bytes = 6,
     .name = "MODE SELECT (6)",
     .usage = {0x15, 0x10, 0x00, 0x00, 0xff, 0x04},
     .prepare = mode_select_prepare,
     .execute = mode_select_execute},
    {.opcode = 0x55,
     .service_action = -1,
     .cdb_bytes = 10,
     .name = "MODE SELECT (10)",
     .usage = {0x55, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x04},
     .prepare = mode_select_prepare,
     .execute = mode_select_execute},
    {0},
};
