/* SPDX-License-Identifier: MIT
 *
 * One path: one login to one portal for one logical unit, and the I/O on it.
 *
 * Kinds behind struct path_ops: `iscsi` (one libiscsi context, auto-reconnect off, for life on one
 * thread) and `sim` (harness/sim: in-process, virtual time).  A path does not retry and does not
 * reconnect by itself: MPIO decides both.
 *
 * Life: path_new (down) -> path_connect -> event UP or DOWN -> I/O -> event DOWN (every I/O still
 * open has been ended with PATH_LOST before the event) -> path_connect again or path_free.
 * A path must be identified after every login: UP carries the VPD 83h designator, and MPIO
 * refuses a path whose identity differs (a remapped LUN must never be written).
 *
 * Threading: the loop's thread.  Completions never come from within path_submit, path_command,
 * path_fence or path_reset_unit; events never from within path_connect.
 */
#ifndef SANLAB_INITIATOR_PATH_PATH_H
#define SANLAB_INITIATOR_PATH_PATH_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/io.h"
#include "base/loop.h"

enum path_result {
	PATH_OK,
	PATH_SENSE,    /* CHECK CONDITION: sense_key, asc, ascq */
	PATH_STATUS,   /* another SCSI status: scsi_status (BUSY, TASK SET FULL, ...) */
	PATH_LOST,     /* the connection ended before an answer came: outcome unknown */
	PATH_NOT_SENT, /* refused before anything was sent: no slot, not up */
};

struct link_watch;

struct path_io {
	/* filled by the submitter */
	enum io_op op;
	unsigned flags; /* enum io_flag */
	uint64_t lba;	/* in blocks of the path's block_bytes */
	uint32_t blocks;
	const struct iovec *iov; /* valid until done; on PATH_LOST free only after done */
	unsigned iov_count;
	void (*done)(struct path_io *pio);
	void *owner;

	/* results */
	enum path_result result;
	uint8_t scsi_status;
	uint8_t sense_key, asc, ascq;

	/* private to the path kind */
	uint64_t submit_ns;
	void *task;
	struct path_io *next, *prev;
};

/* Any other SCSI command (REPORT TARGET PORT GROUPS, REPORT REFERRALS, TEST UNIT READY, ...): ends
 * like I/O, but in slots of its own, so that a full queue cannot keep it out. */
struct path_command {
	/* filled by the submitter */
	uint8_t cdb[16];
	unsigned cdb_bytes; /* 6, 10, 12 or 16 */
	void *data;	    /* valid until done */
	uint32_t data_bytes;
	bool to_target; /* DATA is sent, else received */
	void (*done)(struct path_command *command);
	void *owner;

	/* results */
	enum path_result result;
	uint8_t scsi_status;
	uint8_t sense_key, asc, ascq;
	uint32_t got_bytes; /* of DATA, received */

	/* private to the path kind */
	uint64_t submit_ns;
	void *task;
	struct path_command *next;
};
enum { PATH_COMMANDS_MAX = 8 }; /* at a time on one path */

/* The proof that what a lost path has sent can no longer be executed. */
struct path_fence {
	/* filled by the submitter; STATUS 0: proved, else a negative errno */
	void (*done)(struct path_fence *fence, int status);
	void *owner;

	/* private to the path kind */
	void *task;
	struct path_fence *next;
};
enum { PATH_FENCES_MAX = 8 }; /* at a time through one path */

/* What a login found out about the logical unit. */
struct path_identity {
	uint8_t designator[64]; /* the best VPD 83h designator (NAA, EUI-64, T10), or unit serial */
	unsigned designator_bytes;
	char serial[64];  /* VPD 80h, "" if not told */
	int portal_group; /* iSCSI target portal group tag of the port, -1: not told */
	uint8_t tpgs;	  /* INQUIRY: bit 0 implicit, bit 1 explicit asymmetric access */
	bool referrals;	  /* REPORT REFERRALS is supported */
	/* The port is in standby, unavailable or offline: the unit is known, but neither its
	 * capacity (both 0) nor what it can do.  Such a path carries no I/O in this login. */
	bool no_capacity;
	uint32_t block_bytes;
	uint64_t blocks;
	uint16_t target_port_group, relative_port; /* 0: not told */
	uint32_t max_transfer_blocks;		   /* VPD b0, 0: no limit told */
	uint32_t max_unmap_blocks;		   /* VPD b0, 0: no limit told */
	bool write_protected;
	bool can_unmap;
	char vendor[9], product[17], revision[5];
};

enum path_event { PATH_EVENT_UP, PATH_EVENT_DOWN };

/* What showed that a path is lost. */
enum path_detect {
	PATH_DETECT_NONE,
	PATH_DETECT_RESET,	 /* TCP reset, or the connection refused */
	PATH_DETECT_CLOSED,	 /* the target closed the connection */
	PATH_DETECT_TCP_TIMEOUT, /* nothing acknowledged for TCP_USER_TIMEOUT */
	PATH_DETECT_KEEPALIVE,	 /* NOPs unanswered */
	PATH_DETECT_COMMAND,	 /* the deadline of a command */
	PATH_DETECT_LOGIN,	 /* refused, timed out, CHAP, no such unit */
	PATH_DETECT_PROTOCOL,	 /* digest, reject, nonsense */
	PATH_DETECT_LINK,	 /* no carrier, no route */
	PATH_DETECT_SENSE,	 /* by what the unit answers (MPIO's verdict) */
	PATH_DETECT_ASKED,	 /* the target asked (Async Message, logout), or the owner did */
	PATH_DETECT_COUNT,
};
extern const char *const path_detect_names[];

