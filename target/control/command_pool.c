/* SPDX-License-Identifier: MIT
 *
 * Commands about pools: draining a member, page moves, balancing.
 */
#include <errno.h>

#include "target/array/pool_status.h"
#include "target/control/command.h"

int control_run_member_drain(struct control_request *request)
{
	struct group *group = target_group(request->target);
	struct member *member;
	int r = control_want_member(request, &member);

	return r ? r : pool_drain(group_pool_of(group, member), member, &request->err);
}

int control_run_member_drain_stop(struct control_request *request)
{
	struct group *group = target_group(request->target);
	struct member *member;
	int r = control_want_member(request, &member);

	return r ? r : pool_drain_stop(group_pool_of(group, member), member, &request->err);
}

/* `pool=P`, or every pool. */
static int each_pool(struct control_request *request, void (*act)(struct pool *pool))
{
	struct group *group = target_group(request->target);
	struct pool *pool;
	const char *name;
	int r;

	if (!json_object_get(request->request, "pool")) {
		for (size_t i = 0; i < group_pool_count(group); i++)
			act(group_pool(group, i));
		return 0;
	}
	r = control_want_string(request, "pool", &name);
	if (r)
		return r;
	pool = group_find_pool(group, name);
	if (!pool)
		return err_set(&request->err, -ENOENT, "no pool %s", name);
	act(pool);
	return 0;
}

static void pause_moves(struct pool *pool)
{
	pool_moves_pause(pool, true);
}

static void resume_moves(struct pool *pool)
{
	pool_moves_pause(pool, false);
}

int control_run_moves_pause(struct control_request *request)
{
	return each_pool(request, pause_moves);
}

int control_run_moves_resume(struct control_request *request)
{
	return each_pool(request, resume_moves);
}

int control_run_balance(struct control_request *request)
{
	return each_pool(request, pool_balance_now);
}
