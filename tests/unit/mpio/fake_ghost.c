/* SPDX-License-Identifier: MIT
 *
 * The unit's content, and what lost writes do to it late.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "fake_path.h"

void fake_disk_init(struct fake_disk *disk, struct loop *loop, uint64_t blocks)
{
	*disk = (struct fake_disk){.loop = loop, .blocks = blocks};
	disk->data = calloc(blocks, FAKE_BLOCK_BYTES);
	assert(disk->data);
	TAILQ_INIT(&disk->ghosts);
	TAILQ_INIT(&disk->paths);
}

static void ghost_free(struct fake_ghost *ghost)
{
	loop_timer_cancel(ghost->disk->loop, &ghost->timer);
	TAILQ_REMOVE(&ghost->disk->ghosts, ghost, link);
	free(ghost->data);
	free(ghost);
}

void fake_disk_done(struct fake_disk *disk)
{
	struct fake_ghost *ghost;

	while ((ghost = TAILQ_FIRST(&disk->ghosts)))
		ghost_free(ghost);
	free(disk->data);
}

void fake_execute(struct fake_disk *disk, const struct path_io *pio)
{
	uint8_t *at = disk->data + pio->lba * FAKE_BLOCK_BYTES;
	size_t size = (size_t)pio->blocks * FAKE_BLOCK_BYTES;

	assert(pio->lba + pio->blocks <= disk->blocks);
	if (pio->op == IO_WRITE)
		iov_to_mem(pio->iov, pio->iov_count, 0, at, size);
	else if (pio->op == IO_READ)
		iov_from_mem(pio->iov, pio->iov_count, 0, at, size);
	else if (pio->op == IO_UNMAP)
		memset(at, 0, size);
}

static void ghost_due(void *arg)
{
	struct fake_ghost *ghost = arg;
	uint8_t *at = ghost->disk->data + ghost->lba * FAKE_BLOCK_BYTES;
	size_t size = (size_t)ghost->blocks * FAKE_BLOCK_BYTES;

	ghost->disk->ghosts_executed++;
	if (ghost->op == IO_WRITE)
		memcpy(at, ghost->data, size);
	else
		memset(at, 0, size);
	ghost_free(ghost);
}

static uint64_t up_to(struct fake_path *fake, uint64_t most)
{
	return most ? rng_below(&fake->rng, most + 1) : 0;
}

void fake_ghost_new(struct fake_path *fake, const struct path_io *pio)
{
	struct fake_disk *disk = fake->disk;
	struct fake_ghost *ghost = calloc(1, sizeof *ghost);
	size_t size = (size_t)pio->blocks * FAKE_BLOCK_BYTES;

	assert(ghost);
	*ghost = (struct fake_ghost){
	    .disk = disk,
	    .fake = fake,
	    .group = fake->path.identity.portal_group,
	    .op = pio->op,
	    .lba = pio->lba,
	    .blocks = pio->blocks,
	    .data = malloc(size),
	    .arrives_ns = loop_now_ns(disk->loop) + up_to(fake, fake->travel_ns),
	};
	assert(ghost->data);
	if (pio->op == IO_WRITE)
		iov_to_mem(pio->iov, pio->iov_count, 0, ghost->data, size);
	disk->ghosts_made++;
	TAILQ_INSERT_TAIL(&disk->ghosts, ghost, link);
	loop_timer_init(&ghost->timer, ghost_due, ghost);
	loop_timer_set(disk->loop, &ghost->timer, ghost->arrives_ns + up_to(fake, fake->linger_ns));
}

void fake_ghosts_end(struct fake_disk *disk, const struct fake_path *fake, int group)
{
	struct fake_ghost *ghost, *next;

	for (ghost = TAILQ_FIRST(&disk->ghosts); ghost; ghost = next) {
		next = TAILQ_NEXT(ghost, link);
		if (ghost->fake != fake || ghost->group != group)
			continue;
		disk->ghosts_ended++;
		ghost_free(ghost);
	}
}

void fake_ghosts_reset(struct fake_disk *disk)
{
	struct fake_ghost *ghost, *next;

	for (ghost = TAILQ_FIRST(&disk->ghosts); ghost; ghost = next) {
		next = TAILQ_NEXT(ghost, link);
		if (ghost->arrives_ns > loop_now_ns(disk->loop))
			continue;
		disk->ghosts_ended++;
		ghost_free(ghost);
	}
}
