/* SPDX-License-Identifier: MIT
 *
 * The scripted path.
 */
#include "fake_path.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

static struct fake_path *of(struct path *path)
{
	return container_of(path, struct fake_path, path);
}

static void end_cmd(struct fake_cmd *cmd)
{
	struct fake_path *fake = cmd->fake;
	struct path_io *pio = cmd->pio;

	loop_timer_cancel(fake->path.loop, &cmd->timer);
	TAILQ_REMOVE(&fake->cmds, cmd, link);
	free(cmd);
	fake->path.in_flight--;
	pio->done(pio);
}

void fake_end_aborted(struct fake_path *fake)
{
	struct fake_cmd *cmd, *next;

	for (cmd = TAILQ_FIRST(&fake->cmds); cmd; cmd = next) {
		next = TAILQ_NEXT(cmd, link);
		if (!cmd->aborted)
			continue;
		cmd->pio->result = PATH_STATUS;
		cmd->pio->scsi_status = 0x40;
		end_cmd(cmd);
	}
}

static struct fake_answer trouble(struct fake_path *fake)
{
	static const struct fake_answer kinds[] = {
	    {PATH_SENSE, 2, 0x6, 0x29, 0x00}, {PATH_SENSE, 2, 0x6, 0x2a, 0x06},
	    {PATH_STATUS, 0x08, 0, 0, 0},     {PATH_STATUS, 0x28, 0, 0, 0},
	    {PATH_SENSE, 2, 0xb, 0x00, 0x00}, {PATH_SENSE, 2, 0x2, 0x04, 0x0a},
	    {PATH_SENSE, 2, 0x2, 0x04, 0x0b},
	};
	return kinds[rng_below(&fake->rng, ARRAY_SIZE(kinds))];
}

/* What the state of its port group makes of a command. */
static struct fake_answer by_access(const struct fake_path *fake)
{
	struct fake_answer a = {.result = PATH_OK};

	for (unsigned i = 0; i < fake->disk->group_count; i++) {
		const struct fake_group *group = &fake->disk->groups[i];
		uint8_t state = group->state;

		if (group->id != fake->path.identity.target_port_group || state <= 1)
			continue;
		a = (struct fake_answer){PATH_SENSE, 2, 2, 4, 0x0b};
		a.ascq = state == 0xf ? 0x0a : state == 3 ? 0x0c : state == 0xe ? 0x12 : 0x0b;
	}
	return a;
}

static void answer(void *arg)
{
	struct fake_cmd *cmd = arg;
	struct fake_path *fake = cmd->fake;
	struct path_io *pio = cmd->pio;
	struct fake_answer a = by_access(fake);

	if (fake->script_at < fake->script_count)
		a = fake->script[fake->script_at++];
	else if (fake->trouble > 0 && rng_unit(&fake->rng) < fake->trouble)
		a = trouble(fake);
	fake->path.heard_ns = loop_now_ns(fake->path.loop);
	if (a.result == PATH_OK)
		fake_execute(fake->disk, pio);
	pio->result = a.result;
	pio->scsi_status = a.scsi_status;
	pio->sense_key = a.key;
	pio->asc = a.asc;
	pio->ascq = a.ascq;
	end_cmd(cmd);
}

static void lose(struct fake_path *fake, const struct path_io *pio)
{
	bool changes = pio->op == IO_WRITE || pio->op == IO_UNMAP;

	if (changes && fake->ghosts && rng_below(&fake->rng, 4))
		fake_ghost_new(fake, pio);
	else if (rng_below(&fake->rng, 2))
		fake_execute(fake->disk, pio);
}

static void end_all_lost(struct fake_path *fake, bool ended_by_owner)
{
	struct fake_cmd *cmd;

	fake->path.up = false;
	while ((cmd = TAILQ_FIRST(&fake->cmds))) {
		if (cmd->refused) {
			cmd->pio->result = PATH_NOT_SENT;
			end_cmd(cmd);
			continue;
		}
		lose(fake, cmd->pio);
		cmd->pio->result = PATH_LOST;
		fake->lost++;
		if (fake->on_lost)
			fake->on_lost(fake->arg, fake, cmd->pio);
		end_cmd(cmd);
	}
	fake_errands_end(fake, ended_by_owner);
}

void fake_path_kill(struct fake_path *fake, const char *why)
{
	loop_timer_cancel(fake->path.loop, &fake->connect_timer);
	end_all_lost(fake, false);
	fake->path.lost_by = PATH_DETECT_RESET;
	fake->path.config.event(fake->path.config.arg, &fake->path, PATH_EVENT_DOWN, why);
}

