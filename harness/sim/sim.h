/* SPDX-License-Identifier: MIT
 *
 * The simulated path: an in-process transport with a link model that joins the initiator's MPIO and
 * the target's SCSI device on one (usually virtual) loop.  No sockets, no iSCSI PDUs: a path_io
 * becomes a CDB, crosses the link (delay, rate), runs in target/scsi, and its answer comes back.
 *
 * Links can be cut (I/O in flight is lost, as by a TCP reset), stall (black hole) and come back.
 */
#ifndef SANLAB_HARNESS_SIM_SIM_H
#define SANLAB_HARNESS_SIM_SIM_H

#include "base/loop.h"
#include "initiator/path/path.h"
#include "target/scsi/scsi.h"

struct sim_link_config {
	uint64_t delay_ns;	   /* one way */
	uint64_t jitter_ns;	   /* uniform on top, seeded */
	uint64_t rate_bytes_per_s; /* 0: unlimited */
	uint64_t seed;
};

struct sim_link;

int sim_link_new(struct loop *loop, const struct sim_link_config *config, struct sim_link **ret);
struct sim_link *sim_link_free(struct sim_link *link);
/* Cut: every session over the link is reset now and new logins fail until it is mended. */
void sim_link_cut(struct sim_link *link, bool cut);
/* Stall: what is sent neither arrives nor fails (a silent black hole) until it ends; then what is
 * still waited for arrives late, in order. */
void sim_link_stall(struct sim_link *link, bool stall);

/* A path over LINK to LUN of TARGET.  The portal's port number becomes the relative target port.
 * A path that is disconnected or freed with I/O in the target leaves a session there, which ends
 * when the volume lets go: run the loop until then before TARGET is freed. */
int path_new_sim(struct loop *loop, const struct path_config *config, struct sim_link *link,
		 struct scsi_target *target, struct path **ret_path);

#endif
