/* SPDX-License-Identifier: MIT
 *
 * What a database may hold after its server has died: an oracle beside it.
 *
 * It is told of every operation that begins and ends, key by key (one at a time on a key).  After a
 * recovery each key must be as some of its operations left it, none missing that was acknowledged
 * as durable, none of the lazy ones that were older than their bound; and since recovery redoes a
 * log, all keys together must be cut at one point of it (dbtime).
 *
 * Pure.
 */
#ifndef SANLAB_TESTS_KILLED_ESE_ORACLE_H
#define SANLAB_TESTS_KILLED_ESE_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

enum { ORACLE_KEYS_MAX = 8192, ORACLE_OPS_MAX = 512 /* of a key between two recoveries */ };

enum oracle_kind { ORACLE_INSERT, ORACLE_DELETE, ORACLE_REPLACE };

struct oracle_state {
	bool exists;
	uint32_t version;
};

struct oracle_op {
	enum oracle_kind kind;
	bool lazy, ended;
	uint64_t ended_ns, dbtime;
	struct oracle_state after;
};

struct oracle_key {
	struct oracle_state base; /* as found by the last recovery */
	unsigned count;
	struct oracle_op *ops; /* since then */
	bool told;	       /* found() has been called */
};

struct oracle {
	unsigned keys;
	struct oracle_key key[ORACLE_KEYS_MAX];
	/* Of the check under way: the cut lies in [low, high). */
	uint64_t low, high;
	uint32_t low_key, high_key;
	uint64_t checked_ns, bound_ns;
	/* Over all. */
	uint64_t durable, lazy, lazy_lost, undecided, undecided_there;
	char why[300]; /* of the first fault */
};

bool oracle_init(struct oracle *oracle, unsigned keys);
void oracle_done(struct oracle *oracle);
void oracle_begin(struct oracle *oracle, uint32_t key, enum oracle_kind kind, bool lazy);
/* The operation under way has succeeded and left VERSION; or (failed) has done nothing. */
void oracle_end(struct oracle *oracle, uint32_t key, bool failed, uint32_t version, uint64_t dbtime,
		uint64_t now_ns);
/* The server died at DEAD_NS; lazy operations that had ended BOUND_NS before it must be there. */
void oracle_check_begin(struct oracle *oracle, uint64_t dead_ns, uint64_t bound_ns);
/* What recovery has left.  False: it must not be so (oracle->why). */
bool oracle_found(struct oracle *oracle, uint32_t key, bool exists, uint32_t version);
/* All keys have been told. */
bool oracle_check_end(struct oracle *oracle);

#endif
