/* SPDX-License-Identifier: MIT
 *
 * The parameter list of EXTENDED COPY (SPC-4 6.4.1): header, identification target descriptors,
 * block to block segment descriptors.
 *
 * Errors of the list refuse the command; what a segment wants and cannot have aborts the copy (COPY
 * ABORTED), before any data moves.
 */
#include "target/scsi/extended_copy.h"

#include <strings.h>

static uint32_t parse_header(const uint8_t *list, unsigned bytes, struct copy_plan *plan,
			     unsigned *ret_targets, unsigned *ret_segments)
{
	uint32_t targets, segments, inline_bytes;

	if (bytes < COPY_HEADER_BYTES)
		return SENSE_PARAMETER_LIST_LENGTH;
	targets = get_be16(list + 2);
	segments = get_be32(list + 8);
	inline_bytes = get_be32(list + 12);
	if (segments > COPY_LIST_MAX_BYTES || targets + segments > COPY_LIST_MAX_BYTES ||
	    targets + segments > bytes - COPY_HEADER_BYTES)
		return SENSE_PARAMETER_LIST_LENGTH;
	if (inline_bytes != 0)
		return SENSE_COPY_INLINE_DATA;
	plan->list_id = list[0];
	plan->usage = list[1] >> 3 & 0x03;
	if (plan->usage == 1 || (plan->usage == LIST_ID_NONE && plan->list_id != 0))
		return SENSE_INVALID_FIELD_IN_LIST;
	*ret_targets = targets;
	*ret_segments = segments;
	return SENSE_NONE;
}

enum { INQUIRY = 0x12, READ_16 = 0x88, WRITE_16 = 0x8a };

/* Does a reservation of LU let NEXUS do the command? */
static bool reservation_lets(struct scsi_nexus *nexus, struct scsi_lu *lu, uint8_t opcode)
{
	struct scsi_task probe = {.nexus = nexus, .lu = lu, .cdb = {opcode}};

	probe.command = scsi_commands_find(lu->device, probe.cdb);
	return !lu->reserved || !scsi_reservation_conflicts(&probe);
}

/* Could the initiator do itself what it wants done?  It copies between logical units that it is
 * logged in to: no other way leads past a volume's access rules and reservations. */
static bool initiator_may(const struct scsi_task *task, struct scsi_lu *lu, uint8_t opcode)
{
	struct scsi_target *target;
	struct scsi_nexus *nexus;

	TAILQ_FOREACH (target, &lu->device->targets, entry) {
		TAILQ_FOREACH (nexus, &target->nexuses, entry) {
			if (strcasecmp(nexus->initiator_name, task->nexus->initiator_name) != 0)
				continue;
			for (unsigned i = 0; i < SCSI_MAX_LUNS; i++) {
				if (target->luns[i] == lu && reservation_lets(nexus, lu, opcode))
					return true;
			}
		}
	}
	return false;
}

/* The logical unit with the NAA designator of an identification descriptor. */
static struct scsi_lu *resolve(const struct scsi_task *task, const uint8_t *target)
{
	struct scsi_lu *lu;

	/* binary; NAA of the logical unit */
	if ((target[4] & 0x0f) != 1 || (target[5] & 0x3f) != 3 || target[7] != 16)
		return NULL;
	TAILQ_FOREACH (lu, &task->lu->device->lus, entry) {
		if (memcmp(volume_naa(lu->volume), target + 8, 16) != 0)
			continue;
		/* The descriptor's block length, when given, must be the true one. */
		if (get_be24(target + 29) != 0 && get_be24(target + 29) != lu->block_bytes)
			return NULL;
		return initiator_may(task, lu, INQUIRY) ? lu : NULL;
	}
	return NULL;
}

static uint32_t parse_targets(const struct scsi_task *task, const uint8_t *at, unsigned bytes,
			      struct copy_plan *plan)
{
	for (; bytes > 0; at += COPY_TARGET_BYTES, bytes -= COPY_TARGET_BYTES) {
		if (at[0] != COPY_TARGET_TYPE)
			return SENSE_TARGET_TYPE;
		if (bytes < COPY_TARGET_BYTES)
			return SENSE_INVALID_FIELD_IN_LIST;
		if (plan->target_count == COPY_TARGETS_MAX)
			return SENSE_TOO_MANY_TARGETS;
		/* A direct access block device.  The bits above are obsolete and ignored (SPC-4).
		 */
		if (at[1] & 0x1f)
			return SENSE_INVALID_FIELD_IN_LIST;
		plan->target[plan->target_count++] = resolve(task, at);
	}
	return SENSE_NONE;
}