struct path;

struct path_config {
	const char *portal; /* "127.0.0.1:3261", numeric */
	const char *target; /* IQN */
	unsigned lun;
	const char *initiator_name;
	const char *user, *password; /* CHAP, NULL: none */
	uint32_t isid_qualifier;     /* distinct per path of one initiator: own I_T nexus each */
	/* 0: the default.  Together they find a black hole about 1.2 s after the last sign of life:
	 * one interval of silence until the first NOP, one more for each NOP that may go
	 * unanswered.  Answers that still come, whichever, keep a path alive. */
	uint64_t login_timeout_ns;    /* 5 s */
	uint64_t tcp_user_timeout_ns; /* 1.5 s; unacknowledged data older than that end TCP */
	uint64_t keepalive_ns;	      /* 400 ms; interval of NOPs while nothing is heard */
	uint64_t io_timeout_ns;	      /* 5 s; no answer to a command: the path counts as lost */
	unsigned keepalive_misses;    /* 2; NOPs unanswered before the path counts as lost */
	unsigned max_in_flight;	      /* 128 */
	bool header_digest;
	/* The address really connected to for a portal, at every TCP connect, also after a
	 * redirection (a relay of the fault timeline); everything that is reported keeps the
	 * portal.  What it returns is used before its next call.  NULL: the portal itself. */
	const char *(*dial)(void *arg, const char *portal);
	void *dial_arg;
	struct link_watch *links; /* tells of lost carriers; outlives the path; NULL: none */
	/* Called on the loop; WHY (DOWN) is one line a person can read. */
	void (*event)(void *arg, struct path *path, enum path_event event, const char *why);
	void *arg;
};

struct path_ops {
	const char *name;
	int (*connect)(struct path *path); /* 0: an event will follow */
	void (*submit)(struct path *path, struct path_io *pio);
	void (*command)(struct path *path, struct path_command *command);
	/* NULL: not offered.  0: done will be called; negative: not begun, it will not. */
	int (*fence)(struct path *path, const struct path *victim, struct path_fence *fence);
	int (*reset_unit)(struct path *path, struct path_fence *fence);
	int (*abort_tasks)(struct path *path, struct path_fence *fence);
	void (*disconnect)(struct path *path); /* ends I/O with PATH_LOST; no event follows */
	void (*free)(struct path *path);
};

struct path {
	const struct path_ops *ops;
	struct loop *loop;
	struct path_config config; /* strings copied by the kind */
	bool up;
	unsigned in_flight;
	uint64_t in_flight_bytes;
	struct path_identity identity; /* valid while up */
	char redirected_to[64];	       /* the portal a login redirection led to, "" if none */
	enum path_detect lost_by;      /* valid at PATH_EVENT_DOWN, until the next login */
	uint64_t heard_ns;	       /* the last answer of any kind, in this login or the last */
};

/* Puts the defaults where 0 is: every kind of path begins with this. */
void path_config_defaults(struct path_config *config);

int path_new_iscsi(struct loop *loop, const struct path_config *config, struct path **ret_path);

static inline int path_connect(struct path *path)
{
	return path->ops->connect(path);
}
static inline void path_submit(struct path *path, struct path_io *pio)
{
	path->ops->submit(path, pio);
}
static inline void path_command(struct path *path, struct path_command *command)
{
	path->ops->command(path, command);
}
/* One more login through PATH's portal (the one it is really connected to) with VICTIM's name and
 * ISID and TSIH 0: session reinstatement (RFC 7143 6.3.5).  When it has succeeded the target has
 * ended VICTIM's old session and its tasks; it logs out again before done.  Needs PATH up and both
 * portals in one target portal group; VICTIM is down and stays so, and stays, until done.  Takes
 * at most the login timeout; path_disconnect and path_free of PATH end it with -ECANCELED, a loss
 * of PATH's own login does not end it. */
static inline int path_fence(struct path *path, const struct path *victim, struct path_fence *fence)
{
	return path->ops->fence ? path->ops->fence(path, victim, fence) : -EOPNOTSUPP;
}
/* LOGICAL UNIT RESET over PATH: status 0 when the target has answered "function complete".  By then
 * PATH's own commands sent before have ended with PATH_STATUS 40h, TASK ABORTED; those of other
 * paths to the unit have been ended by the target without a word: path_abort_tasks on each of them
 * brings them back.  Ends with -ENOTCONN when the path is lost first. */
static inline int path_reset_unit(struct path *path, struct path_fence *fence)
{
	return path->ops->reset_unit ? path->ops->reset_unit(path, fence) : -EOPNOTSUPP;
}
/* ABORT TASK SET over PATH: ends PATH's own commands sent before, as above. */
static inline int path_abort_tasks(struct path *path, struct path_fence *fence)
{
	return path->ops->abort_tasks ? path->ops->abort_tasks(path, fence) : -EOPNOTSUPP;
}
static inline void path_disconnect(struct path *path)
{
	path->ops->disconnect(path);
}
static inline struct path *path_free(struct path *path)
{
	if (path)
		path->ops->free(path);
	return NULL;
}

/* An iSCSI URL as libiscsi's users know it: iscsi://[user%pass@]host[:port]/iqn/lun */
struct path_url {
	char portal[64];
	char target[224];
	unsigned lun;
	char user[128], password[128];
};
int path_url_parse(const char *url, struct path_url *ret_url, struct err *err);

#endif
