/* SPDX-License-Identifier: MIT
 *
 * Fences: a login with another path's initiator name and ISID, which reinstates its session (RFC
 * 7143 6.3.5) and so ends the old one with its tasks, and LOGICAL UNIT RESET.
 *
 * The login has a stream of its own: it goes on when the path it began on is lost.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/sim/sim_impl.h"
#include "target/scsi/scsi.h"

static void fence_destroy(struct sim_guard *guard)
{
	struct sim_fence *fence = container_of(guard, struct sim_fence, guard);

	free(fence);
}

static void fence_free(struct sim_fence *fence)
{
	struct loop *loop = fence->path->path.loop;

	loop_timer_cancel(loop, &fence->timer);
	loop_task_cancel(loop, &fence->over);
	sim_conn_close(&fence->conn);
	TAILQ_REMOVE(&fence->path->fences, fence, entry);
	fence->path->fence_count--;
	sim_enter(&fence->guard);
	fence->guard.free_wanted = true;
	sim_leave(&fence->guard);
}

/* From the loop: tells, and ends. */
static void fence_over(void *arg)
{
	struct sim_fence *fence = arg;
	struct path_fence *told = fence->fence;
	struct sim_path *path = fence->path;
	int status = fence->status;

	sim_enter(&path->guard);
	fence_free(fence);
	told->done(told, status);
	sim_leave(&path->guard);
}

static void conclude(struct sim_fence *fence, int status)
{
	fence->status = status;
	loop_task_queue(fence->path->path.loop, &fence->over);
}

static void fence_due(void *arg)
{
	struct sim_fence *fence = arg;

	conclude(fence, fence->proved ? 0 : -ETIMEDOUT);
}

static struct sim_fence *fence_new(struct sim_path *path, struct path_fence *told)
{
	struct sim_fence *fence = NULL;
	struct loop *loop = path->path.loop;

	if (path->fence_count < PATH_FENCES_MAX)
		fence = calloc(1, sizeof *fence);
	if (!fence)
		return NULL;
	fence->guard.destroy = fence_destroy;
	fence->path = path;
	fence->fence = told;
	loop_timer_init(&fence->timer, fence_due, fence);
	loop_task_init(&fence->over, fence_over, fence);
	loop_timer_set(loop, &fence->timer, loop_now_ns(loop) + path->path.config.login_timeout_ns);
	TAILQ_INSERT_TAIL(&path->fences, fence, entry);
	path->fence_count++;
	return fence;
}

/* ---- reinstatement ---- */

static void logged_in(void *arg)
{
	struct sim_fence *fence = arg;
	uint8_t bhs[BHS_BYTES];

	fence->proved = true;
	sim_bhs_begin(bhs, OP_LOGOUT | OP_IMMEDIATE, FLAG_FINAL | LOGOUT_SESSION);
	put_be32(bhs + BHS_ITT, SIM_TAG_LOGOUT);
	put_be32(bhs + BHS_CMD_SN, fence->conn.cmd_sn);
	sim_conn_send(&fence->conn, bhs, NULL, 0, 0, 0);
}

static void nothing_heard(void *arg) {}

static void no_data(void *arg, const uint8_t *bhs, uint32_t at, const uint8_t *data, uint32_t bytes)
{
}

static void on_pdu(void *arg, const uint8_t *bhs, const uint8_t *data, uint32_t bytes)
{
	if (bhs_opcode(bhs) == OP_LOGOUT_RESPONSE)
		conclude(arg, 0);
}

static void login_lost(void *arg, enum path_detect by, const char *why)
{
	struct sim_fence *fence = arg;

	if (fence->over.queued)
		return;
	if (fence->proved)
		conclude(fence, 0);
	else
		conclude(fence, by == PATH_DETECT_TCP_TIMEOUT ? -ETIMEDOUT : -ECONNREFUSED);
}

