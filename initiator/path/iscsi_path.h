/* SPDX-License-Identifier: MIT
 *
 * The iSCSI path from inside: one libiscsi context for one login.  Private to initiator/path.
 *
 * Rules that keep libiscsi 1.19 harmless
 *  - auto-reconnect is off and a context that failed is destroyed, never reused;
 *  - libiscsi's callbacks only note what happened; everything that may call the owner (done,
 *    event) or destroy the context runs after iscsi_service has returned (session_settle);
 *  - a command's buffers and its task stay until it is answered or the context is destroyed;
 *  - libiscsi's own timeouts stay off: a command it gives up on leaves a hole in CmdSN.
 *
 * Threading: the loop's thread.
 */
#ifndef SANLAB_INITIATOR_PATH_ISCSI_PATH_H
#define SANLAB_INITIATOR_PATH_ISCSI_PATH_H

#include <assert.h>
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
#include <sys/queue.h>

#include "base/loop.h"
#include "initiator/net/link_watch.h"
#include "initiator/path/identity.h"
#include "initiator/path/path.h"

enum {
	ISCSI_REDIRECT_HOPS = 4,     /* login redirections followed before giving up */
	ISCSI_MAX_IN_FLIGHT = 4096,  /* bound of path_config.max_in_flight */
	ISCSI_PROBE_ATTENTIONS = 16, /* unit attentions taken during one identification */
	ISCSI_ASYNC_LOG_LEVEL = 2,   /* of libiscsi's messages about Async Messages */
	ISCSI_UNMAP_LIST_BYTES = 24, /* header and one descriptor */
};

enum iscsi_phase {
	ISCSI_DOWN,
	ISCSI_CONNECTING, /* TCP */
	ISCSI_LOGIN,
	ISCSI_PROBING, /* full feature phase, finding out what the logical unit is */
	ISCSI_UP,
};

struct iscsi_path;
struct iscsi_fence; /* fence.c */

/* What one outstanding command needs besides the submitter's path_io. */
struct iscsi_slot {
	struct scsi_task task;
	struct iscsi_path *owner;
	struct path_io *pio;
	bool sync_after; /* FUA on a unit without DPOFUA: SYNCHRONIZE CACHE must follow */
	uint8_t unmap[ISCSI_UNMAP_LIST_BYTES];
	struct scsi_iovec unmap_iov;
	SLIST_ENTRY(iscsi_slot) free_link;
};

SLIST_HEAD(iscsi_slot_list, iscsi_slot);

/* A raw command in flight; in an array of its own. */
struct iscsi_raw {
	struct scsi_task task;
	struct scsi_iovec iov;
	struct iscsi_path *owner;
	struct path_command *command; /* NULL: free */
};

/* How a command has ended. */
struct iscsi_answer {
	enum path_result result;
	uint8_t scsi_status;
	uint8_t sense_key, asc, ascq;
};

/* Task management functions, the first of them perhaps on its way. */
struct iscsi_manage {
	struct {
		struct path_fence *fence;
		enum iscsi_task_mgmt_funcs function;
		uint64_t since_ns;
	} waiting[PATH_FENCES_MAX];
	unsigned count;
	bool sent, answered;
	bool swept;	     /* the commands that it ended have been dealt with */
	bool covers;	     /* there are commands that it ends: */
	uint32_t last_cmdsn; /* up to this one */
	int status;
};

struct iscsi_probe {
	unsigned step;
	unsigned attentions;
	struct scsi_task task;
	struct scsi_iovec iov;
	struct identity_facts facts;
	uint8_t data[IDENTITY_DATA_BYTES];
};

struct iscsi_path {
	struct path path; /* first: the interface's view of this */

	char portal[64], target[224], initiator[224], user[128], password[128];

	enum iscsi_phase phase;
	struct iscsi_context *ctx;
	struct loop_watch watch;
	struct loop_task flush;	      /* writes what this turn has queued */
	struct loop_task later;	      /* ends refused I/O, reports a start that failed at once */
	struct loop_timer tick;	      /* deadlines: login, answers, keep-alive */
	struct link_watch_entry link; /* of the interface this login goes through */
	struct loop_timer pause;      /* a probe command that has to wait */

	/* notes of libiscsi's callbacks, acted on by session_settle */
	bool lost, redirected, identified, heard;
	bool asked;   /* by the target, to log out */
	bool again;   /* the login goes on with another context, in the plain way */
	bool lingers; /* a session of this path may still live in the target */
	bool plain;   /* this target wants no security stage without a user */
	bool tearing; /* iscsi_destroy_context runs: its callbacks mean nothing */
	char why[256];

	char at_portal[64]; /* where this login goes: the portal or a redirection */
	unsigned hops;
	unsigned logins;			 /* contexts made: tells one login from the next */
	uint64_t login_deadline_ns, last_nop_ns; /* path.heard_ns: the last answer */
	unsigned nops;				 /* sent since the last answer of any kind */
	unsigned queued;			 /* commands since the last flush */
	uint64_t stamp_ns;			 /* when the first I/O since then was queued */
	bool stamped;
	int wire_lun;
	bool cdb10; /* the unit knows no 16-byte commands */
	bool dpofua;

