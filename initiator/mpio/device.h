/* SPDX-License-Identifier: MIT
 *
 * MPIO from inside.  Private to initiator/mpio.
 *
 * An io handed in waits in `incoming` (linked by io->link) until a path can take it; then it
 * becomes one request, or several when it is larger than the unit takes at once.  A request is in
 * exactly one place: `ready` (goes next), `delayed` (a retry with its time), `blocked` (waits for a
 * fenced range), `behind` (a lost write that waits for overlapping ones in flight), `crowded` (a
 * write that waits for room in the table of ranges), sent on a path, or on a path's `lost` list
 * until that path is torn down.
 *
 * Invariants (asserted): a request is answered only while it is sent; every io handed in is
 * completed once (open_ios returns to 0).
 */
#ifndef SANLAB_INITIATOR_MPIO_DEVICE_H
#define SANLAB_INITIATOR_MPIO_DEVICE_H

#include <assert.h>
#include <sys/queue.h>

#include "initiator/mpio/alua_ask.h"
#include "initiator/mpio/fence.h"
#include "initiator/mpio/mpio.h"
#include "initiator/mpio/path_state.h"
#include "initiator/mpio/policy.h"
#include "initiator/mpio/slices.h"
#include "initiator/mpio/window.h"

enum {
	MPIO_MAX_PATHS = 64,
	MPIO_MAX_TRANSFER_BYTES = 16 << 20, /* when the unit tells no limit, or a larger one */
	MPIO_POOL_CHUNK = 64,
};

enum req_state {
	REQ_FREE,
	REQ_READY,
	REQ_DELAYED,
	REQ_BLOCKED,
	REQ_BEHIND,
	REQ_CROWDED,
	REQ_SENT,
	REQ_LOST,
};

/* An io that became several requests. */
struct mpio_whole {
	struct io *io;
	unsigned open;
	int status;
	SLIST_ENTRY(mpio_whole) link;
};

struct mpio_req {
	struct path_io pio;
	struct mpio *mpio;
	struct io *io;
	struct mpio_whole *whole; /* NULL: the io is this request alone */
	enum req_state state;
	unsigned path;	/* where it was sent last */
	bool same_path; /* retry where it was, if that path can take it */
	uint64_t avoid; /* paths (bits) that have refused it */
	unsigned retries;
	uint64_t offset_bytes, length_bytes;
	uint64_t sent_ns, due_ns;
	uint64_t place;	     /* in the order of losses (fence.h); FENCE_NO_PLACE: never lost */
	uint64_t pending_ns; /* since when transitions have held it up; 0: not */
	uint64_t blocked_ns; /* since when it has waited for a fence; 0: not yet */
	unsigned loss;	     /* it was taken back with that loss of loss_path; 0: never */
	unsigned loss_path;
	struct iovec *slice; /* of a split io; kept with the request for its next use */
	unsigned slice_room;
	TAILQ_ENTRY(mpio_req) link;
};
TAILQ_HEAD(mpio_req_list, mpio_req);
SLIST_HEAD(mpio_whole_list, mpio_whole);

struct mpio_chunk {
	struct mpio_chunk *next;
	struct mpio_req reqs[MPIO_POOL_CHUNK];
};

/* What the tracker has been told of a path's last loss. */
struct mpio_loss {
	unsigned number, open; /* open: requests taken back that have not ended */
	unsigned failed;       /* of those that have: without success */
	bool reissued, succeeded, returned, first_io_due;
};

struct mpio_path {
	struct mpio *mpio;
	struct path *path;
	unsigned index;
	struct path_machine machine;
	struct loop_timer reconnect, look;
	struct mpio_req_list lost;
	struct mpio_load own_load, *load; /* `load`: own_load, or the host's */
	uint8_t rank;			  /* enum mpio_rank, summed; 0 until more is known */
	bool primary;			  /* of a configured primary set */
	struct window window;		  /* of I/Os in flight */
	bool admitting;			  /* logged in; its access state is being asked for */
	bool returning;			  /* back after a loss: not preferred to others yet */
	uint64_t returned_ns;
	bool failing; /* I/O came back lost; the DOWN event is on its way */
	bool drop;    /* MPIO itself gives the login up, from its task */
	char drop_why[96];
	uint64_t noticed_ns;
	struct mpio_ledger ledger;

