/* SPDX-License-Identifier: MIT
 *
 * The Exchange engine as a whole on simulated devices in virtual time: every database and every
 * log on a device of its own, whose I/Os take as long as a function says.
 */
#ifndef SANLAB_TESTS_SIM_ESE_RIG_H
#define SANLAB_TESTS_SIM_ESE_RIG_H

#include "base/err.h"
#include "harness/workload/ese/ese_workload.h"

enum { RIG_DATABASES_MAX = 16 };

struct rig;

struct rig_setup {
	const char *config;	   /* the workload's keys, without placement */
	unsigned databases, hosts; /* hosts 0: one */
	uint64_t database_bytes;   /* of each device; logs have as much as they need */
	uint64_t seed;
	bool content; /* the devices keep what is written; at most 4 GiB each */
	/* How long an I/O takes; NULL: 14 ms, 2.4 ms, log 1.1 ms. */
	uint64_t (*latency_ns)(struct rig *rig, const struct io *io, bool log);
	uint64_t (*clock_ns)(void); /* not NULL: times what the devices do themselves */
};

/* Means of all databases of the rig since the last rig_reset; rates are of one database. */
struct rig_figures {
	double seconds, databases;
	double reads, read_bytes, read_ns;
	double writes, write_bytes;
	double log_writes, log_write_bytes;
	double bdm, bdm_bytes;
	double log_reads, log_read_bytes;
	double transactions; /* of all databases together */
	double iops;	     /* transactional, of all databases together */
};

struct rig {
	struct loop *loop;
	struct cfg *cfg;
	struct ese_config config;
	struct workload *workload;
	struct workload_env env;
	struct workload_device *devices;
	struct rig_device *rig_devices;
	unsigned device_count;
	struct rig_setup setup;
	char (*names)[16];
	unsigned free_count;
	uint64_t reset_ns, transactions;
	uint64_t transfers, transfer_ns; /* timed ones since the last rig_reset, and their time */
	bool failed;
	char why[400];
	int status;
	bool waiting;
};

/* Opened, databases made, load started; ends the program's test when that fails. */
struct rig *rig_new(const struct rig_setup *setup);
struct rig *rig_free(struct rig *rig); /* stops first */
void rig_run(struct rig *rig, double seconds);
/* Until the workload's warm-up has ended; returns its status. */
int rig_warm_up(struct rig *rig, double limit_seconds);
void rig_reset(struct rig *rig);
void rig_figures(struct rig *rig, struct rig_figures *ret_figures);
void rig_print(const char *title, const struct rig_figures *figures);
struct ese_server *rig_server(struct rig *rig, unsigned index);

#endif
