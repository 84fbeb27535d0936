/* SPDX-License-Identifier: MIT
 *
 * The whole target on a virtual loop, from portal to drive, without sockets: what tests of rare
 * and hostile input run against.
 *
 * The array lives longer than the server on it, so that a fuzzer can have a new server for each
 * input without building the array again.
 */
#ifndef SANLAB_TESTS_ISCSI_REAL_TARGET_H
#define SANLAB_TESTS_ISCSI_REAL_TARGET_H

#include "target/export.h"
#include "target/iscsi/server.h"

#define REAL_TARGET_NAME "iqn.2026-11.test.sanlab:unit"

/* The logical units, in the order of their volumes. */
enum real_lun {
	REAL_LUN_FAST,	/* thin, 512-byte blocks, answers at once */
	REAL_LUN_SLOW,	/* the same on modelled drives: the first 15 MiB answer in their time */
	REAL_LUN_THICK, /* thick, 4096-byte blocks */
	REAL_LUN_COUNT,
};
#define REAL_VOLUME_BYTES (60 * MIB)

struct real_target {
	struct loop *loop;
	struct group *group;
	struct buf_pool *pool;
	struct exports exports;
	struct iscsi_server *server;
	struct iscsi_portal *portal; /* 127.0.0.1:3260, portal group 1 */
	struct pool_config pools[2];
	struct member_config members[2];
	struct volume_config volumes[REAL_LUN_COUNT];
	char places[2][128]; /* of file stores */
	bool has_files;
};

/* In memory, or on file stores in DIRECTORY (not NULL).  0 or a negative errno. */
int real_target_array_open(struct real_target *target, const char *directory);
void real_target_array_close(struct real_target *target);
int real_target_serve(struct real_target *target);
/* Ends all sessions.  False: something of them has stayed behind. */
bool real_target_unserve(struct real_target *target);

/* One more portal of the server; NULL: no room. */
struct iscsi_portal *real_target_portal(struct real_target *target, const char *host, uint16_t port,
					uint16_t tag, bool redirects);
/* Lets DURATION_NS pass. */
void real_target_pass(struct real_target *target, uint64_t duration_ns);

#endif
