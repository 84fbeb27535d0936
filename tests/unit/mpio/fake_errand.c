/* SPDX-License-Identifier: MIT
 *
 * What is neither read nor write: raw commands (REPORT and SET TARGET PORT GROUPS), fencing logins
 * and resets of the unit.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "fake_path.h"

static struct fake_path *of(struct path *path)
{
	return container_of(path, struct fake_path, path);
}

static void errand_free(struct fake_errand *errand)
{
	loop_timer_cancel(errand->fake->path.loop, &errand->timer);
	TAILQ_REMOVE(&errand->fake->errands, errand, link);
	free(errand);
}

/* ---- commands ---- */

static void sense(struct path_command *command, uint8_t key, uint8_t asc, uint8_t ascq)
{
	command->result = PATH_SENSE;
	command->scsi_status = 2;
	command->sense_key = key;
	command->asc = asc;
	command->ascq = ascq;
}

static void report_groups(struct fake_disk *disk, struct path_command *command)
{
	bool extended = command->cdb[1] >> 5 == 1;
	uint8_t data[8 + 12 * FAKE_GROUPS_MAX] = {0};
	uint32_t at = extended ? 8 : 4;

	disk->rtpgs++;
	if (extended && disk->no_extended) {
		sense(command, 5, 0x24, 0);
		return;
	}
	if (extended) {
		data[4] = 1 << 4;
		data[5] = disk->transition_s;
	}
	for (unsigned i = 0; i < disk->group_count; i++) {
		const struct fake_group *group = &disk->groups[i];

		data[at] = (uint8_t)(group->preferred << 7 | group->state);
		data[at + 1] = 0x8f;
		put_be16(data + at + 2, group->id);
		data[at + 7] = 1;
		put_be16(data + at + 10, (uint16_t)(i + 1));
		at += 12;
	}
	put_be32(data, at - 4);
	command->got_bytes = MIN_OF(at, command->data_bytes);
	memcpy(command->data, data, command->got_bytes);
}

/* The group asked for is optimized from now on, the others are not. */
static void set_groups(struct fake_disk *disk, struct path_command *command)
{
	const uint8_t *list = command->data;

	assert(command->to_target && command->data_bytes == 8 && list[4] == 0);
	disk->stpgs++;
	disk->stpg_group = get_be16(list + 6);
	if (disk->refuse_stpgs) {
		disk->refuse_stpgs--;
		sense(command, 5, 0x67, 0x0a);
		return;
	}
	for (unsigned i = 0; i < disk->group_count; i++)
		disk->groups[i].state = disk->groups[i].id == disk->stpg_group ? 0 : 1;
}

static void run_command(struct fake_disk *disk, struct path_command *command)
{
	const struct fake_answer *answer = disk->next_command;

	command->result = PATH_OK;
	command->scsi_status = 0;
	command->got_bytes = 0;
	if (answer) {
		disk->next_command = NULL;
		command->result = answer->result;
		command->scsi_status = answer->scsi_status;
		command->sense_key = answer->key;
		command->asc = answer->asc;
		command->ascq = answer->ascq;
	} else if (command->cdb[0] == 0xa3 && (command->cdb[1] & 0x1f) == 0x0a) {
		report_groups(disk, command);
	} else if (command->cdb[0] == 0xa4 && command->cdb[1] == 0x0a) {
		set_groups(disk, command);
	} else {
		sense(command, 5, 0x20, 0);
	}
}

/* ---- fences and resets ---- */

/* As a target does that forgets the tasks of a session with it. */
static int end_nexus(struct fake_errand *errand)
{
	const struct fake_path *fake = errand->fake;

	if (fake->fence_status == 0)
		fake_ghosts_end(fake->disk, errand->victim, fake->path.identity.portal_group);
	return fake->fence_status;
}

static int reset(struct fake_errand *errand)
{
	struct fake_disk *disk = errand->fake->disk;
	struct fake_path *fake;
	struct fake_cmd *cmd;

	if (errand->fake->reset_status)
		return errand->fake->reset_status;
	disk->resets++;
	fake_ghosts_reset(disk);
	TAILQ_FOREACH (fake, &disk->paths, link)
		TAILQ_FOREACH (cmd, &fake->cmds, link) {
			disk->reset_victims++;
			loop_timer_cancel(disk->loop, &cmd->timer);
			cmd->aborted = true;
		}
	fake_end_aborted(errand->fake);
	return 0;
}

static int abort_set(struct fake_errand *errand)
{
	struct fake_cmd *cmd;

	errand->fake->disk->abort_sets++;
	TAILQ_FOREACH (cmd, &errand->fake->cmds, link) {
		loop_timer_cancel(errand->fake->disk->loop, &cmd->timer);
		cmd->aborted = true;
	}
	fake_end_aborted(errand->fake);
	return 0;
}

/* ---- errands ---- */

static void errand_due(void *arg)
{
	struct fake_errand *errand = arg;
	struct path_command *command = errand->command;
	struct path_fence *fence = errand->fence   ? errand->fence
				   : errand->reset ? errand->reset
						   : errand->abort;
	int status = 0;

	if (command)
		run_command(errand->fake->disk, command);
	else if (errand->abort)
		status = abort_set(errand);
	else
		status = errand->fence ? end_nexus(errand) : reset(errand);
	errand_free(errand);
	if (command)
		command->done(command);
	else
		fence->done(fence, status);
}

static void begin(struct fake_path *fake, const struct fake_errand *kind)
{
	struct fake_errand *errand = malloc(sizeof *errand);

	assert(errand);
	*errand = *kind;
	errand->fake = fake;
	TAILQ_INSERT_TAIL(&fake->errands, errand, link);
	loop_timer_init(&errand->timer, errand_due, errand);
	loop_timer_set(fake->path.loop, &errand->timer,
		       loop_now_ns(fake->path.loop) + fake->errand_ns);
}

void fake_command(struct path *path, struct path_command *command)
{
	assert(path->up);
	begin(of(path), &(struct fake_errand){.command = command});
}

int fake_fence(struct path *path, const struct path *victim, struct path_fence *fence)
{
	struct fake_path *lost = of((struct path *)victim);

	/* A login with an ISID that is in use would end that session. */
	assert(path->up && !victim->up && !loop_timer_pending(&lost->connect_timer));
	of(path)->fences++;
	begin(of(path), &(struct fake_errand){.fence = fence, .victim = lost});
	return 0;
}

int fake_reset_unit(struct path *path, struct path_fence *fence)
{
	assert(path->up);
	begin(of(path), &(struct fake_errand){.reset = fence});
	return 0;
}

int fake_abort_tasks(struct path *path, struct path_fence *fence)
{
	assert(path->up);
	begin(of(path), &(struct fake_errand){.abort = fence});
	return 0;
}

/* The login has ended: commands and resets with it, fences only when the owner ends the path. */
void fake_errands_end(struct fake_path *fake, bool ended_by_owner)
{
	struct fake_errand *errand, *next;

	for (errand = TAILQ_FIRST(&fake->errands); errand; errand = next) {
		struct path_command *command = errand->command;
		struct path_fence *fence = errand->fence;
		struct path_fence *unit = errand->reset ? errand->reset : errand->abort;

		next = TAILQ_NEXT(errand, link);
		if (fence && !ended_by_owner)
			continue;
		errand_free(errand);
		if (command) {
			command->result = PATH_LOST;
			command->done(command);
		} else if (fence) {
			fence->done(fence, -ECANCELED);
		} else {
			unit->done(unit, -ENOTCONN);
		}
	}
}