	/* guards against path_free from within a callback */
	unsigned depth;
	bool free_wanted;

	struct iscsi_slot *slots;
	struct iscsi_slot_list free_slots;
	struct path_io *oldest, *newest; /* in flight, in the order of submission */
	struct path_io *answered, **answered_tail;
	struct path_io *refused, **refused_tail;

	struct iscsi_raw raws[PATH_COMMANDS_MAX];
	struct path_command *raw_answered, **raw_answered_tail;
	struct path_command *raw_refused, **raw_refused_tail;

	struct iscsi_manage manage;
	bool aborting; /* libiscsi lets go of commands that have been aborted */

	struct iscsi_fence *fences[PATH_FENCES_MAX]; /* NULL: free */

	struct iscsi_probe probe;
};

/* path_iscsi.c */
void iscsi_path_enter(struct iscsi_path *p);
void iscsi_path_leave(struct iscsi_path *p); /* may free P */
/* Closes the connection and ends all I/O; HARD drops unsent data with a TCP reset. */
void iscsi_path_teardown(struct iscsi_path *p, bool hard);
void iscsi_path_event(struct iscsi_path *p, enum path_event event, const char *why);

/* session.c */
int session_open(struct iscsi_path *p); /* 0, or negative with p->why filled */
void session_close(struct iscsi_path *p, bool hard);
void session_service(struct iscsi_path *p, int revents);
void session_flush(void *arg);
void session_tick(void *arg);
void session_set_tick(struct iscsi_path *p);

/* loss.c: notes that the login is over; session_settle acts on it */
void session_lose(struct iscsi_path *p, enum path_detect by, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same, when libiscsi has failed without saying why; ERROR: errno after the call, or 0. */
void session_lose_failed(struct iscsi_path *p, int error);
/* A socket error as the poll of the socket tells it. */
void session_lose_socket(struct iscsi_path *p);
void session_lose_closed(struct iscsi_path *p); /* the target closed the connection */
void session_lose_login(struct iscsi_path *p);	/* the target refused the login */
enum path_detect session_detect(int error);	/* an errno of the network's */
/* The status of a login response (class << 8 | detail) in libiscsi's ERROR; 0: another one. */
unsigned login_status(const char *error);
/* The target may have refused the security stage, which a login goes through to reinstate
 * (login.c): it is tried again without. */
bool login_wants_plain(unsigned status);
/* What P was doing, as words for the end of a sentence. */
const char *session_doing(const struct iscsi_path *p);
/* Lets libiscsi read and write: the only way it is called.  Negative: it failed, P is lost. */
int session_libiscsi(struct iscsi_path *p, int revents);
void session_log(int level, const char *message); /* of libiscsi */

/* login.c */
/* REINSTATES: an old session may have to be ended. */
int login_configure(struct iscsi_context *ctx, const struct path_config *config, bool reinstates);
void login_link_lost(struct link_watch_entry *entry, const char *interface);
void login_connected(struct iscsi_context *ctx, int status, void *command_data, void *arg);
/* Where to connect to for PORTAL. */
const char *login_address(const struct path_config *config, const char *portal);
bool login_portal_is_numeric(const char *portal);

/* probe.c */
void probe_start(struct iscsi_path *p);
void probe_send(void *arg);

/* io.c */
void iscsi_path_submit(struct path *path, struct path_io *pio);
void iscsi_path_deliver(struct iscsi_path *p);
void iscsi_path_end_refused(struct iscsi_path *p);
void iscsi_path_end_lost(struct iscsi_path *p);
/* Fills *RET_ANSWER; false when there is no answer because the session ended. */
bool iscsi_answer_take(struct iscsi_answer *ret_answer, int status, const struct scsi_task *task);

/* command.c: the same for raw commands */
void command_init(struct iscsi_path *p);
void command_submit(struct path *path, struct path_command *command);
void command_deliver(struct iscsi_path *p);
void command_end_refused(struct iscsi_path *p);
void command_end_lost(struct iscsi_path *p);
/* The longest that one has been waiting for its answer. */
uint64_t command_waiting_ns(const struct iscsi_path *p, uint64_t now);

/* fence.c: logins for others */
int fence_begin(struct path *path, const struct path *victim, struct path_fence *fence);
void fence_cancel_all(struct iscsi_path *p);

/* manage.c: task management */
int manage_reset_unit(struct path *path, struct path_fence *fence);
int manage_abort_tasks(struct path *path, struct path_fence *fence);
/* With libiscsi off the stack: before what has been answered is delivered, and after. */
void manage_settle(struct iscsi_path *p);
void manage_pump(struct iscsi_path *p);
void manage_end_lost(struct iscsi_path *p);
uint64_t manage_waiting_ns(const struct iscsi_path *p, uint64_t now);

#endif
