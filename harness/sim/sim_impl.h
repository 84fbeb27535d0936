/* SPDX-License-Identifier: MIT
 *
 * The simulated path from inside: links carry messages, a session is one login over a link, a
 * command is one CDB on its way there, in the target, or on its way back.  Private to harness/sim.
 *
 * Memory: data leaves the initiator's memory when a request arrives (copied, as a wire does) and
 * enters it when an answer arrives, so nothing on the target's side refers to a path_io.  Still a
 * path that loses its session reports PATH_LOST only when the target has ended the session's
 * tasks: a write that was cut off cannot come after its own re-issue.  path_disconnect and
 * path_free do not wait; what the target still holds then ends by itself, the session with it.
 */
#ifndef SANLAB_HARNESS_SIM_SIM_IMPL_H
#define SANLAB_HARNESS_SIM_SIM_IMPL_H

#include <sys/queue.h>

#include "base/buf.h"
#include "base/rng.h"
#include "harness/sim/sim.h"
#include "initiator/path/identity.h"

enum {
	SIM_HEADER_BYTES = 48, /* every message costs as much as a basic header segment */
	SIM_UNMAP_LIST_BYTES = 24,
	SIM_PROBE_ATTENTIONS = 16, /* unit attentions taken during one identification */
	SIM_PROBE_PAUSE_NS = 50 * 1000 * 1000,
	SIM_UNANSWERED_PINGS = 2, /* keep-alives without an answer before the path is lost */
	SIM_MAX_IN_FLIGHT = 4096,
};

/* ---- link.c ---- */

enum sim_direction { SIM_TO_TARGET, SIM_TO_INITIATOR, SIM_DIRECTIONS };

struct sim_message {
	void (*arrived)(struct sim_message *message);
	void *owner;
	uint64_t arrive_ns;
	enum sim_direction direction;
	bool crossing;
	TAILQ_ENTRY(sim_message) entry;
};

/* One direction of a link: a pipe in which nothing overtakes, whatever the jitter. */
struct sim_lane {
	struct sim_link *link;
	TAILQ_HEAD(sim_message_list, sim_message) queue;
	uint64_t busy_until_ns;	 /* the sender's port */
	struct loop_timer timer; /* the head's arrival */
};

struct sim_link {
	struct loop *loop;
	struct sim_link_config config;
	struct rng rng;
	struct sim_lane lanes[SIM_DIRECTIONS];
	TAILQ_HEAD(sim_session_list, sim_session) sessions;
	struct buf_pool *pool; /* write data on the target's side */
	bool cut, stalled;
	unsigned refs;
};

struct sim_link *sim_link_ref(struct sim_link *link);
struct sim_link *sim_link_unref(struct sim_link *link);
void sim_link_send(struct sim_link *link, struct sim_message *message, enum sim_direction direction,
		   uint64_t bytes);
void sim_link_recall(struct sim_link *link, struct sim_message *message);

/* ---- session.c ---- */

enum sim_place { SIM_IDLE, SIM_GOING, SIM_IN_TARGET, SIM_COMING };

struct sim_command {
	struct sim_session *session;
	enum sim_place place;
	struct sim_message message; /* the request, then the answer */
	struct scsi_task task;
	struct path_io *pio;	  /* NULL: identification, or a raw command */
	struct path_command *raw; /* NULL: the others */
	uint32_t send_bytes;	  /* data-out that goes with the request */
	struct buf *out;
	struct iovec out_iov;
	uint8_t unmap[SIM_UNMAP_LIST_BYTES];
	TAILQ_ENTRY(sim_command) entry; /* free, or active in the order of submission */
};
TAILQ_HEAD(sim_command_list, sim_command);

struct sim_session {
	struct sim_path *path; /* NULL: the path has let go of it */
	struct sim_link *link;
	struct scsi_target *target;
	struct scsi_nexus *nexus; /* from the login's arrival on */
	bool closed;
	unsigned in_target; /* commands the target has not ended */
	struct sim_message login, ping;
	struct sim_command *commands;
	struct sim_command_list free, active;
	TAILQ_ENTRY(sim_session) entry;
};

/* Sends the login. */
int sim_session_open(struct sim_path *path, struct sim_session **ret_session);
/* Drops what is on its way and aborts what is in the target. */
void sim_session_close(struct sim_session *session);
/* The path lets go of a closed session, which ends as soon as the target has. */
void sim_session_detach(struct sim_session *session);
struct sim_command *sim_session_command(struct sim_session *session); /* NULL: all in use */
void sim_command_send(struct sim_command *command);
void sim_command_free(struct sim_command *command);
void sim_session_ping(struct sim_session *session);

/* ---- cdb.c ---- */

uint32_t sim_data_bytes(const struct path *path, const struct path_io *pio);
void sim_cdb_build(struct sim_command *command, const struct path *path);
void sim_result_take(struct path_io *pio, const struct scsi_task *task);

/* ---- path_command.c: raw commands ---- */

void sim_raw_submit(struct path *path, struct path_command *raw);
void sim_raw_answered(struct sim_command *command); /* frees it */
void sim_raw_append(struct path_command ***tail, struct path_command *raw);
void sim_raw_end(struct path_command **list, struct path_command ***tail, enum path_result result);

/* ---- login.c ---- */

struct sim_probe {
	unsigned step, attentions;
	struct identity_facts facts;
};

void sim_probe_start(struct sim_path *path);
struct sim_answer {
	uint8_t status;
	uint8_t sense[SCSI_SENSE_BYTES];
	const uint8_t *data;
	size_t bytes;
};
void sim_probe_answered(struct sim_path *path, const struct sim_answer *answer);
void sim_probe_send(void *arg); /* the path */

/* ---- path_sim.c ---- */

enum sim_phase {
	SIM_DOWN,
	SIM_REFUSED, /* the link is cut: the login fails soon */
	SIM_LOGIN,
	SIM_UP,
	SIM_LOSING, /* the session has ended; waits for the target's end of it */
};

struct sim_path {
	struct path path; /* first: the interface's view of this */
	char portal[64], target_name[224], initiator[224];
	struct sim_link *link;
	struct scsi_target *target;
	uint16_t relative_port;
	uint8_t isid[6];

	enum sim_phase phase;
	struct sim_session *session;
	char why[160];
	uint64_t heard_ns;	 /* the last arrival from the target */
	unsigned pings;		 /* sent since */
	struct loop_timer tick;	 /* login and answer deadlines, keep-alive */
	struct loop_timer pause; /* an identification command that has to wait */
	struct loop_task later;	 /* what must not happen within a call */
	bool down_due;
	struct sim_probe probe;

	/* linked by path_io.next */
	struct path_io *refused, **refused_tail;
	struct path_io *lost, **lost_tail;
	struct path_command *raw_refused, **raw_refused_tail;
	struct path_command *raw_lost, **raw_lost_tail;
	unsigned raw_in_flight;

	/* guards against path_free from within a callback */
	unsigned depth;
	bool free_wanted;
};

static inline void sim_path_enter(struct sim_path *path)
{
	path->depth++;
}
void sim_path_leave(struct sim_path *path); /* may free it */
void sim_path_heard(struct sim_path *path);
void sim_path_lose(struct sim_path *path, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sim_path_drained(struct sim_path *path); /* the target has ended the closed session */
void sim_path_came_up(struct sim_path *path);
void sim_path_answered(struct sim_path *path, struct sim_command *command);

#endif