int sim_fence(struct path *base, const struct path *victim, struct path_fence *told)
{
	static const struct sim_conn_ops fence_ops = {logged_in, nothing_heard, no_data, on_pdu,
						      login_lost};
	struct sim_path *path = sim_path_of(base);
	const struct sim_path *old = container_of(victim, struct sim_path, path);
	struct sim_fence *fence;
	struct sim_conn *conn;

	if (!base->up)
		return -ENOTCONN;
	fence = fence_new(path, told);
	if (!fence)
		return -EBUSY;
	conn = &fence->conn;
	snprintf(fence->initiator, sizeof fence->initiator, "%s", old->initiator);
	conn->link = path->link;
	conn->ops = &fence_ops;
	conn->arg = fence;
	conn->guard = &fence->guard;
	conn->initiator = fence->initiator;
	conn->target = path->target_name;
	memcpy(conn->isid, old->conn.isid, sizeof conn->isid);
	conn->tcp_user_timeout_ns = base->config.tcp_user_timeout_ns;
	if (sim_conn_open(conn) < 0)
		conclude(fence, -ENOMEM);
	return 0;
}

/* ---- task management ---- */

static int function(struct path *base, struct path_fence *told, unsigned code)
{
	struct sim_path *path = sim_path_of(base);
	struct sim_fence *fence;
	uint8_t bhs[BHS_BYTES];

	if (!base->up)
		return -ENOTCONN;
	fence = fence_new(path, told);
	if (!fence)
		return -EBUSY;
	fence->function = true;
	fence->number = path->next_fence++ % SIM_TAG_FUNCTION;
	fence->cmd_sn = path->conn.cmd_sn;
	sim_bhs_begin(bhs, OP_TASK_MANAGEMENT | OP_IMMEDIATE, FLAG_FINAL | code);
	memcpy(bhs + BHS_LUN, path->lun, sizeof path->lun);
	put_be32(bhs + BHS_ITT, SIM_TAG_FUNCTION + fence->number);
	put_be32(bhs + BHS_REFERENCED_TAG, ISCSI_NO_TAG);
	put_be32(bhs + BHS_CMD_SN, path->conn.cmd_sn);
	sim_conn_send(&path->conn, bhs, NULL, 0, 0, 0);
	return 0;
}

int sim_reset_unit(struct path *base, struct path_fence *told)
{
	return function(base, told, TMF_LU_RESET);
}

int sim_abort_tasks(struct path *base, struct path_fence *told)
{
	return function(base, told, TMF_ABORT_TASK_SET);
}

static struct sim_command *sent_before(const struct sim_path *path, uint32_t cmd_sn)
{
	struct sim_command *command;

	TAILQ_FOREACH (command, &path->active, entry)
		if (!command->waiting && (command->pio || command->raw) &&
		    (int32_t)(command->cmd_sn - cmd_sn) < 0)
			return command;
	return NULL;
}

/* The target has ended them without an answer (RFC 7143 11.5.1). */
static void end_covered(struct sim_path *path, uint32_t cmd_sn)
{
	static const uint8_t no_sense[SIM_SENSE_BYTES];
	struct sim_answer answer = {.status = SCSI_TASK_ABORTED, .sense = no_sense};
	struct sim_command *command;

	while (path->phase == SIM_UP && (command = sent_before(path, cmd_sn)))
		sim_path_answered(path, command, &answer);
}

void sim_function_answered(struct sim_path *path, const uint8_t *bhs)
{
	struct sim_fence *fence;

	for (fence = TAILQ_FIRST(&path->fences); fence; fence = TAILQ_NEXT(fence, entry)) {
		bool complete = bhs[BHS_RESPONSE] == TMF_COMPLETE;
		uint32_t cmd_sn = fence->cmd_sn;

		if (!fence->function || bhs_itt(bhs) != SIM_TAG_FUNCTION + fence->number)
			continue;
		conclude(fence, complete ? 0 : -EIO); /* tells after this */
		if (complete)
			end_covered(path, cmd_sn);
		return;
	}
}

void sim_functions_lost(struct sim_path *path)
{
	struct sim_fence *fence;

	for (fence = TAILQ_FIRST(&path->fences); fence; fence = TAILQ_NEXT(fence, entry)) {
		if (fence->function && !fence->over.queued)
			conclude(fence, -ENOTCONN);
	}
}

void sim_fences_cancel(struct sim_path *path)
{
	struct sim_fence *fence;

	while ((fence = TAILQ_FIRST(&path->fences))) {
		if (!fence->over.queued)
			fence->status = -ECANCELED;
		fence_over(fence);
	}
}
