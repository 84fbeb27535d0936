/* SPDX-License-Identifier: MIT
 *
 * Inside the room: what the commands of the control socket share.
 */
#ifndef SANLAB_TARGET_CONTROL_COMMAND_H
#define SANLAB_TARGET_CONTROL_COMMAND_H

#include "base/bytes.h"
#include "target/control/control.h"
#include "target/target.h"

struct control_request {
	struct loop *loop;
	struct target *target;
	const json_t *request;
	json_t *answer;
	struct err err;
};

/* Words of a request; a key that is missing or wrong is -EINVAL (or -ENOENT) with ERR filled. */
int control_want_string(struct control_request *request, const char *key, const char **ret);
int control_want_uint(struct control_request *request, const char *key, uint64_t max,
		      uint64_t *ret);
int control_want_portal(struct control_request *request, struct iscsi_portal **ret);
int control_want_member(struct control_request *request, struct member **ret);
int control_want_drive(struct control_request *request, struct drive **ret);
/* A value as in the lab file, TYPE CFG_DURATION or CFG_SIZE; absent: *ret is PRESET. */
int control_take_value(struct control_request *request, const char *key, enum cfg_type type,
		       uint64_t preset, uint64_t *ret);

/* command_portal.c */
int control_run_reset(struct control_request *request);
int control_run_portal_down(struct control_request *request);
int control_run_portal_up(struct control_request *request);
int control_run_portal_silent(struct control_request *request);
int control_run_portal_speaks(struct control_request *request);
int control_run_portal_drain(struct control_request *request);
int control_run_alua_set(struct control_request *request);
int control_run_alua_flip(struct control_request *request);
int control_run_chap_change(struct control_request *request);
int control_run_chap_restore(struct control_request *request);

/* command_session.c */
int control_run_sessions(struct control_request *request);
int control_run_seen(struct control_request *request);

/* command_drive.c */
int control_run_drive_fail(struct control_request *request);
int control_run_drive_return(struct control_request *request);
int control_run_drive_replace(struct control_request *request);
int control_run_drive_slow(struct control_request *request);
int control_run_drive_latent(struct control_request *request);
int control_run_drive_corrupt(struct control_request *request);
int control_run_drive_heal(struct control_request *request);

/* command_array.c */
int control_run_member_offline(struct control_request *request);
int control_run_member_online(struct control_request *request);
int control_run_controller_fail(struct control_request *request);
int control_run_controller_return(struct control_request *request);
int control_run_controller_fail_back(struct control_request *request);
int control_run_link_down(struct control_request *request);
int control_run_link_up(struct control_request *request);
int control_run_battery_lost(struct control_request *request);
int control_run_battery_ok(struct control_request *request);
int control_run_scrub_start(struct control_request *request);
int control_run_scrub_stop(struct control_request *request);
int control_run_rebuild_pause(struct control_request *request);
int control_run_rebuild_resume(struct control_request *request);
int control_run_rebuild_rate(struct control_request *request);

/* command_pool.c */
int control_run_member_drain(struct control_request *request);
int control_run_member_drain_stop(struct control_request *request);
int control_run_moves_pause(struct control_request *request);
int control_run_moves_resume(struct control_request *request);
int control_run_balance(struct control_request *request);

/* status_pool.c */
json_t *control_pools_status(struct target *target);
json_t *control_drain_status(struct target *target, struct member *member);

/* status_array.c: parts of the status document. */
json_t *control_member_status(struct target *target, struct member *member);
json_t *control_cache_status(const struct member *member); /* NULL: it has none; status_cache.c */
json_t *control_ssd_status(const struct member *member);
json_t *control_controllers_status(struct target *target); /* of style lun; else NULL */
/* Counter structures hold uint64_t only; a table names them. */
struct control_counter {
	const char *key;
	size_t offset;
};
#define CONTROL_COUNTER(type, field)                 \
	{                                            \
#field, offsetof(struct type, field) \
	}
void control_add_counters(json_t *to, const struct control_counter *table, size_t count,
			  const void *base);

#endif
