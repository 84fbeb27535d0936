/* SPDX-License-Identifier: MIT
 *
 * Queue and progress of a modelled drive.
 */
#include "target/drive/drive_core.h"

#include <assert.h>

#include "base/bytes.h"

enum { DEPTH_DEFAULT = 32 };

int drive_core_init(struct drive_core *core, const struct drive_model *model,
		    const struct drive_scheduler *scheduler, uint64_t size_bytes,
		    struct drive_counters *counters)
{
	*core = (struct drive_core){
	    .model = model,
	    .scheduler = scheduler,
	    .slow = {.factor = 1},
	    .depth = model->queue_depth ? model->queue_depth : DEPTH_DEFAULT,
	    .counters = counters,
	};
	assert(core->depth <= COMMAND_QUEUE_MAX);
	if (!scheduler)
		core->scheduler =
		    drive_scheduler_find(model->scheduler ? model->scheduler : "satf");
	assert(core->scheduler);
	TAILQ_INIT(&core->door);
	TAILQ_INIT(&core->ending);
	TAILQ_INIT(&core->flushes);
	if (model->rpm)
		return disk_init(&core->disk, model, size_bytes);
	ssd_init(&core->ssd, model);
	return 0;
}

/* By due instant, equal ones in the order they got here. */
static void end_at_due(struct drive_core *core, struct drive_command *command)
{
	struct drive_command *before = TAILQ_LAST(&core->ending, command_list);
	while (before && before->due_ns > command->due_ns)
		before = TAILQ_PREV(before, command_list, entry);
	if (before)
		TAILQ_INSERT_AFTER(&core->ending, before, command, entry);
	else
		TAILQ_INSERT_HEAD(&core->ending, command, entry);
}

/* The drive takes the command in at NOW. */
static void admit(struct drive_core *core, struct drive_command *command, uint64_t now_ns)
{
	core->inside++;
	command->times = (struct command_times){.start_ns = now_ns};
	command->ready_ns = now_ns + core->model->overhead_ns;
	if (command->op == IO_UNMAP || command->length_bytes == 0) {
		command->due_ns = command->ready_ns;
		end_at_due(core, command);
		return;
	}
	if (!core->model->rpm) {
		core->counters->busy_ns += ssd_start(&core->ssd, command, &core->slow);
		core->counters->served++;
		end_at_due(core, command);
		return;
	}
	if (disk_buffer_hit(&core->disk, command, now_ns)) {
		core->counters->buffer_hits++;
		command->due_ns += core->slow.extra_ns;
		end_at_due(core, command);
		return;
	}
	disk_locate(&core->disk, command);
	assert(core->queue.count < COMMAND_QUEUE_MAX);
	core->queue.commands[core->queue.count++] = command;
}

/* When the mechanism takes up its next command; it is free from free_ns on. */
static uint64_t decision_ns(const struct drive_core *core)
{
	uint64_t first_ready_ns = DRIVE_CORE_NEVER;
	for (unsigned i = 0; i < core->queue.count; i++)
		first_ready_ns = MIN_OF(first_ready_ns, core->queue.commands[i]->ready_ns);
	return core->queue.count ? MAX_OF(first_ready_ns, core->free_ns) : DRIVE_CORE_NEVER;
}

/* Lets the mechanism take up its next command if it would have by NOW. */
static bool advance_once(struct drive_core *core, uint64_t now_ns)
{
	if (!core->queue.count || core->free_ns > now_ns)
		return false;
	uint64_t at_ns = decision_ns(core);
	if (at_ns > now_ns)
		return false;
	unsigned picked = drive_scheduler_pick(core->scheduler, &core->disk, &core->queue, at_ns,
					       &core->counters->overdue);
	struct drive_command *command = core->queue.commands[picked];
	core->queue.commands[picked] = core->queue.commands[--core->queue.count];
	disk_start(&core->disk, command, &core->slow, at_ns);
	core->free_ns = command->due_ns;
	core->counters->busy_ns += command->due_ns - at_ns;
	core->counters->served++;
	end_at_due(core, command);
	return true;
}

/* Up to NOW, or to the next end: what ends lets others in. */
static void advance(struct drive_core *core, uint64_t now_ns)
{
	const struct drive_command *first;
	do
		first = TAILQ_FIRST(&core->ending);
	while (advance_once(core, first ? MIN_OF(now_ns, first->due_ns) : now_ns));
}

/* ---- FLUSH ---- */

/* The order of the oldest command that is not a FLUSH. */
static uint64_t oldest_order(const struct drive_core *core)
{
	const struct drive_command *command = TAILQ_FIRST(&core->door);
	uint64_t oldest = command ? command->order : UINT64_MAX;

	for (unsigned i = 0; i < core->queue.count; i++)
		oldest = MIN_OF(oldest, core->queue.commands[i]->order);
	TAILQ_FOREACH (command, &core->ending, entry)
		if (command->op != IO_FLUSH)
			oldest = MIN_OF(oldest, command->order);
	return oldest;
}

/* Those that wait for nothing any more. */
static void release_flushes(struct drive_core *core, uint64_t now_ns)
{
	struct drive_command *flush;

	if (TAILQ_EMPTY(&core->flushes))
		return;
	uint64_t oldest = oldest_order(core);
	while ((flush = TAILQ_FIRST(&core->flushes)) && flush->order < oldest) {
		TAILQ_REMOVE(&core->flushes, flush, entry);
		flush->due_ns = MAX_OF(now_ns, flush->arrival_ns) + core->model->overhead_ns;
		end_at_due(core, flush);
	}
}

/* ---- the shell's side ---- */

void drive_core_add(struct drive_core *core, struct drive_command *command, uint64_t now_ns)
{
	advance(core, now_ns);
	command->order = core->next_order++;
	command->arrival_ns = now_ns;
	if (command->op == IO_FLUSH) {
		TAILQ_INSERT_TAIL(&core->flushes, command, entry);
		release_flushes(core, now_ns);
	} else if (core->inside < core->depth) {
		admit(core, command, now_ns);
	} else {
		TAILQ_INSERT_TAIL(&core->door, command, entry);
	}
}

uint64_t drive_core_next_ns(const struct drive_core *core)
{
	const struct drive_command *first = TAILQ_FIRST(&core->ending);
	return MIN_OF(first ? first->due_ns : DRIVE_CORE_NEVER, decision_ns(core));
}

struct drive_command *drive_core_take(struct drive_core *core, uint64_t now_ns)
{
	advance(core, now_ns);
	struct drive_command *command = TAILQ_FIRST(&core->ending), *waiting;
	if (!command || command->due_ns > now_ns)
		return NULL;
	TAILQ_REMOVE(&core->ending, command, entry);
	core->counters->completed++;
	core->counters->response_ns += command->due_ns - command->arrival_ns;
	if (command->op != IO_FLUSH) {
		core->inside--;
		waiting = TAILQ_FIRST(&core->door);
		if (waiting) {
			TAILQ_REMOVE(&core->door, waiting, entry);
			admit(core, waiting, MAX_OF(command->due_ns, waiting->arrival_ns));
		}
		release_flushes(core, command->due_ns);
	}
	return command;
}

struct drive_command *drive_core_drain(struct drive_core *core)
{
	struct command_list *const lists[] = {&core->ending, &core->door, &core->flushes};

	if (core->queue.count)
		return core->queue.commands[--core->queue.count];
	for (unsigned i = 0; i < ARRAY_SIZE(lists); i++) {
		struct drive_command *command = TAILQ_FIRST(lists[i]);
		if (command) {
			TAILQ_REMOVE(lists[i], command, entry);
			return command;
		}
	}
	return NULL;
}
