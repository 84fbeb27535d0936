/* SPDX-License-Identifier: MIT
 *
 * The arithmetic of sizing.
 *
 * IOPS per mailbox are linear in messages a day (of 75 KB): 2010 stand-alone 1.2e-3 (Dell BP1026:
 * 0.060 at 50, 0.180 at 150, 0.360 at 300), 2010 in a DAG 1.0e-3 (0.150 at 150, 0.200 at 200: EMC
 * XtremSW, Dell BP1036; 0.100 at 100: the community's formula), 2013 and later 0.67e-3 (0.168 at
 * 250: QNAP).  What lies between is on the line and marked as assumed.
 *
 * No document at hand gives the rest; it is what calculators are known to take, unverified: white
 * space of one day of mail, 14 days of deleted items (10 of them with mail), 20 % overhead of the
 * database, a content index of 10 % (2010) or 20 % (2013), 20 % headroom of IOPS, 10 log files of
 * 1 MB per 50 messages and day, 1.9 times as many at twice the size of a message, logs of three
 * days, a fifth of a volume free.  Database size: 200 GB stand-alone, 2 TB in a DAG, never more
 * than 16 TB (BP1036 2.2).
 */
#include "harness/workload/exchange_sizing.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/workload/exchange_profile.h"

#define MESSAGE_BYTES_PRESET	75000
#define MESSAGES_PRESET		150
#define DELETED_DAYS		10
#define DATABASE_OVERHEAD	1.2
#define IOPS_HEADROOM		1.2
#define LOG_FILES_PER_MESSAGE	0.2
#define LOG_DAYS		3
#define VOLUME_FILL		0.8
#define STANDALONE_DATABASE_MAX 200e9
#define DAG_DATABASE_MAX	2000e9
#define DATABASE_MAX		16e12
/* Maintenance reads of 256 KiB, per database and second: QNAP. */
#define BDM_PER_S   9.0
#define BDM_BYTES   261228.0
#define GROWTH_FREE 1.05
/* At least, for the smallest databases: 64 MiB to grow, the engine's log ring, its map. */
#define VOLUME_BESIDE (320.0 * MIB)

static const struct slope {
	const char *profile;
	double per_message;
	double index_share;
	bool cache_told;
	unsigned stated[4]; /* messages for which a document has the figure */
} slopes[] = {
    {"exchange-2010", 1.0e-3, 0.1, true, {100, 150, 200}},
    {"exchange-2010-standalone", 1.2e-3, 0.1, true, {50, 150, 300}},
    {"exchange-2013", 0.672e-3, 0.2, false, {250}},
    {"exchange-2016", 0.672e-3, 0.2, false, {0}},
};

/* Database cache per mailbox, Exchange 2010 (BP1026). */
static const struct {
	double messages, bytes;
} cache_points[] = {{50, 3 * MIB}, {150, 6 * MIB}, {300, 18 * MIB}};

static const struct slope *slope_of(int profile)
{
	const char *name = exchange_profile_names[profile];

	for (size_t i = 0; i < ARRAY_SIZE(slopes); i++) {
		if (strcmp(slopes[i].profile, name) == 0)
			return &slopes[i];
	}
	return &slopes[ARRAY_SIZE(slopes) - 1];
}

double exchange_message_iops(int profile, double messages, bool *ret_assumed)
{
	const struct slope *slope = slope_of(profile);

	*ret_assumed = true;
	for (size_t i = 0; i < ARRAY_SIZE(slope->stated); i++) {
		if (slope->stated[i] && fabs(messages - slope->stated[i]) < 0.5)
			*ret_assumed = false;
	}
	return messages * slope->per_message;
}

/* Between the points a line, beyond them the nearest line goes on. */
static double cache_per_mailbox(double messages)
{
	size_t i = messages > cache_points[1].messages;
	double along = (messages - cache_points[i].messages) /
		       (cache_points[i + 1].messages - cache_points[i].messages);

	return fmax(1 * MIB, cache_points[i].bytes +
				 along * (cache_points[i + 1].bytes - cache_points[i].bytes));
}

static int fill_demand(struct exchange_demand *demand, struct err *err)
{
	const struct exchange_profile *profile = exchange_profile_of(demand->profile);

	if (!demand->mailboxes || !demand->quota_bytes)
		return err_set(err, -EINVAL, "mailboxes and their quota are needed");
	if (!demand->messages)
		demand->messages = MESSAGES_PRESET;
	if (demand->messages < EXCHANGE_MESSAGES_MIN || demand->messages > EXCHANGE_MESSAGES_MAX)
		return err_set(err, -EINVAL, "messages a day are from %d to %d",
			       EXCHANGE_MESSAGES_MIN, EXCHANGE_MESSAGES_MAX);
	if (!demand->message_bytes)
		demand->message_bytes = MESSAGE_BYTES_PRESET;
	if (!demand->servers)
		demand->servers = 1;
	if (!demand->copies)
		demand->copies = profile->copies;
	if (demand->copies > 16 || demand->servers > 100 || demand->mailboxes > 10000000)
		return err_set(err, -EINVAL,
			       "more than 16 copies, 100 servers or 10,000,000 "
			       "mailboxes");
	if (demand->mailboxes < demand->servers)
		return err_set(err, -EINVAL, "more servers than mailboxes");
	return 0;
}

