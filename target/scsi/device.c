/* SPDX-License-Identifier: MIT
 *
 * The SCSI device: all logical units of a group, each on one volume, shared by the targets.
 */
#include <assert.h>
#include <stdlib.h>

#include "target/scsi/internal.h"

struct scsi_device *scsi_device_new(struct loop *loop, struct buf_pool *pool)
{
	struct scsi_device *device = calloc(1, sizeof *device);

	if (!device)
		return NULL;
	device->loop = loop;
	device->pool = pool;
	TAILQ_INIT(&device->lus);
	TAILQ_INIT(&device->targets);
	scsi_commands_index(device);
	return device;
}

struct scsi_device *scsi_device_free(struct scsi_device *device)
{
	struct scsi_lu *lu, *next;

	if (!device)
		return NULL;
	assert(TAILQ_EMPTY(&device->targets));
	for (lu = TAILQ_FIRST(&device->lus); lu; lu = next) {
		assert(lu->task_count == 0 && TAILQ_EMPTY(&lu->resets));
		next = TAILQ_NEXT(lu, entry);
		scsi_wipe_free(lu);
		scsi_alua_end(lu);
		scsi_reservations_done(lu);
		free(lu);
	}
	free(device);
	return NULL;
}

struct scsi_lu *scsi_device_add(struct scsi_device *device, struct volume *volume)
{
	struct scsi_lu *lu;

	for (lu = TAILQ_FIRST(&device->lus); lu; lu = TAILQ_NEXT(lu, entry)) {
		if (lu->volume == volume)
			return lu;
	}
	lu = calloc(1, sizeof *lu);
	if (!lu)
		return NULL;
	if (scsi_reservations_init(lu)) {
		free(lu);
		return NULL;
	}
	lu->device = device;
	lu->volume = volume;
	lu->block_bytes = volume_block_bytes(volume);
	assert(lu->block_bytes >= 512);
	TAILQ_INIT(&lu->tasks);
	TAILQ_INIT(&lu->resets);
	TAILQ_INIT(&lu->ranges);
	TAILQ_INIT(&lu->range_ready);
	lu->conditions = volume_is_read_only(volume) ? LU_READ_ONLY : 0;
	scsi_mode_reset(lu);
	scsi_alua_begin(lu);
	TAILQ_INSERT_TAIL(&device->lus, lu, entry);
	return lu;
}
