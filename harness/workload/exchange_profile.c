/* SPDX-License-Identifier: MIT
 *
 * Presets and schema of the Exchange workload.
 *
 * IOPS per mailbox: 2010 in a DAG 0.200 at 200 messages a day (Dell BP1036), stand-alone 0.360 at
 * 300 messages (Dell BP1026); 2013 and later 0.168 at 250 messages (QNAP ES1640DC).  Ratios and
 * sizes come from the QNAP report for all: it is the only one that tells them per stream.
 *
 *  read share       149.308 of 232.185 transactional IOPS are reads
 *  continuation     mean read 33,350 B = 1.0178 pages of 32 KiB; mean write 36,852 B = 1.1246
 *  log              5.312 log writes of 20,620 B to 20.719 database writes
 *  growth           5,888 new pages in 7,970 s of 20.719 x 1.1246 written pages/s
 */
#include "harness/workload/exchange_profile.h"

#include <stdio.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_config.h"
#include "harness/workload/exchange_sizing.h"

#define QNAP_MIX                                                                        \
	.read_share = 0.643, .read_continuation = 0.0174, .write_continuation = 0.1108, \
	.log_per_write = 0.256, .log_write_bytes = 20620, .growth_share = 0.0317

static const struct exchange_profile profiles[] = {
    {.name = "exchange-2010", .iops_per_mailbox = 0.200, .copies = 2, QNAP_MIX},
    {.name = "exchange-2010-standalone", .iops_per_mailbox = 0.360, .copies = 1, QNAP_MIX},
    {.name = "exchange-2013", .iops_per_mailbox = 0.168, .copies = 2, QNAP_MIX},
    {.name = "exchange-2016", .iops_per_mailbox = 0.168, .copies = 2, QNAP_MIX},
};

const char *const exchange_profile_names[] = {
    "exchange-2010", "exchange-2010-standalone", "exchange-2013", "exchange-2016", NULL,
};
_Static_assert(ARRAY_SIZE(exchange_profile_names) == ARRAY_SIZE(profiles) + 1,
	       "one name a profile");

const char *const exchange_engine_names[] = {"streams", "ese", NULL};
static const char *const unwritten_names[] = {"auto", "zeros", "any", NULL};
static const char *const content_names[] = {"verified", "none", NULL};

#define AT(member) offsetof(struct exchange_config, member)

static const struct cfg_field fields[] = {
    {.key = "type", .type = CFG_STRING, .offset = AT(type), .help = "exchange"},
    {.key = "engine",
     .type = CFG_ENUM,
     .offset = AT(engine),
     .preset = "streams",
     .names = exchange_engine_names,
     .help = "streams: five streams of I/O at the rates and sizes of the profile"},
    {.key = "profile",
     .type = CFG_ENUM,
     .offset = AT(profile),
     .preset = "exchange-2010",
     .names = exchange_profile_names,
     .help = "preset of IOPS per mailbox, copies and mix"},
    {.key = "mailboxes",
     .type = CFG_UINT,
     .offset = AT(mailboxes),
     .required = true,
     .min = 1,
     .max = 10e6,
     .help = "all mailboxes, spread evenly over the databases (one a volume)"},
    EXCHANGE_RATE_FIELDS(AT(iops_per_mailbox), AT(messages)),
    {.key = "day",
     .type = CFG_STRUCT,
     .offset = AT(day),
     .sub = &exchange_day_schema,
     .help = "the course of a day"},
    {.key = "copies",
     .type = CFG_UINT,
     .offset = AT(copies),
     .min = 1,
     .max = 16,
     .help = "copies of each database: a closed log is read copies - 1 times"},
    {.key = "database-size",
     .type = CFG_SIZE,
     .offset = AT(database_bytes),
     .min = 2.0 * 1024 * 1024,
     .max = 64e12,
     .help = "what a database may grow to; default: what the log leaves of its volume"},
    {.key = "log-size",
     .type = CFG_SIZE,
     .offset = AT(log_bytes),
     .preset = "64MiB",
     .min = 2.0 * 1024 * 1024,
     .max = 64e9,
     .help = "ring of 1 MiB log files at the end of each volume"},
    {.key = "prefill",
     .type = CFG_SIZE,
     .offset = AT(prefill_bytes),
     .preset = "64MiB",
     .help = "initial size of each database, written before the run; I/O falls on it and on what "
	     "it grows by. 0: nothing is written before, I/O falls on all of database-size"},
    {.key = "read-share",
     .type = CFG_PERCENT,
     .offset = AT(read_share),
     .min = 1,
     .max = 99,
     .help = "database reads of all transactional I/O; default: the profile's (64.3%)"},
    {.key = "bdm",
     .type = CFG_BOOL,
     .offset = AT(bdm),
     .preset = "true",
     .help = "background database maintenance: sequential 256 KiB reads"},
    {.key = "bdm-rate",
     .type = CFG_REAL,
     .offset = AT(bdm_per_s),
     .preset = "9.0",
     .min = 0.01,
     .max = 10000,
     .help = "maintenance reads per second and database, whatever the load"},
    {.key = "unwritten",
     .type = CFG_ENUM,
     .offset = AT(unwritten),
     .preset = "auto",
     .names = unwritten_names,
     .help = "what pages not written in this run must hold: zeros, any; auto: zeros on a fresh "
	     "memory volume, else any"},
    {.key = "content",
     .type = CFG_ENUM,
     .offset = AT(content),
     .preset = "verified",
     .names = content_names,
     .help = "verified: pages carry their identity and every read is checked; none: I/Os carry "
	     "nothing, for stores that keep nothing (store: discard)"},
    {.key = "log-fua",
     .type = CFG_BOOL,
     .offset = AT(log_fua),
     .preset = "true",
     .help = "log writes carry FUA, as Exchange's write-through log does"},
    {.key = "max-outstanding",
     .type = CFG_UINT,
     .offset = AT(max_outstanding),
     .preset = "256",
     .min = 1,
     .max = 4096,
     .help = "reads (and as many writes) in flight per database; later arrivals wait, and their "
	     "latency still counts from when they were due"},
};

