/* SPDX-License-Identifier: MIT
 *
 * The foreign workload: nothing but the wait for the first I/O.
 */
#include "harness/workload/foreign.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"

static const struct cfg_field fields[] = {
    {.key = "wait",
     .type = CFG_DURATION,
     .offset = offsetof(struct foreign_config, wait_ns),
     .preset = "10m",
     .help = "how long the load may be in coming"},
    {.key = "after-ios",
     .type = CFG_UINT,
     .offset = offsetof(struct foreign_config, after_ios),
     .preset = "1",
     .min = 1,
     .max = 1e12,
     .help = "it has begun when so many I/Os have ended: systems read a disk before they use it"},
    {.key = "pause",
     .type = CFG_DURATION,
     .offset = offsetof(struct foreign_config, pause_ns),
     .preset = "500ms",
     .min = 100e6,
     .max = 3600e9,
     .help = "time without I/O that is worth a line in the report"},
};
const struct cfg_schema foreign_schema = {
    .name = "workload",
    .size = sizeof(struct foreign_config),
    .fields = fields,
    .field_count = ARRAY_SIZE(fields),
};

struct foreign_config *foreign_config_new(void)
{
	struct foreign_config *config = calloc(1, sizeof *config);

	if (config)
		*config = (struct foreign_config){
		    .wait_ns = 600 * NS_PER_S, .after_ios = 1, .pause_ns = 500 * NS_PER_MS};
	return config;
}

struct foreign {
	struct workload base; /* first */
	struct loop *loop;
	struct loop_timer limit, tick;
	uint64_t wait_ns;
	workload_fn prepared;
	void *arg;
};

static void end_wait(struct foreign *foreign, int status)
{
	workload_fn prepared = foreign->prepared;

	foreign->prepared = NULL;
	loop_timer_cancel(foreign->loop, &foreign->limit);
	loop_timer_cancel(foreign->loop, &foreign->tick);
	if (prepared)
		prepared(foreign->arg, status);
}

static void nobody_came(void *arg)
{
	end_wait(arg, -ETIMEDOUT);
}

/* Waiting is progress here, as long as there is time left. */
static void tick(void *arg)
{
	struct foreign *foreign = arg;
	uint64_t now_ns = loop_now_ns(foreign->loop);
	uint64_t left_ns = foreign->limit.deadline_ns - MIN_OF(now_ns, foreign->limit.deadline_ns);

	foreign->base.progress = 1 - (double)left_ns / (double)foreign->wait_ns;
	loop_timer_set(foreign->loop, &foreign->tick, now_ns + NS_PER_S);
}

void foreign_noticed(struct workload *workload)
{
	end_wait(container_of(workload, struct foreign, base), 0);
}

static int open_foreign(const struct workload_env *env, const void *config,
			struct workload **ret_workload, struct err *err)
{
	const struct foreign_config *from = config;
	struct foreign *foreign = calloc(1, sizeof *foreign);

	if (!foreign)
		return err_set(err, -ENOMEM, "no memory for the workload");
	foreign->base.ops = &foreign_workload_ops;
	foreign->base.plan.summary = "foreign: the load is that of whoever logs in";
	foreign->loop = env->loop;
	foreign->wait_ns = MAX_OF(from->wait_ns, NS_PER_S);
	loop_timer_init(&foreign->limit, nobody_came, foreign);
	loop_timer_init(&foreign->tick, tick, foreign);
	*ret_workload = &foreign->base;
	return 0;
}

static void prepare_foreign(struct workload *workload, workload_fn done, void *arg)
{
	struct foreign *foreign = container_of(workload, struct foreign, base);

	foreign->prepared = done;
	foreign->arg = arg;
	loop_timer_set(foreign->loop, &foreign->limit,
		       loop_now_ns(foreign->loop) + foreign->wait_ns);
	tick(foreign);
}

static void start_foreign(struct workload *workload)
{
	workload->progress = 1;
}

static void stop_foreign(struct workload *workload, workload_fn drained, void *arg)
{
	end_wait(container_of(workload, struct foreign, base), -ECANCELED);
	drained(arg, 0);
}

static void verify_foreign(struct workload *workload, workload_fn done, void *arg)
{
	done(arg, 0);
}

static void free_foreign(struct workload *workload)
{
	struct foreign *foreign = container_of(workload, struct foreign, base);

	loop_timer_cancel(foreign->loop, &foreign->limit);
	loop_timer_cancel(foreign->loop, &foreign->tick);
	free(foreign);
}

const struct workload_ops foreign_workload_ops = {
    .name = "foreign",
    .help = "none of our own: an initiator elsewhere is watched while faults happen",
    .schema = &foreign_schema,
    .open = open_foreign,
    .prepare = prepare_foreign,
    .start = start_foreign,
    .stop = stop_foreign,
    .verify = verify_foreign,
    .free = free_foreign,
};
