/* SPDX-License-Identifier: MIT
 *
 * The simulated path from inside: commands of one path on its session, fences, identification.
 * Private to harness/sim.
 *
 * A path that loses its session reports what was in flight as lost at once, as the iscsi path
 * does: the target may still execute what is on its way to it.
 */
#ifndef SANLAB_HARNESS_SIM_SIM_IMPL_H
#define SANLAB_HARNESS_SIM_SIM_IMPL_H

#include <sys/queue.h>

#include "harness/sim/initiator.h"
#include "initiator/path/identity.h"

enum {
	SIM_UNMAP_LIST_BYTES = 24,
	SIM_PROBE_ATTENTIONS = 16, /* unit attentions taken during one identification */
	SIM_PROBE_PAUSE_NS = 50 * 1000 * 1000,
	SIM_MAX_IN_FLIGHT = 4096,
	/* Slots besides those of I/O.  The one to identify with serves as a raw one later. */
	SIM_OTHER_COMMANDS = PATH_COMMANDS_MAX,
	/* Initiator task tags: commands have their index. */
	SIM_TAG_FUNCTION = 0x10000,
	SIM_TAG_PING = 0x20000,
	SIM_TAG_LOGOUT = 0x30000,
};

/* ---- cdb.c, session.c ---- */

struct sim_command {
	uint32_t index;
	struct path_io *pio;
	struct path_command *raw; /* neither: identification */
	uint8_t cdb[16];
	uint32_t in_bytes, out_bytes; /* expected; one of them is 0 */
	const struct iovec *iov;
	unsigned iov_count;
	struct iovec own_iov;
	uint8_t unmap[SIM_UNMAP_LIST_BYTES];
	uint64_t submit_ns;
	uint32_t cmd_sn;
	bool busy, waiting;		/* in use; for the target's window */
	TAILQ_ENTRY(sim_command) entry; /* free, or active in the order of submission */
};
TAILQ_HEAD(sim_command_list, sim_command);

/* The end of a command as the target tells it. */
struct sim_answer {
	uint8_t status;
	uint32_t missing_bytes; /* residual, underflow */
	const uint8_t *sense;	/* at least 18 bytes, zeros when there was none */
};

enum { SIM_SENSE_BYTES = 18 };

struct sim_probe {
	unsigned step, attentions;
	struct identity_facts facts;
	uint8_t data[IDENTITY_DATA_BYTES];
};

enum sim_phase {
	SIM_DOWN,
	SIM_REFUSED, /* the link is cut: the login fails soon */
	SIM_LOGIN,
	SIM_UP,
	SIM_LOST, /* I/O and event are to be told */
};

/* One path_fence under way: a login of its own, or a task management function of the path. */
struct sim_fence {
	struct sim_guard guard; /* first */
	struct sim_path *path;
	struct path_fence *fence;
	struct sim_conn conn;
	char initiator[224];
	bool function; /* of task management, with tag SIM_TAG_FUNCTION + number */
	uint32_t number;
	uint32_t cmd_sn; /* it ends commands before this one */
	bool proved;	 /* logged in: what is left is to log out */
	struct loop_timer timer;
	struct loop_task over;
	int status;
	TAILQ_ENTRY(sim_fence) entry;
};
TAILQ_HEAD(sim_fence_list, sim_fence);

struct sim_path {
	struct path path;	/* first: the interface's view of this */
	struct sim_guard guard; /* against path_free from within a callback */
	char portal[64], target_name[224], initiator[224];
	struct sim_link *link;
	struct sim_conn conn;
	uint8_t lun[8];

	enum sim_phase phase;
	char why[SIM_WHY_BYTES];
	enum path_detect by;
	unsigned pings;		 /* since the target was heard last */
	struct loop_timer tick;	 /* login and answer deadlines, keep-alive */
	struct loop_timer pause; /* an identification command that has to wait */
	struct loop_task later;	 /* what must not happen within a call */

	struct sim_command *commands;
	struct sim_command_list free, active;
	unsigned raw_in_flight;
	unsigned waiting; /* of the active ones: for the window */
	struct sim_probe probe;

	struct sim_fence_list fences;
	unsigned fence_count;
	uint32_t next_fence;

	/* linked by their `next` */
	struct path_io *refused, **refused_tail;
	struct path_io *lost, **lost_tail;
	struct path_command *raw_refused, **raw_refused_tail;
	struct path_command *raw_lost, **raw_lost_tail;
};

/* ---- session.c: commands on the wire ---- */
struct sim_command *sim_command_new(struct sim_path *path); /* NULL: all in use */
void sim_command_send(struct sim_path *path, struct sim_command *command);
void sim_command_free(struct sim_path *path, struct sim_command *command);
void sim_ping(struct sim_path *path);
extern const struct sim_conn_ops sim_session_ops; /* arg: the path */

/* ---- cdb.c ---- */
uint32_t sim_data_bytes(const struct path *path, const struct path_io *pio);
void sim_cdb_build(struct sim_command *command, const struct path *path);
void sim_result_take(struct path_io *pio, const struct sim_answer *answer);

/* ---- probe.c ---- */
void sim_probe_start(struct sim_path *path);
void sim_probe_answered(struct sim_path *path, const struct sim_answer *answer);
void sim_probe_send(void *arg); /* the path */

/* ---- fence.c ---- */
int sim_fence(struct path *base, const struct path *victim, struct path_fence *told);
int sim_reset_unit(struct path *base, struct path_fence *told);
int sim_abort_tasks(struct path *base, struct path_fence *told);
void sim_function_answered(struct sim_path *path, const uint8_t *bhs);
/* The session is over: nobody will answer its functions. */
void sim_functions_lost(struct sim_path *path);
void sim_fences_cancel(struct sim_path *path);

/* ---- path_command.c: raw commands ---- */
void sim_raw_submit(struct path *base, struct path_command *raw);
void sim_raw_answered(struct sim_path *path, struct sim_command *command,
		      const struct sim_answer *answer);
void sim_raw_append(struct path_command ***tail, struct path_command *raw);
void sim_raw_end(struct path_command **list, struct path_command ***tail, enum path_result result);

/* ---- path_sim.c ---- */
static inline struct sim_path *sim_path_of(struct path *path)
{
	return container_of(path, struct sim_path, path);
}
void sim_path_heard(struct sim_path *path);
void sim_path_lose(struct sim_path *path, enum path_detect by, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void sim_path_came_up(struct sim_path *path);
void sim_path_answered(struct sim_path *path, struct sim_command *command,
		       const struct sim_answer *answer);

#endif
