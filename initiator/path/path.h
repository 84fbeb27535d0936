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
 * Threading: the loop's thread.  Completions never come from within path_submit; events never
 * from within path_connect.
 */
#ifndef SANLAB_INITIATOR_PATH_PATH_H
#define SANLAB_INITIATOR_PATH_PATH_H

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

/* What a login found out about the logical unit. */
struct path_identity {
	uint8_t designator[64]; /* the best VPD 83h designator (NAA, EUI-64, T10), or unit serial */
	unsigned designator_bytes;
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

struct path;

struct path_config {
	const char *portal; /* "127.0.0.1:3261", numeric */
	const char *target; /* IQN */
	unsigned lun;
	const char *initiator_name;
	const char *user, *password;  /* CHAP, NULL: none */
	uint32_t isid_qualifier;      /* distinct per path of one initiator: own I_T nexus each */
	uint64_t login_timeout_ns;    /* 0: 5 s */
	uint64_t tcp_user_timeout_ns; /* 0: 2 s */
	uint64_t keepalive_ns;	      /* NOP interval when idle or stuck; 0: 1 s */
	uint64_t io_timeout_ns;	      /* no answer for that long: the path counts as lost; 0: 5 s */
	unsigned max_in_flight;	      /* 0: 128 */
	bool header_digest;
	/* Called on the loop; WHY (DOWN) is one line a person can read. */
	void (*event)(void *arg, struct path *path, enum path_event event, const char *why);
	void *arg;
};

struct path_ops {
	const char *name;
	int (*connect)(struct path *path); /* 0: an event will follow */
	void (*submit)(struct path *path, struct path_io *pio);
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
};

int path_new_iscsi(struct loop *loop, const struct path_config *config, struct path **ret_path);

static inline int path_connect(struct path *path)
{
	return path->ops->connect(path);
}
static inline void path_submit(struct path *path, struct path_io *pio)
{
	path->ops->submit(path, pio);
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