	struct mpio_loss loss;
	uint64_t key;	     /* with the path the I_T nexus of its last login, see fencing.c */
	uint64_t connect_ns; /* the login under way began */
	struct path_fence fence;
	struct path_fence abort; /* brings back what a reset through another path has ended */
	bool aborting;
	bool fencing;	    /* `fence` is under way, through path fence_via: it stays down */
	bool reconnect_due; /* when that is over */
	unsigned fence_via;
	uint64_t fence_key;   /* of the nexus that is being ended */
	uint64_t fence_tried; /* paths (bits) it has failed through */
};

/* The slice map and how it is asked for (referrals.c). */
struct mpio_referrals {
	struct slice_map *map;
	struct path_command command;
	uint8_t *data;
	unsigned path; /* asked */
	uint64_t next_lba, begun_ns;
	bool busy, again;
	struct loop_timer timer;
};

struct mpio {
	struct io_layer layer; /* first */
	struct loop *loop;
	struct mpio_config config;
	struct rng rng;
	char name[128];

	struct mpio_path *paths[MPIO_MAX_PATHS];
	struct mpio_path_view views[MPIO_MAX_PATHS];
	struct host_load *loads;				  /* NULL: not shared */
	struct link_watch *links;				  /* NULL: none */
	unsigned count, usable_count, pending_count, login_count; /* paths in such states */
	unsigned available;					  /* views usable and not full */
	const struct mpio_policy *policy;
	void *policy_state; /* room for any */
	struct mpio_referrals referrals;

	bool identified; /* `unit` is what every path has to be */
	struct path_identity unit;

	struct io *incoming, **incoming_tail;
	struct mpio_req_list ready, delayed, blocked, behind, crowded;
	uint64_t incoming_count, queued_reqs;
	uint64_t open_ios;
	bool pumping;

	struct mpio_alua alua;

	struct fence_table fences;
	uint64_t writes_in_flight; /* and unmaps */
	struct path_fence reset;   /* LOGICAL UNIT RESET, through path reset_via */
	bool resetting;
	bool holding; /* nothing is sent: a reset would end it without an answer */
	unsigned reset_via;
	uint64_t reset_tried;			/* paths (bits) it has failed through */
	uint64_t hold_until_ns, reset_older_ns; /* it ends what was lost before the latter */
	uint64_t reset_retry_ns;

	struct mpio_whole_list free_wholes;
	struct mpio_req_list free_reqs;
	struct mpio_chunk *chunks;

	struct loop_timer delay_timer, no_path_timer, refuse_timer, settle_timer, fence_timer;
	struct loop_task task; /* drops logins, reports ready */
	bool started, gone, freeing;
	unsigned depth; /* inside a callback of a path or of the loop */
	bool ready_due, ready_told;
	int ready_status;
	void (*ready_fn)(void *arg, int status, const char *why);
	void *ready_arg;
	void (*event_fn)(void *arg, const struct mpio_event *event);
	void *event_arg;
	void (*track_fn)(void *arg, const struct mpio_track *track);
	void *track_arg;
	char last_why[256];
};

/* mpio.c */
void mpio_set_policy(struct mpio *m, const struct mpio_policy *policy);

/* device.c */
void mpio_submit(struct io_layer *layer, struct io *io);
void mpio_pump(struct mpio *m);
void mpio_queue_req(struct mpio *m, struct mpio_req *req, enum req_state state);
void mpio_requeue_first(struct mpio *m, struct mpio_req *req);
void mpio_delay(struct mpio *m, struct mpio_req *req, uint64_t delay_ns);
void mpio_finish(struct mpio *m, struct mpio_req *req, int status);
void mpio_fail_waiting(struct mpio *m);
void mpio_refuse_due(void *arg);