const struct cfg_schema exchange_schema = {
    .name = "workload",
    .size = sizeof(struct exchange_config),
    .fields = fields,
    .field_count = ARRAY_SIZE(fields),
    .sibling = &ese_schema,
    .sibling_name = "engine: ese",
};

const struct exchange_profile *exchange_profile_of(int profile)
{
	return &profiles[profile];
}

void exchange_rate_check(struct cfg *cfg, const uint64_t *messages, double iops_per_mailbox)
{
	if (*messages && iops_per_mailbox > 0)
		cfg_error_at(cfg, messages,
			     "'messages' and 'iops-per-mailbox' say the same: give one of them");
}

void exchange_configure(struct cfg *cfg, void *of)
{
	const struct exchange_config *config = of;

	exchange_rate_check(cfg, &config->messages, config->iops_per_mailbox);
	exchange_day_check(cfg, &config->day, true);
}

double exchange_mailbox_iops(int profile, double given, uint64_t messages, double client)
{
	bool assumed;

	if (given > 0)
		return given * client;
	if (messages)
		return exchange_message_iops(profile, (double)messages, &assumed) * client;
	return profiles[profile].iops_per_mailbox * client;
}

void exchange_messages_note(int profile, uint64_t messages, char *out, size_t size)
{
	bool assumed = false;

	*out = '\0';
	if (!messages)
		return;
	exchange_message_iops(profile, (double)messages, &assumed);
	snprintf(out, size, ", %llu messages a day%s", (unsigned long long)messages,
		 assumed ? " (unverified)" : "");
}

void exchange_rates(const struct exchange_config *config, unsigned databases,
		    struct exchange_rates *ret_rates)
{
	const struct exchange_profile *profile = &profiles[config->profile];
	double share = config->read_share > 0 ? config->read_share : profile->read_share;
	double segments = profile->log_write_bytes / (double)EXCHANGE_SEGMENT_BYTES;
	struct exchange_rates rates = {
	    .profile = profile,
	    .iops_per_mailbox =
		exchange_mailbox_iops(config->profile, config->iops_per_mailbox, config->messages,
				      exchange_client_factor(&config->day)),
	    .copies = config->copies ? (unsigned)config->copies : profile->copies,
	    .bdm = config->bdm ? config->bdm_per_s : 0,
	    .log_continuation = 1 - 1 / segments,
	};

	rates.transactional = (double)config->mailboxes * rates.iops_per_mailbox / databases;
	rates.read = rates.transactional * share;
	rates.write = rates.transactional - rates.read;
	rates.log_write = rates.write * profile->log_per_write;
	rates.log_read = rates.log_write * profile->log_write_bytes /
			 (double)EXCHANGE_IO_BYTES_MAX * (rates.copies - 1);
	*ret_rates = rates;
}
