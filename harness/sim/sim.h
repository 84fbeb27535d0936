/* SPDX-License-Identifier: MIT
 *
 * Simulated networks: the initiator's MPIO and the target's iSCSI server on one (usually virtual)
 * loop, joined by links that carry byte streams, as TCP does, without a socket.
 *
 * A link leads from a host to one portal of a server.  Both ends of a connection over it are
 * independent, as they are in a network: what one end gives up the other learns when a reset
 * arrives, which a stalled link loses; what was sent before still arrives, late, and is executed
 * as long as the session there lives.
 */
#ifndef SANLAB_HARNESS_SIM_SIM_H
#define SANLAB_HARNESS_SIM_SIM_H

#include "base/loop.h"
#include "initiator/path/path.h"
#include "target/iscsi/iscsi.h"

struct sim_link_config {
	uint64_t delay_ns;	   /* one way */
	uint64_t jitter_ns;	   /* uniform on top, seeded */
	uint64_t rate_bytes_per_s; /* 0: unlimited */
	double loss;		   /* of segments, 0..1: each comes after a retransmission */
	/* How long the network itself keeps what nobody sends again any more, because the
	 * initiator has closed its end; 0: for as long as it takes, as a relay that hoards. */
	uint64_t life_ns;
	uint64_t seed;
};

enum sim_direction { SIM_TO_TARGET, SIM_TO_INITIATOR, SIM_DIRECTIONS };

struct sim_link;

/* PORTAL is borrowed; NULL: nobody is there yet, connections are refused. */
int sim_link_new(struct loop *loop, const struct sim_link_config *config,
		 struct iscsi_portal *portal, struct sim_link **ret);
struct sim_link *sim_link_free(struct sim_link *link);
/* Who answers there from now on; the server that did before ends its connections itself. */
void sim_link_lead_to(struct sim_link *link, struct iscsi_portal *portal);
/* Cut: every connection over the link is reset now, at both ends, what was on its way is gone, and
 * new ones fail until it is mended. */
void sim_link_cut(struct sim_link *link, bool cut);
/* Stall: what is sent neither arrives nor fails (a silent black hole) until it ends; then it
 * arrives late, in order.  Resets sent meanwhile are lost. */
void sim_link_stall(struct sim_link *link, bool stall);
/* The same in one direction only. */
void sim_link_stall_lane(struct sim_link *link, enum sim_direction direction, bool stall);
/* One segment is lost: what comes next that way is late by a retransmission. */
void sim_link_drop(struct sim_link *link, enum sim_direction direction);
/* A change of delay; what is on its way keeps its own. */
void sim_link_set_delay(struct sim_link *link, uint64_t delay_ns, uint64_t jitter_ns);

/* A path over LINK to a logical unit of config->target at the server the link leads to.  Of
 * security nothing is simulated: such a server has to let everybody in. */
int path_new_sim(struct loop *loop, const struct path_config *config, struct sim_link *link,
		 struct path **ret_path);

#endif
