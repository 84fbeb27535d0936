/* SPDX-License-Identifier: MIT
 *
 * A server on loopback sockets in a child process, for tests with an initiator of their own.
 * (Nothing of target/ is included: libiscsi's headers use some of the same names.)
 */
#ifndef SANLAB_TESTS_UNIT_ISCSI_PEER_PROCESS_H
#define SANLAB_TESTS_UNIT_ISCSI_PEER_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

#define PEER_TARGET_NAME "iqn.2026-11.test.sanlab:unit:db1"
#define PEER_INITIATOR	 "iqn.2026-11.test.sanlab:libiscsi"

/* Two members, then the group portal that redirects to them. */
enum { PEER_PORTALS = 3 };

struct peer {
	pid_t pid;
	int commands, answers; /* pipes */
	uint16_t port[PEER_PORTALS];
};

/* 0 or -1, as cmocka's fixtures. */
int peer_start(struct peer *peer);
/* Also -1 when the child did not end well (a sanitizer's report, a leak). */
int peer_stop(struct peer *peer);

enum peer_command {
	PEER_RESET = 'R',	/* connections of PEER_INITIATOR on portal 0; answers how many */
	PEER_RESET_OTHER = 'r', /* of another initiator */
	PEER_DOWN = 'd',	/* portal 0 */
	PEER_UP = 'u',
	PEER_READS = 'c', /* reads counted on the members */
};
int64_t peer_ask(const struct peer *peer, enum peer_command command);

#endif