/* answer.c */
void mpio_answered(struct path_io *pio);
void mpio_delay_due(void *arg);

/* fencing.c */
static inline bool mpio_changes_data(const struct mpio_req *req)
{
	return req->pio.op == IO_WRITE || req->pio.op == IO_UNMAP;
}
void mpio_fence_lost(struct mpio *m, struct mpio_req *req);
/* False: it waits now, in one of the lists. */
bool mpio_fence_passes(struct mpio *m, struct mpio_req *req);
void mpio_fence_write_ended(struct mpio *m); /* an answer to a write has come */
void mpio_fence_path_up(struct mpio_path *p);
void mpio_fence_path_down(struct mpio_path *p);
void mpio_fence_advance(struct mpio *m); /* from the task */
void mpio_fence_due(void *arg);

/* track.c */
void mpio_track_taken_back(struct mpio_path *p, struct mpio_req *req);
void mpio_track_lost(struct mpio_path *p, unsigned taken_back);
void mpio_track_sent(struct mpio *m, const struct mpio_req *req);
void mpio_track_ended(struct mpio *m, const struct mpio_req *req, int status);
void mpio_track_fenced(struct mpio_path *p, unsigned freed, enum mpio_proof proof, unsigned via);
void mpio_track_up(struct mpio_path *p);
void mpio_track_first_io(struct mpio_path *p);

/* views.c */
/* Sets `usable` of all from `able` and `rank`. */
void mpio_rank_views(struct mpio_path_view *views, unsigned count, bool all_ranks);
void mpio_view_init(struct mpio *m, unsigned path);
void mpio_view_refresh(struct mpio *m, unsigned path); /* its state, rank or room has changed */
void mpio_view_sent(struct mpio *m, unsigned path, uint64_t bytes);
void mpio_view_answered(struct mpio *m, unsigned path, uint64_t bytes);

/* paths.c */
void mpio_path_event(void *arg, struct path *path, enum path_event event, const char *why);
void mpio_path_reconnect(void *arg);
/* Ends a login that is under way; it will be tried again. */
void mpio_path_give_up(struct mpio_path *p, const char *why);
/* Its access state is known: it goes up, or wherever that leads to. */
void mpio_path_admit(struct mpio_path *p);
/* Access, health or time have changed. */
void mpio_path_look(struct mpio_path *p, const char *why);
void mpio_path_look_due(void *arg);
void mpio_path_mark(struct mpio_path *p, const char *why); /* a failure that is no loss */
/* Tells the owner what a person should know, once in a while. */
void mpio_path_notice(struct mpio_path *p, const char *what);
void mpio_drop_path(struct mpio *m, unsigned path, const char *why);
void mpio_drop_due(struct mpio *m);
void mpio_no_path_due(void *arg);

/* referrals.c: for policies that need it */
int mpio_referrals_init(struct mpio *m);
void mpio_referrals_refresh(struct mpio *m); /* asks for the map, now unless that is under way */
void mpio_referrals_sense(struct mpio *m, const struct path_io *pio);
void mpio_referrals_path_up(struct mpio *m); /* ... if there is none yet */
void mpio_referrals_done(struct mpio *m);

/* ledger.c */
void mpio_ledger_count(struct mpio *m, const struct mpio_req *req);

/* pool.c */
struct mpio_req *mpio_req_get(struct mpio *m); /* NULL: out of memory */
void mpio_req_put(struct mpio *m, struct mpio_req *req);
struct mpio_whole *mpio_whole_get(struct mpio *m);
void mpio_whole_put(struct mpio *m, struct mpio_whole *whole);
void mpio_pool_free(struct mpio *m);

#endif