static uint32_t parse_segments(const uint8_t *at, unsigned bytes, struct copy_plan *plan)
{
	for (; bytes > 0; at += COPY_SEGMENT_BYTES, bytes -= COPY_SEGMENT_BYTES) {
		if (at[0] != COPY_SEGMENT_TYPE)
			return SENSE_SEGMENT_TYPE;
		if (bytes < COPY_SEGMENT_BYTES || get_be16(at + 2) != COPY_SEGMENT_BYTES - 4)
			return SENSE_INVALID_FIELD_IN_LIST;
		if (plan->segment_count == COPY_SEGMENTS_MAX)
			return SENSE_TOO_MANY_SEGMENTS;
		plan->segment_count++;
	}
	return SENSE_NONE;
}

uint32_t scsi_copy_plan_parse(const struct scsi_task *task, const uint8_t *list, unsigned bytes,
			      struct copy_plan *ret_plan)
{
	struct copy_plan plan = {0};
	unsigned targets = 0, segments = 0;
	uint32_t code = parse_header(list, bytes, &plan, &targets, &segments);

	if (code == SENSE_NONE)
		code = parse_targets(task, list + COPY_HEADER_BYTES, targets, &plan);
	if (code == SENSE_NONE)
		code = parse_segments(list + COPY_HEADER_BYTES + targets, segments, &plan);
	if (code == SENSE_NONE)
		*ret_plan = plan;
	return code;
}

static bool in_range(const struct scsi_lu *lu, uint64_t lba, uint64_t length_bytes)
{
	uint64_t capacity = scsi_lu_blocks(lu), blocks = length_bytes / lu->block_bytes;

	return lba <= capacity && blocks <= capacity - lba;
}

static bool usable(const struct scsi_task *task, const struct scsi_lu *lu)
{
	return (lu->conditions & ~(unsigned)LU_READ_ONLY) == 0 &&
	       scsi_alua_sense_of(lu, task->nexus) == SENSE_NONE;
}

static uint32_t check_segment(const struct scsi_task *task, const struct copy_plan *plan,
			      const uint8_t *at, struct copy_segment *ret_segment)
{
	unsigned from = get_be16(at + 4), to = get_be16(at + 6);
	uint64_t from_lba = get_be64(at + 12), to_lba = get_be64(at + 20), length_bytes;
	struct copy_segment segment = {0};

	if (from >= plan->target_count || to >= plan->target_count || !plan->target[from] ||
	    !plan->target[to])
		return SENSE_COPY_UNREACHABLE;
	segment.from = plan->target[from];
	segment.to = plan->target[to];
	if (!usable(task, segment.from) || !usable(task, segment.to))
		return SENSE_COPY_NOT_REACHABLE;
	if (scsi_lu_is_write_protected(segment.to) || !initiator_may(task, segment.from, READ_16) ||
	    !initiator_may(task, segment.to, WRITE_16))
		return SENSE_COPY_DEVICE_FAILURE;
	/* DC: the count is in blocks of the destination. */
	length_bytes =
	    (uint64_t)get_be16(at + 10) * (at[1] & 0x02 ? segment.to : segment.from)->block_bytes;
	if (length_bytes % segment.from->block_bytes || length_bytes % segment.to->block_bytes)
		return SENSE_COPY_INEXACT;
	if (!in_range(segment.from, from_lba, length_bytes) ||
	    !in_range(segment.to, to_lba, length_bytes))
		return SENSE_COPY_ABORTED;
	segment.from_bytes = from_lba * segment.from->block_bytes;
	segment.to_bytes = to_lba * segment.to->block_bytes;
	segment.length_bytes = length_bytes;
	segment.backwards = segment.from == segment.to && segment.to_bytes > segment.from_bytes &&
			    segment.to_bytes - segment.from_bytes < length_bytes;
	*ret_segment = segment;
	return SENSE_NONE;
}

uint32_t scsi_copy_plan_check(const struct scsi_task *task, struct copy_plan *plan,
			      const uint8_t *list, unsigned *ret_segment)
{
	const uint8_t *at = list + COPY_HEADER_BYTES + get_be16(list + 2);

	for (unsigned i = 0; i < plan->segment_count; i++, at += COPY_SEGMENT_BYTES) {
		uint32_t code = check_segment(task, plan, at, &plan->segment[i]);

		if (code != SENSE_NONE) {
			*ret_segment = i;
			return code;
		}
	}
	return SENSE_NONE;
}
