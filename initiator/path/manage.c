/* SPDX-License-Identifier: MIT
 *
 * Task management over a path that is up: LOGICAL UNIT RESET and ABORT TASK SET, one at a time.
 *
 * libiscsi 1.19 sends them as immediate requests in front of its queue, with the CmdSN of what is
 * there first.  Behind Data-Out that would be a CmdSN already used, which libiscsi takes for the
 * end of the connection; so they wait until nothing sendable is queued.  Its own functions for
 * resets cancel the commands of all logical units first: the bare request is used instead.
 *
 * A function that has completed has ended this path's own commands that were sent before it, and
 * the target says nothing of them (RFC 7143 11.5.1): they end here with TASK ABORTED.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/bytes.h"
#include "initiator/path/iscsi_path.h"

enum { NO_TAG = -1, COMPLETE = 0, NO_SUCH_UNIT = 2, NOT_SUPPORTED = 5, NOT_AUTHORIZED = 6 };

static int status_of(uint32_t response)
{
	switch (response) {
	case COMPLETE:
		return 0;
	case NO_SUCH_UNIT:
		return -ENXIO;
	case NOT_SUPPORTED:
		return -EOPNOTSUPP;
	case NOT_AUTHORIZED:
		return -EACCES;
	default:
		return -EIO;
	}
}

static void answered(struct iscsi_context *ctx, int status, void *command_data, void *arg)
{
	struct iscsi_path *p = arg;
	const uint32_t *response = command_data;

	if (p->tearing || p->lost)
		return; /* manage_end_lost tells */
	if (status != SCSI_STATUS_GOOD || !response) {
		session_lose_failed(p, errno);
		return;
	}
	p->heard = true;
	p->manage.answered = true;
	p->manage.status = status_of(*response);
}

/* The newest CmdSN among the commands in flight that surely were sent: libiscsi may hold back the
 * last of them behind a closed window. */
static void note_what_is_sent(struct iscsi_path *p)
{
	const struct path_io *pio;
	uint32_t newest = 0;
	bool any = false;

	for (pio = p->oldest; pio; pio = pio->next) {
		const struct iscsi_slot *slot = pio->task;

		if (!any || (int32_t)(slot->task.cmdsn - newest) > 0)
			newest = slot->task.cmdsn;
		any = true;
	}
	for (unsigned i = 0; i < PATH_COMMANDS_MAX; i++) {
		const struct iscsi_raw *raw = &p->raws[i];

		if (!raw->command)
			continue;
		if (!any || (int32_t)(raw->task.cmdsn - newest) > 0)
			newest = raw->task.cmdsn;
		any = true;
	}
	p->manage.covers = any;
	p->manage.last_cmdsn = newest - (uint32_t)iscsi_out_queue_length(p->ctx);
}

static bool is_covered(const struct iscsi_path *p, const struct scsi_task *task)
{
	return p->manage.covers && (int32_t)(task->cmdsn - p->manage.last_cmdsn) <= 0;
}

/* libiscsi lets go of them; their callbacks find p->aborting set. */
static void abort_covered(struct iscsi_path *p)
{
	struct path_io *pio, *next;

	p->aborting = true;
	for (pio = p->oldest; pio; pio = next) {
		struct iscsi_slot *slot = pio->task;

		next = pio->next;
		if (is_covered(p, &slot->task))
			(void)iscsi_scsi_cancel_task(p->ctx, &slot->task);
	}
	for (unsigned i = 0; i < PATH_COMMANDS_MAX; i++)
		if (p->raws[i].command && is_covered(p, &p->raws[i].task))
			(void)iscsi_scsi_cancel_task(p->ctx, &p->raws[i].task);
	p->aborting = false;
}

static struct path_fence *take_first(struct iscsi_path *p)
{
	struct iscsi_manage *m = &p->manage;
	struct path_fence *fence = m->waiting[0].fence;

	m->count--;
	memmove(m->waiting, m->waiting + 1, m->count * sizeof *m->waiting);
	m->sent = m->answered = m->swept = false;
	return fence;
}

/* What is still being sent may refer to the data of a command about to end. */
static bool is_sending(const struct iscsi_path *p)
{
	return iscsi_which_events(p->ctx) & POLLOUT;
}

void manage_settle(struct iscsi_path *p)
{
	struct iscsi_manage *m = &p->manage;

	if (!m->answered || m->swept || p->lost || is_sending(p))
		return;
	if (m->status == 0)
		abort_covered(p);
	m->swept = true;
}

void manage_pump(struct iscsi_path *p)
{
	struct iscsi_manage *m = &p->manage;

	if (m->swept) {
		int status = m->status;
		struct path_fence *fence = take_first(p);

		fence->done(fence, status);
	}
	if (!m->count || m->sent || !p->path.up || p->lost || is_sending(p))
		return;
	note_what_is_sent(p);
	m->sent = true;
	if (iscsi_task_mgmt_async(p->ctx, p->wire_lun, m->waiting[0].function, (uint32_t)NO_TAG, 0,
				  answered, p) != 0) {
		session_lose(p, PATH_DETECT_PROTOCOL, "cannot send a task management function: %s",
			     iscsi_get_error(p->ctx));
		loop_task_queue(p->path.loop, &p->later);
		return;
	}
	p->queued++;
	loop_task_queue(p->path.loop, &p->flush);
}

static int begin(struct path *path, enum iscsi_task_mgmt_funcs function, struct path_fence *fence)
{
	struct iscsi_path *p = container_of(path, struct iscsi_path, path);
	struct iscsi_manage *m = &p->manage;

	if (!p->path.up || p->lost)
		return -ENOTCONN;
	if (m->count >= PATH_FENCES_MAX)
		return -EBUSY;
	m->waiting[m->count].fence = fence;
	m->waiting[m->count].function = function;
	m->waiting[m->count].since_ns = loop_now_ns(p->path.loop);
	m->count++;
	loop_task_queue(p->path.loop, &p->flush); /* it pumps */
	return 0;
}

int manage_reset_unit(struct path *path, struct path_fence *fence)
{
	return begin(path, ISCSI_TM_LUN_RESET, fence);
}

int manage_abort_tasks(struct path *path, struct path_fence *fence)
{
	return begin(path, ISCSI_TM_ABORT_TASK_SET, fence);
}

void manage_end_lost(struct iscsi_path *p)
{
	assert(!p->ctx);
	while (p->manage.count) {
		int status = p->manage.answered ? p->manage.status : -ENOTCONN;
		struct path_fence *fence = take_first(p);

		fence->done(fence, status);
	}
}

uint64_t manage_waiting_ns(const struct iscsi_path *p, uint64_t now)
{
	return p->manage.count ? now - p->manage.waiting[0].since_ns : 0;
}