static void connected(void *arg)
{
	struct fake_path *fake = arg;
	struct fake_answer answer;

	if (fake->refuse_login) {
		fake->path.lost_by = PATH_DETECT_LOGIN;
		fake->path.config.event(fake->path.config.arg, &fake->path, PATH_EVENT_DOWN,
					"login refused");
		return;
	}
	fake->logins++;
	fake->path.identity = fake->identity;
	answer = by_access(fake);
	if (fake->no_access || (answer.result == PATH_SENSE && answer.ascq != 0x0a)) {
		fake->path.identity.no_capacity = true;
		fake->path.identity.blocks = 0;
		fake->path.identity.block_bytes = 0;
	}
	fake->path.lost_by = PATH_DETECT_NONE;
	fake->path.heard_ns = loop_now_ns(fake->path.loop);
	fake_ghosts_end(fake->disk, fake, fake->identity.portal_group);
	fake->path.up = true;
	fake->path.config.event(fake->path.config.arg, &fake->path, PATH_EVENT_UP, "");
}

static int fake_connect(struct path *path)
{
	struct fake_path *fake = of(path);

	assert(!path->up && !loop_timer_pending(&fake->connect_timer));
	if (fake->connect_error)
		return fake->connect_error;
	loop_timer_set(path->loop, &fake->connect_timer,
		       loop_now_ns(path->loop) + fake->connect_ns);
	return 0;
}

static void refuse(void *arg)
{
	struct fake_cmd *cmd = arg;

	cmd->pio->result = PATH_NOT_SENT;
	end_cmd(cmd);
}

static void fake_submit(struct path *path, struct path_io *pio)
{
	struct fake_path *fake = of(path);
	struct fake_cmd *cmd = calloc(1, sizeof *cmd);
	uint64_t takes = fake->service_ns;

	assert(cmd && !(path->up && path->identity.no_capacity));
	*cmd = (struct fake_cmd){.fake = fake, .pio = pio, .refused = !path->up};
	path->in_flight++;
	TAILQ_INSERT_TAIL(&fake->cmds, cmd, link);
	loop_timer_init(&cmd->timer, cmd->refused ? refuse : answer, cmd);
	if (cmd->refused) {
		loop_timer_set(path->loop, &cmd->timer, loop_now_ns(path->loop));
		return;
	}
	fake->submitted++;
	if (fake->service_spread_ns)
		takes += rng_below(&fake->rng, fake->service_spread_ns);
	if (!fake->hold)
		loop_timer_set(path->loop, &cmd->timer, loop_now_ns(path->loop) + takes);
	if (fake->on_submit)
		fake->on_submit(fake->arg, fake, pio);
}

static void fake_disconnect(struct path *path)
{
	loop_timer_cancel(path->loop, &of(path)->connect_timer);
	end_all_lost(of(path), true);
}

static void fake_free(struct path *path)
{
	fake_disconnect(path);
	TAILQ_REMOVE(&of(path)->disk->paths, of(path), link);
	free(of(path));
}

static const struct path_ops fake_ops = {
    .name = "fake",
    .connect = fake_connect,
    .submit = fake_submit,
    .command = fake_command,
    .fence = fake_fence,
    .reset_unit = fake_reset_unit,
    .abort_tasks = fake_abort_tasks,
    .disconnect = fake_disconnect,
    .free = fake_free,
};

struct fake_path *fake_path_new(struct loop *loop, struct fake_disk *disk, const char *portal,
				uint64_t seed)
{
	struct fake_path *fake = calloc(1, sizeof *fake);

	assert(fake);
	fake->path.ops = &fake_ops;
	fake->path.loop = loop;
	fake->path.config.portal = portal;
	fake->disk = disk;
	fake->service_ns = 100 * NS_PER_US;
	fake->connect_ns = NS_PER_MS;
	fake->errand_ns = 500 * NS_PER_US;
	fake->identity = (struct path_identity){
	    .designator = {0x60, 1, 2, 3, 4, 5, 6, 7},
	    .designator_bytes = 16,
	    .block_bytes = FAKE_BLOCK_BYTES,
	    .blocks = disk->blocks,
	    .can_unmap = true,
	};
	rng_init(&fake->rng, seed, rng_stream_of(portal));
	loop_timer_init(&fake->connect_timer, connected, fake);
	TAILQ_INIT(&fake->cmds);
	TAILQ_INIT(&fake->errands);
	TAILQ_INSERT_TAIL(&disk->paths, fake, link);
	return fake;
}

void fake_path_script(struct fake_path *fake, struct fake_answer a)
{
	assert(fake->script_count < FAKE_SCRIPT_MAX);
	fake->script[fake->script_count++] = a;
}