static void size_mailbox(struct exchange_sizing *sizing)
{
	const struct exchange_demand *demand = &sizing->demand;

	sizing->mail_bytes_per_day = (double)demand->messages * (double)demand->message_bytes;
	sizing->mailbox_bytes =
	    (double)demand->quota_bytes + (1 + DELETED_DAYS) * sizing->mail_bytes_per_day;
}

static int count_databases(struct exchange_sizing *sizing, struct err *err)
{
	struct exchange_demand *demand = &sizing->demand;
	double bytes = (double)demand->mailboxes * sizing->mailbox_bytes * DATABASE_OVERHEAD;
	double most = demand->copies > 1 ? DAG_DATABASE_MAX : STANDALONE_DATABASE_MAX;
	double each = ceil(bytes / most / (double)demand->servers);

	if (!demand->databases && each * (double)demand->servers > EXCHANGE_SIZED_DATABASES_MAX)
		return err_set(err, -EINVAL, "more than %d databases",
			       EXCHANGE_SIZED_DATABASES_MAX);
	if (!demand->databases)
		demand->databases = (uint64_t)fmax(1, each) * demand->servers;
	if (demand->databases > EXCHANGE_SIZED_DATABASES_MAX ||
	    demand->databases > demand->mailboxes)
		return err_set(err, -EINVAL, "more databases than mailboxes, or than %d",
			       EXCHANGE_SIZED_DATABASES_MAX);
	if (demand->databases % demand->servers)
		return err_set(
		    err, -EINVAL, "%llu databases cannot be shared evenly by %llu servers",
		    (unsigned long long)demand->databases, (unsigned long long)demand->servers);
	return 0;
}

static int size_database(struct exchange_sizing *sizing, struct err *err)
{
	const struct exchange_demand *demand = &sizing->demand;
	const struct slope *slope = slope_of(demand->profile);
	double larger = (double)demand->message_bytes / MESSAGE_BYTES_PRESET;
	double databases = (double)demand->databases;

	sizing->mailboxes_per_database = (double)demand->mailboxes / databases;
	sizing->database_bytes =
	    sizing->mailboxes_per_database * sizing->mailbox_bytes * DATABASE_OVERHEAD;
	if (sizing->database_bytes > DATABASE_MAX)
		return err_set(err, -EINVAL, "a database of %.1f TB: the most is %.0f TB",
			       sizing->database_bytes / 1e12, DATABASE_MAX / 1e12);
	sizing->index_bytes = sizing->database_bytes * slope->index_share;
	sizing->log_files_per_day = sizing->mailboxes_per_database * (double)demand->messages *
				    LOG_FILES_PER_MESSAGE * pow(larger, log2(1.9));
	sizing->log_bytes = sizing->log_files_per_day * LOG_DAYS * (double)MIB;
	sizing->volume_bytes =
	    (sizing->database_bytes * GROWTH_FREE + sizing->index_bytes + sizing->log_bytes) /
	    VOLUME_FILL;
	sizing->volume_bytes =
	    fmax(sizing->volume_bytes, sizing->database_bytes * GROWTH_FREE + VOLUME_BESIDE);
	sizing->total_bytes = sizing->volume_bytes * databases;
	return 0;
}

static void size_load(struct exchange_sizing *sizing)
{
	const struct exchange_demand *demand = &sizing->demand;
	const struct exchange_profile *profile = exchange_profile_of(demand->profile);
	double larger = (double)demand->message_bytes / MESSAGE_BYTES_PRESET;
	double databases = (double)demand->databases;

	sizing->iops_per_mailbox =
	    exchange_message_iops(demand->profile, (double)demand->messages, &sizing->iops_assumed);
	sizing->iops_per_mailbox *= larger;
	sizing->iops_assumed =
	    sizing->iops_assumed || demand->message_bytes != MESSAGE_BYTES_PRESET;
	sizing->iops = sizing->iops_per_mailbox * (double)demand->mailboxes;
	sizing->planned_iops = sizing->iops * IOPS_HEADROOM;
	sizing->reads = sizing->planned_iops * profile->read_share;
	sizing->writes = sizing->planned_iops - sizing->reads;
	sizing->log_writes = sizing->writes * profile->log_per_write;
	sizing->bdm_reads = databases * BDM_PER_S;
	sizing->bdm_bytes = sizing->bdm_reads * BDM_BYTES;
	if (slope_of(demand->profile)->cache_told)
		sizing->cache_bytes_per_server = (double)demand->mailboxes /
						 (double)demand->servers *
						 cache_per_mailbox((double)demand->messages);
}

int exchange_size(const struct exchange_demand *demand, struct exchange_sizing *ret_sizing,
		  struct err *err)
{
	struct exchange_sizing sizing = {.demand = *demand,
					 .profile = exchange_profile_names[demand->profile]};
	int r = fill_demand(&sizing.demand, err);

	if (r < 0)
		return r;
	size_mailbox(&sizing);
	r = count_databases(&sizing, err);
	if (r < 0)
		return r;
	r = size_database(&sizing, err);
	if (r < 0)
		return r;
	size_load(&sizing);
	*ret_sizing = sizing;
	return 0;
}
