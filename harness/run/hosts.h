/* SPDX-License-Identifier: MIT
 *
 * The lab's hosts on real networks: one MPIO device per volume, one iSCSI session per path.
 */
#ifndef SANLAB_HARNESS_RUN_HOSTS_H
#define SANLAB_HARNESS_RUN_HOSTS_H

#include "harness/run/relay_faults.h"
#include "harness/run/run.h"

/* The iSCSI name a host logs in with. */
#define HOST_IQN_PREFIX "iqn.2026-11.test.sanlab:host:"

struct hosts {
	struct run_device *devices;
	unsigned count;
	struct host_load **loads; /* one a host of the lab */
	struct link_watch *links; /* NULL: this system tells nothing of its links */
	size_t load_count;
	unsigned waited;
	int status; /* of the first device that could not be reached */
	char why[300];
	loop_fn ready;
	void *arg;
};

/* Makes devices and paths of every host; nothing is connected yet.  RELAY (NULL: none) carries the
 * paths that faults need it for, and outlives the hosts. */
int hosts_open(struct loop *loop, const struct lab *lab, const struct relay_faults *relay,
	       struct hosts *ret_hosts, struct err *err);
/* Connects all; READY is called when each is up or given up: see hosts->status. */
void hosts_connect(struct hosts *hosts, loop_fn ready, void *arg);
void hosts_close(struct hosts *hosts); /* also half-built or zeroed ones */

/* One path from a URL, with the MPIO's timeouts; isid_qualifier tells paths of one host apart. LINE
 * NULL: it connects directly. */
int host_add_url_path(struct loop *loop, struct mpio *mpio, const struct mpio_config *config,
		      const char *initiator, const char *url, uint32_t isid_qualifier,
		      struct relay_line *line, struct err *err);

#endif
