/* SPDX-License-Identifier: MIT
 *
 * A SCSI target device: a name and its logical unit inventory; LUN addressing (SAM-5 4.7).
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "target/scsi/internal.h"

struct scsi_target *scsi_target_new(struct scsi_device *device, const char *name)
{
	struct scsi_target *target;

	if (strlen(name) >= sizeof target->name)
		return NULL;
	target = calloc(1, sizeof *target);
	if (!target)
		return NULL;
	target->device = device;
	snprintf(target->name, sizeof target->name, "%s", name);
	TAILQ_INIT(&target->nexuses);
	TAILQ_INSERT_TAIL(&device->targets, target, entry);
	return target;
}

struct scsi_target *scsi_target_free(struct scsi_target *target)
{
	if (!target)
		return NULL;
	assert(TAILQ_EMPTY(&target->nexuses));
	TAILQ_REMOVE(&target->device->targets, target, entry);
	free(target);
	return NULL;
}

int scsi_target_add_lun(struct scsi_target *target, unsigned lun, struct scsi_lu *lu)
{
	struct scsi_nexus *nexus;

	if (lun >= SCSI_MAX_LUNS)
		return -ERANGE;
	if (target->luns[lun])
		return -EEXIST;
	target->luns[lun] = lu;
	TAILQ_FOREACH (nexus, &target->nexuses, entry) {
		for (unsigned i = 0; i < SCSI_MAX_LUNS; i++) {
			if (target->luns[i])
				scsi_ua_add(nexus, i,
					    i == lun ? SENSE_UA_POWER_ON : SENSE_UA_LUNS_CHANGED);
		}
	}
	return 0;
}

const char *scsi_target_name(const struct scsi_target *target)
{
	return target->name;
}

int scsi_lun_decode(const uint8_t lun[8])
{
	static const uint8_t single_level[6];
	unsigned method = lun[0] >> 6;

	if (memcmp(lun + 2, single_level, sizeof single_level) != 0)
		return -1;
	if (method == 0) /* peripheral device addressing: only bus 0 exists */
		return (lun[0] & 0x3f) == 0 ? lun[1] : -1;
	if (method == 1) /* flat space addressing */
		return (lun[0] & 0x3f) << 8 | lun[1];
	return -1;
}

void scsi_lun_encode(unsigned index, uint8_t ret_lun[8])
{
	assert(index < SCSI_MAX_LUNS); /* all fit peripheral device addressing */
	memset(ret_lun, 0, 8);
	ret_lun[1] = (uint8_t)index;
}
