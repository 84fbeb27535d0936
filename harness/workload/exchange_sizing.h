/* SPDX-License-Identifier: MIT
 *
 * Sizing: from mailboxes, quota and message profile to databases, logs, volumes and I/O.  Pure.
 *
 * Figures without a document behind them are marked in exchange_sizing.c and told in
 * `struct exchange_sizing.assumed`.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_EXCHANGE_SIZING_H
#define SANLAB_HARNESS_WORKLOAD_EXCHANGE_SIZING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum {
	EXCHANGE_MESSAGES_MIN = 10,
	EXCHANGE_MESSAGES_MAX = 2000,
	EXCHANGE_SIZED_DATABASES_MAX = 10000,
};

/* What is wanted; 0: as the profile has it, or what follows. */
struct exchange_demand {
	int profile;		/* of exchange_profile_names */
	uint64_t mailboxes;	/* all of them */
	uint64_t quota_bytes;	/* of one */
	uint64_t messages;	/* sent and received, of one a day; default 150 */
	uint64_t message_bytes; /* mean; default 75 KB */
	uint64_t servers;	/* default 1 */
	uint64_t databases;	/* active ones, of all servers; default: as large as is advised */
	uint64_t copies;	/* of each, the active one included */
};

struct exchange_sizing {
	struct exchange_demand demand; /* with everything filled in */
	const char *profile;
	double iops_per_mailbox;
	bool iops_assumed; /* follows from the slope, no document has it */
	/* One mailbox. */
	double mail_bytes_per_day, mailbox_bytes;
	/* One database. */
	double mailboxes_per_database, database_bytes, index_bytes, log_bytes, volume_bytes;
	double log_files_per_day;
	/* All active databases together, a second; planned: with headroom. */
	double iops, planned_iops, reads, writes, log_writes, bdm_reads, bdm_bytes;
	double cache_bytes_per_server; /* 0: not told for this profile */
	double total_bytes;	       /* volumes of the active databases */
};

/* -EINVAL: impossible, and why. */
int exchange_size(const struct exchange_demand *demand, struct exchange_sizing *ret_sizing,
		  struct err *err);

/* IOPS of a mailbox with that many messages of 75 KB a day. */
double exchange_message_iops(int profile, double messages, bool *ret_assumed);

#endif
