/* SPDX-License-Identifier: MIT
 *
 * The configuration of the Exchange workload, its presets, and the rates that follow from both.
 *
 * Sizes and ratios are those of a public Jetstress 2013 report (QNAP ES1640DC: per database 37.3
 * reads/s of 33,350 B, 20.7 writes/s of 36,852 B, 5.3 log writes/s of 20,620 B, 9.0 maintenance
 * reads/s of 261 KB), scaled to mailboxes x IOPS per mailbox.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_EXCHANGE_PROFILE_H
#define SANLAB_HARNESS_WORKLOAD_EXCHANGE_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "harness/workload/exchange_day.h"
#include "harness/workload/workload.h"

#define EXCHANGE_PAGE_BYTES	(32 * KIB)
#define EXCHANGE_SEGMENT_BYTES	(4 * KIB)
#define EXCHANGE_IO_BYTES_MAX	(256 * KIB)
#define EXCHANGE_LOG_FILE_BYTES (1 * MIB)
#define EXCHANGE_PREFILL_PRESET (64 * MIB)

enum exchange_unwritten {
	EXCHANGE_UNWRITTEN_AUTO,
	EXCHANGE_UNWRITTEN_ZEROS,
	EXCHANGE_UNWRITTEN_ANY
};

enum exchange_content { EXCHANGE_CONTENT_VERIFIED, EXCHANGE_CONTENT_NONE };

struct exchange_config {
	const char *type;
	int engine;
	int profile;
	uint64_t mailboxes;
	double iops_per_mailbox; /* 0: the profile's */
	uint64_t messages;	 /* a day, instead of it; 0: not given */
	struct exchange_day_config day;
	uint64_t copies;	 /* 0: the profile's */
	uint64_t database_bytes; /* per volume; 0: what the log leaves */
	uint64_t log_bytes;
	uint64_t prefill_bytes;
	double read_share; /* 0: the profile's */
	bool bdm;
	double bdm_per_s; /* per database */
	int unwritten;	  /* enum exchange_unwritten */
	int content;	  /* enum exchange_content */
	bool log_fua;
	uint64_t max_outstanding;
};

struct exchange_profile {
	const char *name;
	double iops_per_mailbox;
	unsigned copies;
	double read_share;	  /* database reads of database reads + writes */
	double read_continuation; /* one more 32 KiB page in a read: geometric */
	double write_continuation;
	double log_per_write;	/* log writes per database write */
	double log_write_bytes; /* mean */
	double growth_share;	/* database writes that extend the database */
};

/* Of one database, per second. */
struct exchange_rates {
	const struct exchange_profile *profile;
	double iops_per_mailbox;
	unsigned copies;
	double transactional, read, write, log_write, bdm, log_read;
	double log_continuation; /* one more 4 KiB segment in a log write: geometric */
};

extern const struct cfg_schema exchange_schema;
/* The two ways to say a mailbox's rate, the same keys for both engines; exchange_rate_check says
 * that only one may be given. */
#define EXCHANGE_RATE_FIELDS(iops_offset, messages_offset)                                      \
	{.key = "iops-per-mailbox",                                                             \
	 .type = CFG_REAL,                                                                      \
	 .offset = (iops_offset),                                                               \
	 .min = 0.0001,                                                                         \
	 .max = 1000,                                                                           \
	 .help = "transactional IOPS a mailbox; default: the profile's"},                       \
	{                                                                                       \
		.key = "messages", .type = CFG_UINT, .offset = (messages_offset),               \
		.min = EXCHANGE_MESSAGES_MIN, .max = EXCHANGE_MESSAGES_MAX,                     \
		.help = "sent and received by a mailbox in a day (50 to 500): the IOPS follow " \
			"from the profile"                                                      \
	}
void exchange_rate_check(struct cfg *cfg, const uint64_t *messages, double iops_per_mailbox);
/* Checks what the schema alone cannot. */
void exchange_configure(struct cfg *cfg, void *of);
extern const char *const exchange_engine_names[]; /* the first is the default */
extern const char *const exchange_profile_names[];
const struct exchange_profile *exchange_profile_of(int profile);
extern const struct workload_ops exchange_workload_ops;

/* IOPS of a mailbox in the busiest hour: GIVEN, or those of MESSAGES, or the profile's. */
double exchange_mailbox_iops(int profile, double given, uint64_t messages, double client);
/* ", 150 messages a day", and "(unverified)" where no document has the figure; empty without
 * messages. */
void exchange_messages_note(int profile, uint64_t messages, char *out, size_t size);
void exchange_rates(const struct exchange_config *config, unsigned databases,
		    struct exchange_rates *ret_rates);

#endif
